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

package placement

import (
	"context"
	"errors"
	"fmt"

	"github.com/synchub-dev/synchub/controllers/internal/mailboxwrite"
	"github.com/synchub-dev/synchub/controllers/plan"
	"github.com/synchub-dev/synchub/controllers/plan/ownership"
	"github.com/synchub-dev/synchub/controllers/plan/transform"
	"github.com/synchub-dev/synchub/provider/requestclass"
)

// execute makes the write that the plan contains.
func (w *workspace) execute(ctx context.Context, key pairKey, s *pairSnapshot, p plan.UpPlan) error {
	switch {
	case p.Decision.Action == plan.VerifyAbsence:
		w.Workloads.VerifyAbsence(w.cluster, key.candidate(plan.State(p.Decision.Cause)))
		return nil
	case !p.Decision.Action.Writes() && p.Decision.Action != plan.Conflict:
		return nil
	}
	switch p.Decision.Action {
	case plan.Create:
		return w.create(ctx, key, s, p.Desired)
	case plan.Update:
		return w.update(ctx, key, s, p.Desired)
	case plan.Conflict:
		return w.resolveConflict(ctx, key, s, p.Desired)
	case plan.Delete:
		// The copy is deleted with the deletion option of the source.
		return w.copyWriter.Delete(ctx, key, s.InMailbox.GetUID(), w.deletions.get(key.objectKey))
	case plan.Release:
		return w.release(ctx, key, s)
	default:
		return fmt.Errorf("unexpected decision about a copy: %s", p.Decision)
	}
}

// create creates the copy. If the name is taken, either the cache does not show the hub's own object yet, or
// another object has the name.
func (w *workspace) create(ctx context.Context, key pairKey, s *pairSnapshot, desired *transform.Desired) error {
	created, err := w.copyWriter.Create(ctx, key, desired.Object, s.owner)
	if !errors.Is(err, mailboxwrite.ErrExists) {
		return err
	}
	if mark, err := plan.MailboxMark(s.owner, created); err == nil && mark.Mailbox == w.cluster.String() {
		return mailboxwrite.ErrOutdated
	}
	return errConflict
}

// update replaces the content of the copy if nobody has changed it since the pass observed it.
func (w *workspace) update(ctx context.Context, key pairKey, s *pairSnapshot, desired *transform.Desired) error {
	_, err := w.copyWriter.Update(ctx, key, s.InMailbox, desired.Object)
	return err
}

// resolveConflict takes over an object with the copy's name if the hub created it: a namespace for copies, or a
// copy that the hub released.
func (w *workspace) resolveConflict(ctx context.Context, key pairKey, s *pairSnapshot, desired *transform.Desired) error {
	if !w.mayTakeOver(key, s) {
		return errConflict
	}
	return w.update(requestclass.With(ctx, requestclass.Extra), key, s, desired)
}

// mayTakeOver reports whether the hub created an object for placements and does not own it. Every workspace may
// take over a container that has no copies of another workspace.
func (w *workspace) mayTakeOver(key pairKey, s *pairSnapshot) bool {
	_, marked := plan.Annotation(s.InMailbox, ownership.MarkAnnotation)
	text, ensured := plan.Annotation(s.InMailbox, ownership.EnsuredAnnotation)
	self := transform.SelfOf(s.InMailbox)
	switch {
	case !ensured || marked:
		return false
	case s.creator.HasEnsured(text, self):
		return true
	default:
		return s.resource.DeletesContents && s.owner.HasEnsured(text, self) && !w.hasCopiesOfOthers(key)
	}
}

// hasCopiesOfOthers reports whether a Namespace of a mailbox has, or may have, copies of other workspaces.
func (w *workspace) hasCopiesOfOthers(key pairKey) bool {
	if key.resource != namespaces {
		return false
	}
	for of := range w.CachePolicy.published() {
		objects, known := w.Mailboxes.List(of, key.mailbox)
		if !known && !w.Mailboxes.IsKnownNotServed(key.mailbox, of.GroupResource()) {
			return true
		}
		for _, object := range objects {
			if object.GetNamespace() != key.name.Name {
				continue
			}
			if cluster, ok := w.workspaceOf(object); ok && cluster != w.cluster {
				return true
			}
		}
	}
	return false
}

// release removes the mark from the copy. The copy stays in the mailbox and on the target, because it keeps the
// label that the mailbox's SyncerConfig selects. A later placement of the workspace may take it over again. A
// container loses the label too: its contents keep it, so the hub releases it on the target as well.
func (w *workspace) release(ctx context.Context, key pairKey, s *pairSnapshot) error {
	creator, isContainer := s.creator, s.resource.DeletesContents && s.resource.Retain
	if isContainer {
		creator = s.owner
	}
	return w.copyWriter.Release(ctx, key, s.InMailbox, creator.EnsuredValue(transform.SelfOf(s.InMailbox)), !isContainer)
}
