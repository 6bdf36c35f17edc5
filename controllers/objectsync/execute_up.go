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
	"maps"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/synchub-dev/synchub/controllers/internal/mailboxwrite"
	"github.com/synchub-dev/synchub/controllers/plan"
	"github.com/synchub-dev/synchub/controllers/plan/transform"
	"github.com/synchub-dev/synchub/provider/notfound"
	"github.com/synchub-dev/synchub/provider/requestclass"
)

var namespaces = schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}

// errOutdated means that the object to write has changed since the hub read it, on either side.
var errOutdated = mailboxwrite.ErrOutdated

// refusedByMailbox returns the error of a write to the mailbox; nil if it has none.
func refusedByMailbox(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%w: %w", errMailboxRefused, err)
}

// createInMailbox creates the desired object.
func (c *Controller) createInMailbox(ctx context.Context, s *plan.Snapshot, desired *transform.Desired) error {
	created, err := c.mailboxWriter.Create(ctx, s.Key, c.withStatus(desired.Object, s.Up.Object), c.Owner)
	switch exists := errors.Is(err, mailboxwrite.ErrExists); {
	case exists && c.isUpsynced(created):
		// Nobody removed it, if the cache showed that: it had lost the object for another cause.
		c.states.refundRemoval(s.Key)
		return nil
	case exists:
		return errNameTakenInMailbox
	default:
		return c.finishMailboxWrite(ctx, s, created, err)
	}
}

// updateInMailbox replaces the content of the mailbox object if nobody has changed it since the pass observed it.
func (c *Controller) updateInMailbox(ctx context.Context, s *plan.Snapshot, desired *transform.Desired) error {
	updated, err := c.mailboxWriter.Update(ctx, s.Key, s.InMailbox, c.withStatus(desired.Object, s.Up.Object))
	return c.finishMailboxWrite(ctx, s, updated, err)
}

// finishMailboxWrite writes the status after the other parts.
func (c *Controller) finishMailboxWrite(ctx context.Context, s *plan.Snapshot, written *unstructured.Unstructured, err error) error {
	if err != nil {
		return refusedByMailbox(err)
	}
	c.OnChange()
	_, err = c.writeUpsyncedStatus(ctx, s, written)
	return err
}

// withStatus adds the status if it is part of the object. A status subresource needs its own request.
func (c *Controller) withStatus(desired, object *unstructured.Unstructured) *unstructured.Unstructured {
	status, ok := object.Object["status"]
	if !ok || c.Resource.StatusSubresource || c.Resource.Native {
		return desired
	}
	with := &unstructured.Unstructured{Object: maps.Clone(desired.Object)}
	with.Object["status"] = status
	return with
}

// deleteFromMailbox deletes an upsynced object.
func (c *Controller) deleteFromMailbox(ctx context.Context, key types.NamespacedName, inMailbox *unstructured.Unstructured) error {
	return c.withdrawn(inMailbox, c.mailboxWriter.Delete(ctx, key, inMailbox.GetUID(), nil))
}

// releaseInMailbox removes the hub's marks from an upsynced object, which stays.
func (c *Controller) releaseInMailbox(ctx context.Context, key types.NamespacedName, inMailbox *unstructured.Unstructured) error {
	var ensured string
	if mark, err := plan.MailboxMark(c.Owner, inMailbox); err == nil && mayReclaim(mark) {
		ensured = c.Owner.EnsuredValue(mark.Self)
	}
	return c.withdrawn(inMailbox, c.mailboxWriter.Release(ctx, key, inMailbox, ensured, false))
}

// withdrawn forgets the source of a mailbox object that was deleted or released, unless that failed.
func (c *Controller) withdrawn(inMailbox *unstructured.Unstructured, err error) error {
	if err != nil {
		return refusedByMailbox(err)
	}
	if mark, err := plan.MailboxMark(c.Owner, inMailbox); err == nil {
		c.states.forgetSourceDeleted(upsyncSourceRef(mark))
	}
	c.OnChange()
	return nil
}

// confirmMissingSource asks the target about an object whose deletion nobody observed: it may have been deleted while the hub
// was away. The answer goes into the snapshot.
func (c *Controller) confirmMissingSource(ctx context.Context, s *plan.Snapshot) {
	u, asked := s.Up, s.Up.Unconfirmed
	u.Unconfirmed = nil
	target := c.targetResourceFor(asked.Resource)
	if target == nil {
		return
	}
	object, err := c.Connection.Get(requestclass.With(ctx, requestclass.Extra), target.GroupVersionResource, asked.Key)
	switch {
	case err == nil:
		if name, ok := c.upsyncKey(target, s.Matcher, object); ok && name == s.Key {
			// The upsync cache is about to show it.
			return
		}
		if plan.IsNeverUpsynced(c.Owner, object) || c.observer.IsUnrelatedOnTarget(s.Matcher, target.TargetAPI, object) {
			u.State, u.AbsenceVerified = plan.Deselected, true
		}
	case notfound.Proves(err, asked.Resource, asked.Key.Name):
		u.State, u.AbsenceVerified = plan.SourceNotFound, true
	default:
		// An API that is not served says nothing about its objects.
		u.Err = fmt.Errorf("cannot find out whether %s %s is gone from the target: %w", asked.Resource, asked.Key, err)
	}
}

// nameConflict reports that another target object would have the same name in the mailbox.
func (c *Controller) nameConflict(u *plan.UpSnapshot) error {
	if u.Conflicting == nil {
		return nil
	}
	return fmt.Errorf("%w: %s %s of the target would have the same name", errNameTakenInMailbox, u.Conflicting.Resource, u.Conflicting.Key)
}
