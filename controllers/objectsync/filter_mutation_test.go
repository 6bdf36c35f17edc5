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

package objectsync

import (
	"strconv"
	"testing"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/synchub-dev/synchub/controllers/plan"
)

func TestFilterByNamespaces(t *testing.T) {
	t.Parallel()
	h := newHub(t, []plan.Resource{resourceNamed(t, configMapsV1, "filter: {namespace: {matchLabels: {team: a}}}")}, configMapsTravel)
	team := func(name string) {
		h.put(namespaces, "{apiVersion: v1, kind: Namespace, metadata: {name: "+h.namespace+", labels: {team: "+name+"}}}")
	}
	h.putConfigMap("first", "a: b")
	h.waitUntilIdle()
	if h.onTarget(configMapsV1, "first") != nil {
		t.Error("an object that does not pass the filter was synced")
	}
	team("a")
	first := h.expectOnTarget(configMapsV1, "first")
	// While the namespace is not cached, the copy stays.
	h.hide(namespaces)
	h.expectUnchangedOnTarget(configMapsV1, first)
	h.restart()
	h.expectUnchangedOnTarget(configMapsV1, first)
	h.show(namespaces)
	h.expectUnchangedOnTarget(configMapsV1, first)
	team("b")
	h.expectGoneFromTarget(configMapsV1, "first")
}

// A copy is deleted when its source no longer passes. If the filter fails for the source, the copy stays and the failure is
// reported.
func TestFilterByContent(t *testing.T) {
	t.Parallel()
	h := newHub(t, []plan.Resource{resourceNamed(t, configMapsV1, "filter: {resource: {matchLabels: {go: down}}, cel: \"self.data.flag == 'yes'\"}")}, configMapsTravel)
	box := func(name, label, data string) {
		h.put(configMapsV1, "{apiVersion: v1, kind: ConfigMap, metadata: {name: "+name+", namespace: "+h.namespace+", labels: {go: "+label+"}}, data: {"+data+"}}")
	}
	box("first", "down", "flag: 'yes'")
	box("second", "down", "flag: 'yes'")
	box("third", "down", "flag: 'yes'")
	first := h.expectOnTarget(configMapsV1, "first")
	h.expectOnTarget(configMapsV1, "second")
	h.expectOnTarget(configMapsV1, "third")
	box("first", "down", "other: 'yes'")
	h.expectFailure(configMapsV1, "first", plan.ReasonRuleFailed)
	box("second", "down", "flag: 'no'")
	box("third", "up", "flag: 'yes'")
	h.expectGoneFromTarget(configMapsV1, "second")
	h.expectGoneFromTarget(configMapsV1, "third")
	h.expectUnchangedOnTarget(configMapsV1, first)
	h.restart()
	h.expectFailure(configMapsV1, "first", plan.ReasonRuleFailed)
	h.expectUnchangedOnTarget(configMapsV1, first)
	h.configure()
	h.expectGoneFromTarget(configMapsV1, "first")
}

// A mutation that never converges, because it changes its own result each time, is slowed down and reported in both directions.
// It does not delay other objects.
func TestMutationsThatNeverConverge(t *testing.T) {
	const counting = "{cel: {path: data.count, expression: \"other == null || !has(other.data) ? '0' : string(int(other.data.count) + 1)\"}}"
	count := func(object *unstructured.Unstructured) int {
		text, _, _ := unstructured.NestedString(object.Object, "data", "count")
		number, _ := strconv.Atoi(text)
		return number
	}
	t.Run("down", func(t *testing.T) {
		h := newHub(t, []plan.Resource{resourceNamed(t, configMapsV1, "mutation: {down: ["+counting+"]}")}, configMapsTravel)
		h.putConfigMap("first", "a: b")
		h.expectFailure(configMapsV1, "first", plan.ReasonContended)
		if made := h.onTarget(configMapsV1, "first"); count(made) > 5 {
			t.Errorf("the object was changed %d times", count(made))
		}
		// A change of the source is applied at once.
		h.putConfigMap("first", "a: c")
		h.expectOnTarget(configMapsV1, "first", holds("a", "c"))
	})
	t.Run("up", func(t *testing.T) {
		h := newHub(t, []plan.Resource{resourceNamed(t, configMapsV1, "mutation: {up: ["+counting+"]}")}, "upsync: [{apiGroup: '', resources: [configmaps], namespaces: [NS], names: [first]}]")
		put(t, "{apiVersion: v1, kind: ConfigMap, metadata: {name: first, namespace: "+h.namespace+"}, data: {a: b}}")
		h.expectInMailbox(configMapsV1, "first")
		h.expectFailure(configMapsV1, "first", plan.ReasonContended)
		if made := h.configMapInMailbox("first"); count(made) > 5 {
			t.Errorf("the object was changed %d times", count(made))
		}
	})
}

// A mutation that reads the other side and converges costs nothing at rest. A refusal by the target keeps its reason at every
// try.
func TestMutationsThatLookAtTheOtherSide(t *testing.T) {
	t.Parallel()
	h := newHub(t, []plan.Resource{resourceNamed(t, configMapsV1, "mutation: {down: [{cel: {path: data.uid, expression: \"other == null ? '' : other.metadata.uid\"}}]}")}, configMapsTravel)
	h.putConfigMap("first", "a: b")
	made := h.expectOnTarget(configMapsV1, "first", func(object *unstructured.Unstructured) bool {
		return holds("uid", string(object.GetUID()))(object)
	})
	h.expectUnchangedOnTarget(configMapsV1, made)
	h.restart()
	h.expectUnchangedOnTarget(configMapsV1, made)
	h.put(configMapsV1, "{apiVersion: v1, kind: ConfigMap, metadata: {name: first, namespace: "+h.namespace+"}, data: {wrong: {a: b}}}")
	h.expectFailure(configMapsV1, "first", plan.ReasonInvalid)
	controller, key := h.controllers[configMapsV1], shop("first")
	key.Namespace = h.namespace
	for range 6 {
		if result, err := controller.Reconcile(log.IntoContext(t.Context(), logr.Discard()), key); err != nil || result.RequeueAfter == 0 {
			t.Errorf("a refusal by the target is not tried again: %+v, %v", result, err)
		}
		if failure := controller.Status.states.failures()[key]; failure.Reason != plan.ReasonInvalid {
			t.Fatalf("it fails for the reason %s: %s", failure.Reason, failure.Message)
		}
	}
}

// A mutation that reads the SyncTarget is applied again when its labels change, in both directions.
func TestMutationsThatReadTheSyncTarget(t *testing.T) {
	t.Parallel()
	const region = "{cel: {path: data.region, expression: \"syncTarget.metadata.labels.region + ' for ' + syncTarget.metadata.name\"}}"
	h := newHub(t, []plan.Resource{
		resourceNamed(t, configMapsV1, "mutation: {down: ["+region+"], up: ["+region+"]}"),
		resourceNamed(t, secretsV1, ""),
	}, configMapsTravel, "namespacedObjects: [{group: '', resource: secrets, objectsByNamespace: [{namespace: NS, names: ['*']}]}]",
		"upsync: [{apiGroup: '', resources: [configmaps], namespaces: [NS], names: [theirs]}]")
	h.putConfigMap("first", "a: b")
	h.put(secretsV1, "{apiVersion: v1, kind: Secret, metadata: {name: plain, namespace: "+h.namespace+"}}")
	plain := h.expectOnTarget(secretsV1, "plain")
	// A missing label is a failure of the rule.
	h.expectFailure(configMapsV1, "first", plan.ReasonRuleFailed)
	h.setLabels(map[string]string{"region": "eu"})
	first := h.expectOnTarget(configMapsV1, "first", holds("region", "eu for florin"))
	put(t, "{apiVersion: v1, kind: ConfigMap, metadata: {name: theirs, namespace: "+h.namespace+"}, data: {a: b}}")
	h.expectInMailbox(configMapsV1, "theirs", holds("region", "eu for florin"))
	h.restart()
	h.expectUnchangedOnTarget(configMapsV1, first)
	h.setLabels(map[string]string{"region": "us"})
	first = h.expectOnTarget(configMapsV1, "first", holds("region", "us for florin"))
	h.expectInMailbox(configMapsV1, "theirs", holds("region", "us for florin"))
	// Without the label the copy does not change.
	h.setLabels(nil)
	h.expectFailure(configMapsV1, "first", plan.ReasonRuleFailed)
	h.expectUnchangedOnTarget(configMapsV1, first)
	h.expectUnchangedOnTarget(secretsV1, plain)
}

// An API with another name in mailboxes than on the target is synced in both directions under its names, as in configs and
// conversions.
func TestProjection(t *testing.T) {
	t.Parallel()
	boxes := schema.GroupVersionResource{Group: "shop.example", Version: "v2", Resource: "boxes"}
	projected := resourceNamed(t, boxes, "naming: {name: 'the-{{ .Object.metadata.name }}'}")
	projected.PublishedResource, projected.Kind = "boxes", "Box"
	projected.Projected = plan.TargetAPI{GroupVersionResource: configMapsV1, Kind: "ConfigMap"}
	const travel = "namespacedObjects: [{group: shop.example, resource: boxes, objectsByNamespace: [{namespace: NS, names: [first, second]}]}]\n" +
		"upsync: [{apiGroup: '', resources: [configmaps], namespaces: [NS], names: [theirs]}]"
	h := newHub(t, []plan.Resource{projected}, travel)
	box := func(name, data string) {
		h.put(boxes, "{apiVersion: shop.example/v2, kind: Box, metadata: {name: "+name+", namespace: "+h.namespace+"}, data: {"+data+"}}")
	}
	box("first", "a: b")
	box("unselected", "a: b")
	first := h.expectOnTarget(configMapsV1, "the-first", holds("a", "b"))
	put(t, "{apiVersion: v1, kind: ConfigMap, metadata: {name: theirs, namespace: "+h.namespace+"}, data: {a: b}}")
	theirs := h.expectInMailbox(boxes, "theirs", holds("a", "b"))
	if theirs.GetKind() != "Box" || theirs.GetAPIVersion() != "shop.example/v2" {
		t.Errorf("the upsynced object is %v", theirs)
	}
	h.restart()
	h.expectUnchangedOnTarget(configMapsV1, first)
	// The copy under the new name is created before the old one is deleted.
	renamed := projected
	renamed.Rules = rulesOf(t, "naming: {name: 'a-{{ .Object.metadata.name }}'}")
	h.resources = []plan.Resource{renamed}
	h.publish(renamed)
	h.expectOnTarget(configMapsV1, "a-first")
	h.expectGoneFromTarget(configMapsV1, "the-first")
	// Of two objects with the same name on the target, the first keeps the name.
	same := projected
	same.Rules = rulesOf(t, "naming: {name: same}")
	h.resources = []plan.Resource{same}
	h.publish(same)
	kept := h.expectOnTarget(configMapsV1, "same")
	box("second", "a: c")
	h.expectFailure(boxes, "second", plan.ReasonConflict)
	h.expectUnchangedOnTarget(configMapsV1, kept)
	h.drop(boxes, h.namespace, "first")
	h.expectOnTarget(configMapsV1, "same", holds("a", "c"))
	h.drop(boxes, h.namespace, "second")
	h.expectGoneFromTarget(configMapsV1, "same")
	put(t, "{apiVersion: v1, kind: ConfigMap, metadata: {name: theirs, namespace: "+h.namespace+"}, data: {a: c}}")
	h.expectInMailbox(boxes, "theirs", holds("a", "c"))
}

// The conversions of a config name target APIs. The projection does not apply to converted objects, but the naming does.
func TestProjectionAndConversion(t *testing.T) {
	t.Parallel()
	boxes := schema.GroupVersionResource{Group: "shop.example", Version: "v2", Resource: "boxes"}
	projected := resourceNamed(t, boxes, "naming: {name: 'the-{{ .Object.metadata.name }}'}")
	projected.PublishedResource, projected.Kind = "boxes", "Box"
	projected.Projected = plan.TargetAPI{GroupVersionResource: configMapsV1, Kind: "ConfigMap"}
	const converted = `
namespacedObjects: [{group: shop.example, resource: boxes, objectsByNamespace: [{namespace: NS, names: ['*']}]}]
conversions: [{upstream: {group: shop.example, version: v2, kind: Box, name: first}, downstream: {group: '', version: v1, kind: ConfigMap, name: converted}}]
`
	h := newHub(t, []plan.Resource{projected}, converted)
	for _, name := range []string{"first", "second"} {
		h.put(boxes, "{apiVersion: shop.example/v2, kind: Box, metadata: {name: "+name+", namespace: "+h.namespace+"}, data: {a: b}}")
	}
	first, second := h.expectOnTarget(configMapsV1, "the-converted"), h.expectOnTarget(configMapsV1, "the-second")
	h.restart()
	h.expectUnchangedOnTarget(configMapsV1, first, second)
	if h.onTarget(configMapsV1, "the-first") != nil {
		t.Error("the copy exists under both names")
	}
	h.configure("namespacedObjects: [{group: shop.example, resource: boxes, objectsByNamespace: [{namespace: NS, names: ['*']}]}]")
	h.expectOnTarget(configMapsV1, "the-first")
	h.expectGoneFromTarget(configMapsV1, "the-converted")
	h.expectUnchangedOnTarget(configMapsV1, second)
}
