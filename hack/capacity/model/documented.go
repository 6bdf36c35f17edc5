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

// Documented are the limits of others; Sources names their documentation.
var Documented = Limits{Etcd: 8 << 30, Compaction: 300, LeaseRenewal: 2}

// Assumed are the assumptions; Sources says why.
var Assumed = Assumptions{StoredOverhead: 1 << 10, EtcdUsed: 0.5, ShardMemory: 64 << 30, LimitStep: 1 << 30, Margin: 0.25}

// Statement is a limit or an assumption in words.
type Statement struct {
	Name, Value, Source string
}

// LimitSources are the statements of Documented.
var LimitSources = []Statement{
	{"greatest size of etcd's database", "8 GiB", "[etcd's system limits](https://etcd.io/docs/v3.6/dev-guide/limit/) suggest no more, and 2 GiB is the default"},
	{"how long former versions of an object stay in etcd", "5 min", "the default of `--etcd-compaction-interval` of kcp, as of [kube-apiserver](https://kubernetes.io/docs/reference/command-line-tools-reference/kube-apiserver/)"},
	{"time between two renewals of the Lease of a shard, of which there are 64", "2 s", "the hub itself: [Several active replicas](operations.md#several-active-replicas)"},
}

// AssumptionSources are the statements of Assumed, and those that are in the shape of the model.
var AssumptionSources = []Statement{
	{"cost grows in proportion to the fleet", "", "nothing larger than the fleets of [RESULTS.md](../RESULTS.md) was measured"},
	{"an edit, and a status, cost as much processor time as a new object", "", "only new objects were measured"},
	{"all clusters have as many objects", "", "one large mailbox has [limits of its own](operations.md#limits)"},
	{"garbage, as a part of the objects", "100 %", "as in [Sizing](sizing.md)"},
	{"stored in etcd beside an object's content", "1 KiB", "managed fields, labels, the key"},
	{"part of etcd's size that is used", "50 %", "the rest is for growth, and for what compaction leaves behind until etcd is defragmented"},
	{"memory of a shard for mailbox workspaces", "64 GiB", "a large machine; kcp's memory for objects comes on top, and was not measured"},
	{"writes of a shard", "as in the burst", "there, one kcp answered creations on two processors that all servers shared. A shard with processors of its own answers more"},
	{"margin of cache limits", "25 %", "above the need"},
}
