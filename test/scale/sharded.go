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
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/synchub-dev/synchub/provider/shards"
	"github.com/synchub-dev/synchub/test/framework"
	"github.com/synchub-dev/synchub/test/framework/fleet"
	"github.com/synchub-dev/synchub/test/framework/installation"
)

// ShardedMeasurements are measured with replicas that divide the targets. Latencies beside a fault are measured at targets that it does not affect.
type ShardedMeasurements struct {
	// Quiet are latencies while nothing else happens.
	Quiet EditLatencies
	// Moved is how many of the targets got another replica when one was added, and Adding how long this took.
	Moved     int
	Adding    time.Duration
	BesideAdd EditLatencies
	// Follower and Leader are replicas that were killed one after the other.
	Follower, Leader KillMeasurements
}

// KillMeasurements are measured after a replica was killed.
type KillMeasurements struct {
	// Targets is the number of its targets, and Replaced the time until the last of them had a change made after the kill, including the
	// lease duration. Edits are measured at the targets of other replicas.
	Targets  int
	Replaced time.Duration
	Edits    EditLatencies
}

// sharded starts more replicas, measures all of them, adds one more, and kills the first, which leads.
func (r *run) sharded(ctx context.Context) {
	first, total := r.onlyHolder(ctx), r.cached(ctx, r.Hub)
	r.stepStartedAt = time.Now()
	replicas := []*installation.Hub{r.Hub}
	for range r.Replicas - 1 {
		replicas = append(replicas, r.addReplica(ctx))
	}
	r.awaitShares(ctx, replicas, total)
	r.finishStep(&r.measurements.StandbysReady, "each replica has its share")
	r.measureReplicas(ctx, replicas)
	members := r.present(ctx)
	measured := &ShardedMeasurements{}
	r.measurements.Sharded = measured
	edited, release := r.newEdited(ctx, members)
	defer release()
	measured.Quiet = latenciesOf(r.editsOf(ctx, edited, nil), func(string) bool { return true })
	r.Progress("edits at rest: %s", measured.Quiet)

	before := r.holders(ctx, members)
	r.stepStartedAt = time.Now()
	var added *installation.Hub
	found := r.editsDuring(ctx, edited, func() {
		added = r.addReplica(ctx)
		r.awaitShares(ctx, append(replicas, added), total)
	})
	r.finishStep(&measured.Adding, "one more replica has its share")
	after := r.holders(ctx, members)
	isMoved := func(name string) bool { return before[name] != after[name] }
	for name := range after {
		if isMoved(name) {
			measured.Moved++
		}
	}
	measured.BesideAdd = latenciesOf(found, func(name string) bool { return !isMoved(name) })
	r.Progress("%d of %d targets moved; edits at all other targets: %s", measured.Moved, len(members), measured.BesideAdd)

	holdersBefore := slices.Collect(maps.Values(before))
	measured.Follower = r.kill(ctx, added, members, func(holder string) bool { return !slices.Contains(holdersBefore, holder) })
	measured.Leader = r.kill(ctx, r.Hub, members, func(holder string) bool { return holder == first })
}

// kill kills a replica, whose name is the one for which is returns true.
func (r *run) kill(ctx context.Context, replica *installation.Hub, members []*fleet.Member, is func(holder string) bool) (measured KillMeasurements) {
	holders := r.holders(ctx, members)
	isConcerned := func(member *fleet.Member) bool { return is(holders[member.Name]) }
	others := slices.DeleteFunc(slices.Clone(members), isConcerned)
	concerned := slices.DeleteFunc(slices.Clone(members), func(member *fleet.Member) bool { return !isConcerned(member) })
	measured.Targets = len(concerned)
	edited, release := r.newEdited(ctx, others)
	defer release()
	found := r.editsDuring(ctx, edited, func() {
		r.Expect(replica.Kill9()).To(gomega.Succeed())
		measured.Replaced = r.awaitTakeover(ctx, concerned)
	})
	measured.Edits = latenciesOf(found, func(string) bool { return true })
	r.Progress("edits at targets of other replicas: %s", measured.Edits)
	return measured
}

// editsDuring edits until do returns.
func (r *run) editsDuring(ctx context.Context, all []*edited, do func()) map[string]EditLatencies {
	done, found := make(chan struct{}), make(chan map[string]EditLatencies, 1)
	go func() {
		defer close(found)
		found <- r.editsOf(ctx, all, done)
	}()
	func() {
		defer close(done)
		do()
	}()
	return <-found
}

// awaitShares waits until no replica has more than an even share of the shards, and together they have what one had alone.
func (r *run) awaitShares(ctx context.Context, replicas []*installation.Hub, total float64) {
	even := math.Ceil(shards.Count / float64(len(replicas)))
	r.Eventually(func(g gomega.Gomega) {
		owned, objects := 0.0, 0.0
		for _, replica := range replicas {
			samples, err := replica.Metrics(ctx)
			g.Expect(err).NotTo(gomega.HaveOccurred())
			g.Expect(samples["synchub_shards_owned"]).To(gomega.BeNumerically("<=", even))
			owned += samples["synchub_shards_owned"]
			objects += r.cached(ctx, replica)
		}
		g.Expect(owned).To(gomega.BeEquivalentTo(shards.Count))
		g.Expect(objects).To(gomega.Equal(total))
	}).WithContext(ctx).WithPolling(time.Second).Should(gomega.Succeed(), "even shares of the shards")
}

var leases = schema.GroupVersionResource{Group: "coordination.k8s.io", Version: "v1", Resource: "leases"}

// onlyHolder returns the name of the only replica among those that hold shards.
func (r *run) onlyHolder(ctx context.Context) string {
	name, err := framework.Field(ctx, r.Hosting, leases, installation.Namespace, leaseName(0), "spec", "holderIdentity")
	r.Expect(err).NotTo(gomega.HaveOccurred())
	return name
}

// holders returns the names of the replicas that hold targets.
func (r *run) holders(ctx context.Context, members []*fleet.Member) map[string]string {
	all, err := r.syncTargets(ctx)
	r.Expect(err).NotTo(gomega.HaveOccurred())
	holders := make([]string, shards.Count)
	for shard := range holders {
		holders[shard], err = framework.Field(ctx, r.Hosting, leases, installation.Namespace, leaseName(shard), "spec", "holderIdentity")
		r.Expect(err).NotTo(gomega.HaveOccurred())
	}
	found := map[string]string{}
	for _, member := range members {
		found[member.Name] = holders[shards.Of(all[member.Name].UID)]
	}
	return found
}

func leaseName(shard int) string { return fmt.Sprintf("synchub-shard-%02d", shard) }
