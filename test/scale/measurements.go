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

package scale

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/synchub-dev/synchub/provider/shards"
	"github.com/synchub-dev/synchub/test/framework"
)

// Measurements are the results of a run. Steps that were not reached are zero.
type Measurements struct {
	Targets, Objects, Resources int
	// The duration of each step, from the end of the previous one.
	Workspaces, Registered, Mailboxes, Ready, Filled, Synced, Settled time.Duration
	// IdleCPU is the share of one processor that the idle hub uses.
	IdleCPU float64
	// ResidentBytes and Heap are in bytes.
	ResidentBytes, HeapBytes float64
	Goroutines, Files        float64
	// Connections is the number of present connections to targets, and Connected the number of all connections so far.
	Connections, Connected int
	// Requests are the hub's requests per minute at rest by destination, and RequestsByKind by destination, verb and
	// resource.
	Requests, RequestsByKind map[string]float64
	// Replicas are the leader and its standbys, at rest together. StandbysReady is how long the standbys took to fill their caches, one
	// after the other. TakenOver is the time from kill -9 of the leader until the last target had a change made after it, including the
	// lease duration.
	Replicas                 []ReplicaMeasurements
	StandbysReady, TakenOver time.Duration
	// Sharded is nil for replicas with one leader.
	Sharded *ShardedMeasurements
	// Isolated is true once targets were added and removed without any request to other targets.
	Isolated bool
}

// StatusWrites returns the number of status writes to SyncTargets per minute at rest.
func (f Measurements) StatusWrites() float64 {
	return f.RequestsByKind["control patch synctargets/status"]
}

// rows returns the rows of the report in order.
func (f Measurements) rows() [][2]string {
	seconds := func(d time.Duration) string {
		if d == 0 {
			return "not reached"
		}
		return fmt.Sprintf("%.1f s", d.Seconds())
	}
	rows := [][2]string{
		{"targets, objects on each, resources that are synced", fmt.Sprintf("%d, %d, %d", f.Targets, f.Objects, f.Resources)},
		{"making the targets' workspaces (not the hub's work)", seconds(f.Workspaces)},
		{"creating all Secrets and SyncTargets", seconds(f.Registered)},
		{"then until all mailboxes are there", seconds(f.Mailboxes)},
		{"then until all SyncTargets are Ready", seconds(f.Ready)},
		{"creating all objects in the mailboxes", seconds(f.Filled)},
		{"then until all are on their targets", seconds(f.Synced)},
		{"then until the hub is at rest", seconds(f.Settled)},
		{"hub at rest: processor", fmt.Sprintf("%.2f %% of a core", 100*f.IdleCPU)},
		{"hub at rest: resident memory, heap in use", fmt.Sprintf("%.0f MiB, %.0f MiB", f.ResidentBytes/mebi, f.HeapBytes/mebi)},
		{"hub at rest: goroutines, open files", fmt.Sprintf("%.0f, %.0f", f.Goroutines, f.Files)},
		{"connections to targets, and how many were ever made", fmt.Sprintf("%d, %d", f.Connections, f.Connected)},
	}
	for _, side := range slices.Sorted(maps.Keys(f.Requests)) {
		rows = append(rows, [2]string{"requests per minute at rest: " + side, fmt.Sprintf("%.0f", f.Requests[side])})
	}
	rows = append(rows,
		[2]string{"of these, statuses of SyncTargets written", fmt.Sprintf("%.0f", f.StatusWrites())},
		[2]string{"one target started, lost, back and removed without a request to another", map[bool]string{true: "yes", false: "no, or not reached"}[f.Isolated]})
	for i, replica := range f.Replicas {
		name, of := "leader, with standbys", ""
		switch {
		case replica.Shards > 0:
			name, of = fmt.Sprintf("replica %d", i), fmt.Sprintf(", %.0f of %d shards", replica.Shards, shards.Count)
		case i > 0:
			name = fmt.Sprintf("standby %d", i)
		}
		rows = append(rows, [2]string{name + " at rest: processor, resident memory, requests per minute",
			fmt.Sprintf("%.2f %% of a core, %.0f MiB, %.0f%s", 100*replica.IdleCPU, replica.ResidentBytes/mebi, replica.Requests, of)})
	}
	if len(f.Replicas) > 0 {
		rows = append(rows, [2]string{"filling the caches of all other replicas", seconds(f.StandbysReady)})
	}
	const killed = "from kill -9 of the %s until the last target has a change made after it, with the lease duration of 15 s"
	switch {
	case f.Sharded != nil:
		rows = append(rows,
			[2]string{"a replica is added: targets that move, and time until all have their shares", fmt.Sprintf("%d, %s", f.Sharded.Moved, seconds(f.Sharded.Adding))},
			[2]string{"edit at rest, 99th percentile", f.Sharded.Quiet.String()},
			[2]string{"edit while a replica is added, of targets that do not move", f.Sharded.BesideAdd.String()},
			[2]string{fmt.Sprintf(killed, "added replica"), fmt.Sprintf("%s, of %d", seconds(f.Sharded.Follower.Replaced), f.Sharded.Follower.Targets)},
			[2]string{"edit in between, at targets of other replicas", f.Sharded.Follower.Edits.String()},
			[2]string{fmt.Sprintf(killed, "leader"), fmt.Sprintf("%s, of %d", seconds(f.Sharded.Leader.Replaced), f.Sharded.Leader.Targets)},
			[2]string{"edit in between, at targets of other replicas", f.Sharded.Leader.Edits.String()})
	case len(f.Replicas) > 0:
		rows = append(rows, [2]string{fmt.Sprintf(killed, "leader"), seconds(f.TakenOver)})
	}
	return rows
}

const mebi = 1 << 20

// Report writes the measurements as a table, with the tested commit and the machine.
func (f Measurements) Report(to io.Writer, commit string) error {
	out := tabwriter.NewWriter(to, 0, 0, 1, ' ', 0)
	fmt.Fprintf(out, "| figure\t| value\t|\n| ---\t| ---\t|\n")
	fmt.Fprintf(out, "| commit\t| %s\t|\n| machine\t| %s\t|\n", commit, framework.Machine())
	for _, row := range f.rows() {
		fmt.Fprintf(out, "| %s\t| %s\t|\n", row[0], row[1])
	}
	fmt.Fprintln(out)
	for _, kind := range slices.Sorted(maps.Keys(f.RequestsByKind)) {
		fmt.Fprintf(out, "    %.1f a minute:\t%s\n", f.RequestsByKind[kind], kind)
	}
	return out.Flush()
}
