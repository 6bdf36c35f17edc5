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
	"strings"
	"testing"
)

func TestBindComputeRefuses(t *testing.T) {
	for name, test := range map[string]struct {
		args []string
		want string
	}{
		"no inventory":                 {[]string{"bind", "compute"}, "give the path of one inventory workspace; see `kubectl synchub bind compute --help`"},
		"two inventories":              {[]string{"bind", "compute", "root:a", "root:b"}, "give the path of one inventory workspace"},
		"an inventory that is no path": {[]string{"bind", "compute", "root:*"}, `INVENTORY_WORKSPACE: "root:*" is not the path of a workspace`},
		"a workspace that is no path":  {[]string{"bind", "compute", "root:a", "--workspace", "../b"}, `invalid argument "../b" for "--workspace" flag: "../b" is not the path of a workspace, such as root:teams:web; see`},
		"a provider that is no path":   {[]string{"bind", "compute", "root:a", "--provider-workspace", ""}, `--provider-workspace: "" is not`},
		"a name that is none":          {[]string{"bind", "compute", "root:a", "--name", "A_b"}, `--name: "A_b" cannot be the name of an EdgePlacement`},
		"no selector of Locations":     {[]string{"bind", "compute", "root:a", "--location-selectors", "a=b=c"}, `--location-selectors: "a=b=c" is not a selector`},
		"no selector of namespaces":    {[]string{"bind", "compute", "root:a", "--namespace-selector", "a in b"}, `--namespace-selector: "a in b" is not a selector`},
		"no time":                      {[]string{"bind", "compute", "root:a", "--timeout", "-1s"}, "--timeout: it must not be negative"},
		"an unknown dry run":           {[]string{"bind", "compute", "root:a", "--dry-run=maybe"}, `--dry-run: "maybe" is none of`},
		"an unknown command":           {[]string{"bind", "storage"}, `unknown command "storage"`},
		"no cluster of kcp":            {[]string{"bind", "compute", "root:a"}, "the current context is no workspace of kcp"},
		"nothing to unbind":            {[]string{"unbind", "compute"}, "give the path of an inventory workspace, --name or --all; see `kubectl synchub unbind compute --help`"},
		"two to unbind":                {[]string{"unbind", "compute", "root:a", "root:b"}, "give the path of one inventory workspace"},
		"path and name to unbind":      {[]string{"unbind", "compute", "root:a", "--name", "b"}, "give either the path of an inventory workspace or --name"},
		"no path to unbind":            {[]string{"unbind", "compute", "Root"}, `INVENTORY_WORKSPACE: "Root" is not`},
		"not to wait for all":          {[]string{"unbind", "compute", "--all", "--wait=false"}, "leave out --wait=false or --all"},
	} {
		t.Run(name, func(t *testing.T) {
			requests := withCluster(t, http.NotFound)
			got := execute(t, "", test.args...)
			if got.err == nil || !strings.Contains(got.err.Error(), test.want) {
				t.Errorf("want an error with %q, got %v", test.want, got.err)
			}
			if got.out != "" || requests.Load() > 0 {
				t.Errorf("%d requests were sent, and it prints\n%s", requests.Load(), got.out)
			}
		})
	}
}

// The help lists the namespaces that the EdgePlacement leaves out by default.
func TestBindComputeHelp(t *testing.T) {
	got := execute(t, "", "bind", "compute", "--help")
	for _, part := range []string{"except `kcp-system, kube-node-lease, kube-public, kube-system, synchub`", "accepts new claims of the export", "--provider-workspace"} {
		if !strings.Contains(got.out, part) {
			t.Errorf("%q is missing in\n%s", part, got.out)
		}
	}
}
