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
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	apisv1alpha1 "github.com/kcp-dev/sdk/apis/apis/v1alpha1"
	apisv1alpha2 "github.com/kcp-dev/sdk/apis/apis/v1alpha2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/apis/schemas"
	synchubv1alpha1 "github.com/synchub-dev/synchub/apis/synchub/v1alpha1"
	"github.com/synchub-dev/synchub/cmd/kubectl-synchub/bindcompute"
	"github.com/synchub-dev/synchub/cmd/kubectl-synchub/cli"
	"github.com/synchub-dev/synchub/controllers/placement/rules"
	"github.com/synchub-dev/synchub/provider/bootstrap"
	"github.com/synchub-dev/synchub/test/framework"
	"github.com/synchub-dev/synchub/test/framework/servers"
	"github.com/synchub-dev/synchub/test/framework/suite"
	"github.com/synchub-dev/synchub/test/tier"
)

const (
	bindProvider  = "root:bind-provider"
	bindInventory = "root:teams:inventory"
	// defaultNote is what bind compute prints if the EdgePlacement selects the namespace default.
	defaultNote = "The EdgePlacement also selects the objects in the namespace default. If the workspaces share the namespaces of a cluster, only one of them can have an object of a name there. Select namespaces of your own with --namespace-selector.\n"
	// bindDefault is the name of the EdgePlacement for bindInventory.
	bindDefault = "root.teams.inventory"
)

// bindTest is a provider workspace, and a workload workspace whose administrator may at most bind in the former.
type bindTest struct {
	kcp                 *servers.KCP
	path                string
	provider, workspace client.Client
}

// newBindTest creates the workload workspace. Its administrator, servers.HubUser, is the user of the current context.
func newBindTest(t *testing.T, name string) *bindTest {
	t.Helper()
	kcp := suite.KCP(t)
	bindProviderOf(t)
	if _, err := framework.CreateWorkspace(t.Context(), kcp.Config, "root", name, ""); err != nil {
		t.Fatal(err)
	}
	b := &bindTest{kcp: kcp, path: "root:" + name}
	b.provider, b.workspace = b.client(t, kcp.Workspace(bindProvider)), b.client(t, kcp.Workspace(b.path))
	suite.Apply(t, kcp.Workspace(b.path), rightsOf("admin", "cluster-admin")+rightsOf("access", "system:kcp:workspace:access"))
	b.use(t, b.path)
	user := b.client(t, framework.InWorkspace(kcp.HubConfig, b.path))
	suite.WaitUntil(t, "the user may list APIBindings", func() bool { return user.List(t.Context(), &apisv1alpha2.APIBindingList{}) == nil })
	return b
}

// bindProviderOf returns the path of a provider workspace with the workload export.
var bindProviderOf = suite.Shared(func(t testing.TB) string {
	kcp := suite.KCP(t)
	if err := bootstrap.Run(t.Context(), bootstrap.Options{
		Config:    kcp.Workspace,
		Workspace: bindProvider, HubUser: "another", InventoryGroups: []string{servers.HubGroup},
		Report: func(string, string) {},
	}); err != nil {
		t.Fatal(err)
	}
	provider, err := client.New(kcp.Workspace(bindProvider), client.Options{Scheme: bootstrap.Scheme()})
	if err != nil {
		t.Fatal(err)
	}
	ensureWorkloadExport(t, provider)
	return bindProvider
})

// ensureWorkloadExport creates the export unless it exists.
func ensureWorkloadExport(t testing.TB, provider client.Client) {
	t.Helper()
	export := &apisv1alpha2.APIExport{ObjectMeta: metav1.ObjectMeta{Name: bindcompute.Export}}
	for _, schema := range schemas.WorkloadSchemas() {
		if err := provider.Create(t.Context(), &apisv1alpha1.APIResourceSchema{ObjectMeta: schema.ObjectMeta, Spec: schema.Spec}); err != nil && !apierrors.IsAlreadyExists(err) {
			t.Fatal(err)
		}
		export.Spec.Resources = append(export.Spec.Resources, apisv1alpha2.ResourceSchema{
			Group: schema.Spec.Group, Name: schema.Spec.Names.Plural, Schema: schema.Name,
			Storage: apisv1alpha2.ResourceSchemaStorage{CRD: &apisv1alpha2.ResourceSchemaStorageCRD{}},
		})
	}
	for group, resource := range map[string]string{"": "namespaces", "core.kcp.io": "logicalclusters"} {
		export.Spec.PermissionClaims = append(export.Spec.PermissionClaims, apisv1alpha2.PermissionClaim{
			GroupResource: apisv1alpha2.GroupResource{Group: group, Resource: resource}, Verbs: []string{"*"},
		})
	}
	if err := provider.Create(t.Context(), export); err != nil && !apierrors.IsAlreadyExists(err) {
		t.Fatal(err)
	}
}

func (b *bindTest) client(t *testing.T, config *rest.Config) client.Client {
	t.Helper()
	made, err := client.New(config, client.Options{Scheme: cli.Scheme})
	if err != nil {
		t.Fatal(err)
	}
	return made
}

// use makes a workspace the current context of the user.
func (b *bindTest) use(t *testing.T, path string) {
	t.Helper()
	useConfig(t, framework.InWorkspace(b.kcp.HubConfig, path))
}

// useConfig makes a client configuration the current context.
func useConfig(t *testing.T, config *rest.Config) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(file, suite.Kubeconfig(t, config.Host, config.CAData, config.BearerToken), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("KUBECONFIG", file)
}

// rightsOf returns a manifest that gives the user a ClusterRole.
func rightsOf(name, role string) string {
	return fmt.Sprintf("---\napiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRoleBinding\nmetadata: {name: 'test:%s'}\nroleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: '%s'}\nsubjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: %s}]\n", name, role, servers.HubUser)
}

// allowBind gives the user the right to bind the export, and no other.
func (b *bindTest) allowBind(t *testing.T) {
	t.Helper()
	suite.Apply(t, b.kcp.Workspace(bindProvider), fmt.Sprintf("apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: 'test:bind'}\nrules: [{apiGroups: [apis.kcp.io], resources: [apiexports], resourceNames: [%s], verbs: [bind]}]\n", bindcompute.Export)+rightsOf("bind", "test:bind"))
	suite.WaitUntil(t, "the user may bind", func() bool { return b.tryBind(t) == nil })
}

// forbidBind takes that right away, which other tests may have given.
func (b *bindTest) forbidBind(t *testing.T) {
	t.Helper()
	granted := &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "test:bind"}}
	if err := b.provider.Delete(t.Context(), granted); client.IgnoreNotFound(err) != nil {
		t.Fatal(err)
	}
	suite.WaitUntil(t, "the user may not bind", func() bool { return apierrors.IsForbidden(b.tryBind(t)) })
}

// tryBind binds the export as the user does, in a dry run.
func (b *bindTest) tryBind(t *testing.T) error {
	t.Helper()
	user := b.client(t, framework.InWorkspace(b.kcp.HubConfig, b.path))
	return user.Create(t.Context(), &apisv1alpha2.APIBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "probe"},
		Spec:       apisv1alpha2.APIBindingSpec{Reference: apisv1alpha2.BindingReference{Export: &apisv1alpha2.ExportBindingReference{Path: bindProvider, Name: bindcompute.Export}}},
	}, client.DryRunAll)
}

// bindCompute returns a command line of bind compute, which does not wait for a hub.
func bindCompute(more ...string) []string {
	return append([]string{"bind", "compute", bindInventory, "--provider-workspace", bindProvider, "--wait=false"}, more...)
}

func unbindCompute(more ...string) []string {
	return append([]string{"unbind", "compute", "--provider-workspace", bindProvider}, more...)
}

func (b *bindTest) binding(t *testing.T) *apisv1alpha2.APIBinding {
	t.Helper()
	binding := &apisv1alpha2.APIBinding{}
	err := b.workspace.Get(t.Context(), types.NamespacedName{Name: bindcompute.Export}, binding)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		t.Fatal(err)
	}
	return binding
}

func (b *bindTest) placement(t *testing.T, name string) *edgev2alpha1.EdgePlacement {
	t.Helper()
	placement := &edgev2alpha1.EdgePlacement{}
	err := b.workspace.Get(t.Context(), types.NamespacedName{Name: name}, placement)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		t.Fatal(err)
	}
	return placement
}

// applied returns the resources of the claims that kcp has applied.
func applied(binding *apisv1alpha2.APIBinding) (resources []string) {
	for _, claim := range binding.Status.AppliedPermissionClaims {
		resources = append(resources, claim.Resource)
	}
	slices.Sort(resources)
	return resources
}

// requested returns the resources that the export claims.
func (b *bindTest) requested(t *testing.T) (resources []string) {
	t.Helper()
	export := &apisv1alpha2.APIExport{}
	if err := b.provider.Get(t.Context(), types.NamespacedName{Name: bindcompute.Export}, export); err != nil {
		t.Fatal(err)
	}
	for _, claim := range export.Spec.PermissionClaims {
		resources = append(resources, claim.Resource)
	}
	slices.Sort(resources)
	return resources
}

// addClaim adds a claim to the export, and waits until the APIBinding shows it.
func (b *bindTest) addClaim(t *testing.T, resource string) {
	t.Helper()
	suite.Eventually(t, func(g Gomega) {
		export := &apisv1alpha2.APIExport{}
		g.Expect(b.provider.Get(t.Context(), types.NamespacedName{Name: bindcompute.Export}, export)).To(Succeed())
		claim := apisv1alpha2.PermissionClaim{GroupResource: apisv1alpha2.GroupResource{Resource: resource}, Verbs: []string{"*"}}
		if !slices.ContainsFunc(export.Spec.PermissionClaims, func(other apisv1alpha2.PermissionClaim) bool { return other.GroupResource == claim.GroupResource }) {
			export.Spec.PermissionClaims = append(export.Spec.PermissionClaims, claim)
			g.Expect(b.provider.Update(t.Context(), export)).To(Succeed())
		}
	})
	suite.WaitUntil(t, "the APIBinding shows the claim", func() bool {
		return slices.ContainsFunc(b.binding(t).Status.ExportPermissionClaims, func(claim apisv1alpha2.PermissionClaim) bool { return claim.Resource == resource })
	})
}

func TestBindCompute(t *testing.T) {
	tier.Thorough(t)
	b := newBindTest(t, "bind-web")
	b.forbidBind(t)
	t.Run("without the right to bind", b.refuses)
	b.allowBind(t)
	t.Run("a dry run changes nothing", b.triesOut)
	t.Run("binds and places", b.binds)
	t.Run("a second run changes nothing", b.repeats)
	t.Run("prints differences", b.differs)
	t.Run("accepts claims that were added", b.acceptsLater)
	t.Run("keeps claims that were rejected", b.keepsRejected)
	t.Run("another placement", b.bindsMore)
	t.Run("reports whether a Location is available", b.awaitsLocation)
	t.Run("completion offers placements", b.completes)
	t.Run("unbind", b.unbinds)
}

func (b *bindTest) refuses(t *testing.T) {
	fail(t, "let its administrator grant you the verb bind on this APIExport", bindCompute()...)
	fail(t, "cannot bind the export workload.edge.kubestellar.io of the provider workspace root:nowhere", "bind", "compute", bindInventory, "--provider-workspace", "root:nowhere")
	if b.binding(t) != nil {
		t.Error("an APIBinding was made")
	}
	fail(t, "it serves no EdgePlacements", unbindCompute(bindInventory)...)
	fail(t, "it serves no EdgePlacements", unbindCompute("--all")...)
}

func (b *bindTest) triesOut(t *testing.T) {
	shown := succeed(t, bindCompute("--dry-run", "-o", "yaml")...)
	for _, part := range []string{"kind: APIBinding", "path: " + bindProvider, "kind: EdgePlacement", "- " + bindInventory, "synchub.dev/bind-compute: " + bindInventory} {
		if !strings.Contains(shown.out, part) {
			t.Errorf("%q is not shown:\n%s", part, shown.out)
		}
	}
	if !strings.Contains(shown.errs, "The claims of the export workload.edge.kubestellar.io are missing") || strings.Contains(shown.out, "status") || strings.Contains(shown.out, "creationTimestamp") {
		t.Errorf("it prints\n%s%s", shown.errs, shown.out)
	}
	if got := succeed(t, bindCompute("--dry-run=server")...); !strings.Contains(got.out, "created (server dry run)") || !strings.Contains(got.errs, "The EdgePlacement was not sent") {
		t.Errorf("it prints\n%s%s", got.out, got.errs)
	}
	useConfig(t, b.kcp.Workspace(b.path))
	if got := succeed(t, bindCompute("--dry-run=client", "-o", "yaml")...); !strings.Contains(got.out, "resource: namespaces\n    selector:\n      matchAll: true\n    state: Accepted") || got.errs != defaultNote {
		t.Errorf("it prints\n%s%s", got.out, got.errs)
	}
	if b.binding(t) != nil {
		t.Error("an APIBinding was made")
	}
}

func (b *bindTest) binds(t *testing.T) {
	g := NewWithT(t)
	got := succeed(t, bindCompute()...)
	g.Expect(got.out).To(Equal("apibinding.apis.kcp.io/workload.edge.kubestellar.io created\nedgeplacement.edge.kubestellar.io/root.teams.inventory created\n"))
	g.Expect(got.errs).To(HavePrefix(defaultNote + "See with `kubectl get edgeplacement root.teams.inventory`"))
	g.Expect(applied(b.binding(t))).To(Equal(b.requested(t)))
	placement := b.placement(t, bindDefault)
	g.Expect(placement.Annotations).To(HaveKeyWithValue("synchub.dev/bind-compute", bindInventory))
	g.Expect(placement.Spec).To(Equal(edgev2alpha1.EdgePlacementSpec{
		LocationSelectors:   []metav1.LabelSelector{{}},
		InventoryWorkspaces: []string{bindInventory},
		AggregateStatus:     true,
		Downsync: []edgev2alpha1.DownsyncObjectTest{{NamespaceSelectors: []metav1.LabelSelector{{MatchExpressions: []metav1.LabelSelectorRequirement{
			{Key: "kubernetes.io/metadata.name", Operator: metav1.LabelSelectorOpNotIn, Values: bindcompute.SystemNamespaces},
		}}}}},
		Upsync: []edgev2alpha1.PlacementUpsync{{
			UpsyncSet: edgev2alpha1.UpsyncSet{Resources: []string{"pods"}, Namespaces: []string{"*"}, Names: []string{"*"}}, To: edgev2alpha1.UpsyncToWorkspace,
		}},
		DeletionPolicy: edgev2alpha1.DeletionPolicyDelete,
	}))
	// The default leaves out all that kcp makes, except the namespace that kubectl uses.
	var namespaces corev1.NamespaceList
	g.Expect(b.workspace.List(t.Context(), &namespaces)).To(Succeed())
	g.Expect(namespaces.Items).NotTo(BeEmpty())
	for _, namespace := range namespaces.Items {
		g.Expect(namespace.Labels).To(HaveKeyWithValue(corev1.LabelMetadataName, namespace.Name))
		g.Expect(append([]string{"default"}, bindcompute.SystemNamespaces...)).To(ContainElement(namespace.Name))
	}
}

// versions returns the resourceVersions of the APIBinding and the EdgePlacement.
func (b *bindTest) versions(t *testing.T) string {
	t.Helper()
	return b.binding(t).ResourceVersion + " " + b.placement(t, bindDefault).ResourceVersion
}

func (b *bindTest) repeats(t *testing.T) {
	before := b.versions(t)
	got := succeed(t, bindCompute()...)
	if after := b.versions(t); after != before {
		t.Errorf("versions were %s and are %s", before, after)
	}
	if strings.Count(got.out, " unchanged\n") != 2 {
		t.Errorf("it prints\n%s", got.out)
	}
	if got := succeed(t, bindCompute("--dry-run=client", "-o", "yaml")...); !strings.Contains(got.out, "resource: namespaces") || got.errs != defaultNote {
		t.Errorf("it prints\n%s%s", got.out, got.errs)
	}
}

func (b *bindTest) differs(t *testing.T) {
	before := b.versions(t)
	fail(t, `its spec.locationSelectors is [""], not ["env=prod"]; its spec.downsync is [{namespaceSelectors: `, bindCompute("--location-selectors", "env=prod", "--namespace-selector", "team=web")...)
	fail(t, "its spec.inventoryWorkspaces is [root:teams:inventory], not [root:other]", "bind", "compute", "root:other", "--name", bindDefault, "--provider-workspace", bindProvider)
	fail(t, "choose it with --provider-workspace "+bindProvider, "bind", "compute", bindInventory, "--name", "other")
	if after := b.versions(t); after != before {
		t.Errorf("versions were %s and are %s", before, after)
	}
}

func (b *bindTest) acceptsLater(t *testing.T) {
	b.addClaim(t, "configmaps")
	if got := applied(b.binding(t)); slices.Contains(got, "configmaps") {
		t.Fatalf("kcp has applied %q by itself", got)
	}
	before := b.versions(t)
	succeed(t, bindCompute("--dry-run=server")...)
	if after := b.versions(t); after != before {
		t.Errorf("a dry run has changed %s to %s", before, after)
	}
	got := succeed(t, bindCompute()...)
	if !strings.Contains(got.out, "apibinding.apis.kcp.io/workload.edge.kubestellar.io configured\n") || !strings.Contains(got.out, " unchanged\n") {
		t.Errorf("it prints\n%s", got.out)
	}
	if got, want := applied(b.binding(t)), b.requested(t); !slices.Equal(got, want) || !slices.Contains(got, "configmaps") {
		t.Errorf("kcp has applied %q of %q", got, want)
	}
}

func (b *bindTest) keepsRejected(t *testing.T) {
	suite.Eventually(t, func(g Gomega) {
		binding := b.binding(t)
		for i := range binding.Spec.PermissionClaims {
			if claim := &binding.Spec.PermissionClaims[i]; claim.Resource == "configmaps" {
				claim.State = apisv1alpha2.ClaimRejected
			}
		}
		g.Expect(b.workspace.Update(t.Context(), binding)).To(Succeed())
	})
	if got := succeed(t, bindCompute()...); !strings.Contains(got.errs, "rejects or limits claims on configmaps") || strings.Count(got.out, " unchanged\n") != 2 {
		t.Errorf("it prints\n%s%s", got.out, got.errs)
	}
}

func (b *bindTest) bindsMore(t *testing.T) {
	g := NewWithT(t)
	b.use(t, "root:bind-nowhere")
	bound := succeed(t, bindCompute("--workspace", b.path, "--name", "prod", "--location-selectors", "env in (prod,stage),tier!=db", "--location-selectors", "region=eu", "--namespace-selector", "purpose=workload")...)
	g.Expect(bound.errs).NotTo(ContainSubstring("namespace default"))
	placement := b.placement(t, "prod")
	g.Expect(placement).NotTo(BeNil())
	spec := placement.Spec
	g.Expect(spec.LocationSelectors).To(HaveLen(2))
	g.Expect(spec.Downsync).To(Equal([]edgev2alpha1.DownsyncObjectTest{{NamespaceSelectors: []metav1.LabelSelector{{MatchLabels: map[string]string{"purpose": "workload"}}}}}))
	// The order of alternatives does not matter.
	got := succeed(t, bindCompute("--workspace", b.path, "--name", "prod", "--location-selectors", "region=eu", "--location-selectors", "tier!=db,env in (stage,prod)", "--namespace-selector", "purpose=workload")...)
	g.Expect(strings.Count(got.out, " unchanged\n")).To(Equal(2), got.out)
}

// awaitsLocation tests the statuses that the hub writes.
func (b *bindTest) awaitsLocation(t *testing.T) {
	g := NewWithT(t)
	bind := func(more ...string) printed {
		return plugin(t, append([]string{"bind", "compute", bindInventory, "--provider-workspace", bindProvider, "--workspace", b.path, "--name", "prod",
			"--location-selectors", "region=eu", "--location-selectors", "tier!=db,env in (stage,prod)", "--namespace-selector", "purpose=workload", "--timeout", "3s"}, more...)...)
	}
	report := func(reason string) {
		placement := b.placement(t, "prod")
		placement.Status = edgev2alpha1.EdgePlacementStatus{SpecGeneration: int32(placement.Generation)} //nolint:gosec // it is small
		meta.SetStatusCondition(&placement.Status.Conditions, metav1.Condition{Type: edgev2alpha1.ConditionReady, Status: metav1.ConditionFalse, Reason: reason})
		g.Expect(b.workspace.Status().Update(t.Context(), placement)).To(Succeed())
	}
	got := bind()
	g.Expect(got.err).NotTo(HaveOccurred())
	g.Expect(got.errs).To(ContainSubstring("The hub has not reported yet whether a Location of root:teams:inventory is available"))

	for _, reason := range []string{rules.ReasonNoLocation, rules.ReasonPathUnverified} {
		report(reason)
		got = bind()
		g.Expect(got.err).To(HaveOccurred())
		g.Expect(got.errs).To(HaveSuffix("error: no selected Location of the inventory workspace is available to this workspace: the administrator of root:teams:inventory allows it with " +
			"`kubectl synchub allow LOCATION --workspace " + b.path + "`. The EdgePlacement prod stays, and takes effect then\n"))
		g.Expect(bind("--wait=false").err).NotTo(HaveOccurred())
	}
	report(rules.ReasonSelectsNothing)
	got = bind()
	g.Expect(got.err).NotTo(HaveOccurred())
	g.Expect(got.errs).To(And(ContainSubstring("See with"), Not(ContainSubstring("not reported"))))
}

func (b *bindTest) completes(t *testing.T) {
	if got := succeed(t, "__complete", "unbind", "compute", "root:"); !strings.HasPrefix(got.out, bindInventory+"\n") {
		t.Errorf("it offers\n%s", got.out)
	}
	if got := succeed(t, "__complete", "unbind", "compute", "--name", "pr"); !strings.HasPrefix(got.out, "prod\n") {
		t.Errorf("it offers\n%s", got.out)
	}
}

func (b *bindTest) unbinds(t *testing.T) {
	g := NewWithT(t)
	fail(t, "several EdgePlacements are for the inventory workspace root:teams:inventory: choose one of prod, root.teams.inventory with --name", unbindCompute(bindInventory)...)
	fail(t, "there is no EdgePlacement that", unbindCompute("root:other")...)
	fail(t, "there is no EdgePlacement nothing in the workspace", unbindCompute("--name", "nothing")...)

	b.reports(t, "prod")
	got := plugin(t, unbindCompute("--name", "prod")...)
	g.Expect(got.err).To(HaveOccurred())
	g.Expect(got.errs).To(Equal("The EdgePlacement prod goes. The hub withdraws its 3 objects from florin, guilder, except those that another EdgePlacement places there.\nerror: nothing was changed: give --yes to confirm\n"))
	g.Expect(succeed(t, unbindCompute("--name", "prod", "--dry-run=server")...).out).To(ContainSubstring("deleted (server dry run)"))
	g.Expect(succeed(t, unbindCompute("--name", "prod", "--dry-run=client")...).out).To(ContainSubstring("deleted (client dry run)"))
	g.Expect(b.placement(t, "prod")).NotTo(BeNil())
	b.outlasts(t)
	g.Expect(succeed(t, unbindCompute("--name", "prod", "--yes")...).out).To(Equal("edgeplacement.edge.kubestellar.io/prod deleted\n"))
	g.Expect(b.placement(t, "prod")).To(BeNil())

	suite.Apply(t, b.kcp.Workspace(b.path), "apiVersion: edge.kubestellar.io/v2alpha1\nkind: EdgePlacement\nmetadata: {name: theirs}\nspec: {downsync: [{namespaces: [shop]}]}\n")
	fail(t, "the EdgePlacement theirs was not made by", unbindCompute("--name", "theirs", "--yes")...)
	fail(t, "nothing was changed: the EdgePlacements theirs would be deleted with the APIBinding", unbindCompute("--all", "--yes")...)
	fail(t, "nothing was changed: the EdgePlacements theirs would be deleted with the APIBinding", unbindCompute(bindInventory, "--all", "--yes")...)
	g.Expect(b.placement(t, bindDefault)).NotTo(BeNil())

	g.Expect(b.workspace.Delete(t.Context(), b.placement(t, "theirs"))).To(Succeed())
	b.createWidget(t)
	g.Expect(succeed(t, unbindCompute(bindInventory, "--dry-run=server")...).errs).NotTo(ContainSubstring("APIBinding"))
	got = succeed(t, unbindCompute("--all", "--yes")...)
	g.Expect(got.out).To(Equal("edgeplacement.edge.kubestellar.io/root.teams.inventory deleted\napibinding.apis.kcp.io/workload.edge.kubestellar.io deleted\n"))
	g.Expect(got.errs).To(ContainSubstring("The APIBinding workload.edge.kubestellar.io goes. With it, kcp deletes all objects of its APIs in the workspace: widgets.example.org (1)."))
	g.Expect(b.binding(t)).To(BeNil())
	fail(t, "it serves no EdgePlacements", unbindCompute("--all", "--yes")...)
}

// outlasts tests a deletion that a finalizer delays, as the hub's may while it withdraws objects.
func (b *bindTest) outlasts(t *testing.T) {
	t.Helper()
	setFinalizers := func(finalizers ...string) {
		suite.Eventually(t, func(g Gomega) {
			placement := b.placement(t, "prod")
			placement.Finalizers = finalizers
			g.Expect(b.workspace.Update(t.Context(), placement)).To(Succeed())
		})
	}
	setFinalizers("example.com/withdraw")
	fail(t, "the EdgePlacement prod is being deleted, but was not gone after 2s; it has the finalizers [example.com/withdraw]", unbindCompute("--name", "prod", "--yes", "--timeout", "2s")...)
	fail(t, "the EdgePlacement prod is being deleted: wait with", bindCompute("--name", "prod")...)
	succeed(t, unbindCompute("--name", "prod", "--yes", "--wait=false")...)
	setFinalizers()
	suite.WaitUntil(t, "the EdgePlacement is gone", func() bool { return b.placement(t, "prod") == nil })
	succeed(t, bindCompute("--name", "prod")...)
}

// createWidget adds an API to the export, and creates an object of it in the workspace.
func (b *bindTest) createWidget(t *testing.T) {
	t.Helper()
	suite.Apply(t, b.kcp.Workspace(bindProvider), `
apiVersion: apis.kcp.io/v1alpha1
kind: APIResourceSchema
metadata: {name: v1.widgets.example.org}
spec:
  group: example.org
  scope: Namespaced
  names: {plural: widgets, singular: widget, kind: Widget, listKind: WidgetList}
  versions: [{name: v1, served: true, storage: true, schema: {type: object}}]
`)
	suite.Eventually(t, func(g Gomega) {
		export := &apisv1alpha2.APIExport{}
		g.Expect(b.provider.Get(t.Context(), types.NamespacedName{Name: bindcompute.Export}, export)).To(Succeed())
		export.Spec.Resources = append(export.Spec.Resources, apisv1alpha2.ResourceSchema{
			Group: "example.org", Name: "widgets", Schema: "v1.widgets.example.org", Storage: apisv1alpha2.ResourceSchemaStorage{CRD: &apisv1alpha2.ResourceSchemaStorageCRD{}},
		})
		g.Expect(b.provider.Update(t.Context(), export)).To(Succeed())
	})
	suite.WaitUntil(t, "the API is bound", func() bool {
		return slices.ContainsFunc(b.binding(t).Status.BoundResources, func(bound apisv1alpha2.BoundAPIResource) bool { return bound.Resource == "widgets" })
	})
	suite.Apply(t, b.kcp.Workspace(b.path), "apiVersion: example.org/v1\nkind: Widget\nmetadata: {name: one}\n")
}

// reports writes the status of an EdgePlacement and its slice, as the hub does.
func (b *bindTest) reports(t *testing.T, name string) {
	t.Helper()
	placement := b.placement(t, name)
	if placement == nil {
		t.Fatalf("there is no EdgePlacement %s", name)
	}
	placement.Status = edgev2alpha1.EdgePlacementStatus{Destinations: 2, Selected: 3, Placed: 6}
	if err := b.workspace.Status().Update(t.Context(), placement); err != nil {
		t.Fatal(err)
	}
	slice := &edgev2alpha1.SinglePlacementSlice{ObjectMeta: metav1.ObjectMeta{Name: name}}
	for _, target := range []string{"florin", "guilder"} {
		slice.Destinations = append(slice.Destinations, edgev2alpha1.SinglePlacement{Cluster: "one", LocationName: "default", SyncTargetName: target, SyncTargetUID: types.UID(target)})
	}
	if err := b.workspace.Create(t.Context(), slice); err != nil {
		t.Fatal(err)
	}
}

// A workspace may be an inventory too, so that it already serves another kind of the group.
func TestBindComputeInAnInventory(t *testing.T) {
	tier.Thorough(t)
	b := newBindTest(t, "bind-inventory")
	b.allowBind(t)
	suite.Apply(t, b.kcp.Workspace(b.path), fmt.Sprintf("apiVersion: apis.kcp.io/v1alpha2\nkind: APIBinding\nmetadata: {name: synchub}\nspec: {reference: {export: {path: %q, name: %s}}}\n", bindProvider, synchubv1alpha1.InventoryExport))
	suite.WaitUntil(t, "SyncTargets are served", func() bool { return b.workspace.List(t.Context(), &edgev2alpha1.SyncTargetList{}) == nil })
	succeed(t, "bind", "compute", b.path, "--provider-workspace", bindProvider, "--wait=false")
	if b.placement(t, "root.bind-inventory") == nil {
		t.Error("there is no EdgePlacement")
	}
}

func TestBindComputeWithANamingConflict(t *testing.T) {
	tier.Thorough(t)
	b := newBindTest(t, "bind-conflict")
	b.allowBind(t)
	crd := suite.ReadFile(t, "../../apis/schemas/crds/edge.kubestellar.io_edgeplacements.yaml")
	suite.Apply(t, b.kcp.Workspace(b.path), string(crd))
	suite.WaitUntil(t, "EdgePlacements are served", func() bool { return b.workspace.List(t.Context(), &edgev2alpha1.EdgePlacementList{}) == nil })
	fail(t, "is not bound after 3s:\n", bindCompute("--timeout", "3s")...)
	fail(t, "NamingConflicts", bindCompute("--timeout", "3s")...)
	succeed(t, unbindCompute("--all", "--yes")...)
	if b.binding(t) != nil {
		t.Error("the APIBinding is there")
	}
}
