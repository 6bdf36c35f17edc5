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
	"k8s.io/utils/clock"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/controllers/placement/rules"
	"github.com/synchub-dev/synchub/controllers/plan"
	"github.com/synchub-dev/synchub/controllers/plan/ownership"
	"github.com/synchub-dev/synchub/controllers/plan/transform"
	"github.com/synchub-dev/synchub/provider/mailboxes"
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
		w := &workspace{Controller: &Controller{}, placements: &c.placements}
		resource := plan.Resource{GroupVersionResource: schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}, Kind: "Deployment", Namespaced: true, StatusReturn: true}
		if got := w.isStatusUnwanted(w.placements, resource, sourceObject()); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
		resource.StatusReturn = false
		if got := w.isStatusUnwanted(w.placements, resource, sourceObject()); got == c.placements.partial {
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
	w := &workspace{
		Controller: &Controller{Options: Options{Clock: clock.RealClock{}}}, placements: &placements{fleetSynced: true},
		objects: map[objectKey]*object{key: {selectedBy: []*resolvedPlacement{{Placement: compiled}}, pairs: map[logicalcluster.Name]*pair{"m": found}}},
	}
	if request := w.statusRequestOf(key, resource, sourceObject()); !request.isKnown || !request.hasStatus || !request.placed["m"] {
		t.Errorf("after a pass: %+v", request)
	}
	found.changes++
	if request := w.statusRequestOf(key, resource, sourceObject()); request.isKnown {
		t.Errorf("before a pass: %+v", request)
	}
}

// Only the hub can mark a status as its own: KubeStellar's annotation, or a copy of the hub's annotation,
// cannot make the hub remove a status.
func TestWhoseStatus(t *testing.T) {
	w := &workspace{Controller: &Controller{Options: Options{Hub: "hub", Sealer: ownership.NewSealer([]byte("key"))}}, cluster: "team"}
	elsewhere := &workspace{Controller: w.Controller, cluster: "other"}
	otherKey := &workspace{Controller: &Controller{Options: Options{Hub: "hub", Sealer: ownership.NewSealer([]byte("forged"))}}, cluster: "team"}
	another := sourceObject()
	another.SetName("another")
	for name, c := range map[string]struct {
		annotations map[string]string
		want        bool
	}{
		"the hub's":               {map[string]string{ownership.StatusAnnotation: w.statusOwner().EnsuredValue(transform.SelfOf(sourceObject()))}, true},
		"KubeStellar's":           {map[string]string{edgev2alpha1.AnnotationExecutingCount: "1"}, false},
		"a user's":                {map[string]string{ownership.StatusAnnotation: "mine"}, false},
		"that of another object":  {map[string]string{ownership.StatusAnnotation: w.statusOwner().EnsuredValue(transform.SelfOf(another))}, false},
		"of another workspace":    {map[string]string{ownership.StatusAnnotation: elsewhere.statusOwner().EnsuredValue(transform.SelfOf(sourceObject()))}, false},
		"sealed by another key":   {map[string]string{ownership.StatusAnnotation: otherKey.statusOwner().EnsuredValue(transform.SelfOf(sourceObject()))}, false},
		"of what the hub ensured": {map[string]string{ownership.StatusAnnotation: w.ownerOf("u").EnsuredValue(transform.SelfOf(sourceObject()))}, false},
	} {
		object := sourceObject()
		object.SetAnnotations(c.annotations)
		if got := w.hasReturnedStatus(object); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// A change of only the status causes no pass for copies; any other change does.
func TestStatusOnlyEvents(t *testing.T) {
	changed := func(change func(*unstructured.Unstructured)) *unstructured.Unstructured {
		object := sourceObject()
		change(object)
		return object
	}
	for name, c := range map[string]struct {
		event mailboxes.Event
		want  bool
	}{
		"the status":     {mailboxes.Event{Old: sourceObject(), New: changed(func(o *unstructured.Unstructured) { o.Object["status"] = map[string]any{"replicas": int64(1)} })}, true},
		"the content":    {mailboxes.Event{Old: sourceObject(), New: changed(func(o *unstructured.Unstructured) { o.SetGeneration(3) })}, false},
		"a label":        {mailboxes.Event{Old: sourceObject(), New: changed(func(o *unstructured.Unstructured) { o.SetLabels(map[string]string{"a": "b"}) })}, false},
		"an annotation":  {mailboxes.Event{Old: sourceObject(), New: changed(func(o *unstructured.Unstructured) { o.SetAnnotations(map[string]string{"a": "b"}) })}, false},
		"another object": {mailboxes.Event{Old: sourceObject(), New: changed(func(o *unstructured.Unstructured) { o.SetUID("other") })}, false},
		"a kind that does not count": {mailboxes.Event{
			Old: changed(func(o *unstructured.Unstructured) { o.SetGeneration(0) }), New: changed(func(o *unstructured.Unstructured) { o.SetGeneration(0) }),
		}, false},
		"a new object":       {mailboxes.Event{New: sourceObject()}, false},
		"a deleted object":   {mailboxes.Event{Old: sourceObject()}, false},
		"what the hub holds": {mailboxes.Event{Old: sourceObject(), New: sourceObject(), ProjectionOnly: true}, false},
		"an object that is to be deleted": {mailboxes.Event{Old: sourceObject(), New: changed(func(o *unstructured.Unstructured) {
			now := metav1.Now()
			o.SetDeletionTimestamp(&now)
		})}, false},
	} {
		if got := isStatusOnly(c.event); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
