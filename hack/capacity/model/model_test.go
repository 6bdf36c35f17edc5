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

package model

import (
	"errors"
	"math"
	"math/rand/v2"
	"testing"

	"synchub.dev/hack/capacity/spread"
)

// even divides without a remainder of luck.
type even struct{}

func (even) Divide(syncTargets, replicas int) spread.Load {
	each := func(replicas int) int { return (syncTargets + replicas - 1) / replicas }
	return spread.Load{Largest: each(replicas), AfterLoss: each(max(1, replicas-1)), Moved: each(replicas + 1)}
}

// uneven gives one replica everything that it can.
type uneven struct{}

func (uneven) Divide(syncTargets, _ int) spread.Load {
	return spread.Load{Largest: syncTargets, AfterLoss: syncTargets}
}

// simple has costs that are easy to compute with.
func simple() Model {
	return Model{
		Costs: Costs{
			Process: 100 * mebi, Target: mebi, Pair: mebi / 10.0, Object: 8000, MailboxObject: 5000, Unselected: 1000,
			Large: 40 * 1_006_000, LargeCount: 40, Inventory: 1000,
			IdleCores: 0.03, IdleTargets: 300, Change: 1e-3, ServersChange: 4e-3, Decode: 10, Watch: 10,
			StartSmall: 2, StartSmallObjects: 1000, StartLarge: 11, StartLargeObjects: 10_000,
			Burst: 20, BurstObjects: 10_000, Fleet: 300, RestControl: 300, RestTarget: 1800, Mailboxes: 600, AtOnce: 10,
			KcpMemory: 600 * 10 * mebi, KcpMailboxes: 300, KcpTargets: 300, SeriesOfPair: 50, SeriesOfTarget: 20,
			QPS: 2000, QPSBurst: 4000, MaxObjects: 20_000, MaxBytes: 64 * mebi, MaxPerInventory: 1000,
		},
		Limits:      Limits{Etcd: 8 << 30, Compaction: 300, LeaseRenewal: 2},
		Assumptions: Assumptions{StoredOverhead: 1000, EtcdUsed: 0.5, ShardMemory: 10_000 * mebi, LimitStep: mebi, Margin: 0.25},
	}
}

func fleet(clusters, objects int) Fleet {
	return Fleet{Clusters: clusters, Objects: objects, ObjectBytes: SampleBytes, Selected: 1, Resources: 11, Edits: 10, StatusesPerEdit: 1}
}

func near(got, want float64) bool { return math.Abs(got-want) <= 1e-6*math.Abs(want)+1e-9 }

func TestOneActive(t *testing.T) {
	hub := simple().OneActive(fleet(300, 10_000))
	for _, c := range []struct {
		what      string
		got, want float64
	}{
		{"base", hub.Memory.Base, (100 + 300*2) * mebi},
		{"mailboxes", hub.Memory.Mailboxes, 50e6},
		{"targets", hub.Memory.Targets, 30e6},
		{"garbage", hub.Memory.Garbage, 80e6},
		{"limit", hub.Limit, math.Ceil((700*mebi+160e6)/0.9/mebi) * mebi},
		{"processors", hub.Cores, 0.03 + 20*1e-3},
		{"start", hub.Start, 11},
	} {
		if !near(c.got, c.want) {
			t.Errorf("%s %g, want %g", c.what, c.got, c.want)
		}
	}
	if hub.Replicas != 2 || hub.Targets != 300 || hub.Caches != (Caches{}) {
		t.Errorf("%d replicas with %d targets, caches %v", hub.Replicas, hub.Targets, hub.Caches)
	}
}

func TestObjectsOfOtherKinds(t *testing.T) {
	m := simple()
	small := m.OneActive(fleet(10, 10_000)).Memory
	unselected := fleet(10, 10_000)
	unselected.Selected = 0
	if got := m.OneActive(unselected).Memory; !near(got.Mailboxes, 10e6) || got.Targets != 0 {
		t.Errorf("objects that no config selects take %+v", got)
	}
	large := fleet(10, 10_000)
	large.ObjectBytes = SampleBytes + 1000
	// 40 objects of 1 MB take 1,006,000 bytes each, so each byte beyond 2 KB takes one.
	if got := m.OneActive(large).Memory; !near(got.Mailboxes, small.Mailboxes+10e6) || got.Targets != small.Targets {
		t.Errorf("larger objects take %+v, and small ones %+v", got, small)
	}
}

// An object is never cheaper than the knowledge that it exists.
func TestEmptyObjects(t *testing.T) {
	m := simple()
	m.MailboxObject = 2500
	f := fleet(10, 10_000)
	f.ObjectBytes = 0
	if got := m.OneActive(f).Memory.Mailboxes; !near(got, 10_000*m.Unselected) {
		t.Errorf("10,000 empty objects take %g", got)
	}
}

func TestCachesAreNamedWhenTheDefaultIsTooSmall(t *testing.T) {
	hub := simple().OneActive(fleet(1, 1_000_000))
	if want := roundUp(5e9*1.25, mebi); hub.Caches.Mailboxes != want {
		t.Errorf("mailboxes may take %g, want %g", hub.Caches.Mailboxes, want)
	}
	if hub.Caches.Targets != 0 {
		t.Errorf("targets may take %g: a quarter is enough for 3 of 16 GB", hub.Caches.Targets)
	}
}

func TestDivided(t *testing.T) {
	f, m := fleet(1000, 1_000_000), simple()
	replica := Replica{Memory: 8 << 30, Cores: 2}
	own, err := m.Divided(f, WatchOwn, replica, even{})
	if err != nil {
		t.Fatal(err)
	}
	if own.Limit > replica.Memory || own.Limit < own.Memory.Limit() {
		t.Errorf("its limit is %g, it takes %g of %g", own.Limit, own.Memory.Limit(), replica.Memory)
	}
	if fewer := m.DividedAmong(f, WatchOwn, own.Replicas-1, even{}); fewer.Limit <= replica.Memory {
		t.Errorf("%d replicas, and %d would be enough", own.Replicas, own.Replicas-1)
	}
	all := m.DividedAmong(f, HoldAll, own.Replicas, even{})
	if !near(all.Memory.Mailboxes, 5e9) || all.Memory.Targets != own.Memory.Targets {
		t.Errorf("each holds all mailboxes: %+v, its own: %+v", all.Memory, own.Memory)
	}
	dropping := m.DividedAmong(f, HoldOwn, own.Replicas, even{})
	if dropping.Memory != own.Memory || dropping.Cores <= own.Cores {
		t.Errorf("a replica that drops what others own needs %+v, one that does not read it %+v", dropping, own)
	}
}

func TestDividedDoesNotFit(t *testing.T) {
	f, m := fleet(1000, 1_000_000), simple()
	for name, c := range map[string]struct {
		reading Reading
		replica Replica
		divider Divider
	}{
		"all mailboxes are too much for each": {HoldAll, Replica{Memory: 4 << 30, Cores: 2}, even{}},
		"no processor":                        {WatchOwn, Replica{Memory: 1 << 40, Cores: 0}, even{}},
		"one has everything":                  {WatchOwn, Replica{Memory: 4 << 30, Cores: 2}, uneven{}},
	} {
		if hub, err := m.Divided(f, c.reading, c.replica, c.divider); !errors.Is(err, ErrNoFit) {
			t.Errorf("%s: %+v, %v", name, hub, err)
		}
	}
}

func TestKcp(t *testing.T) {
	f := fleet(1200, 2_000_000)
	f.Edits = 600
	k := simple().Kcp(f)
	// A status for each edit, and one of a config, of which 1,200 mailboxes have at most 240 a second.
	for _, c := range []struct {
		what      string
		got, want float64
	}{
		{"at rest", k.HubRest, 20},
		{"with edits", k.HubPeak, 20 + 600 + 240},
		{"writes", k.Writes, 1460},
		{"storage", k.Storage, 3000 * (2_000_000 + 1460*300)},
		{"memory", k.MailboxMemory, 12_000 * mebi},
		{"processors", k.Cores, 4.8},
		{"fast", k.MailboxesFast, 120},
		{"slow", k.MailboxesSlow, 2400},
		{"to an endpoint", k.EndpointRequests(f, Hub{Targets: 600}), 860 / 2.0 / 3},
	} {
		if !near(c.got, c.want) {
			t.Errorf("%s %g, want %g", c.what, c.got, c.want)
		}
	}
	given := f
	given.Shards = 6
	if k := simple().Kcp(given); k.Shards != 6 || !near(k.EndpointRequests(given, Hub{Targets: 600}), 860/2.0/6) {
		t.Errorf("with six shards: %+v", k)
	}
	if k.ByStorage != 2 || k.ByWrites != 3 || k.ByMailboxes != 2 || k.Shards != 3 || k.Binding() != "writes" {
		t.Errorf("shards %+v: %s", k, k.Binding())
	}
}

func TestBinding(t *testing.T) {
	for want, k := range map[string]Kcp{
		"one is enough":                {Shards: 1, ByStorage: 1, ByWrites: 1, ByMailboxes: 1},
		"size of etcd":                 {Shards: 3, ByStorage: 3, ByWrites: 1, ByMailboxes: 1},
		"writes":                       {Shards: 3, ByStorage: 1, ByWrites: 3, ByMailboxes: 1},
		"memory of mailbox workspaces": {Shards: 3, ByStorage: 1, ByWrites: 1, ByMailboxes: 3},
		"given":                        {Shards: 4, ByStorage: 1, ByWrites: 3, ByMailboxes: 1},
		"too few, 3 are needed":        {Shards: 2, ByStorage: 1, ByWrites: 3, ByMailboxes: 1},
	} {
		if got := k.Binding(); got != want {
			t.Errorf("%+v: %s, want %s", k, got, want)
		}
	}
}

func TestCounts(t *testing.T) {
	f, m := fleet(100, 1000), simple()
	for _, c := range []struct {
		what      string
		got, want float64
	}{
		{"series by resource", m.Series(f, true), 100 * (11*50 + 20)},
		{"series added up", m.Series(f, false), 100 * (50 + 20)},
		{"renewals", m.Renewals(), 32},
		{"requests to targets", m.RestTargetRequests(f), 10},
		{"watches of targets", float64(f.TargetWatches()), 1300},
		{"wildcard watches", float64(f.MailboxWatches(HoldAll, 3, 2)), 66},
		{"wildcard watches of those that drop", float64(f.MailboxWatches(HoldOwn, 3, 2)), 66},
		{"watches of own mailboxes", float64(f.MailboxWatches(WatchOwn, 3, 2)), 1100},
		{"objects of a mailbox", m.Mailbox(f).Objects, 10},
		{"bytes of a mailbox", m.Mailbox(f).Bytes, 10 * 5000 * 1.25},
	} {
		if !near(c.got, c.want) {
			t.Errorf("%s %g, want %g", c.what, c.got, c.want)
		}
	}
}

func TestValidate(t *testing.T) {
	for want, change := range map[string]func(*Fleet){
		"clusters":  func(f *Fleet) { f.Clusters = 0 },
		"objects":   func(f *Fleet) { f.Objects = -1 },
		"size":      func(f *Fleet) { f.ObjectBytes = -1 },
		"edits":     func(f *Fleet) { f.Edits = -1 },
		"statuses":  func(f *Fleet) { f.StatusesPerEdit = -1 },
		"selected":  func(f *Fleet) { f.Selected = 1.1 },
		"resources": func(f *Fleet) { f.Resources = 0 },
		"shards":    func(f *Fleet) { f.Shards = -1 },
	} {
		f := fleet(1, 1)
		if err := f.Validate(); err != nil {
			t.Fatal(err)
		}
		change(&f)
		if f.Validate() == nil {
			t.Errorf("%s: no error for %+v", want, f)
		}
	}
}

func randomFleet(random *rand.Rand) Fleet {
	return Fleet{
		Clusters: 1 + random.IntN(20_000), Objects: random.IntN(20_000_000), ObjectBytes: random.Float64() * 100_000, Selected: random.Float64(),
		Resources: 1 + random.IntN(30), Edits: random.Float64() * 3000, StatusesPerEdit: random.Float64() * 3,
	}
}

// A fleet that has more of something does not need less of anything.
func TestMoreNeedsNoLess(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // A test must be reproducible.
	m := simple()
	for range 2000 {
		f := randomFleet(random)
		for name, more := range map[string]func(*Fleet){
			"objects":   func(f *Fleet) { f.Objects += 1 + random.IntN(1_000_000) },
			"clusters":  func(f *Fleet) { f.Clusters += 1 + random.IntN(1000) },
			"size":      func(f *Fleet) { f.ObjectBytes += random.Float64() * 1e6 },
			"selected":  func(f *Fleet) { f.Selected += (1 - f.Selected) * random.Float64() },
			"resources": func(f *Fleet) { f.Resources++ },
			"edits":     func(f *Fleet) { f.Edits += random.Float64() * 1000 },
			"statuses":  func(f *Fleet) { f.StatusesPerEdit += random.Float64() },
		} {
			larger := f
			more(&larger)
			before, after := m.OneActive(f), m.OneActive(larger)
			kcpBefore, kcpAfter := m.Kcp(f), m.Kcp(larger)
			if after.Limit < before.Limit || after.Cores < before.Cores || after.Start < before.Start ||
				kcpAfter.Shards < kcpBefore.Shards || kcpAfter.HubPeak < kcpBefore.HubPeak || kcpAfter.Storage < kcpBefore.Storage {
				t.Fatalf("more %s: %+v needs %+v and %+v, and %+v needs %+v and %+v", name, f, before, kcpBefore, larger, after, kcpAfter)
			}
		}
	}
}

// A share is never more than the whole, and what replicas hold together is not less than the whole.
func TestSharesAddUp(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4)) //nolint:gosec // A test must be reproducible.
	m := simple()
	for range 2000 {
		f := randomFleet(random)
		replicas := 2 + random.IntN(20)
		whole := m.memory(f, f.shareOf(f.Clusters, HoldAll))
		for _, reading := range []Reading{HoldAll, HoldOwn, WatchOwn} {
			hub := m.DividedAmong(f, reading, replicas, even{})
			if hub.Memory.Mailboxes > whole.Mailboxes*(1+1e-9) || hub.Memory.Targets > whole.Targets*(1+1e-9) {
				t.Fatalf("%s: a replica of %d needs %+v, and one that has all needs %+v", reading, replicas, hub.Memory, whole)
			}
			if together := hub.Memory.Targets * float64(replicas); together < whole.Targets*(1-1e-9) {
				t.Fatalf("%s: %d replicas hold %g of %g", reading, replicas, together, whole.Targets)
			}
		}
		own, all := m.DividedAmong(f, WatchOwn, replicas, even{}), m.DividedAmong(f, HoldAll, replicas, even{})
		if own.Limit > all.Limit || own.Cores > all.Cores {
			t.Fatalf("%+v: own mailboxes need %+v, and all %+v", f, own, all)
		}
	}
}
