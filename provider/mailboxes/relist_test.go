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

package mailboxes_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/kcp-dev/logicalcluster/v3"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/synchub-dev/synchub/provider/cachesize"
	"github.com/synchub-dev/synchub/provider/mailboxes"
	"github.com/synchub-dev/synchub/test/framework/suite"
	"github.com/synchub-dev/synchub/test/tier"
)

// watchProxy forwards requests to the virtual workspace of a real shard. While it is away it loses the history that watches
// need to resume, so the hub must list again.
type watchProxy struct {
	url   string
	shard *httputil.ReverseProxy
	// refusesWatchLists makes clients list by pages.
	refusesWatchLists bool

	lock sync.Mutex
	// connection ends when the relay goes away, and back is closed when it comes back.
	connection  context.Context
	disconnect  context.CancelFunc
	reconnected chan struct{}
	// waiting is how many lists of config maps wait for the relay to come back.
	waiting int
}

func newWatchProxy(t *testing.T, shard *kcpShard, refusesWatchLists bool) *watchProxy {
	t.Helper()
	target, err := url.Parse(shard.url)
	if err != nil {
		t.Fatal(err)
	}
	r := &watchProxy{refusesWatchLists: refusesWatchLists, reconnected: make(chan struct{}), shard: suite.Forward(t, shard.HubConfig)}
	r.connection, r.disconnect = context.WithCancel(t.Context())
	r.url = suite.ServeTLS(t, r).URL + target.Path
	return r
}

func (r *watchProxy) ServeHTTP(response http.ResponseWriter, request *http.Request) {
	query := request.URL.Query()
	isWatch, isWatchList := query.Get("watch") != "", query.Get("sendInitialEvents") != ""
	// A list by pages shows the past if it names a version.
	needsHistory := !isWatchList && query.Get("resourceVersion") != ""
	r.lock.Lock()
	here, back := r.connection, r.reconnected
	isAway := here.Err() != nil
	r.lock.Unlock()
	switch {
	case isWatchList && r.refusesWatchLists:
		http.Error(response, "watches do not list here", http.StatusBadRequest)
		return
	case isAway && needsHistory:
		expired := apierrors.NewResourceExpired("too old resource version").ErrStatus
		expired.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}
		response.Header().Set("Content-Type", "application/json")
		response.WriteHeader(http.StatusGone)
		_ = json.NewEncoder(response).Encode(expired) // a client that has gone gets no response
		return
	case isAway:
		if (!isWatch || isWatchList) && strings.HasSuffix(request.URL.Path, "/clusters/*/api/v1/configmaps") {
			r.lock.Lock()
			r.waiting++
			r.lock.Unlock()
		}
		select {
		case <-back:
		case <-request.Context().Done():
			return
		}
	}
	r.lock.Lock()
	here = r.connection
	r.lock.Unlock()
	ctx, cancel := context.WithCancel(request.Context())
	defer cancel()
	defer context.AfterFunc(here, cancel)()
	r.shard.ServeHTTP(response, request.WithContext(ctx))
}

// whileAway changes a mailbox of the first shard while the relay is away, and the hub waits for a new list of config maps.
func (f *testHub) whileAway(r *watchProxy, mailbox logicalcluster.Name, change func()) {
	f.t.Helper()
	r.lock.Lock()
	r.waiting = 0
	r.disconnect()
	r.lock.Unlock()
	f.eventually(func() int {
		r.lock.Lock()
		defer r.lock.Unlock()
		return r.waiting
	}).Should(BeNumerically(">", 0))
	change()
	f.awaitServerCache(f.first, mailbox)
	r.lock.Lock()
	defer r.lock.Unlock()
	close(r.reconnected)
	r.reconnected = make(chan struct{})
	r.connection, r.disconnect = context.WithCancel(f.t.Context())
}

// awaitServerCache waits until the server's cache holds all changes of a mailbox. The server answers lists and watches from
// this cache.
func (f *testHub) awaitServerCache(shard *kcpShard, mailbox logicalcluster.Name) {
	f.t.Helper()
	direct, err := shard.client(mailbox.String())
	f.Expect(err).NotTo(HaveOccurred())
	f.eventually(func(g Gomega) {
		var stored, cached corev1.ConfigMapList
		g.Expect(direct.List(f.t.Context(), &stored)).To(Succeed())
		g.Expect(direct.List(f.t.Context(), &cached, &client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: "0"}})).To(Succeed())
		g.Expect(cached.Items).To(ConsistOf(stored.Items))
	}).Should(Succeed())
}

// forget discards the recorded events.
func (l *recordingSubscriber) forget() {
	l.lock.Lock()
	defer l.lock.Unlock()
	l.changed, l.deleted, l.decided = nil, nil, nil
}

// expectCounted expects the usage of a mailbox to match the cache.
func (f *testHub) expectCounted(mailbox logicalcluster.Name) {
	f.t.Helper()
	f.eventually(func(g Gomega) {
		all, known := f.hub.List(configMaps, mailbox)
		g.Expect(known).To(BeTrue())
		bytes := int64(0)
		for _, object := range all {
			bytes += cachesize.SizeOf(object)
		}
		usage := f.hub.Limits.MailboxLimitError(mailbox)
		g.Expect([]int64{usage.Objects, usage.Bytes}).To(Equal([]int64{int64(len(all)), bytes}))
	}).Should(Succeed())
}

// The next list finds a deletion that no watch has reported, and a replaced object. Unchanged objects cause no events.
func TestUnwatchedChanges(t *testing.T) {
	tier.Thorough(t)
	for name, refusesWatchLists := range map[string]bool{"list": true, "watch-list": false} {
		t.Run(name, func(t *testing.T) {
			policy := &prefixPolicy{}
			policy.set("", 0)
			f := newTestHubWithPolicy(t, policy)
			mailbox, relay := f.first.own, newWatchProxy(t, f.first, refusesWatchLists)
			kept, gone, remade := name+"-kept", name+"-gone", name+"-remade"
			for _, object := range []string{kept, gone, remade} {
				f.create(f.first, mailbox, object, "first")
			}
			f.slice.set(relay.url)
			for _, object := range []string{kept, gone, remade} {
				f.eventually(f.value(mailbox, object)).Should(Equal("first"))
				f.eventually(f.subscribers[mailbox].recorded(changedKeys)).Should(ContainElement(object))
			}
			f.expectCounted(mailbox)
			f.subscribers[mailbox].forget()

			f.whileAway(relay, mailbox, func() {
				f.delete(f.first, mailbox, gone)
				f.delete(f.first, mailbox, remade)
				f.create(f.first, mailbox, remade, "second")
				f.Expect(f.state(mailbox, gone)()).To(Equal(mailboxes.Present), "as it was last seen")
			})
			f.eventually(f.state(mailbox, gone)).Should(Equal(mailboxes.Absent))
			f.eventually(f.value(mailbox, remade)).Should(Equal("second"))
			f.expectCounted(mailbox)
			f.eventually(f.subscribers[mailbox].recorded(changedKeys)).Should(ConsistOf(remade))
			f.Expect(f.subscribers[mailbox].recorded(deletedKeys)()).To(And(ContainElement(gone), Not(ContainElement(kept))))
			f.Expect(f.value(mailbox, kept)()).To(Equal("first"))
			f.Expect(f.hub.Absences.TakeVerifiedAbsence(mailbox, missingObject(gone))).To(BeFalse(), "a list of all mailboxes proves nothing")

			// The watch misses its return, too.
			f.subscribers[mailbox].forget()
			f.whileAway(relay, mailbox, func() { f.create(f.first, mailbox, gone, "third") })
			f.eventually(f.value(mailbox, gone)).Should(Equal("third"))
			f.expectCounted(mailbox)
			f.eventually(f.subscribers[mailbox].recorded(changedKeys)).Should(ConsistOf(gone))
			f.Expect(f.subscribers[mailbox].recorded(deletedKeys)()).To(BeEmpty())
			f.expectEvents(f.first, mailbox, name+"-later")
		})
	}
}
