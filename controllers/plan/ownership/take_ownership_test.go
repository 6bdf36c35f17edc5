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
	"reflect"
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/synchub-dev/synchub/controllers/plan/ownership"
	"github.com/synchub-dev/synchub/test/fixtures"
	"github.com/synchub-dev/synchub/test/tier"
)

// newAdoptedServer returns a server with an object that another client created and changed, and that the hub then applied.
func newAdoptedServer(t *testing.T, desired map[string]any, change func(object map[string]any)) *server {
	t.Helper()
	server := newServer(t, desired)
	server.update("creator", func(object map[string]any) {
		maps.Copy(object, runtime.DeepCopyJSON(desired))
		if change != nil {
			change(object)
		}
	})
	server.apply(hubManager, desired)
	return server
}

// takeOwnership writes the managedFields that TakeOwnership returns to the object.
func (s *server) takeOwnership() {
	s.t.Helper()
	entries, changed := ownership.TakeOwnership(s.managedFields(), hubManager)
	if !changed {
		s.t.Fatal("there is nothing to take")
	}
	s.update(hubManager, func(object map[string]any) {
		list := make([]any, len(entries))
		for index := range entries {
			fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&entries[index])
			if err != nil {
				s.t.Fatal(err)
			}
			list[index] = fields
		}
		object["metadata"].(map[string]any)["managedFields"] = list
	})
}

// content returns the live object without its managedFields.
func (s *server) content() map[string]any {
	s.t.Helper()
	object := s.object()
	delete(object["metadata"].(map[string]any), "managedFields")
	return object
}

// identityOnly returns only the identifying fields of an object.
func identityOnly(object map[string]any) map[string]any {
	metadata := object["metadata"].(map[string]any)
	kept := map[string]any{"name": metadata["name"]}
	if namespace, ok := metadata["namespace"]; ok {
		kept["namespace"] = namespace
	}
	return map[string]any{"apiVersion": object["apiVersion"], "kind": object["kind"], "metadata": kept}
}

// After TakeOwnership, an adopted object behaves like one that the hub created: a field removed from the source is removed from
// the target.
func TestAdoptedFieldsCanBeRemoved(t *testing.T) {
	tier.Thorough(t)
	for name, text := range manifests {
		t.Run(name, func(t *testing.T) {
			desired := fixtures.Map(t, text)
			asCreated := newServer(t, desired)
			asCreated.apply(hubManager, desired)
			asTaken := newAdoptedServer(t, desired, nil)
			asTaken.takeOwnership()
			asTaken.wantUnowned(desired)
			tried := 0
			for description, next := range withoutEachPart(desired) {
				created, taken := asCreated.clone(), asTaken.clone()
				if created.tryApply(hubManager, next) != nil {
					continue // an item without its key
				}
				tried++
				taken.apply(hubManager, next)
				taken.wantUnowned(next)
				if want, got := created.content(), taken.content(); !reflect.DeepEqual(got, want) {
					t.Errorf("%s: want %v\ngot %v", description, want, got)
				}
			}
			if tried < 4 {
				t.Errorf("only %d changes were possible", tried)
			}
		})
	}
}

func TestWithoutTakeOwnershipAdoptedFieldsStay(t *testing.T) {
	desired := fixtures.Map(t, configMap)
	server := newAdoptedServer(t, desired, nil)
	before := server.content()
	server.apply(hubManager, identityOnly(desired))
	if after := server.content(); !reflect.DeepEqual(after, before) {
		t.Errorf("something is removed, so Yield may no longer be needed: %v", after)
	}
}

// withoutEachPart returns the object without each field of a map or item of a list in turn, and without all of them.
func withoutEachPart(object map[string]any) map[string]map[string]any {
	result := map[string]map[string]any{"all": identityOnly(object)}
	identity := []string{"[apiVersion]", "[kind]", "[metadata]", "[metadata name]", "[metadata namespace]"}
	var visit func(value any, path []any)
	without := func(path []any) {
		if slices.Contains(identity, fmt.Sprint(path)) {
			return
		}
		next := runtime.DeepCopyJSON(object)
		removeAt(next, path)
		result[fmt.Sprint(path)] = next
	}
	visit = func(value any, path []any) {
		switch typed := value.(type) {
		case map[string]any:
			for key, item := range typed {
				below := append(slices.Clone(path), key)
				without(below)
				visit(item, below)
			}
		case []any:
			for index, item := range typed {
				below := append(slices.Clone(path), index)
				without(below)
				visit(item, below)
			}
		}
	}
	visit(object, nil)
	return result
}

// removeAt returns the value without the part at the path.
func removeAt(value any, path []any) any {
	switch typed := value.(type) {
	case map[string]any:
		key := path[0].(string)
		if len(path) == 1 {
			delete(typed, key)
		} else {
			typed[key] = removeAt(typed[key], path[1:])
		}
		return typed
	case []any:
		index := path[0].(int)
		if len(path) == 1 {
			return slices.Delete(typed, index, index+1)
		}
		typed[index] = removeAt(typed[index], path[1:])
		return typed
	default:
		return value
	}
}

func TestTakeOwnershipKeepsOtherFields(t *testing.T) {
	desired := fixtures.Map(t, deployment)
	server := newAdoptedServer(t, desired, func(object map[string]any) {
		at(t, object, "metadata", "labels")["theirs"] = "x"
		at(t, object, "spec")["minReadySeconds"] = int64(3)
		spec := at(t, object, "spec", "template", "spec")
		spec["volumes"] = append(spec["volumes"].([]any), map[string]any{"name": "theirs", "emptyDir": map[string]any{}})
	})
	server.apply("applier", fixtures.Map(t, `{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, namespace: shop, labels: {app: web}}}`))
	server.takeOwnership()
	server.apply(hubManager, identityOnly(desired))
	object := server.object()
	labels := at(t, object, "metadata", "labels")
	if want := map[string]any{"theirs": "x", "app": "web"}; !reflect.DeepEqual(labels, want) {
		t.Errorf("labels: want %v, got %v", want, labels)
	}
	if got := at(t, object, "spec")["minReadySeconds"]; got != int64(3) {
		t.Errorf("minReadySeconds is %v", got)
	}
	if got := at(t, object, "spec", "template", "spec", "volumes", 0)["name"]; got != "theirs" {
		t.Errorf("the volume is %v", got)
	}
}

func entry(manager string, operation metav1.ManagedFieldsOperationType, subresource, fields string) metav1.ManagedFieldsEntry {
	result := metav1.ManagedFieldsEntry{Manager: manager, Operation: operation, APIVersion: "v1", FieldsType: "FieldsV1", Subresource: subresource}
	if fields != "" {
		result.FieldsV1 = metav1.NewFieldsV1(fields)
	}
	return result
}

func TestTakeOwnership(t *testing.T) {
	const apply, update = metav1.ManagedFieldsOperationApply, metav1.ManagedFieldsOperationUpdate
	ours := entry(hubManager, apply, "", `{"f:data":{"f:a":{},"f:b":{}}}`)
	for name, test := range map[string]struct {
		entries, want []metav1.ManagedFieldsEntry // want is nil if nothing changes
	}{
		"nothing":                     {},
		"the hub's alone":             {entries: []metav1.ManagedFieldsEntry{ours}},
		"no entry of the hub":         {entries: []metav1.ManagedFieldsEntry{entry("x", update, "", `{"f:data":{"f:a":{}}}`)}},
		"the hub's for a subresource": {entries: []metav1.ManagedFieldsEntry{entry(hubManager, apply, "status", `{"f:data":{"f:a":{}}}`), entry("x", update, "", `{"f:data":{"f:a":{}}}`)}},
		"another manager's apply":     {entries: []metav1.ManagedFieldsEntry{ours, entry("x", apply, "", `{"f:data":{"f:a":{}}}`)}},
		"another's subresource":       {entries: []metav1.ManagedFieldsEntry{ours, entry("x", update, "scale", `{"f:data":{"f:a":{}}}`)}},
		"other fields":                {entries: []metav1.ManagedFieldsEntry{ours, entry("x", update, "", `{"f:data":{".":{},"f:c":{}},"f:immutable":{}}`)}},
		"a map with other fields":     {entries: []metav1.ManagedFieldsEntry{ours, entry("x", update, "", `{"f:binaryData":{".":{}}}`)}},
		"entries that cannot be read": {entries: []metav1.ManagedFieldsEntry{ours, entry("x", update, "", `{"f:data":{`), entry("y", update, "", "")}},
		"an invalid entry of the hub": {entries: []metav1.ManagedFieldsEntry{entry(hubManager, apply, "", "["), entry("x", update, "", `{"f:data":{"f:a":{}}}`)}},
		"an entry with only applied fields": {
			entries: []metav1.ManagedFieldsEntry{entry("x", update, "", `{"f:data":{".":{},"f:a":{}}}`), ours},
			want:    []metav1.ManagedFieldsEntry{ours},
		},
		"an entry with some applied fields": {
			entries: []metav1.ManagedFieldsEntry{ours, entry("x", update, "", `{"f:data":{".":{},"f:a":{},"f:c":{}}}`)},
			want:    []metav1.ManagedFieldsEntry{ours, entry("x", update, "", `{"f:data":{".":{},"f:c":{}}}`)},
		},
		"our own update": {
			entries: []metav1.ManagedFieldsEntry{ours, entry(hubManager, update, "", `{"f:data":{".":{},"f:a":{}},"f:immutable":{}}`)},
			want:    []metav1.ManagedFieldsEntry{ours, entry(hubManager, update, "", `{"f:immutable":{}}`)},
		},
		"several": {
			entries: []metav1.ManagedFieldsEntry{
				entry("x", update, "", `{"f:data":{"f:a":{}}}`), ours, entry("y", update, "", `{"f:x":{}}`), entry("z", update, "", `{"f:data":{"f:b":{},"f:c":{}}}`),
			},
			want: []metav1.ManagedFieldsEntry{ours, entry("y", update, "", `{"f:x":{}}`), entry("z", update, "", `{"f:data":{"f:c":{}}}`)},
		},
		"what the server defaulted in an item": {
			entries: []metav1.ManagedFieldsEntry{
				entry(hubManager, apply, "", `{"f:ports":{"k:{\"port\":80,\"protocol\":\"TCP\"}":{".":{},"f:port":{}}}}`),
				entry("x", update, "", `{"f:ports":{".":{},"k:{\"port\":80,\"protocol\":\"TCP\"}":{".":{},"f:port":{},"f:protocol":{},"f:targetPort":{}}}}`),
			},
			want: []metav1.ManagedFieldsEntry{entry(hubManager, apply, "", `{"f:ports":{"k:{\"port\":80,\"protocol\":\"TCP\"}":{".":{},"f:port":{}}}}`)},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, changed := ownership.TakeOwnership(test.entries, hubManager)
			want := test.want
			if want == nil {
				want = test.entries
			}
			if changed != (test.want != nil) || !reflect.DeepEqual(got, want) {
				t.Errorf("want %v, %v\ngot  %v, %v", want, test.want != nil, got, changed)
			}
		})
	}
}
