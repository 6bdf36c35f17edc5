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

// Package shards divides SyncTargets among the replicas of the hub. Each SyncTarget belongs to one of [Count] shards, by a
// hash of its UID. A replica works for the SyncTargets of a shard while it holds the Lease of the shard, which is in the
// hosting cluster. So the number of Leases does not grow with the fleet.
//
// Each replica computes from the live replicas which of them should hold a shard, by rendezvous hashing: when a replica starts or
// ends, mostly its own share moves. The leader election of client-go then decides who holds a shard. It compares no clocks of
// different machines.
package shards
