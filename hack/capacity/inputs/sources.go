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

package inputs

import "synchub.dev/hack/capacity/model"

// number is a group that finds a number.
const number = `([\d.,]*\d)`

// sources are all figures of the model.
var sources = []source{
	{
		name: "memory of the hub's process", page: "docs/sizing.md", pattern: `\| the process \| ` + number + ` MiB \|`,
		scale: mebi,
		into:  func(c *model.Costs) []*float64 { return []*float64{&c.Process} },
	},
	{
		name: "memory of a target, with its first resource", page: "docs/sizing.md",
		pattern: `\| each target, with its first resource \| ` + number + ` MiB \|`,
		scale:   mebi,
		into:    func(c *model.Costs) []*float64 { return []*float64{&c.Target} },
	},
	{
		name: "memory of each further resource of a target", scenario: "memory", pattern: `^heap and stacks of an idle pair`,
		into: func(c *model.Costs) []*float64 { return []*float64{&c.Pair} },
	},
	{
		name: "memory of a synced object of 2 KB", scenario: "memory", pattern: `^heap of a synced object of 2 KB`,
		into: func(c *model.Costs) []*float64 { return []*float64{&c.Object} },
	},
	{
		name: "of that, in the cache of the mailbox", page: "docs/design/0020-targets-as-a-provider.md",
		pattern: number + ` KiB in the hub's caches of mailboxes`,
		scale:   kibi,
		into:    func(c *model.Costs) []*float64 { return []*float64{&c.MailboxObject} },
	},
	{
		name: "memory of an object that the hub does not hold", page: "docs/operations.md", pattern: `the hub holds about ` + number + ` KiB`,
		scale: kibi,
		into:  func(c *model.Costs) []*float64 { return []*float64{&c.Unselected} },
	},
	{
		name: "memory of large objects", page: "docs/sizing.md",
		pattern: number + ` ConfigMaps of 1 MB took 1.6 MB, and ` + number + ` MB when a config selected them`,
		scale:   1e6,
		into:    func(c *model.Costs) []*float64 { return []*float64{&c.LargeCount, &c.Large} },
	},
	{
		name: "memory of a SyncTarget in the cache of inventories, and of a Secret", page: "docs/operations.md",
		pattern: `the metadata of a kubeconfig's Secret, about ` + number + ` KiB each`,
		scale:   kibi,
		into:    func(c *model.Costs) []*float64 { return []*float64{&c.Inventory} },
	},
	{
		name: "processor of an idle fleet", scenario: "fleet-idle", pattern: `^(\d+) targets with 10 resources .*: processor$`,
		into: func(c *model.Costs) []*float64 { return []*float64{&c.IdleTargets, &c.IdleCores} },
	},
	{
		name: "the hub's processor time for 1,000 new objects", scenario: "burst", pattern: `flight for each: processor time for 1,000 objects$`, raw: true,
		scale: 1e-3,
		into:  func(c *model.Costs) []*float64 { return []*float64{&c.Change} },
	},
	{
		name: "the servers' processor time for 1,000 new objects", scenario: "burst", pattern: `: the servers' processor time for 1,000 objects$`, raw: true,
		scale: 1e-3,
		into:  func(c *model.Costs) []*float64 { return []*float64{&c.ServersChange} },
	},
	{
		name: "part of the hub's processor time that decodes objects, in %", page: resultsPage, pattern: number + ` % decoding objects`,
		into: func(c *model.Costs) []*float64 { return []*float64{&c.Decode} },
	},
	{
		name: "part of it that handles events, in %", page: resultsPage, pattern: number + ` % what watches tell`,
		into: func(c *model.Costs) []*float64 { return []*float64{&c.Watch} },
	},
	{
		name: "start with 1,000 objects", scenario: "restart", pattern: `^(1000) objects .* against the same lists$`, raw: true,
		into: func(c *model.Costs) []*float64 { return []*float64{&c.StartSmallObjects, &c.StartSmall} },
	},
	{
		name: "start with 10,000 objects", scenario: "restart", pattern: `^(10000) objects .* against the same lists$`, raw: true,
		into: func(c *model.Costs) []*float64 { return []*float64{&c.StartLargeObjects, &c.StartLarge} },
	},
	{
		name: "10,000 creations on one kcp", scenario: "burst", pattern: `^(\d+) objects over .*: elapsed$`, raw: true,
		into: func(c *model.Costs) []*float64 { return []*float64{&c.BurstObjects, &c.Burst} },
	},
	{
		name: "fleet of the scale test, targets", page: "docs/performance.md", pattern: `\| targets, objects on each \| ` + number + `, 10 \|`,
		into: func(c *model.Costs) []*float64 { return []*float64{&c.Fleet} },
	},
	{
		name: "until its mailboxes were there, s", page: "docs/performance.md", pattern: `\| then until all mailboxes are there \| ` + number + ` s \|`,
		into: func(c *model.Costs) []*float64 { return []*float64{&c.Mailboxes} },
	},
	{
		name: "its requests to kcp in a minute at rest", page: "docs/performance.md", pattern: `\| requests per minute at rest: control \| ` + number + ` \|`,
		into: func(c *model.Costs) []*float64 { return []*float64{&c.RestControl} },
	},
	{
		name: "its requests to targets in a minute at rest", page: "docs/performance.md", pattern: `\| requests per minute at rest: target \| ` + number + ` \|`,
		into: func(c *model.Costs) []*float64 { return []*float64{&c.RestTarget} },
	},
	{
		name: "mailboxes that kcp prepares at a time, in about a second each", page: "docs/sizing.md", pattern: `kcp prepares ` + number + ` at a time`,
		into: func(c *model.Costs) []*float64 { return []*float64{&c.AtOnce} },
	},
	{
		name: "memory of kcp, by mailboxes and workspaces of targets", page: "docs/sizing.md",
		pattern: `two kcps with ` + number + ` mailboxes and ` + number + ` target workspaces took ` + number + ` GiB`,
		scale:   1 << 30,
		into:    func(c *model.Costs) []*float64 { return []*float64{&c.KcpMailboxes, &c.KcpTargets, &c.KcpMemory} },
	},
	{
		name: "time series of a target and resource", page: "docs/metrics.md", pattern: `has ` + number + ` series:`,
		into: func(c *model.Costs) []*float64 { return []*float64{&c.SeriesOfPair} },
	},
	{
		name: "time series of a target beside these", page: "docs/metrics.md", pattern: `each target has about ` + number + ` series`,
		into: func(c *model.Costs) []*float64 { return []*float64{&c.SeriesOfTarget} },
	},
	{
		name: "default of `--kcp-qps`", page: "docs/reference/cli-synchub.md", pattern: "`--kcp-qps` float32 \\| `" + number + "`",
		into: func(c *model.Costs) []*float64 { return []*float64{&c.QPS} },
	},
	{
		name: "default of `--kcp-burst`", page: "docs/reference/cli-synchub.md", pattern: "`--kcp-burst` int \\| `" + number + "`",
		into: func(c *model.Costs) []*float64 { return []*float64{&c.QPSBurst} },
	},
	{
		name: "default of `--mailbox-max-objects`", page: "docs/operations.md", pattern: "`--mailbox-max-objects` \\(" + number + "\\) objects",
		into: func(c *model.Costs) []*float64 { return []*float64{&c.MaxObjects} },
	},
	{
		name: "default of `--mailbox-max-bytes`, MiB", page: "docs/operations.md", pattern: "objects and `--mailbox-max-bytes` \\(" + number + ` MiB\)`,
		scale: mebi,
		into:  func(c *model.Costs) []*float64 { return []*float64{&c.MaxBytes} },
	},
	{
		name: "default of `--inventory-max-mailboxes`", page: "docs/operations.md", pattern: "`--inventory-max-mailboxes` \\(" + number + "\\)",
		into: func(c *model.Costs) []*float64 { return []*float64{&c.MaxPerInventory} },
	},
}
