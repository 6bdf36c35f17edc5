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
	"fmt"
	"hash/fnv"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/controllers/placement/revision"
	"github.com/synchub-dev/synchub/controllers/plan/ownership"
)

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

// writeRevision writes the next PlacementRevision of a placement, in place of the oldest.
func (w *workspace) writeRevision(ctx context.Context, revisions dynamic.ResourceInterface, one *resolvedPlacement, objects []*unstructured.Unstructured, observed string) (*edgev2alpha1.RevisionReference, error) {
	encoded, err := revision.Encode(objects)
	if err != nil {
		return nil, err
	}
	slots := one.rollout.slots
	if slots == nil {
		if slots, err = w.readRevisions(ctx, revisions, one); err != nil {
			return nil, err
		}
	}
	slot, number, ok := slots.next()
	// After an error the slots are read again.
	one.rollout.slots = nil
	if !ok {
		return nil, errRevisionNamesTaken
	}
	object, err := w.newRevision(one, slot, number, &slots[slot], edgev2alpha1.PlacementRevision{ObservedObjects: observed, Objects: encoded})
	if err != nil {
		return nil, err
	}
	object, err = w.placementWriter.Put(ctx, keyOf(placementRevisions, object), object)
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

// readRevisions reads the PlacementRevisions of a placement, one after the other, since each may be large.
func (w *workspace) readRevisions(ctx context.Context, revisions dynamic.ResourceInterface, one *resolvedPlacement) (*revisionSlots, error) {
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
		if !w.Sealer.VerifyText(seal, w.revisionPurpose(), revisionText(one, i, number)) {
			slots[i].taken = true
			continue
		}
		slots[i] = revisionSlot{uid: object.GetUID(), resourceVersion: object.GetResourceVersion(), number: number}
	}
	return slots, nil
}

// newRevision completes a PlacementRevision. Its write replaces the one in the slot only if that has not
// changed.
func (w *workspace) newRevision(one *resolvedPlacement, slot int, number int64, before *revisionSlot, of edgev2alpha1.PlacementRevision) (*unstructured.Unstructured, error) {
	of.TypeMeta = metav1.TypeMeta{APIVersion: edgev2alpha1.GroupVersion.String(), Kind: "PlacementRevision"}
	of.ObjectMeta = metav1.ObjectMeta{
		Name: revisionName(one, slot), UID: before.uid, ResourceVersion: before.resourceVersion,
		Labels:      map[string]string{edgev2alpha1.LabelPlacement: string(one.UID)},
		Annotations: map[string]string{ownership.RevisionAnnotation: w.Sealer.SealText(w.revisionPurpose(), revisionText(one, slot, number))},
		OwnerReferences: []metav1.OwnerReference{{
			APIVersion: edgev2alpha1.GroupVersion.String(), Kind: "EdgePlacement", Name: one.Name, UID: one.UID, Controller: new(true),
		}},
	}
	of.Placement, of.Revision = one.Name, number
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&of)
	return &unstructured.Unstructured{Object: content}, err
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

func (w *workspace) revisionPurpose() string {
	return strings.Join([]string{"revision", string(w.Hub), w.cluster.String()}, "/")
}

func revisionText(one *resolvedPlacement, slot int, number int64) string {
	return fmt.Sprintf("%s/%s/%d", one.UID, revisionName(one, slot), number)
}
