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
	"k8s.io/apimachinery/pkg/types"
	coordinationv1client "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"

	"github.com/synchub-dev/synchub/provider/fence"
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

// Options configure [Shards].
type Options struct {
	// Leases is the client for the Leases of the hosting cluster, in the Namespace.
	Leases    coordinationv1client.LeasesGetter
	Namespace string
	// Watcher watches these Leases.
	Watcher *leases.Watcher
	// Replica is the name of this replica. LiveReplicas returns the names of all replicas that reach kcp, including this one;
	// none before they are known.
	Replica      string
	LiveReplicas func() []string
	// LeaderShards reports whether the leader of the hub shards SyncTargets too. While it does not, because replicas are
	// being replaced by replicas with another setting, this replica holds no shard. After an error the last answer counts.
	LeaderShards func(ctx context.Context) (bool, error)
	// LeaseDuration, RenewDeadline and RenewPeriod are the settings of the Leases. Writes for a shard pass until the renew
	// deadline.
	LeaseDuration, RenewDeadline, RenewPeriod time.Duration
	// Stop ends all work for the SyncTargets of a shard, and returns when nothing more is written for them.
	Stop func(shard int)
	// OnChange is called after this replica has got or lost a shard. It must not block.
	OnChange func(shard int)
	Clock    clock.WithTicker
	Log      logr.Logger
}

// Shards holds a share of all shards. It runs on each replica.
type Shards struct {
	Options
	all [Count]*shard
	// leaderShards is the last answer of LeaderShards. Only the goroutine of Start uses it.
	leaderShards bool
	// division is the division among the live replicas. Only the goroutine of Start uses both.
	live     []string
	division division
	// take is [takePeriod], and settle is [settlePeriod], except in tests.
	take, settle time.Duration
}

// New returns Shards that hold none yet.
func New(options Options) *Shards {
	p := &Shards{Options: options, take: takePeriod, settle: settlePeriod}
	for number := range p.all {
		p.all[number] = &shard{number: number, fence: fence.New(options.Clock), owner: p}
	}
	return p
}

// NeedLeaderElection returns false: shards have Leases of their own.
func (p *Shards) NeedLeaderElection() bool { return false }

// Owns reports whether this replica works for a SyncTarget.
func (p *Shards) Owns(syncTarget types.UID) bool { return p.all[Of(syncTarget)].isOwned() }

// Fence returns the fence of writes for a SyncTarget.
func (p *Shards) Fence(syncTarget types.UID) *fence.Fence { return p.all[Of(syncTarget)].fence }

// Start takes and releases shards until ctx ends, and releases all of them then.
func (p *Shards) Start(ctx context.Context) error {
	ticker := p.Clock.NewTicker(balanceInterval)
	defer ticker.Stop()
	for {
		p.balance(ctx)
		select {
		case <-ctx.Done():
			p.releaseAll()
			return nil
		case <-ticker.C():
		}
	}
}

func (p *Shards) balance(ctx context.Context) {
	live := p.LiveReplicas()
	if len(live) == 0 || ctx.Err() != nil {
		return
	}
	p.observeLeader(ctx)
	if slices.Sort(live); !slices.Equal(live, p.live) {
		p.live, p.division = live, divide(live)
	}
	now := p.Clock.Now()
	var ranks [Count]rank
	for number := range ranks {
		ranks[number] = rankUnwanted
		if p.leaderShards {
			ranks[number] = p.division.rank(number, p.Replica)
		}
	}
	taken := p.takenByFirst(ctx, ranks, now)
	for _, one := range p.all {
		one.follow(ctx, ranks[one.number], taken[one.number], now)
	}
}

// takenByFirst reports which shards the first replica has taken, among the shards for which this replica is the second and
// waits. It requests the Leases only if there are such shards, which is for some seconds after a replica was added or
// removed. It retries soon after an error, and the shards can be taken after [takePeriod] in any case.
func (p *Shards) takenByFirst(ctx context.Context, ranks [Count]rank, now time.Time) (taken [Count]bool) {
	if !slices.ContainsFunc(p.all[:], func(one *shard) bool { return ranks[one.number] == rankSecond && !one.mayTakeAsSecond(now) }) {
		return taken
	}
	ctx, cancel := context.WithTimeout(ctx, balanceInterval)
	defer cancel()
	found, err := p.Leases.Leases(p.Namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		p.Log.V(1).Info("cannot find out which shards are taken", "error", err.Error())
		return taken
	}
	holders := make(map[string]string, len(found.Items))
	for i := range found.Items {
		holders[found.Items[i].Name] = ptr.Deref(found.Items[i].Spec.HolderIdentity, "")
	}
	for number, first := range p.division.first {
		taken[number] = holders[leaseName(number)] == first
	}
	return taken
}

// leaseName is the name of the Lease of a shard.
func leaseName(number int) string { return fmt.Sprintf("%s-%02d", leasePrefix, number) }

// observeLeader reads whether the leader shards SyncTargets.
func (p *Shards) observeLeader(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, balanceInterval)
	defer cancel()
	divides, err := p.LeaderShards(ctx)
	if err != nil {
		p.Log.V(1).Info("cannot read whether the leader shards SyncTargets", "error", err.Error())
		return
	}
	if divides != p.leaderShards {
		p.Log.Info("the leader's setting for sharding SyncTargets changed", "shardsSyncTargets", divides)
	}
	p.leaderShards = divides
}

func (p *Shards) releaseAll() {
	var releasing sync.WaitGroup
	for _, one := range p.all {
		if c := one.candidacy; c != nil {
			releasing.Go(func() { c.release(); <-c.ended })
		}
	}
	released := make(chan struct{})
	go func() { releasing.Wait(); close(released) }()
	select {
	case <-released:
	case <-p.Clock.After(releaseTimeout):
		p.Log.Info("work has not stopped in time, so the Leases of shards are left to expire", "timeout", releaseTimeout)
	}
}

// shard is this replica's state of one shard.
type shard struct {
	number int
	fence  *fence.Fence
	owner  *Shards

	// candidacy is nil while this replica does not want the shard. Only the goroutine of Start uses candidacy, secondTo and
	// secondSince.
	candidacy *candidacy
	// secondTo is the first replica while this one is the second; else empty. secondSince is when that began, or [takePeriod] ago if the
	// first has taken the shard.
	secondTo    string
	secondSince time.Time

	lock  sync.Mutex
	held  bool
	since time.Time
}

func (p *shard) isOwned() bool {
	p.lock.Lock()
	defer p.lock.Unlock()
	return p.held
}

// ownedFor returns for how long this replica has held the shard; zero if it does not.
func (p *shard) ownedFor(now time.Time) time.Duration {
	p.lock.Lock()
	defer p.lock.Unlock()
	if !p.held {
		return 0
	}
	return now.Sub(p.since)
}

// mayTakeAsSecond reports whether this replica may take the shard as the second: the first has taken it, or has had the time to.
func (p *shard) mayTakeAsSecond(now time.Time) bool {
	return p.secondTo != "" && now.Sub(p.secondSince) >= p.owner.take
}

// observeFirst updates secondTo and secondSince.
func (p *shard) observeFirst(own rank, isTakenByFirst bool, now time.Time) {
	switch first := p.owner.division.first[p.number]; {
	case own != rankSecond:
		p.secondTo, p.secondSince = "", time.Time{}
	case isTakenByFirst:
		p.secondTo, p.secondSince = first, now.Add(-p.owner.take)
	case p.secondTo != first:
		p.secondTo, p.secondSince = first, now
	}
}

// follow starts or ends this replica's candidacy, by its rank. The first is always a candidate. The second becomes one when
// the first has taken the shard, or had [takePeriod] to do so: from then on the Lease shows at once that the first has ended.
// An owner that is not the first gives the shard up after [settlePeriod]: if the first is still listed then, it is alive.
func (p *shard) follow(ctx context.Context, own rank, isTakenByFirst bool, now time.Time) {
	if p.candidacy != nil && p.candidacy.hasEnded() {
		p.candidacy = nil
	}
	p.observeFirst(own, isTakenByFirst, now)
	if own == rankUnwanted && p.candidacy != nil {
		p.giveUp()
		return
	}
	wants := own == rankFirst || own == rankSecond && p.mayTakeAsSecond(now)
	held := p.ownedFor(now)
	switch {
	case p.candidacy == nil && wants:
		p.candidacy = p.owner.newCandidacy(ctx, p)
	case p.candidacy == nil || own == rankFirst:
	case held >= p.owner.settle, held == 0 && !wants:
		p.secondSince = now
		p.giveUp()
	}
}

// giveUp stops the work and releases the Lease, in the background. There is a candidacy.
func (p *shard) giveUp() {
	if !p.candidacy.releasing {
		p.candidacy.releasing = true
		go p.candidacy.release()
	}
}

// set records whether this replica holds the shard, and reports whether that has changed. It calls isValid under the lock.
func (p *shard) set(isOwned bool, isValid func() bool) (changed bool) {
	p.lock.Lock()
	defer p.lock.Unlock()
	if p.held == isOwned || !isValid() {
		return false
	}
	p.held, p.since = isOwned, p.owner.Clock.Now()
	if isOwned {
		ownedShards.Inc()
	} else {
		ownedShards.Dec()
	}
	return true
}

// candidacy is one leader election in which this replica takes part, from its beginning to its end.
type candidacy struct {
	of *shard
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
func (p *Shards) newCandidacy(ctx context.Context, of *shard) *candidacy {
	ctx, cancel := context.WithCancel(klog.NewContext(context.WithoutCancel(ctx), p.Log.V(1)))
	c := &candidacy{of: of, ended: make(chan struct{})}
	c.release = sync.OnceFunc(func() {
		c.lose()
		cancel()
	})
	go func() {
		defer close(c.ended)
		defer cancel()
		lock := of.fence.Lock(&resourcelock.LeaseLock{
			LeaseMeta:  metav1.ObjectMeta{Namespace: p.Namespace, Name: leaseName(of.number)},
			Client:     p.Leases,
			LockConfig: resourcelock.ResourceLockConfig{Identity: p.Replica},
		}, p.RenewDeadline)
		electionDeadline, tryPeriod := leases.Timing(p.RenewDeadline, p.RenewPeriod)
		elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
			Lock:          p.Watcher.Lock(lock, leaseName(of.number), p.RenewPeriod),
			LeaseDuration: p.LeaseDuration, RenewDeadline: electionDeadline, RetryPeriod: tryPeriod, ReleaseOnCancel: true,
			Callbacks: leaderelection.LeaderCallbacks{OnStartedLeading: c.win, OnStoppedLeading: c.lose},
		})
		if err != nil {
			// The settings are validated at the start.
			p.Log.Error(err, "cannot take part in the election for a shard", "shard", of.number)
			return
		}
		elector.Run(ctx)
	}()
	return c
}

// win records that this replica holds the shard. The election calls it in a separate goroutine, perhaps only after the shard was
// lost.
func (c *candidacy) win(ctx context.Context) {
	if c.of.set(true, func() bool { return ctx.Err() == nil }) {
		c.of.owner.Log.Info("holds a shard", "shard", c.of.number)
		c.of.owner.OnChange(c.of.number)
	}
}

// lose records that this replica does not hold the shard, and stops the work for it. The fence closes at its deadline, or by the
// release of the Lease.
func (c *candidacy) lose() {
	if c.of.set(false, func() bool { return true }) {
		c.of.owner.Log.Info("no longer holds a shard", "shard", c.of.number)
		c.of.owner.Stop(c.of.number)
		c.of.owner.OnChange(c.of.number)
	}
}
