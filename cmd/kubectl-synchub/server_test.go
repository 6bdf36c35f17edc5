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
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/yaml"

	synchubv1alpha1 "github.com/synchub-dev/synchub/apis/synchub/v1alpha1"
	"github.com/synchub-dev/synchub/test/framework"
	"github.com/synchub-dev/synchub/test/framework/servers"
)

const (
	startLimit = 5 * time.Minute
	// patience is the maximum time that a test waits for an expected event.
	patience = 3 * time.Minute
	pollEach = 50 * time.Millisecond
)

// asPlugin is an environment variable that makes the test binary run the plugin.
const asPlugin = "SYNCHUB_TEST_AS_PLUGIN"

func TestMain(m *testing.M) {
	if os.Getenv(asPlugin) != "" {
		main()
		return
	}
	code := m.Run()
	if sharedServers.Target != nil {
		if err := sharedServers.Stop(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
		_ = os.RemoveAll(sharedServers.dir)
	}
	os.Exit(code)
}

// sharedServers is the only cluster of this package. The first test that needs it starts it.
var sharedServers struct {
	*servers.Target
	dir string
}

// startHosting makes the cluster the current one.
func startHosting(t *testing.T) *servers.Target {
	t.Helper()
	if sharedServers.Target == nil {
		root, err := framework.RepositoryRoot()
		if err != nil {
			t.Fatal(err)
		}
		if sharedServers.dir, err = os.MkdirTemp("", "kubectl-synchub-"); err != nil { //nolint:usetesting // it outlives the test
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), startLimit)
		defer cancel()
		if sharedServers.Target, err = servers.StartTarget(ctx, servers.Options{Dir: sharedServers.dir, Bin: filepath.Join(root, "bin")}, "hosting", servers.TargetOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("KUBECONFIG", sharedServers.Kubeconfig)
	return sharedServers.Target
}

func apply(t *testing.T, hosting *servers.Target, manifest string) {
	t.Helper()
	if err := framework.Apply(t.Context(), hosting.Config, manifest); err != nil {
		t.Fatal(err)
	}
}

func TestRenderWithACluster(t *testing.T) {
	hosting := startHosting(t)
	definition, err := os.ReadFile(examples + "databases-crd.yaml")
	if err != nil {
		t.Fatal(err)
	}
	apply(t, hosting, "apiVersion: v1\nkind: Namespace\nmetadata: {name: synchub}\n---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: schemas, namespace: synchub}\ndata:\n  crd.yaml: |\n    "+
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
			got := runRender(t, publishedResource("example", test.spec), "-f", "-", "-n", "synchub", "--object", write(t, map[string]string{"object": test.object})[0])
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
	crd, err := os.ReadFile("../../apis/schemas/crds/synchub.dev_publishedresources.yaml")
	if err != nil {
		t.Fatal(err)
	}
	apply(t, hosting, string(crd))
	client, err := dynamic.NewForConfig(hosting.Config)
	if err != nil {
		t.Fatal(err)
	}
	published := client.Resource(synchubv1alpha1.GroupVersion.WithResource("publishedresources"))
	if err := wait.PollUntilContextTimeout(t.Context(), pollEach, patience, true, func(ctx context.Context) (bool, error) {
		_, err := published.List(ctx, metav1.ListOptions{})
		return err == nil, nil
	}); err != nil {
		t.Fatal(err)
	}
	for _, example := range blocks(t, "yaml") {
		input := example
		if !strings.HasPrefix(example, "apiVersion:") {
			input = publishedResource("example", withResource(t, example))
		}
		object := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(input), &object.Object); err != nil {
			t.Fatal(err)
		}
		options := metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}, FieldValidation: metav1.FieldValidationStrict}
		if _, err := published.Create(t.Context(), object, options); err != nil {
			t.Errorf("%v in\n%s", err, input)
		}
	}
}
