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
	"encoding/json"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/synchub-dev/synchub/controllers/internal/mailboxwrite"
	"github.com/synchub-dev/synchub/controllers/objectsync/plan"
	"github.com/synchub-dev/synchub/controllers/objectsync/plan/ownership"
	"github.com/synchub-dev/synchub/controllers/objectsync/plan/transform"
	"github.com/synchub-dev/synchub/provider/metrics/requestmetrics"
)

// execute makes the write that the plan decided on.
func (w *workspace) execute(ctx context.Context, key pairKey, s *pairSnapshot, p plan.Plan) error {
	switch {
	case p.Decision.Action == plan.VerifyAbsence:
		w.Workloads.VerifyAbsence(w.cluster, key.candidate(plan.State(p.Decision.Cause)))
		return nil
	case !p.Decision.Action.Writes() && p.Decision.Action != plan.Conflict:
		return nil
	}
	client, ok := w.Mailboxes.Client(key.mailbox)
	if !ok {
		return fmt.Errorf("the mailbox of the SyncTarget %s cannot be reached now", s.syncTarget.Name)
	}
	objects := mailboxwrite.Objects(client, key.resource, key.name.Namespace)
	switch p.Decision.Action {
	case plan.Create:
		return w.create(ctx, key, s, client, objects, p.Desired)
	case plan.Update:
		return w.update(ctx, key, objects, s.InMailbox, p.Desired)
	case plan.Conflict:
		return w.resolveConflict(ctx, key, s, objects, p.Desired)
	case plan.Delete:
		return w.delete(ctx, key, objects, s.InMailbox)
	case plan.Release:
		return w.release(ctx, key, objects, s)
	default:
		return fmt.Errorf("%s is no decision about a copy", p.Decision)
	}
}

// create makes the copy, and first its namespace if that is missing.
func (w *workspace) create(ctx context.Context, key pairKey, s *pairSnapshot, client dynamic.Interface, objects dynamic.ResourceInterface, desired *transform.Desired) error {
	options := metav1.CreateOptions{FieldManager: w.fieldManager}
	w.writes.Started(key)
	created, err := objects.Create(ctx, desired.Object, options)
	if mailboxwrite.IsMissingNamespace(err, key.name.Namespace) {
		extra := requestmetrics.WithClass(ctx, requestmetrics.Extra)
		if err = mailboxwrite.EnsureNamespace(extra, client, key.name.Namespace, s.owner, w.fieldManager); err == nil {
			created, err = objects.Create(extra, desired.Object, options)
		}
	}
	if apierrors.IsAlreadyExists(err) {
		return w.readConflict(requestmetrics.WithClass(ctx, requestmetrics.Extra), key, s, objects)
	}
	return w.recordWrite(key, created, desired, err)
}

// readConflict reads the object that has the name and that the cache does not show yet, to find out whose it is.
func (w *workspace) readConflict(ctx context.Context, key pairKey, s *pairSnapshot, objects dynamic.ResourceInterface) error {
	object, err := objects.Get(ctx, key.name.Name, metav1.GetOptions{})
	if err != nil {
		w.writes.Finished(key, nil)
		return fmt.Errorf("the mailbox has the object already, but does not show it: %w", err)
	}
	object.SetManagedFields(nil)
	w.writes.Finished(key, object)
	if mark, err := plan.MailboxMark(s.owner, object); err == nil && mark.Mailbox == w.cluster.String() {
		return errStale
	}
	return errConflict
}

// update replaces the content of the copy if nobody has changed it since the pass observed it.
func (w *workspace) update(ctx context.Context, key pairKey, objects dynamic.ResourceInterface, before *unstructured.Unstructured, desired *transform.Desired) error {
	w.writes.Started(key)
	updated, err := objects.Update(ctx, mailboxwrite.Merge(before, desired.Object), metav1.UpdateOptions{FieldManager: w.fieldManager})
	if apierrors.IsConflict(err) {
		w.writes.Finished(key, nil)
		return errStale
	}
	return w.recordWrite(key, updated, desired, err)
}

// recordWrite remembers the response until the cache shows it.
func (w *workspace) recordWrite(key pairKey, answer *unstructured.Unstructured, desired *transform.Desired, err error) error {
	if err != nil {
		w.writes.Finished(key, nil)
		return err
	}
	answer.SetManagedFields(nil)
	w.writes.Finished(key, answer)
	w.writes.SetDroppedPaths(key, transform.MissingPaths(desired.Object.Object, answer.Object))
	return nil
}

// resolveConflict takes over an object that has the name if the hub created it: a namespace for copies, or a copy that it released.
func (w *workspace) resolveConflict(ctx context.Context, key pairKey, s *pairSnapshot, objects dynamic.ResourceInterface, desired *transform.Desired) error {
	if !w.mayTakeOver(key, s) {
		return errConflict
	}
	return w.update(requestmetrics.WithClass(ctx, requestmetrics.Extra), key, objects, s.InMailbox, desired)
}

// mayTakeOver reports whether the hub created an object for placements and does not own it. A container is free for every workspace, once
// no other has copies in it.
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

// delete deletes the copy, unless another object has its name meanwhile. The deletion option of the source goes with it.
func (w *workspace) delete(ctx context.Context, key pairKey, objects dynamic.ResourceInterface, inMailbox *unstructured.Unstructured) error {
	uid := inMailbox.GetUID()
	w.writes.Started(key)
	err := objects.Delete(ctx, key.name.Name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}, PropagationPolicy: w.deletions.get(key.objectKey)})
	if err != nil && !apierrors.IsNotFound(err) {
		w.writes.Finished(key, nil)
		if apierrors.IsConflict(err) {
			return errStale
		}
		return err
	}
	w.writes.DeleteAccepted(key, uid)
	return nil
}

// release removes the mark from the copy, which stays in the mailbox and on the target: it keeps the label by which the mailbox's
// SyncerConfig selects it. A later placement of the workspace may take it over again. A container loses the label too: its contents are what
// keeps it, so the hub lets it go on the target as well, where it also stays.
func (w *workspace) release(ctx context.Context, key pairKey, objects dynamic.ResourceInterface, s *pairSnapshot) error {
	creator, metadata := s.creator, map[string]any{"uid": s.InMailbox.GetUID()}
	if s.resource.DeletesContents && s.resource.Retain {
		creator, metadata["labels"] = s.owner, map[string]any{ownership.OwnerLabel: nil}
	}
	metadata["annotations"] = map[string]any{
		ownership.MarkAnnotation:    nil,
		ownership.EnsuredAnnotation: creator.EnsuredValue(transform.SelfOf(s.InMailbox)),
	}
	patch, err := json.Marshal(map[string]any{"metadata": metadata})
	if err != nil {
		return err
	}
	w.writes.Started(key)
	patched, err := objects.Patch(ctx, key.name.Name, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: w.fieldManager})
	if err != nil {
		w.writes.Finished(key, nil)
		return err
	}
	patched.SetManagedFields(nil)
	w.writes.Finished(key, patched)
	return nil
}
