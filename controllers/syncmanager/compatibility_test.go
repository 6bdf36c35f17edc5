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
	"testing"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/clock"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/controllers/compatibility"
)

var deployments = schema.GroupResource{Group: "apps", Resource: "deployments"}

// newComparing is a fixture in which deployments come from the hub, and of which is known of before whether they fit.
func newComparing(t *testing.T, before compatibility.State) *fixture {
	f := newFixture(t)
	f.manager.Checker = compatibility.NewChecker(clock.RealClock{})
	published := f.manager.Published()
	for i := range published {
		published[i].PublishedResource = published[i].Resource
	}
	f.manager.SetSchemas(schemasOf(false))
	found, _ := f.manager.get(florin)
	if before != (compatibility.State{}) {
		found.fits = map[schema.GroupResource]compatibility.State{deployments: before}
		found.recorded[deployments] = Record{Version: "v1", Own: true, Fit: before}
		for resource, record := range found.recorded {
			if resource != deployments {
				record.Fit = compatibility.NotCompared(false)
				found.recorded[resource] = record
			}
		}
	}
	learn(f.manager, selecting("deployments.apps"))
	return f
}

func schemasOf(warn bool) map[schema.GroupResource]compatibility.Schema {
	return map[schema.GroupResource]compatibility.Schema{deployments: {Name: "v1.deployments.apps", Version: "v1", OpenAPI: &apiextensionsv1.JSONSchemaProps{}, Warn: warn}}
}

func refusing() compatibility.State {
	return compatibility.State{SyncedResourceState: edgev2alpha1.SyncedResourceIncompatible, Reason: compatibility.ReasonSchema, Message: "No."}
}

// What is known not to fit is not synced, whether or not the target can be asked, unless the PublishedResource says so. It
// stays on record.
func TestWhatDoesNotFitIsFrozen(t *testing.T) {
	f := newComparing(t, refusing())
	f.settled([]string{"secrets"})
	if view, _ := f.manager.View(florin); view.Frozen[deployments] != refusing() {
		t.Errorf("the view does not say so: %+v", view.Frozen)
	}
	if states := f.manager.States(florin); states[deployments] != refusing() {
		t.Errorf("the states are %+v", states)
	}
	f.manager.SetSchemas(schemasOf(true))
	f.settled([]string{"deployments.apps", "secrets"})
	f.manager.SetSchemas(schemasOf(false))
	f.settled([]string{"secrets"})
	// Nobody can tell that nothing is left of it.
	learn(f.manager, selecting("configmaps"))
	f.settled([]string{"configmaps", "secrets"}, "configmaps/v1 deployments.apps/v1 secrets/v1")
}

// A pair runs while it is not known whether objects fit, but a new one writes nothing before that is known.
func TestWhatMayFitRuns(t *testing.T) {
	for name, test := range map[string]struct {
		before compatibility.State
		waits  bool
	}{
		"nothing is known":       {compatibility.State{}, true},
		"it fitted":              {compatibility.State{SyncedResourceState: edgev2alpha1.SyncedResourceAccepted, Reason: compatibility.ReasonFits}, false},
		"it was not served":      {compatibility.State{SyncedResourceState: edgev2alpha1.SyncedResourceIncompatible, Reason: compatibility.ReasonNotServed}, true},
		"the target is an older": {compatibility.State{SyncedResourceState: edgev2alpha1.SyncedResourceAccepted, Reason: compatibility.ReasonOlder}, false},
	} {
		t.Run(name, func(t *testing.T) {
			f := newComparing(t, test.before)
			if test.before == (compatibility.State{}) {
				f.settled([]string{"deployments.apps", "secrets"}, "deployments.apps/v1 secrets/v1")
			} else {
				f.settled([]string{"deployments.apps", "secrets"})
			}
			found, _ := f.manager.get(florin)
			fits := found.comparing.Fits(deployments)
			if waits := slices.Contains(f.controllers()["deployments.apps"].After, fits); waits != test.waits {
				t.Errorf("it waits: %v, want %v", waits, test.waits)
			}
			if state := f.manager.States(florin)[schema.GroupResource{Resource: "secrets"}]; state.Reason != compatibility.ReasonNotCompared {
				t.Errorf("secrets are %+v", state)
			}
		})
	}
}

// What the hub before has compared with the same schema need not be compared at once.
func TestWhatFittedIsTrusted(t *testing.T) {
	published := compatibility.Schema{Name: "v1.deployments.apps", Version: "v1"}
	trust := Trust{Until: time.Unix(1000, 0)}
	fitted := compatibility.State{SyncedResourceState: edgev2alpha1.SyncedResourceAccepted, Reason: compatibility.ReasonFits, Schema: published.ID()}
	other, older, refused := fitted, fitted, refusing()
	other.Schema, older.Schema, refused.Schema = "v2.deployments.apps/v1", "", published.ID()
	for name, test := range map[string]struct {
		before compatibility.State
		trust  Trust
		want   time.Time
	}{
		"it fitted":                                {fitted, trust, trust.Until},
		"it fitted, with another schema":           {other, trust, time.Time{}},
		"it fitted, with nobody knows what schema": {older, trust, time.Time{}},
		"it fitted, but that is long ago":          {fitted, Trust{}, time.Time{}},
		"it did not fit":                           {refused, trust, time.Time{}},
		"nothing is known":                         {compatibility.State{}, trust, time.Time{}},
	} {
		t.Run(name, func(t *testing.T) {
			managed := &managed{target: Target{Trusted: test.trust}, fits: map[schema.GroupResource]compatibility.State{}}
			if test.before != (compatibility.State{}) {
				managed.fits[deployments] = test.before
			}
			if got := managed.trusts(resources("deployments.apps")[0], published); !got.Equal(test.want) {
				t.Errorf("want %v, got %v", test.want, got)
			}
		})
	}
}
