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
	"testing"

	"github.com/kcp-dev/logicalcluster/v3"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/controllers/placement/rules"
	"github.com/synchub-dev/synchub/controllers/plan"
	"github.com/synchub-dev/synchub/controllers/plan/ownership"
	"github.com/synchub-dev/synchub/controllers/plan/transform"
)

// sourceObject returns a Deployment of a workload workspace.
func sourceObject() *unstructured.Unstructured {
	object := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "apps/v1", "kind": "Deployment"}}
	object.SetNamespace("shop")
	object.SetName("till")
	object.SetUID("u")
	object.SetGeneration(2)
	return object
}

// The hub removes a status that it has written only when it is certain that no placement requests it.
func TestStatusIsUnwanted(t *testing.T) {
	selecting := func(namespace string, asks bool) *resolvedPlacement {
		compiled, err := rules.Compile(&edgev2alpha1.EdgePlacement{ObjectMeta: metav1.ObjectMeta{Name: "shop"}, Spec: edgev2alpha1.EdgePlacementSpec{
			Downsync: []edgev2alpha1.DownsyncObjectTest{{Namespaces: []string{namespace}}}, WantSingletonReportedState: asks,
		}})
		if err != nil {
			t.Fatal(err)
		}
		return &resolvedPlacement{Placement: compiled}
	}
	active := func(all ...*resolvedPlacement) (made placements) {
		made.setAll(all)
		return made
	}
	for name, c := range map[string]struct {
		placements placements
		want       bool
	}{
		"no placement is left":              {placements{}, true},
		"one asks, and selects the object":  {active(selecting("shop", true)), false},
		"one asks, and selects others":      {active(selecting("other", true)), true},
		"one selects it, and does not ask":  {active(selecting("shop", false)), true},
		"one that may ask cannot be read":   {placements{partial: true}, false},
		"a user deletes the whole binding":  {placements{withdrawAll: true}, true},
		"one asks among others that do not": {active(selecting("shop", false), selecting("shop", true)), false},
	} {
		status := &sourceStatus{sources: &sources{}}
		resource := plan.Resource{GroupVersionResource: schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}, Kind: "Deployment", Namespaced: true, StatusReturn: true}
		if got := status.isUnwanted(&c.placements, resource, sourceObject()); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
		resource.StatusReturn = false
		if got := status.isUnwanted(&c.placements, resource, sourceObject()); got == c.placements.partial {
			t.Errorf("%s, and the PublishedResource returns no status: %v", name, got)
		}
	}
}

// Before a pass for the present content, the copy may have the former content, so its status does not count.
func TestStatusWaitsForThePass(t *testing.T) {
	compiled, err := rules.Compile(&edgev2alpha1.EdgePlacement{Spec: edgev2alpha1.EdgePlacementSpec{
		Downsync: []edgev2alpha1.DownsyncObjectTest{{Namespaces: []string{"shop"}}}, WantSingletonReportedState: true,
	}})
	if err != nil {
		t.Fatal(err)
	}
	resource := plan.Resource{GroupVersionResource: schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}, Kind: "Deployment", Namespaced: true, StatusReturn: true}
	key := objectKey{resource.GroupVersionResource, types.NamespacedName{Namespace: "shop", Name: "till"}}
	found := &pair{desired: true, placed: true, changes: 1, observedChanges: 1}
	w := newTestWorkspace()
	active := &placements{fleetSynced: true}
	w.pairs.objects[key] = &object{selectedBy: []*resolvedPlacement{{Placement: compiled}}, pairs: map[site]*pair{at("m"): found}}
	if request := w.statuses.requestOf(key, active, resource, sourceObject()); !request.isKnown || !request.hasStatus || !request.placed[at("m")] {
		t.Errorf("after a pass: %+v", request)
	}
	found.changes++
	if request := w.statuses.requestOf(key, active, resource, sourceObject()); request.isKnown {
		t.Errorf("before a pass: %+v", request)
	}
}

// Only the hub can mark a status as its own: KubeStellar's annotation, or a copy of the hub's annotation,
// cannot make the hub remove a status.
func TestWhoseStatus(t *testing.T) {
	const team = logicalcluster.Name("team")
	hub, otherKey := marks{"hub", ownership.NewSealer([]byte("key"))}, marks{"hub", ownership.NewSealer([]byte("forged"))}
	another := sourceObject()
	another.SetName("another")
	for name, c := range map[string]struct {
		annotations map[string]string
		want        bool
	}{
		"the hub's":               {map[string]string{ownership.StatusAnnotation: hub.statusOwner(team).EnsuredValue(transform.SelfOf(sourceObject()))}, true},
		"KubeStellar's":           {map[string]string{edgev2alpha1.AnnotationExecutingCount: "1"}, false},
		"a user's":                {map[string]string{ownership.StatusAnnotation: "mine"}, false},
		"that of another object":  {map[string]string{ownership.StatusAnnotation: hub.statusOwner(team).EnsuredValue(transform.SelfOf(another))}, false},
		"of another workspace":    {map[string]string{ownership.StatusAnnotation: hub.statusOwner("other").EnsuredValue(transform.SelfOf(sourceObject()))}, false},
		"sealed by another key":   {map[string]string{ownership.StatusAnnotation: otherKey.statusOwner(team).EnsuredValue(transform.SelfOf(sourceObject()))}, false},
		"of what the hub ensured": {map[string]string{ownership.StatusAnnotation: hub.ownerOf("u").EnsuredValue(transform.SelfOf(sourceObject()))}, false},
	} {
		object := sourceObject()
		object.SetAnnotations(c.annotations)
		if got := hub.hasReturnedStatus(team, object); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
