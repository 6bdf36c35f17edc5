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

package targets

import (
	"errors"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/synchub-dev/synchub/provider/cachesize"
	"github.com/synchub-dev/synchub/provider/transport"
)

// Each quarantine takes twice as long as the one before, up to a limit, until the target has behaved for a while.
func TestQuarantineGrows(t *testing.T) {
	g := NewWithT(t)
	var q Quarantine
	now := time.Unix(1_000_000, 0)
	serve := func(want time.Duration) {
		t.Helper()
		g.Expect(q.start(now, ReasonTooLarge, "too large")).To(BeTrue())
		problem, left := q.remaining(now)
		g.Expect(left).To(Equal(want))
		g.Expect(problem).To(Equal(Health{Reason: ReasonTooLarge, Message: "too large"}))
		now = now.Add(left)
		_, left = q.remaining(now)
		g.Expect(left).To(BeZero(), "the quarantine has ended")
	}
	for _, want := range []time.Duration{30 * time.Second, time.Minute, 2 * time.Minute, 4 * time.Minute, 8 * time.Minute, 10 * time.Minute, 10 * time.Minute} {
		serve(want)
	}
	now = now.Add(30 * time.Minute)
	serve(10 * time.Minute)
	now = now.Add(30*time.Minute + 1)
	serve(30 * time.Second)
}

// Another incident does not extend a quarantine, and does not change its reason.
func TestQuarantineIsNotExtended(t *testing.T) {
	g := NewWithT(t)
	var q Quarantine
	now := time.Unix(1_000_000, 0)
	g.Expect(q.start(now, ReasonTooLarge, "the first")).To(BeTrue())
	g.Expect(q.start(now.Add(initialQuarantine-1), ReasonCacheFull, "the second")).To(BeFalse())
	problem, left := q.remaining(now.Add(initialQuarantine - 1))
	g.Expect(problem.Message).To(Equal("the first"))
	g.Expect(left).To(Equal(time.Duration(1)))

	_, left = q.remaining(now.Add(-time.Hour))
	g.Expect(left).To(BeZero(), "a clock that was set back keeps no target quarantined")
}

// limitedCacheSize returns a connection without clients, whose caches have limits, and its clock.
func limitedCacheSize(limits CacheLimits, total int64) (*CacheSize, *clocktesting.FakeClock) {
	now := clocktesting.NewFakeClock(time.Unix(1_000_000, 0))
	health := &HealthMonitor{probeRequested: make(chan struct{}, 1)}
	return &CacheSize{quarantine: &Quarantine{clock: now, health: health}, limits: limits, memory: &memoryLimit{limit: total}}, now
}

// A target is quarantined as soon as its caches, with the objects that are being read, exceed a limit. A target that does not grow is not
// quarantined because all targets together take too much.
func TestCacheLimits(t *testing.T) {
	for name, test := range map[string]struct {
		limits         CacheLimits
		total          int64
		cached         CacheLimits
		objects, bytes int64
		isNotGrowing   bool
		// flag is the option that the message names; empty if there is no quarantine.
		flag string
	}{
		"no limits":                        {cached: CacheLimits{Objects: 1 << 40, Bytes: 1 << 50}},
		"as many objects as allowed":       {limits: CacheLimits{Objects: 10}, cached: CacheLimits{Objects: 10, Bytes: 1 << 50}},
		"one object more":                  {limits: CacheLimits{Objects: 10}, cached: CacheLimits{Objects: 11}, flag: "--target-cache-objects"},
		"one object more is being read":    {limits: CacheLimits{Objects: 10}, cached: CacheLimits{Objects: 4}, objects: 7, flag: "--target-cache-objects"},
		"too many objects, not growing":    {limits: CacheLimits{Objects: 10}, cached: CacheLimits{Objects: 11}, isNotGrowing: true, flag: "--target-cache-objects"},
		"as many bytes as allowed":         {limits: CacheLimits{Bytes: 1000}, cached: CacheLimits{Objects: 1 << 40, Bytes: 1000}},
		"one byte more":                    {limits: CacheLimits{Bytes: 1000}, cached: CacheLimits{Objects: 1, Bytes: 1001}, flag: "--target-cache-bytes"},
		"one byte more is being read":      {limits: CacheLimits{Bytes: 1000}, cached: CacheLimits{Objects: 1, Bytes: 400}, bytes: 601, flag: "--target-cache-bytes"},
		"too many bytes, not growing":      {limits: CacheLimits{Bytes: 1000}, cached: CacheLimits{Objects: 1, Bytes: 1001}, isNotGrowing: true, flag: "--target-cache-bytes"},
		"total exceeded":                   {total: 1000, cached: CacheLimits{Objects: 1, Bytes: 1001}, flag: "--targets-max-bytes"},
		"total exceeded, not growing":      {total: 1000, cached: CacheLimits{Objects: 1, Bytes: 1001}, isNotGrowing: true},
		"total exceeded by a pending list": {total: 1000, cached: CacheLimits{Objects: 1, Bytes: 500}, bytes: 501, flag: "--targets-max-bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			size, now := limitedCacheSize(test.limits, test.total)
			_ = size.cached.AddToParent(&size.memory.cached)
			size.cached.Add(test.cached.Objects, test.cached.Bytes)
			g.Expect(size.quarantineIfFull(test.objects, test.bytes, !test.isNotGrowing)).To(Equal(test.flag != ""))
			problem, left := size.quarantine.remaining(now.Now())
			if test.flag == "" {
				g.Expect(left).To(BeZero())
				return
			}
			g.Expect(left).To(Equal(initialQuarantine))
			g.Expect(problem.Reason).To(Equal(ReasonCacheFull))
			g.Expect(problem.Message).To(ContainSubstring(test.flag))
			g.Expect(size.quarantine.health.probeRequested).To(Receive(), "the probe loop enforces the quarantine at once")
		})
	}
}

// Counters that other packages add to a target, and the buffers of its watches, count against its limits.
func TestCountersOfATarget(t *testing.T) {
	g := NewWithT(t)
	size, now := limitedCacheSize(CacheLimits{Bytes: 1000}, 0)
	_ = size.watchBuffers.AddToParent(&size.cached)
	size.watchBuffers.Add(1, 0)
	quarantined := func() bool {
		_, left := size.quarantine.remaining(now.Now())
		return left > 0
	}
	var expectations cachesize.Counter
	remove := size.Add(&expectations)
	expectations.Add(1, 600)
	size.Check()
	g.Expect(quarantined()).To(BeFalse())
	size.addWatchBuffer(401)
	g.Expect(quarantined()).To(BeTrue())

	now.Step(initialQuarantine)
	size.addWatchBuffer(-1)
	g.Expect(quarantined()).To(BeFalse())
	expectations.Add(0, 1)
	size.Check()
	g.Expect(quarantined()).To(BeTrue())

	now.Step(2 * initialQuarantine)
	remove()
	size.Check()
	g.Expect(quarantined()).To(BeFalse())
}

// The reason of a quarantine describes the misbehaviour.
func TestReasonsOfQuarantine(t *testing.T) {
	for reason, err := range map[string]error{
		ReasonTooLarge:       errors.New("the response has 5 bytes"),
		ReasonNotAnAPIServer: &transport.ContentTypeError{},
	} {
		size, now := limitedCacheSize(CacheLimits{}, 0)
		size.quarantine.onMisbehaviour(err)
		problem, left := size.quarantine.remaining(now.Now())
		if left != initialQuarantine || problem.Reason != reason || !strings.Contains(problem.Message, err.Error()) {
			t.Errorf("%s: %v, %+v", reason, left, problem)
		}
	}
}
