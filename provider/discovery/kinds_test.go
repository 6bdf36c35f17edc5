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

package discovery_test

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/yaml"

	synchubv1alpha1 "github.com/synchub-dev/synchub/apis/synchub/v1alpha1"
	"github.com/synchub-dev/synchub/test/framework/suite"
)

// builtin is a kind that the cluster serves without a CRD.
type builtin struct {
	schema.GroupVersionKind
	resource   schema.GroupVersionResource
	namespaced bool
	// crd is the result of CRDFor for this version only.
	crd *apiextensionsv1.CustomResourceDefinition
}

func (b builtin) String() string {
	return b.GroupVersion().String() + " " + b.Kind
}

// builtins returns every kind that the cluster's discovery lists with the verbs create and get, in a fixed order.
var builtins = suite.Shared(func(t testing.TB) (all []builtin) {
	client := suite.Discovery(t, cluster(t))
	_, lists, err := client.ServerGroupsAndResources()
	if err != nil {
		t.Fatal(err)
	}
	for _, list := range lists {
		version, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			t.Fatal(err)
		}
		for _, served := range list.APIResources {
			ownKind := version.Group == ownGroup
			if ownKind || strings.Contains(served.Name, "/") || !slices.Contains(served.Verbs, "create") || !slices.Contains(served.Verbs, "get") {
				continue
			}
			crd, err := discoveryClient(t, cluster(t)).CRDFor(t.Context(), synchubv1alpha1.ResourceDescriptor{
				Group: version.Group, Version: version.Version, Resource: served.Name,
			})
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, builtin{version.WithKind(served.Kind), version.WithResource(served.Name), served.Namespaced, crd})
		}
	}
	if len(all) == 0 {
		t.Fatal("the cluster has no built-in kinds")
	}
	return all
})

// samples returns the objects in testdata/samples.
func samples(t *testing.T) (all []*unstructured.Unstructured) {
	t.Helper()
	directory := os.DirFS("testdata/samples")
	files, err := fs.Glob(directory, "*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		content, err := fs.ReadFile(directory, file)
		if err != nil {
			t.Fatal(err)
		}
		decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(content), 4096)
		for {
			object := &unstructured.Unstructured{}
			err := decoder.Decode(object)
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatalf("%s: %v", file, err)
			}
			all = append(all, object)
		}
	}
	return all
}

// sampleOf returns the sample of a kind.
func sampleOf(t *testing.T, kind schema.GroupVersionKind) *unstructured.Unstructured {
	t.Helper()
	for _, object := range samples(t) {
		if object.GroupVersionKind() == kind {
			return object
		}
	}
	t.Fatalf("testdata/samples has no %s: write one", kind)
	return nil
}
