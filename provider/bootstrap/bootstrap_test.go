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

package bootstrap_test

import (
	"maps"
	"slices"
	"testing"

	apisv1alpha1 "github.com/kcp-dev/sdk/apis/apis/v1alpha1"
	apisv1alpha2 "github.com/kcp-dev/sdk/apis/apis/v1alpha2"
	tenancyv1alpha1 "github.com/kcp-dev/sdk/apis/tenancy/v1alpha1"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/synchub-dev/synchub/apis/schemas"
	synchubv1alpha1 "github.com/synchub-dev/synchub/apis/synchub/v1alpha1"
	"github.com/synchub-dev/synchub/provider/bootstrap"
	"github.com/synchub-dev/synchub/test/framework"
	"github.com/synchub-dev/synchub/test/framework/servers"
	"github.com/synchub-dev/synchub/test/framework/suite"
	"github.com/synchub-dev/synchub/test/tier"
)

func named(name string) types.NamespacedName { return types.NamespacedName{Name: name} }

var hashKeySecret = types.NamespacedName{Namespace: bootstrap.HashKeyNamespace, Name: bootstrap.HashKeySecret}

func TestRunIsIdempotent(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	provider := newProvider(t, "twice")
	provider.workloadGroups = []string{"developers"}
	objects := []string{
		"Workspace root:twice",
		"APIExport edge.kubestellar.io", "APIExport mailbox.edge.kubestellar.io", "APIExport workload.edge.kubestellar.io", "WorkspaceType mailbox", "Secret synchub-hash-key",
		"ClusterRole synchub:hub", "ClusterRoleBinding synchub:hub", "ClusterRoleBinding synchub:hub-access",
		"ClusterRole synchub:inventory", "ClusterRoleBinding synchub:inventory", "ClusterRole synchub:workload", "ClusterRoleBinding synchub:workload",
		"Namespace synchub-ledger", "Role synchub:hub", "RoleBinding synchub:hub",
		"ValidatingAdmissionPolicy synchub-strategic-merge-patches", "ValidatingAdmissionPolicyBinding synchub-strategic-merge-patches",
	}
	for _, schema := range slices.Concat(schemas.InventorySchemas(), schemas.MailboxSchemas(), schemas.WorkloadSchemas()) {
		objects = append(objects, "APIResourceSchema "+schema.Name)
	}

	for _, dryRun := range []bool{true, false} {
		provider.dryRun = dryRun
		report, err := provider.run(t, provider.Config, "operators")
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(slices.Collect(maps.Keys(report))).To(ConsistOf(objects))
		g.Expect(maps.Values(report)).To(HaveEach("created"), "a dry run creates nothing")
	}
	before := provider.state(t)

	report, err := provider.run(t, provider.Config, "operators")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(slices.Collect(maps.Keys(report))).To(ConsistOf(objects))
	g.Expect(maps.Values(report)).To(HaveEach("unchanged"))
	g.Expect(provider.state(t)).To(Equal(before))
}

// A dry run in an existing workspace reports missing objects and pending changes, and shows no key.
func TestDryRun(t *testing.T) {
	tier.Thorough(t)
	t.Parallel()
	g := NewWithT(t)
	provider := newProvider(t, "dry").create(t)
	provider.dryRun = true
	report, err := provider.run(t, provider.Config)
	g.Expect(err).NotTo(HaveOccurred())
	workspace := report["Workspace root:dry"]
	delete(report, "Workspace root:dry")
	g.Expect(workspace).To(Equal("unchanged"))
	g.Expect(maps.Values(report)).To(HaveEach("created"))
	g.Expect(client.IgnoreNotFound(provider.admin(t).Get(t.Context(), named(synchubv1alpha1.InventoryExport), &apisv1alpha2.APIExport{}))).To(Succeed())

	provider.dryRun = false
	provider = provider.bootstrapped(t)
	export := &apisv1alpha2.APIExport{}
	provider.read(t, export, named(synchubv1alpha1.MailboxExport))
	claims := export.Spec.PermissionClaims
	export.Spec.PermissionClaims = nil
	g.Expect(provider.admin(t).Update(t.Context(), export)).To(Succeed())
	provider.dryRun = true
	report, err = provider.run(t, provider.Config)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(report["APIExport "+synchubv1alpha1.MailboxExport]).To(Equal("updated"))
	g.Expect(report["Secret "+bootstrap.HashKeySecret]).To(Equal("unchanged"))
	provider.read(t, export, named(synchubv1alpha1.MailboxExport))
	g.Expect(export.Spec.PermissionClaims).To(BeEmpty())
	g.Expect(claims).NotTo(BeEmpty())
}

// state returns the current objects of the set-up, without the fields that kcp adds asynchronously.
func (p provider) state(t *testing.T) map[string]any {
	t.Helper()
	state := map[string]any{}
	for _, name := range []string{synchubv1alpha1.InventoryExport, synchubv1alpha1.MailboxExport, synchubv1alpha1.WorkloadExport} {
		export := &apisv1alpha2.APIExport{}
		p.read(t, export, named(name))
		state["export "+name] = []any{export.UID, export.Spec.Resources, export.Spec.PermissionClaims}
	}
	for _, name := range []string{"synchub:hub", "synchub:hub-access", "synchub:inventory", "synchub:workload"} {
		binding := &rbacv1.ClusterRoleBinding{}
		p.read(t, binding, named(name))
		state["binding "+name] = []any{binding.UID, binding.RoleRef, binding.Subjects}
	}
	for _, name := range []string{"synchub:hub", "synchub:inventory", "synchub:workload"} {
		role := &rbacv1.ClusterRole{}
		p.read(t, role, named(name))
		state["role "+name] = []any{role.UID, role.Rules}
	}
	workspaceType, secret := &tenancyv1alpha1.WorkspaceType{}, &corev1.Secret{}
	p.read(t, workspaceType, named(synchubv1alpha1.WorkspaceType))
	p.read(t, secret, hashKeySecret)
	state["type"] = []any{workspaceType.UID, workspaceType.Spec}
	state["key"] = []any{secret.UID, secret.Data}
	return state
}

func (p provider) read(t *testing.T, object client.Object, key types.NamespacedName) {
	t.Helper()
	if err := p.admin(t).Get(t.Context(), key, object); err != nil {
		t.Fatal(err)
	}
}

// change gets an object, mutates and updates it, and retries conflicts.
func (p provider) change(t *testing.T, object client.Object, key types.NamespacedName, mutate func()) {
	t.Helper()
	suite.Eventually(t, func(g Gomega) {
		g.Expect(p.admin(t).Get(t.Context(), key, object)).To(Succeed())
		mutate()
		g.Expect(p.admin(t).Update(t.Context(), object)).To(Succeed())
	})
}

// The hub adds published resources to the mailbox export, and operators may add to all objects; Run keeps the additions.
func TestRunRemovesNothing(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	provider := newProvider(t, "shared")
	provider.workloadGroups = []string{"developers"}
	provider.bootstrapped(t, "operators")
	g.Expect(framework.Apply(t.Context(), provider.Workspace(provider.path), `
apiVersion: apis.kcp.io/v1alpha1
kind: APIResourceSchema
metadata: {name: v1.widgets.example.org}
spec:
  group: example.org
  scope: Namespaced
  names: {plural: widgets, singular: widget, kind: Widget, listKind: WidgetList}
  versions: [{name: v1, served: true, storage: true, schema: {type: object}}]
---
apiVersion: apis.kcp.io/v1alpha2
kind: APIExport
metadata: {name: other}
`)).To(Succeed())
	var key []byte
	secret := &corev1.Secret{}
	provider.change(t, secret, hashKeySecret, func() {
		key = secret.Data[bootstrap.HashKey]
		secret.Data["note"] = []byte("ours")
	})
	g.Expect(key).To(HaveLen(32))

	widgets := apisv1alpha2.ResourceSchema{
		Group: "example.org", Name: "widgets", Schema: "v1.widgets.example.org",
		Storage: apisv1alpha2.ResourceSchemaStorage{CRD: &apisv1alpha2.ResourceSchemaStorageCRD{}},
	}
	configMaps := apisv1alpha2.PermissionClaim{GroupResource: apisv1alpha2.GroupResource{Resource: "configmaps"}, Verbs: []string{"*"}}
	export := &apisv1alpha2.APIExport{}
	for _, name := range []string{synchubv1alpha1.InventoryExport, synchubv1alpha1.MailboxExport, synchubv1alpha1.WorkloadExport} {
		provider.change(t, export, named(name), func() {
			export.Spec.Resources = append([]apisv1alpha2.ResourceSchema{widgets}, export.Spec.Resources...)
			// Entries that another user added stay, and missing entries of the hub are restored.
			lost := slices.IndexFunc(export.Spec.PermissionClaims, func(claim apisv1alpha2.PermissionClaim) bool { return claim.Resource == "events" })
			g.Expect(lost).To(BeNumerically(">=", 0))
			export.Spec.PermissionClaims[lost] = configMaps
		})
	}
	other := tenancyv1alpha1.APIExportReference{Path: provider.path, Export: "other"}
	workspaceType := &tenancyv1alpha1.WorkspaceType{}
	provider.change(t, workspaceType, named(synchubv1alpha1.WorkspaceType), func() {
		workspaceType.Spec.DefaultAPIBindings = append(workspaceType.Spec.DefaultAPIBindings, other)
	})
	user := rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: "somebody"}
	binding := &rbacv1.ClusterRoleBinding{}
	for _, name := range []string{"synchub:hub", "synchub:hub-access", "synchub:inventory", "synchub:workload"} {
		provider.change(t, binding, named(name), func() { binding.Subjects = append(binding.Subjects, user) })
	}

	provider.workloadGroups = []string{"testers"}
	report, err := provider.run(t, provider.Config, "auditors")
	g.Expect(err).NotTo(HaveOccurred())
	for object, result := range report {
		want := "unchanged"
		switch object {
		case "APIExport edge.kubestellar.io", "APIExport mailbox.edge.kubestellar.io", "APIExport workload.edge.kubestellar.io",
			"ClusterRoleBinding synchub:inventory", "ClusterRoleBinding synchub:workload":
			want = "updated"
		}
		g.Expect(result).To(Equal(want), object)
	}
	for name, want := range map[string]struct {
		own    []*apisv1alpha1.APIResourceSchema
		claims []string
	}{
		synchubv1alpha1.InventoryExport: {schemas.InventorySchemas(), []string{"configmaps", "secrets", "events", "logicalclusters"}},
		synchubv1alpha1.MailboxExport:   {schemas.MailboxSchemas(), []string{"configmaps", "namespaces", "events", "logicalclusters"}},
		synchubv1alpha1.WorkloadExport:  {schemas.WorkloadSchemas(), []string{"configmaps", "namespaces", "events", "logicalclusters"}},
	} {
		provider.read(t, export, named(name))
		g.Expect(export.Spec.Resources).To(ContainElement(widgets))
		g.Expect(export.Spec.Resources).To(HaveLen(1 + len(want.own)))
		var claimed []string
		for _, claim := range export.Spec.PermissionClaims {
			claimed = append(claimed, claim.Resource)
			g.Expect(claim.Verbs).To(Equal([]string{"*"}))
			g.Expect(claim.DefaultSelector).To(BeNil())
		}
		g.Expect(claimed).To(ConsistOf(want.claims))
	}
	provider.read(t, workspaceType, named(synchubv1alpha1.WorkspaceType))
	g.Expect(workspaceType.Spec.DefaultAPIBindings).To(ConsistOf(other, tenancyv1alpha1.APIExportReference{Path: provider.path, Export: synchubv1alpha1.MailboxExport}))
	provider.read(t, secret, hashKeySecret)
	g.Expect(secret.Data).To(Equal(map[string][]byte{bootstrap.HashKey: key, "note": []byte("ours")}))
	for name, subject := range map[string]rbacv1.Subject{
		"synchub:hub":        {APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: servers.HubUser},
		"synchub:hub-access": {APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: servers.HubUser},
		"synchub:inventory":  {APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: "auditors"},
		"synchub:workload":   {APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: "testers"},
	} {
		provider.read(t, binding, named(name))
		g.Expect(binding.Subjects).To(ContainElements(user, subject), name)
	}
}

// A newer hub brings its schemas under other names, and the export then serves those.
func TestRunReplacesItsOwnSchemas(t *testing.T) {
	tier.Thorough(t)
	t.Parallel()
	g := NewWithT(t)
	provider := newProvider(t, "newer").bootstrapped(t)
	older := schemas.MailboxSchemas()[0].DeepCopy()
	current := older.Name
	older.Name = "v0." + older.Spec.Names.Plural + "." + older.Spec.Group
	g.Expect(provider.admin(t).Create(t.Context(), &apisv1alpha1.APIResourceSchema{ObjectMeta: older.ObjectMeta, Spec: older.Spec})).To(Succeed())
	export := &apisv1alpha2.APIExport{}
	schemaInUse := func() string {
		provider.read(t, export, named(synchubv1alpha1.MailboxExport))
		for _, resource := range export.Spec.Resources {
			if resource.Name == older.Spec.Names.Plural && resource.Group == older.Spec.Group {
				return resource.Schema
			}
		}
		return ""
	}
	provider.change(t, export, named(synchubv1alpha1.MailboxExport), func() {
		for i := range export.Spec.Resources {
			if export.Spec.Resources[i].Schema == current {
				export.Spec.Resources[i].Schema = older.Name
			}
		}
	})
	g.Expect(schemaInUse()).To(Equal(older.Name))
	provider.bootstrapped(t)
	g.Expect(schemaInUse()).To(Equal(current))
}

// An administrator of an existing provider workspace needs no rights in its parent.
func TestRunAsAdministratorOfTheWorkspaceAlone(t *testing.T) {
	tier.Thorough(t)
	t.Parallel()
	g := NewWithT(t)
	newProvider(t, "closed").create(t)
	provider := newProvider(t, "closed:delegated").create(t)
	g.Expect(framework.Apply(t.Context(), provider.Workspace(provider.path), adminBindingsFor(servers.HubUser))).To(Succeed())
	suite.Eventually(t, func(g Gomega) {
		report, err := provider.run(t, provider.HubConfig)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(report).To(HaveKey("APIExport mailbox.edge.kubestellar.io"))
		g.Expect(report).NotTo(HaveKey("Workspace root:closed:delegated"))
	})
	report, err := provider.run(t, provider.HubConfig)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(maps.Values(report)).To(HaveEach("unchanged"))
}

func TestRunWithoutRights(t *testing.T) {
	tier.Thorough(t)
	t.Parallel()
	const advice = "use the kubeconfig of an administrator of that workspace"
	for name, tt := range map[string]struct {
		provider func(t *testing.T) provider
		message  string
	}{
		"no workspace":      {func(t *testing.T) provider { return newProvider(t, "nowhere") }, "root:nowhere"},
		"a foreign one":     {func(t *testing.T) provider { return newProvider(t, "foreign").create(t) }, "root:foreign"},
		"the hub's own one": {func(t *testing.T) provider { return newProvider(t, "own").bootstrapped(t) }, "ValidatingAdmissionPolicy synchub-strategic-merge-patches in root:own"},
	} {
		t.Run(name, func(t *testing.T) {
			provider := tt.provider(t)
			// The hub's rights in its own workspace take a moment to take effect in kcp.
			suite.Eventually(t, func(g Gomega) {
				_, err := provider.run(t, provider.HubConfig)
				g.Expect(err).To(MatchError(HavePrefix("this user may not ")))
				g.Expect(err).To(MatchError(ContainSubstring(tt.message)))
				g.Expect(err).To(MatchError(ContainSubstring(advice)))
			})
		})
	}
	t.Run("an unknown user", func(t *testing.T) {
		g := NewWithT(t)
		provider := newProvider(t, "unknown")
		stranger := *provider.HubConfig
		stranger.BearerToken = "not-a-token"
		_, err := provider.run(t, &stranger)
		g.Expect(err).To(MatchError(HavePrefix("this user may not ")))
		g.Expect(err).To(MatchError(ContainSubstring(advice)))
		g.Expect(err).NotTo(MatchError(ContainSubstring("not-a-token")))
	})
}
