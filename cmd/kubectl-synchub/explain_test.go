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
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	synchubv1alpha1 "github.com/synchub-dev/synchub/apis/synchub/v1alpha1"
	"github.com/synchub-dev/synchub/cmd/kubectl-synchub/explain"
	"github.com/synchub-dev/synchub/controllers/plan/naming"
	"github.com/synchub-dev/synchub/controllers/plan/ownership"
	"github.com/synchub-dev/synchub/controllers/plan/transform"
	"github.com/synchub-dev/synchub/controllers/publishedresource"
	"github.com/synchub-dev/synchub/test/fixtures"
	"github.com/synchub-dev/synchub/test/framework/suite"
)

// renamed publishes ConfigMaps under another name on targets, so that one cluster can be both mailbox and target.
const renamed = `
apiVersion: synchub.dev/v1alpha1
kind: PublishedResource
metadata: {name: configmaps}
spec:
  resource: {group: "", resource: configmaps, version: v1}
  naming: {name: "{{ .SyncTarget }}-{{ .Object.metadata.name }}"}
`

const mailboxOfDucat = `
apiVersion: v1
kind: Namespace
metadata: {name: bakery}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: settings, namespace: bakery}
data: {a: b}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: notes, namespace: bakery}
---
apiVersion: edge.kubestellar.io/v2alpha1
kind: SyncerConfig
metadata: {name: ducat}
spec: {namespacedObjects: [{resource: configmaps, apiVersion: v1, objectsByNamespace: [{namespace: bakery, names: [settings, absent]}]}]}
`

// workspaces starts a kcp double in which the cluster is every accessible workspace.
func (f *testFleet) workspaces(t *testing.T) {
	t.Helper()
	useServer(t, kcpDouble(t, f.Config, "root:fleet", "open")+"/clusters/root:fleet")
}

// kcpDouble starts a server that looks like kcp, in which a cluster is each of the workspaces. It returns the server's URL.
func kcpDouble(t testing.TB, cluster *rest.Config, workspaces ...string) string {
	t.Helper()
	proxy := suite.Forward(t, cluster)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		workspace, path, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/clusters/"), "/")
		if !slices.Contains(workspaces, workspace) {
			http.Error(w, "no access", http.StatusForbidden)
			return
		}
		r.URL.Path = "/" + path
		r.Header.Set("Authorization", "Bearer "+cluster.BearerToken)
		proxy.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	return server.URL
}

// make creates an object and deletes it at the end of the test.
func (f *testFleet) make(t *testing.T, object client.Object) {
	t.Helper()
	if err := f.admin.Create(t.Context(), object); err != nil {
		t.Fatal(err)
	}
	f.deleteAfter(t, object)
}

// deleteAfter deletes an object at the end of the test.
func (f *testFleet) deleteAfter(t *testing.T, object client.Object) {
	t.Helper()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), time.Minute)
		defer cancel()
		if err := client.IgnoreNotFound(f.admin.Delete(ctx, object)); err != nil {
			t.Error(err)
		}
	})
}

// ducat creates a SyncTarget for the cluster, with its credentials and a status.
func (f *testFleet) ducat(t *testing.T) *edgev2alpha1.SyncTarget {
	t.Helper()
	made := f.place(t, "ducat", metav1.ConditionTrue, "Ready", 0)
	for _, kind := range []string{edgev2alpha1.ConditionHeartbeatHealthy, edgev2alpha1.ConditionSyncerReady, edgev2alpha1.ConditionMailboxReady} {
		made.Status.Conditions = append(made.Status.Conditions, metav1.Condition{Type: kind, Status: metav1.ConditionTrue, Reason: "Good", LastTransitionTime: metav1.Now()})
	}
	made.Status.Mailbox = &edgev2alpha1.MailboxStatus{Workspace: "root:synchub:ducat", Cluster: "open"}
	made.Status.SyncedResources = []edgev2alpha1.SyncedResource{{Resource: "configmaps", Versions: []string{"v1"}, State: edgev2alpha1.SyncedResourceAccepted, Reason: "NotCompared"}}
	if err := f.admin.Status().Update(t.Context(), made); err != nil {
		t.Fatal(err)
	}
	kubeconfig, err := os.ReadFile(f.Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	f.make(t, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "ducat-kubeconfig", Labels: map[string]string{edgev2alpha1.LabelCredential: edgev2alpha1.CredentialKubeconfig}},
		Data:       map[string][]byte{"kubeconfig": kubeconfig},
	})
	return made
}

// bring creates on the target the copy that a hub would make of a mailbox object.
func (f *testFleet) bring(t *testing.T, syncTarget *edgev2alpha1.SyncTarget, name string) *unstructured.Unstructured {
	t.Helper()
	source := &unstructured.Unstructured{}
	source.SetAPIVersion("v1")
	source.SetKind("ConfigMap")
	if err := f.admin.Get(t.Context(), client.ObjectKey{Namespace: "bakery", Name: name}, source); err != nil {
		t.Fatal(err)
	}
	made := bringCopy(t, f.admin, source, syncTarget, fixtures.Decode[synchubv1alpha1.PublishedResource](t, renamed))
	f.deleteAfter(t, made)
	return made
}

// testHub is the UID of the hub that tests imitate.
const testHub = types.UID("a-hub")

// bringCopy creates on a target the copy that a hub would make of a namespaced mailbox object.
func bringCopy(t testing.TB, target client.Client, source *unstructured.Unstructured, of *edgev2alpha1.SyncTarget, published synchubv1alpha1.PublishedResource) *unstructured.Unstructured {
	t.Helper()
	namer, err := naming.Compile(published.Spec.Naming)
	if err != nil {
		t.Fatal(err)
	}
	desired, err := transform.Down{
		Owner: ownership.Owner{Hub: testHub, SyncTarget: of.UID, Sealer: ownership.InsecureSealer}, Mailbox: of.Status.Mailbox.Cluster, SyncTarget: of.Name,
		Resource: schema.GroupResource{Group: published.Spec.Resource.Group, Resource: published.Spec.Resource.Resource}, Namespaced: true, Hasher: ownership.NewHasher([]byte("a key")),
	}.Desired(source, transform.SyncSpec{Policy: ownership.PolicyDelete, Naming: namer})
	if err != nil {
		t.Fatal(err)
	}
	made := desired.ForCreate()
	if err := target.Patch(t.Context(), made, client.Apply, client.FieldOwner(ownership.FieldManager(testHub)), client.ForceOwnership); err != nil { //nolint:staticcheck // the object is not typed
		t.Fatal(err)
	}
	return made
}

// answer runs explain and returns its output in the format for programs.
func answer(t *testing.T, args ...string) explain.Explanation {
	t.Helper()
	var explained explain.Explanation
	got := succeed(t, append([]string{"explain", "-o", "json"}, args...)...)
	if err := json.Unmarshal([]byte(got.out), &explained); err != nil {
		t.Fatal(err)
	}
	return explained
}

// newExplained creates a SyncTarget and a mailbox with objects. No object is on the target yet.
func newExplained(t *testing.T) (f *testFleet, ducat *edgev2alpha1.SyncTarget) {
	t.Helper()
	f = newFleet(t)
	for _, name := range []string{"edge.kubestellar.io_syncerconfigs", "edge.kubestellar.io_edgesyncconfigs", "synchub.dev_publishedresources"} {
		crd, err := os.ReadFile("../../apis/schemas/crds/" + name + ".yaml") //nolint:gosec // a file of the repository
		if err != nil {
			t.Fatal(err)
		}
		suite.Apply(t, f.Config, string(crd))
	}
	suite.WaitUntil(t, "the APIs are served", func() bool {
		return f.admin.List(t.Context(), &edgev2alpha1.SyncerConfigList{}) == nil && f.admin.List(t.Context(), &edgev2alpha1.EdgeSyncConfigList{}) == nil &&
			f.admin.List(t.Context(), &synchubv1alpha1.PublishedResourceList{}) == nil
	})
	suite.Apply(t, f.Config, mailboxOfDucat)
	ducat = f.ducat(t)
	f.workspaces(t)
	return f, ducat
}

// asker runs explain with a PublishedResource from a file.
type asker func(args ...string) []string

func TestExplain(t *testing.T) {
	f, ducat := newExplained(t)
	file := write(t, map[string]string{"published.yaml": renamed})[0]
	ask := asker(func(args ...string) []string { return append([]string{"ducat", "-f", file}, args...) })

	t.Run("it waits", func(t *testing.T) {
		got := answer(t, ask("cm", "bakery/settings")...)
		if got.Result.Step != explain.StepTarget || got.Result.State != explain.Waiting || got.Result.OnTarget != explain.Absent || got.Resource != "configmaps" {
			t.Errorf("got %+v", got)
		}
		exitsWith(t, "the object is waiting at the step Target", ask("cm", "bakery/settings"))
	})
	placed := f.bring(t, ducat, "settings")
	t.Run("it is there", func(t *testing.T) {
		for _, resource := range []string{"configmaps", "cm", "ConfigMap"} {
			if got := answer(t, ask(resource, "bakery/settings")...); got.Result.State != explain.OK || got.Result.OnTarget != explain.Present {
				t.Errorf("%s: got %+v", resource, got)
			}
		}
		exitsWith(t, "", ask("cm", "bakery/settings"))
	})
	t.Run("for people", func(t *testing.T) { explainsToPeople(t, ask) })
	t.Run("it drifts", func(t *testing.T) {
		changed := placed.DeepCopy()
		changed.Object["data"] = map[string]any{"a": "c"}
		changed.SetManagedFields(nil)
		if err := f.admin.Update(t.Context(), changed); err != nil {
			t.Fatal(err)
		}
		if got := answer(t, ask("cm", "bakery/settings")...); got.Result.State != explain.Unknown || !strings.Contains(got.Result.Text, "does not own .data") {
			t.Errorf("got %+v", got)
		}
		exitsWith(t, "", ask("cm", "bakery/settings"))
	})
	t.Run("it is stopped", func(t *testing.T) { tellsWhatStops(t, ask) })
	t.Run("by the hosting cluster", func(t *testing.T) { asksTheHostingCluster(t, f) })
	t.Run("by the rules of the workspace", func(t *testing.T) { readsTheRules(t, f) })
	t.Run("mistakes", func(t *testing.T) { refusesQuestions(t, ask) })
	t.Run("what cannot be read", func(t *testing.T) { tellsWhatItCannotRead(t, f, ducat, ask) })
}

// exitsWith runs explain for a script. The command fails with a problem, or succeeds if problem is empty, and explains the object in any case.
func exitsWith(t *testing.T, problem string, args []string) {
	t.Helper()
	for _, format := range [][]string{nil, {"-o", "json"}} {
		got := plugin(t, slices.Concat([]string{"explain", "--exit-code"}, args, format)...)
		if (got.err != nil) != (problem != "") || got.err != nil && (got.err.Error() != "exit status 1" || !strings.Contains(got.errs, problem)) || !strings.Contains(got.out, explain.StepMailbox) {
			t.Errorf("want %q, got %v\n%s%s", problem, got.err, got.out, got.errs)
		}
	}
}

func tellsWhatStops(t *testing.T, ask asker) {
	t.Helper()
	for name, step := range map[string]string{
		"cm bakery/notes":                 explain.StepSelected,
		"cm bakery/absent":                explain.StepObject,
		"namespaces bakery":               explain.StepPublished,
		"gadgets.v1.example.dev bakery/a": explain.StepPublished,
	} {
		if got := answer(t, ask(strings.Fields(name)...)...); got.Result.Step != step || got.Result.State != explain.Stopped {
			t.Errorf("%s: got %+v", name, got)
		}
		exitsWith(t, "the object is stopped at the step "+step, ask(strings.Fields(name)...))
	}
	if got := answer(t, ask("cm", "bakery/notes")...); !strings.Contains(got.Result.Text, "it names the objects absent, settings") {
		t.Errorf("got %+v", got)
	}
	if got := answer(t, ask("gadgets.v1.example.dev", "bakery/a")...); got.Group != "example.dev" || got.Resource != "gadgets" {
		t.Errorf("got %+v", got)
	}
}

func explainsToPeople(t *testing.T, ask asker) {
	t.Helper()
	table := succeed(t, append([]string{"explain", "-n", "bakery"}, ask("cm", "settings")...)...).out
	if words := firstWords(table); strings.Join(words, " ") != "STEP SyncTarget Connection Mailbox Published Object Selected Name Compatibility Target Content Status settings" {
		t.Errorf("got\n%s", table)
	}
	for _, part := range []string{"selected by SyncerConfig/ducat spec.namespacedObjects[0]", "it is the ConfigMap bakery/ducat-settings", "\nsettings is on ducat, in sync with the mailbox.\n"} {
		if !strings.Contains(table, part) {
			t.Errorf("%q is missing in\n%s", part, table)
		}
	}
	var explained explain.Explanation
	if err := yaml.Unmarshal([]byte(succeed(t, append([]string{"explain", "-o", "yaml"}, ask("cm", "bakery/settings")...)...).out), &explained); err != nil || explained.Name != "settings" || len(explained.Steps) != 11 {
		t.Errorf("got %+v, %v", explained, err)
	}
}

func asksTheHostingCluster(t *testing.T, f *testFleet) {
	t.Helper()
	resource := fixtures.Decode[synchubv1alpha1.PublishedResource](t, renamed)
	f.make(t, &resource)
	got := answer(t, "ducat", "cm", "bakery/settings", "--hosting-kubeconfig", f.Kubeconfig)
	if got.Result.OnTarget != explain.Present || !strings.Contains(stepOf(got, explain.StepPublished).What, "PublishedResource configmaps publishes it") {
		t.Errorf("got %+v", got)
	}
	// Without the PublishedResource the object would keep its name, which another object has.
	if got := answer(t, "ducat", "cm", "bakery/settings"); stepOf(got, explain.StepPublished).State != explain.Unknown {
		t.Errorf("got %+v", got)
	}
}

// readsTheRules runs explain, and render, with what the hub shows of its rules.
func readsTheRules(t *testing.T, f *testFleet) {
	t.Helper()
	f.show(t, renamed)
	got := answer(t, "ducat", "cm", "bakery/settings")
	if stepOf(got, explain.StepPublished).State != explain.OK || !strings.Contains(stepOf(got, explain.StepName).What, "bakery/ducat-settings") {
		t.Errorf("got %+v", got)
	}
	object := write(t, map[string]string{"object.yaml": "{apiVersion: v1, kind: ConfigMap, metadata: {name: settings, namespace: bakery}}"})[0]
	if out := succeed(t, "published-resource", "render", "--object", object, "--sync-target", "ducat").out; !strings.Contains(out, "name: ducat-settings") {
		t.Errorf("got %s", out)
	}
	unpublished := write(t, map[string]string{"service.yaml": "{apiVersion: v1, kind: Service, metadata: {name: a, namespace: bakery}}"})[0]
	fail(t, "no PublishedResource publishes services", "published-resource", "render", "--object", unpublished)
}

// show shows PublishedResources in SyncRules, as the hub does.
func (f *testFleet) show(t *testing.T, published ...string) {
	t.Helper()
	suite.Apply(t, f.Config, string(suite.ReadFile(t, "../../apis/schemas/crds/edge.kubestellar.io_syncrules.yaml")))
	suite.WaitUntil(t, "SyncRules are served", func() bool { return f.admin.List(t.Context(), &edgev2alpha1.SyncRulesList{}) == nil })
	rules := &edgev2alpha1.SyncRules{ObjectMeta: metav1.ObjectMeta{Name: edgev2alpha1.SyncRulesName}}
	f.make(t, rules)
	rules.Status = syncRules(t, published...)
	if err := f.admin.Status().Update(t.Context(), rules); err != nil {
		t.Fatal(err)
	}
}

// syncRules returns the rules of a hub with some PublishedResources.
func syncRules(t testing.TB, published ...string) edgev2alpha1.SyncRulesStatus {
	t.Helper()
	var all []synchubv1alpha1.PublishedResource
	for _, text := range published {
		all = append(all, fixtures.Decode[synchubv1alpha1.PublishedResource](t, text))
	}
	rules, err := publishedresource.SyncRulesOf(publishedresource.Hub{UID: "a-hub"}, nil, all)
	if err != nil {
		t.Fatal(err)
	}
	return rules
}

func stepOf(explained explain.Explanation, name string) explain.Step {
	for _, step := range explained.Steps {
		if step.Step == name {
			return step
		}
	}
	return explain.Step{}
}

func refusesQuestions(t *testing.T, ask asker) {
	t.Helper()
	for message, args := range map[string][]string{
		"give the name of a SyncTarget, a resource": {"ducat", "cm"},
		`"nobody" not found`:                        {"nobody", "cm", "bakery/settings"},
		"is none of json, yaml":                     ask("cm", "bakery/settings", "-o", "name"),
		"configmaps are in namespaces":              ask("cm", "settings"),
		"namespaces are in no namespace":            ask("namespaces", "a/bakery"),
		"is not of the form NAMESPACE/NAME":         ask("cm", "bakery/"),
		"absent.yaml":                               {"ducat", "cm", "bakery/settings", "-f", "absent.yaml"},
		"hosting cluster":                           {"ducat", "cm", "bakery/settings", "--hosting-kubeconfig", "absent.yaml"},
		"none of the others can be":                 ask("cm", "bakery/settings", "--hosting-kubeconfig", "absent.yaml"),
		"cannot read the target's kubeconfig":       ask("cm", "bakery/settings", "--target-kubeconfig", "absent.yaml"),
	} {
		fail(t, message, append([]string{"explain"}, args...)...)
	}
}

func tellsWhatItCannotRead(t *testing.T, f *testFleet, ducat *edgev2alpha1.SyncTarget, ask asker) {
	t.Helper()
	proof := filepath.Join(t.TempDir(), "executed")
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "ducat-kubeconfig"}}
	if err := f.admin.Patch(t.Context(), secret, client.RawPatch(types.MergePatchType, jsonOf(t, map[string]any{"stringData": map[string]any{"kubeconfig": `
apiVersion: v1
kind: Config
current-context: a
contexts: [{name: a, context: {cluster: a, user: a}}]
clusters: [{name: a, cluster: {server: "https://127.0.0.1:1"}}]
users: [{name: a, user: {exec: {apiVersion: client.authentication.k8s.io/v1, command: touch, args: ["` + proof + `"], interactiveMode: Never}}}]
`}}))); err != nil {
		t.Fatal(err)
	}
	got := answer(t, ask("cm", "bakery/settings")...)
	if step := stepOf(got, explain.StepTarget); step.State != explain.Unknown || !strings.Contains(step.What, "users.user.exec") || got.Result.OnTarget != explain.PresenceUnknown {
		t.Errorf("got %+v", got)
	}
	if _, err := os.Stat(proof); err == nil {
		t.Error("a program was executed")
	}
	if got := answer(t, ask("cm", "bakery/settings", "--target-kubeconfig", f.Kubeconfig)...); got.Result.OnTarget != explain.Present {
		t.Errorf("got %+v", got)
	}
	if err := f.admin.Delete(t.Context(), secret); err != nil {
		t.Fatal(err)
	}
	ducat.Status.Mailbox.Cluster = "closed"
	if err := f.admin.Status().Update(t.Context(), ducat); err != nil {
		t.Fatal(err)
	}
	got = answer(t, ask("configmaps", "bakery/settings")...)
	if stepOf(got, explain.StepMailbox).State != explain.Unknown || !strings.Contains(stepOf(got, explain.StepMailbox).What, "no access") || got.Result.Step != "" {
		t.Errorf("got %+v", got)
	}
}

func jsonOf(t *testing.T, value any) []byte {
	t.Helper()
	text, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return text
}
