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

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/cmd/kubectl-synchub/placed"
	"github.com/synchub-dev/synchub/controllers/objectsync/plan"
	"github.com/synchub-dev/synchub/controllers/placement/rules"
)

// Names of the steps in a workload workspace, in order. Those of the mailbox follow.
const (
	StepWorkload    = "Workload"
	StepPlacement   = "Placement"
	StepDestination = "Destination"
	StepProgress    = "Progress"
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
	// Placements and Slices are those of the workspace.
	Placements Observed[[]edgev2alpha1.EdgePlacement]
	Slices     Observed[[]edgev2alpha1.SinglePlacementSlice]
}

// Inventory returns the logical cluster of the inventory workspace of the SyncTarget. It is empty if the SyncTarget is no
// destination of any EdgePlacement.
func (f *PlacementFacts) Inventory() string {
	for _, slice := range f.Slices.Value {
		for _, destination := range slice.Destinations {
			if destination.SyncTargetName == f.SyncTarget {
				return destination.Cluster
			}
		}
	}
	return ""
}

// slice returns the slice of an EdgePlacement, or nil.
func (f *PlacementFacts) slice(placement string) *edgev2alpha1.SinglePlacementSlice {
	for i := range f.Slices.Value {
		if f.Slices.Value[i].Name == placement {
			return &f.Slices.Value[i]
		}
	}
	return nil
}

// placementExplainer runs the steps in a workload workspace.
type placementExplainer struct {
	facts *PlacementFacts
	stepList
	// selecting are the EdgePlacements that select the object. toTarget are those of them that have the destination.
	selecting, toTarget []*edgev2alpha1.EdgePlacement
	presence            Presence
}

// FromWorkload says why an object of a workload workspace is on a cluster, or is not, as far as the workspace tells.
func FromWorkload(facts *PlacementFacts) Explanation {
	e := &placementExplainer{facts: facts, presence: PresenceUnknown}
	for _, step := range []func() bool{e.explainObject, e.explainPlacements, e.explainDestination, e.explainProgress} {
		if !step() {
			break
		}
	}
	return Explanation{
		SyncTarget: facts.SyncTarget, Group: facts.Resource.Group, Resource: facts.Resource.Resource,
		Namespace: facts.Key.Namespace, Name: facts.Key.Name,
		Steps: e.steps, Result: e.result(e.presence, e.presenceMessage()),
	}
}

// Then returns the explanation with the steps of another one after its own. The other one is about the mailbox, and decides
// unless a step in the workload workspace stops the object.
func (e Explanation) Then(inMailbox Explanation) Explanation {
	e.Steps = slices.Concat(e.Steps, inMailbox.Steps)
	if e.Result.State != Stopped {
		e.Result = inMailbox.Result
	}
	return e
}

func (e *placementExplainer) presenceMessage() string {
	switch e.presence {
	case Present:
		return fmt.Sprintf("%s is on %s", e.facts.Key.Name, e.facts.SyncTarget)
	default:
		return fmt.Sprintf("Whether %s is on %s cannot be seen from here", e.facts.Key.Name, e.facts.SyncTarget)
	}
}

// explainObject explains whether the object can be placed at all. Like all steps it returns false if the next ones make no sense.
func (e *placementExplainer) explainObject() bool {
	object := e.facts.Object.Value
	switch {
	case e.facts.Object.Err != nil:
		e.addStep(StepWorkload, Unknown, "the object of the workload workspace cannot be read: %s", inOneLine(e.facts.Object.Err))
	case object == nil:
		e.addStep(StepWorkload, Stopped, "the workload workspace does not have it")
	case object.GetDeletionTimestamp() != nil:
		e.addStep(StepWorkload, Waiting, "it is being deleted in the workload workspace, and its copies with it").withReason("Terminating")
	case !rules.IsPlaceable(plan.Resource{GroupVersionResource: e.facts.Resource, Kind: object.GetKind()}, object):
		e.addStep(StepWorkload, Stopped, "kcp makes it in every workspace, or it is a copy itself: such objects are never placed")
	default:
		e.addStep(StepWorkload, OK, "the workload workspace has it")
		return true
	}
	return false
}

// explainPlacements explains which EdgePlacements select the object.
func (e *placementExplainer) explainPlacements() bool {
	if e.facts.Placements.Err != nil {
		e.addStep(StepPlacement, Unknown, "the EdgePlacements of the workspace cannot be read: %s", inOneLine(e.facts.Placements.Err))
		return false
	}
	object := e.ruleObject()
	undecided := false
	for i := range e.facts.Placements.Value {
		one := &e.facts.Placements.Value[i]
		compiled, err := rules.Compile(one)
		if err != nil || one.DeletionTimestamp != nil {
			continue
		}
		selected, known := compiled.Selects(object)
		undecided = undecided || !known
		if selected {
			e.selecting = append(e.selecting, one)
		}
	}
	switch {
	case len(e.selecting) > 0:
		e.addStep(StepPlacement, OK, "EdgePlacements select it: %s", joinFirst(placementNames(e.selecting)))
		return true
	case undecided:
		e.addStep(StepPlacement, Unknown, "whether an EdgePlacement selects it depends on labels of its Namespace, which cannot be read: %s", inOneLine(e.facts.Namespace.Err))
	case len(e.facts.Placements.Value) == 0:
		e.addStep(StepPlacement, Stopped, "the workspace has no EdgePlacement").withAdvice("create one, or run kubectl synchub bind compute")
	default:
		e.addStep(StepPlacement, Stopped, "none of the %d EdgePlacements of the workspace selects it", len(e.facts.Placements.Value)).
			withAdvice("add a test to spec.downsync of one of them")
	}
	return false
}

// ruleObject returns the facts by which EdgePlacements select the object.
func (e *placementExplainer) ruleObject() *rules.Object {
	object := e.facts.Object.Value
	return &rules.Object{
		Group: e.facts.Resource.Group, Resource: e.facts.Resource.Resource, Namespace: object.GetNamespace(), Name: object.GetName(),
		Labels: labels.Set(object.GetLabels()),
		NamespaceLabels: func() (labels.Labels, bool) {
			if e.facts.Namespace.Value == nil {
				return labels.Set{}, e.facts.Namespace.Err == nil
			}
			return labels.Set(e.facts.Namespace.Value.GetLabels()), true
		},
	}
}

func placementNames(placements []*edgev2alpha1.EdgePlacement) (names []string) {
	for _, one := range placements {
		names = append(names, one.Name)
	}
	return names
}

// notInForce are the reasons of the condition Ready for which a placement places nothing new.
var notInForce = []string{plan.ReasonInvalid, rules.ReasonLimitExceeded}

// explainDestination explains whether the cluster is a destination of an EdgePlacement that selects the object.
func (e *placementExplainer) explainDestination() bool {
	if e.facts.Slices.Err != nil {
		e.addStep(StepDestination, Unknown, "the SinglePlacementSlices of the workspace cannot be read: %s", inOneLine(e.facts.Slices.Err))
		return false
	}
	for _, one := range e.selecting {
		if slice := e.facts.slice(one.Name); slice != nil && slices.ContainsFunc(slice.Destinations, e.isTarget) {
			e.toTarget = append(e.toTarget, one)
		}
	}
	candidates := e.toTarget
	if len(candidates) == 0 {
		candidates = e.selecting
	}
	for _, one := range candidates {
		ready := meta.FindStatusCondition(one.Status.Conditions, edgev2alpha1.ConditionReady)
		if ready != nil && (slices.Contains(notInForce, ready.Reason) || len(e.toTarget) == 0 && one.Status.Destinations == 0) {
			e.addStep(StepDestination, Stopped, "the EdgePlacement %s: %s", one.Name, sentence(ready.Message)).withReason(ready.Reason)
			return false
		}
	}
	if len(e.toTarget) == 0 {
		e.addStep(StepDestination, Stopped, "%s is no cluster of %s", e.facts.SyncTarget, joinFirst(placementNames(e.selecting))).
			withAdvice("see spec.locationSelectors and spec.numberOfClusters, and which Locations are available to the workspace")
		return false
	}
	e.addStep(StepDestination, OK, "%s is a cluster of %s", e.facts.SyncTarget, joinFirst(placementNames(e.toTarget)))
	return true
}

func (e *placementExplainer) isTarget(destination edgev2alpha1.SinglePlacement) bool {
	return destination.SyncTargetName == e.facts.SyncTarget
}

// explainProgress explains how far the hub has come, by the status of the EdgePlacements.
func (e *placementExplainer) explainProgress() bool {
	object := placed.Object{GroupResource: e.facts.Resource.GroupResource(), NamespacedName: e.facts.Key}
	state := placed.State{State: placed.Unknown}
	for _, one := range e.toTarget {
		if found := placed.NewView(one, e.facts.slice(one.Name)).StateOf(object, e.facts.SyncTarget); found.State != placed.Unknown {
			state = found
			break
		}
	}
	switch state.State {
	case placed.Unknown:
		e.addStep(StepProgress, Unknown, "the EdgePlacement has more objects on their way, or failing, than its status describes")
	case placed.Healthy:
		e.presence = Present
		e.addStep(StepProgress, OK, "the cluster has it, and it is healthy, as the hub saw it last")
	case rules.ReasonWaitingForRollout:
		e.addStep(StepProgress, Stopped, "the rollout does not let the object, or its last change, go to %s yet: see `kubectl synchub rollout status`", e.facts.SyncTarget).withReason(state.State)
	case rules.ReasonPlacing:
		e.addStep(StepProgress, Waiting, "it is on its way to the mailbox of %s", e.facts.SyncTarget).withReason(state.State)
	case rules.ReasonSyncing:
		e.addStep(StepProgress, Waiting, "it is on its way from the mailbox to the cluster, or the cluster is away").withReason(state.State)
	default:
		e.explainOther(state)
	}
	return true
}

func (e *placementExplainer) explainOther(state placed.State) {
	switch {
	case !state.Failed:
		e.presence = Present
		e.addStep(StepProgress, Waiting, "the cluster has it, but it does not do its work there yet: %s", sentence(state.Message)).withReason(state.State)
	case state.State == rules.ReasonUnhealthy:
		e.presence = Present
		e.addStep(StepProgress, Stopped, "the cluster has it, but it does not do its work there: %s", sentence(state.Message)).withReason(state.State)
	default:
		e.addStep(StepProgress, Stopped, "%s", sentence(state.Message)).withReason(state.State)
	}
}
