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
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/restmapper"

	"github.com/synchub-dev/synchub/test/fixtures"
	"github.com/synchub-dev/synchub/test/framework/servers"
	"github.com/synchub-dev/synchub/test/framework/suite"
)

// foreignKind is a kind of another project. Its schema has the fields that the examples use, with their types and rules there. A server refuses
// all other fields in a server-side apply. test/chart tests the values for the chart.
type foreignKind struct{ group, version, kind, plural, spec string }

var foreignKinds = []foreignKind{
	{"argoproj.io", "v1alpha1", "Application", "applications", `
type: object
required: [destination, project]
properties:
  project: {type: string}
  destination: {type: object, properties: {server: {type: string}, name: {type: string}, namespace: {type: string}}}
  source:
    type: object
    required: [repoURL]
    properties:
      repoURL: {type: string}
      path: {type: string}
      targetRevision: {type: string}
      helm:
        type: object
        properties:
          apiVersions: {type: array, items: {type: string}}
          valuesObject: {type: object, x-kubernetes-preserve-unknown-fields: true}
  syncPolicy:
    type: object
    properties:
      automated: {type: object, properties: {prune: {type: boolean}, selfHeal: {type: boolean}}}
      syncOptions: {type: array, items: {type: string}}
      retry: {type: object, properties: {limit: {type: integer, format: int64}}}
`},
	{"source.toolkit.fluxcd.io", "v1", "GitRepository", "gitrepositories", `
type: object
required: [interval, url]
properties:
  interval: {type: string, pattern: '^([0-9]+(\.[0-9]+)?(ms|s|m|h))+$'}
  url: {type: string, pattern: '^(http|https|ssh)://.*$'}
  ref: {type: object, properties: {branch: {type: string}}}
`},
	{"helm.toolkit.fluxcd.io", "v2", "HelmRelease", "helmreleases", `
type: object
required: [interval]
properties:
  interval: {type: string, pattern: '^([0-9]+(\.[0-9]+)?(ms|s|m|h))+$'}
  chart:
    type: object
    required: [spec]
    properties:
      spec:
        type: object
        required: [chart, sourceRef]
        properties:
          chart: {type: string, minLength: 1}
          sourceRef: {type: object, required: [name], properties: {kind: {type: string, enum: [HelmRepository, GitRepository, Bucket]}, name: {type: string, minLength: 1}}}
  values: {x-kubernetes-preserve-unknown-fields: true}
`},
	{"kustomize.toolkit.fluxcd.io", "v1", "Kustomization", "kustomizations", `
type: object
required: [interval, prune, sourceRef]
properties:
  interval: {type: string, pattern: '^([0-9]+(\.[0-9]+)?(ms|s|m|h))+$'}
  path: {type: string}
  prune: {type: boolean}
  sourceRef: {type: object, required: [kind, name], properties: {kind: {type: string, enum: [OCIRepository, GitRepository, Bucket]}, name: {type: string}}}
  kubeConfig: {type: object, properties: {secretRef: {type: object, required: [name], properties: {key: {type: string}, name: {type: string}}}}}
`},
}

// definition returns the CustomResourceDefinition of the kind.
func (k foreignKind) definition() string {
	return fmt.Sprintf(`
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: %[1]s.%[2]s}
spec:
  group: %[2]s
  scope: Namespaced
  names: {kind: %[3]s, listKind: %[3]sList, plural: %[1]s, singular: %[4]s}
  versions:
  - name: %[5]s
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:%[6]s`, k.plural, k.group, k.kind, strings.ToLower(k.kind), k.version, strings.ReplaceAll(k.spec, "\n", "\n            "))
}

// TestExamples applies the examples to a server that serves the APIs of kcp workspaces and of the hosting cluster. The server is its own: a
// workspace with these APIs is another one for other tests.
func TestExamples(t *testing.T) {
	server := suite.StartTarget(t, "examples", servers.TargetOptions{})
	for _, file := range glob(t, "../../apis/schemas/crds/*.yaml") {
		suite.Apply(t, server.Config, string(suite.ReadFile(t, file)))
	}
	files := append(glob(t, "../../examples/*.yaml"), examples+"databases-crd.yaml", examples+"databases.yaml")
	listed := string(suite.ReadFile(t, "../../examples/README.md"))
	for _, kind := range foreignKinds {
		suite.Apply(t, server.Config, kind.definition())
	}
	for _, namespace := range []string{"shop", "argocd", "synchub"} {
		suite.Apply(t, server.Config, "{apiVersion: v1, kind: Namespace, metadata: {name: "+namespace+"}}")
	}
	client := suite.Dynamic(t, server.Config)
	for _, file := range files {
		name := filepath.Base(file)
		if filepath.Dir(file) == "../../examples" && !strings.Contains(listed, "]("+name+")") {
			t.Errorf("the index does not list %s", name)
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
