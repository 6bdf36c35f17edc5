/*
Copyright 2026 The synchub Authors.

Licensed under the Apache License, Version 2.0 (the "License");
you may not use this file except in compliance with the License.
You may obtain a copy of the License at

    http://www.apache.org/licenses/LICENSE-2.0

Unless required by applicable law or agreed to in writing, software
distributed under the License is distributed on an "AS IS" BASIS,
WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
See the License for the specific language governing permissions and
limitations under the License.
*/

package objectsync

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/synchub-dev/synchub/controllers/plan"
	"github.com/synchub-dev/synchub/controllers/plan/ownership"
	"github.com/synchub-dev/synchub/controllers/plan/transform"
	"github.com/synchub-dev/synchub/provider/requestclass"
)

// resolveTargetConflict takes back the target object that has the name if it is the hub's, adopts it if that is allowed, and else returns a
// conflict.
func (c *Controller) resolveTargetConflict(ctx context.Context, current plan.Copy, desired *transform.Desired, refused error) error {
	object, err := c.Connection.Get(ctx, current.API.GroupVersionResource, current.Key)
	if err != nil {
		return fmt.Errorf("the target refused to create the object: %w; and reading it failed: %w", refused, err)
	}
	observed, markErr := c.observeObject(object)
	current.Object = object
	if object.GetLabels()[ownership.OwnerLabel] == c.Owner.LabelValue() {
		c.contradicted(current.Ref(), "")
	}
	switch {
	case markErr == nil && !plan.SameSource(observed.Mark, desired.Mark):
		return &nameTakenError{ref: current.Ref(), reason: "it came from " + describeSource(observed.Mark.Source)}
	case markErr == nil:
		return c.reapplyOwned(ctx, current, desired, observed)
	case c.isEnsured(object, markErr):
		return c.applyInPlace(ctx, current, desired, object.GetUID())
	}
	allowed, err := c.mayAdopt(ctx, current, object, desired, markErr)
	switch {
	case err != nil:
		return fmt.Errorf("cannot find out whether the object may be adopted: %w", err)
	case !allowed:
		return &nameTakenError{ref: current.Ref(), reason: markErr.Error(), adoptable: ownership.IsAdoptable(markErr), unverified: errors.Is(markErr, ownership.ErrUnverified)}
	default:
		return c.adopt(ctx, current, object, desired.AsAdopted())
	}
}

// resolveMailboxConflict takes over the mailbox object that has the name if the hub created it as a namespace for upsynced
// objects, or if KubeStellar's syncer upsynced it and the PublishedResource allows its adoption. Else it returns the conflict.
func (c *Controller) resolveMailboxConflict(ctx context.Context, s *plan.Snapshot, desired *transform.Desired) error {
	inMailbox := s.InMailbox
	ctx = requestclass.With(ctx, requestclass.Extra)
	_, markErr := plan.MailboxMark(c.Owner, inMailbox)
	switch {
	case c.isEnsured(inMailbox, markErr):
		return c.updateInMailbox(ctx, s, desired)
	case c.mayAdoptInMailbox(inMailbox, markErr):
		return c.updateInMailbox(ctx, s, desired.AsAdopted())
	case isKubeStellarUpsynced(inMailbox, markErr):
		return fmt.Errorf("%w, or let spec.adoption of the PublishedResource be KubeStellar, whose syncer brought it up", errNameTakenInMailbox)
	default:
		return errNameTakenInMailbox
	}
}

// reapplyOwned brings an object that the hub wrote in sync.
func (c *Controller) reapplyOwned(ctx context.Context, current plan.Copy, desired *transform.Desired, observed *plan.TargetObject) error {
	switch {
	case desired.Mark.Policy == ownership.PolicyCreateOnly:
		return c.updateMark(ctx, current, desired, observed)
	case observed.Mark.Adopted:
		return c.applyToTarget(ctx, current, desired.AsAdopted(), observed.UID)
	default:
		return c.applyToTarget(ctx, current, desired, observed.UID)
	}
}

// isEnsured reports whether an unmarked object is a namespace that this hub created for its contents, or an object that it
// released.
func (c *Controller) isEnsured(object *unstructured.Unstructured, markErr error) bool {
	value, ok := plan.Annotation(object, ownership.EnsuredAnnotation)
	return ok && errors.Is(markErr, ownership.ErrUnmarked) && c.Owner.HasEnsured(value, transform.SelfOf(object))
}
