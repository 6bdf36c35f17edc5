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

package synctarget

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	testclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	crfake "sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	mcreconcile "sigs.k8s.io/multicluster-runtime/pkg/reconcile"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/controllers/plan/cleanup"
	"github.com/synchub-dev/synchub/provider/ledger"
	"github.com/synchub-dev/synchub/provider/targets"
	"github.com/synchub-dev/synchub/test/framework/configmaps"
	"github.com/synchub-dev/synchub/test/framework/connections"
	"github.com/synchub-dev/synchub/test/framework/suite"
)

// fakeInventory is an inventory workspace with one SyncTarget and its Secret. Reads past the cache go to a small server with the same content.
type fakeInventory struct {
	cluster.Cluster
	stored client.WithWatch
	server *httptest.Server
	// terminating is true while the workspace itself is being deleted.
	terminating bool
}

func (i *fakeInventory) GetClient() client.Client    { return i.stored }
func (i *fakeInventory) GetHTTPClient() *http.Client { return i.server.Client() }
func (i *fakeInventory) GetConfig() *rest.Config     { return &rest.Config{Host: i.server.URL} }

func (i *fakeInventory) ServeHTTP(writer http.ResponseWriter, request *http.Request) {
	found := &edgev2alpha1.SyncTarget{}
	writer.Header().Set("Content-Type", "application/json")
	switch {
	case strings.HasSuffix(request.URL.Path, "/logicalclusters/cluster") && i.terminating:
		_, _ = fmt.Fprint(writer, `{"apiVersion": "core.kcp.io/v1alpha1", "kind": "LogicalCluster", "metadata": {"name": "cluster", "deletionTimestamp": "2026-11-01T12:00:00Z"}}`)
		return
	case strings.HasSuffix(request.URL.Path, "/logicalclusters/cluster"):
		_, _ = fmt.Fprint(writer, `{"apiVersion": "core.kcp.io/v1alpha1", "kind": "LogicalCluster", "metadata": {"name": "cluster"}}`)
		return
	case strings.HasSuffix(request.URL.Path, "/apibindings"):
		_, _ = fmt.Fprint(writer, `{"apiVersion": "apis.kcp.io/v1alpha2", "kind": "APIBindingList", "items": [{"apiVersion": "apis.kcp.io/v1alpha2", "kind": "APIBinding", "metadata": {"name": "a"}}]}`)
		return
	}
	if !strings.HasSuffix(request.URL.Path, "/synctargets/florin") || i.stored.Get(request.Context(), types.NamespacedName{Name: "florin"}, found) != nil {
		writer.WriteHeader(http.StatusNotFound)
		return
	}
	found.SetGroupVersionKind(edgev2alpha1.SchemeGroupVersion.WithKind("SyncTarget"))
	_ = json.NewEncoder(writer).Encode(found)
}

// removalFixture is a SyncTarget that is being deleted. Its target has objects of the hub, and may respond or not. The drain of
// the target is in progress and never ends.
type removalFixture struct {
	*Controller
	inventory  *fakeInventory
	syncTarget *edgev2alpha1.SyncTarget
	clock      *testclock.FakeClock
	hangs      *atomic.Bool
	connection *targets.Connection
}

func newRemovalFixture(t *testing.T, forced bool) *removalFixture {
	t.Helper()
	hangs := &atomic.Bool{}
	server := suite.ServeTLS(t, http.HandlerFunc(func(writer http.ResponseWriter, request *http.Request) {
		writer.Header().Set("Content-Type", "application/json")
		switch {
		case hangs.Load():
			writer.WriteHeader(http.StatusServiceUnavailable)
		case request.URL.Path == "/version":
			_, _ = fmt.Fprint(writer, `{"gitVersion": "v1.35.4"}`)
		case strings.HasSuffix(request.URL.Path, "/namespaces/kube-system"):
			_, _ = fmt.Fprint(writer, `{"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": {"name": "kube-system", "uid": "cluster"}}`)
		default:
			writer.WriteHeader(http.StatusNotFound)
		}
	}))
	kubeconfig := suite.Kubeconfig(t, server.URL, suite.CertificateOf(server), "token")
	syncTarget := &edgev2alpha1.SyncTarget{ObjectMeta: metav1.ObjectMeta{Name: "florin", UID: "florin-uid", Finalizers: []string{"test"}, DeletionTimestamp: new(metav1.Unix(1000, 0))}}
	syncTarget.Spec.KubeconfigSecretRef = &edgev2alpha1.SecretReference{Name: "florin"}
	if forced {
		syncTarget.Annotations = map[string]string{edgev2alpha1.AnnotationForceRemoval: "true"}
	}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{
		Namespace: "default", Name: "florin", UID: "secret", Annotations: map[string]string{edgev2alpha1.AnnotationAllowedSyncTargets: "florin"},
	}, Data: map[string][]byte{"kubeconfig": kubeconfig}}

	scheme := runtime.NewScheme()
	utilruntime.Must(corev1.AddToScheme(scheme))
	utilruntime.Must(edgev2alpha1.AddToScheme(scheme))
	inventory := &fakeInventory{stored: crfake.NewClientBuilder().WithScheme(scheme).WithObjects(syncTarget, secret).WithStatusSubresource(syncTarget).Build()}
	inventory.server = httptest.NewServer(inventory)
	t.Cleanup(inventory.server.Close)

	now := testclock.NewFakeClock(time.Unix(2000, 0))
	entries := ledger.New(ledger.Options{ConfigMaps: configmaps.New(), Clock: now, Log: logr.Discard()})
	f := &removalFixture{
		Controller: New(Options{
			Registry: connections.NewRegistry(t, targets.Options{Clock: clock.RealClock{}}), Sync: newSyncManager(), Ledger: entries, Clock: now, Log: logr.Discard(),
		}),
		inventory: inventory, syncTarget: &edgev2alpha1.SyncTarget{}, clock: now, hangs: hangs,
	}
	f.readSecret = func(context.Context, cluster.Cluster, types.NamespacedName) (*corev1.Secret, error) {
		return secret, nil
	}
	NewWithT(t).Expect(inventory.stored.Get(t.Context(), client.ObjectKeyFromObject(syncTarget), f.syncTarget)).To(Succeed())
	f.track(mcreconcile.Request{}, syncTarget.UID)
	f.connection = connections.Connect(t, f.Registry, syncTarget.UID, kubeconfig, limitsOf(syncTarget))
	suite.WaitUntil(t, "the target is up", f.connection.Health.IsUp)
	done := make(chan struct{})
	close(done)
	f.store.setDrain(syncTarget.UID, &drainRun{
		mode: cleanup.ModeOrphan, connection: f.connection, startedAt: now.Now(), cancel: func() {}, done: done,
		status: &edgev2alpha1.CleanupStatus{Remaining: new(int32(3)), Removed: 4},
	})
	return f
}

// cleanUp reconciles the SyncTarget, and returns when it is reconciled again, and the reason of Ready.
func (f *removalFixture) cleanUp(t *testing.T) (again time.Duration, reason, message string) {
	t.Helper()
	result, err := f.cleanUpTarget(t.Context(), mcreconcile.Request{}, f.inventory, f.syncTarget)
	if err != nil {
		t.Fatal(err)
	}
	if ready := meta.FindStatusCondition(f.syncTarget.Status.Conditions, edgev2alpha1.ConditionReady); ready != nil {
		reason, message = ready.Reason, ready.Message
	}
	return result.RequeueAfter, reason, message
}

// A forced removal gives a target that responds some time to be cleaned up. After that, or if the target does not respond, the
// hub removes the SyncTarget and reports the remaining objects.
func TestForcedRemovalWaitsForATargetThatAnswers(t *testing.T) {
	g := NewWithT(t)
	f := newRemovalFixture(t, true)
	again, reason, _ := f.cleanUp(t)
	g.Expect(again).To(Equal(forceGracePeriod))
	g.Expect(reason).To(BeEmpty())
	g.Expect(f.IsCleanedUp(f.syncTarget.UID)).To(BeFalse())
	f.clock.Step(forceGracePeriod - time.Second)
	again, _, _ = f.cleanUp(t)
	g.Expect(again).To(Equal(time.Second))
	g.Expect(f.IsCleanedUp(f.syncTarget.UID)).To(BeFalse())

	f.clock.Step(time.Second)
	_, reason, message := f.cleanUp(t)
	g.Expect(reason).To(Equal(ReasonRemovalForced))
	g.Expect(message).To(ContainSubstring("3 objects are still to go, 4 gone."))
	g.Expect(f.IsCleanedUp(f.syncTarget.UID)).To(BeTrue())
	g.Expect(f.store.get(f.syncTarget.UID).drain).To(BeNil())
	f.hasEvent(t, ReasonRemovalForced)
}

func TestForcedRemovalDoesNotWaitForATargetThatHangs(t *testing.T) {
	g := NewWithT(t)
	f := newRemovalFixture(t, true)
	f.hangs.Store(true)
	_, reason, message := f.cleanUp(t)
	g.Expect(reason).To(Equal(ReasonRemovalForced))
	g.Expect(message).To(ContainSubstring("3 objects are still to go"))
	g.Expect(f.IsCleanedUp(f.syncTarget.UID)).To(BeTrue())
}

// Without force, only the end of the cleanup ends it.
func TestRemovalWaitsForTheCleanup(t *testing.T) {
	g := NewWithT(t)
	f := newRemovalFixture(t, false)
	for range 2 {
		_, reason, message := f.cleanUp(t)
		g.Expect(reason).To(Equal(ReasonCleaningUp))
		g.Expect(message).To(ContainSubstring("3 objects are still to go, 4 gone."))
		g.Expect(f.IsCleanedUp(f.syncTarget.UID)).To(BeFalse())
		f.clock.Step(time.Hour)
	}
	f.store.get(f.syncTarget.UID).drain.setFinished()
	_, reason, _ := f.cleanUp(t)
	g.Expect(reason).To(Equal(ReasonCleanedUp))
	g.Expect(f.IsCleanedUp(f.syncTarget.UID)).To(BeTrue())
}

// hasEvent fails unless there is an event for the SyncTarget.
func (f *removalFixture) hasEvent(t *testing.T, reason string) {
	t.Helper()
	var events corev1.EventList
	if err := f.inventory.stored.List(t.Context(), &events); err != nil {
		t.Fatal(err)
	}
	for _, event := range events.Items {
		if event.Reason == reason && event.InvolvedObject.Name == f.syncTarget.Name {
			return
		}
	}
	t.Errorf("there is no event %s among %d", reason, len(events.Items))
}

// A target that cannot be reached is waited for while objects may be left there, unless the removal is forced.
func TestRemovalOfATargetThatCannotBeReached(t *testing.T) {
	for name, test := range map[string]struct {
		forced, hasObjects bool
		reason             string
		cleanedUp          bool
	}{
		"nothing was placed":             {reason: ReasonCleanedUp, cleanedUp: true},
		"objects may be left":            {hasObjects: true, reason: ReasonCleanupBlocked},
		"objects may be left, by force":  {hasObjects: true, forced: true, reason: ReasonRemovalForced, cleanedUp: true},
		"nothing was placed, with force": {forced: true, reason: ReasonCleanedUp, cleanedUp: true},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			f := newRemovalFixture(t, test.forced)
			if test.hasObjects {
				g.Expect(f.Ledger.Update(t.Context(), f.syncTarget.UID, func(entry *ledger.Entry) {
					entry.Resources = []ledger.Resource{{GroupResource: metav1.GroupResource{Resource: "configmaps"}, Version: "v1"}}
				})).To(Succeed())
			}
			_, err := f.waitForTarget(t.Context(), f.inventory, f.syncTarget, nil, &blocker{ReasonCredentialsMissing, "The Secret is gone."})
			g.Expect(err).NotTo(HaveOccurred())
			ready := meta.FindStatusCondition(f.syncTarget.Status.Conditions, edgev2alpha1.ConditionReady)
			g.Expect(ready.Reason).To(Equal(test.reason))
			g.Expect(f.IsCleanedUp(f.syncTarget.UID)).To(Equal(test.cleanedUp))
			if test.reason == ReasonCleanupBlocked {
				g.Expect(ready.Message).To(ContainSubstring("The Secret is gone."))
				g.Expect(ready.Message).To(ContainSubstring(edgev2alpha1.AnnotationForceRemoval + "=true"))
			}
		})
	}
}

// A SyncTarget that was created again under the same name is no evidence about the one that is being deleted.
func TestRemovalOfAReplacedSyncTarget(t *testing.T) {
	f := newRemovalFixture(t, true)
	f.syncTarget.UID = "another"
	if _, err := f.waitForTarget(t.Context(), f.inventory, f.syncTarget, nil, nil); err == nil || f.IsCleanedUp("another") {
		t.Errorf("got %v", err)
	}
}
