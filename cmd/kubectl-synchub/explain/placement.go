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

package explain

import (
	"fmt"
	"slices"
	"strings"

	"github.com/kcp-dev/logicalcluster/v3"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/cmd/kubectl-synchub/cli"
	"github.com/synchub-dev/synchub/cmd/kubectl-synchub/placed"
	"github.com/synchub-dev/synchub/controllers/placement/rules"
	"github.com/synchub-dev/synchub/controllers/plan"
	"github.com/synchub-dev/synchub/controllers/plan/ownership"
	"github.com/synchub-dev/synchub/controllers/plan/tenancy"
	"github.com/synchub-dev/synchub/provider/wording"
)

// PlacementFacts are all inputs of FromWorkload.
type PlacementFacts struct {
	// SyncTarget is the name of the cluster.
	SyncTarget string
	// Resource and Key name the object in the workload workspace.
	Resource schema.GroupVersionResource
	Key      types.NamespacedName
	// Object and its Namespace are nil if they do not exist.
	Object, Namespace Observed[*unstructured.Unstructured]
	// Placements and Slices are the workspace's.
	Placements Observed[[]edgev2alpha1.EdgePlacement]
	Slices     Observed[[]edgev2alpha1.SinglePlacementSlice]
}

// origin is where an object of a workload workspace came up from, by its mark.
type origin struct {
	syncTarget, inventory string
	inMailbox             types.NamespacedName
}

// origin returns where the object came up from; nil for the user's own objects. Its mark is not verified, because only the hub has the key.
func (f *PlacementFacts) origin() *origin {
	if f.Object.Value == nil {
		return nil
	}
	text, _ := plan.Annotation(f.Object.Value, ownership.MarkAnnotation)
	owner, _ := ownership.ClaimedOwner(text)
	_, inventory, _, isFromCluster := owner.SplitForWorkspace()
	mark, err := ownership.ParseMark(text)
	if !isFromCluster || err != nil {
		return nil
	}
	return &origin{f.Object.Value.GetLabels()[edgev2alpha1.LabelSyncTarget], inventory, types.NamespacedName{Namespace: mark.Source.Namespace, Name: mark.Source.Name}}
}

// Inventory returns the logical cluster of the inventory workspace of the SyncTarget. It is empty if the SyncTarget is no
// destination of any EdgePlacement.
func (f *PlacementFacts) Inventory() string {
	if from := f.origin(); from != nil {
		return from.inventory
	}
	for i := range f.Slices.Value {
		if destination := f.destinationIn(&f.Slices.Value[i]); destination != nil {
			return destination.Cluster
		}
	}
	return ""
}

// ClusterKey returns the name of the object in the mailbox of the SyncTarget, and on the cluster.
func (f *PlacementFacts) ClusterKey() types.NamespacedName {
	if from := f.origin(); from != nil {
		return from.inMailbox
	}
	naming := f.naming()
	if f.Object.Value == nil || naming.IsShared() {
		return f.Key
	}
	workspace := logicalcluster.From(f.Object.Value)
	if f.Resource.GroupResource() == cli.NamespacesResource.GroupResource() {
		return types.NamespacedName{Name: naming.Namespace(workspace, f.Key.Name)}
	}
	return types.NamespacedName{Namespace: naming.Namespace(workspace, f.Key.Namespace), Name: f.Key.Name}
}

// naming returns how namespaces of the workspace are called on the cluster.
func (f *PlacementFacts) naming() tenancy.Naming {
	for i := range f.Slices.Value {
		if destination := f.destinationIn(&f.Slices.Value[i]); destination != nil {
			return tenancy.Naming(destination.NamespaceTemplate)
		}
	}
	return ""
}

// destinationIn returns the SyncTarget's entry of a slice, or nil.
func (f *PlacementFacts) destinationIn(slice *edgev2alpha1.SinglePlacementSlice) *edgev2alpha1.SinglePlacement {
	for i := range slice.Destinations {
		if slice.Destinations[i].SyncTargetName == f.SyncTarget {
			return &slice.Destinations[i]
		}
	}
	return nil
}

// selecting is an EdgePlacement that selects the object. isPlaced is true if the SyncTarget is a destination, and state is then the object's
// state there, by the status of the EdgePlacement.
type selecting struct {
	*edgev2alpha1.EdgePlacement
	isPlaced bool
	state    placed.State
}

// FromWorkload returns why an object of a workload workspace is on a cluster, or is not, by the status in that workspace.
func FromWorkload(facts *PlacementFacts) Explanation {
	explanation := Explanation{
		SyncTarget: facts.SyncTarget, Group: facts.Resource.Group, Resource: facts.Resource.Resource, Namespace: facts.Key.Namespace, Name: facts.Key.Name,
	}
	presence, text := PresenceUnknown, fmt.Sprintf("Whether %s is on %s cannot be seen from here", facts.Key.Name, facts.SyncTarget)
	add := func(name string, step *Step) (goesOn bool) {
		step.Step = name
		explanation.Steps = append(explanation.Steps, *step)
		return step.State == OK
	}
	if from := facts.origin(); from != nil {
		if add(StepWorkload, explainOrigin(facts, from)) {
			presence, text = Present, fmt.Sprintf("%s came up from %s", facts.Key.Name, facts.SyncTarget)
		}
	} else if add(StepWorkload, explainWorkload(facts)) {
		all, undecided := facts.placements()
		if add(StepPlacement, explainPlacements(facts, all, undecided)) && add(StepDestination, explainDestination(facts, all)) {
			step, isOnTarget := explainProgress(facts, all)
			add(StepProgress, step)
			if isOnTarget {
				presence, text = Present, fmt.Sprintf("%s is on %s", facts.Key.Name, facts.SyncTarget)
			}
		}
	}
	explanation.Result = resultOf(explanation.Steps, presence, text, "")
	return explanation
}

// placements returns the EdgePlacements that select the object. undecided is true if unknown labels of its Namespace decide whether another
// one does.
func (f *PlacementFacts) placements() (all []selecting, undecided bool) {
	object := rules.ObjectOf(f.Resource.GroupResource(), f.Object.Value, func() (labels.Labels, bool) {
		if f.Namespace.Value == nil {
			return labels.Set{}, f.Namespace.Err == nil
		}
		return labels.Set(f.Namespace.Value.GetLabels()), true
	})
	for i := range f.Placements.Value {
		one := selecting{EdgePlacement: &f.Placements.Value[i]}
		compiled, err := rules.Compile(one.EdgePlacement)
		if err != nil || one.DeletionTimestamp != nil {
			continue
		}
		selected, known := compiled.Selects(object)
		undecided = undecided || !known
		if !selected {
			continue
		}
		for j := range f.Slices.Value {
			if slice := &f.Slices.Value[j]; slice.Name == one.Name && f.destinationIn(slice) != nil {
				one.isPlaced = true
				one.state = placed.NewView(one.EdgePlacement, slice).StateOf(placed.Object{GroupResource: f.Resource.GroupResource(), NamespacedName: f.Key}, f.SyncTarget)
			}
		}
		all = append(all, one)
	}
	return all, undecided
}

// explainWorkload explains whether the object can be placed at all.
func explainWorkload(f *PlacementFacts) *Step {
	object := f.Object.Value
	switch {
	case f.Object.Err != nil:
		return newStep(Unknown, "", "the object of the workload workspace cannot be read: %s", inOneLine(f.Object.Err))
	case object == nil:
		return newStep(Stopped, "", "the workload workspace does not have it")
	case object.GetDeletionTimestamp() != nil:
		return newStep(Waiting, "Terminating", "it is being deleted in the workload workspace, and its copies with it")
	case !rules.IsPlaceable(plan.Resource{GroupVersionResource: f.Resource, Kind: object.GetKind()}, object):
		return newStep(Stopped, "", "kcp makes it in every workspace, or it is a copy itself: such objects are never placed")
	default:
		return newStep(OK, "", "the workload workspace has it")
	}
}

// explainOrigin explains an object that came up from a cluster.
func explainOrigin(f *PlacementFacts, from *origin) *Step {
	if from.syncTarget != f.SyncTarget {
		return newStep(Stopped, "", "it came up from %s, and is never placed", from.syncTarget)
	}
	return newStep(OK, "", "it is %s of %s, which came up by an EdgePlacement: the hub keeps it as it is there", from.inMailbox, from.syncTarget)
}

// explainPlacements explains which EdgePlacements select the object.
func explainPlacements(f *PlacementFacts, all []selecting, undecided bool) *Step {
	switch {
	case f.Placements.Err != nil:
		return newStep(Unknown, "", "the EdgePlacements of the workspace cannot be read: %s", inOneLine(f.Placements.Err))
	case len(all) > 0:
		return newStep(OK, "", "EdgePlacements select it: %s", namesOf(all))
	case undecided:
		return newStep(Unknown, "", "whether an EdgePlacement selects it depends on labels of its Namespace, which cannot be read: %s", inOneLine(f.Namespace.Err))
	case len(f.Placements.Value) == 0:
		return newStep(Stopped, "", "the workspace has no EdgePlacement").advise("create one, or run kubectl synchub bind compute")
	default:
		return newStep(Stopped, "", "no EdgePlacement of the workspace (%d) selects it", len(f.Placements.Value)).
			advise("add a test to spec.downsync of one of them")
	}
}

func namesOf(placements []selecting) string {
	var names []string
	for _, one := range placements {
		names = append(names, one.Name)
	}
	return wording.First(maxListed, names)
}

// explainDestination explains whether the cluster is a destination of an EdgePlacement that selects the object.
func explainDestination(f *PlacementFacts, all []selecting) *Step {
	if f.Slices.Err != nil {
		return newStep(Unknown, "", "the SinglePlacementSlices of the workspace cannot be read: %s", inOneLine(f.Slices.Err))
	}
	candidates := placedOf(all)
	isPlaced := len(candidates) > 0
	if !isPlaced {
		candidates = all
	}
	for _, one := range candidates {
		ready := meta.FindStatusCondition(one.Status.Conditions, edgev2alpha1.ConditionReady)
		// With these reasons the hub places nothing new.
		isRefused := ready != nil && slices.Contains([]string{plan.ReasonInvalid, rules.ReasonLimitExceeded}, ready.Reason)
		if isRefused || ready != nil && !isPlaced && one.Status.Destinations == 0 {
			return newStep(Stopped, ready.Reason, "the EdgePlacement %s: %s", one.Name, sentence(ready.Message))
		}
	}
	if !isPlaced {
		return newStep(Stopped, "", "%s is no cluster of %s", f.SyncTarget, namesOf(all)).
			advise("see spec.locationSelectors and spec.numberOfClusters, and which Locations are available to the workspace")
	}
	if key := f.ClusterKey(); key != f.Key {
		return newStep(OK, "", "%s is a cluster of %s; the object is called %s there", f.SyncTarget, namesOf(candidates), strings.TrimPrefix(key.String(), "/"))
	}
	return newStep(OK, "", "%s is a cluster of %s", f.SyncTarget, namesOf(candidates))
}

// placedOf returns the EdgePlacements that have the SyncTarget as a destination.
func placedOf(all []selecting) []selecting {
	return slices.DeleteFunc(slices.Clone(all), func(one selecting) bool { return !one.isPlaced })
}

// explainProgress explains the object's state on the cluster, by the status of the EdgePlacements.
func explainProgress(f *PlacementFacts, all []selecting) (step *Step, isOnTarget bool) {
	state := placed.State{State: placed.Unknown}
	for _, one := range placedOf(all) {
		if one.state.State != placed.Unknown {
			state = one.state
			break
		}
	}
	message := sentence(state.Message)
	switch reason := state.State; {
	case reason == placed.Unknown:
		return newStep(Unknown, "", "the EdgePlacement has more objects on their way, or failing, than its status describes"), false
	case reason == placed.Healthy:
		return newStep(OK, "", "the cluster has it, and it is healthy, as the hub saw it last"), true
	case reason == rules.ReasonWaitingForRollout:
		return newStep(Stopped, reason, "the rollout does not let the object, or its last change, go to %s yet: see `kubectl synchub rollout status`", f.SyncTarget), false
	case reason == rules.ReasonPlacing:
		return newStep(Waiting, reason, "it is on its way to the mailbox of %s", f.SyncTarget), false
	case reason == rules.ReasonSyncing:
		return newStep(Waiting, reason, "it is on its way from the mailbox to the cluster, or the cluster is away"), false
	case !state.Failed:
		return newStep(Waiting, reason, "the cluster has it, but it does not do its work there yet: %s", message), true
	case reason == rules.ReasonUnhealthy:
		return newStep(Stopped, reason, "the cluster has it, but it does not do its work there: %s", message), true
	default:
		return newStep(Stopped, reason, "%s", message), false
	}
}
