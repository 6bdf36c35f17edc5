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
	"fmt"
	"math"
)

// Kcp is what kcp needs.
type Kcp struct {
	// Shards is that of the fleet, or the greatest of the three numbers after it: shards for the size of etcd, for writes, and
	// for the memory of mailbox workspaces.
	Shards, ByStorage, ByWrites, ByMailboxes int
	// Storage is what all shards store in etcd, in bytes.
	Storage float64
	// Writes is how many writes all shards get in a second, from users and from the hub. HubRest and HubPeak are those of the
	// hub alone, at rest and while the fleet changes.
	Writes, HubRest, HubPeak float64
	// Cores is the processor time per second of kcp and the clusters together, for the edits.
	Cores float64
	// WritesOfShard is how many writes in a second one kcp has answered in the benchmarks.
	WritesOfShard float64
	// MailboxMemory is the memory of all mailbox workspaces, in bytes.
	MailboxMemory float64
	// MailboxesFast and MailboxesSlow are how long it takes to make all mailboxes, in seconds: as fast as the hub asks for
	// them, and as slowly as in the scale test.
	MailboxesFast, MailboxesSlow float64
}

// Kcp returns what kcp needs for a fleet.
func (m Model) Kcp(f Fleet) Kcp {
	clusters := float64(f.Clusters)
	k := Kcp{Cores: f.changes() * m.ServersChange}
	k.HubRest = m.RestControl / m.Fleet / 60 * clusters
	// One write for each status that returns, and one status of a config for an edit. A mailbox has at most one each 5 s.
	k.HubPeak = k.HubRest + f.Edits*f.StatusesPerEdit + min(f.Edits, clusters/5)
	k.Writes = f.Edits + k.HubPeak
	k.WritesOfShard = m.BurstObjects / m.Burst

	stored := f.ObjectBytes + m.Assumptions.StoredOverhead
	k.Storage = stored * (float64(f.Objects) + k.Writes*m.Limits.Compaction)
	k.MailboxMemory = m.KcpMemory / (m.KcpMailboxes + m.KcpTargets) * clusters

	k.ByStorage = shards(k.Storage, m.Limits.Etcd*m.Assumptions.EtcdUsed)
	k.ByWrites = shards(k.Writes, k.WritesOfShard)
	k.ByMailboxes = shards(k.MailboxMemory, m.Assumptions.ShardMemory)
	if k.Shards = f.Shards; k.Shards == 0 {
		k.Shards = k.needed()
	}

	k.MailboxesFast = clusters / m.AtOnce
	k.MailboxesSlow = m.Mailboxes / m.Fleet * clusters
	return k
}

func shards(need, each float64) int { return max(1, int(math.Ceil(need/each))) }

func (k Kcp) needed() int { return max(k.ByStorage, k.ByWrites, k.ByMailboxes) }

// Binding says what the number of shards follows from.
func (k Kcp) Binding() string {
	switch needed := k.needed(); {
	case k.Shards > needed:
		return "given"
	case k.Shards < needed:
		return fmt.Sprintf("too few, %d are needed", needed)
	case needed == 1:
		return "one is enough"
	case k.ByStorage == needed:
		return "size of etcd"
	case k.ByWrites == needed:
		return "writes"
	default:
		return "memory of mailbox workspaces"
	}
}

// EndpointRequests returns how many writes a second a replica sends to one endpoint, which is a shard.
func (k Kcp) EndpointRequests(f Fleet, hub Hub) float64 {
	return k.HubPeak * float64(hub.Targets) / float64(f.Clusters) / float64(k.Shards)
}

// Mailbox is what the hub holds of one mailbox.
type Mailbox struct {
	Objects, Bytes float64
}

// Mailbox returns what the hub holds of one mailbox, with the margin of limits.
func (m Model) Mailbox(f Fleet) Mailbox {
	objects := float64(f.Objects) / float64(f.Clusters)
	one := f.shareOf(1, WatchOwn)
	return Mailbox{Objects: objects, Bytes: m.memory(f, one).Mailboxes * (1 + m.Assumptions.Margin)}
}

// MailboxWatches returns the number of watches of objects in mailboxes, of all replicas together.
func (f Fleet) MailboxWatches(reading Reading, replicas, shards int) int {
	if reading == WatchOwn {
		return f.Clusters * f.Resources
	}
	return replicas * shards * f.Resources
}
