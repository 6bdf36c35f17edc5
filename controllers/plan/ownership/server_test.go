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
	"encoding/json"
	"slices"
	"sync"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/client-go/applyconfigurations" //nolint:depguard // it has the schemas of the built-in types
	"k8s.io/client-go/kubernetes/scheme"   //nolint:depguard // it has the built-in types, no client
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/synchub-dev/synchub/controllers/plan/ownership"
)

const hubManager = "synchub-test"

// server has one object and writes its managedFields with the API servers' code and schemas.
type server struct {
	t      *testing.T
	fields *managedfields.FieldManager
	gvk    schema.GroupVersionKind
	live   runtime.Object
}

// schemas decodes the schemas of all built-in types, which takes a while.
var schemas = sync.OnceValue(func() managedfields.TypeConverter { return applyconfigurations.NewTypeConverter(scheme.Scheme) })

func newServer(t *testing.T, desired map[string]any) *server {
	t.Helper()
	gvk := (&unstructured.Unstructured{Object: desired}).GroupVersionKind()
	reset := map[fieldpath.APIVersion]fieldpath.Filter{
		fieldpath.APIVersion(gvk.GroupVersion().String()): fieldpath.NewExcludeSetFilter(fieldpath.NewSet(fieldpath.MakePathOrDie("status"))),
	}
	fields, err := managedfields.NewDefaultFieldManager(schemas(), scheme.Scheme, defaulter{}, scheme.Scheme, gvk, gvk.GroupVersion(), "", reset)
	if err != nil {
		t.Fatal(err)
	}
	live, err := scheme.Scheme.New(gvk)
	if err != nil {
		t.Fatal(err)
	}
	live.GetObjectKind().SetGroupVersionKind(gvk)
	return &server{t: t, fields: fields, gvk: gvk, live: live}
}

// clone returns a server with a copy of the object. Writing the same object again is slow under the race detector.
func (s *server) clone() *server {
	clone := *s
	clone.live = s.live.DeepCopyObject()
	return &clone
}

// defaulter sets the API server's defaults that are keys of lists.
type defaulter struct{}

func (defaulter) Default(object runtime.Object) {
	switch typed := object.(type) {
	case *appsv1.Deployment:
		for i := range typed.Spec.Template.Spec.Containers {
			ports := typed.Spec.Template.Spec.Containers[i].Ports
			for j := range ports {
				if ports[j].Protocol == "" {
					ports[j].Protocol = corev1.ProtocolTCP
				}
			}
		}
	case *corev1.Service:
		for i := range typed.Spec.Ports {
			if typed.Spec.Ports[i].Protocol == "" {
				typed.Spec.Ports[i].Protocol = corev1.ProtocolTCP
			}
		}
	}
}

// apply makes a forced server-side apply.
func (s *server) apply(manager string, desired map[string]any) {
	s.t.Helper()
	if err := s.tryApply(manager, desired); err != nil {
		s.t.Fatalf("the apply by %s is refused: %v", manager, err)
	}
}

func (s *server) tryApply(manager string, desired map[string]any) error {
	live, err := s.fields.Apply(s.live, &unstructured.Unstructured{Object: runtime.DeepCopyJSON(desired)}, manager, true)
	if err == nil {
		s.live = live
	}
	return err
}

// update makes a PUT of the live object with a change.
func (s *server) update(manager string, change func(object map[string]any)) {
	s.t.Helper()
	object := s.object()
	change(object)
	data, err := json.Marshal(object)
	if err != nil {
		s.t.Fatal(err)
	}
	changed, err := scheme.Scheme.New(s.gvk)
	if err != nil {
		s.t.Fatal(err)
	}
	if err := json.Unmarshal(data, changed); err != nil {
		s.t.Fatal(err)
	}
	defaulter{}.Default(changed)
	if s.live, err = s.fields.Update(s.live, changed, manager); err != nil {
		s.t.Fatalf("the update by %s is refused: %v", manager, err)
	}
}

// object returns the live object as a client decodes it.
func (s *server) object() map[string]any {
	s.t.Helper()
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(s.live)
	if err != nil {
		s.t.Fatal(err)
	}
	return content
}

func (s *server) managedFields() []metav1.ManagedFieldsEntry {
	return (&unstructured.Unstructured{Object: s.object()}).GetManagedFields()
}

// entry returns the hub's managedFields entry.
func (s *server) entry() []byte {
	s.t.Helper()
	for _, entry := range s.managedFields() {
		if entry.Manager == hubManager && entry.Operation == metav1.ManagedFieldsOperationApply {
			return entry.FieldsV1.GetRawBytes()
		}
	}
	return nil
}

func (s *server) wantUnowned(desired map[string]any, want ...string) {
	s.t.Helper()
	got := unowned(s.t, desired, s.entry())
	slices.Sort(want)
	if !slices.Equal(got, want) {
		s.t.Errorf("uncovered: want %v, got %v\nentry: %s", want, got, s.entry())
	}
}

func unowned(t *testing.T, desired map[string]any, entry []byte) []string {
	t.Helper()
	paths, err := ownership.UnownedPaths(desired, entry)
	if err != nil {
		t.Fatalf("%v\nentry: %s", err, entry)
	}
	return paths
}

// at returns the map at a path of keys and indexes.
func at(t *testing.T, object any, path ...any) map[string]any {
	t.Helper()
	for _, step := range path {
		switch step := step.(type) {
		case string:
			object = object.(map[string]any)[step]
		case int:
			object = object.([]any)[step]
		}
	}
	result, ok := object.(map[string]any)
	if !ok {
		t.Fatalf("no map at %v", path)
	}
	return result
}
