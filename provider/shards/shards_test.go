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

package shards

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	. "github.com/onsi/gomega"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/uuid"
	coordinationv1client "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	"github.com/synchub-dev/synchub/provider/fence"
	"github.com/synchub-dev/synchub/provider/leases"
	"github.com/synchub-dev/synchub/test/framework/suite"
	"github.com/synchub-dev/synchub/test/tier"
)

func TestMain(m *testing.M) { suite.Main(m) }

// fleet has the replicas of a test, which share a list of live replicas.
type fleet struct {
	*WithT
	t      *testing.T
	config *rest.Config

	// take and settle are the periods of all replicas.
	take, settle time.Duration

	lock sync.Mutex
	live []string
	// leaders is true while the leader does not shard SyncTargets, and unknown is true while that cannot be read.
	leaders, unknown bool
}

func (f *fleet) leaderShards(context.Context) (bool, error) {
	f.lock.Lock()
	defer f.lock.Unlock()
	if f.unknown {
		return false, errors.New("no route")
	}
	return !f.leaders, nil
}

func (f *fleet) setLeader(divides, unknown bool) {
	f.lock.Lock()
	defer f.lock.Unlock()
	f.leaders, f.unknown = !divides, unknown
}

func (f *fleet) names() []string {
	f.lock.Lock()
	defer f.lock.Unlock()
	return slices.Clone(f.live)
}

// believe sets the list of live replicas for all replicas.
func (f *fleet) believe(live ...string) {
	f.lock.Lock()
	defer f.lock.Unlock()
	f.live = live
}

// replica is one process of the hub.
type replica struct {
	*Elector
	// cut is true while the hosting cluster cannot be reached.
	lock    sync.Mutex
	cut     bool
	stopped map[int]int
	// openAtStop are the shards whose fence was open when the work for them was stopped.
	openAtStop []int
	end        context.CancelFunc
	ended      chan struct{}
}

func (r *replica) RoundTrip(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(request *http.Request) (*http.Response, error) {
		r.lock.Lock()
		cut := r.cut
		r.lock.Unlock()
		if cut {
			return nil, fmt.Errorf("no route to %s", request.URL.Host)
		}
		return next.RoundTrip(request)
	})
}

type roundTripper func(*http.Request) (*http.Response, error)

func (r roundTripper) RoundTrip(request *http.Request) (*http.Response, error) { return r(request) }

// held returns how many shards the replica holds.
func (r *replica) held() (held int) {
	for _, one := range r.all {
		if one.isOwned() {
			held++
		}
	}
	return held
}

func (r *replica) setCut(cut bool) {
	r.lock.Lock()
	defer r.lock.Unlock()
	r.cut = cut
}

func (f *fleet) start(name string, live func() []string) *replica {
	f.t.Helper()
	r := &replica{stopped: map[int]int{}, ended: make(chan struct{})}
	config := rest.CopyConfig(f.config)
	config.QPS = -1
	config.Wrap(r.RoundTrip)
	client, err := coordinationv1client.NewForConfig(config)
	f.Expect(err).NotTo(HaveOccurred())
	watcher := leases.NewWatcher(leases.Options{Leases: client.Leases(metav1.NamespaceDefault), Clock: clock.RealClock{}, Log: logr.Discard()})
	r.Elector = NewElector(New(clock.RealClock{}), Options{
		Leases: client, Watcher: watcher, Settings: testSettings(metav1.NamespaceDefault), Replica: name, LiveReplicas: live,
		Stop: func(shard int) {
			r.lock.Lock()
			defer r.lock.Unlock()
			r.stopped[shard]++
			if r.all[shard].fence.IsOpen() {
				r.openAtStop = append(r.openAtStop, shard)
			}
		},
		LeaderShards: f.leaderShards,
		Clock:        clock.RealClock{}, Log: logr.Discard(),
	})
	r.take, r.settle = f.take, f.settle
	var ctx context.Context
	ctx, r.end = context.WithCancel(f.t.Context())
	go func() {
		defer close(r.ended)
		var watching sync.WaitGroup
		watching.Go(func() { _ = watcher.Start(ctx) })
		_ = r.Start(ctx)
		watching.Wait()
	}()
	f.t.Cleanup(func() { r.end(); <-r.ended })
	return r
}

// holders returns how many of the replicas hold each shard, and how many of them may write for it.
func holders(replicas ...*replica) (held, writing [Count]int) {
	for number := range Count {
		for _, one := range replicas {
			if one.all[number].fence.IsOpen() {
				writing[number]++
			}
			if one.all[number].isOwned() {
				held[number]++
			}
		}
	}
	return held, writing
}

// expectDivided waits until each shard has one holder, the first among the live replicas, and checks all the time that nobody
// else may write.
func (f *fleet) expectDivided(replicas ...*replica) {
	f.t.Helper()
	f.Eventually(func(g Gomega) {
		held, writing := holders(replicas...)
		for number := range Count {
			if writing[number] > 1 {
				StopTrying(fmt.Sprintf("%d replicas may write for the shard %d", writing[number], number)).Now()
			}
			g.Expect(held[number]).To(Equal(1), "shard %d", number)
		}
		assignment := assign(f.names())
		for _, one := range replicas {
			for number, shard := range one.all {
				g.Expect(shard.isOwned()).To(Equal(assignment.first[number] == one.Replica), "shard %d, %s", number, one.Replica)
			}
		}
	}).WithTimeout(3 * time.Minute).WithPolling(50 * time.Millisecond).Should(Succeed())
}

func TestShards(t *testing.T) {
	tier.Thorough(t)
	f := &fleet{WithT: NewWithT(t), t: t, config: suite.Target(t).Config, take: 10 * time.Second, settle: 10 * time.Second}
	f.believe("a", "b")
	a, b := f.start("a", f.names), f.start("b", f.names)
	f.expectDivided(a, b)
	one := types.UID("one")
	f.Expect(a.owned.Owns(one)).NotTo(Equal(b.owned.Owns(one)))
	f.Expect(a.held() + b.held()).To(Equal(Count))

	// A replica comes: only its share moves, and work stops before the Lease is released, with writes still allowed.
	held := a.held() + b.held()
	f.believe("a", "b", "c")
	c := f.start("c", f.names)
	f.expectDivided(a, b, c)
	f.Expect(len(a.stopped)+len(b.stopped)).To(BeNumerically(">=", held-a.held()-b.held()), "bounded loads may move a few more")
	stops := 0
	for _, times := range a.stopped {
		stops += times
	}
	f.Expect(a.openAtStop).To(HaveLen(stops))

	// A replica ends: all its Leases are free at once.
	c.end()
	<-c.ended
	f.Expect(c.held()).To(BeZero())
	f.believe("a", "b")
	f.expectDivided(a, b)

	// Two replicas that are not in each other's lists both want all shards. Neither takes a shard that the other holds.
	before := a.held()
	lonely := f.start("d", func() []string { return []string{"d"} })
	f.Consistently(func(g Gomega) {
		held, writing := holders(a, b, lonely)
		for number := range Count {
			g.Expect(held[number]).To(Equal(1))
			g.Expect(writing[number]).To(Equal(1))
		}
		g.Expect(a.held()).To(Equal(before))
	}).WithTimeout(10 * time.Second).Should(Succeed())
	lonely.end()
	<-lonely.ended

	// A replica loses the hosting cluster: its fences close before another may write.
	a.setCut(true)
	f.Eventually(func(g Gomega) {
		_, writing := holders(a, b)
		for number := range Count {
			if writing[number] > 1 {
				StopTrying(fmt.Sprintf("%d replicas may write for the shard %d", writing[number], number)).Now()
			}
		}
		g.Expect(b.held()).To(Equal(Count), "the second is a candidate, regardless of the live replicas")
	}).WithTimeout(time.Minute).WithPolling(20 * time.Millisecond).Should(Succeed())
	f.Expect(a.held()).To(BeZero())
	a.setCut(false)
	f.expectDivided(a, b)

	// The leader is replaced by one that works for all.
	f.setLeader(false, true)
	f.Consistently(func() int { return a.held() + b.held() }).WithTimeout(3 * time.Second).Should(Equal(Count))
	f.setLeader(false, false)
	f.Eventually(func() [Count]int { _, writing := holders(a, b); return writing }).WithTimeout(time.Minute).Should(HaveEach(0))
	f.Expect(a.held() + b.held()).To(BeZero())
	f.setLeader(true, false)
	f.expectDivided(a, b)

	found, err := b.Leases.Leases(metav1.NamespaceDefault).List(t.Context(), metav1.ListOptions{})
	f.Expect(err).NotTo(HaveOccurred())
	f.Expect(found.Items).To(HaveLen(Count))
}

// The second replica for a shard takes it when the first ends, also soon after replicas were added or removed: it waits until
// the first has taken the shard, not for a fixed time.
func TestSecondReplicaWaitsForTheFirst(t *testing.T) {
	tier.Thorough(t)
	f := &fleet{WithT: NewWithT(t), t: t, config: suite.Target(t).Config, take: time.Hour, settle: time.Hour}
	f.believe("a", "b")
	a, b := f.start("a", f.names), f.start("b", f.names)
	f.expectDivided(a, b)
	a.setCut(true)
	f.Eventually(func(g Gomega) {
		_, writing := holders(a, b)
		for number := range Count {
			if writing[number] > 1 {
				StopTrying(fmt.Sprintf("%d replicas may write for the shard %d", writing[number], number)).Now()
			}
		}
		g.Expect(b.held()).To(Equal(Count))
	}).WithTimeout(2 * time.Minute).WithPolling(20 * time.Millisecond).Should(Succeed())
}

// The first replica for half of the shards has ended, and seems to be alive for an hour. The second takes them after the time
// that the first has for it, and keeps them.
func TestSecondReplicaTakesOverInTime(t *testing.T) {
	tier.Thorough(t)
	f := &fleet{WithT: NewWithT(t), t: t, config: suite.Target(t).Config, take: 5 * time.Second, settle: time.Hour}
	f.believe("ended", "lives")
	lives := f.start("lives", f.names)
	f.Eventually(lives.held).WithTimeout(time.Minute).Should(Equal(Count))
	f.Consistently(lives.held).WithTimeout(2 * f.take).Should(Equal(Count))
}

// A replica whose clock is five minutes off writes wrong times into its Leases. Other replicas ignore them: a Lease is old if
// it was not renewed for its duration by the reader's clock.
func TestClocks(t *testing.T) {
	tier.Thorough(t)
	f := &fleet{WithT: NewWithT(t), t: t, config: suite.Target(t).Config}
	f.believe("punctual")
	for number, off := range []time.Duration{-5 * time.Minute, 5 * time.Minute} {
		name := fmt.Sprintf("%s-%02d", leasePrefix, number)
		leases, err := coordinationv1client.NewForConfig(f.config)
		f.Expect(err).NotTo(HaveOccurred())
		_ = leases.Leases(metav1.NamespaceDefault).Delete(t.Context(), name, metav1.DeleteOptions{})
		renewing, stop := context.WithCancel(t.Context())
		spec := func() coordinationv1.LeaseSpec {
			return coordinationv1.LeaseSpec{HolderIdentity: new("off"), LeaseDurationSeconds: new(int32(8)), RenewTime: &metav1.MicroTime{Time: time.Now().Add(off)}}
		}
		lease, err := leases.Leases(metav1.NamespaceDefault).Create(t.Context(), &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: spec()}, metav1.CreateOptions{})
		f.Expect(err).NotTo(HaveOccurred())
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			ticker := time.NewTicker(time.Second)
			defer ticker.Stop()
			for {
				select {
				case <-renewing.Done():
					return
				case <-ticker.C:
				}
				lease.Spec = spec()
				if updated, err := leases.Leases(metav1.NamespaceDefault).Update(t.Context(), lease, metav1.UpdateOptions{}); err == nil {
					lease = updated
				}
			}
		}()
		punctual := f.start("punctual", f.names)
		f.Eventually(punctual.held).WithTimeout(time.Minute).Should(BeNumerically(">=", Count-1))
		f.Consistently(punctual.all[number].isOwned).WithTimeout(12*time.Second).Should(BeFalse(), "%s", off)
		stop()
		<-ended
		f.Eventually(punctual.all[number].isOwned).WithTimeout(time.Minute).Should(BeTrue(), "%s", off)
		punctual.end()
		<-punctual.ended
	}
}

// The fence in a context replaces the fence of the transport.
func TestFence(t *testing.T) {
	g := NewWithT(t)
	p := New(clock.RealClock{})
	syncTarget := uuid.NewUUID()
	g.Expect(p.Owns(syncTarget)).To(BeFalse())
	sent := 0
	leader := fence.New(clock.RealClock{})
	transport := leader.Wrap(roundTripper(func(*http.Request) (*http.Response, error) { sent++; return &http.Response{}, nil }))
	write := func(ctx context.Context) error {
		request, err := http.NewRequestWithContext(ctx, http.MethodPut, "http://127.0.0.1/", http.NoBody)
		g.Expect(err).NotTo(HaveOccurred())
		_, err = transport.RoundTrip(request) //nolint:bodyclose // there is none
		return err
	}
	holder := fence.NewContext(t.Context(), p.Fence(syncTarget))
	g.Expect(write(holder)).To(MatchError(fence.ErrClosed))
	p.Fence(syncTarget).OpenUntil(time.Now().Add(time.Minute))
	g.Expect(write(holder)).To(Succeed())
	g.Expect(write(t.Context())).To(MatchError(fence.ErrClosed), "this replica does not lead")
	leader.OpenUntil(time.Now().Add(time.Minute))
	p.Fence(syncTarget).Close()
	g.Expect(write(holder)).To(MatchError(fence.ErrClosed), "the leader does not hold this shard")
	g.Expect(sent).To(Equal(1))
}
