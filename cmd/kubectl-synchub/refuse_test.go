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
	"net/http"
	"path/filepath"
	"strings"
	"testing"
)

func TestRenderRefuses(t *testing.T) {
	cases := map[string]struct {
		input, object string
		// args replace the arguments that name the input.
		args []string
		want []string
	}{
		"no file":                      {args: []string{}, want: []string{"at least one of the flags in the group [filename object] is required"}},
		"a file that does not exist":   {args: []string{"-f", "absent.yaml"}, want: []string{"absent.yaml", "no such file"}},
		"an unknown output":            {args: []string{"-f", "-", "-o", "wide"}, want: []string{`--output: "wide" is none of json, yaml`}},
		"an argument":                  {args: []string{"x"}, want: []string{`unexpected argument "x"`, "published-resource render --help"}},
		"an unknown flag":              {args: []string{"--nope"}, want: []string{"unknown flag: --nope", "published-resource render --help"}},
		"files without what is needed": {input: settings, want: []string{"there is no PublishedResource"}},
		"what is no YAML":              {input: "a: [", want: []string{"input.yaml: "}},
		"an unknown field":             {input: publishedResource("wrong", configMaps+"\ntypo: 1"), want: []string{"input.yaml: PublishedResource wrong", `unknown field "spec.typo"`}},
		"what acts inside kcp": {
			input: publishedResource("quotas", "resource: {group: \"\", resource: resourcequotas}\napi: {source: Schema}"), want: []string{"PublishedResource quotas: spec.resource: ", "acts inside kcp itself"},
		},
		"all mistakes at once": {
			input: publishedResource("wrong", configMaps+"\nfilter: {cel: \"self.\"}\nmutation: {down: [{cel: {path: data.a, expression: \"1 +\"}}]}\nnaming: {name: \"{{ .Nobody }}\"}"),
			want:  []string{"spec.filter.cel: ", "spec.mutation.down[0].cel.expression: ", "spec.naming.name: "},
		},
		"a related entry that is wrong": {
			input: publishedResource("wrong", configMaps+"\nrelated: [{identifier: a, origin: Mailbox, resource: {version: v1, resource: secrets}, object: {reference: {path: \"a..b\"}}}]"),
			want:  []string{"spec.related[0].object.reference.path: "},
		},
		"a definition of another resource": {
			input: publishedResource("things", "resource: {group: db.example.com, resource: databases, kind: Thing}\napi: {schemaFrom: {configMap: {name: schemas}}}") +
				"---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: schemas}\ndata: {crd.yaml: \"{spec: {group: db.example.com, names: {plural: databases, kind: Database}}}\"}",
			want: []string{"PublishedResource things: spec.resource: the definition defines databases.db.example.com (Database)"},
		},
		"a ConfigMap without a definition": {
			input: publishedResource("things", databases+"\napi: {schemaFrom: {configMap: {name: schemas}}}") +
				"---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: schemas}\ndata: {crd.yaml: \"nonsense: true\"}",
			want: []string{"spec.api.schemaFrom.configMap: crd.yaml in schemas is not a CustomResourceDefinition"},
		},
		"an object for which a rule fails": {
			input:  publishedResource("configmaps", configMaps+"\nmutation: {down: [{regex: {path: metadata.labels, pattern: a}}]}"),
			object: settings, want: []string{"PublishedResource configmaps: ConfigMap shop/settings: ", "step [0] at metadata.labels"},
		},
		"an object for which a filter fails": {
			input:  publishedResource("configmaps", configMaps+"\nfilter: {cel: \"self.data.absent == 'x'\"}"),
			object: settings, want: []string{"ConfigMap shop/settings: ", "spec.filter"},
		},
		"an object with a name that is not legal": {
			input:  publishedResource("configmaps", configMaps+"\nnaming: {name: \"{{ .Object.metadata.name }}_\"}"),
			object: settings, want: []string{"ConfigMap shop/settings: ", "spec.naming.name", `"settings_"`},
		},
		"an object of another kind": {
			input: publishedResource("configmaps", configMaps), object: strings.ReplaceAll(settings, "ConfigMap", "Secret"), want: []string{"Secret settings is a Secret; mailboxes have ConfigMap"},
		},
	}
	for name, test := range cases {
		t.Run(name, func(t *testing.T) {
			requests := withCluster(t, http.NotFound)
			files := write(t, map[string]string{"input.yaml": test.input, "object.yaml": test.object})
			args := test.args
			if args == nil {
				args = []string{"-f", files[0], "--object", files[1]}
			}
			got := runRender(t, "", args...)
			if got.err == nil {
				t.Fatalf("it ended well:\n%s", got.out)
			}
			for _, part := range test.want {
				if !strings.Contains(got.err.Error(), part) {
					t.Errorf("%q is missing in %q", part, got.err)
				}
			}
			if got.out != "" {
				t.Errorf("something was printed:\n%s", got.out)
			}
			if requests.Load() > 0 {
				t.Error("a cluster was asked")
			}
		})
	}
}

func TestRenderAsksOnlyForWhatIsMissing(t *testing.T) {
	for name, test := range map[string]struct{ spec, want string }{
		"a definition": {databases, "the files do not define the API, and http://"},
		"a ConfigMap":  {databases + "\napi: {schemaFrom: {configMap: {name: schemas}}}", "spec.api.schemaFrom.configMap: it is neither in the files nor"},
	} {
		t.Run(name, func(t *testing.T) {
			requests := withCluster(t, http.NotFound)
			got := runRender(t, publishedResource("databases", test.spec), "-f", "-")
			if got.err == nil || !strings.Contains(got.err.Error(), test.want) {
				t.Errorf("got %v", got.err)
			}
			if requests.Load() == 0 {
				t.Error("no cluster was asked")
			}
		})
	}
}

func TestVersionAndHelp(t *testing.T) {
	for name, test := range map[string]struct {
		args []string
		want string
	}{
		"version":                    {[]string{"version"}, "kubectl-synchub dev (commit unknown"},
		"help":                       {nil, "kubectl synchub [command]"},
		"help of published-resource": {[]string{"pubres"}, "render"},
		"completion":                 {[]string{"completion", "bash"}, "kubectl"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := execute(t, "", test.args...); got.err != nil || !strings.Contains(got.out, test.want) {
				t.Errorf("got %v and\n%s", got.err, got.out)
			}
		})
	}
	for typed, meant := range map[string]string{"statu": "status", "regsiter": "register", "Drain": "drain"} {
		if got := execute(t, "", typed); got.err == nil || !strings.Contains(got.err.Error(), `(did you mean "`+meant) {
			t.Errorf("%s: %v", typed, got.err)
		}
	}
	if got := execute(t, "", "rollout", "histroy", "shop"); got.err == nil || !strings.Contains(got.err.Error(), `(did you mean "history"?)`) {
		t.Errorf("a command below another: %v", got.err)
	}
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "absent"))
	for _, command := range []string{"status", "check", "get targets"} {
		if got := execute(t, "", strings.Fields(command)...); got.err == nil || got.err.Error() != "there is no kubeconfig: set KUBECONFIG, or give --kubeconfig" {
			t.Errorf("%s without a kubeconfig: %v", command, got.err)
		}
	}
	if got := execute(t, "", "--help"); strings.Contains(got.out, "Additional Commands") {
		t.Errorf("a command is in no group:\n%s", got.out)
	}
	if got := execute(t, "", "nothing"); got.err == nil || !strings.Contains(got.err.Error(), "kubectl synchub --help") {
		t.Errorf("an unknown command: %v", got.err)
	}
}
