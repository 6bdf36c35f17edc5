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

// ReplicaMeasurements are measured at one replica of an idle fleet.
type ReplicaMeasurements struct {
	// IdleCPU is the share of one processor that it uses, ResidentBytes its memory.
	IdleCPU, ResidentBytes float64
	// Shards are those that it holds, if the replicas divide the targets.
	Shards float64
	// Requests are all its requests per minute.
	Requests float64
}

// standbys starts warm standbys, measures all replicas, and kills the leader.
func (r *run) standbys(ctx context.Context) {
	r.stepStartedAt = time.Now()
	replicas := []*installation.Hub{r.Hub}
	for range r.Replicas - 1 {
		standby := r.addReplica(ctx)
		replicas = append(replicas, standby)
		r.Eventually(r.cached).WithContext(ctx).WithArguments(standby).WithPolling(time.Second).Should(gomega.Equal(r.cached(ctx, r.Hub)), "what the leader caches of targets")
	}
	r.finishStep(&r.measurements.StandbysReady, "all other replicas have filled their caches")
	r.measureReplicas(ctx, replicas)
	r.Expect(r.Hub.Kill9()).To(gomega.Succeed())
	r.measurements.TakenOver = r.awaitTakeover(ctx, r.present(ctx))
}

func (r *run) addReplica(ctx context.Context) *installation.Hub {
	replica, err := r.StartReplica()
	r.Expect(err).NotTo(gomega.HaveOccurred())
	r.Expect(replica.AwaitReady(ctx)).To(gomega.Succeed())
	return replica
}

// present returns the targets that have a SyncTarget; churn has deleted its SyncTarget.
func (r *run) present(ctx context.Context) []*fleet.Member {
	all, err := r.syncTargets(ctx)
	r.Expect(err).NotTo(gomega.HaveOccurred())
	return slices.DeleteFunc(slices.Clone(r.Fleet.Members), func(member *fleet.Member) bool { return all[member.Name] == nil })
}

// awaitTakeover adds an object to the mailboxes of targets whose replica was just killed, and returns after which time all have it.
func (r *run) awaitTakeover(ctx context.Context, members []*fleet.Member) (took time.Duration) {
	r.stepStartedAt = time.Now()
	all, err := r.syncTargets(ctx)
	r.Expect(err).NotTo(gomega.HaveOccurred())
	added := fmt.Sprintf("object-%d", r.Objects+r.added)
	r.added++
	r.each(ctx, members, func(ctx context.Context, member *fleet.Member) error {
		return framework.Apply(ctx, r.Installation.InWorkspace(all[member.Name].Status.Mailbox.Workspace), configMap(added))
	})
	r.Progress("an object was added to %d mailboxes %s after their replica was killed", len(members), time.Since(r.stepStartedAt).Round(time.Millisecond))
	r.each(ctx, members, func(ctx context.Context, member *fleet.Member) error {
		r.Eventually(framework.Field).WithContext(ctx).WithArguments(member.Config, configMaps, namespace, added, "data", "name").
			WithPolling(100*time.Millisecond).Should(gomega.Equal(added), "an object on %s", member.Name)
		return nil
	})
	r.finishStep(&took, "the last target is served by another replica")
	return took
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

// measureReplicas measures all replicas over the same time, at rest. Only the first one is waited for: the proxies of the targets see the health
// checks of all replicas, which are more than the checks of one hub.
func (r *run) measureReplicas(ctx context.Context, replicas []*installation.Hub) {
	r.Eventually(r.Hub.WaitIdle).WithContext(ctx).WithArguments(idleDuration).Should(gomega.Succeed())
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
		measured[i].Shards = after[i]["synchub_shards_owned"]
		for kind, count := range installation.RequestsIn(after[i]) {
			measured[i].Requests += (count - installation.RequestsIn(before[i])[kind]) / length.Minutes()
		}
	}
	r.measurements.Replicas = measured
}
