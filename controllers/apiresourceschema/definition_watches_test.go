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

package apiresourceschema

import (
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	synchubv1alpha1 "github.com/synchub-dev/synchub/apis/synchub/v1alpha1"
	"github.com/synchub-dev/synchub/provider/kcp"
	"github.com/synchub-dev/synchub/provider/targets"
	"github.com/synchub-dev/synchub/test/framework/connections"
	"github.com/synchub-dev/synchub/test/framework/suite"
)

var now = time.Unix(1000, 0)

// connect returns a connection to an address that nothing listens on.
func connect(t *testing.T, registry *targets.Registry, syncTarget types.UID) *targets.Connection {
	t.Helper()
	return connections.Connect(t, registry, syncTarget, suite.Kubeconfig(t, "https://127.0.0.1:1", nil, string(syncTarget)), kcp.Limits{})
}

// queuedNames removes and returns the names in the queue, sorted.
func queuedNames(queue workqueue.TypedRateLimitingInterface[reconcile.Request]) (names []string) {
	for queue.Len() > 0 {
		request, _ := queue.Get()
		queue.Done(request)
		names = append(names, request.Name)
	}
	slices.Sort(names)
	return names
}

func TestDefinitionWatchSubscribers(t *testing.T) {
	c, registry := newTestController(t), connections.NewRegistry(t, targets.Options{})
	queue := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
	defer queue.ShutDown()
	named := func(name string) *synchubv1alpha1.PublishedResource {
		resource := &synchubv1alpha1.PublishedResource{}
		resource.Name, resource.Spec.Resource.Group = name, "a.io"
		return resource
	}
	c.targetChanged(queue, "one") // before any worker runs
	if err := c.watches.setQueue(t.Context(), queue); err != nil {
		t.Fatal(err)
	}
	one, two := connect(t, registry, "one"), connect(t, registry, "two")
	c.watches.watch(named("of one"), one)
	c.watches.watch(named("of two"), two)
	c.watches.watch(named("of none"), nil)
	check := func(syncTarget types.UID, want ...string) {
		t.Helper()
		c.targetChanged(queue, syncTarget)
		if got := queuedNames(queue); !slices.Equal(got, want) {
			t.Errorf("want %q, got %q", want, got)
		}
	}
	check("one", "of none", "of one")
	check("two", "of none", "of two")
	check("three", "of none")
	c.watches.watch(named("of one"), two)
	check("one", "of none")
	c.watches.watch(named("of none"), one)
	check("one", "of none")
	check("two", "of one", "of two")
	c.watches.forget("of two")
	c.watches.forget("unknown")
	check("two", "of one")
}

// After the event of a CRD its API is expected for a limited time.
func TestAnnouncedDefinitions(t *testing.T) {
	c := newTestController(t)
	clock := c.Clock.(*clocktesting.FakeClock)
	resource := &synchubv1alpha1.PublishedResource{}
	resource.Name = "a"
	if c.watches.isAnnounced("a", clock.Now()) {
		t.Error("an unknown PublishedResource has a result")
	}
	c.watches.watch(resource, nil)
	if c.watches.isAnnounced("a", clock.Now()) {
		t.Error("no PublishedResource was enqueued")
	}
	c.watches.markAnnounced("a", c.watches.byName["a"])
	clock.Step(announcedTimeout - time.Millisecond)
	if !c.watches.isAnnounced("a", clock.Now()) {
		t.Error("it gave up early")
	}
	clock.Step(time.Millisecond)
	if c.watches.isAnnounced("a", clock.Now()) {
		t.Error("it retries for ever")
	}
	c.watches.markAnnounced("a", c.watches.byName["a"])
	c.watches.watch(&synchubv1alpha1.PublishedResource{ObjectMeta: resource.ObjectMeta, Spec: synchubv1alpha1.PublishedResourceSpec{Resource: synchubv1alpha1.ResourceDescriptor{Kind: "B"}}}, nil)
	if c.watches.isAnnounced("a", clock.Now()) {
		t.Error("the PublishedResource of another resource was enqueued")
	}
}
