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

package placed

import (
	"cmp"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
)

// States of a pair that is in no list of the status. The state of any other pair is the reason in the list.
const (
	// Healthy: the object does its work on the cluster.
	Healthy = "Healthy"
	// Unknown: the status does not describe the pair, and other pairs that it does not describe are not healthy.
	Unknown = "Unknown"
)

// Object names an object of a workload workspace.
type Object struct {
	schema.GroupResource
	types.NamespacedName
}

// ObjectOf returns the object of an entry of the status.
func ObjectOf(pair edgev2alpha1.PlacementPair) Object {
	return Object{schema.GroupResource{Group: pair.Group, Resource: pair.Resource}, types.NamespacedName{Namespace: pair.Namespace, Name: pair.Name}}
}

// Compare orders objects by resource, namespace and name.
func (o Object) Compare(other Object) int {
	return cmp.Or(cmp.Compare(o.GroupResource.String(), other.GroupResource.String()), cmp.Compare(o.Namespace, other.Namespace), cmp.Compare(o.Name, other.Name))
}

func (o Object) String() string {
	if o.Namespace == "" {
		return o.GroupResource.String() + " " + o.Name
	}
	return o.GroupResource.String() + " " + o.Namespace + "/" + o.Name
}

// Pair is an object at a destination.
type Pair struct {
	Object
	SyncTarget string
}

// State is the state of an object at a destination.
type State struct {
	// State is Healthy, Unknown, or the reason why the object is not healthy there.
	State string
	// Message explains the reason; it may be empty.
	Message string
	// Failed is true if the object needs attention, and false while it is on its way.
	Failed bool
}

// View has the states of the pairs of one EdgePlacement.
type View struct {
	// SyncTargets are the names of the destinations, sorted. A name occurs once, even if several inventories have it.
	SyncTargets []string
	// Complete is true if the status describes every pair that is not healthy.
	Complete bool

	described map[Pair]State
	// ambiguous are the names of SyncTargets that occur in several inventories. The status does not distinguish them.
	ambiguous map[string]bool
}

// NewView returns the view of an EdgePlacement with its slice, which is nil if there is none.
func NewView(placement *edgev2alpha1.EdgePlacement, slice *edgev2alpha1.SinglePlacementSlice) *View {
	view := &View{described: map[Pair]State{}, ambiguous: map[string]bool{}}
	destinations := 0
	if slice != nil {
		destinations = len(slice.Destinations)
		for _, destination := range slice.Destinations {
			name := destination.SyncTargetName
			if slices.Contains(view.SyncTargets, name) {
				view.ambiguous[name] = true
				continue
			}
			view.SyncTargets = append(view.SyncTargets, name)
		}
	}
	slices.Sort(view.SyncTargets)
	status := &placement.Status
	view.describe(status.Progressing, false)
	view.describe(status.Failures, true)
	remaining := status.Selected * int64(status.Destinations)
	for pair := range view.described {
		// A copy that cannot be withdrawn fails too, and is at no destination.
		if slices.Contains(view.SyncTargets, pair.SyncTarget) {
			remaining--
		}
	}
	view.Complete = int64(status.SpecGeneration) == placement.Generation && int(status.Destinations) == destinations && remaining == status.Healthy
	return view
}

func (v *View) describe(pairs []edgev2alpha1.PlacementPair, failed bool) {
	for _, pair := range pairs {
		v.described[Pair{ObjectOf(pair), pair.SyncTarget}] = State{State: pair.Reason, Message: pair.Message, Failed: failed}
	}
}

// StateOf returns the state of an object, which the EdgePlacement selects, at a destination.
func (v *View) StateOf(object Object, syncTarget string) State {
	state, ok := v.described[Pair{object, syncTarget}]
	switch {
	case ok:
		return state
	case v.Complete && !v.ambiguous[syncTarget]:
		return State{State: Healthy}
	default:
		return State{State: Unknown}
	}
}

// rank is lower for a state that needs more attention.
func (s State) rank() int {
	switch {
	case s.Failed:
		return 0
	case s.State == Healthy:
		return 3
	case s.State == Unknown:
		return 2
	default:
		return 1
	}
}

// SortWorstFirst sorts objects that need attention to the front, and then those on their way.
func (v *View) SortWorstFirst(objects []Object) {
	ranks := make(map[Object]int, len(objects))
	for _, object := range objects {
		lowest := State{State: Healthy}.rank()
		for _, syncTarget := range v.SyncTargets {
			lowest = min(lowest, v.StateOf(object, syncTarget).rank())
		}
		ranks[object] = lowest
	}
	slices.SortStableFunc(objects, func(a, b Object) int { return cmp.Compare(ranks[a], ranks[b]) })
}

// WorstClustersFirst returns the SyncTargets, first the ones where any of the objects needs attention. Without objects, all count that
// the status describes.
func (v *View) WorstClustersFirst(objects ...Object) []string {
	ranks := map[string]int{}
	for pair, state := range v.described {
		if len(objects) == 0 || slices.Contains(objects, pair.Object) {
			if rank, ok := ranks[pair.SyncTarget]; !ok || state.rank() < rank {
				ranks[pair.SyncTarget] = state.rank()
			}
		}
	}
	rank := func(syncTarget string) int {
		if rank, ok := ranks[syncTarget]; ok {
			return rank
		}
		return State{State: Healthy}.rank()
	}
	return slices.SortedStableFunc(slices.Values(v.SyncTargets), func(a, b string) int { return cmp.Compare(rank(a), rank(b)) })
}
