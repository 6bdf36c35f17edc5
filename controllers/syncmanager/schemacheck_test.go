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
	"slices"
	gosync "sync"
	"testing"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/clock"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/controllers/syncmanager/schemacheck"
)

var deployments = schema.GroupResource{Group: "apps", Resource: "deployments"}

// newSchemaCheckFixture returns a fixture in which the hub publishes the schema of deployments, whose recorded state is before.
func newSchemaCheckFixture(t *testing.T, before schemacheck.State) *fixture {
	f := newFixture(t)
	f.manager.Checker, f.manager.catalog.comparesSchemas = schemacheck.NewChecker(clock.RealClock{}), true
	published := f.manager.Published()
	for i := range published {
		published[i].PublishedResource = published[i].Resource
	}
	f.manager.SetSchemas(schemasOf(false))
	found, _ := f.manager.get(florin)
	if before != (schemacheck.State{}) {
		found.compatibilityStates = map[schema.GroupResource]schemacheck.State{deployments: before}
		found.writtenResources[deployments] = WrittenResource{Version: "v1", Direct: true, Compatibility: before, Served: true}
		for resource, record := range found.writtenResources {
			if resource != deployments {
				record.Compatibility, record.Served = schemacheck.NotCompared(false), true
				found.writtenResources[resource] = record
			}
		}
	}
	setMatcher(f.manager, selecting("deployments.apps"))
	return f
}

func schemasOf(warn bool) map[schema.GroupResource]schemacheck.Schema {
	return map[schema.GroupResource]schemacheck.Schema{deployments: {Name: "v1.deployments.apps", Version: "v1", OpenAPI: &apiextensionsv1.JSONSchemaProps{}, WarnOnly: warn}}
}

func incompatibleState() schemacheck.State {
	return schemacheck.State{SyncedResourceState: edgev2alpha1.SyncedResourceIncompatible, Reason: schemacheck.ReasonSchemaIncompatible, Message: "No."}
}

// An incompatible resource is not synced, whether or not the target responds, unless the PublishedResource
// allows it. Its written resource stays.
func TestIncompatibleResourcesAreNotSynced(t *testing.T) {
	f := newSchemaCheckFixture(t, incompatibleState())
	f.expectReconciled([]string{"secrets"})
	if view, _ := f.manager.View(florin); view.Incompatible[deployments] != incompatibleState() {
		t.Errorf("the view does not contain the incompatible resource: %+v", view.Incompatible)
	}
	if states := f.manager.States(florin); states[deployments] != incompatibleState() {
		t.Errorf("the states are %+v", states)
	}
	f.manager.SetSchemas(schemasOf(true))
	f.expectReconciled([]string{"deployments.apps", "secrets"})
	f.manager.SetSchemas(schemasOf(false))
	f.expectReconciled([]string{"secrets"})
	// Without a response of the target, it is unknown whether the resource is empty.
	setMatcher(f.manager, selecting("configmaps"))
	f.expectReconciled([]string{"configmaps", "secrets"}, "configmaps/v1 deployments.apps/v1 secrets/v1")
}

// A controller runs while the compatibility is unknown, but a new one writes nothing before the comparison.
func TestPossiblyCompatibleResourcesAreSynced(t *testing.T) {
	for name, test := range map[string]struct {
		before schemacheck.State
		waits  bool
	}{
		"nothing is known":       {schemacheck.State{}, true},
		"it fitted":              {schemacheck.State{SyncedResourceState: edgev2alpha1.SyncedResourceAccepted, Reason: schemacheck.ReasonCompatible}, false},
		"it was not served":      {schemacheck.State{SyncedResourceState: edgev2alpha1.SyncedResourceIncompatible, Reason: schemacheck.ReasonNotServed}, true},
		"the target is an older": {schemacheck.State{SyncedResourceState: edgev2alpha1.SyncedResourceAccepted, Reason: schemacheck.ReasonOlderAPI}, false},
	} {
		t.Run(name, func(t *testing.T) {
			f := newSchemaCheckFixture(t, test.before)
			if test.before == (schemacheck.State{}) {
				f.expectReconciled([]string{"deployments.apps", "secrets"}, "deployments.apps/v1 secrets/v1")
			} else {
				f.expectReconciled([]string{"deployments.apps", "secrets"})
			}
			found, _ := f.manager.get(florin)
			fits := found.schemaCheck.Unblocked(deployments)
			if waits := slices.Contains(f.controllers()["deployments.apps"].WaitFor, fits); waits != test.waits {
				t.Errorf("it waits: %v, want %v", waits, test.waits)
			}
			if state := f.manager.States(florin)[schema.GroupResource{Resource: "secrets"}]; state.Reason != schemacheck.ReasonNotCompared {
				t.Errorf("secrets are %+v", state)
			}
		})
	}
}

// A comparison by the previous leader with the same schema need not be repeated at once.
func TestCompatibleResourcesAreTrusted(t *testing.T) {
	published := schemacheck.Schema{Name: "v1.deployments.apps", Version: "v1"}
	trust := time.Unix(1000, 0)
	fitted := schemacheck.State{SyncedResourceState: edgev2alpha1.SyncedResourceAccepted, Reason: schemacheck.ReasonCompatible, Schema: published.ID()}
	other, older, refused := fitted, fitted, incompatibleState()
	other.Schema, older.Schema, refused.Schema = "v2.deployments.apps/v1", "", published.ID()
	for name, test := range map[string]struct {
		before schemacheck.State
		trust  time.Time
		want   time.Time
	}{
		"it fitted":                                {fitted, trust, trust},
		"it fitted, with another schema":           {other, trust, time.Time{}},
		"it fitted, with nobody knows what schema": {older, trust, time.Time{}},
		"it fitted, but that is long ago":          {fitted, time.Time{}, time.Time{}},
		"it did not fit":                           {refused, trust, time.Time{}},
		"nothing is known":                         {schemacheck.State{}, trust, time.Time{}},
	} {
		t.Run(name, func(t *testing.T) {
			state := &targetState{compatibilityStates: map[schema.GroupResource]schemacheck.State{}}
			if test.before != (schemacheck.State{}) {
				state.compatibilityStates[deployments] = test.before
			}
			if got := (&pass{state: state, target: Target{TrustedUntil: test.trust}}).trustedUntil(resources("deployments.apps")[0], published); !got.Equal(test.want) {
				t.Errorf("want %v, got %v", test.want, got)
			}
		})
	}
}

// A report about all SyncTargets waits for the lock of one of them, but must block nothing else: the holder of
// that lock may need the manager's.
func TestReportsAboutAllDoNotHoldTheManager(t *testing.T) {
	f := newSchemaCheckFixture(t, incompatibleState())
	counter := NewFleetCounter(f.manager, entries{florin: entryWith("f", nil)})
	const calls = 2000
	var working gosync.WaitGroup
	working.Go(func() {
		for range calls {
			f.manager.View(florin)
		}
	})
	working.Go(func() {
		for range calls {
			counter.SyncTargetsMissingAPI(deployments)
			counter.Count(deployments)
		}
	})
	done := make(chan struct{})
	go func() {
		working.Wait()
		close(done)
	}()
	select {
	case <-done:
	case <-time.After(time.Minute):
		t.Fatal("views and reports wait for each other")
	}
}
