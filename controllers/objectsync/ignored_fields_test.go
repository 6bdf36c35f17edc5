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
	"encoding/json"
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	synchubv1alpha1 "github.com/synchub-dev/synchub/apis/synchub/v1alpha1"
	"github.com/synchub-dev/synchub/controllers/plan"
)

const (
	deploymentsTravel = "namespaceScope: {namespaces: [NS], resources: [{group: apps, resource: deployments}]}"
	replicasIgnored   = "ignoreFields: [{path: spec.replicas}]"
)

func newScalingHub(t *testing.T, spec string, change ...func(*plan.Resource)) *testHub {
	t.Helper()
	deployments := resourceNamed(t, deploymentsV1, spec)
	for _, change := range change {
		change(&deployments)
	}
	return newHub(t, []plan.Resource{deployments}, deploymentsTravel)
}

// deployment creates or updates the Deployment web in the mailbox; more is added to its spec.
func (h *testHub) deployment(image, more string) {
	h.t.Helper()
	h.put(deploymentsV1, deploymentIn(h.namespace, "web", image, more))
}

func deploymentIn(namespace, name, image, more string) string {
	return "{apiVersion: apps/v1, kind: Deployment, metadata: {name: " + name + ", namespace: " + namespace + "}, spec: {" + more +
		"selector: {matchLabels: {app: x}}, template: {metadata: {labels: {app: x}}, spec: {containers: [{name: app, image: '" + image + "'}]}}}}"
}

// scale sets the Deployment's replicas on the target, as an autoscaler does.
func (n *targetNamespace) scale(replicas int64) {
	n.t.Helper()
	patch := []byte(`{"spec": {"replicas": ` + mustJSON(replicas) + `}}`)
	if _, err := administrator(n.t).Resource(deploymentsV1).Namespace(n.namespace).Patch(n.t.Context(), "web", types.MergePatchType, patch, metav1.PatchOptions{FieldManager: "autoscaler"}); err != nil {
		n.t.Fatal(err)
	}
}

func mustJSON(value any) string {
	data, _ := json.Marshal(value)
	return string(data)
}

func replicasOf(object *unstructured.Unstructured) int64 {
	replicas, _, _ := unstructured.NestedInt64(object.Object, "spec", "replicas")
	return replicas
}

// deferred returns the fields that are left to the target, from the status of the only config.
func (h *testHub) deferred() (fields []string) {
	h.t.Helper()
	summaries := map[string]*ConfigSummary{}
	h.controllers[deploymentsV1].Status.SummarizeConfigs(summaries)
	for _, summary := range summaries {
		for _, object := range summary.Deferred {
			fields = append(fields, object.Fields...)
		}
		if summary.Synced+int64(len(summary.Deferred)) > summary.Selected {
			h.t.Errorf("an object is counted twice: %+v", summary)
		}
	}
	return fields
}

// runsAs reports whether a Deployment has an image and a number of replicas.
func runsAs(image string, replicas int64) func(*unstructured.Unstructured) bool {
	return func(object *unstructured.Unstructured) bool {
		containers, _, _ := unstructured.NestedSlice(object.Object, "spec", "template", "spec", "containers")
		first, _ := containers[0].(map[string]any)
		return first["image"] == image && replicasOf(object) == replicas
	}
}

// An ignored field is set once, or never. The hub then neither applies nor corrects it when other fields change.
func TestIgnoredFieldsAreTheTargets(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		spec  string
		first int64
	}{
		"set once":  {replicasIgnored, 2},
		"never set": {"ignoreFields: [{path: spec.replicas, onCreate: false}]", 1},
	} {
		t.Run(name, func(t *testing.T) {
			h := newScalingHub(t, test.spec)
			h.deployment("web:1", "replicas: 2, ")
			first := h.expectOnTarget(deploymentsV1, "web", runsAs("web:1", test.first))
			h.expectUnchangedOnTarget(deploymentsV1, first)
			h.scale(7)
			scaled := h.onTarget(deploymentsV1, "web")
			h.expectUnchangedOnTarget(deploymentsV1, scaled)
			h.deployment("web:1", "replicas: 3, ")
			h.expectUnchangedOnTarget(deploymentsV1, scaled)
			h.deployment("web:2", "replicas: 3, ")
			h.expectOnTarget(deploymentsV1, "web", runsAs("web:2", 7))
			// The hub corrects a change of its own fields, and does not set the ignored field.
			if _, err := administrator(t).Resource(deploymentsV1).Namespace(h.namespace).Patch(t.Context(), "web", types.MergePatchType,
				[]byte(`{"spec": {"replicas": 5, "template": {"spec": {"containers": [{"name": "app", "image": "theirs"}]}}}}`), metav1.PatchOptions{}); err != nil {
				t.Fatal(err)
			}
			after := h.expectOnTarget(deploymentsV1, "web", runsAs("web:2", 5))
			h.restart()
			h.expectUnchangedOnTarget(deploymentsV1, after)
		})
	}
}

// Ignoring a field, or no longer ignoring it, changes no value and causes no write until the source changes.
func TestIgnoringIsTurnedOnAndOff(t *testing.T) {
	t.Parallel()
	for name, restart := range map[string]bool{"without a restart": false, "after a restart": true} {
		t.Run(name, func(t *testing.T) {
			h := newScalingHub(t, "")
			plain := h.resources[0]
			turn := func(spec string) {
				t.Helper()
				changed := plain
				changed.Rules = rulesOf(t, spec)
				h.resources = []plan.Resource{changed}
				if restart {
					h.restart()
				} else {
					h.publish(changed)
				}
			}
			h.deployment("web:1", "replicas: 2, ")
			first := h.expectOnTarget(deploymentsV1, "web", runsAs("web:1", 2))
			for _, spec := range []string{replicasIgnored, "", replicasIgnored, "ignoreFields: [{path: spec.replicas, onCreate: false}]", "ignoreFields: [{path: \"spec.template.spec.containers[*].image\"}]"} {
				turn(spec)
				h.expectUnchangedOnTarget(deploymentsV1, first)
			}
			turn(replicasIgnored)
			h.scale(7)
			scaled := h.onTarget(deploymentsV1, "web")
			h.expectUnchangedOnTarget(deploymentsV1, scaled)
			h.deployment("web:2", "replicas: 2, ")
			second := h.expectOnTarget(deploymentsV1, "web", runsAs("web:2", 7))
			if fields := h.deferred(); len(fields) > 0 {
				t.Errorf("an ignored field is reported as deferred: %v", fields)
			}
			turn("")
			h.expectUnchangedOnTarget(deploymentsV1, second)
			h.until("the field is reported as deferred", func() bool { return slices.Equal(h.deferred(), []string{"spec.replicas"}) })
			// The next change of the source applies all fields again.
			h.deployment("web:3", "replicas: 2, ")
			h.expectOnTarget(deploymentsV1, "web", runsAs("web:3", 2))
			h.until("no field is deferred", func() bool { return len(h.deferred()) == 0 })
		})
	}
}

// The hub corrects drift of other fields even if the ignored fields have changed since the object was created.
func TestDriftAfterIgnoringWasTurnedOff(t *testing.T) {
	t.Parallel()
	h := newScalingHub(t, replicasIgnored)
	h.deployment("web:1", "replicas: 2, ")
	h.expectOnTarget(deploymentsV1, "web", runsAs("web:1", 2))
	h.scale(7)
	plain := h.resources[0]
	plain.Rules = nil
	h.resources = []plan.Resource{plain}
	h.publish(plain)
	if _, err := administrator(t).Resource(deploymentsV1).Namespace(h.namespace).Patch(t.Context(), "web", types.MergePatchType,
		[]byte(`{"spec": {"template": {"spec": {"containers": [{"name": "app", "image": "theirs"}]}}}}`), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	repaired := h.expectOnTarget(deploymentsV1, "web", runsAs("web:1", 7))
	h.expectUnchangedOnTarget(deploymentsV1, repaired)
	h.restart()
	h.expectUnchangedOnTarget(deploymentsV1, repaired)
}

// A copy that the hub released and takes over again keeps its ignored fields, although the hub's field manager still owns them.
func TestIgnoredFieldsAndAdoption(t *testing.T) {
	t.Parallel()
	for _, policy := range []synchubv1alpha1.AdoptionPolicy{synchubv1alpha1.AdoptionAlways, synchubv1alpha1.AdoptionIfIdentical} {
		t.Run(string(policy), func(t *testing.T) {
			h := newScalingHub(t, replicasIgnored, func(resource *plan.Resource) { resource.Adoption = policy })
			h.configure("deletionPolicy: Orphan\n" + deploymentsTravel)
			h.deployment("web:1", "replicas: 2, ")
			h.expectOnTarget(deploymentsV1, "web")
			h.waitUntilIdle()
			h.configure()
			h.until("the hub releases the copy", func() bool { return !h.isOwned(h.onTarget(deploymentsV1, "web")) })
			h.configure(deploymentsTravel)
			adopted := h.expectOnTarget(deploymentsV1, "web", runsAs("web:1", 2))
			h.expectUnchangedOnTarget(deploymentsV1, adopted)
			h.scale(7)
			h.deployment("web:2", "replicas: 3, ")
			h.expectOnTarget(deploymentsV1, "web", runsAs("web:2", 7))
		})
	}
	t.Run("another client's object", func(t *testing.T) {
		h := newScalingHub(t, replicasIgnored, func(resource *plan.Resource) { resource.Adoption = synchubv1alpha1.AdoptionAlways })
		put(t, deploymentIn(h.namespace, "web", "theirs", "replicas: 5, "))
		h.deployment("web:1", "replicas: 2, ")
		adopted := h.expectOnTarget(deploymentsV1, "web", runsAs("web:1", 5))
		h.expectUnchangedOnTarget(deploymentsV1, adopted)
	})
}

// A replaced object is created again, with the initial value of the ignored field.
func TestIgnoredFieldsAndReplacement(t *testing.T) {
	t.Parallel()
	h := newScalingHub(t, replicasIgnored, func(resource *plan.Resource) { resource.Replace = true })
	h.deployment("web:1", "replicas: 2, ")
	first := h.expectOnTarget(deploymentsV1, "web", runsAs("web:1", 2))
	h.scale(7)
	h.put(deploymentsV1, "{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, namespace: "+h.namespace+"}, spec: {replicas: 2, "+
		"selector: {matchLabels: {app: other}}, template: {metadata: {labels: {app: other}}, spec: {containers: [{name: app, image: 'web:1'}]}}}}")
	second := h.expectOnTarget(deploymentsV1, "web", runsAs("web:1", 2), func(object *unstructured.Unstructured) bool { return object.GetUID() != first.GetUID() })
	h.expectUnchangedOnTarget(deploymentsV1, second)
}

// An object that is only to be created does not change when ignored fields change.
func TestIgnoredFieldsOfCreateOnlyObjects(t *testing.T) {
	t.Parallel()
	h := newScalingHub(t, replicasIgnored)
	h.put(deploymentsV1, "{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, namespace: "+h.namespace+", annotations: {edge.kubestellar.io/downsync-overwrite: 'false'}}, spec: {replicas: 2, "+
		"selector: {matchLabels: {app: x}}, template: {metadata: {labels: {app: x}}, spec: {containers: [{name: app, image: 'web:1'}]}}}}")
	h.expectOnTarget(deploymentsV1, "web", runsAs("web:1", 2))
	h.scale(4)
	for _, spec := range []string{"", replicasIgnored, "ignoreFields: [{path: spec.paused}]"} {
		changed := h.resources[0]
		changed.Rules = rulesOf(t, spec)
		h.resources = []plan.Resource{changed}
		h.publish(changed)
		h.waitUntilIdle()
		if after := h.onTarget(deploymentsV1, "web"); !runsAs("web:1", 4)(after) || !h.isOwned(after) {
			t.Errorf("%q: it is %v", spec, after)
		}
		settled := h.onTarget(deploymentsV1, "web")
		h.restart()
		h.expectUnchangedOnTarget(deploymentsV1, settled)
	}
}
