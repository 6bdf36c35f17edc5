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

package ownership_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/synchub-dev/synchub/controllers/plan/fieldpath"
	"github.com/synchub-dev/synchub/controllers/plan/ownership"
	"github.com/synchub-dev/synchub/test/fixtures"
)

func paths(t *testing.T, texts ...string) []fieldpath.Path {
	t.Helper()
	all := make([]fieldpath.Path, 0, len(texts))
	for _, text := range texts {
		parsed, err := fieldpath.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, parsed)
	}
	return all
}

// relinquishFields gives up the ownership of paths like the hub, and reports whether the hub owned any.
func (s *server) relinquishFields(given ...fieldpath.Path) bool {
	s.t.Helper()
	before := s.managedFields()
	copied := (&metav1.ObjectMeta{ManagedFields: before}).DeepCopy().ManagedFields
	owns := ownership.OwnsAny(s.entry(), given)
	entries, changed := ownership.RelinquishFields(before, hubManager, given)
	if changed != owns {
		s.t.Errorf("of %v the hub owned any: %v, and gave up any: %v", given, owns, changed)
	}
	if !reflect.DeepEqual(before, copied) {
		s.t.Errorf("the arguments have changed: %v", before)
	}
	if changed {
		s.update(hubManager, func(object map[string]any) { (&unstructured.Unstructured{Object: object}).SetManagedFields(entries) })
		if ownership.OwnsAny(s.entry(), given) {
			s.t.Errorf("after %v was given up the entry is %s", given, s.entry())
		}
	}
	return changed
}

const relinquishing = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: shop, labels: {app: web, tier: a}, annotations: {note: x}}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      nodeSelector: {disk: ssd}
      containers:
      - {name: app, image: "web:1", args: [a, b], env: [{name: A, value: "1"}, {name: B, value: "2"}], ports: [{containerPort: 80}], resources: {limits: {cpu: "1", memory: 1Gi}}}
      - {name: side, image: "side:1"}
`

// A relinquished field keeps its value when the hub then applies without it. It has no owner, or its other owners.
func TestRelinquishFields(t *testing.T) {
	for name, given := range map[string][]string{
		"a field":                  {"spec.replicas"},
		"a label":                  {"metadata.labels.tier"},
		"a map":                    {"spec.template.spec.nodeSelector"},
		"a key of a map":           {"spec.template.spec.containers[0].resources.limits.cpu"},
		"the images":               {"spec.template.spec.containers[*].image"},
		"the image of one":         {"spec.template.spec.containers[?(@.name==\"side\")].image"},
		"a variable":               {"spec.template.spec.containers[?(@.name==\"app\")].env[?(@.name==\"A\")]"},
		"the value of a variable":  {"spec.template.spec.containers[*].env[?(@.name==\"B\")].value"},
		"all variables":            {"spec.template.spec.containers[*].env"},
		"a container":              {"spec.template.spec.containers[?(@.name==\"side\")]"},
		"a list that is one thing": {"spec.template.spec.containers[0].args"},
		"several":                  {"spec.replicas", "metadata.annotations", "spec.template.spec.containers[*].image"},
		"one path below another":   {"spec.template.spec.containers", "spec.template.spec.containers[*].image"},
		"one of them is missing":   {"spec.replicas", "spec.paused"},
	} {
		for whose, shared := range map[string]bool{"without another owner": false, "with another owner": true} {
			t.Run(name+", "+whose, func(t *testing.T) {
				desired := fixtures.Map(t, relinquishing)
				server := newServer(t, desired)
				server.apply(hubManager, desired)
				if shared {
					server.apply("somebody", desired)
				}
				before := server.content()
				if !server.relinquishFields(paths(t, given...)...) {
					t.Fatal("no field was relinquished")
				}
				if after := server.content(); !reflect.DeepEqual(after, before) {
					t.Fatalf("relinquishing fields changed the object\nfrom %v\nto   %v", before, after)
				}
				without := runtime.DeepCopyJSON(desired)
				for _, path := range paths(t, given...) {
					path.Delete(without)
				}
				server.apply(hubManager, without)
				if after := server.content(); !reflect.DeepEqual(after, before) {
					t.Errorf("the object was %v\nand is %v", before, after)
				}
				server.wantUnowned(without)
				if server.relinquishFields(paths(t, given...)...) && name != "a list that is one thing" {
					t.Errorf("relinquished fields are owned again: %s", server.entry())
				}
			})
		}
	}
}

// The hub does not correct a changed value of a relinquished field, and still owns the other fields.
func TestRelinquishedFieldsHaveAnotherOwner(t *testing.T) {
	desired := fixtures.Map(t, relinquishing)
	server := newServer(t, desired)
	server.apply(hubManager, desired)
	server.relinquishFields(paths(t, "spec.replicas")...)
	server.update("autoscaler", func(object map[string]any) { at(t, object, "spec")["replicas"] = int64(7) })
	without := runtime.DeepCopyJSON(desired)
	delete(at(t, without, "spec"), "replicas")
	server.wantUnowned(without)
	delete(at(t, without, "metadata", "labels"), "tier")
	server.apply(hubManager, without)
	content := server.content()
	if replicas := at(t, content, "spec")["replicas"]; replicas != int64(7) {
		t.Errorf("there are %v replicas", replicas)
	}
	if _, ok := at(t, content, "metadata", "labels")["tier"]; ok {
		t.Error("what was removed in the mailbox is there still")
	}
}

// Without relinquishing the field first, the same apply removes it.
func TestAnApplyWithoutAFieldRemovesIt(t *testing.T) {
	desired := fixtures.Map(t, relinquishing)
	server := newServer(t, desired)
	server.apply(hubManager, desired)
	delete(at(t, desired, "spec"), "replicas")
	server.apply(hubManager, desired)
	if replicas, ok := at(t, server.content(), "spec")["replicas"]; ok {
		t.Errorf("there are %v replicas", replicas)
	}
}

// RelinquishFields removes only fields that the hub applied, and changes nothing if there are none.
func TestRelinquishFieldsKeepsOtherFields(t *testing.T) {
	fields := metav1.NewFieldsV1(`{"f:spec":{"f:replicas":{},"f:paused":{}}}`)
	entry := func(manager string, operation metav1.ManagedFieldsOperationType, subresource string, fields *metav1.FieldsV1) metav1.ManagedFieldsEntry {
		return metav1.ManagedFieldsEntry{Manager: manager, Operation: operation, APIVersion: "apps/v1", FieldsType: "FieldsV1", FieldsV1: fields, Subresource: subresource}
	}
	others := []metav1.ManagedFieldsEntry{
		entry("kubectl", metav1.ManagedFieldsOperationApply, "", fields),
		entry(hubManager, metav1.ManagedFieldsOperationUpdate, "", fields),
		entry(hubManager, metav1.ManagedFieldsOperationApply, "status", fields),
	}
	ours := entry(hubManager, metav1.ManagedFieldsOperationApply, "", fields)
	for name, test := range map[string]struct {
		ours  *metav1.FieldsV1
		paths []string
		want  string
	}{
		"one of two":              {fields, []string{"spec.paused"}, `{"f:spec":{"f:replicas":{}}}`},
		"both":                    {fields, []string{"spec.paused", "spec.replicas"}, `{}`},
		"what is above":           {fields, []string{"spec"}, `{}`},
		"nothing":                 {fields, nil, ""},
		"what is not there":       {fields, []string{"metadata.labels", "spec.replicas.deeper", "spec.selector", "spec[*]", "replicas"}, ""},
		"an entry of nothing":     {metav1.NewFieldsV1(`{}`), []string{"spec"}, ""},
		"no fields at all":        {nil, []string{"spec"}, ""},
		"fields that are unknown": {metav1.NewFieldsV1(`{"x"`), []string{"spec"}, ""},
	} {
		ours.FieldsV1 = test.ours
		all := append(slices.Clone(others), ours)
		got, changed := ownership.RelinquishFields(all, hubManager, paths(t, test.paths...))
		want := slices.Clone(all)
		if test.want != "" {
			want[3].FieldsV1 = metav1.NewFieldsV1(test.want)
		}
		if changed != (test.want != "") || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: want %v\ngot  %v, %v", name, want, got, changed)
		}
		owned := []byte(nil)
		if test.ours != nil {
			owned = test.ours.GetRawBytes()
		}
		if owns := ownership.OwnsAny(owned, paths(t, test.paths...)); owns != changed {
			t.Errorf("%s: it owns any: %v, and gives up any: %v", name, owns, changed)
		}
	}
	if got, changed := ownership.RelinquishFields(nil, hubManager, paths(t, "spec")); changed || len(got) > 0 {
		t.Errorf("of no entries were given up %v", got)
	}
}

// For any object, fields and order: no value changes, and the hub owns the other fields.
func TestRelinquishFieldsOfAnything(t *testing.T) {
	some := slices.Sorted(maps.Keys(map[string]bool{
		"spec": true, "spec.replicas": true, "spec.template": true, "spec.template.spec.containers": true, "spec.template.spec.containers[*]": true,
		"spec.template.spec.containers[0].env[*].value": true, "spec.template.spec.containers[1].image": true, "metadata.labels": true,
		"metadata.labels.app": true, "spec.template.spec.containers[?(@.name==\"app\")].resources.limits": true, "spec.template.metadata.labels.app": true,
		"spec.template.spec.containers[?(@.name==\"app\")].ports[*]": true, "metadata.annotations": true, "spec.selector": true,
	}))
	for seed := range uint64(60) {
		random := rand.New(rand.NewPCG(seed, 11)) //nolint:gosec // a repeatable choice
		desired := fixtures.Map(t, relinquishing)
		server := newServer(t, desired)
		server.apply(hubManager, desired)
		if random.IntN(3) == 0 {
			server.apply("somebody", desired)
		}
		before := server.content()
		without, history := runtime.DeepCopyJSON(desired), ""
		for range 1 + random.IntN(3) {
			text := some[random.IntN(len(some))]
			history += fmt.Sprintf(" %s", text)
			given := paths(t, text)
			server.relinquishFields(given...)
			given[0].Delete(without)
			server.apply(hubManager, without)
			if after := server.content(); !reflect.DeepEqual(after, before) {
				t.Fatalf("seed %d: after%s the object was %v\nand is %v", seed, history, before, after)
			}
			server.wantUnowned(without)
		}
	}
}
