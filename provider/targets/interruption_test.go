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

package targets

import (
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/synchub-dev/synchub/provider/kcp"
	"github.com/synchub-dev/synchub/test/framework/suite"
)

// history is a store of Widgets that a fake cluster serves. Watches show nothing, like the watches of a restored cluster
// without later changes.
type history struct {
	list  atomic.Pointer[string]
	gets  map[string]string
	lists atomic.Int64
	reads atomic.Int64
}

func (h *history) set(version string, names ...string) {
	list := widgetList(version, names...)
	h.list.Store(&list)
}

func (h *history) serve(w http.ResponseWriter, request *http.Request) {
	_, name, isObject := strings.Cut(request.URL.Path, "/widgets/")
	switch {
	case isObject:
		h.reads.Add(1)
		if body, ok := h.gets[name]; ok {
			reply(w, http.StatusOK, body)
			return
		}
		reply(w, http.StatusNotFound, `{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "NotFound", "message": "widgets.example.org \"`+name+`\" not found", "details": {"name": "`+name+`", "group": "example.org", "kind": "widgets"}, "code": 404}`)
	case request.URL.Query().Get("sendInitialEvents") == "" && !isWatch(request):
		h.lists.Add(1)
		reply(w, http.StatusOK, *h.list.Load())
	default:
		serveWidgetList(w, request)
	}
}

// metadataOf is the state of the Widget "one" as widgetList has it.
func metadataOf(uid, version string) string {
	return `{"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": {"name": "one", "namespace": "default", "uid": "` + uid + `", "resourceVersion": "` + version + `"}}`
}

// After an interruption one object shows whether the target still has the history that the hub observed. If not, everything
// is listed again.
func TestAnInterruptionIsVerified(t *testing.T) {
	for name, test := range map[string]struct {
		known   []string
		gets    map[string]string
		relists bool
	}{
		"the newest object is unchanged":       {[]string{"one"}, map[string]string{"one": metadataOf("uid-of-one", "100")}, false},
		"the newest object is gone":            {[]string{"one"}, nil, true},
		"the newest object has an older state": {[]string{"one"}, map[string]string{"one": metadataOf("uid-of-one", "90")}, true},
		"the newest object has a later state":  {[]string{"one"}, map[string]string{"one": metadataOf("uid-of-one", "120")}, true},
		"another object has its name":          {[]string{"one"}, map[string]string{"one": metadataOf("other", "100")}, true},
		"no object is known":                   {nil, nil, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := NewWithT(t)
			cluster, now, store := newFakeCluster(t), clocktesting.NewFakeClock(time.Now()), &history{gets: test.gets}
			store.set("100", test.known...)
			cluster.serveWidgets(store.serve)
			registry := newRegistry(t.Context(), t, now)
			connection, err := registry.Connect(syncTarget, kubeconfigFor(t, cluster.Server), kcp.Limits{})
			g.Expect(err).NotTo(HaveOccurred())
			suite.Eventually(t, func(g Gomega) { g.Expect(connection.Health.IsUp()).To(BeTrue()) })
			cached := connection.Watches.NewCache(widgets, CacheOptions{Handler: (&eventRecorder{}).handler()})
			runInTest(t, cached.Run)
			waitForCacheSync(t, cached)
			suite.Eventually(t, func(g Gomega) {
				g.Expect(connection.Watches.informers.behind.Load()).To(BeZero(), "the watch is established")
			})
			g.Expect(store.lists.Load()).To(BeEquivalentTo(1))

			store.set("150", "restored")
			cluster.away.Store(true)
			cluster.CloseClientConnections()
			suite.Eventually(t, func(g Gomega) {
				now.Step(time.Second)
				connection.Watches.informers.lock.Lock()
				defer connection.Watches.informers.lock.Unlock()
				isInterrupted := connection.Watches.informers.interrupted != nil
				g.Expect(isInterrupted).To(BeTrue())
			})
			cluster.away.Store(false)
			suite.Eventually(t, func(g Gomega) {
				now.Step(time.Second)
				connection.Watches.informers.lock.Lock()
				defer connection.Watches.informers.lock.Unlock()
				isInterrupted := connection.Watches.informers.interrupted != nil
				g.Expect(isInterrupted).To(BeFalse())
			})
			if test.relists {
				suite.Eventually(t, func(g Gomega) {
					now.Step(time.Second)
					g.Expect(namesIn(cached)).To(Equal([]string{"restored"}))
				})
			} else {
				suite.Eventually(t, func(g Gomega) {
					now.Step(time.Second)
					g.Expect(connection.Watches.informers.behind.Load()).To(BeZero())
				})
				g.Expect(store.lists.Load()).To(BeEquivalentTo(1))
			}
			suite.Eventually(t, func(g Gomega) { g.Expect(store.reads.Load()).To(BeEquivalentTo(len(test.known))) })
		})
	}
}

// The resource is listed again after an answer that the watch does not confirm, at most once a minute.
func TestAContradictionListsAgain(t *testing.T) {
	g := NewWithT(t)
	cluster, now, store := newFakeCluster(t), clocktesting.NewFakeClock(time.Now()), &history{}
	store.set("100", "one", "two")
	cluster.serveWidgets(store.serve)
	registry := newRegistry(t.Context(), t, now)
	connection, err := registry.Connect(syncTarget, kubeconfigFor(t, cluster.Server), kcp.Limits{})
	g.Expect(err).NotTo(HaveOccurred())
	suite.Eventually(t, func(g Gomega) { g.Expect(connection.Health.IsUp()).To(BeTrue()) })
	cached := connection.Watches.NewCache(widgets, CacheOptions{Namespaced: true, Handler: (&eventRecorder{}).handler()})
	runInTest(t, cached.Run)
	waitForCacheSync(t, cached)
	key := func(name string) types.NamespacedName { return types.NamespacedName{Namespace: "default", Name: name} }

	cached.Contradicted(key("one"), "another-uid")
	cached.Contradicted(key("gone"), "uid-of-gone")
	cached.Contradicted(key("two"), "")
	g.Expect(contradictionsPending(cached)).To(BeFalse(), "the cache agrees")

	store.set("150", "two", "three")
	cached.Contradicted(key("one"), "uid-of-one")
	cached.Contradicted(key("three"), "")
	g.Expect(store.lists.Load()).To(BeEquivalentTo(1), "the watch may still catch up")
	suite.Eventually(t, func(g Gomega) {
		now.Step(time.Second)
		g.Expect(namesIn(cached)).To(Equal([]string{"three", "two"}))
	})
	g.Expect(store.lists.Load()).To(BeEquivalentTo(2))

	store.set("160", "three")
	cached.Contradicted(key("two"), "uid-of-two")
	started := now.Now()
	suite.Eventually(t, func(g Gomega) {
		now.Step(time.Second)
		g.Expect(namesIn(cached)).To(Equal([]string{"three"}))
	})
	g.Expect(now.Since(started)).To(BeNumerically(">", contradictionInterval-contradictionDelay-5*time.Second))
}

// contradictionsPending reports whether the hub waits for a watch.
func contradictionsPending(cached *Cache) bool {
	pending := &cached.parts[0].contradiction
	pending.lock.Lock()
	defer pending.lock.Unlock()
	return pending.pending
}

// A target begins to serve an API without any event. The list of APIs shows it.
func TestNewAPIWakesWaitingRequests(t *testing.T) {
	for name, etags := range map[string]bool{"with ETags": true, "without ETags": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := NewWithT(t)
			cluster, now := newFakeCluster(t), clocktesting.NewFakeClock(time.Now())
			cluster.etags, cluster.crds = etags, true
			cluster.apis.Store(new("none"))
			cluster.serveWidgets(func(w http.ResponseWriter, _ *http.Request) { reply(w, http.StatusNotFound, "404 page not found") })
			registry := newRegistry(t.Context(), t, now)
			connection, err := registry.Connect(syncTarget, kubeconfigFor(t, cluster.Server), kcp.Limits{})
			g.Expect(err).NotTo(HaveOccurred())
			suite.Eventually(t, func(g Gomega) { g.Expect(connection.Health.IsUp()).To(BeTrue()) })
			cached := connection.Watches.NewCache(widgets, CacheOptions{Handler: (&eventRecorder{}).handler()})
			runInTest(t, cached.Run)
			suite.Eventually(t, func(g Gomega) {
				g.Expect(cached.Availability().Reason).To(Equal(ReasonNotServed))
				g.Expect(cluster.listed.Load()).To(BeEquivalentTo(1))
			})
			cluster.serveWidgets(serveWidgetList)
			cluster.apis.Store(new("example.org"))
			started := now.Now()
			suite.Eventually(t, func(g Gomega) {
				now.Step(time.Second)
				g.Expect(cached.HasSynced()).To(BeTrue())
			})
			g.Expect(now.Since(started)).To(BeNumerically("<", servedRecheckInterval))
			g.Expect(cached.Availability()).To(BeZero())
			suite.Eventually(t, func(g Gomega) { g.Expect(waitersForAPIs(connection)).To(BeZero()) })
			// A request that was cancelled can still arrive.
			listed, probed := cluster.listed.Load(), cluster.probed.Load()
			suite.Eventually(t, func(g Gomega) {
				now.Step(time.Minute)
				if latest := cluster.listed.Load(); latest != listed {
					listed, probed = latest, cluster.probed.Load()
				}
				g.Expect(cluster.probed.Load()).To(BeNumerically(">=", probed+3), "three probes without a request for the APIs")
			})
		})
	}
}

func waitersForAPIs(connection *Connection) int {
	connection.APIPoll.lock.Lock()
	defer connection.APIPoll.lock.Unlock()
	return connection.APIPoll.waiters
}
