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

package diff

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/synchub-dev/synchub/cmd/kubectl-synchub/cli"
	"github.com/synchub-dev/synchub/test/fixtures"
	"github.com/synchub-dev/synchub/test/framework/suite"
)

// workspaces are the workspaces of a kcp, with the objects of each of their resources. A resource that is not there is not served.
type workspaces map[string]map[schema.GroupVersionResource][]string

const edgeGroup = "edge.kubestellar.io"

var (
	configMaps     = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
	apiBindings    = schema.GroupVersionResource{Group: "apis.kcp.io", Version: "v1alpha2", Resource: "apibindings"}
	edgePlacements = schema.GroupVersionResource{Group: edgeGroup, Version: "v2alpha1", Resource: "edgeplacements"}
	slicesOfThem   = schema.GroupVersionResource{Group: edgeGroup, Version: "v2alpha1", Resource: "singleplacementslices"}
	syncRules      = schema.GroupVersionResource{Group: edgeGroup, Version: "v2alpha1", Resource: "syncrules"}
	syncTargets    = schema.GroupVersionResource{Group: edgeGroup, Version: "v2alpha1", Resource: "synctargets"}
	locations      = schema.GroupVersionResource{Group: edgeGroup, Version: "v2alpha1", Resource: "locations"}
	syncerConfigs  = schema.GroupVersionResource{Group: edgeGroup, Version: "v2alpha1", Resource: "syncerconfigs"}
)

var kindsOfResources = map[string]string{
	"configmaps": "ConfigMap", "apibindings": "APIBinding", "edgeplacements": "EdgePlacement", "singleplacementslices": "SinglePlacementSlice",
	"syncrules": "SyncRules", "synctargets": "SyncTarget", "locations": "Location", "syncerconfigs": "SyncerConfig",
}

// serve makes a kcp with the workspaces the current cluster, in the workspace given. It stores nothing.
func (w workspaces) serve(t *testing.T, current string) {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(response http.ResponseWriter, request *http.Request) {
		name, path, _ := strings.Cut(strings.TrimPrefix(request.URL.Path, "/clusters/"), "/")
		served, exists := w[name]
		if !exists {
			http.Error(response, "no", http.StatusForbidden)
			return
		}
		body, err := io.ReadAll(request.Body)
		answer := answerTo(t, name, served, strings.Split(path, "/"), body)
		response.Header().Set("Content-Type", "application/json")
		if status, isStatus := answer.(metav1.Status); isStatus {
			response.WriteHeader(int(status.Code))
		}
		if err := errors.Join(err, json.NewEncoder(response).Encode(answer)); err != nil {
			t.Error(err)
		}
	}))
	t.Cleanup(server.Close)
	file := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(file, suite.Kubeconfig(t, server.URL+"/clusters/"+current, nil, ""), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("KUBECONFIG", file)
}

// answerTo returns the answer to a request in a workspace, by the parts of the path. An object of the body is returned as it is.
func answerTo(t *testing.T, workspace string, served map[schema.GroupVersionResource][]string, path []string, body []byte) any {
	t.Helper()
	switch {
	case len(path) == 1 && path[0] == "api":
		return metav1.APIVersions{TypeMeta: metav1.TypeMeta{Kind: "APIVersions", APIVersion: "v1"}, Versions: []string{"v1"}}
	case len(path) == 1:
		return groupsOf(served)
	}
	var version schema.GroupVersion
	if path[0] == "apis" {
		version.Group, path = path[1], path[1:]
	}
	version.Version, path = path[1], path[2:]
	if len(path) == 0 {
		return resourcesOf(served, version)
	}
	if path[0] == "namespaces" && len(path) > 2 {
		path = path[2:]
	}
	resource := version.WithResource(path[0])
	objects := objectsOf(t, workspace, resource, append(slices.Clone(served[resource]), string(body)))
	if len(path) == 1 {
		list := &unstructured.UnstructuredList{Items: objects}
		list.SetGroupVersionKind(version.WithKind(kindsOfResources[path[0]] + "List"))
		list.SetResourceVersion("1")
		return list
	}
	for _, object := range slices.Backward(objects) {
		if object.GetName() == path[1] {
			return &object
		}
	}
	missing := apierrors.NewNotFound(resource.GroupResource(), path[1]).Status()
	missing.TypeMeta = metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}
	return missing
}

func groupsOf(served map[schema.GroupVersionResource][]string) any {
	list := metav1.APIGroupList{TypeMeta: metav1.TypeMeta{Kind: "APIGroupList", APIVersion: "v1"}}
	for resource := range served {
		one := metav1.GroupVersionForDiscovery{GroupVersion: resource.GroupVersion().String(), Version: resource.Version}
		if resource.Group != "" && !slices.ContainsFunc(list.Groups, func(group metav1.APIGroup) bool { return group.Name == resource.Group }) {
			list.Groups = append(list.Groups, metav1.APIGroup{Name: resource.Group, Versions: []metav1.GroupVersionForDiscovery{one}, PreferredVersion: one})
		}
	}
	return list
}

func resourcesOf(served map[schema.GroupVersionResource][]string, version schema.GroupVersion) any {
	list := metav1.APIResourceList{TypeMeta: metav1.TypeMeta{Kind: "APIResourceList", APIVersion: "v1"}, GroupVersion: version.String()}
	for resource := range served {
		if resource.GroupVersion() == version {
			list.APIResources = append(list.APIResources, metav1.APIResource{Name: resource.Resource, Kind: kindsOfResources[resource.Resource], Namespaced: resource == configMaps, Verbs: metav1.Verbs{"list"}})
		}
	}
	return list
}

func objectsOf(t *testing.T, workspace string, resource schema.GroupVersionResource, manifests []string) (objects []unstructured.Unstructured) {
	t.Helper()
	for _, manifest := range manifests {
		if manifest == "" {
			continue
		}
		object := unstructured.Unstructured{Object: fixtures.Map(t, manifest)}
		object.SetGroupVersionKind(resource.GroupVersion().WithKind(kindsOfResources[resource.Resource]))
		object.SetAnnotations(map[string]string{"kcp.io/cluster": workspace})
		objects = append(objects, object)
	}
	return objects
}

// world returns a workload workspace whose EdgePlacement has a destination in an inventory workspace, one that has none, an inventory
// workspace that is a workload workspace too, and a mailbox.
func world() workspaces {
	const rules = "{metadata: {name: synchub}, status: {hub: a-hub}}"
	const slice = "{metadata: {name: bakery}, destinations: [{cluster: inventory, locationName: north, syncTargetName: florin, syncTargetUID: f}]}"
	const placement = "{metadata: {name: bakery, uid: p}, spec: {locationSelectors: [{matchLabels: {region: north}}], downsync: [{namespaces: [bakery]}]}}"
	return workspaces{
		"root:shop": {
			configMaps: nil, apiBindings: nil, syncRules: {rules}, edgePlacements: {placement}, slicesOfThem: {slice},
		},
		"root:new": {configMaps: nil, apiBindings: nil, syncRules: {rules}, edgePlacements: nil, slicesOfThem: nil},
		"inventory": {
			locations:   {"{metadata: {name: north, labels: {region: north}}, spec: {instanceSelector: {matchLabels: {region: north}}, availableTo: {workspaces: ['root:shop']}}}"},
			syncTargets: {"{metadata: {name: florin, uid: f, labels: {region: north}}}", "{metadata: {name: guilder, uid: g}}"},
		},
		"both": {
			configMaps: nil, apiBindings: nil, syncRules: {rules}, edgePlacements: nil, slicesOfThem: nil, locations: nil,
			syncTargets: {"{metadata: {name: krone, uid: k}}"},
		},
		"mailbox": {syncerConfigs: nil},
	}
}

// runDiff runs a command in a workspace, about an object. It returns the exit status, and what it prints on standard error.
func runDiff(t *testing.T, workspace, manifest string, args ...string) (status int, errs string) {
	t.Helper()
	world().serve(t, workspace)
	file := filepath.Join(t.TempDir(), "file.yaml")
	if err := os.WriteFile(file, []byte(manifest), 0o600); err != nil {
		t.Fatal(err)
	}
	var printed, problems bytes.Buffer
	command := NewCommand(genericiooptions.IOStreams{Out: &printed, ErrOut: &problems})
	command.SilenceUsage, command.SilenceErrors = true, true
	command.SetArgs(append(args, "-f", file))
	err := command.ExecuteContext(t.Context())
	if exit, is := errors.AsType[*cli.ExitError](err); is {
		return exit.Status, problems.String() + err.Error()
	}
	if err != nil {
		status = 1
	}
	return status, problems.String()
}

// A mistyped name of a SyncTarget must not look like a cluster where nothing changes.
func TestSyncTargetsFlag(t *testing.T) {
	const (
		configMap = "{apiVersion: v1, kind: ConfigMap, metadata: {name: settings, namespace: elsewhere}}"
		placement = "{apiVersion: edge.kubestellar.io/v2alpha1, kind: EdgePlacement, metadata: {name: bakery, uid: p}, spec: {locationSelectors: [{matchLabels: {region: north}}], downsync: [{namespaces: [bakery]}]}}"
		allNorth  = "{apiVersion: edge.kubestellar.io/v2alpha1, kind: Location, metadata: {name: north, labels: {region: north}}, spec: {instanceSelector: {}, availableTo: {workspaces: ['root:shop']}}}"
		closed    = "{apiVersion: edge.kubestellar.io/v2alpha1, kind: Location, metadata: {name: north, labels: {region: north}}, spec: {instanceSelector: {}, availableTo: {workspaces: ['root:shop', 'root:closed']}}}"
		published = "{apiVersion: synchub.dev/v1alpha1, kind: PublishedResource, metadata: {name: configmaps}, spec: {resource: {group: '', resource: configmaps, version: v1}}}"
	)
	const unknown = `--sync-targets: the cluster flroin is no destination before or after the change, and no SyncTarget that you may list (did you mean "florin"?)`
	const unnamed = "--sync-targets: the cluster flroin is no destination before or after the change, and no SyncTarget that you may list"
	const inMailbox = "--sync-targets is not for a mailbox, which has one SyncTarget"
	for name, c := range map[string]struct {
		workspace, manifest string
		args                []string
		status              int
		errs                string
	}{
		"manifests, a destination":                 {"root:shop", configMap, []string{"--sync-targets", "florin"}, 0, ""},
		"manifests, a SyncTarget of the inventory": {"root:shop", configMap, []string{"--sync-targets", "guilder"}, 0, ""},
		"manifests, no such cluster":               {"root:shop", configMap, []string{"--sync-targets", "florin,flroin"}, 2, unknown},
		"manifests, no destination at all":         {"root:new", configMap, []string{"--sync-targets", "flroin"}, 2, unnamed},
		"manifests, an inventory of its own":       {"both", configMap, []string{"--sync-targets", "krone"}, 0, ""},
		"manifests, not in its own inventory":      {"both", configMap, []string{"--sync-targets", "kron"}, 2, `(did you mean "krone"?)`},
		"manifests, in an inventory":               {"inventory", configMap, []string{"--sync-targets", "flroin"}, 2, `"flroin" not found (did you mean "florin"?)`},
		"manifests, in a mailbox":                  {"mailbox", configMap, []string{"--sync-targets", "florin"}, 2, inMailbox},
		"a placement, a destination":               {"root:shop", placement, []string{"placement", "--sync-targets", "florin"}, 0, ""},
		"a placement, no such cluster":             {"root:shop", placement, []string{"placement", "--sync-targets", "flroin"}, 2, unknown},
		"a Location, a destination":                {"inventory", allNorth, []string{"location", "--sync-targets", "florin"}, 0, ""},
		"a Location, a new destination":            {"inventory", allNorth, []string{"location", "--sync-targets", "guilder"}, 0, ""},
		"a Location, no such cluster":              {"inventory", allNorth, []string{"location", "--sync-targets", "flroin"}, 2, unknown},
		"a Location, with an unknown workspace":    {"inventory", closed, []string{"location", "--sync-targets", "flroin"}, 2, "the workspace root:closed cannot be asked"},
		"rules, no such cluster":                   {"inventory", published, []string{"published-resource", "--sync-targets", "flroin"}, 2, `"flroin" not found (did you mean "florin"?)`},
		"rules, a SyncTarget without a mailbox":    {"inventory", published, []string{"published-resource", "--sync-targets", "florin"}, 2, "its mailbox cannot be read: there is none yet"},
		"rules, in a mailbox":                      {"mailbox", published, []string{"published-resource", "--sync-targets", "florin"}, 2, inMailbox},
	} {
		t.Run(name, func(t *testing.T) {
			status, errs := runDiff(t, c.workspace, c.manifest, c.args...)
			if status != c.status || !strings.Contains(errs, c.errs) || strings.Contains(errs, "problem: EdgePlacement") {
				t.Errorf("exit status %d\n%s", status, errs)
			}
		})
	}
}
