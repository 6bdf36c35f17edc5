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
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/controller-runtime/pkg/log"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/controllers/placement/revision"
	"github.com/synchub-dev/synchub/controllers/placement/rules"
	"github.com/synchub-dev/synchub/provider/mailboxes"
	"github.com/synchub-dev/synchub/provider/metrics/requestmetrics"
)

// revisionInterval is the least time between two PlacementRevisions of one placement: they are large, and users decide how often objects
// change.
const revisionInterval = 10 * time.Second

// keepRevision keeps the objects of a placement whose rollout is complete in a PlacementRevision, unless the last one has them. It returns
// after which time to call it again; zero for never.
func (w *workspace) keepRevision(ctx context.Context, one *placementInForce) (again time.Duration, err error) {
	selected, observed, changes, known := w.selectedObjects(one)
	if !known {
		return 0, nil
	}
	if last := w.lastRevision(one); last != nil && last.ObservedObjects == observed {
		w.setRevision(one, changes, last)
		return 0, nil
	}
	if wait := w.revisionDelay(one); wait > 0 {
		return wait, nil
	}
	client, ok := w.Workloads.Client(w.cluster)
	if !ok {
		return 0, nil
	}
	made, err := w.createRevision(requestmetrics.WithClass(ctx, requestmetrics.Extra), client, one, selected, observed)
	tooLarge := new(revision.TooLargeError)
	switch {
	case errors.As(err, &tooLarge), apierrors.IsNotFound(err), apierrors.IsRequestEntityTooLargeError(err):
		// The workload export of an installation that an older release prepared lacks PlacementRevisions.
		log.FromContext(ctx).Info("no PlacementRevision keeps the objects of a placement", "placement", one.Name, "reason", err.Error())
		w.setRevision(one, changes, nil)
		return 0, nil
	case err != nil:
		return 0, fmt.Errorf("cannot keep the objects of the EdgePlacement %s in a PlacementRevision: %w", one.Name, err)
	}
	w.setRevision(one, changes, made)
	w.reportRequests.Publish(w.cluster)
	return 0, nil
}

// revisionDelay returns how long the next PlacementRevision of a placement must wait, and counts from now if it need not.
func (w *workspace) revisionDelay(one *placementInForce) time.Duration {
	w.lock.Lock()
	defer w.lock.Unlock()
	wait := revisionInterval - w.Clock.Since(one.rollout.keptAt)
	if wait <= 0 {
		one.rollout.keptAt = w.Clock.Now()
	}
	return wait
}

// selectedObjects returns the objects of a placement that a PlacementRevision keeps, sorted, with the fingerprint of all. known is false
// if nothing has changed since the last call, or if an object is about to change.
func (w *workspace) selectedObjects(one *placementInForce) (objects []*unstructured.Unstructured, observed string, changes int, known bool) {
	w.lock.Lock()
	hashes := map[objectKey]uint64{}
	changes, known = one.rollout.changes, one.rollout.kept != one.rollout.changes
	for key, entry := range w.objects {
		if known && slices.ContainsFunc(entry.selectedBy, func(other *placementInForce) bool { return other.UID == one.UID }) {
			hashes[key] = entry.contentHash
		}
	}
	w.lock.Unlock()
	if !known || len(hashes) == 0 {
		return nil, "", 0, false
	}
	var fingerprint rules.Fingerprint
	for key, hash := range hashes {
		fingerprint.Add(hash)
		source, _ := w.Workloads.Get(key.resource, w.cluster, key.key)
		if source == nil || mailboxes.ProjectionOf(source) != mailboxes.FullObject || rules.ContentHash(key.resource.GroupResource(), source) != hash {
			return nil, "", 0, false
		}
		if revision.Keeps(key.resource.GroupResource()) {
			objects = append(objects, revision.Content(source))
		}
	}
	slices.SortFunc(objects, func(a, b *unstructured.Unstructured) int {
		return cmp.Or(cmp.Compare(a.GetKind(), b.GetKind()), cmp.Compare(a.GetAPIVersion(), b.GetAPIVersion()), cmp.Compare(a.GetNamespace(), b.GetNamespace()), cmp.Compare(a.GetName(), b.GetName()))
	})
	return objects, fingerprint.String(), changes, true
}

// lastRevision returns the last PlacementRevision by the status of a placement; nil if there is none. Whoever may write the status can
// only make the hub keep no revision, or the same one again.
func (w *workspace) lastRevision(one *placementInForce) *edgev2alpha1.RevisionReference {
	listed, _ := w.Workloads.List(edgePlacements, w.cluster)
	for _, object := range listed {
		var placement edgev2alpha1.EdgePlacement
		if object.GetUID() == one.UID && runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &placement) == nil && placement.Status.Rollout != nil {
			return placement.Status.Rollout.Revision
		}
	}
	return nil
}

// setRevision notes which PlacementRevision keeps the objects as they were after a number of changes; nil for none.
func (w *workspace) setRevision(one *placementInForce, changes int, kept *edgev2alpha1.RevisionReference) {
	w.lock.Lock()
	defer w.lock.Unlock()
	one.rollout.kept, one.rollout.lastRevision = changes, cmp.Or(kept, one.rollout.lastRevision)
}

// createRevision makes the next PlacementRevision of a placement, and deletes the oldest ones beyond their number.
func (w *workspace) createRevision(ctx context.Context, client dynamic.Interface, one *placementInForce, objects []*unstructured.Unstructured, observed string) (*edgev2alpha1.RevisionReference, error) {
	encoded, err := revision.Encode(objects)
	if err != nil {
		return nil, err
	}
	revisions := client.Resource(placementRevisions)
	list, err := revisions.List(ctx, metav1.ListOptions{LabelSelector: edgev2alpha1.LabelPlacement + "=" + string(one.UID)})
	if err != nil {
		return nil, err
	}
	slices.SortFunc(list.Items, func(a, b unstructured.Unstructured) int { return cmp.Compare(numberOf(&a), numberOf(&b)) })
	next := int64(1)
	if existing := len(list.Items); existing > 0 {
		next = numberOf(&list.Items[existing-1]) + 1
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&edgev2alpha1.PlacementRevision{
		TypeMeta: metav1.TypeMeta{APIVersion: edgev2alpha1.GroupVersion.String(), Kind: "PlacementRevision"},
		ObjectMeta: metav1.ObjectMeta{
			// The number alone would collide with a revision of a former placement of this name.
			GenerateName: one.Name[:min(len(one.Name), maxRevisionPrefix)] + "-",
			Labels:       map[string]string{edgev2alpha1.LabelPlacement: string(one.UID)},
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: edgev2alpha1.GroupVersion.String(), Kind: "EdgePlacement", Name: one.Name, UID: one.UID, Controller: new(true),
			}},
		},
		Placement: one.Name, Revision: next, ObservedObjects: observed, Objects: encoded,
	})
	if err != nil {
		return nil, err
	}
	if _, err := revisions.Create(ctx, &unstructured.Unstructured{Object: content}, metav1.CreateOptions{FieldManager: w.fieldManager}); err != nil {
		return nil, err
	}
	for i := range max(0, len(list.Items)+1-revision.MaxCount) {
		uid := list.Items[i].GetUID()
		if err := revisions.Delete(ctx, list.Items[i].GetName(), metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}}); err != nil && !apierrors.IsNotFound(err) {
			// The next revision deletes it.
			log.FromContext(ctx).Info("cannot delete an old PlacementRevision", "name", list.Items[i].GetName(), "error", err.Error())
		}
	}
	return &edgev2alpha1.RevisionReference{Revision: next, ObservedObjects: observed}, nil
}

// maxRevisionPrefix leaves room for what generateName appends.
const maxRevisionPrefix = 240

func numberOf(object *unstructured.Unstructured) int64 {
	number, _, _ := unstructured.NestedInt64(object.Object, "revision")
	return number
}
