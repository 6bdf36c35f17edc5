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
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/synchub-dev/synchub/controllers/objectsync"
	"github.com/synchub-dev/synchub/controllers/plan/selection"
)

// setMatcher sets the configs of a mailbox as if the manager had read them.
func setMatcher(manager *Manager, matcher *selection.Matcher) { setMatcherOf(manager, florin, matcher) }

func setMatcherOf(manager *Manager, syncTarget types.UID, matcher *selection.Matcher) {
	state, _ := manager.get(syncTarget)
	state.configEvents.take()
	state.lock.Lock()
	state.configsKnown, state.matcher = true, matcher
	state.lock.Unlock()
}

// fixture is a manager with one SyncTarget, whose target is down.
type fixture struct {
	t       *testing.T
	manager *Manager
	store   *fakeWrittenResourceStore
	target  Target
}

// newFixture publishes three resources and assigns a SyncTarget. One of the resources was written before.
func newFixture(t *testing.T) *fixture {
	manager, notes := newManager(t)
	manager.Publish(resources("configmaps", "secrets", "deployments.apps"))
	target := Target{UID: florin, Name: "florin", Mailbox: "m", Connection: connection(t), WrittenResources: parseWritten("secrets/v1")}
	manager.StartSync(target)
	return &fixture{t, manager, notes, target}
}

// expectReconciled reconciles the SyncTarget, and fails the test unless these controllers run afterwards and these written resources
// were stored.
func (f *fixture) expectReconciled(running []string, records ...string) {
	f.t.Helper()
	if result, err := f.manager.Reconcile(f.t.Context(), florin); err != nil || result.RequeueAfter != 0 {
		f.t.Errorf("%v, %v", result, err)
	}
	if got := f.manager.running(florin); !slices.Equal(got, running) {
		f.t.Errorf("want %v running, got %v", running, got)
	}
	if !slices.Equal(f.store.records, records) {
		f.t.Errorf("want the records %q, got %q", records, f.store.records)
	}
	f.store.records = nil
}

// controllers returns the running controllers by the names of their resources.
func (f *fixture) controllers() map[string]*objectsync.Controller {
	found, _ := f.manager.get(florin)
	all := map[string]*objectsync.Controller{}
	for _, controller := range found.controllers() {
		all[controller.Resource.GroupResource().String()] = controller
	}
	return all
}

func TestNothingRunsForAnUnknownMailbox(t *testing.T) {
	f := newFixture(t)
	f.expectReconciled([]string{})
	if _, ok := f.manager.View(florin); ok || f.manager.Status(florin).ConfigsKnown {
		t.Error("there is a view of a mailbox that cannot be seen")
	}
}

// The configs of a mailbox would be reported as unpublished, or as selecting nothing.
func TestThereIsNoViewUntilThePublishedResourcesTakeEffect(t *testing.T) {
	manager, store := newManager(t)
	f := &fixture{t, manager, store, Target{UID: florin, Name: "florin", Mailbox: "m", Connection: connection(t)}}
	manager.StartSync(f.target)
	setMatcher(manager, selecting("configmaps"))
	f.expectReconciled([]string{})
	if _, ok := manager.View(florin); ok {
		t.Error("there is a view before the first publication")
	}
	events := 0
	manager.ObjectsChanged.Subscribe(t.Context(), func(types.UID) { events++ })
	for _, names := range [][]string{{"configmaps"}, {"configmaps", "secrets"}} {
		manager.Publish(resources(names...))
		if _, ok := manager.View(florin); ok {
			t.Errorf("there is a view before the published resources %v have taken effect", names)
		}
		before := events
		if _, err := manager.Reconcile(t.Context(), florin); err != nil {
			t.Fatal(err)
		}
		if view, ok := manager.View(florin); !ok || len(view.Published) != len(names) || events == before {
			t.Errorf("with %v published, the view is %+v, %v, and %d events came", names, view, ok, events-before)
		}
	}
}

// A resource must be among the stored written resources before its controller starts.
func TestNothingRunsBeforeItIsRecorded(t *testing.T) {
	f := newFixture(t)
	setMatcher(f.manager, selecting("configmaps"))
	f.store.fail = errors.New("no")
	if _, err := f.manager.Reconcile(t.Context(), florin); !errors.Is(err, f.store.fail) || !strings.Contains(err.Error(), "florin") {
		t.Errorf("a record that fails: %v", err)
	}
	f.store.fail = apierrors.NewConflict(schema.GroupResource{Resource: "synctargets"}, "florin", errors.New("no"))
	if result, err := f.manager.Reconcile(t.Context(), florin); err != nil || result.RequeueAfter == 0 {
		t.Errorf("after a conflict in the ledger: %v, %v", result, err)
	}
	if running := f.manager.running(florin); len(running) > 0 {
		t.Errorf("%v run without a record", running)
	}
	f.store.fail = nil
	f.expectReconciled([]string{"configmaps", "secrets"}, "configmaps/v1 secrets/v1")
	if len(f.store.controllersWhileStored) > 0 {
		t.Errorf("%v ran before they were recorded", f.store.controllersWhileStored)
	}
}

func TestControllersFollowTheConfigs(t *testing.T) {
	f := newFixture(t)
	setMatcher(f.manager, selecting("configmaps"))
	f.expectReconciled([]string{"configmaps", "secrets"}, "configmaps/v1 secrets/v1")
	if view, ok := f.manager.View(florin); !ok || view.Mailbox != "m" || len(view.Controllers) != 2 || len(view.Published) != 3 || !f.manager.Status(florin).ConfigsKnown {
		t.Errorf("the view is %+v, %v", view, ok)
	}
	before := f.controllers()
	f.expectReconciled([]string{"configmaps", "secrets"})
	if !reflect.DeepEqual(f.controllers(), before) {
		t.Error("controllers were restarted without a reason")
	}
	// While the target is down, no resource can be found empty.
	setMatcher(f.manager, selecting("deployments.apps"))
	f.expectReconciled([]string{"configmaps", "deployments.apps", "secrets"}, "configmaps/v1 deployments.apps/v1 secrets/v1")
}

func TestControllersFollowPublications(t *testing.T) {
	f := newFixture(t)
	setMatcher(f.manager, selecting("configmaps"))
	f.expectReconciled([]string{"configmaps", "secrets"}, "configmaps/v1 secrets/v1")

	published := slices.Clone(f.manager.Published())
	published[0].Orphan = true
	f.manager.Publish(published)
	before := f.controllers()
	f.expectReconciled([]string{"configmaps", "secrets"})
	after := f.controllers()
	if after["configmaps"] == before["configmaps"] || !after["configmaps"].Resource.Orphan || after["secrets"] != before["secrets"] {
		t.Error("not exactly the controller with another policy was restarted")
	}

	f.manager.Publish(published[1:])
	f.expectReconciled([]string{"secrets"})
	f.manager.Publish(published)
	f.expectReconciled([]string{"configmaps", "secrets"})
}

func TestControllersFollowTheConnection(t *testing.T) {
	f := newFixture(t)
	setMatcher(f.manager, selecting("configmaps"))
	f.expectReconciled([]string{"configmaps", "secrets"}, "configmaps/v1 secrets/v1")
	f.target.Connection = connection(t)
	f.manager.StartSync(f.target)
	before := f.controllers()
	f.expectReconciled([]string{"configmaps", "secrets"})
	for name, controller := range f.controllers() {
		if controller.Connection != f.target.Connection || controller == before[name] {
			t.Errorf("%s keeps its former connection", name)
		}
	}
}

func TestUnassignEndsAll(t *testing.T) {
	f := newFixture(t)
	setMatcher(f.manager, selecting("configmaps"))
	f.expectReconciled([]string{"configmaps", "secrets"}, "configmaps/v1 secrets/v1")
	held, _ := f.manager.get(florin)
	f.manager.StopSync(florin)
	f.manager.StopSync(florin)
	f.expectReconciled([]string{})
	if err := f.manager.reconcileGone(t.Context(), held); err != nil || f.manager.Status(florin).ConfigsKnown {
		t.Errorf("controllers of an unassigned SyncTarget still run: %v", err)
	}
}

// reconcileGone reconciles a target that was unassigned after a worker had picked it.
func (m *Manager) reconcileGone(ctx context.Context, held *targetState) error {
	m.lock.Lock()
	m.decisions[florin] = syncDecision{state: held}
	m.lock.Unlock()
	_, err := m.Reconcile(ctx, florin)
	m.lock.Lock()
	delete(m.decisions, florin)
	m.lock.Unlock()
	if running := len(held.syncControllers); err == nil && running > 0 {
		return fmt.Errorf("%d controllers run", running)
	}
	return err
}
