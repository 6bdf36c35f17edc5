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

package main

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/restmapper"

	"github.com/synchub-dev/synchub/test/fixtures"
	"github.com/synchub-dev/synchub/test/framework/servers"
	"github.com/synchub-dev/synchub/test/framework/suite"
)

// foreignExamples have kinds of other projects. test/chart tests their values for the chart.
var foreignExamples = []string{"argocd.yaml", "flux.yaml"}

// TestExamples applies the examples to a server that serves the APIs of kcp workspaces and of the hosting cluster. The server is its own: a
// workspace with these APIs is another one for other tests.
func TestExamples(t *testing.T) {
	server := suite.StartTarget(t, "examples", servers.TargetOptions{})
	for _, file := range glob(t, "../../apis/schemas/crds/*.yaml") {
		suite.Apply(t, server.Config, string(suite.ReadFile(t, file)))
	}
	files := append(glob(t, "../../examples/*.yaml"), examples+"databases-crd.yaml", examples+"databases.yaml")
	listed := string(suite.ReadFile(t, "../../examples/README.md"))
	suite.Apply(t, server.Config, "apiVersion: v1\nkind: Namespace\nmetadata: {name: shop}\n")
	client := suite.Dynamic(t, server.Config)
	for _, file := range files {
		name := filepath.Base(file)
		if filepath.Dir(file) == "../../examples" && !strings.Contains(listed, "]("+name+")") {
			t.Errorf("the index does not list %s", name)
		}
		if slices.Contains(foreignExamples, name) {
			continue
		}
		mapper := restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(suite.Discovery(t, server.Config)))
		for document := range strings.SplitSeq(string(suite.ReadFile(t, file)), "\n---\n") {
			object := fixtures.Object(t, document)
			kind := object.GroupVersionKind()
			suite.WaitUntil(t, "the server serves "+kind.String(), func() bool {
				mapper.Reset()
				mapping, err := mapper.RESTMapping(kind.GroupKind(), kind.Version)
				if err != nil {
					return false
				}
				resource := client.Resource(mapping.Resource).Namespace(object.GetNamespace())
				_, err = resource.Apply(t.Context(), object.GetName(), object, metav1.ApplyOptions{FieldManager: "examples", DryRun: []string{metav1.DryRunAll}, Force: true})
				if err != nil {
					t.Errorf("%s: %s %s: %v", name, kind.Kind, object.GetName(), err)
				}
				return true
			})
		}
	}
}

func glob(t *testing.T, pattern string) []string {
	t.Helper()
	files, err := filepath.Glob(pattern)
	if err != nil || len(files) == 0 {
		t.Fatalf("%s: %v", pattern, err)
	}
	return files
}

// The pages show the examples as they are.
func TestPagesShowTheExamples(t *testing.T) {
	for example, page := range map[string]string{"argocd.yaml": "gitops.md", "customizer.yaml": "placement.md", "aggregation.yaml": "placement.md"} {
		shown := suite.ReadFile(t, "../../docs/"+page)
		content := string(suite.ReadFile(t, "../../examples/"+example))
		_, first, _ := strings.Cut(content, "\n")
		if page == "gitops.md" {
			first, _, _ = strings.Cut(first, "\n---\n")
		}
		if !strings.Contains(string(shown), strings.TrimSpace(first)) {
			t.Errorf("%s does not show %s as it is", page, example)
		}
	}
}
