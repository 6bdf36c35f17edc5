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
	"k8s.io/apimachinery/pkg/types"

	"github.com/synchub-dev/synchub/controllers/internal/mailboxwrite"
	"github.com/synchub-dev/synchub/controllers/plan"
	"github.com/synchub-dev/synchub/controllers/plan/ownership"
	"github.com/synchub-dev/synchub/controllers/plan/transform"
)

// returnStatus writes the status of the copy to the mailbox object if they differ, and if the selection asks for it.
func (c *Controller) returnStatus(ctx context.Context, s *plan.Snapshot, desired *transform.Desired) (written bool, err error) {
	d := s.Down
	if !d.Selection.StatusReturn || !c.Resource.StatusReturn {
		return false, nil
	}
	object := d.Destination.Object
	var mark ownership.Mark
	switch observed := d.Destination.Observed; {
	case observed == nil && d.Removed != nil:
		object, mark = d.Removed.Finished, d.Removed.Mark
	case observed == nil, plan.Supersedes(desired, observed):
		// The status is another object's.
		return false, nil
	default:
		mark = observed.Mark
	}
	onTarget, err := c.observer.ReturnedStatus(object, s.InMailbox, d.Selection)
	if err != nil {
		return false, err
	}
	return c.writeStatus(ctx, s.Key, s.InMailbox, onTarget, mark.Hash == desired.Mark.Hash, d.Selection.Configs)
}

// writeUpsyncedStatus writes the status of the target object to the upsynced object if they differ.
func (c *Controller) writeUpsyncedStatus(ctx context.Context, s *plan.Snapshot, inMailbox *unstructured.Unstructured) (written bool, err error) {
	if c.Resource.Native {
		return false, nil
	}
	onTarget, err := c.observer.ReturnedStatus(s.Up.Object, inMailbox, s.Up.Selection)
	if err != nil {
		return false, err
	}
	return c.writeStatus(ctx, s.Key, inMailbox, onTarget, true, s.Up.Selection.Configs)
}

// writeStatus makes the target's status that of the mailbox object. applied is true if the target object has the current
// content of the mailbox object. configs are those that select the object.
func (c *Controller) writeStatus(ctx context.Context, key types.NamespacedName, inMailbox, onTarget *unstructured.Unstructured, applied bool, configs []string) (written bool, err error) {
	current := transform.StatusOf(inMailbox.Object["status"])
	wanted, dropped := c.Pruner.PruneStatus(c.Resource.MailboxStatus(inMailbox, onTarget, applied))
	c.recordPrunedPaths(configs, dropped)
	if transform.EqualStatus(current, wanted) {
		return false, nil
	}
	patch, err := mailboxwrite.StatusPatch(inMailbox.GetUID(), current, wanted)
	if err != nil {
		return false, fmt.Errorf("cannot compare the status: %w", err)
	}
	switch err := c.mailboxWriter.PatchStatus(ctx, key, patch, c.Resource.StatusSubresource); {
	case errors.Is(err, mailboxwrite.ErrUnreachable):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("%w: cannot write the status: %w", errMailboxRefused, err)
	}
	return true, nil
}
