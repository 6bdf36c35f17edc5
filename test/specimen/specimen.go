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

package specimen

import (
	"embed"
	"maps"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"
)

//go:embed *.yaml
var files embed.FS

// Specimen is an object of one kind.
type Specimen struct {
	Kind     string
	Resource schema.GroupVersionResource
	file     string
}

var (
	// ConfigMap has 2 KB.
	ConfigMap = Specimen{"ConfigMap", corev1.SchemeGroupVersion.WithResource("configmaps"), "configmap"}
	// Deployment has two containers, and all that goes with them.
	Deployment = Specimen{"Deployment", appsv1.SchemeGroupVersion.WithResource("deployments"), "deployment"}
)

// All returns all specimens.
func All() []Specimen { return []Specimen{ConfigMap, Deployment} }

// Above returns the object as a user has written it, and as the hub's cache of the mailbox holds it.
func (s Specimen) Above(tb testing.TB) *unstructured.Unstructured {
	tb.Helper()
	return read(tb, s.file+".yaml")
}

// Below returns the object as a target shows it after the manager has applied it with these labels and annotations:
// defaulted, with a status, and with managedFields.
func (s Specimen) Below(tb testing.TB, manager string, applied *unstructured.Unstructured) *unstructured.Unstructured {
	tb.Helper()
	object := read(tb, s.file+"-below.yaml")
	object.SetLabels(applied.GetLabels())
	annotations := applied.GetAnnotations()
	maps.Copy(annotations, object.GetAnnotations())
	object.SetAnnotations(annotations)
	entries := object.GetManagedFields()
	for i := range entries {
		if entries[i].Operation == metav1.ManagedFieldsOperationApply {
			entries[i].Manager = manager
		}
	}
	object.SetManagedFields(entries)
	return object
}

// read reads a file as a client reads what a server sends.
func read(tb testing.TB, name string) *unstructured.Unstructured {
	tb.Helper()
	text, err := files.ReadFile(name)
	if err != nil {
		tb.Fatal(err)
	}
	data, err := yaml.YAMLToJSON(text)
	if err != nil {
		tb.Fatalf("%s: %v", name, err)
	}
	object := &unstructured.Unstructured{}
	if err := object.UnmarshalJSON(data); err != nil {
		tb.Fatalf("%s: %v", name, err)
	}
	return object
}
