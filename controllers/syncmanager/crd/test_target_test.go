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

package crd_test

import (
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/utils/clock"

	"github.com/synchub-dev/synchub/controllers/plan/ownership"
	"github.com/synchub-dev/synchub/provider/kcp"
	"github.com/synchub-dev/synchub/provider/targets"
	"github.com/synchub-dev/synchub/test/framework/connections"
	"github.com/synchub-dev/synchub/test/framework/suite"
)

// testTarget is a proxy to the target that records each request and lets a test intercept it.
type testTarget struct {
	*targets.Connection
	// interfere handles a request itself if it returns true. It may be nil.
	interfere atomic.Pointer[func(http.ResponseWriter, *http.Request) bool]

	lock       sync.Mutex
	requestLog []string
}

// newConnectedTarget returns a testTarget with an open connection.
func newConnectedTarget(t *testing.T) *testTarget {
	t.Helper()
	return newTestTarget(t, clock.RealClock{})
}

// newTestTarget returns a testTarget with an open connection, whose clock may be a fake one.
func newTestTarget(t *testing.T, clock clock.WithTicker) *testTarget {
	t.Helper()
	target := suite.Target(t)
	forward := suite.Forward(t, target.Config)
	w := &testTarget{}
	server := suite.ServeTLS(t, http.HandlerFunc(func(writer http.ResponseWriter, request *http.Request) {
		w.recordRequest(request)
		if interfere := w.interfere.Load(); interfere != nil && (*interfere)(writer, request) {
			return
		}
		request.Header.Set("Authorization", "Bearer "+target.Config.BearerToken)
		forward.ServeHTTP(writer, request)
	}))
	registry := connections.NewRegistry(t, targets.Options{FieldManager: ownership.FieldManager(testOwner.Hub), Clock: clock})
	w.Connection = connections.Connect(t, registry, testOwner.SyncTarget, suite.Kubeconfig(t, server.URL, suite.CertificateOf(server), "token-of-the-hub"), kcp.Limits{})
	suite.Eventually(t, func(g Gomega) { g.Expect(w.Health.IsUp()).To(BeTrue(), "%+v", w.Health.Get()) })
	return w
}

func (w *testTarget) recordRequest(request *http.Request) {
	query := request.URL.Query()
	if query.Has("watch") || query.Has("dryRun") {
		return
	}
	w.lock.Lock()
	defer w.lock.Unlock()
	w.requestLog = append(w.requestLog, request.Method+" "+request.URL.Path)
}

// probes returns the number of probes of the target.
func (w *testTarget) probes() (count int) {
	w.lock.Lock()
	defer w.lock.Unlock()
	for _, request := range w.requestLog {
		if strings.HasSuffix(request, "/version") {
			count++
		}
	}
	return count
}

// writes returns the requests so far that write a CRD, and reads the requests that read it.
func (w *testTarget) writes(name string) []string { return w.requests(name, false) }
func (w *testTarget) reads(name string) []string  { return w.requests(name, true) }

func (w *testTarget) requests(name string, reads bool) (found []string) {
	w.lock.Lock()
	defer w.lock.Unlock()
	for _, request := range w.requestLog {
		if strings.HasSuffix(request, "/customresourcedefinitions/"+name) && strings.HasPrefix(request, http.MethodGet) == reads {
			found = append(found, request)
		}
	}
	return found
}

// beforeWriting calls a function once, just before it forwards the first write of the CRD.
func (w *testTarget) beforeWriting(name string, call func()) {
	var once sync.Once
	w.interfere.Store(new(func(_ http.ResponseWriter, request *http.Request) bool {
		if request.Method == http.MethodPatch && strings.HasSuffix(request.URL.Path, "/"+name) && !request.URL.Query().Has("dryRun") {
			once.Do(call)
		}
		return false
	}))
}
