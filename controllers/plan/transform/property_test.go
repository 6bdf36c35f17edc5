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

package transform_test

import (
	"encoding/json"
	"errors"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/synchub-dev/synchub/controllers/plan/ownership"
	"github.com/synchub-dev/synchub/controllers/plan/transform"
	"github.com/synchub-dev/synchub/test/fixtures"
	"github.com/synchub-dev/synchub/test/tier"
)

// checkDesired computes the desired object for a source and checks the invariants for any source.
func checkDesired(t *testing.T, source *unstructured.Unstructured) {
	t.Helper()
	before := source.DeepCopy()
	desired, err := down.Desired(source, transform.SyncSpec{Policy: ownership.PolicyOrphan})
	if _, refused := errors.AsType[*transform.InvalidObjectError](err); refused {
		if source.GroupVersionKind() != (schema.GroupVersionKind{Version: "v1", Kind: "Secret"}) || desired != nil {
			t.Fatalf("%v and %v", desired, err)
		}
		return
	}
	if !reflect.DeepEqual(source, before) {
		t.Fatalf("the source was changed\nfrom %v\nto   %v", before, source)
	}
	if err != nil {
		t.Fatalf("refused %v: %v", source, err)
	}
	checkNothingExcluded(t, desired.Object)
	if _, err := down.Owner.Verify(desired.Object.GetAnnotations(), desired.Mark.Self); err != nil {
		t.Errorf("the mark does not verify: %v", err)
	}
	if _, ok := desired.Object.GetAnnotations()["deployment.kubernetes.io/revision"]; ok {
		t.Error("the revision is synced")
	}
	if self, want := desired.Mark.Self, transform.SelfOf(source); self != want {
		t.Errorf("want self %+v, got %+v", want, self)
	}

	// A change of the result must not change the source, which may be shared with an informer.
	scribbled := desired.Object.DeepCopy()
	fixtures.Scribble(desired.Object.Object)
	if !reflect.DeepEqual(source, before) {
		t.Fatalf("the desired object shares parts with the source %v", before)
	}

	again := scribbled.DeepCopy()
	again.SetUID(source.GetUID())
	second, err := down.Desired(again, transform.SyncSpec{Policy: ownership.PolicyOrphan})
	if err != nil {
		t.Fatal(err)
	}
	if second.Mark != desired.Mark || !reflect.DeepEqual(second.Object, scribbled) {
		t.Errorf("not idempotent: first %v\nthen %v", scribbled, second.Object)
	}
}

// checkUpDesired computes the mailbox object for a target object and checks the invariants for any object.
func checkUpDesired(t *testing.T, target *unstructured.Unstructured) {
	t.Helper()
	before := target.DeepCopy()
	up := transform.Up{
		Owner: down.Owner, Mailbox: down.Mailbox, Hasher: down.Hasher,
		Resource: schema.GroupResource{Group: "apps", Resource: "raised"}, Version: "v7", Kind: "Raised",
	}
	desired, err := up.Desired(target, targetResource, transform.SyncSpec{Policy: ownership.PolicyDelete})
	if !reflect.DeepEqual(target, before) {
		t.Fatalf("the target's object was changed\nfrom %v\nto   %v", before, target)
	}
	if _, refused := errors.AsType[*transform.InvalidObjectError](err); refused {
		if target.GroupVersionKind() != (schema.GroupVersionKind{Version: "v1", Kind: "Secret"}) {
			t.Fatalf("refused %v: %v", target, err)
		}
		return
	}
	if err != nil {
		t.Fatalf("refused %v: %v", target, err)
	}
	checkNothingExcluded(t, desired.Object)
	want := ownership.Self{Group: "apps", Kind: "Raised", Namespace: target.GetNamespace(), Name: target.GetName()}
	if desired.Mark.Self != want || transform.SelfOf(desired.Object) != want {
		t.Errorf("want self %+v, got %+v", want, desired.Mark.Self)
	}
	if mark, err := down.Owner.VerifyUp(desired.Object.GetAnnotations(), want); err != nil || mark != desired.Mark {
		t.Errorf("the mark does not verify: %+v, %v", mark, err)
	}
	if missing := transform.MissingPaths(desired.Object.Object, desired.Object.DeepCopy().Object); len(missing) > 0 {
		t.Errorf("an object lacks of itself %v", missing)
	}
	fixtures.Scribble(desired.Object.Object)
	if !reflect.DeepEqual(target, before) {
		t.Fatalf("the desired object shares parts with the target's %v", before)
	}
}

// checkNothingExcluded fails the test if the desired object has a field that must not be synced.
func checkNothingExcluded(t *testing.T, desired *unstructured.Unstructured) {
	t.Helper()
	if _, ok := desired.Object["status"]; ok {
		t.Error("the status is synced")
	}
	for field := range desired.Object["metadata"].(map[string]any) {
		if !slices.Contains([]string{"name", "namespace", "labels", "annotations"}, field) {
			t.Errorf("metadata.%s is synced", field)
		}
	}
	if value := desired.GetLabels()[ownership.OwnerLabel]; value != down.Owner.LabelValue() {
		t.Errorf("the owner label is %q", value)
	}
	labels, annotations := slices.Collect(maps.Keys(desired.GetLabels())), slices.Collect(maps.Keys(desired.GetAnnotations()))
	for _, key := range slices.Concat(labels, annotations) {
		if strings.Contains(key, ".kcp.io/") || strings.HasPrefix(key, "kcp.io/") {
			t.Errorf("%s is synced", key)
		}
	}
	for _, key := range []string{
		ownership.EnsuredAnnotation, "kubectl.kubernetes.io/last-applied-configuration",
		ownership.KubeStellarDownsynced, ownership.KubeStellarUpsynced, "edge.kubestellar.io/customizer", "edge.kubestellar.io/expand-parameters",
	} {
		if slices.Contains(annotations, key) {
			t.Errorf("the annotation %s is synced", key)
		}
	}
	if desired.GroupVersionKind() == (schema.GroupVersionKind{Version: "v1", Kind: "Secret"}) && desired.Object["stringData"] != nil {
		t.Error("stringData is synced")
	}
}

// The content of a custom resource is not changed: nulls, also in lists, and empty maps and lists are kept.
func TestContentIsUnchanged(t *testing.T) {
	for seed := range uint64(1000) {
		g := seeded(seed)
		content := g.object(4, "spec", "values", "template", "list", "nothing", "")
		source := &unstructured.Unstructured{Object: content}
		source.SetAPIVersion("example.com/v1")
		source.SetKind("Any")
		source.SetName("a")
		delete(content, "status")
		up := transform.Up{
			Owner: down.Owner, Mailbox: down.Mailbox, Hasher: down.Hasher,
			Resource: schema.GroupResource{Group: "example.com", Resource: "anies"}, Version: "v1", Kind: "Any",
		}
		want := source.DeepCopy().Object
		delete(want, "metadata")
		for direction, desiredOf := range map[string]func() (*transform.Desired, error){
			"down": func() (*transform.Desired, error) { return down.Desired(source, transform.SyncSpec{}) },
			"up":   func() (*transform.Desired, error) { return up.Desired(source, up.Resource, transform.SyncSpec{}) },
		} {
			desired, err := desiredOf()
			if err != nil {
				t.Fatal(err)
			}
			delete(desired.Object.Object, "metadata")
			if !reflect.DeepEqual(desired.Object.Object, want) {
				t.Fatalf("seed %d: %s\nwant %v\ngot  %v", seed, direction, want, desired.Object.Object)
			}
		}
	}
}

type generator struct{ *rand.Rand }

func seeded(seed uint64) generator {
	return generator{rand.New(rand.NewPCG(seed, 0))} //nolint:gosec // the same objects in every run
}

func (g generator) pick(names ...string) string { return names[g.IntN(len(names))] }

func (g generator) value(depth int) any {
	if depth == 0 {
		return []any{nil, "", "x", int64(0), int64(-7), 1.5, true, false}[g.IntN(8)]
	}
	switch g.IntN(3) {
	case 0:
		return g.value(0)
	case 1:
		list := make([]any, g.IntN(4))
		for index := range list {
			list[index] = g.value(depth - 1)
		}
		return list
	default:
		return g.object(depth-1, "a", "metadata", "status", "spec", "stringData", "uid", "kcp.io/x")
	}
}

func (g generator) object(depth int, names ...string) map[string]any {
	result := map[string]any{}
	for range g.IntN(2 * len(names)) {
		result[g.pick(names...)] = g.value(depth)
	}
	return result
}

func (g generator) entries() any {
	if g.IntN(8) == 0 {
		return g.value(2)
	}
	result := map[string]any{}
	for range g.IntN(6) {
		key := g.pick("a", "example.com/a", "kcp.io/cluster", "x.kcp.io/y", "kcp.io", ownership.OwnerLabel, ownership.MarkAnnotation,
			ownership.EnsuredAnnotation, ownership.KubeStellarDownsynced, ownership.KubeStellarUpsynced, "edge.kubestellar.io/projected",
			"edge.kubestellar.io/customizer", "deployment.kubernetes.io/revision", "kubernetes.io/service-account.name",
			"openshift.io/token-secret.name", "kubectl.kubernetes.io/last-applied-configuration", "kubernetes.io/metadata.name", "")
		result[key] = g.pick("", "x", "{}")
		if g.IntN(6) == 0 {
			result[key] = g.value(1)
		}
	}
	return result
}

func (g generator) source() *unstructured.Unstructured {
	content := g.object(3, "data", "stringData", "spec", "status", "type", "rules", "immutable", "")
	metadata := g.object(2, "generateName", "selfLink", "resourceVersion", "generation", "creationTimestamp", "managedFields",
		"ownerReferences", "finalizers", "deletionTimestamp", "deletionGracePeriodSeconds", "unknown")
	metadata["name"] = g.pick("a", "web")
	metadata["uid"] = g.pick("1", "2")
	if g.IntN(2) == 0 {
		metadata["namespace"] = g.pick("shop", "")
	}
	for _, field := range []string{"labels", "annotations"} {
		if g.IntN(4) > 0 {
			metadata[field] = g.entries()
		}
	}
	content["metadata"] = metadata
	content["apiVersion"] = g.pick("v1", "apps/v1", "example.com/v1alpha1")
	content["kind"] = g.pick("Secret", "Namespace", "Deployment", "ConfigMap", "CustomResourceDefinition")
	if g.IntN(3) == 0 {
		content["type"] = g.pick("Opaque", "kubernetes.io/service-account-token", "kubernetes.io/dockercfg")
	}
	return &unstructured.Unstructured{Object: content}
}

func TestDesiredOfAnything(t *testing.T) {
	tier.Thorough(t)
	for seed := range uint64(1500) {
		checkDesired(t, seeded(seed).source())
		checkUpDesired(t, seeded(seed).source())
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

func FuzzDesired(f *testing.F) {
	for seed := range uint64(20) {
		data, err := json.Marshal(seeded(seed).source().Object)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(data), "uid")
	}
	f.Add(`{"kind":"Secret","apiVersion":"v1","metadata":{"labels":{"a":null}},"stringData":{"a":1},"data":[]}`, "")
	f.Add(`{"kind":"Namespace","apiVersion":"v1","metadata":null}`, "x")
	f.Add(`{"kind":"Any","metadata":[],"status":null,"":{"":null}}`, "\x00")
	f.Add(`{"kind":"Any","apiVersion":"a/b/c","metadata":{"name":7,"namespace":{},"annotations":{"a":"b","c":1}}}`, "\xff")
	f.Fuzz(func(t *testing.T, data, uid string) {
		source := &unstructured.Unstructured{}
		// Other tests use values that are not objects, and objects beyond the limit.
		if len(data) > 100<<10 || source.UnmarshalJSON([]byte(data)) != nil || source.Object == nil {
			return
		}
		if _, ok := source.Object["metadata"].(map[string]any); ok {
			source.SetUID(types.UID(strings.ToValidUTF8(uid, "?")))
		}
		checkDesired(t, source)
		checkUpDesired(t, source)
	})
}
