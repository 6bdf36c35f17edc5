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

package rules

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/controllers/placement/rollout"
	"github.com/synchub-dev/synchub/controllers/plan"
	"github.com/synchub-dev/synchub/controllers/plan/ownership"
	"github.com/synchub-dev/synchub/controllers/plan/selection"
)

// Placement is a compiled EdgePlacement. It is immutable.
type Placement struct {
	Name       string
	UID        types.UID
	Generation int64
	// InventoryPaths are the paths of the workspaces whose Locations count; empty for all workspaces.
	InventoryPaths []string
	// Upsync selects objects of the destinations for upsync.
	Upsync []edgev2alpha1.PlacementUpsync
	// Aggregation is the expression that combines what the placement brings into the workspace; empty for none.
	Aggregation string
	// DeletionPolicy decides whether withdrawn copies stay on the clusters.
	DeletionPolicy ownership.Policy
	// Choice restricts the destinations to some of the matching SyncTargets; nil uses all.
	Choice *Choice
	// Rollout decides which destinations get a change next; nil if all do at once.
	Rollout *rollout.Strategy
	// SingletonStatus requests the status of objects with one destination, and AggregateStatus the combined
	// status of all destinations.
	SingletonStatus, AggregateStatus bool

	created   time.Time
	locations []labels.Selector
	tests     []test
	// toWorkspace selects objects for the workspace by the entries of Upsync; nil without such entries.
	toWorkspace *selection.Matcher
}

// test is a compiled DownsyncObjectTest.
type test struct {
	group                        *string
	resources, namespaces, names set
	namespaceSelectors, labels   []labels.Selector
}

// set is a set of names; the empty set, and one with the wildcard, has all names.
type set map[string]struct{}

func newSet(names []string) set {
	if slices.Contains(names, edgev2alpha1.Wildcard) {
		return nil
	}
	all := make(set, len(names))
	for _, name := range names {
		all[name] = struct{}{}
	}
	return all
}

func (s set) has(name string) bool {
	_, ok := s[name]
	return ok || len(s) == 0
}

// Compile returns the rules of an EdgePlacement. The error names the field of a selector that cannot be parsed.
func Compile(placement *edgev2alpha1.EdgePlacement) (*Placement, error) {
	spec := &placement.Spec
	compiled := &Placement{
		Name: placement.Name, UID: placement.UID, Generation: placement.Generation, created: placement.CreationTimestamp.Time,
		InventoryPaths: spec.InventoryWorkspaces, Upsync: spec.Upsync, DeletionPolicy: ownership.PolicyDelete,
		Choice:          newChoice(spec),
		SingletonStatus: spec.WantSingletonReportedState, AggregateStatus: spec.AggregateStatus,
	}
	if spec.Aggregation != nil {
		compiled.Aggregation = spec.Aggregation.Expression
	}
	if spec.DeletionPolicy == edgev2alpha1.DeletionPolicyOrphan {
		compiled.DeletionPolicy = ownership.PolicyOrphan
	}
	var err error
	if compiled.Rollout, err = rollout.New(spec); err != nil {
		return nil, err
	}
	if compiled.locations, err = parseSelectors("spec.locationSelectors", spec.LocationSelectors); err != nil {
		return nil, err
	}
	for i := range spec.Downsync {
		one, err := compileTest(fmt.Sprintf("spec.downsync[%d]", i), &spec.Downsync[i])
		if err != nil {
			return nil, err
		}
		compiled.tests = append(compiled.tests, one)
	}
	compiled.toWorkspace = compileToWorkspace(spec.Upsync)
	return compiled, checkUpsync(spec.Upsync)
}

func compileTest(field string, spec *edgev2alpha1.DownsyncObjectTest) (test, error) {
	compiled := test{group: spec.APIGroup, resources: newSet(spec.Resources), namespaces: newSet(spec.Namespaces), names: newSet(spec.ObjectNames)}
	var err error
	if compiled.namespaceSelectors, err = parseSelectors(field+".namespaceSelectors", spec.NamespaceSelectors); err != nil {
		return test{}, err
	}
	compiled.labels, err = parseSelectors(field+".labelSelectors", spec.LabelSelectors)
	return compiled, err
}

func parseSelectors(field string, selectors []metav1.LabelSelector) ([]labels.Selector, error) {
	parsed := make([]labels.Selector, 0, len(selectors))
	for i := range selectors {
		selector, err := metav1.LabelSelectorAsSelector(&selectors[i])
		if err != nil {
			return nil, fmt.Errorf("%s[%d]: %w", field, i, err)
		}
		parsed = append(parsed, selector)
	}
	return parsed, nil
}

// Cost returns how many label values a test of one object may compare. Users write the selectors, and each
// object of the workspace is tested.
func (p *Placement) Cost() (cost int) {
	for i := range p.tests {
		for _, selectors := range [][]labels.Selector{p.tests[i].labels, p.tests[i].namespaceSelectors} {
			for _, selector := range selectors {
				cost++
				requirements, _ := selector.Requirements()
				for j := range requirements {
					cost += 1 + len(requirements[j].ValuesUnsorted())
				}
			}
		}
	}
	return cost
}

// Compare is negative if the placement is older than another one. The order is the same after a restart.
func (p *Placement) Compare(other *Placement) int {
	return cmp.Or(p.created.Compare(other.created), cmp.Compare(p.Name, other.Name))
}

// Object contains the facts about an object of a workload workspace that placements select it by.
type Object struct {
	Group, Resource string
	// Namespace is empty for cluster-scoped objects.
	Namespace, Name string
	Labels          labels.Labels
	// NamespaceLabels returns the labels of the object's Namespace; known is false while they are unknown.
	NamespaceLabels func() (set labels.Labels, known bool)
}

// ObjectOf returns the facts about an object. namespaceLabels is for [Object.NamespaceLabels].
func ObjectOf(resource schema.GroupResource, object *unstructured.Unstructured, namespaceLabels func() (set labels.Labels, known bool)) *Object {
	return &Object{
		Group: resource.Group, Resource: resource.Resource, Namespace: object.GetNamespace(), Name: object.GetName(),
		Labels: plan.MetadataMap(object, "labels"), NamespaceLabels: namespaceLabels,
	}
}

// IsPlaceable reports whether an object may be placed at all: kcp did not create it, and it is not a copy.
func IsPlaceable(resource plan.Resource, object *unstructured.Unstructured) bool {
	return !plan.IsMarked(object) && selection.IsUserObject(resource.SelectionObject(object))
}

// Selects reports whether the placement selects the object; known is false if that depends on unknown labels of its Namespace.
func (p *Placement) Selects(object *Object) (selected, known bool) {
	known = true
	for i := range p.tests {
		matches, decided := p.tests[i].matches(object)
		if matches {
			return true, true
		}
		known = known && decided
	}
	return false, known
}

func (t *test) matches(object *Object) (matches, known bool) {
	switch {
	case t.group != nil && *t.group != object.Group,
		!t.resources.has(object.Resource), !t.names.has(object.Name), !t.namespaces.has(object.Namespace),
		len(t.labels) > 0 && !matchesAny(t.labels, object.Labels):
		return false, true
	case len(t.namespaceSelectors) == 0:
		return true, true
	case object.Namespace == "":
		return slices.ContainsFunc(t.namespaceSelectors, labels.Selector.Empty), true
	}
	namespace, known := object.NamespaceLabels()
	return known && matchesAny(t.namespaceSelectors, namespace), known
}

func matchesAny(selectors []labels.Selector, of labels.Labels) bool {
	return slices.ContainsFunc(selectors, func(selector labels.Selector) bool { return selector.Matches(of) })
}

// MaySelect reports whether the placement can select objects of a resource.
func (p *Placement) MaySelect(group, resource string) bool {
	return slices.ContainsFunc(p.tests, func(t test) bool { return (t.group == nil || *t.group == group) && t.resources.has(resource) })
}

// SelectsByNamespaceLabels reports whether the labels of Namespaces decide which objects the placement selects.
func (p *Placement) SelectsByNamespaceLabels() bool {
	return slices.ContainsFunc(p.tests, func(t test) bool { return len(t.namespaceSelectors) > 0 })
}

// SelectsByLabels reports whether the labels of objects decide which of them the placement selects.
func (p *Placement) SelectsByLabels() bool {
	return slices.ContainsFunc(p.tests, func(t test) bool { return len(t.labels) > 0 })
}
