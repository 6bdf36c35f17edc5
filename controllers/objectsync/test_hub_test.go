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
	"errors"
	"maps"
	"slices"
	"strings"
	gosync "sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/clock"
	testclock "k8s.io/utils/clock/testing"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	synchubv1alpha1 "github.com/synchub-dev/synchub/apis/synchub/v1alpha1"
	"github.com/synchub-dev/synchub/controllers/plan"
	"github.com/synchub-dev/synchub/controllers/plan/fieldpath"
	"github.com/synchub-dev/synchub/controllers/plan/filter"
	"github.com/synchub-dev/synchub/controllers/plan/mutation"
	"github.com/synchub-dev/synchub/controllers/plan/naming"
	"github.com/synchub-dev/synchub/controllers/plan/ownership"
	"github.com/synchub-dev/synchub/controllers/plan/related"
	"github.com/synchub-dev/synchub/controllers/plan/selection"
	"github.com/synchub-dev/synchub/controllers/plan/transform"
	"github.com/synchub-dev/synchub/controllers/tenants"
	"github.com/synchub-dev/synchub/provider/mailboxes"
	"github.com/synchub-dev/synchub/provider/targets"
	"github.com/synchub-dev/synchub/provider/tracing"
	"github.com/synchub-dev/synchub/test/fixtures"
	"github.com/synchub-dev/synchub/test/framework/suite"
)

var (
	secretsV1     = schema.GroupVersionResource{Version: "v1", Resource: "secrets"}
	deploymentsV1 = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}
)

// testHub is a hub with a fake mailbox and a real target. It manages the controllers like package syncmanager.
type testHub struct {
	*fakeWorkspace
	targetNamespace
	t          testing.TB
	connection *targets.Connection

	// A test may change the following fields while the hub is stopped, or before [testHub.publish].
	resources []plan.Resource
	matcher   *selection.Matcher
	// syncTarget is the SyncTarget for mutations; nil for a SyncTarget with a name only.
	syncTarget atomic.Pointer[map[string]any]
	// tracer is nil unless traces are recorded.
	tracer *tracing.Tracer
	// onChange is called when the summary of a controller changed; nil calls nothing.
	onChange func()
	// tenants are the tenants of the target; nil for none.
	tenants atomic.Pointer[tenants.Controller]
	// requestsLate delays each request for completeness until the initial sync of all primaries is done.
	requestsLate bool

	registry    *related.Registry
	mailboxes   *mailboxes.Mailboxes
	lock        gosync.Mutex
	controllers map[schema.GroupVersionResource]*Controller
	published   []plan.Resource
	stops       map[schema.GroupVersionResource]func()
	stopHub     func()
}

// newHub starts a hub that publishes the resources, for a mailbox with one namespace. Each config is the spec of a SyncerConfig,
// in which NS stands for the namespace.
func newHub(t testing.TB, resources []plan.Resource, configs ...string) *testHub {
	t.Helper()
	return newHubOn(t, connect(t), resources, configs...)
}

// newHubOn does the same with a connection to the target.
func newHubOn(t testing.TB, connection *targets.Connection, resources []plan.Resource, configs ...string) *testHub {
	t.Helper()
	all := []schema.GroupVersionResource{namespaces}
	for _, resource := range resources {
		if resource.GroupVersionResource != namespaces {
			all = append(all, resource.GroupVersionResource)
		}
	}
	h := &testHub{
		fakeWorkspace: newFakeWorkspace(t, all...), t: t, connection: connection, resources: resources,
		targetNamespace: targetNamespace{
			t: t, namespace: unique("hub"), owner: ownership.Owner{Hub: testOwner.Hub, SyncTarget: types.UID(unique("target")), Sealer: testOwner.Sealer},
		},
	}
	h.put(namespaces, "{apiVersion: v1, kind: Namespace, metadata: {name: "+h.namespace+"}}")
	put(t, "{apiVersion: v1, kind: Namespace, metadata: {name: "+h.namespace+"}}")
	h.matcher = h.compileMatcher(configs...)
	h.start()
	t.Cleanup(func() { h.stop() })
	return h
}

// compileMatcher compiles the specs of SyncerConfigs.
func (h *testHub) compileMatcher(configs ...string) *selection.Matcher {
	h.t.Helper()
	var all []*edgev2alpha1.SyncerConfig
	for _, text := range configs {
		config := &edgev2alpha1.SyncerConfig{}
		config.Name = unique("config")
		config.Spec = fixtures.Decode[edgev2alpha1.SyncerConfigSpec](h.t, h.withNamespace(text))
		all = append(all, config)
	}
	return selection.Compile(all, nil)
}

// withNamespace replaces NS in a text by the namespace of the test.
func (h *testHub) withNamespace(text string) string {
	return strings.ReplaceAll(text, "NS", h.namespace)
}

// start starts a hub without any state.
func (h *testHub) start() {
	h.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	var running gosync.WaitGroup
	// Delays of verifications pass quickly.
	now := testclock.NewFakeClock(time.Unix(1_700_000_000, 0))
	running.Go(func() { passTime(ctx, now) })
	served := slices.DeleteFunc(slices.Collect(maps.Keys(h.objects)), func(resource schema.GroupVersionResource) bool {
		return resource == apiBindings || resource == logicalClusters || resource == endpointSlices || resource == eventsResource
	})
	h.mailboxes = mailboxes.New(mailboxes.Options{Access: h.access(), Workspace: "root:synchub", Export: "export", Resources: served, Clock: now, Log: logr.Discard()})
	running.Go(func() {
		if err := h.mailboxes.Start(ctx); err != nil {
			h.t.Error(err)
		}
	})
	h.registry, h.controllers, h.stops = related.NewRegistry(), map[schema.GroupVersionResource]*Controller{}, map[schema.GroupVersionResource]func(){}
	h.stopHub = func() {
		h.publish()
		cancel()
		running.Wait()
	}
	suite.WaitUntil(h.t, "the mailbox is cached", func() bool {
		for _, resource := range served {
			if _, known := h.mailboxes.List(resource, theMailbox); !known {
				return false
			}
		}
		return true
	})
	h.publish(h.resources...)
}

func passTime(ctx context.Context, now *testclock.FakeClock) {
	ticker := time.NewTicker(2 * time.Millisecond)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			if now.HasWaiters() {
				now.Step(time.Second)
			}
		}
	}
}

func (h *testHub) stop() {
	if h.stopHub != nil {
		h.stopHub()
		h.stopHub = nil
	}
}

// restart stops the hub and starts a new one.
func (h *testHub) restart() {
	h.t.Helper()
	h.stop()
	h.start()
}

// publish makes the hub sync exactly these resources, like package syncmanager.
func (h *testHub) publish(resources ...plan.Resource) {
	h.t.Helper()
	h.lock.Lock()
	before := h.published
	h.published = resources
	h.lock.Unlock()
	for _, resource := range before {
		if !slices.Contains(resources, resource) || !slices.Equal(h.controllers[resource.GroupVersionResource].Relations, relationsOf(resources, resource)) {
			h.stops[resource.GroupVersionResource]()
			h.lock.Lock()
			delete(h.controllers, resource.GroupVersionResource)
			h.lock.Unlock()
		}
	}
	for _, resource := range before {
		if len(resource.Related()) > 0 && !h.isPublished(resource.PublishedResource) {
			h.registry.RemovePublishedResource(resource.PublishedResource)
		}
	}
	var missing []plan.Resource
	for _, resource := range resources {
		if h.controllers[resource.GroupVersionResource] == nil {
			missing = append(missing, resource)
			if len(resource.Related()) > 0 {
				h.registry.BeginInitialSync(resource.PublishedResource, resource.Related())
			}
		}
	}
	for _, resource := range missing {
		h.run(resource)
	}
}

func relationsOf(published []plan.Resource, resource plan.Resource) (relations []*related.Relation) {
	for _, primary := range published {
		for _, related := range primary.Related() {
			if related.InMailbox.GroupResource() == resource.GroupResource() {
				relations = append(relations, related)
			}
		}
	}
	return relations
}

func (h *testHub) isPublished(publishedResource string) bool {
	h.lock.Lock()
	defer h.lock.Unlock()
	return slices.ContainsFunc(h.published, func(resource plan.Resource) bool {
		return !resource.Unpublishing && resource.PublishedResource == publishedResource
	})
}

// requestCompleteness asks the controllers of all primaries of a resource to finish their initial sync.
func (h *testHub) requestCompleteness(related plan.Resource, answered func() bool) {
	primaries := slices.DeleteFunc(h.running(), func(controller *Controller) bool {
		return len(relationsOf([]plan.Resource{controller.Resource}, related)) == 0
	})
	if h.requestsLate {
		h.waitForInitialSync(primaries)
	}
	RequestCompleteness(primaries, answered)
}

// waitForInitialSync returns when all cached primaries were processed.
func (h *testHub) waitForInitialSync(primaries []*Controller) {
	for _, primary := range primaries {
		primary.RequestInitialSync()
	}
	// A worker calls this function, which must not end the test.
	err := wait.PollUntilContextTimeout(h.t.Context(), time.Millisecond, suite.Timeout, true, func(context.Context) (bool, error) {
		return !slices.ContainsFunc(primaries, func(primary *Controller) bool { return !primary.primaries.tracker.hasProcessedAll() }), nil
	})
	if err != nil {
		h.t.Errorf("the primaries were not processed: %v", err)
	}
}

// enqueueRelated enqueues all objects that may be related to objects of a resource.
func (h *testHub) enqueueRelated(primary plan.Resource) {
	for _, controller := range h.running() {
		if len(relationsOf([]plan.Resource{primary}, controller.Resource)) > 0 {
			controller.EnqueueRelated()
		}
	}
}

func (h *testHub) running() []*Controller {
	h.lock.Lock()
	defer h.lock.Unlock()
	return slices.Collect(maps.Values(h.controllers))
}

// targetKinds are the kinds of the target's resources in the relations of these tests.
var targetKinds = map[string]string{"secrets": "Secret", "configmaps": "ConfigMap", "deployments": "Deployment", "persistentvolumes": "PersistentVolume", "serviceaccounts": "ServiceAccount",
	"jobs": "Job", "persistentvolumeclaims": "PersistentVolumeClaim"}

// run starts the controller of a resource.
func (h *testHub) run(resource plan.Resource) {
	h.t.Helper()
	relations := relationsOf(h.published, resource)
	forms := []plan.TargetAPI{resource.TargetAPI()}
	for _, related := range relations {
		form := plan.TargetAPI{GroupVersionResource: related.OnTarget, Kind: targetKinds[related.OnTarget.Resource]}
		if !slices.Contains(forms, form) {
			forms = append(forms, form)
		}
	}
	controller := New(Options{
		Resource: resource, TargetAPIs: forms, Mailbox: theMailbox, Mailboxes: h.mailboxes, Connection: h.connection, Owner: h.owner,
		Hasher: ownership.NewHasher([]byte("key")), SyncTarget: "florin", SyncTargetInput: h.mutationSyncTarget, Registry: h.registry, Relations: relations,
		RequestCompleteness: func(answered func() bool) { h.requestCompleteness(resource, answered) }, RequeueRelated: func() { h.enqueueRelated(resource) }, IsPublished: h.isPublished, Tenants: h.tenants.Load, OnChange: h.publishChange, Tracer: h.tracer, Clock: clock.RealClock{}, Log: logr.Discard(),
	}, h.matcher)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	h.lock.Lock()
	h.controllers[resource.GroupVersionResource] = controller
	h.lock.Unlock()
	h.stops[resource.GroupVersionResource] = func() {
		cancel()
		<-ended
	}
	go func() {
		defer close(ended)
		if err := controller.Run(ctx); err != nil {
			h.t.Error(err)
		}
	}()
}

func (h *testHub) publishChange() {
	if h.onChange != nil {
		h.onChange()
	}
}

func (h *testHub) mutationSyncTarget() map[string]any {
	if known := h.syncTarget.Load(); known != nil {
		return *known
	}
	return mutation.SyncTarget("florin", nil, nil)
}

// setLabels sets the labels of the SyncTarget.
func (h *testHub) setLabels(labels map[string]string) {
	h.syncTarget.Store(new(mutation.SyncTarget("florin", labels, nil)))
	h.lock.Lock()
	defer h.lock.Unlock()
	for _, controller := range h.controllers {
		controller.SyncTargetChanged()
	}
}

// configure replaces the configs of the mailbox.
func (h *testHub) configure(configs ...string) {
	h.t.Helper()
	h.matcher = h.compileMatcher(configs...)
	for _, controller := range h.controllers {
		controller.SetMatcher(h.matcher)
	}
}

// rulesOf compiles the rules in the spec of a PublishedResource, in YAML.
func rulesOf(t testing.TB, text string) *plan.Rules {
	t.Helper()
	spec := fixtures.Decode[synchubv1alpha1.PublishedResourceSpec](t, text)
	rules := &plan.Rules{}
	var errs [5]error
	rules.Filter, errs[0] = filter.Compile(spec.Filter)
	rules.Naming, errs[1] = naming.Compile(spec.Naming)
	if spec.Mutation != nil {
		rules.Down, errs[2] = mutation.Compile(spec.Mutation.Down)
		rules.Up, errs[3] = mutation.Compile(spec.Mutation.Up)
	}
	rules.Related, errs[4] = related.Compile(spec.Related)
	for _, field := range spec.IgnoreFields {
		parsed, err := fieldpath.Parse(string(field.Path))
		if err != nil {
			t.Fatal(err)
		}
		rules.IgnoredFields = append(rules.IgnoredFields, transform.IgnoredField{Path: parsed, OnCreate: field.OnCreate == nil || *field.OnCreate})
	}
	if err := errors.Join(errs[:]...); err != nil {
		t.Fatal(err)
	}
	return rules
}

// resourceNamed returns a resource of the core group, or of apps, as published by a PublishedResource of the same name.
func resourceNamed(t testing.TB, resource schema.GroupVersionResource, spec string) plan.Resource {
	t.Helper()
	return plan.Resource{
		PublishedResource: resource.Resource, GroupVersionResource: resource, Kind: targetKinds[resource.Resource], Namespaced: true,
		StatusReturn: true, StatusSubresource: true, Exported: true, Rules: rulesOf(t, spec),
	}
}
