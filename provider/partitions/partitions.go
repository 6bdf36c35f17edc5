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

package partitions

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
	// leasePrefix begins the name of the Lease of each partition.
	leasePrefix = "synchub-partition"
	// balanceInterval is how often a replica looks which partitions it should hold.
	balanceInterval = 2 * time.Second
	// takePeriod is how long the second replica for a partition leaves it to the first, since the work for the partition may take [releaseTimeout] to stop before its Lease is released.
	takePeriod = 20 * time.Second
	// settlePeriod is how long a replica that has ended may seem to live: its announcement counts for 30 s after it was seen, up to 10 s
	// late if clocks differ, and is read every 10 s.
	settlePeriod = 55 * time.Second
	// releaseTimeout bounds how long a replica that ends waits for its work to stop, before it releases the Leases.
	releaseTimeout = 15 * time.Second
)

// Options configure [Partitions].
type Options struct {
	// Leases are those of the hosting cluster, in the Namespace.
	Leases    coordinationv1client.LeasesGetter
	Namespace string
	// Watcher watches these Leases.
	Watcher *leases.Watcher
	// Replica is the name of this replica. Living returns the names of all that reach kcp, with this one; none before they are known.
	Replica string
	Living  func() []string
	// LeaderDivides reports whether the leader of the hub divides SyncTargets too. While it does not, because replicas are being replaced by
	// those with another setting, this replica holds nothing. After an error the last answer counts.
	LeaderDivides func(ctx context.Context) (bool, error)
	// LeaseDuration, RenewDeadline and RenewPeriod are those of the Leases. Writes for a partition pass until the renew deadline.
	LeaseDuration, RenewDeadline, RenewPeriod time.Duration
	// Stop ends all work for the SyncTargets of a partition, and returns when nothing more is written for them.
	Stop func(partition int)
	// OnChange is called after this replica has got or lost a partition. It must not block.
	OnChange func(partition int)
	Clock    clock.WithTicker
	Log      logr.Logger
}

// Partitions holds a share of all partitions. It runs on each replica.
type Partitions struct {
	Options
	all [Count]*partition
	// leaderDivides is the last answer of LeaderDivides. Only the goroutine of Start uses it.
	leaderDivides bool
	// division is that among the living. Only the goroutine of Start uses both.
	living   []string
	division division
	// take is [takePeriod], and settle is [settlePeriod], except in tests.
	take, settle time.Duration
}

// New returns Partitions that hold none yet.
func New(options Options) *Partitions {
	p := &Partitions{Options: options, take: takePeriod, settle: settlePeriod}
	for number := range p.all {
		p.all[number] = &partition{number: number, fence: fence.New(options.Clock), owner: p}
	}
	return p
}

// NeedLeaderElection returns false: partitions have Leases of their own.
func (p *Partitions) NeedLeaderElection() bool { return false }

// Holds reports whether this replica works for a SyncTarget.
func (p *Partitions) Holds(syncTarget types.UID) bool { return p.all[Of(syncTarget)].isHeld() }

// Fence returns the fence of writes for a SyncTarget.
func (p *Partitions) Fence(syncTarget types.UID) *fence.Fence { return p.all[Of(syncTarget)].fence }

// Start takes and releases partitions until ctx ends, and releases all of them then.
func (p *Partitions) Start(ctx context.Context) error {
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

func (p *Partitions) balance(ctx context.Context) {
	living := p.Living()
	if len(living) == 0 || ctx.Err() != nil {
		return
	}
	p.observeLeader(ctx)
	if slices.Sort(living); !slices.Equal(living, p.living) {
		p.living, p.division = living, divide(living)
	}
	now := p.Clock.Now()
	var ranks [Count]rank
	for number := range ranks {
		ranks[number] = rankUnwanted
		if p.leaderDivides {
			ranks[number] = p.division.rank(number, p.Replica)
		}
	}
	taken := p.takenByFirst(ctx, ranks, now)
	for _, one := range p.all {
		one.follow(ctx, ranks[one.number], taken[one.number], now)
	}
}

// takenByFirst reports which partitions the first replica has taken, of those for which this one is the second and waits for that. It asks for
// the Leases only if there are such partitions, which is for some seconds after a replica has come or gone. An error is repeated soon, and the
// partitions can be taken after [takePeriod] in any case.
func (p *Partitions) takenByFirst(ctx context.Context, ranks [Count]rank, now time.Time) (taken [Count]bool) {
	if !slices.ContainsFunc(p.all[:], func(one *partition) bool { return ranks[one.number] == rankSecond && !one.mayTakeAsSecond(now) }) {
		return taken
	}
	ctx, cancel := context.WithTimeout(ctx, balanceInterval)
	defer cancel()
	found, err := p.Leases.Leases(p.Namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		p.Log.V(1).Info("cannot find out which partitions are taken", "error", err.Error())
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

// leaseName is the name of the Lease of a partition.
func leaseName(number int) string { return fmt.Sprintf("%s-%02d", leasePrefix, number) }

// observeLeader reads whether the leader divides SyncTargets.
func (p *Partitions) observeLeader(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, balanceInterval)
	defer cancel()
	divides, err := p.LeaderDivides(ctx)
	if err != nil {
		p.Log.V(1).Info("cannot read whether the leader divides SyncTargets", "error", err.Error())
		return
	}
	if divides != p.leaderDivides {
		p.Log.Info("the leader's setting for dividing SyncTargets changed", "dividesSyncTargets", divides)
	}
	p.leaderDivides = divides
}

func (p *Partitions) releaseAll() {
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
		p.Log.Info("work has not stopped in time, so the Leases of partitions are left to expire", "timeout", releaseTimeout)
	}
}

// partition is one partition, as this replica sees it.
type partition struct {
	number int
	fence  *fence.Fence
	owner  *Partitions

	// candidacy is nil while this replica does not want the partition. Only the goroutine of Start uses it, secondTo and secondSince.
	candidacy *candidacy
	// secondTo is the first replica while this one is the second; else empty. secondSince is when that began, or [takePeriod] ago if the
	// first has taken the partition.
	secondTo    string
	secondSince time.Time

	lock  sync.Mutex
	held  bool
	since time.Time
}

func (p *partition) isHeld() bool {
	p.lock.Lock()
	defer p.lock.Unlock()
	return p.held
}

// heldFor returns for how long this replica has held the partition; zero if it does not.
func (p *partition) heldFor(now time.Time) time.Duration {
	p.lock.Lock()
	defer p.lock.Unlock()
	if !p.held {
		return 0
	}
	return now.Sub(p.since)
}

// mayTakeAsSecond reports whether this replica may take the partition as the second: the first has taken it, or has had the time to.
func (p *partition) mayTakeAsSecond(now time.Time) bool {
	return p.secondTo != "" && now.Sub(p.secondSince) >= p.owner.take
}

// observeFirst updates secondTo and secondSince.
func (p *partition) observeFirst(own rank, isTakenByFirst bool, now time.Time) {
	switch first := p.owner.division.first[p.number]; {
	case own != rankSecond:
		p.secondTo, p.secondSince = "", time.Time{}
	case isTakenByFirst:
		p.secondTo, p.secondSince = first, now.Add(-p.owner.take)
	case p.secondTo != first:
		p.secondTo, p.secondSince = first, now
	}
}

// follow starts or ends this replica's candidacy, by its rank. The first is always a candidate. The second becomes one when the first has
// taken the partition, or had [takePeriod] to do so: then the Lease tells it at once that the first has ended. A holder that is not the first
// gives the partition up after [settlePeriod]: if the first is still listed then, it lives.
func (p *partition) follow(ctx context.Context, own rank, isTakenByFirst bool, now time.Time) {
	if p.candidacy != nil && p.candidacy.hasEnded() {
		p.candidacy = nil
	}
	p.observeFirst(own, isTakenByFirst, now)
	if own == rankUnwanted && p.candidacy != nil {
		p.giveUp()
		return
	}
	wants := own == rankFirst || own == rankSecond && p.mayTakeAsSecond(now)
	held := p.heldFor(now)
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
func (p *partition) giveUp() {
	if !p.candidacy.releasing {
		p.candidacy.releasing = true
		go p.candidacy.release()
	}
}

// set notes whether this replica holds the partition, and reports whether that has changed. isValid is asked under the lock.
func (p *partition) set(isHeld bool, isValid func() bool) (changed bool) {
	p.lock.Lock()
	defer p.lock.Unlock()
	if p.held == isHeld || !isValid() {
		return false
	}
	p.held, p.since = isHeld, p.owner.Clock.Now()
	if isHeld {
		heldPartitions.Inc()
	} else {
		heldPartitions.Dec()
	}
	return true
}

// candidacy is one leader election in which this replica takes part, from its beginning to its end.
type candidacy struct {
	of *partition
	// release gives the partition up. releasing is true once the goroutine of Start has caused that.
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

// newCandidacy starts to try to get a partition, until it is released. It outlives ctx, so that work can stop before the Lease is released.
func (p *Partitions) newCandidacy(ctx context.Context, of *partition) *candidacy {
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
			p.Log.Error(err, "cannot take part in the election for a partition", "partition", of.number)
			return
		}
		elector.Run(ctx)
	}()
	return c
}

// win notes that this replica holds the partition. The election calls it in a goroutine of its own, perhaps only after the partition was lost.
func (c *candidacy) win(ctx context.Context) {
	if c.of.set(true, func() bool { return ctx.Err() == nil }) {
		c.of.owner.Log.Info("holds a partition", "partition", c.of.number)
		c.of.owner.OnChange(c.of.number)
	}
}

// lose notes that this replica does not hold the partition, and stops the work for it. The fence closes by itself, or by the release of the
// Lease.
func (c *candidacy) lose() {
	if c.of.set(false, func() bool { return true }) {
		c.of.owner.Log.Info("no longer holds a partition", "partition", c.of.number)
		c.of.owner.Stop(c.of.number)
		c.of.owner.OnChange(c.of.number)
	}
}
