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
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/client-go/tools/cache"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/synchub-dev/synchub/provider/kcp"
	"github.com/synchub-dev/synchub/test/framework/suite"
)

// fakeCluster is an API server with namespaces, and Widgets whose requests the test answers.
type fakeCluster struct {
	*httptest.Server
	widgets atomic.Pointer[http.HandlerFunc]
	// crds makes it serve CustomResourceDefinitions. The hub waits for them too.
	crds bool
	// away makes it answer 503, as a proxy before a stopped cluster.
	away atomic.Bool
	// apis is the answer about the served APIs, listed counts the requests for it, probed the probes.
	apis           atomic.Pointer[string]
	etags          bool
	listed, probed atomic.Int64
}

func newFakeCluster(t *testing.T) *fakeCluster {
	t.Helper()
	f := &fakeCluster{}
	f.Server = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		switch {
		case f.away.Load():
			reply(w, http.StatusServiceUnavailable, "no backend")
		case request.URL.Path == "/apis" && f.apis.Load() != nil:
			f.listAPIs(w, request)
		case request.URL.Path == "/version":
			f.probed.Add(1)
			reply(w, http.StatusOK, `{"gitVersion": "v1.35.4"}`)
		case request.URL.Path == "/api/v1/namespaces/kube-system":
			reply(w, http.StatusOK, `{"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": {"name": "kube-system", "uid": "cluster"}}`)
		case f.crds && request.URL.Path == "/apis/apiextensions.k8s.io/v1/customresourcedefinitions":
			serveWidgetList(w, request)
		case strings.HasPrefix(request.URL.Path, "/apis/example.org/v1/"):
			(*f.widgets.Load())(w, request)
		default:
			reply(w, http.StatusNotFound, "404 page not found")
		}
	}))
	t.Cleanup(f.Close)
	// Watches must not delay the end.
	t.Cleanup(f.CloseClientConnections)
	return f
}

func (f *fakeCluster) listAPIs(w http.ResponseWriter, request *http.Request) {
	f.listed.Add(1)
	served := *f.apis.Load()
	if f.etags {
		w.Header().Set("ETag", `"`+served+`"`)
		if request.Header.Get("If-None-Match") == `"`+served+`"` {
			w.WriteHeader(http.StatusNotModified)
			return
		}
	}
	reply(w, http.StatusOK, `{"kind": "APIGroupDiscoveryList", "items": ["`+served+`"]}`)
}

func (f *fakeCluster) serveWidgets(handler http.HandlerFunc) { f.widgets.Store(&handler) }

func reply(w http.ResponseWriter, code int, body string) {
	w.Header().Set("Content-Type", "application/json")
	if !strings.HasPrefix(body, "{") {
		w.Header().Set("Content-Type", "text/plain")
	}
	w.WriteHeader(code)
	_, _ = w.Write([]byte(body)) //nolint:gosec // no browser reads it
}

func failureStatus(code int, reason string) string {
	return fmt.Sprintf(`{"kind": "Status", "apiVersion": "v1", "status": "Failure", "message": "no, for the reason %s", "reason": %q, "code": %d}`, reason, reason, code)
}

// widgetList is the state of the Widgets, by name, with their UIDs.
func widgetList(version string, names ...string) string {
	items := make([]any, 0, len(names))
	for _, name := range names {
		items = append(items, map[string]any{"apiVersion": "example.org/v1", "kind": "Widget", "metadata": map[string]any{"name": name, "namespace": "default", "uid": "uid-of-" + name, "resourceVersion": version}})
	}
	list, _ := json.Marshal(map[string]any{"apiVersion": "example.org/v1", "kind": "WidgetList", "metadata": map[string]any{"resourceVersion": version}, "items": items})
	return string(list)
}

func isWatch(request *http.Request) bool { return request.URL.Query().Get("watch") != "" }

// quietWatch is a watch without events.
func quietWatch(w http.ResponseWriter, request *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusOK)
	_ = http.NewResponseController(w).Flush()
	<-request.Context().Done()
}

// serveWidgetList lists and watches as an API server without streamed lists.
func serveWidgetList(w http.ResponseWriter, request *http.Request) {
	switch {
	case request.URL.Query().Get("sendInitialEvents") != "":
		reply(w, http.StatusUnprocessableEntity, failureStatus(http.StatusUnprocessableEntity, "Invalid"))
	case isWatch(request):
		quietWatch(w, request)
	default:
		reply(w, http.StatusOK, widgetList("100", "one"))
	}
}

// Every problem that keeps the hub from reading a resource is reported within a minute, until the resource is readable.
func TestUnreadableResourcesAreReported(t *testing.T) {
	for name, refuse := range map[string]http.HandlerFunc{
		"429 for all": func(w http.ResponseWriter, _ *http.Request) {
			reply(w, http.StatusTooManyRequests, failureStatus(http.StatusTooManyRequests, "TooManyRequests"))
		},
		"410 for all": func(w http.ResponseWriter, _ *http.Request) {
			reply(w, http.StatusGone, failureStatus(http.StatusGone, "Expired"))
		},
		"500 for all": func(w http.ResponseWriter, _ *http.Request) {
			reply(w, http.StatusInternalServerError, failureStatus(http.StatusInternalServerError, "InternalError"))
		},
		"503 of a proxy":     func(w http.ResponseWriter, _ *http.Request) { reply(w, http.StatusServiceUnavailable, "no backend") },
		"a list without end": func(w http.ResponseWriter, request *http.Request) { quietWatch(w, request) },
		"no answer at all":   func(_ http.ResponseWriter, request *http.Request) { <-request.Context().Done() },
		"lists, but no watches": func(w http.ResponseWriter, request *http.Request) {
			if isWatch(request) {
				reply(w, http.StatusInternalServerError, failureStatus(http.StatusInternalServerError, "InternalError"))
				return
			}
			serveWidgetList(w, request)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := NewWithT(t)
			cluster, now := newFakeCluster(t), clocktesting.NewFakeClock(time.Now())
			cluster.serveWidgets(refuse)
			registry := newRegistry(t.Context(), t, now)
			connection, err := registry.Connect(syncTarget, kubeconfigFor(t, cluster.Server), kcp.Limits{})
			g.Expect(err).NotTo(HaveOccurred())
			suite.Eventually(t, func(g Gomega) { g.Expect(connection.Health.IsUp()).To(BeTrue()) })
			var changes atomic.Int64
			cached := connection.Watches.NewCache(widgets, CacheOptions{Handler: cache.ResourceEventHandlerFuncs{}, OnAvailability: func() { changes.Add(1) }})
			runInTest(t, cached.Run)
			suite.Eventually(t, func(g Gomega) { g.Expect(connection.Watches.informers.behind.Load()).To(BeEquivalentTo(1)) })
			g.Expect(connection.Watches.UnreadableResources()).To(BeEmpty(), "not yet")

			passed := time.Duration(0)
			suite.Eventually(t, func(g Gomega) {
				if passed < time.Minute {
					now.Step(time.Second)
					passed += time.Second
				}
				g.Expect(cached.Availability().Reason).To(Equal(ReasonNotReadable))
			})
			g.Expect(passed).To(BeNumerically(">=", failedReadTimeout-time.Second), "reported too early")
			g.Expect(cached.Availability().Message).NotTo(BeEmpty())
			g.Expect(connection.Watches.UnreadableResources()).To(HaveKey(widgets.GroupResource()))
			g.Expect(connection.Health.IsUp()).To(BeTrue())

			cluster.serveWidgets(serveWidgetList)
			cluster.CloseClientConnections()
			suite.Eventually(t, func(g Gomega) {
				now.Step(time.Second)
				g.Expect(cached.Availability()).To(BeZero())
				g.Expect(namesIn(cached)).To(Equal([]string{"one"}))
			})
			g.Expect(connection.Watches.UnreadableResources()).To(BeEmpty())
			suite.Eventually(t, func(g Gomega) { g.Expect(changes.Load()).To(BeEquivalentTo(2), "one change to unreadable, one back") })
		})
	}
}
