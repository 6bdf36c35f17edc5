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
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// A trusted resource is first compared when the trust ends, or when the target reports a change.
func TestTrustedResourcesAreComparedLater(t *testing.T) {
	widgets := schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "widgets"}
	isUp := func(c *Controller) { c.recheckAll(0) }
	for name, test := range map[string]struct {
		trusted time.Duration
		then    func(*Controller)
		want    time.Duration
	}{
		"not trusted":                         {0, func(*Controller) {}, 0},
		"trusted":                             {time.Minute, func(*Controller) {}, time.Minute},
		"trusted for long":                    {time.Hour, func(*Controller) {}, time.Hour},
		"trusted, and the target came up":     {time.Minute, isUp, time.Minute},
		"trusted, and the definition changed": {time.Hour, func(c *Controller) { c.onCRDChanged(widgets.GroupResource()) }, debounceDelay},
		"trusted, and something else changed": {time.Minute, func(c *Controller) { c.onCRDChanged(schema.GroupResource{Resource: "gadgets"}) }, time.Minute},
		"trusted until long ago":              {-time.Minute, isUp, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				controller := New(Options{Clock: clock.RealClock{}})
				compared := make(chan time.Time, 1)
				controller.queue = controller.newQueue(reconcile.TypedFunc[schema.GroupResource](func(context.Context, schema.GroupResource) (reconcile.Result, error) {
					compared <- time.Now()
					return reconcile.Result{}, nil
				}))
				desired, start := Resource{Target: widgets, Kind: "Widget"}, time.Now()
				if test.trusted != 0 {
					desired.TrustedUntil = start.Add(test.trusted)
				}
				ended := make(chan error, 1)
				go func() { ended <- controller.queue.Run(ctx) }()
				controller.SetResources(map[schema.GroupResource]Resource{widgets.GroupResource(): desired})
				test.then(controller)
				if got := (<-compared).Sub(start).Round(time.Millisecond); got != test.want {
					t.Errorf("want the comparison after %v, got it after %v", test.want, got)
				}
				cancel()
				if err := <-ended; err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// Trust ends with the first reconcile, even if the target is down then: the resource is compared when the
// target is up.
func TestTrustEndsWithTheFirstReconcile(t *testing.T) {
	controller := New(Options{Clock: clock.RealClock{}})
	resource := schema.GroupResource{Resource: "widgets"}
	controller.SetResources(map[schema.GroupResource]Resource{resource: {Target: resource.WithVersion("v1"), Kind: "Widget", TrustedUntil: time.Now().Add(time.Minute)}})
	controller.recheckAll(0)
	if waiting := controller.queue.Len(); waiting != 0 {
		t.Fatalf("%d additions to the queue before the trust has ended", waiting)
	}
	if _, _, ok := controller.take(resource); !ok {
		t.Fatal("there is nothing to compare")
	}
	controller.recheckAll(0)
	if waiting := controller.queue.Len(); waiting != 1 {
		t.Errorf("%d additions to the queue, want one because the target has come up", waiting)
	}
}

// Resources of a target that comes up are compared again only if a comparison was skipped.
func TestResume(t *testing.T) {
	controller := New(Options{Clock: clock.RealClock{}})
	resource := schema.GroupResource{Resource: "widgets"}
	controller.SetResources(map[schema.GroupResource]Resource{resource: {Target: resource.WithVersion("v1"), Kind: "Widget"}})
	for _, test := range []struct {
		skipped bool
		want    int
	}{{false, 1}, {true, 2}, {false, 2}} {
		controller.skipped = test.skipped
		controller.resume()
		if waiting := controller.queue.Len(); waiting != test.want || controller.skipped {
			t.Errorf("skipped %v: %d additions to the queue, want %d", test.skipped, waiting, test.want)
		}
		controller.skipped = false
	}
}

// A schemas lasts while a resource waits. It must not be used for a resource that changed since it began.
func TestTargetSchemasAreSharedUntilTheyAreOutdated(t *testing.T) {
	changed, unchanged := schema.GroupResource{Resource: "widgets"}, schema.GroupResource{Resource: "gadgets"}
	controller := New(Options{Clock: clock.RealClock{}})
	controller.SetResources(map[schema.GroupResource]Resource{changed: {Target: changed.WithVersion("v1")}, unchanged: {Target: unchanged.WithVersion("v1")}})
	shared := &TargetSchemas{}
	controller.schemas = shared
	controller.dropSchemas()
	if controller.schemas != shared {
		t.Fatal("the schemas ended though resources wait")
	}
	controller.onCRDChanged(changed)
	for resource, want := range map[schema.GroupResource]*TargetSchemas{changed: shared, unchanged: nil} {
		if _, outdated, ok := controller.take(resource); !ok || outdated != want {
			t.Errorf("%s: the outdated schemas is %p, want %p", resource, outdated, want)
		}
	}
	controller.setResult(unchanged, controller.entries[unchanged].resource, notAnsweredState, errors.New("no answer"))
	if _, outdated, _ := controller.take(unchanged); outdated != shared {
		t.Error("a failed comparison is repeated with the cached schemas")
	}
}

// Each version has its own schema, so another version is compared before any object is written.
func TestAnotherVersionIsNotKnown(t *testing.T) {
	controller := New(Options{Clock: clock.RealClock{}})
	group := schema.GroupResource{Group: "example.org", Resource: "widgets"}
	want := func(version string) {
		controller.SetResources(map[schema.GroupResource]Resource{group: {Target: group.WithVersion(version), Kind: "Widget"}})
	}
	want("v1")
	controller.setResult(group, controller.entries[group].resource, accepted(ReasonCompatible, "It fits."), nil)
	for _, version := range []string{"v1", "v2"} {
		want(version)
		_, known := controller.State(group)
		fits := false
		select {
		case <-controller.Unblocked(group):
			fits = true
		default:
		}
		if isFirst := version == "v1"; known != isFirst || fits != isFirst {
			t.Errorf("%s: known is %v, fits is %v", version, known, fits)
		}
	}
}
