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

package apiexport_test

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	apisv1alpha1 "github.com/kcp-dev/sdk/apis/apis/v1alpha1"
	apisv1alpha2 "github.com/kcp-dev/sdk/apis/apis/v1alpha2"
	. "github.com/onsi/gomega"
	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	synchubv1alpha1 "github.com/synchub-dev/synchub/apis/synchub/v1alpha1"
	"github.com/synchub-dev/synchub/controllers/apiexport"
	"github.com/synchub-dev/synchub/test/framework"
	"github.com/synchub-dev/synchub/test/framework/connections"
	"github.com/synchub-dev/synchub/test/framework/suite"
)

// workloadPath is the path of a workspace that binds the workload export.
const workloadPath = "root:workload"

var (
	placedGadgets = schema.GroupVersionResource{Group: "place.example.com", Version: "v1", Resource: "gadgets"}
	configMaps    = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
	leases        = schema.GroupVersionResource{Group: "coordination.k8s.io", Version: "v1", Resource: "leases"}
)

// The workload export has the entries of the mailbox export.
func (w *testEnv) testWorkloadExport(t *testing.T) {
	g := NewWithT(t)
	ctx := t.Context()
	w.apply(t, hostingPath, "{apiVersion: v1, kind: ConfigMap, metadata: {name: placed, namespace: default}, data: {crd.yaml: "+strconv.Quote(gadgets(placedGadgets.Group))+"}}")
	// kcp takes a schema of a group of Kubernetes only with this annotation, and the chart publishes Ingresses.
	approved := strings.Replace(gadgets("place.k8s.io"), "{name: gadgets.place.k8s.io}", "{name: gadgets.place.k8s.io, annotations: {api-approved.kubernetes.io: unapproved}}", 1)
	w.apply(t, hostingPath, "{apiVersion: v1, kind: ConfigMap, metadata: {name: approved, namespace: default}, data: {crd.yaml: "+strconv.Quote(approved)+"}}")
	w.publish(t, map[string]string{
		"placed":   "{resource: {group: place.example.com, resource: gadgets}, api: {schemaFrom: {configMap: {name: placed}}}}",
		"approved": "{resource: {group: place.k8s.io, resource: gadgets}, api: {schemaFrom: {configMap: {name: approved}}}}",
	})
	w.becomes(t, "placed", synchubv1alpha1.ConditionReady, apiexport.ReasonReady, "")
	w.becomes(t, "approved", synchubv1alpha1.ConditionReady, apiexport.ReasonReady, "")
	w.becomesMirror(t)
	g.Expect(w.entriesOf(ctx, g, synchubv1alpha1.WorkloadExport)).To(And(
		ContainElements("gadgets.place.example.com", "configmaps", "namespaces", "edgeplacements.edge.kubestellar.io", "singleplacementslices.edge.kubestellar.io", "customizers.edge.kubestellar.io", "placementrevisions.edge.kubestellar.io"),
		Not(ContainElement(ContainSubstring("syncconfigs"))), Not(ContainElement(ContainSubstring("syncerconfigs"))),
	))
	w.createWorkloadWorkspace(t)
	w.testPublishedInWorkload(t)
	w.testNewClaim(t)
	w.testMirrorIsRepaired(t)
	w.testWithdrawal(t)
	w.testRefusedMirror(t)
	w.testWithoutWorkloadExport(t)
}

// entriesOf returns the entries of an export as inExport does, without the kinds of mailboxes.
func (w *testEnv) entriesOf(ctx context.Context, g Gomega, name string) (found []string) {
	for _, entry := range w.entries(ctx, g, name) {
		if entry != "syncerconfigs.edge.kubestellar.io" && entry != "edgesyncconfigs.edge.kubestellar.io" || name == synchubv1alpha1.WorkloadExport {
			found = append(found, entry)
		}
	}
	return found
}

// becomesMirror waits until the workload export has the entries of the mailbox export and its own kinds.
func (w *testEnv) becomesMirror(t *testing.T) {
	t.Helper()
	suite.Eventually(t, func(g Gomega) {
		want := append(w.entriesOf(t.Context(), g, synchubv1alpha1.MailboxExport), "edgeplacements.edge.kubestellar.io", "singleplacementslices.edge.kubestellar.io", "customizers.edge.kubestellar.io", "placementrevisions.edge.kubestellar.io")
		g.Expect(w.entriesOf(t.Context(), g, synchubv1alpha1.WorkloadExport)).To(ConsistOf(want))
	})
}

// createWorkloadWorkspace creates a workspace that binds the workload export and accepts the claim on ConfigMaps.
func (w *testEnv) createWorkloadWorkspace(t *testing.T) {
	t.Helper()
	if _, err := framework.CreateWorkspace(t.Context(), w.kcp.Config, "root", strings.TrimPrefix(workloadPath, "root:"), ""); err != nil {
		t.Fatal(err)
	}
	w.apply(t, workloadPath, fmt.Sprintf(`
apiVersion: apis.kcp.io/v1alpha2
kind: APIBinding
metadata: {name: synchub}
spec:
  reference: {export: {path: '%s', name: %s}}
  permissionClaims:
  - {group: "", resource: configmaps, verbs: ["*"], state: Accepted, selector: {matchAll: true}}
`, providerPath, synchubv1alpha1.WorkloadExport))
}

// wildcard returns the hub's config for all workspaces that bind an export.
func (w *testEnv) wildcard(t *testing.T, export string) *rest.Config {
	t.Helper()
	var slice apisv1alpha1.APIExportEndpointSlice
	suite.Eventually(t, func(g Gomega) {
		g.Expect(w.provider.Get(t.Context(), types.NamespacedName{Name: export}, &slice)).To(Succeed())
		g.Expect(slice.Status.APIExportEndpoints).To(HaveLen(1))
	})
	config := rest.CopyConfig(w.kcp.HubConfig)
	config.Host = slice.Status.APIExportEndpoints[0].URL + "/clusters/*"
	return config
}

// observed returns the names of the objects that the hub observes through an export.
func observed(ctx context.Context, config *rest.Config, resource schema.GroupVersionResource) (names []string, err error) {
	objects, err := framework.List(ctx, config, resource, "", "")
	for _, object := range objects {
		names = append(names, object.GetName())
	}
	return names, err
}

// A workload workspace has the published APIs. The hub observes their objects, and the objects of accepted
// claims.
func (w *testEnv) testPublishedInWorkload(t *testing.T) {
	workloads := w.wildcard(t, synchubv1alpha1.WorkloadExport)
	suite.Eventually(t, func(g Gomega) {
		g.Expect(framework.Apply(t.Context(), w.kcp.Workspace(workloadPath), `
{apiVersion: v1, kind: Namespace, metadata: {name: default}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: written-once, namespace: default}}
---
{apiVersion: place.example.com/v1, kind: Gadget, metadata: {name: written-once, namespace: default}}
---
{apiVersion: edge.kubestellar.io/v2alpha1, kind: EdgePlacement, metadata: {name: everywhere}}
`)).To(Succeed())
	})
	suite.Eventually(t, func(g Gomega) {
		for _, resource := range []schema.GroupVersionResource{placedGadgets, configMaps} {
			g.Expect(observed(t.Context(), workloads, resource)).To(ContainElement("written-once"), resource.Resource)
		}
	})
}

// Users of a workspace must accept a claim that is newer than the binding. Until then the hub gets a list
// without the objects of the workspace, and the conditions of the binding report no problem.
func (w *testEnv) testNewClaim(t *testing.T) {
	ctx := t.Context()
	workloads := w.wildcard(t, synchubv1alpha1.WorkloadExport)
	w.apply(t, workloadPath, `{apiVersion: coordination.k8s.io/v1, kind: Lease, metadata: {name: written-once, namespace: default}}`)
	w.publish(t, map[string]string{"leases": "{resource: {group: coordination.k8s.io, resource: leases}}"})
	w.becomes(t, "leases", synchubv1alpha1.ConditionReady, apiexport.ReasonReady, "")
	w.becomesMirror(t)
	workload := w.client(t, workloadPath)
	var binding apisv1alpha2.APIBinding
	isLeases := func(group apisv1alpha2.GroupResource) bool { return group.Resource == leases.Resource }
	suite.Eventually(t, func(g Gomega) {
		g.Expect(workload.Get(ctx, types.NamespacedName{Name: "synchub"}, &binding)).To(Succeed())
		g.Expect(slices.ContainsFunc(binding.Status.ExportPermissionClaims, func(claim apisv1alpha2.PermissionClaim) bool { return isLeases(claim.GroupResource) })).To(BeTrue())
		g.Expect(observed(ctx, workloads, leases)).To(BeEmpty())
	})
	NewWithT(t).Expect(slices.ContainsFunc(binding.Status.AppliedPermissionClaims, func(claim apisv1alpha2.ScopedPermissionClaim) bool { return isLeases(claim.GroupResource) })).To(BeFalse())
	suite.Eventually(t, func(g Gomega) {
		g.Expect(workload.Get(ctx, types.NamespacedName{Name: "synchub"}, &binding)).To(Succeed())
		accepted := binding.Spec.PermissionClaims[0]
		accepted.GroupResource = apisv1alpha2.GroupResource{Group: leases.Group, Resource: leases.Resource}
		binding.Spec.PermissionClaims = append(binding.Spec.PermissionClaims, accepted)
		g.Expect(workload.Update(ctx, &binding)).To(Succeed())
	})
	suite.Eventually(t, func(g Gomega) { g.Expect(observed(ctx, workloads, leases)).To(ContainElement("written-once")) })
}

// The controller undoes changes of the workload export by other writers at once.
func (w *testEnv) testMirrorIsRepaired(t *testing.T) {
	w.changeExport(t, synchubv1alpha1.WorkloadExport, func(spec *apisv1alpha2.APIExportSpec) {
		spec.PermissionClaims = slices.DeleteFunc(spec.PermissionClaims, func(claim apisv1alpha2.PermissionClaim) bool { return claim.Resource == configMaps.Resource })
		spec.PermissionClaims = append(spec.PermissionClaims, apisv1alpha2.PermissionClaim{GroupResource: apisv1alpha2.GroupResource{Group: "rbac.authorization.k8s.io", Resource: "clusterroles"}, Verbs: []string{"*"}})
	})
	w.becomesMirror(t)
}

// An unpublished API stays in both exports. Once a user removes it from the mailbox export, the hub observes
// its objects in neither.
func (w *testEnv) testWithdrawal(t *testing.T) {
	ctx := t.Context()
	NewWithT(t).Expect(w.hosting.Delete(ctx, &synchubv1alpha1.PublishedResource{ObjectMeta: metav1.ObjectMeta{Name: "placed"}})).To(Succeed())
	w.hasEvent(t, "placed", apiexport.ReasonUnpublished, "gadgets.place.example.com is no longer published")
	NewWithT(t).Expect(w.entriesOf(ctx, NewWithT(t), synchubv1alpha1.WorkloadExport)).To(ContainElement("gadgets.place.example.com"))

	w.changeExport(t, synchubv1alpha1.MailboxExport, func(spec *apisv1alpha2.APIExportSpec) {
		spec.Resources = slices.DeleteFunc(spec.Resources, func(exported apisv1alpha2.ResourceSchema) bool { return exported.Group == placedGadgets.Group })
	})
	w.becomesMirror(t)
	NewWithT(t).Expect(w.entriesOf(ctx, NewWithT(t), synchubv1alpha1.WorkloadExport)).NotTo(ContainElement("gadgets.place.example.com"))
	suite.Eventually(t, func(g Gomega) {
		for _, export := range []string{synchubv1alpha1.MailboxExport, synchubv1alpha1.WorkloadExport} {
			_, err := observed(ctx, w.wildcard(t, export), placedGadgets)
			g.Expect(err).To(Satisfy(apierrors.IsNotFound), export)
		}
	})
	// The user of the workspace keeps the objects.
	NewWithT(t).Expect(observed(ctx, w.kcp.Workspace(workloadPath), placedGadgets)).To(ContainElement("written-once"))
}

// If kcp refuses a change of the workload export, mailboxes still get the API, and the PublishedResource
// reports the refusal.
func (w *testEnv) testRefusedMirror(t *testing.T) {
	ctx := t.Context()
	role := &rbacv1.ClusterRole{}
	suite.Eventually(t, func(g Gomega) {
		g.Expect(w.provider.Get(ctx, types.NamespacedName{Name: "synchub:hub"}, role)).To(Succeed())
		for i := range role.Rules {
			if slices.Contains(role.Rules[i].Verbs, "patch") {
				role.Rules[i].ResourceNames = slices.DeleteFunc(role.Rules[i].ResourceNames, func(name string) bool { return name == synchubv1alpha1.WorkloadExport })
			}
		}
		g.Expect(w.provider.Update(ctx, role)).To(Succeed())
	})
	w.mayPatchWorkloadExport(t, false)
	w.publish(t, map[string]string{"roles": "{resource: {group: rbac.authorization.k8s.io, resource: roles}}"})
	w.becomes(t, "roles", synchubv1alpha1.ConditionNotPlaceable, apiexport.ReasonRefused, "kcp refuses the claim on roles.rbac.authorization.k8s.io in the workload export: ")
	w.becomes(t, "roles", synchubv1alpha1.ConditionReady, apiexport.ReasonReady, "")
	NewWithT(t).Expect(w.entriesOf(ctx, NewWithT(t), synchubv1alpha1.MailboxExport)).To(ContainElement("roles.rbac.authorization.k8s.io"))

	connections.Bootstrap(t, w.kcp, providerPath)
	w.mayPatchWorkloadExport(t, true)
	// The controller reconciles every minute and at each event of a PublishedResource.
	NewWithT(t).Eventually(func(g Gomega) {
		w.annotate(t, g, "roles")
		var resource synchubv1alpha1.PublishedResource
		g.Expect(w.hosting.Get(ctx, types.NamespacedName{Name: "roles"}, &resource)).To(Succeed())
		g.Expect(meta.FindStatusCondition(resource.Status.Conditions, synchubv1alpha1.ConditionNotPlaceable)).To(BeNil())
	}).WithContext(ctx).WithPolling(time.Second).Should(Succeed())
	w.becomesMirror(t)
}

// mayPatchWorkloadExport waits until kcp lets the hub patch the workload export, or no longer lets it.
func (w *testEnv) mayPatchWorkloadExport(t *testing.T, allowed bool) {
	t.Helper()
	hub, err := kubernetes.NewForConfig(framework.InWorkspace(w.kcp.HubConfig, providerPath))
	if err != nil {
		t.Fatal(err)
	}
	review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &authorizationv1.ResourceAttributes{
		Verb: "patch", Group: apisv1alpha2.SchemeGroupVersion.Group, Resource: "apiexports", Name: synchubv1alpha1.WorkloadExport,
	}}}
	suite.Eventually(t, func(g Gomega) {
		answer, err := hub.AuthorizationV1().SelfSubjectAccessReviews().Create(t.Context(), review, metav1.CreateOptions{})
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(answer.Status.Allowed).To(Equal(allowed))
	})
}

// A hub without its workload export still serves mailboxes. The export gets all entries once `synchub init` has
// created it again.
func (w *testEnv) testWithoutWorkloadExport(t *testing.T) {
	ctx := t.Context()
	export := &apisv1alpha2.APIExport{ObjectMeta: metav1.ObjectMeta{Name: synchubv1alpha1.WorkloadExport}}
	NewWithT(t).Expect(w.provider.Delete(ctx, export)).To(Succeed())
	suite.Eventually(t, func(g Gomega) {
		g.Expect(apierrors.IsNotFound(w.provider.Get(ctx, client.ObjectKeyFromObject(export), export))).To(BeTrue())
	})
	w.publish(t, map[string]string{"rolebindings": "{resource: {group: rbac.authorization.k8s.io, resource: rolebindings}}"})
	w.becomes(t, "rolebindings", synchubv1alpha1.ConditionReady, apiexport.ReasonReady, "")
	NewWithT(t).Expect(w.entriesOf(ctx, NewWithT(t), synchubv1alpha1.MailboxExport)).To(ContainElement("rolebindings.rbac.authorization.k8s.io"))

	connections.Bootstrap(t, w.kcp, providerPath)
	w.becomesMirror(t)
}

// changeExport changes the spec of an export as an administrator.
func (w *testEnv) changeExport(t *testing.T, name string, change func(spec *apisv1alpha2.APIExportSpec)) {
	t.Helper()
	suite.Eventually(t, func(g Gomega) {
		var export apisv1alpha2.APIExport
		g.Expect(w.provider.Get(t.Context(), types.NamespacedName{Name: name}, &export)).To(Succeed())
		change(&export.Spec)
		g.Expect(w.provider.Update(t.Context(), &export)).To(Succeed())
	})
}

// client returns an administrator's client for a workspace.
func (w *testEnv) client(t *testing.T, workspace string) client.Client {
	t.Helper()
	made, err := client.New(w.kcp.Workspace(workspace), client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	return made
}
