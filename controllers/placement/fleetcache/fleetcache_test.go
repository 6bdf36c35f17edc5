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

package fleetcache

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/kcp-dev/logicalcluster/v3"
	"k8s.io/client-go/util/workqueue"

	"github.com/synchub-dev/synchub/controllers/placement/fleet"
	"github.com/synchub-dev/synchub/provider/topic"
)

// view returns an inventory with the given names of SyncTargets, which have mailboxes, and a Location that selects all.
func view(name logicalcluster.Name, syncTargets ...string) *fleet.Inventory {
	inventory := &fleet.Inventory{Name: name, Locations: []fleet.Location{{Inventory: name, Name: "default", UID: "uid-default"}}}
	for _, syncTarget := range syncTargets {
		inventory.SyncTargets = append(inventory.SyncTargets, fleet.SyncTarget{
			Inventory: name, Name: syncTarget, UID: "uid", Labels: map[string]string{"name": syncTarget}, Mailbox: name + "-" + logicalcluster.Name(syncTarget),
		})
	}
	return inventory
}

// changedOf returns a function that returns the inventories that changed since its last call.
func changedOf(t *testing.T, cache *Fleet) func() []logicalcluster.Name {
	queue := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[logicalcluster.Name]())
	t.Cleanup(queue.ShutDown)
	source := topic.Source(cache.Changes(), func(queue workqueue.TypedRateLimitingInterface[logicalcluster.Name], name logicalcluster.Name) {
		queue.Add(name)
	})
	if err := source.Start(t.Context(), queue); err != nil {
		t.Fatal(err)
	}
	return func() (changed []logicalcluster.Name) {
		for range queue.Len() {
			name, _ := queue.Get()
			queue.Done(name)
			changed = append(changed, name)
		}
		return changed
	}
}

func TestSnapshots(t *testing.T) {
	cache := New(Options{})
	changed := changedOf(t, cache)
	expect := func(step string, want ...logicalcluster.Name) {
		t.Helper()
		if got := changed(); !slices.Equal(got, want) {
			t.Errorf("%s: the change of %v was published, want %v", step, got, want)
		}
	}
	empty := cache.Snapshot()
	cache.set(view("a", "one", "two"))
	expect("a new inventory", "a")
	cache.set(view("b", "one"))
	expect("another inventory", "b")
	both := cache.Snapshot()
	cache.set(view("a", "one", "two"))
	expect("the same again")
	if cache.Snapshot() != both {
		t.Error("an equal view made another snapshot")
	}
	cache.set(view("a", "two"))
	expect("a SyncTarget less", "a")
	cache.remove("b")
	expect("an inventory less", "b")
	cache.remove("b")
	expect("the same again")

	// Earlier snapshots stay as they were.
	last := cache.Snapshot()
	for mailbox, want := range map[logicalcluster.Name][]bool{"a-one": {false, true, false}, "a-two": {false, true, true}, "b-one": {false, true, false}, "": {false, false, false}} {
		for i, snapshot := range []*fleet.Snapshot{empty, both, last} {
			syncTarget, ok := snapshot.SyncTargetOf(mailbox)
			if ok != want[i] || ok && syncTarget.Mailbox != mailbox {
				t.Errorf("snapshot %d has %+v for the mailbox %s", i, syncTarget, mailbox)
			}
		}
	}
	if last.Inventory("b") != nil || len(slices.Collect(both.Inventories())) != 2 {
		t.Error("the snapshots do not have the right inventories")
	}
}

func TestVerified(t *testing.T) {
	for name, test := range map[string]struct {
		known, read func(*fleet.Inventory)
		// after is a change of the view after the verification; nil for none.
		after  func(*fleet.Inventory)
		behind bool
		// verified is true if copies may be withdrawn from the mailbox a-one in the end.
		verified bool
	}{
		"equal":                           {verified: true},
		"kcp lacks a SyncTarget":          {read: func(i *fleet.Inventory) { i.SyncTargets = i.SyncTargets[:1] }, behind: true},
		"kcp lacks the Location":          {read: func(i *fleet.Inventory) { i.Locations = nil }, behind: true},
		"the view lacks the Location":     {known: func(i *fleet.Inventory) { i.Locations = nil }, behind: true},
		"neither has the Location":        {known: func(i *fleet.Inventory) { i.Locations = nil }, read: func(i *fleet.Inventory) { i.Locations = nil }, verified: true},
		"a label changed in kcp":          {read: func(i *fleet.Inventory) { i.SyncTargets[0].Labels = nil }, behind: true},
		"another Location has the name":   {read: func(i *fleet.Inventory) { i.Locations[0].UID = "other" }, behind: true},
		"the view changes again":          {after: func(i *fleet.Inventory) { i.Locations = nil }},
		"the view is made anew":           {after: func(*fleet.Inventory) {}, verified: true},
		"the SyncTarget is terminating":   {known: func(i *fleet.Inventory) { i.SyncTargets[0].Terminating = true }, read: func(i *fleet.Inventory) { i.SyncTargets[0].Terminating = true }},
		"the SyncTarget is too large":     {known: func(i *fleet.Inventory) { i.SyncTargets[0].LabelsUnknown = true }, read: func(i *fleet.Inventory) { i.SyncTargets[0].LabelsUnknown = true }},
		"another SyncTarget is too large": {known: func(i *fleet.Inventory) { i.SyncTargets[1].LabelsUnknown = true }, read: func(i *fleet.Inventory) { i.SyncTargets[1].LabelsUnknown = true }, verified: true},
	} {
		inventory := func(changes ...func(*fleet.Inventory)) *fleet.Inventory {
			made := view("a", "one", "two")
			for _, change := range changes {
				if change != nil {
					change(made)
				}
			}
			return made
		}
		cache := New(Options{})
		cache.set(inventory(test.known))
		before := cache.Snapshot()
		if err := cache.markVerified(inventory(test.read)); (err != nil) != test.behind {
			t.Errorf("%s: got %v", name, err)
		}
		if test.after != nil {
			cache.set(inventory(test.known, test.after))
		}
		if got := cache.Snapshot().IsVerified("a-one"); got != test.verified {
			t.Errorf("%s: verified is %v", name, got)
		}
		if before.IsVerified("a-one") || cache.Snapshot().IsVerified("unknown") {
			t.Errorf("%s: an earlier snapshot or an unknown mailbox is verified", name)
		}
	}
}

// An inventory with an unusable Location is never verified, nor is an unknown inventory. Neither causes a
// request.
func TestVerifyRefuses(t *testing.T) {
	cache := New(Options{})
	unusable := view("a", "one")
	unusable.Locations[0].Unusable = "its selector is invalid"
	cache.set(unusable)
	for _, name := range []logicalcluster.Name{"a", "unknown"} {
		if err := cache.Verify(t.Context(), name); err == nil {
			t.Errorf("%s is verified", name)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	// Verifying a verified inventory makes no request.
	cache.set(view("b", "one"))
	if err := cache.markVerified(view("b", "one")); err != nil || cache.Verify(ctx, "b") != nil {
		t.Errorf("a verified inventory is verified again: %v", err)
	}
}

func BenchmarkSnapshotOfManyInventories(b *testing.B) {
	cache := New(Options{})
	for i := range 300 {
		cache.set(view(logicalcluster.Name(fmt.Sprint(i)), "one", "two", "three"))
	}
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		cache.set(view("0", fmt.Sprint(i)))
	}
}
