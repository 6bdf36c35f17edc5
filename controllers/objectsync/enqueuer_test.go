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
	"maps"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	testclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/controllers/plan"
	"github.com/synchub-dev/synchub/controllers/plan/ownership"
	"github.com/synchub-dev/synchub/controllers/plan/related"
	"github.com/synchub-dev/synchub/controllers/plan/selection"
	"github.com/synchub-dev/synchub/provider/kcp"
	"github.com/synchub-dev/synchub/provider/mailboxes"
	"github.com/synchub-dev/synchub/provider/targets"
	"github.com/synchub-dev/synchub/test/fixtures"
	"github.com/synchub-dev/synchub/test/framework/connections"
)

var (
	mailboxWidgets = schema.GroupVersionResource{Group: "new", Version: "v1", Resource: "widgets"}
	targetWidgets  = schema.GroupVersionResource{Group: "old", Version: "v2", Resource: "widgets"}
)

// upsyncMatcher compiles a config that upsyncs widgets of the target, each under the given name in the mailbox.
func upsyncMatcher(names map[string]string) *selection.Matcher {
	config := &edgev2alpha1.EdgeSyncConfig{ObjectMeta: metav1.ObjectMeta{Name: "c"}}
	for _, below := range slices.Sorted(maps.Keys(names)) {
		downstream := edgev2alpha1.EdgeSyncConfigResource{Group: "old", Kind: "Widget", Namespace: "shop", Name: below}
		config.Spec.UpSyncedResources = append(config.Spec.UpSyncedResources, downstream)
		upstream := edgev2alpha1.EdgeSyncConfigResource{Group: "new", Kind: "Widget", Namespace: "shop", Name: names[below]}
		config.Spec.Conversions = append(config.Spec.Conversions, edgev2alpha1.Conversion{Upstream: upstream, Downstream: downstream})
	}
	return selection.Compile(nil, []*edgev2alpha1.EdgeSyncConfig{config})
}

// enqueueHarness is a controller whose target is away. It records the enqueued keys, and runs no pass.
type enqueueHarness struct {
	*Controller
	t     *testing.T
	queue priorityqueue.PriorityQueue[types.NamespacedName]
	// reported counts the calls of OnChange.
	reported int
}

func newEnqueueHarness(t *testing.T, matcher *selection.Matcher) *enqueueHarness {
	clock := testclock.NewFakeClock(time.Unix(1000, 0))
	h := &enqueueHarness{t: t, queue: priorityqueue.New[types.NamespacedName]("")}
	controller := New(Options{
		Resource: plan.Resource{GroupVersionResource: mailboxWidgets, Kind: "Widget", Namespaced: true},
		TargetAPIs: []plan.TargetAPI{
			{GroupVersionResource: mailboxWidgets, Kind: "Widget"}, {GroupVersionResource: targetWidgets, Kind: "Widget"},
		},
		Mailbox: "mailbox", Mailboxes: mailboxes.New(mailboxes.Options{Workspace: "root:synchub", Export: "mailbox", Clock: clock, Log: logr.Discard()}),
		Connection: connections.Connect(t, connections.NewRegistry(t, targets.Options{}), testOwner.SyncTarget, connections.Unreachable(t), kcp.Limits{}), Owner: testOwner, Hasher: ownership.NewHasher([]byte("key")), OnChange: func() { h.reported++ }, Clock: clock, Log: logr.Discard(),
		Registry: related.NewRegistry(), IsPublished: func(string) bool { return true },
	}, matcher)
	controller.enqueuer.start(h.queue)
	ctx, cancel := context.WithCancel(t.Context())
	controller.tasks.begin(ctx)
	controller.upsync.update(matcher)
	t.Cleanup(func() {
		controller.tasks.end()
		cancel()
		controller.tasks.running.Wait()
		h.queue.ShutDown()
	})
	h.Controller = controller
	return h
}

// expectEnqueued fails the test unless exactly these names in the namespace shop are enqueued.
func (r *enqueueHarness) expectEnqueued(want ...string) {
	r.t.Helper()
	var got []string
	for r.queue.Len() > 0 {
		key, _ := r.queue.Get()
		r.queue.Done(key)
		if key.Namespace != "shop" {
			r.t.Errorf("%s is enqueued", key)
		}
		got = append(got, key.Name)
	}
	slices.Sort(got)
	if !slices.Equal(got, want) {
		r.t.Errorf("want %v enqueued, got %v", want, got)
	}
}

// widgetsOnTarget returns the API of the target's widgets.
func (r *enqueueHarness) widgetsOnTarget() *targetResource {
	return r.target.resourceFor(targetWidgets.GroupResource())
}

// widget returns an object of the target.
func widget(t *testing.T, name string, annotations map[string]string) *unstructured.Unstructured {
	object := fixtures.Object(t, "{apiVersion: old/v2, kind: Widget, metadata: {namespace: shop, name: "+name+", uid: uid-of-"+name+"}}")
	object.SetAnnotations(annotations)
	return object
}

func shop(name string) types.NamespacedName {
	return types.NamespacedName{Namespace: "shop", Name: name}
}

func TestUpsyncKey(t *testing.T) {
	matcher := upsyncMatcher(map[string]string{"till": "till", "safe": "vault"})
	r := newEnqueueHarness(t, matcher)
	own := someMark
	own.Self = ownership.Self{Group: "old", Kind: "Widget", Namespace: "shop", Name: "till"}
	copied := own
	copied.Self.Name = "original"
	for name, test := range map[string]struct {
		object *unstructured.Unstructured
		want   string
	}{
		"under its own name":  {widget(t, "till", nil), "till"},
		"under another name":  {widget(t, "safe", nil), "vault"},
		"not selected":        {widget(t, "vault", nil), ""},
		"a copy of the hub's": {widget(t, "till", map[string]string{ownership.MarkAnnotation: own.String()}), ""},
		// A controller has copied the annotations of a copy to its children.
		"derived from such a copy": {widget(t, "till", map[string]string{ownership.MarkAnnotation: copied.String()}), "till"},
	} {
		key, ok := r.upsync.keyFor(r.widgetsOnTarget().TargetAPI, matcher, test.object)
		if ok != (test.want != "") || ok && key != shop(test.want) {
			t.Errorf("%s: want %q, got %s, %v", name, test.want, key, ok)
		}
	}
	// The matcher selects no object of the mailbox's resource.
	if key, ok := r.upsync.keyFor(r.target.apis[0].TargetAPI, matcher, widget(t, "till", nil)); ok {
		t.Errorf("an object of another resource is upsynced as %s", key)
	}
}

func TestUpsyncHandlerEnqueues(t *testing.T) {
	matcher := upsyncMatcher(map[string]string{"till": "till", "safe": "vault"})
	r := newEnqueueHarness(t, matcher)
	ctx, cancel := context.WithCancel(t.Context())
	handler := r.upsync.handler(ctx, r.widgetsOnTarget().TargetAPI)
	till, safe, other := widget(t, "till", nil), widget(t, "safe", nil), widget(t, "other", nil)
	at := func(name string) plan.Ref { return r.widgetsOnTarget().Ref(shop(name)) }

	handler.OnAdd(till, true)
	handler.OnAdd(safe, false)
	handler.OnAdd(other, false)
	r.expectEnqueued("till", "vault")
	if got := r.upsync.upsynced.refsOf(shop("vault")); !slices.Equal(got, []plan.Ref{at("safe")}) {
		t.Errorf("the sources of vault are %v", got)
	}
	handler.OnUpdate(safe, safe)
	r.expectEnqueued("vault")

	handler.OnDelete(safe)
	r.expectEnqueued("vault")
	if len(r.upsync.upsynced.refsOf(shop("vault"))) > 0 || !r.upsync.upsynced.isSourceDeleted(at("safe"), safe.GetUID()) {
		t.Error("an observed deletion is not recorded")
	}
	// If the delete event was missed, the hub only knows that the object is not listed.
	handler.OnDelete(cache.DeletedFinalStateUnknown{Key: "shop/till", Obj: till})
	r.expectEnqueued("till")
	if len(r.upsync.upsynced.refsOf(shop("till"))) > 0 || r.upsync.upsynced.isSourceDeleted(at("till"), till.GetUID()) {
		t.Error("a deletion is recorded although no delete event was observed")
	}
	handler.OnDelete(other)
	r.expectEnqueued()

	cancel()
	handler.OnAdd(till, false)
	handler.OnDelete(safe)
	r.expectEnqueued()
	if len(r.upsync.upsynced.allKeys()) > 0 {
		t.Error("the events of a replaced cache are still handled")
	}
}

// When the matcher changes, all upsynced objects are enqueued: those that are no longer selected must be removed.
func TestSetMatcherEnqueuesUpsyncedObjects(t *testing.T) {
	first := upsyncMatcher(map[string]string{"till": "till", "safe": "vault"})
	for name, test := range map[string]struct {
		next *selection.Matcher
		// kept is true if the cache also serves the next matcher.
		kept bool
	}{
		"nothing changes":            {upsyncMatcher(map[string]string{"till": "till", "safe": "vault"}), true},
		"one is deselected":          {upsyncMatcher(map[string]string{"till": "till"}), false},
		"one gets another name":      {upsyncMatcher(map[string]string{"till": "till", "safe": "strongroom"}), false},
		"all are deselected":         {upsyncMatcher(nil), false},
		"the last config is deleted": {selection.Compile(nil, nil), false},
	} {
		t.Run(name, func(t *testing.T) {
			r := newEnqueueHarness(t, first)
			before := r.upsync.cacheOf(targetWidgets.GroupResource())
			r.upsync.upsynced.add(shop("till"), r.widgetsOnTarget().Ref(shop("till")))
			r.upsync.upsynced.add(shop("vault"), r.widgetsOnTarget().Ref(shop("safe")))
			r.SetMatcher(test.next)
			r.expectEnqueued("till", "vault")
			after := r.upsync.cacheOf(targetWidgets.GroupResource())
			if before == nil || (after == before) != test.kept || (after == nil) != !test.next.SelectsUp(targetWidgets.GroupResource(), "Widget") {
				t.Errorf("the cache was %v and is %v", before, after)
			}
			if known := len(r.upsync.upsynced.allKeys()) > 0; known != test.kept {
				t.Errorf("the objects of the former cache are indexed: %v, want %v", known, test.kept)
			}
		})
	}
}

// Objects that a suspension held back are enqueued when it ends, even if they are gone from the mailbox.
func TestSuspensionChanged(t *testing.T) {
	r := newEnqueueHarness(t, upsyncMatcher(nil))
	config := func(suspend bool, names ...string) *selection.Matcher {
		return selection.Compile([]*edgev2alpha1.SyncerConfig{{ObjectMeta: metav1.ObjectMeta{Name: "c"}, Spec: edgev2alpha1.SyncerConfigSpec{
			Suspend: suspend,
			NamespacedObjects: []edgev2alpha1.NamespaceScopeDownsyncObjects{{
				GroupResource:      edgev2alpha1.GroupResource{Group: "new", Resource: "widgets"},
				ObjectsByNamespace: []edgev2alpha1.NamespaceAndNames{{Namespace: "shop", Names: names}},
			}},
		}}}, nil)
	}
	for name, test := range map[string]struct {
		old, next *selection.Matcher
		want      []types.NamespacedName
	}{
		"a suspension ends":    {config(true, "till"), config(false, "till"), []types.NamespacedName{shop("till")}},
		"a suspension begins":  {config(false, "till"), config(true, "till"), []types.NamespacedName{shop("till")}},
		"one name is removed":  {config(true, "till", "safe"), config(true, "safe"), []types.NamespacedName{shop("till")}},
		"it stays suspended":   {config(true, "till"), config(true, "till", "safe", "vault"), []types.NamespacedName{shop("safe")}},
		"nothing is suspended": {config(false, "till"), config(false, "safe"), nil},
		"there is no config":   {nil, nil, nil},
	} {
		if got := r.enqueuer.suspensionChanged(test.old, test.next, []types.NamespacedName{shop("till"), shop("safe")}); !slices.Equal(got, test.want) {
			t.Errorf("%s: want %v, got %v", name, test.want, got)
		}
	}
}

func TestEventsRequeueFailedObjects(t *testing.T) {
	r := newEnqueueHarness(t, upsyncMatcher(nil))
	fail := func(name, reason string) {
		r.enqueuer.states.setFailure(shop(name), Failure{Reason: reason, Message: "m"})
	}
	fail("ending", plan.ReasonNamespaceTerminating)
	fail("unserved", plan.ReasonNotServed)
	fail("wrong", plan.ReasonInvalid)
	listener := r.enqueuer.targetListener(func(...string) {})
	listener.OnNamespace("shop", false)
	listener.OnNamespace("bank", true)
	listener.OnCRD(schema.GroupResource{Group: "other", Resource: "widgets"})
	r.expectEnqueued()
	listener.OnNamespace("shop", true)
	r.expectEnqueued("ending")
	listener.OnCRD(targetWidgets.GroupResource())
	r.expectEnqueued("unserved")

	till, safe := r.widgetsOnTarget().Ref(shop("till")), r.widgetsOnTarget().Ref(shop("safe"))
	r.nameWatches.update(shop("a"), &nameTakenError{ref: till})
	r.nameWatches.update(shop("b"), &nameTakenError{ref: till})
	r.nameWatches.update(shop("c"), &nameTakenError{ref: safe})
	r.nameWatches.update(shop("d"), nil)
	// The copy of another object is deleted that had the name.
	r.enqueuer.onCopyDelete(till, &cachedCopy{Unstructured: widget(t, "till", nil)})
	r.expectEnqueued("a", "b", "till")
	r.nameWatches.update(shop("a"), nil)
	r.nameWatches.update(shop("b"), &nameTakenError{ref: safe})
	r.enqueuer.enqueue(changePriority, r.enqueuer.waiters.keysOf(till)...)
	r.expectEnqueued()
	r.enqueuer.enqueue(changePriority, r.enqueuer.waiters.keysOf(safe)...)
	r.expectEnqueued("b", "c")
}

// A deletion in the mailbox ends the expectations for the object, so an object created after it counts.
func TestEventsOfTheMailbox(t *testing.T) {
	r := newEnqueueHarness(t, upsyncMatcher(nil))
	till := widget(t, "till", nil)
	// OnReset follows, and enqueues the listed objects.
	r.OnEvent(mailboxes.Event{Key: shop("listed"), New: till, Initial: true})
	r.OnEvent(mailboxes.Event{Key: shop("new"), New: till})
	r.OnEvent(mailboxes.Event{Key: shop("changed"), Old: till, New: till})
	r.OnAbsenceDecided(shop("proven"))
	r.expectEnqueued("changed", "new", "proven")

	r.mailbox.writes.Started(shop("till"))
	r.mailbox.writes.Finished(shop("till"), till)
	r.OnEvent(mailboxes.Event{Key: shop("till"), Old: till})
	r.expectEnqueued("till")
	if object, _ := r.mailbox.writes.Current(shop("till"), nil); object != nil {
		t.Errorf("the expectation for %s still exists", object.GetName())
	}
}

// The cache drops an object with its propagation policy, so the controller records the policy until the copies are gone.
func TestEventsShowHowAnObjectIsDeleted(t *testing.T) {
	r := newEnqueueHarness(t, upsyncMatcher(nil))
	till := widget(t, "till", nil)
	till.SetUID("till")
	going := till.DeepCopy()
	going.SetDeletionTimestamp(&metav1.Time{Time: time.Unix(0, 0)})
	going.SetFinalizers([]string{metav1.FinalizerOrphanDependents})
	orphaned := &plan.Deletion{UID: "till", Propagation: metav1.DeletePropagationOrphan}
	for _, step := range []struct {
		name  string
		event mailboxes.Event
		want  *plan.Deletion
	}{
		{"created", mailboxes.Event{New: till}, nil},
		{"terminating", mailboxes.Event{Old: till, New: going}, orphaned},
		{"deleted", mailboxes.Event{Old: going}, orphaned},
		{"created again", mailboxes.Event{New: till}, nil},
		{"deleted with the default policy", mailboxes.Event{Old: till}, nil},
	} {
		step.event.Key = shop("till")
		r.OnEvent(step.event)
		if got := r.enqueuer.states.deletionOf(shop("till")); !reflect.DeepEqual(got, step.want) {
			t.Errorf("%s: %+v, want %+v", step.name, got, step.want)
		}
	}
	if left := r.enqueuer.states.rememberedKeys(); len(left) > 0 {
		t.Errorf("%v stay", left)
	}
}

// A pass without a readable mailbox cannot sync an object.
func TestNoPassesWhileTheMailboxCannotBeRead(t *testing.T) {
	r := newEnqueueHarness(t, upsyncMatcher(map[string]string{"a": "a"}))
	r.upsync.upsynced.add(shop("a"), r.widgetsOnTarget().Ref(shop("a")))
	r.OnReset()
	r.expectEnqueued()
}

// A mailbox that cannot be read proves nothing about the state of its objects. When it can be read, all keys with a state are
// enqueued, even if their objects are gone.
func TestStateOutlastsAnUnreadableMailbox(t *testing.T) {
	r := newEnqueueHarness(t, upsyncMatcher(nil))
	// The target is away. Only the controller of a resource that is being unpublished runs passes then.
	r.Resource.Unpublishing = true
	r.enqueuer.states.setFailure(shop("failed"), Failure{Reason: plan.ReasonConflict})
	r.enqueuer.states.setFindings(shop("excluded"), findings{excluded: true})
	r.enqueuer.states.setFindings(shop("former"), findings{former: true})
	for _, name := range []string{"failed", "excluded", "former"} {
		if result, err := r.Reconcile(t.Context(), shop(name)); err != nil || !result.IsZero() {
			t.Errorf("%s: got %+v, %v", name, result, err)
		}
	}
	if len(r.enqueuer.states.failures()) != 1 || len(r.enqueuer.states.formerKeys()) != 1 || r.reported != 0 {
		t.Errorf("the failures are %v, the former keys %v, with %d reports", r.enqueuer.states.failures(), r.enqueuer.states.formerKeys(), r.reported)
	}
	r.NamespacesChanged()
	r.expectEnqueued("excluded", "failed", "former")
}

// The end of the first pass changes no object, but the configs' status must report it.
func TestTheEndOfTheFirstPassIsReported(t *testing.T) {
	r := newEnqueueHarness(t, upsyncMatcher(nil))
	r.firstPass.start([]types.NamespacedName{shop("a"), shop("b")}, true)
	for _, step := range []struct {
		key  string
		want int
	}{{"a", 0}, {"b", 1}, {"b", 1}} {
		if r.tried(shop(step.key), true); r.reported != step.want {
			t.Errorf("after %s there were %d reports, want %d", step.key, r.reported, step.want)
		}
	}
}

// stats returns the values that a scrape reads from the controller.
func (r *enqueueHarness) stats() queueStats {
	var got queueStats
	r.addQueueStats(&got)
	return got
}

// Changes made while the target is away stay pending, and are enqueued when the target is back even without another event.
func TestPendingChangesWhileTheTargetIsAway(t *testing.T) {
	r := newEnqueueHarness(t, selection.Compile(nil, nil))
	clock := r.Clock.(*testclock.FakeClock)
	start := clock.Now()
	event := func(name string) {
		r.OnEvent(mailboxes.Event{Key: shop(name), New: &unstructured.Unstructured{}})
	}
	r.enqueuer.enqueueAdded(true, shop("there"))
	if got := r.stats(); got != (queueStats{depth: 1, now: start}) {
		t.Errorf("after the initial list: %+v", got)
	}
	r.expectEnqueued("there")
	event("first")
	clock.Step(time.Minute)
	event("second")
	if got := r.stats(); got != (queueStats{depth: 2, pending: 2, since: start, now: start.Add(time.Minute)}) {
		t.Errorf("with two pending changes: %+v", got)
	}
	r.expectEnqueued("first", "second")
	if result, err := r.Reconcile(t.Context(), shop("first")); err != nil || !result.IsZero() {
		t.Errorf("%v, %v", result, err)
	}
	if got := r.stats(); got != (queueStats{pending: 2, since: start, now: start.Add(time.Minute)}) {
		t.Errorf("the target is away: %+v", got)
	}
	r.Resume()
	r.expectEnqueued("first", "second")
	if seen, waits := r.enqueuer.changes.take(shop("first")); !waits || !seen.mailbox.IsZero() {
		t.Errorf("the latency would include the time without the target: %v", seen)
	}
	if seen, waits := r.enqueuer.changes.take(shop("second")); !waits || seen.mailbox.IsZero() {
		t.Errorf("the latency would not be measured: %v", seen)
	}
}

// Objects of the initial list have not changed, neither copies nor objects to upsync.
func TestInitialListIsNotMeasured(t *testing.T) {
	r := newEnqueueHarness(t, upsyncMatcher(map[string]string{"first": "first"}))
	widget := &unstructured.Unstructured{}
	widget.SetAPIVersion("old/v2")
	widget.SetKind("Widget")
	widget.SetNamespace("shop")
	widget.SetName("first")
	cached := must(r.target.transformForCache(r.target.apis[1])(widget))(t)
	for name, add := range map[string]func(initial bool){
		"a copy":             func(initial bool) { r.enqueuer.copyHandler(r.target.apis[1]).OnAdd(cached, initial) },
		"a source of upsync": func(initial bool) { r.upsync.handler(t.Context(), r.target.apis[1].TargetAPI).OnAdd(widget, initial) },
	} {
		for _, initial := range []bool{true, false} {
			add(initial)
			r.expectEnqueued("first")
			if seen, waits := r.enqueuer.changes.take(shop("first")); waits == initial || seen.target.IsZero() != initial {
				t.Errorf("%s, in the initial list: %v: %v, %v", name, initial, seen, waits)
			}
		}
	}
}

// BenchmarkEvent measures the cost of an event before the pass: the queue keeps the key and its priority, and nothing else is
// allocated.
func BenchmarkEvent(b *testing.B) {
	clock := testclock.NewFakeClock(time.Unix(1000, 0))
	e := &enqueuer{states: newKeyStates(clock), changes: newPendingChanges(), clock: clock, queue: discarding{}}
	event := mailboxes.Event{Key: shop("first"), Old: &unstructured.Unstructured{}, New: &unstructured.Unstructured{}}
	b.ReportAllocs()
	for b.Loop() {
		e.onMailboxEvent(event)
		e.changes.take(event.Key)
	}
}

// discarding is a queue that drops all keys.
type discarding struct {
	priorityqueue.PriorityQueue[types.NamespacedName]
}

func (discarding) AddWithOpts(priorityqueue.AddOpts, ...types.NamespacedName) {}
