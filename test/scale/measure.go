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
	"time"

	"github.com/onsi/gomega"

	"github.com/synchub-dev/synchub/test/framework/fleet"
	"github.com/synchub-dev/synchub/test/framework/installation"
)

// observation is the state of the hub at one time.
type observation struct {
	at      time.Time
	cpu     float64
	samples map[string]float64
	counts  map[string]fleet.RequestCounts
}

func (r *run) observe(ctx context.Context) observation {
	counts := countsOf(r.Fleet.Members)
	samples, err := r.Hub.Metrics(ctx)
	r.Expect(err).NotTo(gomega.HaveOccurred())
	return observation{at: time.Now(), cpu: samples["process_cpu_seconds_total"], samples: samples, counts: counts}
}

func countsOf(members []*fleet.Member) map[string]fleet.RequestCounts {
	counts := map[string]fleet.RequestCounts{}
	for _, member := range members {
		counts[member.Name] = member.Counts()
	}
	return counts
}

// requests returns the number of requests by the key of their kind.
func (o observation) requests(key func(installation.Request) string) map[string]float64 {
	counts := map[string]float64{}
	for kind, count := range installation.RequestsIn(o.samples) {
		counts[key(kind)] += count
	}
	return counts
}

// caused returns the number of requests that have a cause.
func (o observation) caused() map[string]float64 {
	return installation.Caused(installation.RequestsIn(o.samples))
}

func byDestination(kind installation.Request) string { return kind.Destination }

func byKind(kind installation.Request) string {
	return kind.Destination + " " + kind.Verb + " " + kind.Resource
}

// waitIdle returns when the hub has made no request with a cause for a while, and the proxies have seen only idle requests.
func (r *run) waitIdle(ctx context.Context) {
	r.Eventually(func() (map[string]fleet.RequestCounts, error) {
		before := countsOf(r.Fleet.Members)
		err := r.Hub.WaitIdle(ctx, idleDuration)
		return activity(before, countsOf(r.Fleet.Members)), err
	}).WithContext(ctx).Should(gomega.BeEmpty(), "the hub must come to rest")
}

// waitAnswers returns when the replica has written into the ledger how many objects its targets have, which it does once a minute at most.
func (r *run) waitAnswers(ctx context.Context) {
	last, changed := -1.0, time.Now()
	r.Eventually(func() time.Duration {
		if written := r.observe(ctx).requests(byKind)["control update configmaps"]; written != last {
			last, changed = written, time.Now()
		}
		return time.Since(changed)
	}).WithContext(ctx).WithPolling(time.Second).Should(gomega.BeNumerically(">", 70*time.Second), "the ledger must come to rest")
}

// activity returns the proxies' counts that are not idle requests.
func activity(before, after map[string]fleet.RequestCounts) map[string]fleet.RequestCounts {
	found := map[string]fleet.RequestCounts{}
	for name, counts := range after {
		if changed := counts.Since(before[name]); changed.HasActivity() {
			found[name] = changed
		}
	}
	return found
}

// measure measures the idle fleet.
func (r *run) measure(ctx context.Context) {
	r.waitIdle(ctx)
	r.finishStep(&r.measurements.Settled, "the hub is at rest")
	if r.Sharded {
		r.waitAnswers(ctx)
	}
	before := r.observe(ctx)
	select {
	case <-ctx.Done():
	case <-time.After(r.Quiet):
	}
	after := r.observe(ctx)
	r.Expect(activity(before.counts, after.counts)).To(gomega.BeEmpty(), "at rest")
	r.Expect(after.caused()).To(gomega.Equal(before.caused()), "at rest")

	minutes := after.at.Sub(before.at).Minutes()
	r.measurements.IdleCPU = (after.cpu - before.cpu) / after.at.Sub(before.at).Seconds()
	r.measurements.ResidentBytes = after.samples["process_resident_memory_bytes"]
	r.measurements.HeapBytes = after.samples["go_memstats_heap_inuse_bytes"]
	r.measurements.Goroutines = after.samples["go_goroutines"]
	r.measurements.Files = after.samples["process_open_fds"]
	r.measurements.Requests = perMinute(before.requests(byDestination), after.requests(byDestination), minutes)
	r.measurements.RequestsByKind = perMinute(before.requests(byKind), after.requests(byKind), minutes)
	for _, member := range r.Fleet.Members {
		r.measurements.Connections += member.Connections()
		r.measurements.Connected += member.Counts().Connections
	}
	if r.Profile != nil {
		r.Expect(r.Profile(ctx)).To(gomega.Succeed())
	}
	r.stepStartedAt = time.Now()
}

func perMinute(before, after map[string]float64, minutes float64) map[string]float64 {
	rates := map[string]float64{}
	for what, count := range after {
		if count > before[what] {
			rates[what] = (count - before[what]) / minutes
		}
	}
	return rates
}
