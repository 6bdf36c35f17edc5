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
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/kcp-dev/logicalcluster/v3"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/clock"

	synchubv1alpha1 "github.com/synchub-dev/synchub/apis/synchub/v1alpha1"
	"github.com/synchub-dev/synchub/provider/mailboxes"
	"github.com/synchub-dev/synchub/provider/mailboxes/absence"
	"github.com/synchub-dev/synchub/test/framework"
	"github.com/synchub-dev/synchub/test/framework/suite"
	"github.com/synchub-dev/synchub/test/tier"
)

// listProxy passes on requests to the virtual workspace of a real shard. It counts lists and watches of config maps, and can
// delay the answer to a list of one mailbox.
type listProxy struct {
	url   string
	shard *httputil.ReverseProxy

	lock sync.Mutex
	// requests counts the lists and watches of each mailbox, or of all.
	requests map[string]int
	// held makes lists of one mailbox wait, and answered is the number of lists that kcp has answered.
	held     chan struct{}
	answered int
}

func newListProxy(t *testing.T, shard *kcpShard) *listProxy {
	t.Helper()
	target, err := url.Parse(shard.url)
	if err != nil {
		t.Fatal(err)
	}
	p := &listProxy{shard: suite.Forward(t, shard.HubConfig), requests: map[string]int{}}
	p.url = suite.ServeTLS(t, p).URL + target.Path
	return p
}

func (p *listProxy) ServeHTTP(response http.ResponseWriter, request *http.Request) {
	_, path, _ := strings.Cut(request.URL.Path, "/clusters/")
	mailbox, ofConfigMaps := strings.CutSuffix(path, "/api/v1/configmaps")
	if !ofConfigMaps {
		p.shard.ServeHTTP(response, request)
		return
	}
	kind := "list"
	if request.URL.Query().Get("watch") != "" {
		kind = "watch"
	}
	p.lock.Lock()
	p.requests[kind+" "+mailbox]++
	held := p.held
	p.lock.Unlock()
	if held == nil || mailbox == "*" {
		p.shard.ServeHTTP(response, request)
		return
	}
	kept := httptest.NewRecorder()
	p.shard.ServeHTTP(kept, request)
	p.lock.Lock()
	p.answered++
	p.lock.Unlock()
	select {
	case <-held:
	case <-request.Context().Done():
		return
	}
	maps.Copy(response.Header(), kept.Header())
	response.WriteHeader(kept.Code)
	_, _ = response.Write(kept.Body.Bytes()) // a client that has gone gets no response
}

// hold delays the answers to lists of one mailbox until they are released.
func (p *listProxy) hold() (release func()) {
	p.lock.Lock()
	defer p.lock.Unlock()
	held := make(chan struct{})
	p.held = held
	return sync.OnceFunc(func() { close(held) })
}

func (p *listProxy) countAnswered() int {
	p.lock.Lock()
	defer p.lock.Unlock()
	return p.answered
}

// take returns the requests since the last time.
func (p *listProxy) take() map[string]int {
	p.lock.Lock()
	defer p.lock.Unlock()
	requests := p.requests
	p.requests = map[string]int{}
	return requests
}

// needingHub is a hub that needs only some mailboxes.
type needingHub struct {
	*testHub
	proxy  *listProxy
	lock   sync.Mutex
	needed map[logicalcluster.Name]bool
}

func newNeedingHub(t *testing.T, needed func(*kcpShard) []logicalcluster.Name) *needingHub {
	shards, slice, policy := startedShards(t), newSliceDouble(t), &prefixPolicy{}
	policy.set("", 0)
	f := &needingHub{
		testHub: &testHub{WithT: NewWithT(t), t: t, slice: slice, first: shards[0], second: shards[1], subscribers: map[logicalcluster.Name]*recordingSubscriber{}},
		proxy:   newListProxy(t, shards[0]), needed: map[logicalcluster.Name]bool{},
	}
	f.need(true, needed(f.first)...)
	f.hub = mailboxes.New(mailboxes.Options{
		Access: kcpConfigFor(t, slice, shards[:]), Workspace: providerWorkspace, Export: exportName, Policy: policy, AbsenceDelays: absence.DefaultDelays,
		Clock: clock.RealClock{}, Log: logr.Discard(),
		Owns: func(mailbox logicalcluster.Name) bool {
			f.lock.Lock()
			defer f.lock.Unlock()
			return f.needed[mailbox]
		},
	})
	f.subscribe(f.first.own, f.second.own, twin)
	framework.RunInTest(t, f.hub.Start)
	f.hub.SetResources([]schema.GroupVersionResource{configMaps})
	return f
}

func (f *needingHub) need(isNeeded bool, all ...logicalcluster.Name) {
	f.lock.Lock()
	defer f.lock.Unlock()
	for _, mailbox := range all {
		f.needed[mailbox] = isNeeded
	}
}

// setValue changes a config map in a mailbox of the first shard, past the hub.
func (f *needingHub) setValue(mailbox logicalcluster.Name, name, value string) {
	f.t.Helper()
	direct, err := f.first.client(mailbox.String())
	f.Expect(err).NotTo(HaveOccurred())
	var changed corev1.ConfigMap
	f.Expect(direct.Get(f.t.Context(), key(name), &changed)).To(Succeed())
	changed.Data["value"] = value
	f.Expect(direct.Update(f.t.Context(), &changed)).To(Succeed())
}

// countCached returns the number of cached config maps, by the metric.
func (f *needingHub) countCached() float64 {
	return framework.SeriesWithLabel(framework.Gather(f.t, mailboxes.Collectors()...), "endpoint", f.proxy.url, "synchub_mailbox_")["cache_objects configmaps"]
}

// countIn returns the number of config maps of mailboxes, which must be known.
func (f *needingHub) countIn(all ...logicalcluster.Name) (count float64) {
	for _, mailbox := range all {
		objects, known := f.hub.List(configMaps, mailbox)
		f.Expect(known).To(BeTrue())
		count += float64(len(objects))
	}
	return count
}

// A mailbox is acquired and lost: the cache has all its objects in between, and none before and after, although objects change
// while the mailbox is listed.
func TestAMailboxIsAcquiredAndReleased(t *testing.T) {
	tier.Thorough(t)
	f := newNeedingHub(t, func(first *kcpShard) []logicalcluster.Name { return []logicalcluster.Name{first.own} })
	own := f.first.own
	for _, name := range []string{"owned-kept", "owned-changed", "owned-deleted"} {
		f.create(f.first, twin, name, "first")
	}
	f.create(f.first, own, "owned-own", "own")
	f.slice.set(f.proxy.url)
	f.eventually(f.value(own, "owned-own")).Should(Equal("own"))
	f.Expect(f.state(twin, "owned-kept")()).To(Equal(mailboxes.Unknown))
	f.eventually(f.countCached).Should(Equal(f.countIn(own)))
	f.setValue(twin, "owned-changed", "second")
	f.setValue(own, "owned-own", "changed")
	f.eventually(f.value(own, "owned-own")).Should(Equal("changed"))
	f.Expect(f.subscribers[twin].recorded(changedKeys)()).To(BeEmpty())
	f.Expect(f.countCached()).To(Equal(f.countIn(own)))

	f.proxy.take()
	release := f.proxy.hold()
	defer release()
	f.need(true, twin)
	f.hub.Ownership.RecheckOwned(twin)
	f.eventually(f.proxy.countAnswered).Should(Equal(1))
	f.setValue(twin, "owned-changed", "third")
	f.delete(f.first, twin, "owned-deleted")
	f.create(f.first, twin, "owned-added", "first")
	f.setValue(own, "owned-own", "again")
	f.eventually(f.value(own, "owned-own")).Should(Equal("again"), "other mailboxes do not wait for the list")
	f.eventually(f.subscribers[twin].recorded(changedKeys)).Should(ContainElement("owned-added"))
	f.Expect(f.state(twin, "owned-kept")()).To(Equal(mailboxes.Unknown))
	f.Expect(f.state(twin, "owned-deleted")()).To(Equal(mailboxes.Unknown))
	release()
	f.eventually(f.value(twin, "owned-kept")).Should(Equal("first"))
	f.Expect(f.value(twin, "owned-changed")()).To(Equal("third"))
	f.Expect(f.value(twin, "owned-added")()).To(Equal("first"))
	f.Expect(f.state(twin, "owned-deleted")()).To(Equal(mailboxes.Absent))
	f.eventually(f.countCached).Should(Equal(f.countIn(own, twin)))
	f.Expect(f.proxy.take()).To(Equal(map[string]int{"list " + twin.String(): 1}), "one list, and the watch continues")
	f.expectCounted(twin)
	f.expectEvents(f.first, twin, "owned-later")

	f.subscribers[twin].forget()
	f.need(false, twin)
	f.hub.Ownership.RecheckOwned()
	f.Expect(f.state(twin, "owned-kept")()).To(Equal(mailboxes.Unknown))
	f.eventually(f.countCached).Should(Equal(f.countIn(own)))
	f.delete(f.first, twin, "owned-later")
	f.setValue(own, "owned-own", "last")
	f.eventually(f.value(own, "owned-own")).Should(Equal("last"))
	f.Expect(f.subscribers[twin].recorded(deletedKeys)()).To(BeEmpty())
	f.Expect(f.hub.Limits.MailboxLimitError(twin).Objects).To(BeZero())
	f.Expect(f.proxy.take()).To(BeEmpty())
}

// Many mailboxes are acquired with one list of each resource.
func TestManyMailboxesAreAcquired(t *testing.T) {
	tier.Thorough(t)
	f := newNeedingHub(t, func(first *kcpShard) []logicalcluster.Name { return []logicalcluster.Name{first.own} })
	all := []logicalcluster.Name{f.first.own, twin}
	for number := range 5 {
		made, err := framework.CreateWorkspace(t.Context(), f.first.Config, providerWorkspace, fmt.Sprint("owned-", number), providerWorkspace+":"+synchubv1alpha1.WorkspaceType)
		f.Expect(err).NotTo(HaveOccurred())
		all = append(all, logicalcluster.Name(made.Spec.Cluster))
		f.Expect(f.first.furnish(t.Context(), all[len(all)-1])).To(Succeed())
	}
	for _, mailbox := range all {
		f.create(f.first, mailbox, "owned-many", mailbox.String())
	}
	f.slice.set(f.proxy.url)
	f.eventually(f.hub.HasSynced).Should(BeTrue())
	f.remindUntilAccepted()
	for _, mailbox := range all {
		f.eventually(func() mailboxes.BindingState { return f.hub.BindingState(mailbox) }).Should(Equal(mailboxes.BindingPresent))
	}
	f.eventually(f.value(f.first.own, "owned-many")).Should(Equal(f.first.own.String()))
	f.eventually(f.countCached).Should(Equal(f.countIn(f.first.own)))
	f.proxy.take()
	f.need(true, all...)
	f.hub.Ownership.RecheckOwned()
	for _, mailbox := range all {
		f.eventually(f.value(mailbox, "owned-many")).WithTimeout(time.Minute).Should(Equal(mailbox.String()))
	}
	f.Expect(f.proxy.take()).To(HaveKeyWithValue("list *", 1))
	f.eventually(f.countCached).Should(Equal(f.countIn(all...)))
}
