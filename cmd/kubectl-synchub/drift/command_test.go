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

package drift

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/cmd/kubectl-synchub/cli"
	"github.com/synchub-dev/synchub/controllers/plan"
	"github.com/synchub-dev/synchub/test/framework/suite"
)

// workspaces are the lists that a kcp serves, by workspace and resource. It answers 403 for a list that is nil.
type workspaces map[string]map[string]any

var kinds = map[string]string{
	"edgeplacements": "EdgePlacement", "singleplacementslices": "SinglePlacementSlice", "synctargets": "SyncTarget",
	"syncerconfigs": "SyncerConfig", "edgesyncconfigs": "EdgeSyncConfig",
}

// serve makes a kcp with the workspaces the current cluster, in the workspace given.
func (w workspaces) serve(t *testing.T, current string) {
	t.Helper()
	version := edgev2alpha1.SchemeGroupVersion
	server := httptest.NewServer(http.HandlerFunc(func(response http.ResponseWriter, request *http.Request) {
		name, path, _ := strings.Cut(strings.TrimPrefix(request.URL.Path, "/clusters/"), "/")
		lists, exists := w[name]
		resource := strings.TrimPrefix(path, "apis/"+version.String()+"/")
		var answer any
		switch {
		case !exists:
			http.NotFound(response, request)
			return
		case path == "api":
			answer = metav1.APIVersions{TypeMeta: metav1.TypeMeta{Kind: "APIVersions", APIVersion: "v1"}}
		case path == "apis":
			one := metav1.GroupVersionForDiscovery{GroupVersion: version.String(), Version: version.Version}
			answer = metav1.APIGroupList{TypeMeta: metav1.TypeMeta{Kind: "APIGroupList", APIVersion: "v1"}, Groups: []metav1.APIGroup{
				{Name: version.Group, Versions: []metav1.GroupVersionForDiscovery{one}, PreferredVersion: one},
			}}
		case path == "apis/"+version.String():
			served := metav1.APIResourceList{TypeMeta: metav1.TypeMeta{Kind: "APIResourceList", APIVersion: "v1"}, GroupVersion: version.String()}
			for resource := range lists {
				served.APIResources = append(served.APIResources, metav1.APIResource{Name: resource, Kind: kinds[resource], Verbs: metav1.Verbs{"list"}})
			}
			answer = served
		case lists[resource] == nil:
			http.Error(response, "no", http.StatusForbidden)
			return
		default:
			answer = lists[resource]
		}
		response.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(response).Encode(answer)
	}))
	t.Cleanup(server.Close)
	file := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(file, suite.Kubeconfig(t, server.URL+"/clusters/"+current, nil, ""), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("KUBECONFIG", file)
}

// world returns a workload workspace, an inventory workspace with a mailbox, and a workspace with nothing of the hub.
func world() workspaces {
	placement := func(name string, pairs ...edgev2alpha1.PlacementPair) edgev2alpha1.EdgePlacement {
		return edgev2alpha1.EdgePlacement{ObjectMeta: metav1.ObjectMeta{Name: name}, Status: edgev2alpha1.EdgePlacementStatus{Failed: int64(len(pairs)), Failures: pairs}}
	}
	slice := func(name string, targets ...string) edgev2alpha1.SinglePlacementSlice {
		made := edgev2alpha1.SinglePlacementSlice{ObjectMeta: metav1.ObjectMeta{Name: name}}
		for _, target := range targets {
			made.Destinations = append(made.Destinations, edgev2alpha1.SinglePlacement{SyncTargetName: target})
		}
		return made
	}
	pair := func(target string, failure edgev2alpha1.ObjectFailure) edgev2alpha1.PlacementPair {
		return edgev2alpha1.PlacementPair{SyncTarget: target, ObjectFailure: failure}
	}
	target := func(name, region, mailbox string, failures ...edgev2alpha1.ObjectFailure) edgev2alpha1.SyncTarget {
		return edgev2alpha1.SyncTarget{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"region": region}}, Status: edgev2alpha1.SyncTargetStatus{
			Mailbox: &edgev2alpha1.MailboxStatus{Cluster: mailbox}, Failures: failures,
		}}
	}
	withoutValues := edgev2alpha1.FieldDifference{Path: ".data.a"}
	configs := edgev2alpha1.SyncerConfigList{Items: []edgev2alpha1.SyncerConfig{{Status: edgev2alpha1.SyncerConfigStatus{
		Failures: []edgev2alpha1.ObjectFailure{failureOf("settings", plan.ReasonDrifted, differing)},
	}}}}
	return workspaces{
		"shop": {
			"edgeplacements": edgev2alpha1.EdgePlacementList{Items: []edgev2alpha1.EdgePlacement{
				placement("shop", pair("guilder", failureOf("settings", plan.ReasonDrifted, differing)), pair("florin", failureOf("settings", plan.ReasonConflict))),
				placement("web", pair("left", failureOf("web", plan.ReasonDrifted, differing))),
			}},
			"singleplacementslices": edgev2alpha1.SinglePlacementSliceList{Items: []edgev2alpha1.SinglePlacementSlice{slice("shop", "guilder", "florin"), slice("web", "krone")}},
		},
		"inventory": {"synctargets": edgev2alpha1.SyncTargetList{Items: []edgev2alpha1.SyncTarget{
			target("florin", "north", "mailbox", failureOf("settings", plan.ReasonDrifted, withoutValues)),
			target("ducat", "south", "closed", failureOf("settings", plan.ReasonDrifted, withoutValues)),
			target("krone", "south", "absent", failureOf("settings", plan.ReasonConflict)),
		}}},
		"mailbox": {"syncerconfigs": configs, "edgesyncconfigs": edgev2alpha1.EdgeSyncConfigList{}},
		"closed":  {"syncerconfigs": nil, "edgesyncconfigs": nil},
		"empty":   {},
	}
}

// runDrift runs the command, and returns its output on one line for each object.
func runDrift(t *testing.T, workspace string, args ...string) (out, errs string, err error) {
	t.Helper()
	world().serve(t, workspace)
	var printed, problems bytes.Buffer
	command := NewCommand(genericiooptions.IOStreams{Out: &printed, ErrOut: &problems})
	command.SilenceUsage, command.SilenceErrors = true, true
	// Without arguments, cobra takes the ones of the test.
	command.SetArgs(append([]string{}, args...))
	err = command.ExecuteContext(t.Context())
	for line := range strings.Lines(printed.String()) {
		out += strings.Join(strings.Fields(line), " ") + "\n"
	}
	return out, problems.String(), err
}

const header = "OBJECT SYNCTARGET FIELD MANAGER DESIRED OBSERVED\n"

func TestDriftCommand(t *testing.T) {
	const (
		ofShop = `configmaps shop/settings guilder .data.a kubectl-edit,x "x" "\x1b[31m"` + "\n"
		ofWeb  = `configmaps shop/web left .data.a kubectl-edit,x "x" "\x1b[31m"` + "\n"
		none   = "Nothing differs where drift is Report, as far as the hub has reported.\n"
		values = `configmaps shop/settings florin .data.a kubectl-edit,x "x" "\x1b[31m"` + "\n"
		closed = "configmaps shop/settings ducat .data.a - - -\n"
	)
	for name, c := range map[string]struct {
		workspace string
		args      []string
		out, errs string
	}{
		"a workload workspace":              {"shop", nil, header + ofShop + ofWeb, ""},
		"one EdgePlacement":                 {"shop", []string{"--placement", "shop"}, header + ofShop, ""},
		"a cluster":                         {"shop", []string{"--sync-targets", "guilder"}, header + ofShop, ""},
		"a cluster where nothing differs":   {"shop", []string{"--sync-targets", "krone"}, "", none},
		"a cluster that was a destination":  {"shop", []string{"--sync-targets", "left"}, header + ofWeb, ""},
		"the clusters of one EdgePlacement": {"shop", []string{"--placement", "shop", "--sync-targets", "florin,guilder"}, header + ofShop, ""},
		"an inventory workspace":            {"inventory", nil, header + closed + values, "The values on ducat cannot be shown, since its mailbox cannot be read: "},
		"a SyncTarget":                      {"inventory", []string{"--sync-targets", "florin"}, header + values, ""},
		"SyncTargets by label":              {"inventory", []string{"--sync-targets", "krone", "-l", "region=south"}, "", none},
		"a mailbox":                         {"mailbox", nil, header + strings.Replace(values, "florin", "-", 1), ""},
		"another workspace":                 {"empty", []string{"--workspace", "shop", "--placement", "web"}, header + ofWeb, ""},
		"another workspace, for a program":  {"shop", []string{"--workspace", "inventory", "--sync-targets", "krone", "-o", "json"}, "{ \"objects\": [] }\n", ""},
	} {
		out, errs, err := runDrift(t, c.workspace, c.args...)
		if c.args != nil && strings.Contains(strings.Join(c.args, " "), "json") {
			out = strings.Join(strings.Fields(out), " ") + "\n"
		}
		if err != nil || out != c.out || !strings.HasPrefix(errs, c.errs) || (c.errs == "") != (errs == "") {
			t.Errorf("%s: %v\n%s%s", name, err, out, errs)
		}
	}
}

// A flag that has no effect in a workspace is refused there, and so is a name that nothing has.
func TestDriftRefusesFlags(t *testing.T) {
	for name, c := range map[string]struct {
		workspace string
		args      []string
		want      string
	}{
		"a selector in a workload workspace":    {"shop", []string{"-l", "region=north"}, "--selector is for inventory workspaces"},
		"a selector in a mailbox":               {"mailbox", []string{"-l", "region=north"}, "--selector is for inventory workspaces"},
		"SyncTargets in a mailbox":              {"mailbox", []string{"--sync-targets", "florin"}, "--sync-targets is not for a mailbox"},
		"an EdgePlacement in an inventory":      {"inventory", []string{"--placement", "shop"}, "--placement is for workload workspaces"},
		"an EdgePlacement in a mailbox":         {"mailbox", []string{"--placement", "shop"}, "--placement is for workload workspaces"},
		"an EdgePlacement and a selector":       {"shop", []string{"--placement", "shop", "-l", "a=b"}, "[placement selector]"},
		"an EdgePlacement that does not exist":  {"shop", []string{"--placement", "absent"}, "there is no EdgePlacement absent"},
		"no cluster of the workspace":           {"shop", []string{"--sync-targets", "guilder,gilder"}, `--sync-targets: no EdgePlacement here has the cluster gilder (did you mean "guilder"?)`},
		"a cluster of another EdgePlacement":    {"shop", []string{"--placement", "shop", "--sync-targets", "krone"}, "no EdgePlacement here has the cluster krone"},
		"a SyncTarget that does not exist":      {"inventory", []string{"--sync-targets", "flroin"}, `"flroin" not found (did you mean "florin"?)`},
		"a workspace with nothing of the hub":   {"empty", nil, "no workload workspace, no inventory workspace and no mailbox"},
		"a workspace that does not exist":       {"absent", nil, "cannot read the APIs of the workspace"},
		"a mailbox that the user must not read": {"closed", nil, "no"},
		"an output that does not exist":         {"shop", []string{"-o", "xml"}, "xml"},
	} {
		out, _, err := runDrift(t, c.workspace, c.args...)
		if err == nil || !strings.Contains(err.Error(), c.want) || out != "" {
			t.Errorf("%s: %v\n%s", name, err, out)
		}
	}
}

func TestDriftExitCode(t *testing.T) {
	for name, c := range map[string]struct {
		workspace string
		args      []string
		want      int
	}{
		"something differs":            {"shop", nil, 1},
		"nothing differs":              {"shop", []string{"--sync-targets", "krone"}, 0},
		"an error":                     {"empty", nil, 2},
		"a flag that has no effect":    {"mailbox", []string{"--placement", "shop"}, 2},
		"a cluster without its values": {"inventory", []string{"--sync-targets", "ducat"}, 1},
	} {
		_, _, err := runDrift(t, c.workspace, append(c.args, "--exit-code")...)
		status := 0
		if exit, is := errors.AsType[*cli.ExitError](err); is {
			status = exit.Status
		} else if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if status != c.want {
			t.Errorf("%s: %d, want %d", name, status, c.want)
		}
	}
	if _, _, err := runDrift(t, "shop"); err != nil {
		t.Errorf("without the flag: %v", err)
	}
}
