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
	"slices"
	"strings"
	"time"

	"github.com/onsi/gomega"

	"github.com/synchub-dev/synchub/test/framework"
	"github.com/synchub-dev/synchub/test/framework/fleet"
	"github.com/synchub-dev/synchub/test/framework/installation"
)

// ReplicaMeasurements are those of one replica of an idle fleet.
type ReplicaMeasurements struct {
	// IdleCPU is the share of one processor that it uses, ResidentBytes its memory.
	IdleCPU, ResidentBytes float64
	// Partitions are those that it holds, if the replicas divide the targets.
	Partitions float64
	// Requests are all its requests per minute.
	Requests float64
}

// standbys starts more replicas, measures all of them, and kills the first.
func (r *run) standbys(ctx context.Context) {
	if r.Replicas < 2 {
		return
	}
	r.stepStartedAt = time.Now()
	replicas, total := []*installation.Hub{r.Hub}, r.cached(ctx, r.Hub)
	for range r.Replicas - 1 {
		standby, err := r.StartReplica()
		r.Expect(err).NotTo(gomega.HaveOccurred())
		r.Expect(standby.AwaitReady(ctx)).To(gomega.Succeed())
		replicas = append(replicas, standby)
		if !r.Sharded {
			r.Eventually(r.cached).WithContext(ctx).WithArguments(standby).WithPolling(time.Second).Should(gomega.Equal(r.cached(ctx, r.Hub)), "what the leader caches of targets")
		}
	}
	if r.Sharded {
		r.expectShares(ctx, replicas, total)
	}
	r.finishStep(&r.measurements.StandbysReady, "all other replicas have filled their caches")
	// The proxies of the targets see the health checks of all replicas, which are more than those of a hub.
	r.Eventually(r.Hub.WaitIdle).WithContext(ctx).WithArguments(idleDuration).Should(gomega.Succeed())
	r.measurements.Replicas = r.measureReplicas(ctx, replicas)

	r.stepStartedAt = time.Now()
	r.Expect(r.Hub.Kill9()).To(gomega.Succeed())
	all, err := r.syncTargets(ctx)
	r.Expect(err).NotTo(gomega.HaveOccurred())
	// One target has gone again.
	members := slices.DeleteFunc(slices.Clone(r.Fleet.Members), func(member *fleet.Member) bool { return all[member.Name] == nil })
	added := fmt.Sprintf("object-%d", r.Objects)
	r.each(ctx, members, func(ctx context.Context, member *fleet.Member) error {
		return framework.Apply(ctx, r.Installation.InWorkspace(all[member.Name].Status.Mailbox.Workspace), configMap(added))
	})
	r.Progress("an object was added to each mailbox %s after a replica was killed", time.Since(r.stepStartedAt).Round(time.Millisecond))
	r.each(ctx, members, func(ctx context.Context, member *fleet.Member) error {
		r.waitObjects(ctx, member, r.Objects+1)
		return nil
	})
	r.finishStep(&r.measurements.TakenOver, "the last target is served by another replica")
}

// expectShares waits until each replica has a share of what one had alone.
func (r *run) expectShares(ctx context.Context, replicas []*installation.Hub, total float64) {
	r.Eventually(func(g gomega.Gomega) {
		sum := 0.0
		for _, replica := range replicas {
			share := r.cached(ctx, replica)
			g.Expect(share).To(gomega.BeNumerically(">", 0))
			sum += share
		}
		g.Expect(sum).To(gomega.Equal(total))
	}).WithContext(ctx).WithPolling(time.Second).Should(gomega.Succeed(), "what the replicas cache of targets")
}

// cached returns how many objects of targets a replica caches.
func (r *run) cached(ctx context.Context, replica *installation.Hub) (objects float64) {
	samples, err := replica.Metrics(ctx)
	r.Expect(err).NotTo(gomega.HaveOccurred())
	for sample, count := range samples {
		if strings.HasPrefix(sample, "synchub_target_cache_objects{") {
			objects += count
		}
	}
	return objects
}

// measureReplicas measures all replicas over the same time.
func (r *run) measureReplicas(ctx context.Context, replicas []*installation.Hub) []ReplicaMeasurements {
	observe := func() (all []map[string]float64) {
		for _, replica := range replicas {
			samples, err := replica.Metrics(ctx)
			r.Expect(err).NotTo(gomega.HaveOccurred())
			all = append(all, samples)
		}
		return all
	}
	began, before := time.Now(), observe()
	select {
	case <-ctx.Done():
	case <-time.After(r.Quiet):
	}
	after := observe()
	length := time.Since(began)
	measured := make([]ReplicaMeasurements, len(replicas))
	for i := range replicas {
		measured[i].IdleCPU = (after[i]["process_cpu_seconds_total"] - before[i]["process_cpu_seconds_total"]) / length.Seconds()
		measured[i].ResidentBytes = after[i]["process_resident_memory_bytes"]
		measured[i].Partitions = after[i]["synchub_partitions_held"]
		for kind, count := range installation.RequestsIn(after[i]) {
			measured[i].Requests += (count - installation.RequestsIn(before[i])[kind]) / length.Minutes()
		}
	}
	return measured
}
