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
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	synchubv1alpha1 "github.com/synchub-dev/synchub/apis/synchub/v1alpha1"
	"github.com/synchub-dev/synchub/cmd/kubectl-synchub/cli"
	"github.com/synchub-dev/synchub/cmd/kubectl-synchub/rollout"
	"github.com/synchub-dev/synchub/controllers/publishedresource"
	"github.com/synchub-dev/synchub/provider/bootstrap"
	"github.com/synchub-dev/synchub/test/fixtures"
	"github.com/synchub-dev/synchub/test/framework"
	"github.com/synchub-dev/synchub/test/framework/servers"
	"github.com/synchub-dev/synchub/test/framework/suite"
)

const (
	uiProvider  = "root:ui-provider"
	uiInventory = "root:ui-inventory"
	uiWorkload  = "root:ui-shop"
)

// uiWorld is an inventory workspace and a workload workspace with statuses as the hub writes them, and a user who may only read.
type uiWorld struct {
	kcp                 *servers.KCP
	inventory, workload client.WithWatch
	// target is the administrator's client of florin's cluster.
	target client.WithWatch
	// inventoryCluster is the logical cluster of the inventory workspace, and mailbox the one of florin's mailbox.
	inventoryCluster, mailbox string
}

// mayRead lets the user read a workspace.
var mayRead = `---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: 'test:read'}
rules:
- {apiGroups: ['*'], resources: ['*'], verbs: [get, list, watch]}
- {nonResourceURLs: ['*'], verbs: [get]}
` + rightsOf("read", "test:read") + rightsOf("access", "system:kcp:workspace:access")

var newUIWorld = suite.Shared(func(t testing.TB) *uiWorld {
	kcp := suite.KCP(t)
	if err := bootstrap.Run(t.Context(), bootstrap.Options{
		Config: kcp.Workspace, Workspace: uiProvider, HubUser: "another", InventoryGroups: []string{servers.HubGroup}, Report: func(string, string) {},
	}); err != nil {
		t.Fatal(err)
	}
	provider, err := client.New(kcp.Workspace(uiProvider), client.Options{Scheme: bootstrap.Scheme()})
	if err != nil {
		t.Fatal(err)
	}
	ensureWorkloadExport(t, provider)
	publishAPIs(t, kcp, uiProvider, synchubv1alpha1.MailboxExport, synchubv1alpha1.WorkloadExport)
	w := &uiWorld{kcp: kcp}
	w.inventory, w.inventoryCluster = w.create(t, "root", "ui-inventory", bindingOf(uiProvider, synchubv1alpha1.InventoryExport))
	w.workload, _ = w.create(t, "root", "ui-shop", bindingOf(uiProvider, synchubv1alpha1.WorkloadExport, "configmaps", "namespaces"))
	_, w.mailbox = w.create(t, uiProvider, "mb-florin", bindingOf(uiProvider, synchubv1alpha1.MailboxExport, "configmaps", "namespaces"))
	suite.Eventually(t, func(g Gomega) {
		g.Expect(w.inventory.List(t.Context(), &edgev2alpha1.SyncTargetList{})).To(Succeed())
		g.Expect(w.workload.List(t.Context(), &edgev2alpha1.EdgePlacementList{})).To(Succeed())
		g.Expect(w.workload.List(t.Context(), &edgev2alpha1.PlacementRevisionList{})).To(Succeed())
	})
	w.fill(t)
	return w
})

// create creates a workspace that binds an export, and returns a client of its administrator.
func (w *uiWorld) create(t testing.TB, parent, name, binding string) (_ client.WithWatch, cluster string) {
	t.Helper()
	created, err := framework.CreateWorkspace(t.Context(), w.kcp.Config, parent, name, "")
	if err != nil {
		t.Fatal(err)
	}
	config := w.kcp.Workspace(parent + ":" + name)
	suite.Apply(t, config, binding+mayRead)
	made, err := cli.ClientOf(config)
	if err != nil {
		t.Fatal(err)
	}
	return made, created.Spec.Cluster
}

const uiObjects = `
apiVersion: v1
kind: Namespace
metadata: {name: shop}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: shop}
spec:
  replicas: 3
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers: [{name: main, image: registry.example.com/web:1.7}]
      volumes: [{name: settings, configMap: {name: settings}}]
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: cart, namespace: shop}
spec: {replicas: 2}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: settings, namespace: shop}
`

const uiPlacement = `---
apiVersion: edge.kubestellar.io/v2alpha1
kind: EdgePlacement
metadata: {name: shop}
spec:
  locationSelectors: [{}]
  downsync: [{namespaces: [shop]}]
  rolloutStrategy: {type: Progressive, progressive: {maxConcurrency: 1}}
`

const uiConfig = `---
apiVersion: edge.kubestellar.io/v2alpha1
kind: SyncerConfig
metadata: {name: shop}
spec: {namespaceScope: {namespaces: [shop], resources: [{group: apps, resource: deployments, apiVersion: v1}]}}
`

const uiPublished = `
apiVersion: synchub.dev/v1alpha1
kind: PublishedResource
metadata: {name: deployments}
spec:
  resource: {group: apps, resource: deployments, version: v1}
  related:
  - identifier: settings
    origin: Mailbox
    resource: {version: v1, resource: configmaps}
    object: {reference: {path: "spec.template.spec.volumes[*].configMap.name"}}
`

// fill writes the objects of users, and the statuses of the hub.
func (w *uiWorld) fill(t testing.TB) {
	t.Helper()
	suite.Eventually(t, func(g Gomega) {
		g.Expect(framework.Apply(t.Context(), w.kcp.Workspace(uiWorkload), uiObjects+uiPlacement)).To(Succeed())
		g.Expect(framework.Apply(t.Context(), w.kcp.Workspace(uiProvider+":mb-florin"), uiObjects+uiConfig)).To(Succeed())
	})
	uids := map[string]types.UID{}
	for _, one := range uiTargets(w.mailbox) {
		if uids[one.Name] = w.makeTarget(t, one).UID; one.Name == "florin" {
			w.sync(t, one)
		}
	}
	w.makePlacement(t, uids)
	for _, event := range []corev1.Event{
		uiEvent("SyncTarget", "ducat", uids["ducat"], corev1.EventTypeWarning, "TargetUnreachable", "The cluster does not answer."),
		uiEvent("SyncTarget", "krone", uids["krone"], corev1.EventTypeNormal, "Ready", "<img src=x onerror=alert(1)>"),
		uiEvent("SyncTarget", "florin", uids["florin"], corev1.EventTypeNormal, "Ready", "The hub syncs the cluster."),
	} {
		if err := w.inventory.Create(t.Context(), &event); err != nil {
			t.Fatal(err)
		}
	}
	conflict := uiEvent("Deployment", "web", "", corev1.EventTypeWarning, "Conflict", "On guilder: the cluster has another object of this name")
	conflict.Namespace, conflict.InvolvedObject.Namespace, conflict.InvolvedObject.APIVersion = "shop", "shop", "apps/v1"
	// Anybody may write events.
	foreign := conflict
	foreign.ReportingController = "another"
	for _, event := range []corev1.Event{conflict, foreign} {
		if err := w.workload.Create(t.Context(), &event); err != nil {
			t.Fatal(err)
		}
	}
}

// sync brings a Deployment of florin's mailbox to the target, with the rules and the credentials that explain reads.
func (w *uiWorld) sync(t testing.TB, florin *edgev2alpha1.SyncTarget) {
	t.Helper()
	published := fixtures.Decode[synchubv1alpha1.PublishedResource](t, uiPublished)
	mailbox, err := cli.ClientOf(w.kcp.Workspace(uiProvider + ":mb-florin"))
	if err != nil {
		t.Fatal(err)
	}
	status, err := publishedresource.SyncRulesOf(publishedresource.Hub{UID: testHub}, nil, []synchubv1alpha1.PublishedResource{published})
	if err != nil {
		t.Fatal(err)
	}
	for _, workspace := range []client.Client{mailbox, w.workload} {
		rules := &edgev2alpha1.SyncRules{ObjectMeta: metav1.ObjectMeta{Name: edgev2alpha1.SyncRulesName}}
		suite.Eventually(t, func(g Gomega) { g.Expect(workspace.Create(t.Context(), rules)).To(Succeed()) })
		rules.Status = status
		if err := workspace.Status().Update(t.Context(), rules); err != nil {
			t.Fatal(err)
		}
	}
	target := suite.Target(t)
	credentials := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "florin-kubeconfig", Labels: map[string]string{edgev2alpha1.LabelCredential: edgev2alpha1.CredentialKubeconfig}},
		Data:       map[string][]byte{"kubeconfig": suite.ReadFile(t, target.Kubeconfig)},
	}
	if err := w.inventory.Create(t.Context(), credentials); err != nil {
		t.Fatal(err)
	}
	suite.Apply(t, target.Config, "{apiVersion: v1, kind: Namespace, metadata: {name: shop}}")
	if w.target, err = cli.ClientOf(target.Config); err != nil {
		t.Fatal(err)
	}
	source := &unstructured.Unstructured{}
	source.SetAPIVersion("apps/v1")
	source.SetKind("Deployment")
	if err := mailbox.Get(t.Context(), client.ObjectKey{Namespace: "shop", Name: "web"}, source); err != nil {
		t.Fatal(err)
	}
	bringCopy(t, w.target, source, florin, published)
}

// makeTarget creates a SyncTarget with its status.
func (w *uiWorld) makeTarget(t testing.TB, of *edgev2alpha1.SyncTarget) *edgev2alpha1.SyncTarget {
	t.Helper()
	status := of.Status
	if err := w.inventory.Create(t.Context(), of); err != nil {
		t.Fatal(err)
	}
	of.Status = status
	if err := w.inventory.Status().Update(t.Context(), of); err != nil {
		t.Fatal(err)
	}
	return of
}

// uiTarget returns a SyncTarget with a status as the hub writes it.
func uiTarget(name string, ready metav1.ConditionStatus, reason, message string, synced int32) *edgev2alpha1.SyncTarget {
	now := metav1.Now()
	of := &edgev2alpha1.SyncTarget{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"region": "north"}}}
	of.Status = edgev2alpha1.SyncTargetStatus{
		LastSyncerHeartbeatTime: &now,
		Conditions:              []metav1.Condition{{Type: edgev2alpha1.ConditionReady, Status: ready, Reason: reason, Message: message, LastTransitionTime: now}},
		Counts:                  &edgev2alpha1.TargetCounts{Synced: synced},
		Versions:                &edgev2alpha1.TargetVersions{Kubernetes: "v1.35.4"},
		ClusterID:               "0d0b5a6e-" + name,
		SyncedResources:         []edgev2alpha1.SyncedResource{{Group: "apps", Resource: "deployments", Versions: []string{"v1"}, State: edgev2alpha1.SyncedResourceAccepted}},
	}
	return of
}

// uiTargets returns a fleet with each kind of health. florin has the mailbox.
func uiTargets(mailbox string) []*edgev2alpha1.SyncTarget {
	florin := uiTarget("florin", "True", "Ready", "", 42)
	florin.Status.Mailbox = &edgev2alpha1.MailboxStatus{Workspace: uiProvider + ":mb-florin", Cluster: mailbox}
	renewed, expires := metav1.NewTime(time.Now().Add(-time.Hour)), metav1.NewTime(time.Now().Add(7*time.Hour))
	for _, kind := range []string{edgev2alpha1.ConditionHeartbeatHealthy, edgev2alpha1.ConditionSyncerReady, edgev2alpha1.ConditionMailboxReady} {
		florin.Status.Conditions = append(florin.Status.Conditions, metav1.Condition{Type: kind, Status: metav1.ConditionTrue, Reason: "Ready", LastTransitionTime: renewed})
	}
	florin.Status.Credentials = &edgev2alpha1.CredentialsStatus{ExpiresAt: &expires, RenewedAt: &renewed}
	guilder := uiTarget("guilder", "True", "Ready", "", 40)
	guilder.Status.Counts.Failed = 1
	guilder.Status.Failures = []edgev2alpha1.ObjectFailure{{Group: "apps", Resource: "deployments", Namespace: "shop", Name: "web", Reason: "Conflict", Message: "the cluster has another object of this name"}}
	thaler := uiTarget("thaler", "False", "Suspended", "Its spec suspends it.", 12)
	thaler.Spec.Suspend = true
	ducat := uiTarget("ducat", "False", "TargetUnreachable", "dial tcp 10.0.0.7:6443: connect: connection refused", 42)
	return []*edgev2alpha1.SyncTarget{florin, guilder, thaler, ducat, uiTarget("krone", "True", "Ready", "", 42)}
}

// makePlacement creates the slice, the status and the revisions of the EdgePlacement.
func (w *uiWorld) makePlacement(t testing.TB, uids map[string]types.UID) {
	t.Helper()
	slice := &edgev2alpha1.SinglePlacementSlice{ObjectMeta: metav1.ObjectMeta{Name: "shop"}}
	for _, name := range []string{"ducat", "florin", "guilder", "krone"} {
		slice.Destinations = append(slice.Destinations, edgev2alpha1.SinglePlacement{Cluster: w.inventoryCluster, LocationName: "north", SyncTargetName: name, SyncTargetUID: uids[name]})
	}
	placement := &edgev2alpha1.EdgePlacement{}
	placement.Name = "shop"
	if err := w.workload.Get(t.Context(), client.ObjectKeyFromObject(placement), placement); err != nil {
		t.Fatal(err)
	}
	now := metav1.Now()
	pair := func(cluster, name, reason, message string) edgev2alpha1.PlacementPair {
		return edgev2alpha1.PlacementPair{SyncTarget: cluster, ObjectFailure: edgev2alpha1.ObjectFailure{Group: "apps", Resource: "deployments", Namespace: "shop", Name: name, Reason: reason, Message: message}}
	}
	reader, err := cli.NewReader(w.kcp.Workspace(uiWorkload))
	if err != nil {
		t.Fatal(err)
	}
	objects, fingerprint, err := rollout.PlacedObjects(t.Context(), reader, placement)
	if err != nil {
		t.Fatal(err)
	}
	selected := int64(len(objects))
	placement.Status = edgev2alpha1.EdgePlacementStatus{
		SpecGeneration:        int32(placement.Generation), //nolint:gosec // it is small
		MatchingLocationCount: 1, Destinations: 4, Selected: selected, ObservedObjects: fingerprint.String(), Placed: 4*selected - 1, Synced: 4*selected - 3, Healthy: 4*selected - 4, Failed: 1,
		Conditions: []metav1.Condition{
			{Type: edgev2alpha1.ConditionReady, Status: metav1.ConditionFalse, Reason: "ObjectsFailed", Message: "1 pair of an object and a cluster failed.", LastTransitionTime: now},
			{Type: edgev2alpha1.ConditionRolledOut, Status: metav1.ConditionFalse, Reason: "Progressing", Message: "1 of 4 destinations have all objects as they are in the workspace.", LastTransitionTime: now},
		},
		Failures:    []edgev2alpha1.PlacementPair{pair("guilder", "web", "Conflict", "the cluster has another object of this name")},
		Progressing: []edgev2alpha1.PlacementPair{pair("ducat", "web", "Syncing", ""), pair("ducat", "cart", "WaitingForRollout", ""), pair("krone", "cart", "InProgress", "Available: 1/2")},
		Rollout:     &edgev2alpha1.RolloutStatus{Succeeded: 1, Progressing: 1, Failed: 1, Waiting: 1, FailedClusters: []string{"guilder"}},
	}
	if err := w.workload.Status().Update(t.Context(), placement); err != nil {
		t.Fatal(err)
	}
	made := []client.Object{slice}
	for revision := range 2 {
		made = append(made, &edgev2alpha1.PlacementRevision{
			ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("shop-%d", revision+1), Labels: map[string]string{edgev2alpha1.LabelPlacement: string(placement.UID)}},
			Placement:  "shop", Revision: int64(revision + 1), Objects: []runtime.RawExtension{{Raw: []byte(`{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"web","namespace":"shop"}}`)}},
		})
	}
	for _, object := range made {
		if err := w.workload.Create(t.Context(), object); err != nil {
			t.Fatal(err)
		}
	}
}

func uiEvent(kind, name string, uid types.UID, level, reason, message string) corev1.Event {
	return corev1.Event{
		ObjectMeta:     metav1.ObjectMeta{Namespace: "default", GenerateName: name + "-"},
		InvolvedObject: corev1.ObjectReference{APIVersion: edgev2alpha1.SchemeGroupVersion.String(), Kind: kind, Name: name, UID: uid},
		Type:           level, Reason: reason, Message: message, LastTimestamp: metav1.Now(), Count: 1, ReportingController: "synchub",
	}
}
