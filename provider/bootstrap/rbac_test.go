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
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	apisv1alpha1 "github.com/kcp-dev/sdk/apis/apis/v1alpha1"
	apisv1alpha2 "github.com/kcp-dev/sdk/apis/apis/v1alpha2"
	tenancyv1alpha1 "github.com/kcp-dev/sdk/apis/tenancy/v1alpha1"
	"github.com/kcp-dev/sdk/apis/third_party/conditions/util/conditions"
	. "github.com/onsi/gomega"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	synchubv1alpha1 "github.com/synchub-dev/synchub/apis/synchub/v1alpha1"
	"github.com/synchub-dev/synchub/provider/bootstrap"
	"github.com/synchub-dev/synchub/provider/kcp"
	"github.com/synchub-dev/synchub/test/framework"
	"github.com/synchub-dev/synchub/test/framework/servers"
	"github.com/synchub-dev/synchub/test/framework/suite"
	"github.com/synchub-dev/synchub/test/tier"
)

// permission is a set of verbs on a resource that a user may or may not have.
type permission struct{ verbs, group, resource, name string }

// The hub uses each of these permissions.
var granted = []permission{
	{"get list watch", "apis.kcp.io", "apiexports", ""},
	{"get update patch bind", "apis.kcp.io", "apiexports", synchubv1alpha1.InventoryExport},
	{"get update patch bind", "apis.kcp.io", "apiexports", synchubv1alpha1.MailboxExport},
	{"get update patch", "apis.kcp.io", "apiexports", synchubv1alpha1.WorkloadExport},
	{"get list watch create update patch delete", "apis.kcp.io", "apiexports/content", synchubv1alpha1.InventoryExport},
	{"get list watch create update patch delete", "apis.kcp.io", "apiexports/content", synchubv1alpha1.WorkloadExport},
	{"get list watch create update patch delete", "apis.kcp.io", "apiexports/content", synchubv1alpha1.MailboxExport},
	{"get list watch", "apis.kcp.io", "apiexportendpointslices", ""},
	{"create get list watch", "apis.kcp.io", "apiresourceschemas", ""},
	{"create get list watch delete", "tenancy.kcp.io", "workspaces", ""},
	{"use", "tenancy.kcp.io", "workspacetypes", synchubv1alpha1.WorkspaceType},
	{"get", "core.kcp.io", "logicalclusters", "cluster"},
	{"get", "", "secrets", bootstrap.HashKeySecret},
}

var denied = []permission{
	{"list watch create", "", "secrets", ""},
	{"get update patch delete", "", "secrets", "another"},
	{"update patch delete", "", "secrets", bootstrap.HashKeySecret},
	{"get list create", "", "configmaps", ""},
	{"create", "", "serviceaccounts/token", "default"},
	{"create delete", "apis.kcp.io", "apiexports", ""},
	{"delete", "apis.kcp.io", "apiexports", synchubv1alpha1.MailboxExport},
	{"update patch bind", "apis.kcp.io", "apiexports", "another"},
	{"bind delete", "apis.kcp.io", "apiexports", synchubv1alpha1.WorkloadExport},
	{"get list create", "apis.kcp.io", "apiexports/content", "another"},
	{"create list", "apis.kcp.io", "apibindings", ""},
	{"update patch delete", "apis.kcp.io", "apiresourceschemas", ""},
	{"update patch", "tenancy.kcp.io", "workspaces", ""},
	{"use", "tenancy.kcp.io", "workspacetypes", "another"},
	{"get update patch delete create", "tenancy.kcp.io", "workspacetypes", synchubv1alpha1.WorkspaceType},
	{"update patch delete", "core.kcp.io", "logicalclusters", "cluster"},
	{"create update bind escalate", "rbac.authorization.k8s.io", "clusterroles", ""},
	{"create update delete", "rbac.authorization.k8s.io", "clusterrolebindings", ""},
	{"impersonate", "", "users", "admin"},
}

func TestHubHasOnlyTheNeededPermissions(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	provider := newProvider(t, "rights").bootstrapped(t)
	hub, err := kubernetes.NewForConfig(framework.InWorkspace(provider.HubConfig, provider.path))
	g.Expect(err).NotTo(HaveOccurred())
	may := func(attributes authorizationv1.ResourceAttributes) (bool, error) {
		answer, err := hub.AuthorizationV1().SelfSubjectAccessReviews().Create(t.Context(), &authorizationv1.SelfSubjectAccessReview{
			Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &attributes},
		}, metav1.CreateOptions{})
		if err != nil {
			return false, err
		}
		return answer.Status.Allowed, nil
	}
	// New RBAC takes a moment to take effect in kcp.
	suite.Eventually(t, func(g Gomega) {
		for _, question := range accessReviewsFor(granted) {
			g.Expect(may(question)).To(BeTrue(), "%+v", question)
		}
	})
	for _, question := range accessReviewsFor(denied) {
		g.Expect(may(question)).To(BeFalse(), "%+v", question)
	}
}

func accessReviewsFor(rights []permission) (all []authorizationv1.ResourceAttributes) {
	for _, r := range rights {
		resource, subresource, _ := strings.Cut(r.resource, "/")
		for verb := range strings.FieldsSeq(r.verbs) {
			all = append(all, authorizationv1.ResourceAttributes{Verb: verb, Group: r.group, Resource: resource, Subresource: subresource, Name: r.name})
		}
	}
	return all
}

// Members of the inventory groups may bind the inventory export in their workspaces, and nothing else of the hub's.
func TestInventoryGroupsMayBind(t *testing.T) {
	tier.Thorough(t)
	t.Parallel()
	testGroupsMayBind(t, "inventories", synchubv1alpha1.InventoryExport, func(*provider) []string { return []string{"administrators", servers.HubGroup} })
}

// Members of the workload groups may bind the workload export in their workspaces, and nothing else of the hub's.
func TestWorkloadGroupsMayBind(t *testing.T) {
	t.Parallel()
	testGroupsMayBind(t, "workloads", synchubv1alpha1.WorkloadExport, func(provider *provider) []string {
		provider.workloadGroups = []string{"administrators", servers.HubGroup}
		return nil
	})
}

// testGroupsMayBind checks that a user may bind one export, and no other, once allow has put the user's group into the
// options of Run. allow returns the inventory groups.
func testGroupsMayBind(t *testing.T, name, export string, allow func(provider *provider) []string) {
	t.Helper()
	g := NewWithT(t)
	ctx := t.Context()
	// The only user of this kcp beside the administrator is an operator here, not the hub.
	provider := newProvider(t, name)
	provider.hubUser = "another"
	provider.bootstrapped(t)
	consumer := newProvider(t, "consumer-of-"+name).create(t)
	g.Expect(framework.Apply(ctx, consumer.Workspace(consumer.path), adminBindingsFor(servers.HubUser))).To(Succeed())
	operator := consumer.hub(t)
	bind := func(export string) error {
		return operator.Create(ctx, &apisv1alpha2.APIBinding{
			ObjectMeta: metav1.ObjectMeta{Name: "bound"},
			Spec: apisv1alpha2.APIBindingSpec{
				Reference: apisv1alpha2.BindingReference{Export: &apisv1alpha2.ExportBindingReference{Path: provider.path, Name: export}},
			},
		}, client.DryRunAll)
	}
	suite.Eventually(t, func(g Gomega) { g.Expect(operator.List(ctx, &apisv1alpha2.APIBindingList{})).To(Succeed()) })
	g.Expect(bind(export)).To(MatchError(ContainSubstring("no permission to bind")))

	groups := allow(&provider)
	provider.bootstrapped(t, groups...)
	suite.Eventually(t, func(g Gomega) { g.Expect(bind(export)).To(Succeed()) })
	for _, other := range []string{synchubv1alpha1.InventoryExport, synchubv1alpha1.MailboxExport, synchubv1alpha1.WorkloadExport} {
		if other != export {
			g.Expect(bind(other)).To(MatchError(ContainSubstring("no permission to bind")), other)
		}
	}
}

// adminBindingsFor returns a manifest that makes a user an administrator of a workspace.
func adminBindingsFor(user string) string {
	binding := `
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: "test:%s"}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: "%s"}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: %s}]
`
	return fmt.Sprintf(binding+"---"+binding, "admin", "cluster-admin", user, "access", "system:kcp:workspace:access", user)
}

// The hub's user creates a mailbox and uses it through the virtual workspace, as the hub does.
func TestMailboxOfTheHubBecomesReady(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	ctx := t.Context()
	provider := newProvider(t, "mailboxes").bootstrapped(t)
	hub := provider.hub(t)
	suite.Eventually(t, func(g Gomega) {
		g.Expect(hub.List(ctx, &apisv1alpha2.APIExportList{})).To(Succeed())
		g.Expect(hub.List(ctx, &apisv1alpha1.APIResourceSchemaList{})).To(Succeed())
	})
	var mailbox *tenancyv1alpha1.Workspace
	suite.Eventually(t, func(g Gomega) {
		var err error
		mailbox, err = framework.CreateWorkspace(ctx, provider.HubConfig, provider.path, "one", provider.path+":"+synchubv1alpha1.WorkspaceType)
		g.Expect(err).NotTo(HaveOccurred())
	})

	// kcp records the owner, and the hub recognizes its own mailboxes by this record.
	self, err := kcp.WhoAmI(ctx, framework.InWorkspace(provider.HubConfig, provider.path))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(self.Username).To(Equal(provider.hubUser))
	g.Expect(mailbox.Annotations[tenancyv1alpha1.ExperimentalWorkspaceOwnerAnnotationKey]).To(ContainSubstring(fmt.Sprintf("{%q:%q", "username", provider.hubUser)))

	export := &apisv1alpha2.APIExport{}
	provider.read(t, export, named(synchubv1alpha1.MailboxExport))
	g.Expect(claimsOf(export.Spec.PermissionClaims)).To(ConsistOf("namespaces.", "events.", "logicalclusters.core.kcp.io"))
	inMailbox := provider.client(t, provider.Config, mailbox.Spec.Cluster)
	expectClaims := func(export *apisv1alpha2.APIExport) {
		t.Helper()
		suite.Eventually(t, func(g Gomega) {
			binding := bindingOf(ctx, g, inMailbox, synchubv1alpha1.MailboxExport)
			g.Expect(binding.Status.Phase).To(Equal(apisv1alpha2.APIBindingPhaseBound))
			g.Expect(conditions.IsTrue(binding, apisv1alpha2.PermissionClaimsApplied)).To(BeTrue())
			g.Expect(conditions.IsTrue(binding, apisv1alpha2.PermissionClaimsValid)).To(BeTrue())
			var accepted []string
			for _, claim := range binding.Spec.PermissionClaims {
				g.Expect(claim.State).To(Equal(apisv1alpha2.ClaimAccepted), claim.Resource)
				accepted = append(accepted, claim.Resource+"."+claim.Group)
			}
			wanted := claimsOf(export.Spec.PermissionClaims)
			g.Expect(accepted).To(ConsistOf(wanted))
			var applied []string
			for _, claim := range binding.Status.AppliedPermissionClaims {
				applied = append(applied, claim.Resource+"."+claim.Group)
			}
			g.Expect(applied).To(ConsistOf(wanted))
		})
	}
	expectClaims(export)

	// Through the virtual workspace the hub can list the mailbox and write to claimed resources.
	endpoint := endpointOf(t, provider)
	wildcard := &rest.Config{Host: endpoint + "/clusters/*", BearerToken: provider.HubConfig.BearerToken, TLSClientConfig: provider.HubConfig.TLSClientConfig}
	suite.Eventually(t, func(g Gomega) {
		for _, resource := range []schema.GroupVersionResource{
			apisv1alpha2.SchemeGroupVersion.WithResource("apibindings"),
			{Group: "core.kcp.io", Version: "v1alpha1", Resource: "logicalclusters"},
			edgev2alpha1.GroupVersion.WithResource("syncerconfigs"),
			edgev2alpha1.GroupVersion.WithResource("edgesyncconfigs"),
			{Version: "v1", Resource: "namespaces"},
			{Version: "v1", Resource: "events"},
		} {
			_, err := framework.List(ctx, wildcard, resource, "", "")
			g.Expect(err).NotTo(HaveOccurred())
		}
		bindings, err := framework.List(ctx, wildcard, apisv1alpha2.SchemeGroupVersion.WithResource("apibindings"), "", "")
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(bindings).To(HaveLen(1))
		g.Expect(bindings[0].GetAnnotations()).To(HaveKeyWithValue("kcp.io/cluster", mailbox.Spec.Cluster))
	})
	through := rest.CopyConfig(wildcard)
	through.Host = endpoint + "/clusters/" + mailbox.Spec.Cluster
	_, err = framework.List(ctx, through, schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}, "", "")
	g.Expect(err).To(HaveOccurred(), "kcp shows only claimed resources")
	writer, err := kubernetes.NewForConfig(through)
	g.Expect(err).NotTo(HaveOccurred())
	_, err = writer.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "made-by-the-hub"}}, metav1.CreateOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(inMailbox.Get(ctx, named("made-by-the-hub"), &corev1.Namespace{})).To(Succeed())

	// Existing mailboxes accept a claim that the hub adds later, and the hub can use it at once.
	suite.Eventually(t, func(g Gomega) {
		g.Expect(hub.Get(ctx, named(synchubv1alpha1.MailboxExport), export)).To(Succeed())
		export.Spec.PermissionClaims = append(export.Spec.PermissionClaims, apisv1alpha2.PermissionClaim{
			GroupResource: apisv1alpha2.GroupResource{Resource: "configmaps"}, Verbs: []string{"*"},
		})
		g.Expect(hub.Update(ctx, export)).To(Succeed())
	})
	expectClaims(export)
	g.Expect(claimsOf(export.Spec.PermissionClaims)).To(ContainElement("configmaps."))
	suite.Eventually(t, func(g Gomega) {
		_, err = framework.List(ctx, through, schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}, "", "")
		g.Expect(err).NotTo(HaveOccurred())
	})
}

func claimsOf(claims []apisv1alpha2.PermissionClaim) (names []string) {
	for _, claim := range claims {
		names = append(names, claim.Resource+"."+claim.Group)
	}
	return names
}

func bindingOf(ctx context.Context, g Gomega, workspace client.Client, export string) *apisv1alpha2.APIBinding {
	bindings := &apisv1alpha2.APIBindingList{}
	g.Expect(workspace.List(ctx, bindings)).To(Succeed())
	index := slices.IndexFunc(bindings.Items, func(binding apisv1alpha2.APIBinding) bool {
		return binding.Spec.Reference.Export != nil && binding.Spec.Reference.Export.Name == export
	})
	g.Expect(index).To(BeNumerically(">=", 0), fmt.Sprintf("%d bindings, none of %s", len(bindings.Items), export))
	return &bindings.Items[index]
}

// endpointOf returns the URL of the mailbox export's virtual workspace, as the hub's user finds it.
func endpointOf(t *testing.T, provider provider) (url string) {
	t.Helper()
	slice := &apisv1alpha1.APIExportEndpointSlice{}
	suite.Eventually(t, func(g Gomega) {
		g.Expect(provider.hub(t).Get(t.Context(), named(synchubv1alpha1.MailboxExport), slice)).To(Succeed())
		g.Expect(slice.Status.APIExportEndpoints).To(HaveLen(1))
		url = slice.Status.APIExportEndpoints[0].URL
	})
	return url
}
