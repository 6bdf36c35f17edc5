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
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/controllers/internal/mailboxwrite"
	"github.com/synchub-dev/synchub/controllers/plan"
	"github.com/synchub-dev/synchub/controllers/plan/ownership"
)

// writeSlice creates or updates the SinglePlacementSlice of a placement if it differs. While a mistake hides
// destinations, whose copies stay, the slice stays too: after a restart, the hub reads the chosen SyncTargets
// from it.
func (w *workspace) writeSlice(ctx context.Context, placement, existing *unstructured.Unstructured, found outcome) error {
	if existing != nil && (found.reason == plan.ReasonInvalid || found.hasMissingTarget()) {
		return nil
	}
	slice := edgev2alpha1.SinglePlacementSlice{
		TypeMeta:     metav1.TypeMeta{APIVersion: edgev2alpha1.GroupVersion.String(), Kind: "SinglePlacementSlice"},
		Destinations: make([]edgev2alpha1.SinglePlacement, 0, len(found.resolution.Destinations)),
	}
	for _, destination := range found.resolution.Destinations {
		slice.Destinations = append(slice.Destinations, edgev2alpha1.SinglePlacement{
			Cluster: destination.Inventory.String(), LocationName: destination.Location, SyncTargetName: destination.Name, SyncTargetUID: destination.UID,
		})
	}
	if found.chosen != nil {
		slice.Annotations = map[string]string{ownership.ChoiceAnnotation: w.choiceSeal(placement.GetUID(), slice.Destinations)}
	}
	if existing != nil {
		var before edgev2alpha1.SinglePlacementSlice
		err := runtime.DefaultUnstructuredConverter.FromUnstructured(existing.Object, &before)
		if err == nil && slices.Equal(before.Destinations, slice.Destinations) && before.Annotations[ownership.ChoiceAnnotation] == slice.Annotations[ownership.ChoiceAnnotation] {
			return nil
		}
		slice.UID, slice.ResourceVersion = existing.GetUID(), existing.GetResourceVersion()
	}
	slice.Name = placement.GetName()
	slice.OwnerReferences = []metav1.OwnerReference{{
		APIVersion: edgev2alpha1.GroupVersion.String(), Kind: "EdgePlacement", Name: placement.GetName(), UID: placement.GetUID(), Controller: new(true),
	}}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&slice)
	if err != nil {
		return err
	}
	_, err = w.placementWriter.Put(ctx, keyOf(slicesResource, placement), &unstructured.Unstructured{Object: content})
	if errors.Is(err, mailboxwrite.ErrOutdated) {
		// The event of the newer slice requests another report.
		return nil
	}
	return err
}
