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

package manifests

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"

	synchubv1alpha1 "github.com/synchub-dev/synchub/apis/synchub/v1alpha1"
	"github.com/synchub-dev/synchub/controllers/publishedresource"
	"github.com/synchub-dev/synchub/provider/schemas/builtin"
)

// Manifests are the objects in files.
type Manifests struct {
	// Published are the PublishedResources.
	Published   []synchubv1alpha1.PublishedResource
	definitions []apiextensionsv1.CustomResourceDefinition
	configMaps  []corev1.ConfigMap
	// NamespaceLabels are the labels of namespaces, by name.
	NamespaceLabels map[string]map[string]string
	// Objects are all objects, unchanged.
	Objects []*unstructured.Unstructured
}

// Read reads all documents of all files. The name - is standard input.
func Read(stdin io.Reader, files []string) (*Manifests, error) {
	found := &Manifests{NamespaceLabels: map[string]map[string]string{}}
	return found, Each(stdin, files, found.add)
}

// Each calls add for each object in the files. Items of a List are objects of their own. The name - is standard input.
// Errors start with the name of the file.
func Each(stdin io.Reader, files []string, add func(*unstructured.Unstructured) error) error {
	for _, file := range files {
		content, err := readFile(stdin, file)
		if err != nil {
			return err
		}
		decoder := utilyaml.NewYAMLOrJSONDecoder(bytes.NewReader(content), 4096)
		for {
			object := &unstructured.Unstructured{}
			err := decoder.Decode(object)
			if errors.Is(err, io.EOF) {
				break
			}
			if err == nil && len(object.Object) > 0 {
				err = addAll(object, add)
			}
			if err != nil {
				return fmt.Errorf("%s: %w", file, err)
			}
		}
	}
	return nil
}

func readFile(stdin io.Reader, file string) ([]byte, error) {
	if file == "-" {
		return io.ReadAll(stdin)
	}
	return os.ReadFile(file) //nolint:gosec // the user of the command names the file
}

// addAll calls add for an object, or for all items of a list, which kubectl get prints.
func addAll(object *unstructured.Unstructured, add func(*unstructured.Unstructured) error) error {
	if !object.IsList() {
		return add(object)
	}
	return object.EachListItem(func(item runtime.Object) error { return add(item.(*unstructured.Unstructured)) })
}

func (m *Manifests) add(object *unstructured.Unstructured) error {
	m.Objects = append(m.Objects, object)
	switch object.GroupVersionKind() {
	case synchubv1alpha1.SchemeGroupVersion.WithKind("PublishedResource"):
		return convertTo(&m.Published, object)
	case apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinition"):
		return convertTo(&m.definitions, object)
	case corev1.SchemeGroupVersion.WithKind("ConfigMap"):
		return convertTo(&m.configMaps, object)
	case schema.GroupVersionKind{Version: "v1", Kind: "Namespace"}:
		m.NamespaceLabels[object.GetName()] = object.GetLabels()
	}
	return nil
}

// convertTo appends the object to the list as a Go type. The error names the object, and a field that the type lacks.
func convertTo[T any](list *[]T, object *unstructured.Unstructured) error {
	var converted T
	if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(object.Object, &converted, true); err != nil {
		return fmt.Errorf("%s %s: %w", object.GetKind(), object.GetName(), err)
	}
	*list = append(*list, converted)
	return nil
}

// DefinitionOf returns the CRD of a PublishedResource's API, or nil if neither the files nor the hub contain it.
func (m *Manifests) DefinitionOf(resource *synchubv1alpha1.PublishedResource) (*apiextensionsv1.CustomResourceDefinition, error) {
	from := resource.Spec.API.SchemaFrom
	if from != nil && from.BuiltIn != nil {
		return builtin.Find(resource.Spec.Resource)
	}
	if from != nil && from.ConfigMap != nil {
		for _, configMap := range m.configMaps {
			if _, ok := configMap.Data[definitionKey(from.ConfigMap)]; ok && configMap.Name == from.ConfigMap.Name {
				return ParseDefinition(&configMap, from.ConfigMap)
			}
		}
	}
	wanted := resource.Spec.Resource
	for i := range m.definitions {
		definition := &m.definitions[i]
		names := definition.Spec.Names
		if definition.Spec.Group == wanted.Group && names.Plural == cmp.Or(wanted.Resource, names.Plural) && names.Kind == cmp.Or(wanted.Kind, names.Kind) {
			return definition, nil
		}
	}
	return nil, nil
}

// ParseDefinition returns the CRD in a ConfigMap.
func ParseDefinition(configMap *corev1.ConfigMap, from *synchubv1alpha1.ConfigMapSchema) (*apiextensionsv1.CustomResourceDefinition, error) {
	key := definitionKey(from)
	return publishedresource.ParseDefinition(configMap.Data[key], fmt.Sprintf("spec.api.schemaFrom.configMap: %s in %s", key, from.Name))
}

// definitionKey returns the key of the CRD in a ConfigMap.
func definitionKey(from *synchubv1alpha1.ConfigMapSchema) string { return cmp.Or(from.Key, "crd.yaml") }
