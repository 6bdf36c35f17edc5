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

	"github.com/synchub-dev/synchub/controllers/internal/writes"
	"github.com/synchub-dev/synchub/controllers/objectsync"
	"github.com/synchub-dev/synchub/controllers/plan"
	"github.com/synchub-dev/synchub/controllers/plan/ownership"
	"github.com/synchub-dev/synchub/controllers/plan/transform"
	"github.com/synchub-dev/synchub/provider/requestclass"
)

// executor carries plans for copies out: only it writes copies to mailboxes.
type executor struct {
	sources   *sources
	copies    *copies
	deletions *deletions
	writer    writes.WorkspaceWriter[pairKey]
}

// executeOrReplace executes a plan. If kcp refuses to update the copy of a source that was deleted and created
// again, it deletes the copy. It returns the decision that was executed.
func (e *executor) executeOrReplace(ctx context.Context, key pairKey, s *pairSnapshot, planned plan.UpPlan) (plan.Decision, error) {
	err := e.execute(ctx, key, s, planned)
	if planned.Decision.Action == plan.Update && objectsync.IsImmutable(err) && planned.ReplaceIfImmutable {
		planned.Decision = plan.Decision{Action: plan.Delete, Cause: plan.Superseded}
		err = e.execute(requestclass.With(ctx, requestclass.Extra), key, s, planned)
	}
	return planned.Decision, err
}

// execute makes the write that the plan contains.
func (e *executor) execute(ctx context.Context, key pairKey, s *pairSnapshot, p plan.UpPlan) error {
	switch p.Decision.Action {
	case plan.VerifyAbsence:
		e.sources.workloads.Absences.VerifyAbsence(e.sources.cluster, key.candidate(plan.State(p.Decision.Cause)))
		return nil
	case plan.Create:
		return e.create(ctx, key, s, p.Desired)
	case plan.Update, plan.Conflict:
		if p.Decision.Action == plan.Conflict {
			if !e.mayTakeOver(key, s) {
				return errConflict
			}
			ctx = requestclass.With(ctx, requestclass.Extra)
		}
		_, err := e.writer.Update(ctx, key, s.InMailbox, p.Desired.Object)
		return err
	case plan.Delete:
		// The copy is deleted with the deletion option of the source.
		return e.writer.Delete(ctx, key, s.InMailbox, e.deletions.get(key.objectKey))
	case plan.Release:
		return e.release(ctx, key, s)
	default:
		if p.Decision.Action.Writes() {
			return fmt.Errorf("unexpected decision about a copy: %s", p.Decision)
		}
		return nil
	}
}

// create creates the copy. If the name is taken, either the cache does not show the hub's own object yet, or
// another object has the name.
func (e *executor) create(ctx context.Context, key pairKey, s *pairSnapshot, desired *transform.Desired) error {
	created, err := e.writer.Create(ctx, key, desired.Object, s.owner)
	if !errors.Is(err, writes.ErrExists) {
		return err
	}
	if mark, err := plan.MailboxMark(s.owner, created); err == nil && mark.Mailbox == e.sources.cluster.String() {
		return writes.ErrOutdated
	}
	return errConflict
}

// mayTakeOver reports whether the hub created an object for placements and does not own it: a Namespace for copies, or a copy that the
// hub released. Every workspace may take over a container that has no copies of another workspace.
func (e *executor) mayTakeOver(key pairKey, s *pairSnapshot) bool {
	_, marked := plan.Annotation(s.InMailbox, ownership.MarkAnnotation)
	text, ensured := plan.Annotation(s.InMailbox, ownership.EnsuredAnnotation)
	self := transform.SelfOf(s.InMailbox)
	switch {
	case !ensured || marked:
		return false
	case s.creator.HasEnsured(text, self):
		return true
	default:
		return s.resource.DeletesContents && s.owner.HasEnsured(text, self) && !e.copies.hasOthers(key)
	}
}

// release removes the mark from the copy. The copy stays in the mailbox and on the target, because it keeps the
// label that the mailbox's SyncerConfig selects. A later placement of the workspace may take it over again. A
// container loses the label too: its contents keep it, so the hub releases it on the target as well.
func (e *executor) release(ctx context.Context, key pairKey, s *pairSnapshot) error {
	creator, isContainer := s.creator, s.resource.DeletesContents && s.resource.Retain
	if isContainer {
		creator = s.owner
	}
	return e.writer.Release(ctx, key, s.InMailbox, creator.EnsuredValue(transform.SelfOf(s.InMailbox)), !isContainer)
}
