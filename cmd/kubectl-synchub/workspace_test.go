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
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
)

// Each command with --workspace sends all its requests to that workspace, or to ones that it names itself, and none to the workspace of
// the kubeconfig. The flag has one meaning, except in two commands that take several paths.
func TestWorkspaceFlag(t *testing.T) {
	files := write(t, map[string]string{
		"a.yaml":          "{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}",
		"placement.yaml":  "{apiVersion: edge.kubestellar.io/v2alpha1, kind: EdgePlacement, metadata: {name: a}}",
		"published.yaml":  "{apiVersion: synchub.dev/v1alpha1, kind: PublishedResource, metadata: {name: a}, spec: {resource: {resource: configmaps}}}",
		"zlocation.yaml":  "{apiVersion: edge.kubestellar.io/v2alpha1, kind: Location, metadata: {name: a}}",
		"zkubeconfig.yml": "{apiVersion: v1, kind: Config, current-context: a, clusters: [{name: a, cluster: {server: 'https://127.0.0.1:1'}}], contexts: [{name: a, context: {cluster: a, user: a}}], users: [{name: a, user: {token: a}}]}",
	})
	manifest, placement, published, kubeconfig, location := files[0], files[1], files[2], files[3], files[4]
	arguments := map[string][]string{
		"register": {"a", "--kubeconfig-only", kubeconfig, "--wait=false"}, "unregister": {"a", "--yes"}, "rotate": {"a", "--target-kubeconfig", kubeconfig},
		"confirm-cluster": {"a"}, "confirm-restore": {"a"}, "stale-objects": {"a", "--target-kubeconfig", kubeconfig},
		"cordon": {"a"}, "uncordon": {"a"}, "suspend": {"a"}, "resume": {"a"}, "drain": {"a"},
		"status": nil, "get": {"configmaps", "--all-mailboxes", "-A"}, "get targets": nil, "describe target": {"a"}, "describe placement": {"a"}, "events": {"a"}, "version": nil, "check": nil,
		"explain": {"a", "configmaps", "a/a"}, "drift": nil, "diff": {"-f", manifest}, "diff placement": {"-f", placement}, "diff location": {"-f", location}, "diff published-resource": {"-f", published},
		"bind inventory": nil, "bind compute": {"root:inventory", "--wait=false"}, "unbind inventory": {"--yes"}, "unbind compute": {"root:inventory"},
		"rollout status": {"a"}, "rollout pause": {"a"}, "rollout resume": {"a"}, "rollout undo": {"a"}, "rollout history": {"a"},
	}
	asksElsewhereFirst := []string{"get", "stale-objects"}
	commands := commandsWith("workspace")
	if allow := commands["allow"]; allow == nil || commands["ui"] == nil {
		t.Error("allow and ui take paths")
	}
	delete(commands, "allow")
	delete(commands, "ui")
	if names, want := slices.Sorted(maps.Keys(commands)), slices.Sorted(maps.Keys(arguments)); !slices.Equal(names, want) {
		t.Errorf("want the flag in\n%q\ngot\n%q", want, names)
	}
	usage := commands["status"].Flags().Lookup("workspace").Usage
	for name, command := range commands {
		t.Run(name, func(t *testing.T) {
			if got := command.Flags().Lookup("workspace").Usage; got != usage {
				t.Errorf("the help is %q", got)
			}
			requested := requestsOf(t, append(append(strings.Fields(name), arguments[name]...), "--workspace", "root:there"))
			if requested["root:here"] > 0 || requested["root:there"] == 0 && !slices.Contains(asksElsewhereFirst, name) {
				t.Errorf("these workspaces are asked: %v", requested)
			}
			if got := execute(t, "", append(strings.Fields(name), "--workspace", "../there")...); got.err == nil || !strings.Contains(got.err.Error(), `"../there" is not the path of a workspace`) {
				t.Errorf("got %v", got.err)
			}
		})
	}
}

// requestsOf runs a command in the workspace root:here, and returns the number of requests for each workspace. All of them fail.
func requestsOf(t *testing.T, args []string) map[string]int {
	t.Helper()
	var mutex sync.Mutex
	requested := map[string]int{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mutex.Lock()
		defer mutex.Unlock()
		workspace, _, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/clusters/"), "/")
		requested[workspace]++
		http.Error(w, "no", http.StatusForbidden)
	}))
	t.Cleanup(server.Close)
	useServer(t, server.URL+"/clusters/root:here")
	got := plugin(t, args...)
	t.Logf("%v\n%s%s", got.err, got.out, got.errs)
	mutex.Lock()
	defer mutex.Unlock()
	return maps.Clone(requested)
}
