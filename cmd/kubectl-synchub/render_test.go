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
	"bytes"
	"encoding/json"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/yaml"

	"github.com/synchub-dev/synchub/test/framework/suite"
)

const examples = "../../examples/publishedresource/"

// printed is the output of a command, and its error.
type printed struct {
	out, errs string
	err       error
}

// execute runs the command line.
func execute(t *testing.T, stdin string, args ...string) printed {
	t.Helper()
	var out, errs bytes.Buffer
	command := newCommand(genericiooptions.IOStreams{In: strings.NewReader(stdin), Out: &out, ErrOut: &errs})
	command.SetArgs(args)
	err := command.ExecuteContext(t.Context())
	return printed{out.String(), errs.String(), err}
}

func runRender(t *testing.T, stdin string, args ...string) printed {
	t.Helper()
	return execute(t, stdin, append([]string{"published-resource", "render"}, args...)...)
}

// withCluster makes a server the current cluster and counts its requests.
func withCluster(t *testing.T, answer http.HandlerFunc) *atomic.Int64 {
	t.Helper()
	var requests atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		requests.Add(1)
		answer(w, r)
	}))
	t.Cleanup(server.Close)
	useServer(t, server.URL)
	return &requests
}

// useServer makes a server the current cluster.
func useServer(t testing.TB, url string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(file, suite.Kubeconfig(t, url, nil, ""), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("KUBECONFIG", file)
}

// write writes files into a directory and returns their paths, sorted by name.
func write(t testing.TB, files map[string]string) []string {
	t.Helper()
	dir := t.TempDir()
	var paths []string
	for _, name := range slices.Sorted(maps.Keys(files)) {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(files[name]), 0o600); err != nil {
			t.Fatal(err)
		}
		paths = append(paths, path)
	}
	return paths
}

// publishedResource returns the YAML of a PublishedResource.
func publishedResource(name, spec string) string {
	return "apiVersion: synchub.dev/v1alpha1\nkind: PublishedResource\nmetadata: {name: " + name + "}\nspec:\n  " +
		strings.ReplaceAll(strings.TrimSpace(spec), "\n", "\n  ") + "\n"
}

// objects returns the kinds and names of the printed objects.
func objects(t *testing.T, output string) (names []string) {
	t.Helper()
	for document := range strings.SplitSeq(output, "\n---\n") {
		item := map[string]any{}
		if err := yaml.Unmarshal([]byte(document), &item); err != nil {
			t.Fatalf("%v in\n%s", err, document)
		}
		metadata, _ := item["metadata"].(map[string]any)
		name, _ := metadata["name"].(string)
		names = append(names, strings.TrimSpace(item["kind"].(string)+" "+name))
	}
	return names
}

const (
	configMaps = `resource: {group: "", resource: configmaps}`
	settings   = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings, namespace: shop, labels: {tier: web}}\ndata: {a: b}\n"
	databases  = "resource: {group: db.example.com, resource: databases}"
)

func TestRenderForASyncTarget(t *testing.T) {
	files := write(t, map[string]string{
		"input.yaml": publishedResource("configmaps", configMaps+
			"\nmutation: {down: [{template: {path: data.a, template: '{{ .SyncTarget.metadata.labels.region }} {{ index .SyncTarget.metadata.annotations \"shop.example/city\" }}'}}]}"),
		"object.yaml": settings,
	})
	got := runRender(t, "", "-f", files[0], "--object", files[1], "--sync-target-labels", "region=eu,env=prod", "--sync-target-annotations", "shop.example/city=Gouda")
	if got.err != nil || !strings.Contains(got.out, "a: eu Gouda") {
		t.Errorf("got %v, %s", got.err, got.out)
	}
	got = runRender(t, "", "-f", files[0], "--object", files[1])
	if got.err == nil || !strings.Contains(got.err.Error(), `no entry for key "region"`) {
		t.Errorf("without the label: %v, %s", got.err, got.out)
	}
}

func TestRenderPrints(t *testing.T) {
	definition := suite.ReadFile(t, examples+"databases-crd.yaml")
	indented := "    " + strings.ReplaceAll(string(definition), "\n", "\n    ")
	inConfigMap := "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: schemas}\ndata:\n  databases: |\n" + indented
	fromConfigMap := publishedResource("databases", databases+"\napi: {schemaFrom: {configMap: {name: schemas, key: databases}}}")
	cases := map[string]struct {
		stdin, input, object string
		names                []string
		out, errs            []string
	}{
		"the claim of what kcp serves": {
			input: publishedResource("configmaps", configMaps), names: []string{"APIExport"}, out: []string{"- resource: configmaps"},
		},
		"the claim of another export": {
			input: publishedResource("foreign", "resource: {group: x.example.com, resource: things, kind: Thing, version: v1}\napi: {identityHash: "+strings.Repeat("ab", 32)+"}"),
			names: []string{"APIExport"}, out: []string{"identityHash: " + strings.Repeat("ab", 32)},
		},
		"an object as it arrives": {
			input:  publishedResource("configmaps", configMaps+"\nmutation: {down: [{set: {path: data.a, value: c}}]}\nnaming: {name: \"{{ .SyncTarget }}-{{ .Mailbox }}\"}"),
			object: settings, names: []string{"APIExport", "ConfigMap sync-target-mailbox"}, out: []string{"a: c", "namespace: shop"},
		},
		"that an object is held back": {
			input: publishedResource("configmaps", configMaps+"\nfilter: {resource: {matchLabels: {tier: db}}}"), object: settings,
			names: []string{"APIExport"}, errs: []string{"ConfigMap shop/settings stays in the mailbox: spec.filter does not let it pass"},
		},
		"what labels of a namespace decide": {
			input:  publishedResource("configmaps", configMaps+"\nfilter: {namespace: {matchLabels: {stage: live}}}"),
			object: "apiVersion: v1\nkind: Namespace\nmetadata: {name: shop, labels: {stage: live}}\n---\n" + settings,
			names:  []string{"APIExport", "ConfigMap settings"},
		},
		"what travels along, on standard error": {
			input:  publishedResource("configmaps", configMaps+"\nrelated: [{identifier: keys, origin: Mailbox, resource: {version: v1, resource: secrets}, object: {selector: {matchLabels: {of: \"{{ .Primary.metadata.name }}\"}}}}]"),
			object: settings, names: []string{"APIExport", "ConfigMap settings"},
			errs: []string{"ConfigMap shop/settings takes along, as keys: objects with of=settings in shop"},
		},
		"a schema from a ConfigMap in the files": {
			input: fromConfigMap + "---\n" + inConfigMap, names: []string{"APIResourceSchema v64a6efac.databases.db.example.com"},
		},
		"all PublishedResources of several documents": {
			input: publishedResource("configmaps", configMaps) + "---\n---\n" + publishedResource("databases", databases) + "---\n" + string(definition),
			names: []string{"APIExport", "APIResourceSchema v64a6efac.databases.db.example.com"},
		},
		"what is on standard input": {
			stdin: publishedResource("configmaps", configMaps), names: []string{"APIExport"},
		},
	}
	for name, test := range cases {
		t.Run(name, func(t *testing.T) {
			requests := withCluster(t, http.NotFound)
			files := write(t, map[string]string{"input.yaml": test.input, "object.yaml": test.object})
			if test.stdin != "" {
				files[0] = "-"
			}
			got := runRender(t, test.stdin, "-f", files[0], "--object", files[1])
			if got.err != nil {
				t.Fatal(got.err)
			}
			if names := objects(t, got.out); !slices.Equal(names, test.names) {
				t.Errorf("got %q, want %q", names, test.names)
			}
			for _, part := range test.out {
				if !strings.Contains(got.out, part) {
					t.Errorf("%q is missing in\n%s", part, got.out)
				}
			}
			if want := strings.Join(append(test.errs, ""), "\n"); got.errs != want {
				t.Errorf("on standard error: %q, want %q", got.errs, want)
			}
			if requests.Load() > 0 {
				t.Error("a cluster was asked for what the files say")
			}
		})
	}
}

func TestRenderPrintsAListInJSON(t *testing.T) {
	files := write(t, map[string]string{"input": publishedResource("configmaps", configMaps), "object": settings})
	got := runRender(t, "", "-f", files[0], "--object", files[1], "-o", "json")
	var list struct {
		Kind  string
		Items []struct{ Kind string }
	}
	if err := json.Unmarshal([]byte(got.out), &list); got.err != nil || err != nil {
		t.Fatal(got.err, err)
	}
	if list.Kind != "List" || len(list.Items) != 2 || list.Items[0].Kind != "APIExport" || list.Items[1].Kind != "ConfigMap" {
		t.Errorf("got %+v", list)
	}
}
