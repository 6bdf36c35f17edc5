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

// Costs are what was measured of the hub and of kcp, and the hub's own limits. Memory is in bytes, time in seconds.
type Costs struct {
	// Process is the memory of a hub without targets. Target is that of a target with its first resource, Pair that of each
	// further resource.
	Process, Target, Pair float64
	// Object is the memory of a synced object of SampleBytes, and MailboxObject the part of it in the cache of the mailbox.
	Object, MailboxObject float64
	// Unselected is the memory of an object of which the hub knows only that it exists.
	Unselected float64
	// Large is the memory that LargeCount synced objects of LargeBytes took.
	Large, LargeCount float64
	// Inventory is the memory of a SyncTarget, and of its Secret, in the cache of inventories.
	Inventory float64

	// IdleCores is the processor time per second of a hub with IdleTargets targets while nothing happens.
	IdleCores, IdleTargets float64
	// Change is the hub's processor time for a new object, and ServersChange that of all servers.
	Change, ServersChange float64
	// Decode and Watch are the percentages of the hub's processor time for changes that decode objects and handle events.
	Decode, Watch float64

	// StartSmall and StartLarge are how long a hub takes after its start to know that so many objects are in sync.
	StartSmall, StartSmallObjects, StartLarge, StartLargeObjects float64
	// Burst is how long BurstObjects creations took on one kcp.
	Burst, BurstObjects float64

	// Fleet is the number of targets of the scale test. The other figures are its requests per minute at rest, and the time
	// until all mailboxes were there.
	Fleet, RestControl, RestTarget, Mailboxes float64
	// AtOnce is how many mailboxes kcp prepares at a time, in about a second each.
	AtOnce float64
	// KcpMemory is the memory of all kcps with so many mailboxes and so many workspaces of targets.
	KcpMemory, KcpMailboxes, KcpTargets float64

	// SeriesOfPair and SeriesOfTarget are numbers of time series.
	SeriesOfPair, SeriesOfTarget float64

	// QPS and Burst are the hub's default limits of requests to each endpoint of kcp.
	QPS, QPSBurst float64
	// MaxObjects and MaxBytes are the hub's default limits of one mailbox, MaxPerInventory that of mailboxes.
	MaxObjects, MaxBytes, MaxPerInventory float64
}

// SampleBytes is the size of the objects that the benchmarks use, and LargeBytes that of the large ones. "2 KB" and "1 MB".
const (
	SampleBytes = 2_000
	LargeBytes  = 1_000_000
)

// Limits are documented by others.
type Limits struct {
	// Etcd is the greatest size of etcd's database in bytes that its documentation suggests.
	Etcd float64
	// Compaction is how long the API server keeps former versions of objects in etcd, in seconds.
	Compaction float64
	// LeaseRenewal is the time between two renewals of a shard's Lease, in seconds.
	LeaseRenewal float64
}

// Assumptions were not measured.
type Assumptions struct {
	// StoredOverhead is how many bytes etcd stores of an object beyond its content: managed fields, mark, key.
	StoredOverhead float64
	// EtcdUsed is the part of etcd's limit that is used.
	EtcdUsed float64
	// ShardMemory is the memory in bytes of a shard that its mailbox workspaces may take.
	ShardMemory float64
	// LimitStep is the unit in which memory limits are given.
	LimitStep float64
	// Margin is the part by which limits of caches are above the need.
	Margin float64
}

// Fixed parts of the hub, see cmd/synchub/runtime.go. Go uses goPart of the memory limit; mailboxesPart and targetsPart of
// that are the default limits for caches.
const (
	goPart        = 0.9
	mailboxesPart = 1.0 / 5
	targetsPart   = 1.0 / 4
)

// Model computes what a fleet needs.
type Model struct {
	Costs
	Limits      Limits
	Assumptions Assumptions
}
