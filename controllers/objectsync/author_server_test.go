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

package objectsync

import (
	"context"
	"slices"
	"strings"
	gosync "sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/kcp-dev/logicalcluster/v3"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/clock"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/controllers/plan"
	"github.com/synchub-dev/synchub/controllers/plan/ownership"
	"github.com/synchub-dev/synchub/controllers/plan/tenancy"
	"github.com/synchub-dev/synchub/controllers/plan/transform"
	"github.com/synchub-dev/synchub/controllers/tenants"
	"github.com/synchub-dev/synchub/provider/kcp"
	"github.com/synchub-dev/synchub/provider/rbac"
	"github.com/synchub-dev/synchub/provider/targets"
	"github.com/synchub-dev/synchub/test/fixtures"
	"github.com/synchub-dev/synchub/test/framework/connections"
	"github.com/synchub-dev/synchub/test/framework/suite"
)

var (
	roleBindingsV1    = rbacv1.SchemeGroupVersion.WithResource("rolebindings")
	resourceQuotasV1  = schema.GroupVersionResource{Version: "v1", Resource: "resourcequotas"}
	serviceAccountsV1 = schema.GroupVersionResource{Version: "v1", Resource: "serviceaccounts"}
)

// tenantRoles are the ClusterRole of workspaces, and a policy that the hub itself does not meet.
const tenantRoles = `
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: tenant-ROLE}
rules: [{apiGroups: [""], resources: [configmaps], verbs: [create, patch, delete]}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: tenants-only}
spec:
  matchConstraints:
    namespaceSelector: {matchExpressions: [{key: synchub.dev/workspace, operator: Exists}]}
    resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE, UPDATE, DELETE], resources: [configmaps]}]
  validations:
  - expression: "request.userInfo.username.startsWith('system:serviceaccount:synchub-tenants:') && 'system:serviceaccounts:synchub-tenants' in request.userInfo.groups"
    message: only tenants write here
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: tenants-only}
spec: {policyName: tenants-only, validationActions: [Deny]}
`

// connectAsTenants returns a connection with the rights that a registration gives the hub for workspaces with the ClusterRole.
func connectAsTenants(t *testing.T, role string, resources ...rbac.Resource) *targets.Connection {
	t.Helper()
	client, err := kubernetes.NewForConfig(suite.Target(t).Config)
	if err != nil {
		t.Fatal(err)
	}
	put(t, strings.ReplaceAll(tenantRoles, "tenant-ROLE", role))
	put(t, "{apiVersion: v1, kind: Namespace, metadata: {name: synchub-tenants}}\n---\n{apiVersion: v1, kind: ServiceAccount, metadata: {name: "+role+", namespace: default}}")
	options := rbac.Options{Tenancy: rbac.Tenancy{Role: role, ResourceQuotas: true, LimitRanges: true}}
	meta := metav1.ObjectMeta{Name: "hub-" + role}
	subjects := []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: "default", Name: role}}
	reference := func(kind string) rbacv1.RoleRef {
		return rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: kind, Name: meta.Name}
	}
	roles := client.RbacV1()
	for _, create := range []func() error{
		func() error {
			_, err := roles.ClusterRoles().Create(t.Context(), &rbacv1.ClusterRole{ObjectMeta: meta, Rules: rbac.ClusterRoleRules(resources, options)}, metav1.CreateOptions{})
			return err
		},
		func() error {
			_, err := roles.ClusterRoleBindings().Create(t.Context(), &rbacv1.ClusterRoleBinding{ObjectMeta: meta, Subjects: subjects, RoleRef: reference("ClusterRole")}, metav1.CreateOptions{})
			return err
		},
		func() error {
			_, err := roles.Roles("synchub-tenants").Create(t.Context(), &rbacv1.Role{ObjectMeta: meta, Rules: options.Tenancy.AccountRules()}, metav1.CreateOptions{})
			return err
		},
		func() error {
			_, err := roles.RoleBindings("synchub-tenants").Create(t.Context(), &rbacv1.RoleBinding{ObjectMeta: meta, Subjects: subjects, RoleRef: reference("Role")}, metav1.CreateOptions{})
			return err
		},
	} {
		if err := create(); err != nil {
			t.Fatal(err)
		}
	}
	kubeconfig, err := suite.Target(t).ServiceAccountKubeconfig(t.Context(), "default", role)
	if err != nil {
		t.Fatal(err)
	}
	connection := connections.Connect(t, connections.NewRegistry(t, targets.Options{FieldManager: testFieldManager}), types.UID(role), kubeconfig, kcp.Limits{})
	suite.WaitUntil(t, "the target is up", connection.Health.IsUp)
	suite.WaitUntil(t, "the hub has its rights", func() bool {
		permissions := connection.Permissions.Get(rbac.RequiredAttributes(resources, options.Tenancy), time.Time{})
		return permissions.Known && len(permissions.Missing) == 0
	})
	return connection
}

// tenantHub is a hub with a workload workspace.
type tenantHub struct {
	*testHub
	workspace  logicalcluster.Name
	stopTenant func()
}

// startTenants starts the controller of tenants, until stopTenants.
func (h *tenantHub) startTenants(of *edgev2alpha1.Tenancy, written ...string) {
	h.t.Helper()
	controller := tenants.New(tenants.Options{
		Connection: h.connection, Mailboxes: h.mailboxes, Mailbox: theMailbox, Owner: h.owner, Hasher: ownership.NewHasher([]byte("key")),
		OnPrepared: func(namespace string) {
			for _, running := range h.running() {
				running.RetryDenied(namespace)
			}
		},
		Written: written, OnProblem: func() {}, Clock: clock.RealClock{}, Log: logr.Discard(),
	}, of)
	ctx, cancel := context.WithCancel(context.Background())
	var running gosync.WaitGroup
	running.Go(func() {
		if err := controller.Run(ctx); err != nil {
			h.t.Error(err)
		}
	})
	h.tenants.Store(controller)
	h.stopTenant = func() {
		cancel()
		running.Wait()
	}
}

// place puts an object into the mailbox that a placement of the workspace made.
func (h *tenantHub) place(resource schema.GroupVersionResource, manifest string) {
	h.t.Helper()
	object := fixtures.Object(h.t, h.withNamespace(manifest))
	owner := h.owner.ForPlacements()
	object.SetAnnotations(map[string]string{ownership.MarkAnnotation: owner.Seal(ownership.Mark{
		Version: ownership.MarkVersion, Hub: owner.Hub, SyncTarget: owner.SyncTarget, Mailbox: h.workspace.String(), Direction: ownership.DirectionUp,
		Source: ownership.Source{Resource: resource.Resource, Namespace: "shop", Name: object.GetName(), UID: types.UID("uid-" + object.GetName())},
		Self:   transform.SelfOf(object),
	})})
	h.locked(func() { h.create(resource, object) })
}

func (h *tenantHub) failureOf(resource schema.GroupVersionResource, namespace, name string) Failure {
	return h.controllers[resource].Status.states.failures()[types.NamespacedName{Namespace: namespace, Name: name}]
}

func resourceOfCluster(t *testing.T, resource schema.GroupVersionResource, kind string) plan.Resource {
	t.Helper()
	of := resourceNamed(t, resource, "")
	of.Kind, of.Namespaced, of.StatusReturn = kind, false, false
	return of
}

const tenantsTravel = `
namespaceScope: {namespaces: [NS, foreign-NS], resources: [{group: '', resource: configmaps}]}
clusterScope: [{group: '', apiVersion: v1, resource: namespaces, objects: [NS]}, {group: rbac.authorization.k8s.io, apiVersion: v1, resource: clusterroles, objects: ["*"]}]`

// A workspace's objects are written as its ServiceAccount, with the hub's smallest rights, and the cluster decides what it may do.
func TestTenants(t *testing.T) {
	role := unique("tenant")
	resources := []rbac.Resource{{Resource: "configmaps", Down: true, Up: true}, {Resource: "namespaces", Down: true}, {Group: rbacv1.GroupName, Resource: "clusterroles", Down: true}}
	h := &tenantHub{workspace: "2abc", testHub: newHubOn(t, connectAsTenants(t, role, resources...), []plan.Resource{
		resourceOfCluster(t, namespaces, "Namespace"), resourceNamed(t, configMapsV1, ""), resourceOfCluster(t, clusterRolesV1, "ClusterRole"),
	})}
	h.namespace = "team-" + h.namespace
	h.configure(tenantsTravel)
	of := &edgev2alpha1.Tenancy{
		Namespaces: edgev2alpha1.NamespacesPerWorkspace, Identity: edgev2alpha1.TenantIdentityWorkspace, Role: role,
		NamespaceLabels: map[string]string{"pod-security.kubernetes.io/enforce": "restricted"},
	}
	h.startTenants(of)
	defer func() { h.stopTenant() }()
	hash := tenancy.WorkspaceHash(h.workspace)
	user := "system:serviceaccount:synchub-tenants:" + hash

	// The object is there before the Namespace of the mailbox.
	h.place(configMapsV1, "{apiVersion: v1, kind: ConfigMap, metadata: {name: settings, namespace: NS}, data: {a: b}}")
	settings := h.expectOnTarget(configMapsV1, "settings")
	namespace := onTargetIn(t, namespaces, "", h.namespace)
	if labels := namespace.GetLabels(); labels[edgev2alpha1.LabelWorkspace] != hash || labels["pod-security.kubernetes.io/enforce"] != "restricted" {
		t.Errorf("the namespace has the labels %v", labels)
	}
	h.place(namespaces, "{apiVersion: v1, kind: Namespace, metadata: {name: NS, labels: {synchub.dev/workspace: "+hash+", pod-security.kubernetes.io/enforce: restricted}}}")
	h.until("the hub owns the namespace", func() bool { return h.isOwned(onTargetIn(t, namespaces, "", h.namespace)) })
	binding := h.onTarget(roleBindingsV1, tenants.ObjectName)
	if onTargetIn(t, serviceAccountsV1, "synchub-tenants", hash) == nil || binding == nil {
		t.Fatal("the workspace has no ServiceAccount, or no RoleBinding")
	}

	t.Run("the cluster denies what the role does not allow", func(t *testing.T) {
		h.place(clusterRolesV1, "{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: "+role+"-more}, rules: []}")
		h.until("the ClusterRole is denied", func() bool { return h.failureOf(clusterRolesV1, "", role+"-more").Reason == plan.ReasonForbidden })
		if message := h.failureOf(clusterRolesV1, "", role+"-more").Message; !strings.Contains(message, user) {
			t.Errorf("the failure does not name the user: %s", message)
		}
	})
	t.Run("a namespace that was not made for the workspace", func(t *testing.T) {
		put(t, "{apiVersion: v1, kind: Namespace, metadata: {name: foreign-"+h.namespace+"}}")
		h.place(configMapsV1, "{apiVersion: v1, kind: ConfigMap, metadata: {name: settings, namespace: foreign-NS}}")
		h.until("the ConfigMap is refused", func() bool {
			reason := h.failureOf(configMapsV1, "foreign-"+h.namespace, "settings").Reason
			return reason == plan.ReasonConflict
		})
	})
	t.Run("an object of the mailbox is written as the hub", func(t *testing.T) {
		h.put(configMapsV1, "{apiVersion: v1, kind: ConfigMap, metadata: {name: plain, namespace: "+h.namespace+"}}")
		h.until("the ConfigMap is denied", func() bool { return h.failureOf(configMapsV1, h.namespace, "plain").Reason == plan.ReasonForbidden })
		if message := h.failureOf(configMapsV1, h.namespace, "plain").Message; strings.Contains(message, "synchub-tenants") {
			t.Errorf("the failure names another user: %s", message)
		}
	})
	t.Run("a restart writes nothing", func(*testing.T) {
		h.stop()
		h.stopTenant()
		h.start()
		h.startTenants(of)
		h.expectUnchangedOnTarget(configMapsV1, settings)
		h.expectUnchangedOnTarget(roleBindingsV1, binding)
	})
	t.Run("a binding that somebody deletes is made again", func(*testing.T) {
		h.deleteOnTarget(roleBindingsV1, tenants.ObjectName)
		h.until("the RoleBinding is back", func() bool { return h.onTarget(roleBindingsV1, tenants.ObjectName) != nil })
	})
	t.Run("a quota while the settings have one", func(t *testing.T) {
		with := of.DeepCopy()
		with.ResourceQuota = fixtures.Decode[*edgev2alpha1.Tenancy](t, "resourceQuota: {hard: {count/secrets: '1000m'}}").ResourceQuota
		h.tenants.Load().SetTenancy(with)
		h.until("there is a ResourceQuota", func() bool { return h.onTarget(resourceQuotasV1, tenants.ObjectName) != nil })
		quota := h.onTarget(resourceQuotasV1, tenants.ObjectName)
		h.waitUntilIdle()
		h.expectUnchangedOnTarget(resourceQuotasV1, quota)
		h.tenants.Load().SetTenancy(of)
		h.until("there is no ResourceQuota", func() bool { return h.onTarget(resourceQuotasV1, tenants.ObjectName) == nil })

		h.tenants.Load().SetTenancy(with)
		h.until("there is a ResourceQuota again", func() bool { return h.onTarget(resourceQuotasV1, tenants.ObjectName) != nil })
		h.stopTenant()
		h.startTenants(of, tenants.ResourcesFor(with)...)
		h.until("the ResourceQuota is gone, whose setting ended while no hub ran", func() bool { return h.onTarget(resourceQuotasV1, tenants.ObjectName) == nil })
		h.until("nothing is left of it", func() bool { return slices.Equal(h.tenants.Load().LeftResources(), tenants.ResourcesFor(of)) })
	})
	t.Run("a quota that the cluster refuses", func(t *testing.T) {
		refused := of.DeepCopy()
		refused.ResourceQuota = &corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{"bogus": resource.MustParse("1")}}
		h.tenants.Load().SetTenancy(refused)
		h.until("the cluster's words are reported", func() bool { return strings.Contains(h.tenants.Load().Problem(), "standard resource for quota") })
		if problem := h.tenants.Load().Problem(); !strings.Contains(problem, h.namespace) {
			t.Errorf("the problem is %s", problem)
		}
		h.place(configMapsV1, "{apiVersion: v1, kind: ConfigMap, metadata: {name: waits, namespace: NS}}")
		h.until("an object waits for it", func() bool {
			return h.failureOf(configMapsV1, h.namespace, "waits").Reason == plan.ReasonNamespaceNotPrepared
		})
		h.tenants.Load().SetTenancy(of)
		h.until("the object arrives", func() bool { return h.onTarget(configMapsV1, "waits") != nil })
		h.until("nothing is refused", func() bool { return h.tenants.Load().Problem() == "" })
	})
	t.Run("an object that the role may not remove", func(t *testing.T) {
		put(t, "{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: "+role+"}, rules: [{apiGroups: [''], resources: [configmaps], verbs: [create, patch]}]}")
		h.drop(configMapsV1, h.namespace, "settings")
		h.until("the removal is denied", func() bool {
			return h.failureOf(configMapsV1, h.namespace, "settings").Reason == plan.ReasonCannotWithdraw
		})
		h.until("the copy is reported to its workspace", func() bool { return len(h.stuckCopies()) == 1 })
		if stuck := h.stuckCopies()[0]; tenancy.WorkspaceHash(stuck.Workspace) != hash || stuck.Key.Name != "settings" {
			t.Errorf("another copy is stuck: %v", stuck)
		}
		put(t, "{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: "+role+"}, rules: [{apiGroups: [''], resources: [configmaps], verbs: [create, patch, delete]}]}")
		h.until("the object is removed", func() bool {
			for _, running := range h.running() {
				running.RetryDenied("")
			}
			return h.onTarget(configMapsV1, "settings") == nil
		})
		h.until("no copy is stuck", func() bool { return len(h.stuckCopies()) == 0 })
	})
	t.Run("nothing is kept without an identity", func(t *testing.T) {
		h.tenants.Load().SetTenancy(&edgev2alpha1.Tenancy{Namespaces: edgev2alpha1.NamespacesPerWorkspace})
		h.until("the RoleBinding and the ServiceAccount are gone", func() bool {
			return h.onTarget(roleBindingsV1, tenants.ObjectName) == nil && onTargetIn(t, serviceAccountsV1, "synchub-tenants", hash) == nil
		})
	})
}

// stuckCopies returns the stuck copies of all resources.
func (h *tenantHub) stuckCopies() (refs []ObjectRef) {
	for _, running := range h.running() {
		refs = append(refs, running.Status.StuckCopies()...)
	}
	return refs
}

// The hub may write for a workspace before its watch has reported who made the namespace.
func TestPrepareBeforeTheWatchOfNamespaces(t *testing.T) {
	const workspace = logicalcluster.Name("2abc")
	connection := connections.Connect(t, connections.NewRegistry(t, targets.Options{FieldManager: testFieldManager}), types.UID(unique("early")), suite.ReadFile(t, suite.Target(t).Kubeconfig), kcp.Limits{})
	suite.WaitUntil(t, "the target is up", connection.Health.IsUp)
	controller := tenants.New(tenants.Options{
		Connection: connection, Mailbox: theMailbox, Owner: testOwner, Hasher: ownership.NewHasher([]byte("key")),
		OnPrepared: func(string) {}, OnProblem: func() {}, Clock: clock.RealClock{}, Log: logr.Discard(),
	}, &edgev2alpha1.Tenancy{Namespaces: edgev2alpha1.NamespacesPerWorkspace})

	foreign := unique("foreign")
	put(t, "{apiVersion: v1, kind: Namespace, metadata: {name: "+foreign+"}}")
	// The informer has not synced at the first call, which starts it.
	if err := controller.Prepare(t.Context(), foreign, workspace); !tenants.IsForeignNamespace(err) {
		t.Errorf("the namespace of somebody else is used: %v", err)
	}
	own := unique("own")
	for range 2 {
		if err := controller.Prepare(t.Context(), own, workspace); err != nil {
			t.Fatal(err)
		}
	}
	if labels := onTargetIn(t, namespaces, "", own).GetLabels(); labels[edgev2alpha1.LabelWorkspace] != tenancy.WorkspaceHash(workspace) {
		t.Errorf("the namespace has the labels %v", labels)
	}
}
