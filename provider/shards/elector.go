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
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	coordinationv1client "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"

	configv1alpha1 "github.com/synchub-dev/synchub/apis/config/v1alpha1"
	"github.com/synchub-dev/synchub/provider/leases"
)

const (
	// leasePrefix begins the name of the Lease of each shard.
	leasePrefix = "synchub-shard"
	// balanceInterval is how often a replica computes which shards it should hold.
	balanceInterval = 2 * time.Second
	// takePeriod is how long the second replica for a shard leaves the shard to the first, since the work for the shard may
	// take [releaseTimeout] to stop before its Lease is released.
	takePeriod = 20 * time.Second
	// settlePeriod is how long a replica that has ended may seem to be alive: its announcement counts for 30 s after it was
	// seen, up to 10 s late if clocks differ, and is read every 10 s.
	settlePeriod = 55 * time.Second
	// releaseTimeout bounds how long a replica that ends waits for its work to stop, before it releases the Leases.
	releaseTimeout = 15 * time.Second
)

// Options configure an [Elector].
type Options struct {
	// Leases is the client for the Leases of the hosting cluster.
	Leases coordinationv1client.LeasesGetter
	// Watcher watches these Leases.
	Watcher *leases.Watcher
	// Replica is the name of this replica. LiveReplicas returns the names of all replicas that reach kcp, including this one;
	// none before they are known.
	Replica      string
	LiveReplicas func() []string
	// LeaderShards reports whether the leader of the hub shards SyncTargets too. While it does not, because replicas are
	// being replaced by replicas with another setting, this replica holds no shard. After an error the last answer counts.
	LeaderShards func(ctx context.Context) (bool, error)
	// Settings are the settings of the Leases. Writes for a shard pass until the renew deadline.
	Settings configv1alpha1.LeaderElectionConfiguration
	// Stop ends all work for the SyncTargets of a shard, and returns when nothing more is written for them.
	Stop  func(shard int)
	Clock clock.WithTicker
	Log   logr.Logger
}

// Elector acquires and releases [Shards], so that this replica owns its share of them. It runs on each replica.
type Elector struct {
	Options
	owned *Shards
	all   [Count]*candidate
	// leaderShards is the last answer of LeaderShards. Only the goroutine of Start uses it.
	leaderShards bool
	// assignment is the assignment among the live replicas. Only the goroutine of Start uses both.
	live       []string
	assignment assignment
	// take is [takePeriod], and settle is [settlePeriod], except in tests.
	take, settle time.Duration
}

// NewElector returns an elector that changes which shards this replica owns.
func NewElector(owned *Shards, options Options) *Elector {
	e := &Elector{Options: options, owned: owned, take: takePeriod, settle: settlePeriod}
	for number := range e.all {
		e.all[number] = &candidate{shard: owned.all[number], elector: e}
	}
	return e
}

// NeedLeaderElection returns false: shards have Leases of their own.
func (e *Elector) NeedLeaderElection() bool { return false }

// Start takes and releases shards until ctx ends, and releases all of them then.
func (e *Elector) Start(ctx context.Context) error {
	ticker := e.Clock.NewTicker(balanceInterval)
	defer ticker.Stop()
	for {
		e.balance(ctx)
		select {
		case <-ctx.Done():
			e.releaseAll()
			return nil
		case <-ticker.C():
		}
	}
}

func (e *Elector) balance(ctx context.Context) {
	live := e.LiveReplicas()
	if len(live) == 0 || ctx.Err() != nil {
		return
	}
	e.readLeader(ctx)
	if slices.Sort(live); !slices.Equal(live, e.live) {
		e.live, e.assignment = live, assign(live)
	}
	now := e.Clock.Now()
	var ranks [Count]rank
	for number := range ranks {
		ranks[number] = rankUnwanted
		if e.leaderShards {
			ranks[number] = e.assignment.rank(number, e.Replica)
		}
	}
	taken := e.takenByFirst(ctx, ranks, now)
	for _, one := range e.all {
		one.updateCandidacy(ctx, ranks[one.number], taken[one.number], now)
	}
}

// takenByFirst reports which shards the first replica has taken, among the shards for which this replica is the second and
// waits. It requests the Leases only if there are such shards, which is for some seconds after a replica was added or
// removed. It retries soon after an error, and the shards can be taken after [takePeriod] in any case.
func (e *Elector) takenByFirst(ctx context.Context, ranks [Count]rank, now time.Time) (taken [Count]bool) {
	if !slices.ContainsFunc(e.all[:], func(one *candidate) bool { return ranks[one.number] == rankSecond && !one.mayTakeAsSecond(now) }) {
		return taken
	}
	ctx, cancel := context.WithTimeout(ctx, balanceInterval)
	defer cancel()
	found, err := e.Leases.Leases(e.Settings.Namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		e.Log.V(1).Info("cannot find out which shards are taken", "error", err.Error())
		return taken
	}
	holders := make(map[string]string, len(found.Items))
	for i := range found.Items {
		holders[found.Items[i].Name] = ptr.Deref(found.Items[i].Spec.HolderIdentity, "")
	}
	for number, first := range e.assignment.first {
		taken[number] = holders[leaseName(number)] == first
	}
	return taken
}

// leaseName is the name of the Lease of a shard.
func leaseName(number int) string { return fmt.Sprintf("%s-%02d", leasePrefix, number) }

// readLeader reads whether the leader shards SyncTargets.
func (e *Elector) readLeader(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, balanceInterval)
	defer cancel()
	divides, err := e.LeaderShards(ctx)
	if err != nil {
		e.Log.V(1).Info("cannot read whether the leader shards SyncTargets", "error", err.Error())
		return
	}
	if divides != e.leaderShards {
		e.Log.Info("the leader's setting for sharding SyncTargets changed", "shardsSyncTargets", divides)
	}
	e.leaderShards = divides
}

func (e *Elector) releaseAll() {
	var releasing sync.WaitGroup
	for _, one := range e.all {
		if c := one.candidacy; c != nil {
			releasing.Go(func() { c.release(); <-c.ended })
		}
	}
	released := make(chan struct{})
	go func() { releasing.Wait(); close(released) }()
	select {
	case <-released:
	case <-e.Clock.After(releaseTimeout):
		e.Log.Info("work has not stopped in time, so the Leases of shards are left to expire", "timeout", releaseTimeout)
	}
}

// candidate decides whether this replica takes part in the election for one shard.
type candidate struct {
	*shard
	elector *Elector

	// candidacy is nil while this replica does not want the shard. Only the goroutine of Start uses candidacy, secondTo and
	// secondSince.
	candidacy *candidacy
	// secondTo is the first replica while this one is the second; else empty. secondSince is when that began, or [takePeriod] ago if the
	// first has taken the shard.
	secondTo    string
	secondSince time.Time
}

// mayTakeAsSecond reports whether this replica may take the shard as the second: the first has taken it, or has had the time to.
func (c *candidate) mayTakeAsSecond(now time.Time) bool {
	return c.secondTo != "" && now.Sub(c.secondSince) >= c.elector.take
}

// recordFirst updates secondTo and secondSince.
func (c *candidate) recordFirst(own rank, isTakenByFirst bool, now time.Time) {
	switch first := c.elector.assignment.first[c.number]; {
	case own != rankSecond:
		c.secondTo, c.secondSince = "", time.Time{}
	case isTakenByFirst:
		c.secondTo, c.secondSince = first, now.Add(-c.elector.take)
	case c.secondTo != first:
		c.secondTo, c.secondSince = first, now
	}
}

// updateCandidacy starts or ends this replica's candidacy, by its rank. The first is always a candidate. The second becomes one when
// the first has taken the shard, or had [takePeriod] to do so: from then on the Lease shows at once that the first has ended.
// An owner that is not the first gives the shard up after [settlePeriod]: if the first is still listed then, it is alive.
func (c *candidate) updateCandidacy(ctx context.Context, own rank, isTakenByFirst bool, now time.Time) {
	if c.candidacy != nil && c.candidacy.hasEnded() {
		c.candidacy = nil
	}
	c.recordFirst(own, isTakenByFirst, now)
	if own == rankUnwanted && c.candidacy != nil {
		c.giveUp()
		return
	}
	wants := own == rankFirst || own == rankSecond && c.mayTakeAsSecond(now)
	held := c.ownedFor(now)
	switch {
	case c.candidacy == nil && wants:
		c.candidacy = c.elector.newCandidacy(ctx, c)
	case c.candidacy == nil || own == rankFirst:
	case held >= c.elector.settle, held == 0 && !wants:
		c.secondSince = now
		c.giveUp()
	}
}

// giveUp stops the work and releases the Lease, in the background. There is a candidacy.
func (c *candidate) giveUp() {
	if !c.candidacy.releasing {
		c.candidacy.releasing = true
		go c.candidacy.release()
	}
}

// candidacy is one leader election in which this replica takes part, from its beginning to its end.
type candidacy struct {
	of *candidate
	// release gives the shard up. releasing is true once the goroutine of Start has caused that.
	release   func()
	releasing bool
	ended     chan struct{}
}

func (c *candidacy) hasEnded() bool {
	select {
	case <-c.ended:
		return true
	default:
		return false
	}
}

// newCandidacy starts to try to get a shard, until it is released. It outlives ctx, so that work can stop before the Lease is released.
func (e *Elector) newCandidacy(ctx context.Context, of *candidate) *candidacy {
	ctx, cancel := context.WithCancel(klog.NewContext(context.WithoutCancel(ctx), e.Log.V(1)))
	c := &candidacy{of: of, ended: make(chan struct{})}
	c.release = sync.OnceFunc(func() {
		c.lose()
		cancel()
	})
	lease, renew, retry := e.Settings.LeaseDuration.Duration, e.Settings.RenewDeadline.Duration, e.Settings.RetryPeriod.Duration
	go func() {
		defer close(c.ended)
		defer cancel()
		lock := of.fence.Lock(&resourcelock.LeaseLock{
			LeaseMeta:  metav1.ObjectMeta{Namespace: e.Settings.Namespace, Name: leaseName(of.number)},
			Client:     e.Leases,
			LockConfig: resourcelock.ResourceLockConfig{Identity: e.Replica},
		}, renew)
		electionDeadline, tryPeriod := leases.Timing(renew, retry)
		elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
			Lock:          e.Watcher.Lock(lock, leaseName(of.number), retry),
			LeaseDuration: lease, RenewDeadline: electionDeadline, RetryPeriod: tryPeriod, ReleaseOnCancel: true,
			Callbacks: leaderelection.LeaderCallbacks{OnStartedLeading: c.win, OnStoppedLeading: c.lose},
		})
		if err != nil {
			// The settings are validated at the start.
			e.Log.Error(err, "cannot take part in the election for a shard", "shard", of.number)
			return
		}
		elector.Run(ctx)
	}()
	return c
}

// win records that this replica holds the shard. The election calls it in a separate goroutine, perhaps only after the shard was
// lost.
func (c *candidacy) win(ctx context.Context) {
	if elector := c.of.elector; c.of.set(true, elector.Clock.Now(), func() bool { return ctx.Err() == nil }) {
		elector.Log.Info("holds a shard", "shard", c.of.number)
		elector.owned.Changed.Publish(SetOf(c.of.number))
	}
}

// lose records that this replica does not hold the shard, and stops the work for it. The fence closes at its deadline, or by the
// release of the Lease.
func (c *candidacy) lose() {
	if elector := c.of.elector; c.of.set(false, elector.Clock.Now(), func() bool { return true }) {
		elector.Log.Info("no longer holds a shard", "shard", c.of.number)
		elector.Stop(c.of.number)
		elector.owned.Changed.Publish(SetOf(c.of.number))
	}
}
