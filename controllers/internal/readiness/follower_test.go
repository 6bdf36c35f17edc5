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

package readiness_test

import (
	"context"
	"testing"
	"time"

	"github.com/go-logr/logr"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/types"
	testclock "k8s.io/utils/clock/testing"

	"github.com/synchub-dev/synchub/controllers/internal/readiness"
	"github.com/synchub-dev/synchub/provider/ledger"
	"github.com/synchub-dev/synchub/test/framework/configmaps"
)

// A leader knows of SyncTargets that others hold what their owners have written.
func TestFollower(t *testing.T) {
	g := NewWithT(t)
	clock := testclock.NewFakeClock(time.Unix(1000, 0))
	workspace := configmaps.New()
	entries := ledger.New(ledger.Options{ConfigMaps: workspace, Clock: clock, Log: logr.Discard()})
	registry := &readiness.Registry{}
	follower := &readiness.Follower{Registry: registry, Ledger: entries, Clock: clock, Owns: func(syncTarget types.UID) bool { return syncTarget == "held" }}
	write := func(syncTarget types.UID, ready *bool) {
		t.Helper()
		g.Expect(entries.Update(t.Context(), syncTarget, func(entry *ledger.Entry) { entry.Name, entry.Ready = "florin", ready })).To(Succeed())
	}
	write("early", new(true))
	write("held", new(true))

	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	for _, start := range []func(context.Context) error{entries.Start, follower.Start} {
		go func() { ended <- start(ctx) }()
	}
	stop := func() {
		cancel()
		for range 2 {
			g.Expect(<-ended).To(Succeed())
		}
	}
	defer stop()
	is := func(syncTarget types.UID, ready, known bool) {
		t.Helper()
		g.Eventually(func(g Gomega) {
			clock.Step(time.Second)
			state, isKnown := registry.Of(syncTarget)
			g.Expect(isKnown).To(Equal(known))
			g.Expect(state.Ready).To(Equal(ready))
		}).WithTimeout(time.Minute).Should(Succeed())
	}
	is("early", true, true)
	is("held", false, false)
	write("early", new(false))
	is("early", false, true)
	// The leader forgets what it held before.
	registry.Forget("early")
	is("early", false, true)

	other := ledger.New(ledger.Options{ConfigMaps: workspace, Clock: clock, Log: logr.Discard()})
	g.Expect(other.Update(t.Context(), "late", func(entry *ledger.Entry) { entry.Name, entry.Ready = "late", new(true) })).To(Succeed())
	is("late", true, true)
	g.Expect(other.Delete(t.Context(), "late")).To(Succeed())
	is("late", false, false)
}
