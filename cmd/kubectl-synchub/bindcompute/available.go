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

package bindcompute

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/cmd/kubectl-synchub/registration"
	"github.com/synchub-dev/synchub/controllers/placement/rules"
)

// reportLimit is how long [Workspace.AwaitLocation] waits for the hub. It is longer than the hub delays the status of a workspace.
const reportLimit = 15 * time.Second

// availability is what the status of an EdgePlacement contains about Locations.
type availability int

const (
	// unreported: the hub has not reported about the present spec.
	unreported availability = iota
	// available: the workspace may use a Location that the EdgePlacement selects.
	available
	// unavailable: no Location of the inventory workspace is available.
	unavailable
	// unverified: the hub could not verify the path of the workspace.
	unverified
)

// availabilityOf returns what the status of an EdgePlacement contains about Locations.
func availabilityOf(placement *edgev2alpha1.EdgePlacement) availability {
	ready := meta.FindStatusCondition(placement.Status.Conditions, edgev2alpha1.ConditionReady)
	switch {
	case int64(placement.Status.SpecGeneration) != placement.Generation || ready == nil:
		return unreported
	case ready.Reason == rules.ReasonNoLocation:
		return unavailable
	case ready.Reason == rules.ReasonPathUnverified:
		return unverified
	default:
		return available
	}
}

// ErrNoLocation means that no Location of the inventory workspace is available to the workspace.
var ErrNoLocation = errors.New("no selected Location of the inventory workspace is available to this workspace")

// AwaitLocation waits until the hub reports whether the EdgePlacement may use a Location, and returns ErrNoLocation if it may
// not. isNew is true if Bind created the EdgePlacement: otherwise the status may be older than the latest change of a Location.
// reported is false if the hub has not reported anything in time.
func (w *Workspace) AwaitLocation(ctx context.Context, name string, isNew bool) (reported bool, err error) {
	waiting, cancel := context.WithTimeout(ctx, min(reportLimit, w.Timeout))
	defer cancel()
	last := unreported
	placement := &edgev2alpha1.EdgePlacement{ObjectMeta: metav1.ObjectMeta{Name: name}}
	err = registration.WatchObject(waiting, w.Client, placement, func(seen *edgev2alpha1.EdgePlacement) (bool, error) {
		if seen == nil {
			return false, fmt.Errorf("the EdgePlacement %s was deleted", name)
		}
		last = availabilityOf(seen)
		return last == available || last == unavailable && isNew, nil
	})
	switch {
	case ctx.Err() != nil:
		return false, ctx.Err()
	case last == unavailable || last == unverified:
		return true, ErrNoLocation
	case err == nil:
		return true, nil
	case waiting.Err() != nil:
		return false, nil
	default:
		return false, fmt.Errorf("cannot wait for the status of the EdgePlacement %s: %w", name, err)
	}
}

// SelectsDefault reports whether the EdgePlacement selects the objects in the namespace default.
func (w *Workspace) SelectsDefault(ctx context.Context, placement Placement) bool {
	namespace := &corev1.Namespace{}
	if err := w.Client.Get(ctx, types.NamespacedName{Name: metav1.NamespaceDefault}, namespace); err != nil || namespace.Labels[corev1.LabelMetadataName] == "" {
		// A namespace that cannot be read has at least this label.
		namespace.Labels = map[string]string{corev1.LabelMetadataName: metav1.NamespaceDefault}
	}
	for _, test := range placement.Object().Spec.Downsync {
		for i := range test.NamespaceSelectors {
			selector, err := metav1.LabelSelectorAsSelector(&test.NamespaceSelectors[i])
			if err == nil && selector.Matches(labels.Set(namespace.Labels)) {
				return true
			}
		}
	}
	return false
}

// HasOwnNamespaces reports whether the hub has chosen clusters for the EdgePlacement, and each of them has namespaces of its own
// for each workspace. Names in them do not collide with names of other workspaces.
func (w *Workspace) HasOwnNamespaces(ctx context.Context, name string) bool {
	slice := &edgev2alpha1.SinglePlacementSlice{}
	if err := w.Client.Get(ctx, types.NamespacedName{Name: name}, slice); err != nil || len(slice.Destinations) == 0 {
		return false
	}
	return !slices.ContainsFunc(slice.Destinations, func(one edgev2alpha1.SinglePlacement) bool { return one.NamespaceTemplate == "" })
}
