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
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	apisv1alpha2 "github.com/kcp-dev/sdk/apis/apis/v1alpha2"
	tenancyv1alpha1 "github.com/kcp-dev/sdk/apis/tenancy/v1alpha1"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	synchubv1alpha1 "github.com/synchub-dev/synchub/apis/synchub/v1alpha1"
	"github.com/synchub-dev/synchub/cmd/kubectl-synchub/cli"
	"github.com/synchub-dev/synchub/provider/bootstrap"
	"github.com/synchub-dev/synchub/test/framework"
	"github.com/synchub-dev/synchub/test/framework/servers"
	"github.com/synchub-dev/synchub/test/framework/suite"
	"github.com/synchub-dev/synchub/test/tier"
)

const (
	allProvider  = "root:all-mailboxes"
	allInventory = "root:all-inventory"
)

// allMailboxesTest is a provider workspace with two mailboxes, and a user who has no rights there unless the test gives
// them. The hub does not run.
type allMailboxesTest struct {
	kcp      *servers.KCP
	provider client.Client
	// clusters are the logical clusters of the mailboxes.
	clusters map[string]string
}

func newAllMailboxesTest(t *testing.T) *allMailboxesTest {
	t.Helper()
	kcp := suite.KCP(t)
	if err := bootstrap.Run(t.Context(), bootstrap.Options{
		Config: kcp.Workspace, Workspace: allProvider, HubUser: "another", InventoryGroups: []string{servers.HubGroup}, Report: func(string, string) {},
	}); err != nil {
		t.Fatal(err)
	}
	provider, err := client.New(kcp.Workspace(allProvider), client.Options{Scheme: bootstrap.Scheme()})
	if err != nil {
		t.Fatal(err)
	}
	a := &allMailboxesTest{kcp: kcp, provider: provider, clusters: map[string]string{}}
	publishAPIs(t, kcp, allProvider, synchubv1alpha1.MailboxExport)
	for _, name := range []string{"mb-a", "mb-b"} {
		a.createMailbox(t, name)
	}
	useConfig(t, framework.InWorkspace(kcp.HubConfig, allProvider))
	return a
}

// publishAPIs adds Deployments and ConfigMaps to exports of a provider workspace, as the hub does for PublishedResources.
func publishAPIs(t testing.TB, kcp *servers.KCP, provider string, exports ...string) {
	t.Helper()
	suite.Apply(t, kcp.Workspace(provider), `
apiVersion: apis.kcp.io/v1alpha1
kind: APIResourceSchema
metadata: {name: v1.deployments.apps}
spec:
  group: apps
  scope: Namespaced
  names: {plural: deployments, singular: deployment, kind: Deployment, listKind: DeploymentList, shortNames: [deploy]}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {type: object, x-kubernetes-preserve-unknown-fields: true}
    additionalPrinterColumns:
    - {name: Size, type: integer, jsonPath: .spec.replicas}
    - {name: Paused, type: string, jsonPath: .spec.paused, priority: 1}
`)
	workspace, err := client.New(kcp.Workspace(provider), client.Options{Scheme: bootstrap.Scheme()})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range exports {
		suite.Eventually(t, func(g Gomega) {
			export := &apisv1alpha2.APIExport{}
			g.Expect(workspace.Get(t.Context(), types.NamespacedName{Name: name}, export)).To(Succeed())
			export.Spec.PermissionClaims = append(export.Spec.PermissionClaims, apisv1alpha2.PermissionClaim{GroupResource: apisv1alpha2.GroupResource{Resource: "configmaps"}, Verbs: []string{"*"}})
			export.Spec.Resources = append(export.Spec.Resources, apisv1alpha2.ResourceSchema{
				Group: "apps", Name: "deployments", Schema: "v1.deployments.apps", Storage: apisv1alpha2.ResourceSchemaStorage{CRD: &apisv1alpha2.ResourceSchemaStorageCRD{}},
			})
			g.Expect(workspace.Update(t.Context(), export)).To(Succeed())
		})
	}
}

// createMailbox creates a workspace that binds the mailbox export, with a Deployment and ConfigMaps.
func (a *allMailboxesTest) createMailbox(t *testing.T, name string) {
	t.Helper()
	created, err := framework.CreateWorkspace(t.Context(), a.kcp.Config, allProvider, name, "")
	if err != nil {
		t.Fatal(err)
	}
	a.clusters[name] = created.Spec.Cluster
	mailbox := a.kcp.Workspace(allProvider + ":" + name)
	suite.Apply(t, mailbox, bindingOf(allProvider, synchubv1alpha1.MailboxExport, "configmaps", "namespaces"))
	suite.Eventually(t, func(g Gomega) {
		g.Expect(framework.Apply(t.Context(), mailbox, "apiVersion: v1\nkind: Namespace\nmetadata: {name: shop}\n"+
			a.configMap("settings", "default", "app: web")+a.configMap("settings", "shop", "app: db")+
			"---\napiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web, namespace: shop}\nspec: {replicas: 3, paused: maybe}\n")).To(Succeed())
	})
}

// bindingOf returns a manifest that binds an export and accepts claims of the core group.
func bindingOf(provider, export string, claims ...string) string {
	var accepted []string
	for _, resource := range claims {
		accepted = append(accepted, fmt.Sprintf("{group: '', resource: %s, verbs: ['*'], selector: {matchAll: true}, state: Accepted}", resource))
	}
	return fmt.Sprintf("apiVersion: apis.kcp.io/v1alpha2\nkind: APIBinding\nmetadata: {name: synchub}\nspec: {reference: {export: {path: %q, name: %s}}, permissionClaims: [%s]}\n",
		provider, export, strings.Join(accepted, ", "))
}

func (a *allMailboxesTest) configMap(name, namespace, labels string) string {
	return fmt.Sprintf("---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: %s, namespace: %s, labels: {%s}}\n", name, namespace, labels)
}

// getAll returns a command line of get with --all-mailboxes.
func getAll(args ...string) []string {
	return append(append([]string{"get"}, args...), "--all-mailboxes", "--provider-workspace", allProvider)
}

// documentedRole returns the manifests on the page, for the user of the test.
func documentedRole(t *testing.T) string {
	t.Helper()
	found := regexp.MustCompile("(?ms)^```yaml\n(.*?)^```$").FindStringSubmatch(readAllSection(t))
	if found == nil {
		t.Fatal("the page shows no role")
	}
	return strings.Replace(found[1], "name: alice", "name: "+servers.HubUser, 1)
}

// readAllSection returns the section of the page for operators about --all-mailboxes.
func readAllSection(t *testing.T) string {
	t.Helper()
	_, section, _ := strings.Cut(string(suite.ReadFile(t, "../../docs/operations.md")), "\n## Read all mailboxes at once\n")
	section, _, found := strings.Cut(section, "\n## ")
	if !found {
		t.Fatal("the section is missing")
	}
	return section
}

// grant gives the user the documented role, without some of its text.
func (a *allMailboxesTest) grant(t *testing.T, without ...string) {
	t.Helper()
	role := documentedRole(t)
	for _, part := range without {
		if !strings.Contains(role, part) {
			t.Fatalf("the role does not have %q", part)
		}
		role = strings.Replace(role, part, "", 1)
	}
	suite.Apply(t, a.kcp.Workspace(allProvider), role)
}

// rows returns the fields of each line of a table without headers.
func rows(table string) (found []string) {
	for line := range strings.Lines(table) {
		found = append(found, strings.Join(strings.Fields(line), " "))
	}
	slices.Sort(found)
	return found
}

func TestGetAllMailboxes(t *testing.T) {
	tier.Thorough(t)
	a := newAllMailboxesTest(t)
	t.Run("without the role", a.refuses)
	t.Run("shows logical clusters without the right to list Workspaces", a.showsClusters)
	t.Run("shows SyncTargets of the current workspace", a.showsSyncTargets)
	a.grant(t)
	t.Run("shows tables", a.showsTables)
	t.Run("selects", a.selects)
	t.Run("prints objects", a.printsObjects)
	t.Run("watches", a.watches)
	t.Run("writes nothing", a.writesNothing)
	t.Run("runs the documented commands", a.runsDocumented)
}

func (a *allMailboxesTest) refuses(t *testing.T) {
	const role = `let an administrator of the provider workspace root:all-mailboxes grant you the role of "Read all mailboxes at once" in docs/operations.md`
	fail(t, role, getAll("configmaps")...)
	fail(t, "the workspace root:nowhere has no export mailbox.edge.kubestellar.io: name the hub's provider workspace", "get", "configmaps", "--all-mailboxes", "--provider-workspace", "root:nowhere")
	a.grant(t, "verbs: [get, list, watch]", "- apiGroups: [apis.kcp.io]\n  resources: [apiexports/content]\n  resourceNames: [mailbox.edge.kubestellar.io]\n  ", "- apiGroups: [tenancy.kcp.io]\n  resources: [workspaces]\n  verbs: [list]\n")
	suite.Eventually(t, func(g Gomega) {
		got := plugin(t, getAll("configmaps")...)
		g.Expect(got.errs).To(HavePrefix("error: you may not read the APIs of the mailboxes: " + role))
	})
	a.grant(t, ", list, watch")
	suite.Eventually(t, func(g Gomega) {
		got := plugin(t, getAll("configmaps")...)
		g.Expect(got.errs).To(HavePrefix("error: you may not list configmaps of all mailboxes"))
		g.Expect(got.errs).To(ContainSubstring("has the verb list on apiexports/content"))
	})
	a.grant(t, ", watch")
	suite.Eventually(t, func(g Gomega) {
		got := plugin(t, getAll("configmaps", "--watch")...)
		g.Expect(got.errs).To(HavePrefix("error: you may not watch configmaps of all mailboxes"))
	})
}

func (a *allMailboxesTest) showsClusters(t *testing.T) {
	a.grant(t, "- apiGroups: [tenancy.kcp.io]\n  resources: [workspaces]\n  verbs: [list]\n")
	suite.Eventually(t, func(g Gomega) {
		got := plugin(t, getAll("cm", "settings", "--no-headers")...)
		g.Expect(got.errs).To(BeEmpty())
		g.Expect(firstWords(got.out)).To(ConsistOf(a.clusters["mb-a"], a.clusters["mb-b"]))
	})
}

func (a *allMailboxesTest) showsSyncTargets(t *testing.T) {
	if _, err := framework.CreateWorkspace(t.Context(), a.kcp.Config, "root", "all-inventory", ""); err != nil {
		t.Fatal(err)
	}
	suite.Apply(t, a.kcp.Workspace(allInventory), bindingOf(allProvider, synchubv1alpha1.InventoryExport)+
		rightsOf("admin", "cluster-admin")+rightsOf("access", "system:kcp:workspace:access"))
	inventory, err := cli.ClientOf(a.kcp.Workspace(allInventory))
	if err != nil {
		t.Fatal(err)
	}
	guilder := &edgev2alpha1.SyncTarget{}
	guilder.Name = "guilder"
	suite.Eventually(t, func(g Gomega) { g.Expect(inventory.Create(t.Context(), guilder)).To(Succeed()) })
	guilder.Status.Mailbox = &edgev2alpha1.MailboxStatus{Workspace: allProvider + ":mb-b", Cluster: a.clusters["mb-b"]}
	if err := inventory.Status().Update(t.Context(), guilder); err != nil {
		t.Fatal(err)
	}
	useConfig(t, framework.InWorkspace(a.kcp.HubConfig, allInventory))
	suite.Eventually(t, func(g Gomega) {
		got := plugin(t, getAll("cm", "settings", "--no-headers")...)
		g.Expect(firstWords(got.out)).To(ConsistOf(a.clusters["mb-a"], "guilder"))
	})
}

func (a *allMailboxesTest) showsTables(t *testing.T) {
	a.annotate(t, "mb-a", "florin")
	a.annotate(t, "mb-b", "guilder")
	suite.Eventually(t, func(g Gomega) {
		got := plugin(t, getAll("deploy", "-A")...)
		g.Expect(rows(got.out)).To(ConsistOf(MatchRegexp(`^TARGET NAMESPACE NAME SIZE AGE$`), MatchRegexp(`^florin shop web 3 \S+$`), MatchRegexp(`^guilder shop web 3 \S+$`)), got.errs)
	})
	if got := succeed(t, getAll("deployments.apps", "-n", "shop", "-o", "wide")...); !strings.HasPrefix(got.out, "TARGET    NAME   SIZE   PAUSED   AGE\nflorin    web    3      maybe") {
		t.Errorf("got\n%s", got.out)
	}
	if got := succeed(t, getAll("namespaces", "shop", "--no-headers", "--show-labels")...); len(rows(got.out)) != 2 || !strings.Contains(got.out, "kubernetes.io/metadata.name=shop") {
		t.Errorf("got\n%s", got.out)
	}
	if got := succeed(t, getAll("deployments")...); got.out != "" || got.errs != "No deployments.apps found in the namespace default of the mailboxes; -A lists all namespaces.\n" {
		t.Errorf("got %q, %q", got.out, got.errs)
	}
	fail(t, `no mailbox serves "secrets": publish it`, getAll("secrets")...)
	fail(t, "the workspace root:all-inventory has no export mailbox.edge.kubestellar.io", "get", "cm", "--all-mailboxes", "--provider-workspace", allInventory)
}

// annotate sets the annotation with the name of the SyncTarget, as the hub does.
func (a *allMailboxesTest) annotate(t *testing.T, workspace, syncTarget string) {
	t.Helper()
	object := &tenancyv1alpha1.Workspace{}
	object.Name = workspace
	patch := fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}}}`, edgev2alpha1.AnnotationSyncTargetName, syncTarget)
	if err := a.provider.Patch(t.Context(), object, client.RawPatch(types.MergePatchType, []byte(patch))); err != nil {
		t.Fatal(err)
	}
}

// names returns namespaces and names as custom columns.
func (a *allMailboxesTest) names(t *testing.T, args ...string) []string {
	t.Helper()
	return rows(succeed(t, getAll(append(args, "--no-headers", "-o", "custom-columns=NAMESPACE:.metadata.namespace,NAME:.metadata.name")...)...).out)
}

func (a *allMailboxesTest) selects(t *testing.T) {
	g := NewWithT(t)
	g.Expect(a.names(t, "cm", "-A", "-l", "app=web")).To(Equal([]string{"default settings", "default settings"}))
	// kcp itself returns nothing for these.
	g.Expect(a.names(t, "cm", "settings", "-n", "shop")).To(Equal([]string{"shop settings", "shop settings"}))
	g.Expect(a.names(t, "cm", "-A", "--field-selector", "metadata.namespace=shop,metadata.name=settings")).To(Equal([]string{"shop settings", "shop settings"}))
	g.Expect(a.names(t, "ns", "--field-selector", "metadata.name=shop")).To(Equal([]string{"<none> shop", "<none> shop"}))
	fail(t, `configmaps "nobody" not found in any mailbox`, getAll("cm", "settings", "nobody")...)
	fail(t, "spec.x", getAll("cm", "--field-selector", "spec.x=a")...)
	sorted := succeed(t, getAll("cm", "settings", "-A", "--no-headers", "--sort-by", ".metadata.namespace")...)
	var found []string
	for line := range strings.Lines(sorted.out) {
		found = append(found, strings.Join(strings.Fields(line)[:2], " "))
	}
	g.Expect(found).To(Equal([]string{"florin default", "guilder default", "florin shop", "guilder shop"}))
}

func (a *allMailboxesTest) printsObjects(t *testing.T) {
	g := NewWithT(t)
	g.Expect(succeed(t, getAll("cm", "settings", "-o", "name")...).out).To(Equal("configmap/settings\nconfigmap/settings\n"))
	list := &unstructured.UnstructuredList{}
	g.Expect(json.Unmarshal([]byte(succeed(t, getAll("cm", "settings", "-o", "json")...).out), list)).To(Succeed())
	g.Expect(list.GetAPIVersion() + " " + list.GetKind()).To(Equal("v1 List"))
	var clusters []string
	for _, item := range list.Items {
		clusters = append(clusters, item.GetAnnotations()["kcp.io/cluster"])
	}
	g.Expect(clusters).To(ConsistOf(a.clusters["mb-a"], a.clusters["mb-b"]))
	g.Expect(succeed(t, getAll("deploy", "-A", "-o", "jsonpath={.items[*].spec.replicas}")...).out).To(Equal("3 3"))
	g.Expect(succeed(t, getAll("deploy", "-A", "-o", "go-template={{len .items}}")...).out).To(Equal("2"))
	g.Expect(succeed(t, getAll("deploy", "-A", "-o", "yaml")...).out).To(HavePrefix("apiVersion: v1\nitems:\n"))
}

// watches creates an object after the list, and one that the filter excludes before.
func (a *allMailboxesTest) watches(t *testing.T) {
	for format, want := range map[string]string{"wide": "guilder late", "name": "configmap/late"} {
		ctx, stop := context.WithTimeout(t.Context(), suite.Timeout)
		defer stop()
		command := pluginProcess(ctx, getAll("cm", "-n", "shop", "-w", "-o", format, "-l", "app", "--no-headers")...)
		command.Cancel = func() error { return command.Process.Signal(os.Interrupt) }
		command.WaitDelay = time.Minute
		out, err := command.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := command.Start(); err != nil {
			t.Fatal(err)
		}
		var lines []string
		for reader := bufio.NewScanner(out); reader.Scan(); {
			if lines = append(lines, strings.Join(strings.Fields(reader.Text()), " ")); len(lines) == 2 {
				suite.Apply(t, a.kcp.Workspace(allProvider+":mb-b"), a.configMap("late", "default", "app: web")+a.configMap("late", "shop", "app: web"))
			}
			if len(lines) == 3 {
				stop()
			}
		}
		if err := command.Wait(); err != nil && ctx.Err() == nil {
			t.Error(err)
		}
		if len(lines) != 3 || !strings.HasPrefix(lines[2], want) {
			t.Errorf("got\n%s", strings.Join(lines, "\n"))
		}
		mailbox, err := cli.ClientOf(a.kcp.Workspace(allProvider + ":mb-b"))
		if err != nil {
			t.Fatal(err)
		}
		for _, namespace := range []string{"default", "shop"} {
			late := &corev1.ConfigMap{}
			late.Namespace, late.Name = namespace, "late"
			if err := mailbox.Delete(t.Context(), late); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// writesNothing tests that the role does not let its user change a mailbox.
func (a *allMailboxesTest) writesNothing(t *testing.T) {
	user, err := cli.ClientOf(framework.InWorkspace(a.kcp.HubConfig, allProvider))
	if err != nil {
		t.Fatal(err)
	}
	slice := &unstructured.Unstructured{}
	slice.SetAPIVersion("apis.kcp.io/v1alpha1")
	slice.SetKind("APIExportEndpointSlice")
	if err := user.Get(t.Context(), types.NamespacedName{Name: synchubv1alpha1.MailboxExport}, slice); err != nil {
		t.Fatal(err)
	}
	endpoints, _, _ := unstructured.NestedSlice(slice.Object, "status", "endpoints")
	config := framework.InWorkspace(a.kcp.HubConfig, allProvider)
	config.Host = endpoints[0].(map[string]any)["url"].(string) + "/clusters/" + a.clusters["mb-a"]
	mailbox, err := cli.ClientOf(config)
	if err != nil {
		t.Fatal(err)
	}
	settings := &corev1.ConfigMap{}
	key := types.NamespacedName{Namespace: "shop", Name: "settings"}
	if err := mailbox.Get(t.Context(), key, settings); err != nil {
		t.Fatal(err)
	}
	for what, err := range map[string]error{
		"update": mailbox.Update(t.Context(), settings), "delete": mailbox.Delete(t.Context(), settings),
		"create": mailbox.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: settings.ObjectMeta}),
	} {
		if err == nil || !strings.Contains(err.Error(), "forbidden") {
			t.Errorf("%s: %v", what, err)
		}
	}
}

func (a *allMailboxesTest) runsDocumented(t *testing.T) {
	commands := indentedCommand.FindAllStringSubmatch(readAllSection(t), -1)
	if len(commands) < 3 {
		t.Errorf("the page shows %d commands", len(commands))
	}
	for _, shown := range commands {
		args := slices.DeleteFunc(strings.Fields(shown[1]), func(arg string) bool { return arg == "--watch" })
		succeed(t, append(args, "--provider-workspace", allProvider)...)
	}
}
