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
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/synchub-dev/synchub/controllers/plan"
)

// Related objects of a primary with another namespace on the other side are placed in that namespace, and move with the primary.
func TestRelatedObjectsFollowTheirPrimary(t *testing.T) {
	t.Parallel()
	const moved = `
naming: {namespace: "{{ .Object.metadata.namespace }}-{{ .Object.data.place }}"}
related:
- identifier: key
  origin: Mailbox
  resource: {version: v1, resource: secrets}
  object: {reference: {path: data.key}}
- identifier: made
  origin: Target
  resource: {version: v1, resource: secrets}
  object: {reference: {path: data.made}}
`
	h := newKeyedHub(t, moved, configMapsTravel)
	first, second := h.namespace+"-first", h.namespace+"-second"
	for _, namespace := range []string{first, second} {
		put(t, "{apiVersion: v1, kind: Namespace, metadata: {name: "+namespace+"}}")
		h.createSecretOnTargetIn(namespace, "made", "", "a: eA==")
	}
	h.putSecret("one", "a: eA==")
	h.putConfigMap("box", "place: first, key: one, made: made")
	there := func(resource schema.GroupVersionResource, namespace, name string, want bool) func() bool {
		return func() bool {
			object := onTargetIn(t, resource, namespace, name)
			return (object != nil && h.isOwned(object)) == want
		}
	}
	h.until("the primary is in the first namespace", there(configMapsV1, first, "box", true))
	h.until("the related object is in the first namespace", there(secretsV1, first, "one", true))
	came := h.expectInMailbox(secretsV1, "made")
	h.waitUntilIdle()
	if onTargetIn(t, secretsV1, h.namespace, "one") != nil || onTargetIn(t, secretsV1, second, "one") != nil {
		t.Error("the related object is also in another namespace")
	}
	h.restart()
	h.expectUnchangedInMailbox(came)
	h.putConfigMap("box", "place: second, key: one, made: made")
	h.until("the primary is in the second namespace", there(configMapsV1, second, "box", true))
	h.until("the related object is in the second namespace", there(secretsV1, second, "one", true))
	h.until("the related object is gone from the first namespace", there(secretsV1, first, "one", false))
	h.until("the upsynced object is from the second namespace", func() bool {
		object := h.get(secretsV1, h.namespace, "made")
		return object != nil && strings.Contains(object.GetAnnotations()["synchub.dev/mark"], `"namespace":"`+second+`"`)
	})
	if object := onTargetIn(t, secretsV1, first, "made"); object == nil || object.GetDeletionTimestamp() != nil {
		t.Errorf("the original in the first namespace is %v", object)
	}
}

// Related objects are named after their primary and mutated, and get new names when the primary changes.
func TestRelatedObjectsAreNamedAndChanged(t *testing.T) {
	t.Parallel()
	const called = `
related:
- identifier: key
  origin: Mailbox
  resource: {version: v1, resource: secrets}
  object: {reference: {path: data.key}}
  naming: {name: "{{ .Primary.metadata.labels.prefix }}-{{ .Object.metadata.name }}"}
  mutation: {down: [{set: {path: stringData.where, value: below}}]}
- identifier: made
  origin: Target
  resource: {version: v1, resource: secrets}
  object: {reference: {path: data.made}}
  naming: {name: "{{ .SyncTarget }}-{{ .Object.metadata.name }}"}
  mutation: {up: [{set: {path: data.where, value: YWJvdmU=}}]}
`
	h := newKeyedHub(t, called, configMapsTravel)
	box := func(prefix string) {
		h.put(configMapsV1, "{apiVersion: v1, kind: ConfigMap, metadata: {name: box, namespace: "+h.namespace+", labels: {prefix: "+prefix+"}}, data: {key: one, made: made}}")
	}
	h.putSecret("one", "a: eA==")
	h.createSecretOnTarget("made", "", "a: eA==")
	box("a")
	h.expectOnTarget(secretsV1, "a-one", holds("where", "YmVsb3c="), holds("a", "eA=="))
	h.expectInMailbox(secretsV1, "florin-made", holds("where", "YWJvdmU="))
	below, above := h.onTarget(secretsV1, "a-one"), h.get(secretsV1, h.namespace, "florin-made")
	h.restart()
	h.expectUnchangedOnTarget(secretsV1, below)
	h.expectUnchangedInMailbox(above)
	box("b")
	h.expectOnTarget(secretsV1, "b-one")
	h.expectGoneFromTarget(secretsV1, "a-one")
	// An invalid name is a failure of the related object.
	box("'A_B'")
	h.expectFailure(secretsV1, "one", plan.ReasonInvalid)
	h.expectUnchangedOnTarget(secretsV1, h.onTarget(secretsV1, "b-one"))
	if h.onTarget(secretsV1, "one") != nil || h.get(secretsV1, h.namespace, "made") != nil {
		t.Error("an object exists under its own name")
	}
}

// The status of a related copy returns to its source, unless the relation turns that off.
func TestStatusOfRelatedObjects(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		more string
		want int64
	}{
		"by default":      {"", 3},
		"turned off":      {"statusReturn: false", 0},
		"with a mutation": {"mutation: {up: [{cel: {path: status.replicas, expression: 'value + 10'}}]}", 13},
	} {
		t.Run(name, func(t *testing.T) {
			spec := "related: [{identifier: app, origin: Mailbox, resource: {group: apps, version: v1, resource: deployments}, object: {reference: {path: data.app}}, " + test.more + "}]"
			h := newHub(t, []plan.Resource{resourceNamed(t, configMapsV1, strings.Replace(spec, ", }]", "}]", 1)), resourceNamed(t, deploymentsV1, "")}, configMapsTravel)
			h.deployment("web:1", "")
			h.putConfigMap("box", "app: web")
			h.expectOnTarget(deploymentsV1, "web")
			if _, err := administrator(t).Resource(deploymentsV1).Namespace(h.namespace).Patch(t.Context(), "web", types.MergePatchType,
				[]byte(`{"status": {"replicas": 3}}`), metav1.PatchOptions{}, "status"); err != nil {
				t.Fatal(err)
			}
			replicas := func() int64 {
				count, _, _ := unstructured.NestedInt64(h.get(deploymentsV1, h.namespace, "web").Object, "status", "replicas")
				return count
			}
			if test.want > 0 {
				h.until("the status returns", func() bool { return replicas() == test.want })
			}
			h.waitUntilIdle()
			if got := replicas(); got != test.want {
				t.Errorf("the status has %d replicas", got)
			}
		})
	}
}

// Two primaries in two namespaces of the target share a related object. Its copy is in the namespace of the first, and moves when
// the first claim ends.
func TestRelatedObjectsOfPrimariesInTwoNamespaces(t *testing.T) {
	t.Parallel()
	h := newKeyedHub(t, "naming: {namespace: \"{{ .Object.metadata.namespace }}-{{ .Object.metadata.name }}\"}"+keyed, configMapsTravel)
	h.putSecret("one", "a: eA==")
	for _, name := range []string{"a", "b"} {
		put(t, "{apiVersion: v1, kind: Namespace, metadata: {name: "+h.namespace+"-"+name+"}}")
		h.putConfigMap(name, "key: one")
		h.until("the primary is on the target", func() bool { return onTargetIn(t, configMapsV1, h.namespace+"-"+name, name) != nil })
	}
	with := func(name string) bool {
		object := onTargetIn(t, secretsV1, h.namespace+"-"+name, "one")
		return object != nil && h.isOwned(object)
	}
	h.until("the copy is with the first", func() bool { return with("a") && !with("b") })
	h.waitUntilIdle()
	before := onTargetIn(t, secretsV1, h.namespace+"-a", "one")
	for range 2 {
		h.restart()
		h.waitUntilIdle()
		if after := onTargetIn(t, secretsV1, h.namespace+"-a", "one"); after == nil || after.GetResourceVersion() != before.GetResourceVersion() || with("b") {
			t.Errorf("after a restart the copy was %v\nand is %v", before, after)
		}
	}
	h.drop(configMapsV1, h.namespace, "a")
	h.until("the copy is with the second", func() bool { return with("b") && !with("a") })
}
