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

// observation is what is known of the hub at one time.
type observation struct {
	at      time.Time
	cpu     float64
	samples map[string]float64
	tallies map[string]fleet.Tally
}

func (r *run) observe(ctx context.Context) observation {
	tallies := talliesOf(r.Fleet.Members)
	samples, err := r.Hub.Metrics(ctx)
	r.Expect(err).NotTo(gomega.HaveOccurred())
	return observation{at: time.Now(), cpu: samples["process_cpu_seconds_total"], samples: samples, tallies: tallies}
}

func talliesOf(members []*fleet.Member) map[string]fleet.Tally {
	tallies := map[string]fleet.Tally{}
	for _, member := range members {
		tallies[member.Name] = member.Tally()
	}
	return tallies
}

// requests returns how many requests there were by what key returns for each kind.
func (o observation) requests(key func(installation.Request) string) map[string]float64 {
	counts := map[string]float64{}
	for kind, count := range installation.RequestsIn(o.samples) {
		counts[key(kind)] += count
	}
	return counts
}

// caused returns how many requests there were that something must have caused.
func (o observation) caused() map[string]float64 {
	return installation.Caused(installation.RequestsIn(o.samples))
}

func bySide(kind installation.Request) string { return kind.Side }

func byKind(kind installation.Request) string {
	return kind.Side + " " + kind.Verb + " " + kind.Resource
}

// settle returns when the hub has made no request for a while that something must have caused, and none that is not usual
// has passed the gates.
func (r *run) settle(ctx context.Context) {
	r.Eventually(func() (map[string]fleet.Tally, error) {
		before := talliesOf(r.Fleet.Members)
		err := r.Hub.AwaitRest(ctx, stillness)
		return disturbed(before, talliesOf(r.Fleet.Members)), err
	}).WithContext(ctx).Should(gomega.BeEmpty(), "the hub must come to rest")
}

// disturbed returns what has passed the gates that is not usual.
func disturbed(before, after map[string]fleet.Tally) map[string]fleet.Tally {
	found := map[string]fleet.Tally{}
	for name, tally := range after {
		if changed := tally.Since(before[name]); changed.Disturbed() {
			found[name] = changed
		}
	}
	return found
}

// measure looks at the fleet while nothing happens.
func (r *run) measure(ctx context.Context) {
	r.settle(ctx)
	r.passed(&r.figures.Settled, "the hub is at rest")
	before := r.observe(ctx)
	select {
	case <-ctx.Done():
	case <-time.After(r.Quiet):
	}
	after := r.observe(ctx)
	r.Expect(disturbed(before.tallies, after.tallies)).To(gomega.BeEmpty(), "at rest")
	r.Expect(after.caused()).To(gomega.Equal(before.caused()), "at rest")

	minutes := after.at.Sub(before.at).Minutes()
	r.figures.IdleCPU = (after.cpu - before.cpu) / after.at.Sub(before.at).Seconds()
	r.figures.Resident = after.samples["process_resident_memory_bytes"]
	r.figures.Heap = after.samples["go_memstats_heap_inuse_bytes"]
	r.figures.Goroutines = after.samples["go_goroutines"]
	r.figures.Files = after.samples["process_open_fds"]
	r.figures.Requests = perMinute(before.requests(bySide), after.requests(bySide), minutes)
	r.figures.Kinds = perMinute(before.requests(byKind), after.requests(byKind), minutes)
	for _, member := range r.Fleet.Members {
		r.figures.Connections += member.Connections()
		r.figures.Connected += member.Tally().Connections
	}
	if r.Profile != nil {
		r.Expect(r.Profile(ctx)).To(gomega.Succeed())
	}
	r.begun = time.Now()
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
