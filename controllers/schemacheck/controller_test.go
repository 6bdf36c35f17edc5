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

package schemacheck

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	clocktesting "k8s.io/utils/clock/testing"
)

// A trusted resource is first compared when the trust ends, or when the target reports a change.
func TestTrustedResourcesAreComparedLater(t *testing.T) {
	widgets := schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "widgets"}
	for name, test := range map[string]struct {
		trusted time.Duration
		then    func(*Controller)
		want    time.Duration
	}{
		"not trusted":                         {0, func(*Controller) {}, 0},
		"trusted":                             {time.Minute, func(*Controller) {}, time.Minute},
		"trusted, and the target came up":     {time.Minute, (*Controller).recheckAll, time.Minute},
		"trusted, and the definition changed": {time.Minute, func(k *Controller) { k.onCRDChanged(widgets.GroupResource()) }, debounceDelay},
		"trusted, and something else changed": {time.Minute, func(k *Controller) { k.onCRDChanged(schema.GroupResource{Resource: "gadgets"}) }, time.Minute},
		"trusted until long ago":              {-time.Minute, (*Controller).recheckAll, 0},
	} {
		t.Run(name, func(t *testing.T) {
			now := clocktesting.NewFakeClock(time.Unix(1000, 0))
			desired := Resource{Target: widgets, Kind: "Widget"}
			if test.trusted != 0 {
				desired.TrustedUntil = now.Now().Add(test.trusted)
			}
			keeper := New(Options{Clock: now})
			keeper.SetResources(map[schema.GroupResource]Resource{widgets.GroupResource(): desired})
			test.then(keeper)
			due, wait := keeper.nextDue()
			if wait != test.want || len(due) > 0 != (test.want == 0) {
				t.Errorf("want it in %v, got %v now, else in %v", test.want, due, wait)
			}
		})
	}
}

// Each version has its own schema, so another version is compared before anything is written.
func TestAnotherVersionIsNotKnown(t *testing.T) {
	keeper := New(Options{Clock: clocktesting.NewFakeClock(time.Unix(1000, 0))})
	group := schema.GroupResource{Group: "example.org", Resource: "widgets"}
	want := func(version string) {
		keeper.SetResources(map[schema.GroupResource]Resource{group: {Target: group.WithVersion(version), Kind: "Widget"}})
	}
	want("v1")
	keeper.setResult(group, keeper.entries[group].resource, accepted(ReasonCompatible, "It fits."), nil)
	for _, version := range []string{"v1", "v2"} {
		want(version)
		_, known := keeper.State(group)
		fits := false
		select {
		case <-keeper.Unblocked(group):
			fits = true
		default:
		}
		if isFirst := version == "v1"; known != isFirst || fits != isFirst {
			t.Errorf("%s: known is %v, fits is %v", version, known, fits)
		}
	}
}
