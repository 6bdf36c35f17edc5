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

package controllers

import (
	"slices"
	"testing"

	"github.com/kcp-dev/logicalcluster/v3"
	"k8s.io/apimachinery/pkg/types"

	"github.com/synchub-dev/synchub/controllers/internal/leadership"
	"github.com/synchub-dev/synchub/provider/fence"
	"github.com/synchub-dev/synchub/provider/shards"
)

// heldShard is the shard that a replica owns.
type heldShard int

func (p heldShard) Owns(syncTarget types.UID) bool { return shards.Of(syncTarget) == int(p) }
func (heldShard) Fence(types.UID) *fence.Fence     { return nil }

func TestNeededMailboxes(t *testing.T) {
	elected := make(chan struct{})
	owned := newOwnedMailboxes(leadership.Role{Elected: elected, Shards: heldShard(shards.Of("own"))})
	var rechecked []logicalcluster.Name
	updater := ownedUpdater{owned: owned, recheck: func(mailboxes ...logicalcluster.Name) { rechecked = append(rechecked, mailboxes...) }}
	other := types.UID("other")
	for shards.Of(other) == shards.Of("own") {
		other += "x"
	}
	expect := func(what string, mailbox logicalcluster.Name, want bool) {
		t.Helper()
		if got := owned.owns(mailbox); got != want {
			t.Errorf("%s: %t", what, got)
		}
	}
	expect("a mailbox that the ledger lacks", "m1", false)
	if !owned.set("own", "m1") || !owned.set(other, "m2") || owned.set("own", "m1") {
		t.Error("set reports a change without one")
	}
	expect("an own one", "m1", true)
	expect("a foreign one", "m2", false)
	updater.shardsChanged(shards.SetOf(shards.Of(other)))
	if !slices.Equal(rechecked, []logicalcluster.Name{"m2"}) {
		t.Errorf("rechecked %v", rechecked)
	}
	// The mailbox was created again.
	owned.set("own", "m3")
	expect("the former one", "m1", false)
	expect("the next one", "m3", true)
	owned.set("own", "")
	expect("that of a SyncTarget that is gone", "m3", false)
	if owned.ownsWorkload("w") {
		t.Error("a replica that is not the leader needs workloads")
	}
	close(elected)
	expect("the leader", "m2", true)
	if !owned.ownsWorkload("w") {
		t.Error("the leader does not need workloads")
	}
}
