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

package syncmanager

import (
	"testing"
	"time"

	testclock "k8s.io/utils/clock/testing"

	"github.com/synchub-dev/synchub/controllers/plan"
)

// The last event of a CRD precedes discovery of its kind, so the manager polls for a while after the event.
func TestAnnouncedKindsAreResolvedAgain(t *testing.T) {
	manager, _ := newManager(t)
	clock := manager.Clock.(*testclock.FakeClock)
	manager.Publish(append([]plan.Resource{widgets()}, publishing("Valve.old", "Gadget.old")...))
	manager.StartSync(Target{UID: florin, Name: "florin", Connection: discovery(t)})
	held, _ := manager.get(florin)
	reconcile := func(kind string) time.Duration {
		t.Helper()
		setMatcher(manager, convertingTo(kind))
		resolvedAPIsOf(t, manager, held, widgets(), publishing("Valve.old", "Gadget.old"))
		result, err := manager.Reconcile(t.Context(), florin)
		if err != nil {
			t.Fatal(err)
		}
		return result.RequeueAfter
	}
	if again := reconcile("Valve.old"); again != 0 {
		t.Errorf("a kind without an event is requested again after %s", again)
	}
	held.apiEvents.lastCRDEvent.Store(new(clock.Now()))
	if again := reconcile("Valve.old"); again != requeueDelay {
		t.Errorf("a kind that may be served now is requested again after %s", again)
	}
	if again := reconcile("Gadget.old"); again != 0 {
		t.Errorf("a served kind is requested again after %s", again)
	}
	clock.Step(crdEventTimeout)
	if again := reconcile("Valve.old"); again != 0 {
		t.Errorf("a kind that is still not served is requested again after %s", again)
	}
}
