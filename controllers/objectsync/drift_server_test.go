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
	"maps"
	"reflect"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	synchubv1alpha1 "github.com/synchub-dev/synchub/apis/synchub/v1alpha1"
	"github.com/synchub-dev/synchub/controllers/plan"
	"github.com/synchub-dev/synchub/controllers/plan/ownership"
	"github.com/synchub-dev/synchub/provider/metrics/requestmetrics"
	"github.com/synchub-dev/synchub/provider/requestclass"
	"github.com/synchub-dev/synchub/test/framework"
)

// reporting returns a resource whose drift is only reported.
func reporting(resource plan.Resource) plan.Resource {
	resource.ReportsDrift = true
	return resource
}

// changeAs changes an object on the target as another client, and returns the result.
func (n *targetNamespace) changeAs(manager string, resource schema.GroupVersionResource, name, patch string, subresources ...string) *unstructured.Unstructured {
	n.t.Helper()
	changed, err := administrator(n.t).Resource(resource).Namespace(n.namespace).Patch(n.t.Context(), name, types.MergePatchType, []byte(patch), metav1.PatchOptions{FieldManager: manager}, subresources...)
	if err != nil {
		n.t.Fatal(err)
	}
	return changed
}

// failureOf returns why an object fails; zero if it does not.
func (h *testHub) failureOf(resource schema.GroupVersionResource, name string) Failure {
	return h.controllers[resource].Status.states.failures()[types.NamespacedName{Namespace: h.namespace, Name: name}]
}

// expectDifferences waits until an object is reported with differences.
func (h *testHub) expectDifferences(resource schema.GroupVersionResource, name string, want ...edgev2alpha1.FieldDifference) {
	h.t.Helper()
	var failure Failure
	defer func() {
		if h.t.Failed() {
			h.t.Logf("the last report: %q of %+v", failure.Message, failure.FieldDifferences())
		}
	}()
	h.until("the differences of "+name+" are reported", func() bool {
		failure = h.failureOf(resource, name)
		return failure.Differences != nil && reflect.DeepEqual(*failure.Differences, want)
	})
}

// expectSynced waits until an object does not fail.
func (h *testHub) expectSynced(resource schema.GroupVersionResource, name string) {
	h.t.Helper()
	h.waitUntilIdle()
	h.until(name+" does not fail", func() bool { return h.failureOf(resource, name).Reason == "" })
}

// events returns the number of events in the mailbox.
func (h *testHub) events() (count int) {
	h.locked(func() { count = len(h.objects[eventsResource]) })
	return count
}

// requestsToTargets returns the number of the hub's requests to targets about objects, by verb.
func requestsToTargets(t *testing.T) map[string]float64 {
	t.Helper()
	sent := map[string]float64{}
	for _, one := range framework.Gather(t, requestmetrics.Collectors()...) {
		if one.Labels["destination"] == string(requestmetrics.Target) && one.Labels["class"] != string(requestclass.Background) {
			sent[one.Labels["verb"]] += one.Value
		}
	}
	return sent
}

// expectRequests fails the test unless the hub, once it is idle, has sent exactly these requests since.
func (h *testHub) expectRequests(t *testing.T, since, want map[string]float64) {
	t.Helper()
	h.waitUntilIdle()
	now := requestsToTargets(t)
	maps.DeleteFunc(now, func(verb string, count float64) bool { return count == since[verb] })
	for verb := range now {
		now[verb] -= since[verb]
	}
	if !maps.Equal(now, want) {
		t.Errorf("want the requests %v, got %v", want, now)
	}
}

// With Report the hub writes nothing when another client changes a copy, and reads the copy once for each change. It counts requests, so it
// does not run in parallel.
func TestReportedDrift(t *testing.T) {
	h := newHub(t, []plan.Resource{reporting(resourceNamed(t, configMapsV1, ""))}, configMapsTravel)
	h.putConfigMap("settings", "a: x, b: x")
	h.expectOnTarget(configMapsV1, "settings")
	h.waitUntilIdle()
	h.written()
	before := requestsToTargets(t)

	drifted := h.changeAs("kubectl-edit", configMapsV1, "settings", `{"data": {"a": "theirs"}}`)
	h.expectDifferences(configMapsV1, "settings", edgev2alpha1.FieldDifference{Path: ".data.a", Managers: []string{"kubectl-edit"}, Desired: `"x"`, Observed: `"theirs"`})
	h.expectUnchangedOnTarget(configMapsV1, drifted)
	h.expectRequests(t, before, map[string]float64{"get": 1})
	failure := h.failureOf(configMapsV1, "settings")
	if failure.Reason != plan.ReasonDrifted || !strings.Contains(failure.Message, ".data.a (kubectl-edit)") || strings.Contains(failure.Message, "theirs") || h.events() != 1 {
		t.Errorf("%+v, %d events", failure, h.events())
	}
	h.controllers[configMapsV1].Resume()
	h.expectRequests(t, before, map[string]float64{"get": 1})

	drifted = h.changeAs("kubectl-edit", configMapsV1, "settings", `{"data": {"a": "again", "b": null}}`)
	h.expectDifferences(configMapsV1, "settings",
		edgev2alpha1.FieldDifference{Path: ".data.a", Managers: []string{"kubectl-edit"}, Desired: `"x"`, Observed: `"again"`},
		edgev2alpha1.FieldDifference{Path: ".data.b", Desired: `"x"`})
	h.expectUnchangedOnTarget(configMapsV1, drifted)
	h.expectRequests(t, before, map[string]float64{"get": 2})
	if h.events() != 1 {
		t.Errorf("%d events about one object that differs", h.events())
	}

	back := h.changeAs("kubectl-edit", configMapsV1, "settings", `{"data": {"a": "x", "b": "x"}}`)
	h.expectSynced(configMapsV1, "settings")
	h.expectUnchangedOnTarget(configMapsV1, back)
	h.expectRequests(t, before, map[string]float64{"get": 3})
	if writes := h.written(); len(writes) > 0 {
		t.Errorf("writes to the mailbox: %v", writes)
	}
}

// A change of the source is applied, and takes fields back that another client has changed. So does a change to Repair.
func TestReportedDriftIsTakenBack(t *testing.T) {
	t.Parallel()
	reported := reporting(resourceNamed(t, configMapsV1, ""))
	repaired := reported
	repaired.ReportsDrift = false
	h := newHub(t, []plan.Resource{reported}, configMapsTravel)
	drift := func() *unstructured.Unstructured {
		t.Helper()
		drifted := h.changeAs("somebody", configMapsV1, "settings", `{"data": {"a": "theirs"}}`)
		h.expectFailure(configMapsV1, "settings", plan.ReasonDrifted)
		h.expectUnchangedOnTarget(configMapsV1, drifted)
		return drifted
	}
	expectRepaired := func(value string) {
		t.Helper()
		h.expectOnTarget(configMapsV1, "settings", holds("a", value))
		h.expectSynced(configMapsV1, "settings")
	}
	h.putConfigMap("settings", "a: x")
	h.expectOnTarget(configMapsV1, "settings")
	h.waitUntilIdle()
	drifted := drift()
	h.restart()
	h.expectFailure(configMapsV1, "settings", plan.ReasonDrifted)
	h.expectUnchangedOnTarget(configMapsV1, drifted)
	h.putConfigMap("settings", "a: z")
	expectRepaired("z")
	drift()
	h.publish(repaired)
	expectRepaired("z")
	h.publish(reported)
	drift()
	h.configure("namespaceScope: {namespaces: [NS], resources: [{group: '', resource: configmaps, drift: Repair}]}")
	expectRepaired("z")
	h.configure(configMapsTravel)
	drift()
	h.put(configMapsV1, "{apiVersion: v1, kind: ConfigMap, metadata: {name: settings, namespace: "+h.namespace+", annotations: {synchub.dev/drift: Repair}}, data: {a: z}}")
	expectRepaired("z")
	if copied := h.onTarget(configMapsV1, "settings"); copied.GetAnnotations()[edgev2alpha1.AnnotationDrift] != "" {
		t.Errorf("the setting is on the cluster: %v", copied.GetAnnotations())
	}
}

// An object, or an entry of a config, leaves further fields to the target. A wrong setting is a failure of its object alone.
func TestSettingsOfObjects(t *testing.T) {
	t.Parallel()
	h := newHub(t, []plan.Resource{resourceNamed(t, configMapsV1, "ignoreFields: [{path: data.a}]")},
		"namespaceScope: {namespaces: [NS], resources: [{group: '', resource: configmaps, ignoreFields: [data.b]}]}")
	put := func(name, annotation string) {
		t.Helper()
		h.put(configMapsV1, "{apiVersion: v1, kind: ConfigMap, metadata: {name: "+name+", namespace: "+h.namespace+", annotations: {"+annotation+"}}, data: {a: x, b: x, c: x, d: x}}")
	}
	put("settings", "synchub.dev/ignore-fields: data.c")
	put("wrong", "synchub.dev/ignore-fields: metadata.name")
	h.expectOnTarget(configMapsV1, "settings", holds("c", "x"))
	h.waitUntilIdle()
	h.changeAs("somebody", configMapsV1, "settings", `{"data": {"a": "t", "b": "t", "c": "t", "d": "t"}}`)
	repaired := h.expectOnTarget(configMapsV1, "settings", holds("d", "x"))
	if want := map[string]any{"a": "t", "b": "t", "c": "t", "d": "x"}; !reflect.DeepEqual(repaired.Object["data"], want) {
		t.Errorf("want %v, got %v", want, repaired.Object["data"])
	}
	h.expectFailure(configMapsV1, "wrong", plan.ReasonInvalid)
	if failure := h.failureOf(configMapsV1, "wrong"); !strings.Contains(failure.Message, edgev2alpha1.AnnotationIgnoreFields) || h.onTarget(configMapsV1, "wrong") != nil {
		t.Errorf("%+v", failure)
	}
	put("wrong", "synchub.dev/ignore-fields: data.c")
	h.expectOnTarget(configMapsV1, "wrong")
}

// Values of Secrets are not reported.
func TestReportedDriftOfSecrets(t *testing.T) {
	t.Parallel()
	h := newHub(t, []plan.Resource{reporting(resourceNamed(t, secretsV1, ""))}, "namespaceScope: {namespaces: [NS], resources: [{group: '', resource: secrets}]}")
	h.putSecret("password", "a: eA==")
	h.expectOnTarget(secretsV1, "password")
	h.waitUntilIdle()
	h.changeAs("somebody", secretsV1, "password", `{"data": {"a": "eQ=="}}`)
	h.expectDifferences(secretsV1, "password", edgev2alpha1.FieldDifference{Path: ".data.a", Managers: []string{"somebody"}})
}

// The status of a drifted copy is returned, and costs no request to the target. It counts requests, so it does not run in parallel.
func TestStatusOfDriftedCopies(t *testing.T) {
	h := newScalingHub(t, "", func(resource *plan.Resource) { resource.ReportsDrift = true })
	h.deployment("web:1", "replicas: 2, ")
	h.expectOnTarget(deploymentsV1, "web")
	h.waitUntilIdle()
	h.changeAs("autoscaler", deploymentsV1, "web", `{"spec": {"replicas": 7}}`)
	h.expectDifferences(deploymentsV1, "web", edgev2alpha1.FieldDifference{Path: ".spec.replicas", Managers: []string{"autoscaler"}, Desired: "2", Observed: "7"})
	h.waitUntilIdle()
	before := requestsToTargets(t)
	drifted := h.changeAs("controller", deploymentsV1, "web", `{"status": {"replicas": 7}}`, "status")
	h.expectInMailbox(deploymentsV1, "web", func(object *unstructured.Unstructured) bool {
		replicas, _, _ := unstructured.NestedInt64(object.Object, "status", "replicas")
		return replicas == 7
	})
	h.expectUnchangedOnTarget(deploymentsV1, drifted)
	h.expectRequests(t, before, map[string]float64{})
}

// The hub restores its label on a drifted copy, which it could not watch without, and changes nothing else.
func TestReportedDriftWithoutTheLabel(t *testing.T) {
	t.Parallel()
	h := newHub(t, []plan.Resource{reporting(resourceNamed(t, configMapsV1, ""))}, configMapsTravel)
	h.putConfigMap("settings", "a: x")
	h.expectOnTarget(configMapsV1, "settings")
	h.waitUntilIdle()
	h.changeAs("somebody", configMapsV1, "settings", `{"data": {"a": "theirs"}, "metadata": {"labels": {"`+ownership.OwnerLabel+`": null}}}`)
	labelled := h.expectOnTarget(configMapsV1, "settings", holds("a", "theirs"))
	h.expectDifferences(configMapsV1, "settings", edgev2alpha1.FieldDifference{Path: ".data.a", Managers: []string{"somebody"}, Desired: `"x"`, Observed: `"theirs"`})
	h.expectUnchangedOnTarget(configMapsV1, labelled)
}

// With Report the hub takes over no object, and reports which fields it would change. It does so with Repair.
func TestReportedAdoption(t *testing.T) {
	t.Parallel()
	adopting := reporting(resourceNamed(t, configMapsV1, ""))
	adopting.Adoption = synchubv1alpha1.AdoptionAlways
	h := newHub(t, []plan.Resource{adopting}, configMapsTravel)
	create := func(name, data string) *unstructured.Unstructured {
		t.Helper()
		put(t, "{apiVersion: v1, kind: ConfigMap, metadata: {name: "+name+", namespace: "+h.namespace+"}, data: {"+data+"}}")
		return h.onTarget(configMapsV1, name)
	}
	before := []*unstructured.Unstructured{create("differs", "a: theirs, more: z"), create("equal", "a: x")}
	create("leaves", "a: theirs")
	h.putConfigMap("differs", "a: x, b: x")
	h.putConfigMap("equal", "a: x")
	h.putConfigMap("leaves", "a: x")
	manager := before[0].GetManagedFields()[0].Manager
	h.expectDifferences(configMapsV1, "differs", edgev2alpha1.FieldDifference{Path: ".data.a", Managers: []string{manager}}, edgev2alpha1.FieldDifference{Path: ".data.b"})
	h.expectFailure(configMapsV1, "equal", plan.ReasonAdoptionReported)
	h.expectFailure(configMapsV1, "leaves", plan.ReasonAdoptionReported)
	// The deletion of an object that may be adopted wakes the source.
	if err := administrator(t).Resource(configMapsV1).Namespace(h.namespace).Delete(t.Context(), "leaves", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	h.expectOnTarget(configMapsV1, "leaves", holds("a", "x"))
	h.expectUnchangedOnTarget(configMapsV1, before...)
	for name, want := range map[string]string{"differs": "It would change .data.a (" + manager + "), .data.b.", "equal": "It would change nothing but its marks."} {
		if message := h.failureOf(configMapsV1, name).Message; !strings.Contains(message, want) {
			t.Errorf("%s: %s", name, message)
		}
	}
	adopting.ReportsDrift = false
	h.publish(adopting)
	adopted := h.expectOnTarget(configMapsV1, "differs", holds("a", "x"), holds("more", "z"))
	h.expectOnTarget(configMapsV1, "equal")
	h.expectSynced(configMapsV1, "differs")
	if adopted.GetUID() != before[0].GetUID() {
		t.Error("the object was replaced")
	}
}
