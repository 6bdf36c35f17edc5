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
	"context"
	"reflect"
	"testing"
	"time"
)

func TestAssignKeepsWhatItHas(t *testing.T) {
	manager, _ := newManager(t)
	first, second := connection(t), connection(t)
	manager.StartSync(Target{UID: florin, Name: "florin", Mailbox: "m", Connection: first, WrittenResources: parseWritten("secrets/v1")})
	setMatcher(manager, selecting("configmaps"))
	manager.StartSync(Target{UID: florin, Name: "florin", Mailbox: "m", Connection: second})
	found, _ := manager.get(florin)
	if found.currentTarget().Connection != second || !reflect.DeepEqual(found.writtenResources, parseWritten("secrets/v1")) || !manager.Status(florin).ConfigsKnown {
		t.Errorf("got %+v", found)
	}
	manager.Resume("another")
	manager.Resume(florin)
}

// When the manager ends, all controllers that it runs have ended, and none starts any more.
func TestStartEndsAllControllers(t *testing.T) {
	f := newFixture(t)
	setMatcher(f.manager, selecting("configmaps"))
	f.expectReconciled([]string{"configmaps", "secrets"}, "configmaps/v1 secrets/v1")
	found, _ := f.manager.get(florin)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := f.manager.Start(ctx); err != nil {
		t.Error(err)
	}
	if len(found.controllers()) > 0 || len(f.manager.SyncTargets()) > 0 {
		t.Error("a controller was not stopped")
	}
	f.manager.StartSync(f.target)
	setMatcher(f.manager, selecting("configmaps"))
	f.expectReconciled([]string{"configmaps", "secrets"}, "configmaps/v1 secrets/v1")
	found, _ = f.manager.get(florin)
	for resource, running := range found.syncControllers {
		select {
		case <-running.done:
		case <-time.After(time.Minute):
			t.Errorf("the controller of %s runs though the manager has ended", resource)
		}
	}
}

// A reconnect is reported once, not at each heartbeat.
func TestObserveReconnect(t *testing.T) {
	manager, _ := newManager(t)
	manager.StartSync(Target{UID: florin, Name: "florin", Mailbox: "m", Connection: connection(t)})
	found, _ := manager.get(florin)
	rose := func(what string, want bool) {
		t.Helper()
		if got := found.takeReconnect(); got != want {
			t.Errorf("%s: the target has come up: want %v, got %v", what, want, got)
		}
	}
	rose("away", false)
	manager.StartSync(Target{UID: florin, Name: "florin", Mailbox: "m", Connection: discovery(t)})
	rose("up", true)
	rose("still up", false)
	manager.StartSync(Target{UID: florin, Name: "florin", Mailbox: "m", Connection: discovery(t)})
	rose("by another connection", true)
	rose("still up", false)
}
