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
	"hash/fnv"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/utils/clock"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/controllers/internal/status"
	"github.com/synchub-dev/synchub/controllers/internal/writes"
	"github.com/synchub-dev/synchub/controllers/placement/revision"
	"github.com/synchub-dev/synchub/controllers/placement/rules"
	"github.com/synchub-dev/synchub/controllers/plan/ownership"
	"github.com/synchub-dev/synchub/provider/mailboxes"
	"github.com/synchub-dev/synchub/provider/metrics/requestmetrics"
	"github.com/synchub-dev/synchub/provider/requestclass"
)

// revisionInterval is the least time between two PlacementRevisions of one placement. They are large, and users
// can change objects often.
const revisionInterval = 10 * time.Second

var (
	errRevisionNamesTaken = errors.New("the workspace has other objects with the names of all PlacementRevisions of this EdgePlacement: delete them")
	errNoRevisions        = errors.New("the workspace does not have the API of PlacementRevisions: the operator of the hub runs `synchub init` again")
)

// revisions keeps the objects of completed rollouts in PlacementRevisions. Only the controller of rollouts calls it.
type revisions struct {
	sources *sources
	pairs   *pairs
	marks   marks
	reports *reports
	writer  *writes.WorkspaceWriter[objectKey]
	clock   clock.PassiveClock
}

// keep keeps the objects of a placement whose rollout is complete in a PlacementRevision, unless the
// last one contains them. It returns when to call it again; zero for never.
func (r *revisions) keep(ctx context.Context, one *resolvedPlacement) (again time.Duration, err error) {
	hashes, changes := r.contentHashes(one)
	if len(hashes) == 0 {
		return 0, nil
	}
	var fingerprint rules.Fingerprint
	for _, hash := range hashes {
		fingerprint.Add(hash)
	}
	observedObjects := fingerprint.String()
	if last := r.last(one); last != nil && last.ObservedObjects == observedObjects {
		r.setKept(one.rollout, changes, last)
		return 0, nil
	}
	var wait time.Duration
	r.pairs.locked(func(map[objectKey]*object) {
		if wait = revisionInterval - r.clock.Since(one.rollout.attemptedAt); wait <= 0 {
			one.rollout.attemptedAt = r.clock.Now()
		}
	})
	if wait > 0 {
		return wait, nil
	}
	objects, known := r.contentsOf(hashes)
	client, ok := r.sources.workloads.Client(r.sources.cluster)
	if !known || !ok {
		// An event follows when the objects or the workspace can be read.
		return 0, nil
	}
	made, err := r.write(requestclass.With(ctx, requestclass.Extra), client.Resource(placementRevisions), one, objects, observedObjects)
	r.reports.request()
	if err == nil {
		r.setKept(one.rollout, changes, made)
		return 0, nil
	}
	r.pairs.locked(func(map[objectKey]*object) {
		one.rollout.notKept = status.Truncate(requestmetrics.SafeMessage(err))
		if isLasting(err) {
			one.rollout.kept = changes
		}
	})
	if isLasting(err) {
		return 0, nil
	}
	return 0, fmt.Errorf("cannot keep the objects of the EdgePlacement %s in a PlacementRevision: %w", one.Name, err)
}

// isLasting reports whether no PlacementRevision can be made before the objects, or the workspace, change.
func isLasting(err error) bool {
	return errors.Is(err, revision.ErrTooLarge) || apierrors.IsRequestEntityTooLargeError(err) || errors.Is(err, errRevisionNamesTaken) || errors.Is(err, errNoRevisions)
}

// contentHashes returns the content hash of every object that the placement selects, and the number of changes
// so far; nil if the last PlacementRevision already contains the last change.
func (r *revisions) contentHashes(one *resolvedPlacement) (hashes map[objectKey]uint64, changes int) {
	r.pairs.locked(func(objects map[objectKey]*object) {
		if one.rollout.kept == one.rollout.changes {
			return
		}
		hashes, changes = map[objectKey]uint64{}, one.rollout.changes
		for key, entry := range objects {
			if entry.isSelectedBy(one.UID) {
				hashes[key] = entry.contentHash
			}
		}
	})
	return hashes, changes
}

// contentsOf returns the contents of the objects that a PlacementRevision keeps, sorted. known is false if an
// object has another hash, because it is about to change.
func (r *revisions) contentsOf(hashes map[objectKey]uint64) (contents []*unstructured.Unstructured, known bool) {
	for key, hash := range hashes {
		if r.sources.policy.installsCRD(key) {
			// The clusters have the CRD that the operator published.
			continue
		}
		source, _ := r.sources.get(key)
		if source == nil || mailboxes.ProjectionOf(source) != mailboxes.FullObject || rules.ContentHash(key.resource.GroupResource(), source) != hash {
			return nil, false
		}
		// Secrets may be published under another group.
		if resource, ok := r.sources.policy.placeable(key.resource); ok && revision.Keeps(key.resource.GroupResource()) && revision.Keeps(resource.TargetAPI().GroupResource()) {
			contents = append(contents, revision.Content(source))
		}
	}
	slices.SortFunc(contents, compareContents)
	return contents, true
}

// compareContents orders the objects of a PlacementRevision: an undo must create Namespaces before their
// contents.
func compareContents(a, b *unstructured.Unstructured) int {
	rank := func(of *unstructured.Unstructured) int {
		if of.GetKind() == "Namespace" {
			return 0
		}
		return 1
	}
	return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(a.GetKind(), b.GetKind()), cmp.Compare(a.GetAPIVersion(), b.GetAPIVersion()),
		cmp.Compare(a.GetNamespace(), b.GetNamespace()), cmp.Compare(a.GetName(), b.GetName()))
}

// last returns the last PlacementRevision in the status of a placement; nil if there is none. A user
// who sets the status can only make the hub keep no revision, or the same one again.
func (r *revisions) last(one *resolvedPlacement) *edgev2alpha1.RevisionReference {
	cached, _ := r.sources.get(objectKey{edgePlacements, types.NamespacedName{Name: one.Name}})
	var placement edgev2alpha1.EdgePlacement
	if cached == nil || cached.GetUID() != one.UID || runtime.DefaultUnstructuredConverter.FromUnstructured(cached.Object, &placement) != nil || placement.Status.Rollout == nil {
		return nil
	}
	return placement.Status.Rollout.Revision
}

// setKept records which PlacementRevision keeps the objects in their state after a number of changes.
func (r *revisions) setKept(state *rolloutState, changes int, kept *edgev2alpha1.RevisionReference) {
	r.pairs.locked(func(map[objectKey]*object) { state.kept, state.lastRevision, state.notKept = changes, kept, "" })
}

// revisionSlots are the PlacementRevisions of one placement by the last part of their names. Their number is
// fixed, and a new one replaces the oldest. Users may create any number of other PlacementRevisions, which the
// hub neither reads nor deletes.
type revisionSlots [revision.MaxCount]revisionSlot

type revisionSlot struct {
	// uid and resourceVersion are empty if the name is free.
	uid             types.UID
	resourceVersion string
	number          int64
	// taken is true if an object of this name exists that the hub did not create.
	taken bool
}

// next returns the slot for the next PlacementRevision, and its number; ok is false if all names are taken.
func (s *revisionSlots) next() (slot int, number int64, ok bool) {
	for i := range s {
		number = max(number, s[i].number)
		if !s[i].taken && (!ok || s[i].number < s[slot].number) {
			slot, ok = i, true
		}
	}
	return slot, number + 1, ok
}

// write writes the next PlacementRevision of a placement, in place of the oldest.
func (r *revisions) write(ctx context.Context, revisions dynamic.ResourceInterface, one *resolvedPlacement, objects []*unstructured.Unstructured, observed string) (*edgev2alpha1.RevisionReference, error) {
	encoded, err := revision.Encode(objects)
	if err != nil {
		return nil, err
	}
	slots := one.rollout.slots
	if slots == nil {
		if slots, err = r.read(ctx, revisions, one); err != nil {
			return nil, err
		}
	}
	slot, number, ok := slots.next()
	// After an error the slots are read again.
	one.rollout.slots = nil
	if !ok {
		return nil, errRevisionNamesTaken
	}
	object, err := r.newRevision(one, slot, number, &slots[slot], edgev2alpha1.PlacementRevision{
		CompletedAt: &metav1.Time{Time: r.clock.Now()}, ObservedObjects: observed, Objects: encoded,
	})
	if err != nil {
		return nil, err
	}
	object, err = r.writer.Put(ctx, keyOf(placementRevisions, object), object)
	if apierrors.IsNotFound(err) && slots[slot].uid == "" {
		return nil, errNoRevisions
	}
	if err != nil {
		return nil, err
	}
	slots[slot] = revisionSlot{uid: object.GetUID(), resourceVersion: object.GetResourceVersion(), number: number}
	one.rollout.slots = slots
	return &edgev2alpha1.RevisionReference{Revision: number, ObservedObjects: observed}, nil
}

// read reads the PlacementRevisions of a placement, one after the other, since each may be large.
func (r *revisions) read(ctx context.Context, revisions dynamic.ResourceInterface, one *resolvedPlacement) (*revisionSlots, error) {
	slots := &revisionSlots{}
	for i := range slots {
		object, err := revisions.Get(ctx, revisionName(one, i), metav1.GetOptions{})
		switch {
		case apierrors.IsNotFound(err):
			continue
		case err != nil:
			return nil, err
		}
		number, _, _ := unstructured.NestedInt64(object.Object, "revision")
		seal := object.GetAnnotations()[ownership.RevisionAnnotation]
		if !r.marks.sealer.VerifyText(seal, r.purpose(), revisionText(one, i, number)) {
			slots[i].taken = true
			continue
		}
		slots[i] = revisionSlot{uid: object.GetUID(), resourceVersion: object.GetResourceVersion(), number: number}
	}
	return slots, nil
}

// newRevision completes a PlacementRevision. Its write replaces the one in the slot only if that has not
// changed.
func (r *revisions) newRevision(one *resolvedPlacement, slot int, number int64, before *revisionSlot, of edgev2alpha1.PlacementRevision) (*unstructured.Unstructured, error) {
	of.TypeMeta = metav1.TypeMeta{APIVersion: edgev2alpha1.GroupVersion.String(), Kind: "PlacementRevision"}
	of.ObjectMeta = metav1.ObjectMeta{
		Name: revisionName(one, slot), UID: before.uid, ResourceVersion: before.resourceVersion,
		Labels:          map[string]string{edgev2alpha1.LabelPlacement: string(one.UID)},
		Annotations:     map[string]string{ownership.RevisionAnnotation: r.marks.sealer.SealText(r.purpose(), revisionText(one, slot, number))},
		OwnerReferences: ownerReferences(one.Name, one.UID),
	}
	of.Placement, of.Revision = one.Name, number
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&of)
	return &unstructured.Unstructured{Object: content}, err
}

// ownerReferences returns the owner references of the objects that the hub writes for a placement.
func ownerReferences(placement string, uid types.UID) []metav1.OwnerReference {
	return []metav1.OwnerReference{{APIVersion: edgev2alpha1.GroupVersion.String(), Kind: "EdgePlacement", Name: placement, UID: uid, Controller: new(true)}}
}

// maxRevisionPrefix is the largest part of the placement's name that the name of a PlacementRevision contains,
// in bytes.
const maxRevisionPrefix = 200

// revisionName returns the name of a PlacementRevision. It contains a hash of the placement's UID, so that it
// differs from the names for a former placement of the same name.
func revisionName(one *resolvedPlacement, slot int) string {
	hash := fnv.New32a()
	_, _ = hash.Write([]byte(one.UID))
	return fmt.Sprintf("%s-%08x-%d", strings.TrimRight(one.Name[:min(len(one.Name), maxRevisionPrefix)], ".-"), hash.Sum32(), slot)
}

func (r *revisions) purpose() string { return r.marks.purpose("revision", r.sources.cluster.String()) }

func revisionText(one *resolvedPlacement, slot int, number int64) string {
	return fmt.Sprintf("%s/%s/%d", one.UID, revisionName(one, slot), number)
}
