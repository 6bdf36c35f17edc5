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
	"context"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	synchubv1alpha1 "github.com/synchub-dev/synchub/apis/synchub/v1alpha1"
	"github.com/synchub-dev/synchub/test/fixtures"
	"github.com/synchub-dev/synchub/test/framework/servers"
	"github.com/synchub-dev/synchub/test/framework/suite"
)

// asPlugin is an environment variable that makes the test binary run the plugin.
const asPlugin = "SYNCHUB_TEST_AS_PLUGIN"

func TestMain(m *testing.M) {
	if os.Getenv(asPlugin) != "" {
		main()
		return
	}
	suite.Main(m)
}

// pluginProcess returns the plugin as a process of its own, which is not started yet.
func pluginProcess(ctx context.Context, args ...string) *exec.Cmd {
	command := exec.CommandContext(ctx, os.Args[0], args...) //nolint:gosec // it is this test
	command.Env = append(os.Environ(), asPlugin+"=1")
	return command
}

// startHosting makes the cluster of this package the current one.
func startHosting(t *testing.T) *servers.Target {
	t.Helper()
	hosting := suite.Target(t)
	t.Setenv("KUBECONFIG", hosting.Kubeconfig)
	return hosting
}

func TestRenderWithACluster(t *testing.T) {
	hosting := startHosting(t)
	definition := suite.ReadFile(t, examples+"databases-crd.yaml")
	suite.Apply(t, hosting.Config, "apiVersion: v1\nkind: Namespace\nmetadata: {name: render}\n---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: schemas, namespace: render}\ndata:\n  crd.yaml: |\n    "+
		strings.ReplaceAll(strings.TrimSpace(string(definition)), "\n", "\n    "))
	for name, test := range map[string]struct {
		spec, object string
		names, parts []string
	}{
		"the schema of a built-in kind": {
			spec:   "resource: {group: apps, resource: deployments, version: v1}",
			object: "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web, namespace: shop}\nspec: {replicas: 3}\n",
			names:  []string{".deployments.apps", "web"}, parts: []string{"scale:", "x-kubernetes-list-map-keys:", "replicas: 3"},
		},
		"a definition in a ConfigMap": {
			spec:  databases + "\napi: {schemaFrom: {configMap: {name: schemas}}}",
			names: []string{".databases.db.example.com"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := runRender(t, publishedResource("example", test.spec), "-f", "-", "-n", "render", "--object", write(t, map[string]string{"object": test.object})[0])
			if got.err != nil {
				t.Fatal(got.err)
			}
			names := objects(t, got.out)
			if !slices.EqualFunc(names, test.names, strings.HasSuffix) {
				t.Errorf("got %q, want %q", names, test.names)
			}
			for _, part := range test.parts {
				if !strings.Contains(got.out, part) {
					t.Errorf("%q is missing", part)
				}
			}
		})
	}

	t.Run("which takes the documented examples", func(t *testing.T) {
		takesExamples(t, hosting)
	})
}

// takesExamples creates every example of the page in a dry run.
func takesExamples(t *testing.T, hosting *servers.Target) {
	t.Helper()
	crd := suite.ReadFile(t, "../../apis/schemas/crds/synchub.dev_publishedresources.yaml")
	suite.Apply(t, hosting.Config, string(crd))
	published := suite.Dynamic(t, hosting.Config).Resource(synchubv1alpha1.GroupVersion.WithResource("publishedresources"))
	suite.WaitUntil(t, "the API is served", func() bool {
		_, err := published.List(t.Context(), metav1.ListOptions{})
		return err == nil
	})
	for _, example := range blocks(t, "yaml") {
		input := example
		if !strings.HasPrefix(example, "apiVersion:") {
			input = publishedResource("example", withResource(t, example))
		}
		object := fixtures.Object(t, input)
		options := metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}, FieldValidation: metav1.FieldValidationStrict}
		if _, err := published.Create(t.Context(), object, options); err != nil {
			t.Errorf("%v in\n%s", err, input)
		}
	}
}
