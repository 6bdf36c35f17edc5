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
	"reflect"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	testclock "k8s.io/utils/clock/testing"
	mcreconcile "sigs.k8s.io/multicluster-runtime/pkg/reconcile"

	configv1alpha1 "github.com/synchub-dev/synchub/apis/config/v1alpha1"
	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/controllers/syncmanager"
	"github.com/synchub-dev/synchub/controllers/syncmanager/schemacheck"
	"github.com/synchub-dev/synchub/provider/kcp"
	"github.com/synchub-dev/synchub/provider/ledger"
	"github.com/synchub-dev/synchub/provider/targets"
	"github.com/synchub-dev/synchub/test/framework/connections"
)

func TestSecretReferenceOf(t *testing.T) {
	for name, test := range map[string]struct{ reference, want *edgev2alpha1.SecretReference }{
		"none":           {nil, nil},
		"only the name":  {&edgev2alpha1.SecretReference{Name: "n"}, &edgev2alpha1.SecretReference{Namespace: "default", Name: "n", Key: "kubeconfig"}},
		"the namespace":  {&edgev2alpha1.SecretReference{Namespace: "s", Name: "n"}, &edgev2alpha1.SecretReference{Namespace: "s", Name: "n", Key: "kubeconfig"}},
		"the key":        {&edgev2alpha1.SecretReference{Name: "n", Key: "k"}, &edgev2alpha1.SecretReference{Namespace: "default", Name: "n", Key: "k"}},
		"all three":      {&edgev2alpha1.SecretReference{Namespace: "s", Name: "n", Key: "k"}, &edgev2alpha1.SecretReference{Namespace: "s", Name: "n", Key: "k"}},
		"not even those": {&edgev2alpha1.SecretReference{}, &edgev2alpha1.SecretReference{Namespace: "default", Key: "kubeconfig"}},
	} {
		t.Run(name, func(t *testing.T) {
			syncTarget := &edgev2alpha1.SyncTarget{}
			syncTarget.Spec.KubeconfigSecretRef = test.reference
			before := syncTarget.DeepCopy()
			if got := secretReferenceOf(syncTarget); !reflect.DeepEqual(got, test.want) {
				t.Errorf("want %+v, got %+v", test.want, got)
			}
			if !reflect.DeepEqual(syncTarget, before) {
				t.Error("the SyncTarget was changed")
			}
		})
	}
}

func withLimits(limits *edgev2alpha1.TargetLimits) *edgev2alpha1.SyncTarget {
	syncTarget := &edgev2alpha1.SyncTarget{}
	syncTarget.Spec.Limits = limits
	return syncTarget
}

func TestLimitsOf(t *testing.T) {
	for name, test := range map[string]struct {
		limits *edgev2alpha1.TargetLimits
		want   kcp.Limits
	}{
		"none":        {nil, kcp.Limits{}},
		"empty":       {&edgev2alpha1.TargetLimits{}, kcp.Limits{}},
		"only qps":    {&edgev2alpha1.TargetLimits{QPS: new(int32(5))}, kcp.Limits{QPS: 5}},
		"only burst":  {&edgev2alpha1.TargetLimits{Burst: new(int32(7))}, kcp.Limits{Burst: 7}},
		"both":        {&edgev2alpha1.TargetLimits{QPS: new(int32(5)), Burst: new(int32(7))}, kcp.Limits{QPS: 5, Burst: 7}},
		"the highest": {&edgev2alpha1.TargetLimits{QPS: new(int32(100000)), Burst: new(int32(100000))}, kcp.Limits{QPS: 100000, Burst: 100000}},
	} {
		if got := limitsOf(withLimits(test.limits)); got != test.want {
			t.Errorf("%s: want %+v, got %+v", name, test.want, got)
		}
	}
}

// newSyncManager returns a sync manager that cannot sync anything.
func newSyncManager() *syncmanager.Manager {
	return syncmanager.New(syncmanager.Dependencies{}, &configv1alpha1.HubConfiguration{})
}

// startRegistry returns a registry that connects until the test ends.
func startRegistry(t *testing.T) *targets.Registry {
	t.Helper()
	return connections.NewRegistry(t, targets.Options{Limits: kcp.Limits{QPS: 100, Burst: 200}, Clock: testclock.NewFakeClock(time.Unix(1000, 0))})
}

// connect returns a connection to a server that does not exist.
func connect(t *testing.T, registry *targets.Registry, syncTarget types.UID, limits kcp.Limits) *targets.Connection {
	t.Helper()
	return connections.Connect(t, registry, syncTarget, connections.Unreachable(t), limits)
}

// A connection keeps its limits for life, so changed limits of the SyncTarget lead to another connection.
func TestLimitsMakeAnotherConnection(t *testing.T) {
	registry := startRegistry(t)
	previous := connect(t, registry, "florin", limitsOf(withLimits(nil)))
	for _, step := range []struct {
		name   string
		limits *edgev2alpha1.TargetLimits
		same   bool
	}{
		{"the same", nil, true},
		{"the hub's own, said by the SyncTarget", &edgev2alpha1.TargetLimits{QPS: new(int32(100)), Burst: new(int32(200))}, true},
		{"another qps", &edgev2alpha1.TargetLimits{QPS: new(int32(5))}, false},
		{"another qps again", &edgev2alpha1.TargetLimits{QPS: new(int32(5))}, true},
		{"another burst", &edgev2alpha1.TargetLimits{QPS: new(int32(5)), Burst: new(int32(7))}, false},
		{"only the burst", &edgev2alpha1.TargetLimits{Burst: new(int32(7))}, false},
		{"none", nil, false},
	} {
		connection := connect(t, registry, "florin", limitsOf(withLimits(step.limits)))
		if same := connection == previous; same != step.same {
			t.Errorf("%s: the same connection: %v, want %v", step.name, same, step.same)
		}
		previous = connection
	}
	if other := connect(t, registry, "guilder", limitsOf(withLimits(nil))); other == previous {
		t.Error("two SyncTargets share a connection")
	}
}

func TestTargetFor(t *testing.T) {
	syncTarget := &edgev2alpha1.SyncTarget{}
	syncTarget.Name, syncTarget.UID = "florin", "u"
	// Users may write the status, so the hub ignores it.
	syncTarget.Status.Mailbox = &edgev2alpha1.MailboxStatus{Workspace: "root:synchub:other", Cluster: "other"}
	syncTarget.Status.SyncedResources = []edgev2alpha1.SyncedResource{{Group: "*", Resource: "*", Own: true, State: edgev2alpha1.SyncedResourceAccepted}}
	known := ledger.Entry{Resources: []ledger.Resource{
		{GroupResource: metav1.GroupResource{Resource: "configmaps"}, Version: "v1", State: "Accepted", Reason: "R", Direct: true},
		{GroupResource: metav1.GroupResource{Group: "apps", Resource: "deployments"}, ConvertedFrom: []metav1.GroupResource{{Group: "a", Resource: "b"}}},
	}}
	connection := &targets.Connection{}
	want := syncmanager.Target{
		UID: "u", Name: "florin", Mailbox: "m", Connection: connection,
		WrittenResources: map[schema.GroupResource]syncmanager.WrittenResource{
			{Resource: "configmaps"}: {
				Version: "v1", Direct: true, Compatibility: schemacheck.State{SyncedResourceState: edgev2alpha1.SyncedResourceAccepted, Reason: "R"},
			},
			{Group: "apps", Resource: "deployments"}: {ConvertedFrom: []schema.GroupResource{{Group: "a", Resource: "b"}}},
		},
		TrustedUntil: noon,
	}
	found := observedState{connection: connection, mailbox: "m", trustedUntil: noon}
	if got := targetFor(syncTarget, found, known); !reflect.DeepEqual(got, want) {
		t.Errorf("want %+v\ngot  %+v", want, got)
	}
}

// A SyncTarget that is recreated under its name, or vanishes, is disconnected. The other SyncTargets stay connected.
func TestTrackAndUntrack(t *testing.T) {
	registry := startRegistry(t)
	controller := New(Options{Registry: registry, Sync: newSyncManager(), Ledger: ledger.New(ledger.Options{}), Clock: testclock.NewFakeClock(time.Unix(1000, 0))})
	queue := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[mcreconcile.Request]())
	t.Cleanup(queue.ShutDown)
	controller.store.queue = queue
	request := func(name string) mcreconcile.Request {
		request := mcreconcile.Request{ClusterName: "i"}
		request.Name = name
		return request
	}
	connected := func(want ...types.UID) {
		t.Helper()
		var got []types.UID
		for _, uid := range []types.UID{"f1", "f2", "g1"} {
			if _, ok := registry.Get(uid); ok {
				got = append(got, uid)
			}
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("want %v connected, got %v", want, got)
		}
	}
	// enqueued returns the SyncTarget that is enqueued when a connection's health changes.
	enqueued := func(uid types.UID) string {
		controller.store.enqueue(uid)
		if queue.Len() == 0 {
			return ""
		}
		next, _ := queue.Get()
		queue.Done(next)
		return next.Name
	}

	controller.track(request("florin"), "f1")
	controller.track(request("guilder"), "g1")
	connect(t, registry, "f1", kcp.Limits{})
	connect(t, registry, "g1", kcp.Limits{})
	controller.track(request("florin"), "f1")
	connected("f1", "g1")
	if got := enqueued("f1") + " " + enqueued("g1") + " " + enqueued("f2"); got != "florin guilder " {
		t.Errorf("enqueued %q", got)
	}

	controller.track(request("florin"), "f2")
	connected("g1")
	connect(t, registry, "f2", kcp.Limits{})
	if got := enqueued("f1") + " " + enqueued("f2"); got != " florin" {
		t.Errorf("enqueued %q", got)
	}

	controller.untrack(request("florin"))
	connected("g1")
	if got := enqueued("f2") + " " + enqueued("g1"); got != " guilder" {
		t.Errorf("enqueued %q", got)
	}
	controller.untrack(request("florin"))
	controller.untrack(request("never"))
	connected("g1")
}
