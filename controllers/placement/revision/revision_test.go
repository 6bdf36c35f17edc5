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

package revision_test

import (
	"errors"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/synchub-dev/synchub/controllers/placement/revision"
)

const before = `
apiVersion: apps/v1
kind: Deployment
metadata:
  name: till
  namespace: shop
  uid: "1"
  resourceVersion: "7"
  generation: 3
  labels: {edition: "1"}
  annotations: {note: old, kubestellar.io/executing-count: "2", kubectl.kubernetes.io/last-applied-configuration: "{}"}
spec: {replicas: 1, paused: true}
status: {replicas: 1}
`

func parse(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	object := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), &object.Object); err != nil {
		t.Fatal(err)
	}
	return object
}

func TestContentAndRestore(t *testing.T) {
	t.Parallel()
	content := revision.Content(parse(t, before))
	want := parse(t, `
apiVersion: apps/v1
kind: Deployment
metadata: {name: till, namespace: shop, labels: {edition: "1"}, annotations: {note: old}}
spec: {replicas: 1, paused: true}
`)
	expect := func(what string, got, want *unstructured.Unstructured) {
		t.Helper()
		gotText, _ := yaml.Marshal(got.Object)
		wantText, _ := yaml.Marshal(want.Object)
		if string(gotText) != string(wantText) {
			t.Errorf("%s:\n%s", what, gotText)
		}
	}
	expect("content", content, want)
	if revision.Restore(content, parse(t, before)) != nil {
		t.Error("an object that has the content is restored")
	}
	after := parse(t, before)
	after.SetResourceVersion("8")
	after.SetLabels(map[string]string{"edition": "2", "new": "yes"})
	after.SetAnnotations(map[string]string{"note": "new", "more": "yes", "kubestellar.io/executing-count": "3"})
	after.Object["spec"] = map[string]any{"replicas": int64(2), "selector": map[string]any{}}
	after.Object["status"] = map[string]any{"replicas": int64(2)}
	restored := revision.Restore(content, after)
	expect("restored", restored, parse(t, `
apiVersion: apps/v1
kind: Deployment
metadata: {name: till, namespace: shop, uid: "1", resourceVersion: "8", generation: 3, labels: {edition: "1"}, annotations: {note: old, kubestellar.io/executing-count: "3"}}
spec: {replicas: 1, paused: true}
status: {replicas: 2}
`))
	if revision.Restore(content, restored) != nil {
		t.Error("a restored object is restored again")
	}
	if content.GetLabels()["edition"] != "1" || after.GetLabels()["edition"] != "2" {
		t.Error("an argument was changed")
	}
}

func TestEncode(t *testing.T) {
	t.Parallel()
	content := revision.Content(parse(t, before))
	encoded, err := revision.Encode([]*unstructured.Unstructured{content, content})
	if err != nil || len(encoded) != 2 || !strings.Contains(string(encoded[0].Raw), `"name":"till"`) {
		t.Errorf("%v %v", encoded, err)
	}
	content.SetAnnotations(map[string]string{"long": strings.Repeat("x", revision.MaxBytes/2)})
	_, err = revision.Encode([]*unstructured.Unstructured{content, content})
	if !errors.Is(err, revision.ErrTooLarge) {
		t.Errorf("%v", err)
	}
}

func TestSecretsAreNotKept(t *testing.T) {
	t.Parallel()
	if revision.Keeps(schema.GroupResource{Resource: "secrets"}) || !revision.Keeps(schema.GroupResource{Group: "example.org", Resource: "secrets"}) {
		t.Error("Secrets are kept")
	}
}
