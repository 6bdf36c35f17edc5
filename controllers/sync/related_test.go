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

package sync

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
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

// configs that let all ConfigMaps of the namespace travel.
const configMapsTravel = "namespaceScope: {namespaces: [NS], resources: [{group: '', resource: configmaps}]}"

func keyedHub(t *testing.T, spec string, configs ...string) *hub {
	t.Helper()
	return newHub(t, []Resource{resourceNamed(t, configMapsV1, spec), resourceNamed(t, secretsV1, "")}, configs...)
}

// box is a ConfigMap of the mailbox; secret a Secret.
func (h *hub) box(name, data string) {
	h.t.Helper()
	h.put(configMapsV1, "{apiVersion: v1, kind: ConfigMap, metadata: {name: "+name+", namespace: "+h.namespace+"}, data: {"+data+"}}")
}

func (h *hub) secret(name, data string) {
	h.t.Helper()
	h.put(secretsV1, "{apiVersion: v1, kind: Secret, metadata: {name: "+name+", namespace: "+h.namespace+"}, data: {"+data+"}}")
}

// holds tells whether an object has a value in its data.
func holds(key, value string) func(*unstructured.Unstructured) bool {
	return func(object *unstructured.Unstructured) bool {
		got, _, _ := unstructured.NestedString(object.Object, "data", key)
		return got == value
	}
}

// What an object names travels with it, follows its changes, and goes when the last that names it lets go.
func TestRelatedObjectsGoDown(t *testing.T) {
	h := keyedHub(t, keyed, configMapsTravel)
	h.secret("one", "a: eA==")
	h.secret("two", "a: eA==")
	h.box("first", "key: one")
	h.goesDown(configMapsV1, "first")
	h.goesDown(secretsV1, "one", holds("a", "eA=="))
	h.secret("one", "a: dw==")
	h.goesDown(secretsV1, "one", holds("a", "dw=="))
	if h.below(secretsV1, "two") != nil {
		t.Error("what nobody names has travelled")
	}
	h.box("second", "key: two, more: one")
	h.goesDown(secretsV1, "two")
	h.drop(configMapsV1, h.namespace, "first")
	h.leaves(configMapsV1, "first")
	h.stays(secretsV1, h.below(secretsV1, "one"), h.below(secretsV1, "two"))
	h.box("second", "key: two")
	h.leaves(secretsV1, "one")
	h.stays(secretsV1, h.below(secretsV1, "two"))
	h.configure()
	h.leaves(configMapsV1, "second")
	h.leaves(secretsV1, "two")
	if h.get(secretsV1, h.namespace, "two") == nil || h.get(secretsV1, h.namespace, "one") == nil {
		t.Error("an original was deleted")
	}
}
