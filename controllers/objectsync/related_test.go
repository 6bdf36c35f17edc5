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
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/synchub-dev/synchub/controllers/plan"
)

// keyed lets ConfigMaps travel with the Secrets that they name by themselves, or in a list.
const keyed = `
related:
- identifier: key
  origin: Mailbox
  resource: {version: v1, resource: secrets}
  object: {reference: {path: data.key}}
- identifier: more
  origin: Mailbox
  resource: {version: v1, resource: secrets}
  object: {reference: {path: data.more}}
`

// configMapsTravel is a config that selects all ConfigMaps of the namespace.
const configMapsTravel = "namespaceScope: {namespaces: [NS], resources: [{group: '', resource: configmaps}]}"

func newKeyedHub(t *testing.T, spec string, configs ...string) *testHub {
	t.Helper()
	return newHub(t, []plan.Resource{resourceNamed(t, configMapsV1, spec), resourceNamed(t, secretsV1, "")}, configs...)
}

// putConfigMap puts a ConfigMap into the mailbox, and putSecret a Secret.
func (h *testHub) putConfigMap(name, data string) {
	h.t.Helper()
	h.put(configMapsV1, "{apiVersion: v1, kind: ConfigMap, metadata: {name: "+name+", namespace: "+h.namespace+"}, data: {"+data+"}}")
}

func (h *testHub) putSecret(name, data string) {
	h.t.Helper()
	h.put(secretsV1, "{apiVersion: v1, kind: Secret, metadata: {name: "+name+", namespace: "+h.namespace+"}, data: {"+data+"}}")
}

// holds reports whether an object has a value in its data.
func holds(key, value string) func(*unstructured.Unstructured) bool {
	return func(object *unstructured.Unstructured) bool {
		got, _, _ := unstructured.NestedString(object.Object, "data", key)
		return got == value
	}
}

// The related objects of a primary are synced, follow changes of their sources, and are deleted with the last claim.
func TestRelatedObjectsGoDown(t *testing.T) {
	t.Parallel()
	h := newKeyedHub(t, keyed, configMapsTravel)
	h.putSecret("one", "a: eA==")
	h.putSecret("two", "a: eA==")
	h.putConfigMap("first", "key: one")
	h.expectOnTarget(configMapsV1, "first")
	h.expectOnTarget(secretsV1, "one", holds("a", "eA=="))
	h.putSecret("one", "a: dw==")
	h.expectOnTarget(secretsV1, "one", holds("a", "dw=="))
	if h.onTarget(secretsV1, "two") != nil {
		t.Error("an object without a claim was synced")
	}
	h.putConfigMap("second", "key: two, more: one")
	h.expectOnTarget(secretsV1, "two")
	h.drop(configMapsV1, h.namespace, "first")
	h.expectGoneFromTarget(configMapsV1, "first")
	h.expectUnchangedOnTarget(secretsV1, h.onTarget(secretsV1, "one"), h.onTarget(secretsV1, "two"))
	h.putConfigMap("second", "key: two")
	h.expectGoneFromTarget(secretsV1, "one")
	h.expectUnchangedOnTarget(secretsV1, h.onTarget(secretsV1, "two"))
	h.configure()
	h.expectGoneFromTarget(configMapsV1, "second")
	h.expectGoneFromTarget(secretsV1, "two")
	if h.get(secretsV1, h.namespace, "two") == nil || h.get(secretsV1, h.namespace, "one") == nil {
		t.Error("a source was deleted")
	}
}
