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
	"testing"
	"time"

	"github.com/go-logr/logr"
	. "github.com/onsi/gomega"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientfake "k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"

	configv1alpha1 "github.com/synchub-dev/synchub/apis/config/v1alpha1"
	"github.com/synchub-dev/synchub/provider/leases"
)

// solo is one replica, whose Leases are in a fake hosting cluster. It records the shards that it stops and announces.
type solo struct {
	*Elector
	client *clientfake.Clientset
	live   []string
	// divides and unknown determine the result of LeaderShards.
	divides, unknown bool
	// stopped gets the numbers of shards, and changed the shards.
	stopped chan int
	changed chan Set
}

func newSolo(shardClock clock.WithTicker) *solo {
	s := &solo{client: clientfake.NewClientset(), divides: true, live: []string{"a"}, stopped: make(chan int, 10*Count), changed: make(chan Set, 10*Count)}
	s.Elector = NewElector(New(shardClock), Options{
		Leases:  s.client.CoordinationV1(),
		Watcher: leases.NewWatcher(leases.Options{Leases: s.client.CoordinationV1().Leases("hub"), Clock: clock.RealClock{}, Log: logr.Discard()}),
		Replica: "a", LiveReplicas: func() []string { return s.live },
		LeaderShards: func(context.Context) (bool, error) {
			if s.unknown {
				return false, errors.New("no route")
			}
			return s.divides, nil
		},
		Settings: testSettings("hub"),
		Stop:     func(shard int) { s.stopped <- shard }, Clock: shardClock, Log: logr.Discard(),
	})
	s.owned.Changed.Subscribe(context.Background(), func(changed Set) { s.changed <- changed })
	return s
}

// testSettings are the settings of Leases in a namespace.
func testSettings(namespace string) configv1alpha1.LeaderElectionConfiguration {
	return configv1alpha1.LeaderElectionConfiguration{
		Namespace: namespace, LeaseDuration: metav1.Duration{Duration: 8 * time.Second},
		RenewDeadline: metav1.Duration{Duration: 5 * time.Second}, RetryPeriod: metav1.Duration{Duration: 2 * time.Second},
	}
}

// runningCandidacy returns a candidacy that closes the channel when it is released.
func runningCandidacy(of *candidate) (c *candidacy, released chan struct{}) {
	released = make(chan struct{})
	return &candidacy{of: of, release: func() { close(released) }, ended: make(chan struct{})}, released
}

func always() bool { return true }

// When a shard is lost, its work stops, once. A win that comes after the loss does not count.
func TestLostShardsAreStopped(t *testing.T) {
	g := NewWithT(t)
	s := newSolo(clocktesting.NewFakeClock(time.Unix(1000, 0)))
	c := &candidacy{of: s.all[7]}
	c.lose()
	g.Expect(s.stopped).NotTo(Receive(), "the replica never owned it")
	c.win(t.Context())
	g.Expect(s.all[7].isOwned()).To(BeTrue())
	g.Expect(s.changed).To(Receive(Equal(SetOf(7))))
	g.Expect(s.stopped).NotTo(Receive())
	c.lose()
	g.Expect(s.all[7].isOwned()).To(BeFalse())
	g.Expect(s.stopped).To(Receive(Equal(7)))
	g.Expect(s.changed).To(Receive(Equal(SetOf(7))))
	c.lose()
	g.Expect(s.stopped).NotTo(Receive())

	ended, cancel := context.WithCancel(t.Context())
	cancel()
	c.win(ended)
	g.Expect(s.all[7].isOwned()).To(BeFalse())
}

// The work for a shard stops before its Lease is free for another replica.
func TestWorkStopsBeforeTheLeaseIsFree(t *testing.T) {
	g := NewWithT(t)
	s := newSolo(clock.RealClock{})
	freed := make(chan bool, 10)
	s.client.PrependReactor("update", "leases", func(action clienttesting.Action) (bool, runtime.Object, error) {
		if lease := action.(clienttesting.UpdateAction).GetObject().(*coordinationv1.Lease); ptr.Deref(lease.Spec.HolderIdentity, "") == "" {
			freed <- len(s.stopped) == 1
		}
		return false, nil, nil
	})
	c := s.newCandidacy(t.Context(), s.all[3])
	g.Eventually(s.all[3].isOwned).WithTimeout(time.Minute).Should(BeTrue())
	g.Expect(s.all[3].fence.IsOpen()).To(BeTrue())
	c.release()
	g.Eventually(c.ended).WithTimeout(time.Minute).Should(BeClosed())
	g.Expect(freed).To(Receive(BeTrue()), "the Lease was free before the work had stopped")
	g.Expect(s.all[3].isOwned()).To(BeFalse())
	g.Expect(s.all[3].fence.IsOpen()).To(BeFalse())
	lease, err := s.client.CoordinationV1().Leases("hub").Get(t.Context(), leaseName(3), metav1.GetOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(ptr.Deref(lease.Spec.HolderIdentity, "")).To(BeEmpty())
}

// A candidate gives up a shard, or keeps it, by its rank and the time since it got the rank.
func TestGivingUpAShard(t *testing.T) {
	const first = "b"
	now := time.Unix(1_000_000, 0)
	for name, test := range map[string]struct {
		rank rank
		// ownedFor is zero if the shard is not held. secondFor is how long this replica has been the second.
		ownedFor, secondFor time.Duration
		isTakenByFirst      bool
		givesUp             bool
	}{
		"unwanted":                                  {rank: rankUnwanted, ownedFor: time.Second, givesUp: true},
		"unwanted, and not owned":                   {rank: rankUnwanted, givesUp: true},
		"the first keeps it":                        {rank: rankFirst, ownedFor: time.Hour},
		"the first tries on":                        {rank: rankFirst},
		"the second keeps it for a while":           {rank: rankSecond, ownedFor: settlePeriod - 1, secondFor: time.Hour},
		"and gives it up if the first lives":        {rank: rankSecond, ownedFor: settlePeriod, secondFor: time.Hour, givesUp: true},
		"the second tries on":                       {rank: rankSecond, secondFor: takePeriod},
		"the first has not had the time to take it": {rank: rankSecond, secondFor: 0, givesUp: true},
		"the first has taken it":                    {rank: rankSecond, isTakenByFirst: true},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			clock := clocktesting.NewFakeClock(now.Add(-test.ownedFor))
			s := newSolo(clock)
			one := s.all[5]
			s.assignment.first[5] = first
			var released chan struct{}
			one.candidacy, released = runningCandidacy(one)
			if test.ownedFor > 0 {
				one.set(true, clock.Now(), always)
			}
			one.secondTo, one.secondSince = first, now.Add(-test.secondFor)
			clock.SetTime(now)
			one.updateCandidacy(t.Context(), test.rank, test.isTakenByFirst, now)
			g.Expect(one.candidacy.releasing).To(Equal(test.givesUp))
			if test.givesUp {
				g.Eventually(released).WithTimeout(time.Minute).Should(BeClosed())
				one.updateCandidacy(t.Context(), test.rank, test.isTakenByFirst, now)
				// Then the first replica has its time to take the shard.
				one.set(false, clock.Now(), always)
				close(one.candidacy.ended)
				one.updateCandidacy(t.Context(), test.rank, test.isTakenByFirst, now.Add(takePeriod-1))
				g.Expect(one.candidacy).To(BeNil())
			}
		})
	}
}

// A replica becomes a candidate by its rank and the time since it got the rank.
func TestBecomingACandidate(t *testing.T) {
	now := time.Unix(1_000_000, 0)
	for name, test := range map[string]struct {
		rank           rank
		isTakenByFirst bool
		// after is how long this replica has had the rank.
		after time.Duration
		want  bool
	}{
		"unwanted":                       {rank: rankUnwanted, after: time.Hour},
		"the first":                      {rank: rankFirst, want: true},
		"the second, at once":            {rank: rankSecond},
		"the second, later":              {rank: rankSecond, after: takePeriod, want: true},
		"the second, a moment too early": {rank: rankSecond, after: takePeriod - 1},
		"the second, when it is taken":   {rank: rankSecond, isTakenByFirst: true, want: true},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSolo(clocktesting.NewFakeClock(now))
			one := s.all[5]
			s.assignment.first[5] = "b"
			one.updateCandidacy(t.Context(), test.rank, false, now)
			if one.candidacy == nil {
				one.updateCandidacy(t.Context(), test.rank, test.isTakenByFirst, now.Add(test.after))
			}
			if got := one.candidacy != nil; got != test.want {
				t.Errorf("it is a candidate: %t", got)
			}
			if one.candidacy != nil {
				one.candidacy.release()
				<-one.candidacy.ended
			}
		})
	}
}

// While the leader works for all SyncTargets, no replica holds a part of them. If the request fails, the last answer counts.
// A replica that has no list of live replicas changes nothing.
func TestShardsAreGivenUpWhenTheLeaderWorksForAll(t *testing.T) {
	g := NewWithT(t)
	s := newSolo(clocktesting.NewFakeClock(time.Unix(1_000_000, 0)))
	var released [Count]chan struct{}
	for number, one := range s.all {
		one.candidacy, released[number] = runningCandidacy(one)
	}
	releasing := func() (count int) {
		for _, one := range s.all {
			if one.candidacy.releasing {
				count++
			}
		}
		return count
	}
	s.balance(t.Context())
	g.Expect(releasing()).To(BeZero())
	s.divides, s.unknown = false, true
	s.balance(t.Context())
	g.Expect(releasing()).To(BeZero(), "the leader's state is unknown")
	s.unknown, s.live = false, nil
	s.balance(t.Context())
	g.Expect(releasing()).To(BeZero(), "the live replicas are unknown")
	s.live = []string{"a"}
	s.balance(t.Context())
	g.Expect(releasing()).To(Equal(Count))
	for number := range released {
		g.Eventually(released[number]).WithTimeout(time.Minute).Should(BeClosed())
	}
}

// A replica that ends releases all shards, and does not wait forever for work that does not stop.
func TestAReplicaThatEndsReleasesItsShards(t *testing.T) {
	g := NewWithT(t)
	clock := clocktesting.NewFakeClock(time.Unix(1_000_000, 0))
	s := newSolo(clock)
	ctx, cancel := context.WithCancel(t.Context())
	stops, hangs := make(chan struct{}), make(chan struct{})
	end := make(chan struct{})
	s.all[1].candidacy = &candidacy{of: s.all[1], release: func() { close(stops) }, ended: end}
	s.all[2].candidacy = &candidacy{of: s.all[2], release: func() { close(hangs) }, ended: make(chan struct{})}
	close(end)
	cancel()
	ended := make(chan struct{})
	go func() { defer close(ended); _ = s.Start(ctx) }()
	for _, released := range []chan struct{}{stops, hangs} {
		g.Eventually(released).WithTimeout(time.Minute).Should(BeClosed())
	}
	g.Eventually(func() int { return clock.Waiters() }).WithTimeout(time.Minute).Should(Equal(2), "the ticker, and the end")
	g.Expect(ended).NotTo(BeClosed())
	clock.Step(releaseTimeout)
	g.Eventually(ended).WithTimeout(time.Minute).Should(BeClosed())
}

// The second replica for a shard requests the Leases only while it waits. An error does not count as an answer.
func TestTakenByFirst(t *testing.T) {
	g := NewWithT(t)
	now := time.Unix(1_000_000, 0)
	s := newSolo(clocktesting.NewFakeClock(now))
	for number := range s.assignment.first {
		s.assignment.first[number] = "b"
	}
	for number, holder := range map[int]string{4: "b", 5: "c"} {
		lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: "hub", Name: leaseName(number)}, Spec: coordinationv1.LeaseSpec{HolderIdentity: &holder}}
		g.Expect(s.client.Tracker().Add(lease)).To(Succeed())
	}
	var ranks [Count]rank
	for number := range ranks {
		ranks[number] = rankFirst
	}
	g.Expect(s.takenByFirst(t.Context(), ranks, now)).To(Equal([Count]bool{}))
	g.Expect(s.client.Actions()).To(BeEmpty())
	ranks[4], ranks[5], ranks[6] = rankSecond, rankSecond, rankSecond
	taken := s.takenByFirst(t.Context(), ranks, now)
	g.Expect([]bool{taken[4], taken[5], taken[6]}).To(Equal([]bool{true, false, false}))
	s.client.PrependReactor("list", "leases", func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, errors.New("no route") })
	g.Expect(s.takenByFirst(t.Context(), ranks, now)).To(Equal([Count]bool{}))
}
