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

package chart

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	apischemas "github.com/synchub-dev/synchub/apis/schemas"

	"github.com/synchub-dev/synchub/apis/synchub/v1alpha1"
	"github.com/synchub-dev/synchub/controllers/publishedresource"
	"github.com/synchub-dev/synchub/hack/schemas/shipped"
	"github.com/synchub-dev/synchub/provider/schemas"
	"github.com/synchub-dev/synchub/provider/schemas/builtin"
	"github.com/synchub-dev/synchub/test/fixtures"
)

const crdFile = "synchub.dev_publishedresources.yaml"

func TestDefinitionIsTheGeneratedOne(t *testing.T) {
	_, chartDir, root := paths(t)
	source := filepath.Join("apis", "schemas", "crds", crdFile)
	target := filepath.Join("charts", "synchub", "files", "crds", crdFile)
	generated, err := os.ReadFile(filepath.Join(root, source))
	if err != nil {
		t.Fatal(err)
	}
	shipped, err := os.ReadFile(filepath.Join(chartDir, "files", "crds", crdFile))
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(generated, shipped) {
		t.Errorf("the chart ships another definition than the generated one; bring it in sync with\n\n  cp %s %s\n", source, target)
	}
	rendered := &apiextensionsv1.CustomResourceDefinition{}
	decode(t, objects(t)["CustomResourceDefinition/publishedresources.synchub.dev"], rendered)
	if !equality.Semantic.DeepEqual(rendered.Spec, apischemas.PublishedResourceCRD().Spec) {
		t.Error("rendering changes the definition")
	}
	if rendered.Annotations["helm.sh/resource-policy"] != "keep" {
		t.Error("the definition goes with the release")
	}
}

func TestPublishedFilesHaveOnlyKnownFields(t *testing.T) {
	_, chartDir, _ := paths(t)
	files, err := filepath.Glob(filepath.Join(chartDir, "files", "published", "*.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	resources := map[string]v1alpha1.PublishedResource{}
	for _, file := range files {
		object := unstructured.Unstructured{Object: fixtures.DecodeFile[map[string]any](t, file)}
		if object.GetNamespace() != "" {
			t.Errorf("%s names a namespace", file)
		}
		var resource v1alpha1.PublishedResource
		decode(t, &object, &resource)
		resources[resource.Name] = resource
	}
	for name, resource := range resources {
		inMailbox := publishedresource.InMailbox(&resource.Spec)
		if name != inMailbox.Resource && name != inMailbox.Resource+"."+inMailbox.Group {
			t.Errorf("%s publishes %q", name, inMailbox.Resource)
		}
		source, err := publishedresource.APISourceOf(&resource.Spec)
		if err != nil || (source == publishedresource.OwnSchema) != slices.Contains(withSchemas, name) {
			t.Errorf("%s: got the API source %s, %v", name, source, err)
		}
		if source == publishedresource.OwnSchema {
			checkSchema(t, resource.Spec)
		}
	}
	if names := slices.Sorted(maps.Keys(resources)); !slices.Equal(names, defaults) {
		t.Errorf("the chart publishes %v, want %v", names, defaults)
	}
}

// checkSchema checks that the hub has the schema, and that it can be exported and has only the published version.
func checkSchema(t *testing.T, spec v1alpha1.PublishedResourceSpec) {
	t.Helper()
	resource := spec.Resource
	if spec.API.SchemaFrom == nil || spec.API.SchemaFrom.BuiltIn == nil {
		t.Errorf("%s do not take their schema from the hub", resource.Resource)
		return
	}
	definition, err := builtin.Find(resource)
	if err != nil {
		t.Error(err)
		return
	}
	exported, err := schemas.FromCRD(definition)
	if err != nil {
		t.Errorf("the schema of %s cannot be exported: %v", resource.Resource, err)
		return
	}
	got := v1alpha1.ResourceDescriptor{Group: exported.Spec.Group, Resource: exported.Spec.Names.Plural, Kind: exported.Spec.Names.Kind, Version: exported.Spec.Versions[0].Name}
	if got != resource {
		t.Errorf("%s are published by the schema of %v", resource.Resource, got)
	}
}

func TestSchemasMatchKubernetes(t *testing.T) {
	_, _, root := paths(t)
	files, err := shipped.Files(contextFor(t), sharedCluster(t).Config)
	if err != nil {
		t.Fatal(err)
	}
	present, err := filepath.Glob(filepath.Join(root, shipped.Directory, shipped.Pattern))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range present {
		if content, err := os.ReadFile(path); err != nil || !bytes.Equal(content, files[filepath.Base(path)]) {
			t.Errorf("%s differs from the cluster's schema (%v); run `make schemas`", path, err)
		}
	}
	if len(present) != len(files) {
		t.Errorf("there are %d schemas, want %d; run `make schemas`", len(present), len(files))
	}
}

// The page about the installation names the versions of the servers that the tests start.
func TestThePagesNameTheTestedVersions(t *testing.T) {
	_, _, root := paths(t)
	page, err := os.ReadFile(filepath.Join(root, "docs", "install.md"))
	if err != nil {
		t.Fatal(err)
	}
	for tool, row := range map[string]struct{ module, text string }{
		"kcp": {"github.com/kcp-dev/kcp", "| kcp | %s |"}, "kubernetes": {"k8s.io/kubernetes", ", %s and "},
		"kubernetes-oldest": {"k8s.io/kubernetes", "| hosting cluster | Kubernetes %s, "}, "kubernetes-newest": {"k8s.io/kubernetes", " and %s |"},
	} {
		content, err := os.ReadFile(filepath.Join(root, "hack", "tools", tool, "go.mod"))
		if err != nil {
			t.Fatal(err)
		}
		pinned := regexp.MustCompile(`(?m)^(?:require )?\s*` + regexp.QuoteMeta(row.module) + ` v(\S+)$`).FindSubmatch(content)
		if pinned == nil {
			t.Fatalf("hack/tools/%s does not require %s", tool, row.module)
		}
		if want := fmt.Sprintf(row.text, pinned[1]); !bytes.Contains(page, []byte(want)) {
			t.Errorf("docs/install.md does not contain %q", want)
		}
	}
}
