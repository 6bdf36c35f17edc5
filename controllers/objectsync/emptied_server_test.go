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

package objectsync

import (
	"cmp"
	"errors"
	"reflect"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/synchub-dev/synchub/controllers/plan"
	"github.com/synchub-dev/synchub/controllers/plan/ownership"
	"github.com/synchub-dev/synchub/provider/metrics/requestmetrics"
	"github.com/synchub-dev/synchub/test/fixtures"
	"github.com/synchub-dev/synchub/test/framework"
)

// shapes is a CRD with maps and lists of all types, and an object.
const shapes = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: shapes.emptied.example.org}
spec:
  group: emptied.example.org
  names: {plural: shapes, singular: shape, kind: Shape, listKind: ShapeList}
  scope: Namespaced
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          values: {type: object, x-kubernetes-preserve-unknown-fields: true}
          settings: {type: object, additionalProperties: {type: string}}
          whole: {type: object, properties: {size: {type: integer}}}
          needy: {type: object, required: [map], properties: {map: {type: object, additionalProperties: {type: string}}}}
          spec:
            type: object
            x-kubernetes-validations: [{rule: "!has(self.mode) || self.mode != 'full' || size(self.set) > 0", message: a full one has a set}]
            properties:
              mode: {type: string}
              free: {type: object, x-kubernetes-preserve-unknown-fields: true}
              map: {type: object, additionalProperties: {type: string}}
              fixed: {type: object, x-kubernetes-validations: [{rule: self == oldSelf, message: Value is immutable}], additionalProperties: {type: string}}
              nullable: {type: object, nullable: true, additionalProperties: {type: string}}
              defaulted: {type: object, default: {x: d}, additionalProperties: {type: string}}
              withDefaults: {type: object, properties: {size: {type: integer, default: 3}, color: {type: string}}}
              objects: {type: object, additionalProperties: {type: object, properties: {size: {type: integer}, more: {type: object, additionalProperties: {type: string}}}}}
              struct: {type: object, properties: {size: {type: integer}, color: {type: string}}}
              atomic: {type: object, x-kubernetes-map-type: atomic, additionalProperties: {type: string}}
              list: {type: array, items: {type: string}}
              set: {type: array, x-kubernetes-list-type: set, items: {type: string}}
              keyed: {type: array, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [name], items: {type: object, required: [name], properties: {name: {type: string}, labels: {type: object, additionalProperties: {type: string}}}}}
---
apiVersion: emptied.example.org/v1
kind: Shape
metadata: {name: served}
`

var shapesV1 = schema.GroupVersionResource{Group: "emptied.example.org", Version: "v1", Resource: "shapes"}

// shaper writes one Shape to the target.
type shaper struct {
	*targetHarness
	name string
}

func newShaper(t *testing.T) *shaper {
	t.Helper()
	put(t, shapes)
	requestmetrics.RegisterResource(shapesV1.GroupResource())
	return &shaper{newTargetHarness(t, connect(t), shapesV1, "Shape", plan.Resource{}), unique("shape")}
}

// another returns a shaper for another Shape.
func (s *shaper) another(t *testing.T) *shaper {
	t.Helper()
	harness := *s.targetHarness
	harness.t = t
	return &shaper{&harness, unique("shape")}
}

func (s *shaper) source(fields string) *unstructured.Unstructured {
	s.t.Helper()
	return fixtures.Object(s.t, "{apiVersion: emptied.example.org/v1, kind: Shape, metadata: {name: "+s.name+", namespace: default, uid: u}, "+fields+"}")
}

func (s *shaper) create(fields string) {
	s.t.Helper()
	if err := s.applySource(s.source(fields), ownership.PolicyDelete); err != nil {
		s.t.Fatal(err)
	}
}

func (s *shaper) live() *unstructured.Unstructured {
	s.t.Helper()
	return s.get(s.source(""))
}

// apply applies the fields like a reconcile that observes the object on the target.
func (s *shaper) apply(fields string) error {
	s.t.Helper()
	live := s.live()
	return s.applyInPlace(s.t.Context(), s.observeTarget(live), s.desired(s.source(fields), ownership.PolicyDelete), live.GetUID())
}

// applyAndCount applies the fields, and fails the test unless the hub sent the given number of requests.
func (s *shaper) applyAndCount(fields string, want float64) {
	s.t.Helper()
	before := s.requests()
	if err := s.apply(fields); err != nil {
		s.t.Fatal(err)
	}
	if sent := s.requests() - before - 1; sent != want { // the test itself read the object
		s.t.Errorf("want %v requests for %s, got %v", want, fields, sent)
	}
}

// expect fails the test unless the object on the target has the fields, is in sync with the source's fields, and no update by the
// hub owns a field.
func (s *shaper) expect(source, want string) {
	s.t.Helper()
	live := s.live()
	got, wanted := live.DeepCopy().Object, s.source(want).Object
	for _, fields := range []map[string]any{got, wanted} {
		for _, field := range []string{"apiVersion", "kind", "metadata"} {
			delete(fields, field)
		}
		// The comparison ignores the default, unless the test expects it.
		if !strings.Contains(want, "defaulted") {
			unstructured.RemoveNestedField(fields, "spec", "defaulted")
		}
	}
	if !reflect.DeepEqual(got, wanted) {
		s.t.Errorf("want %v, got %v", wanted, got)
	}
	decision, err := plan.DecideDown(plan.SourceState{State: plan.Selected, Desired: s.desired(s.source(source), ownership.PolicyDelete)}, s.observeTarget(live).Observed, nil)
	if err != nil || decision.Cause != plan.InSync {
		s.t.Errorf("want it in sync, got %v, %v", decision, err)
	}
	for _, entry := range live.GetManagedFields() {
		if entry.Manager == testFieldManager && entry.Operation == metav1.ManagedFieldsOperationUpdate {
			s.t.Errorf("an update of the hub's owns %s", entry.FieldsV1.GetRawString())
		}
	}
}

// somebody patches the object on the target as another client.
func (s *shaper) patchAsOther(kind types.PatchType, patch string, options metav1.PatchOptions) {
	s.t.Helper()
	options.FieldManager = cmp.Or(options.FieldManager, "somebody")
	if _, err := administrator(s.t).Resource(shapesV1).Namespace("default").Patch(s.t.Context(), s.name, kind, []byte(patch), options); err != nil {
		s.t.Fatal(err)
	}
}

// requests returns the number of requests about Shapes that the hub has sent.
func (s *shaper) requests() (sent float64) {
	for _, one := range framework.Gather(s.t, requestmetrics.Collectors()...) {
		if strings.HasPrefix(one.Labels["resource"], "shapes") {
			sent += one.Value
		}
	}
	return sent
}

// A map or list whose entries the source removes stays as an empty one, for every type of map and list, and is filled again. The
// test counts requests, so it does not run in parallel.
func TestEmptiedMapsAndLists(t *testing.T) {
	one := newShaper(t)
	for name, test := range map[string]struct {
		full, empty string
		// want and filled are the empty and the full fields on the target, if they differ from the mailbox.
		want, filled string
		// extra is the number of requests beside the apply.
		extra float64
	}{
		"free at the top":           {full: "values: {a: 1}", empty: "values: {}", extra: 2},
		"map at the top":            {full: "settings: {a: x}", empty: "settings: {}", extra: 2},
		"struct at the top":         {full: "whole: {size: 1}", empty: "whole: {}", extra: 2},
		"whole spec":                {full: "spec: {map: {a: x}, struct: {size: 1}, set: [a], defaulted: {x: d}}", empty: "spec: {}", extra: 2},
		"whole spec with a default": {full: "spec: {map: {a: x}, struct: {size: 1}, set: [a]}", empty: "spec: {}", extra: 1},
		"required map":              {full: "needy: {map: {a: x, b: x}}", empty: "needy: {map: {}}", extra: 2},
		"free":                      {full: "spec: {free: {a: 1}}", empty: "spec: {free: {}}", extra: 2},
		"free within free":          {full: "spec: {free: {a: {b: {c: 1, d: 2}}}}", empty: "spec: {free: {a: {b: {}}}}", extra: 2},
		"list within free":          {full: "spec: {free: {a: [1]}}", empty: "spec: {free: {a: []}}"},
		"map":                       {full: "spec: {map: {a: x}}", empty: "spec: {map: {}}", extra: 2},
		"nullable map":              {full: "spec: {nullable: {a: x}}", empty: "spec: {nullable: {}}", extra: 2},
		"map with a default":        {full: "spec: {defaulted: {a: x}}", empty: "spec: {defaulted: {}}", extra: 2},
		"struct with defaults":      {full: "spec: {withDefaults: {color: red}}", empty: "spec: {withDefaults: {}}", want: "spec: {withDefaults: {size: 3}}", filled: "spec: {withDefaults: {color: red, size: 3}}", extra: 1},
		"map of objects":            {full: "spec: {objects: {a: {size: 1}}}", empty: "spec: {objects: {}}", extra: 2},
		"an object of a map":        {full: "spec: {objects: {a: {size: 1}, b: {size: 1}}}", empty: "spec: {objects: {a: {}}}", extra: 2},
		"the map of a map's object": {full: "spec: {objects: {a/b~c~1: {size: 1, more: {x: z}}}}", empty: "spec: {objects: {a/b~c~1: {size: 1, more: {}}}}", extra: 2},
		"struct":                    {full: "spec: {struct: {size: 1, color: red}}", empty: "spec: {struct: {}}", extra: 2},
		"atomic map":                {full: "spec: {atomic: {a: x}}", empty: "spec: {atomic: {}}"},
		"atomic list":               {full: "spec: {list: [a]}", empty: "spec: {list: []}"},
		"set":                       {full: "spec: {set: [a, b]}", empty: "spec: {set: []}", extra: 2},
		"keyed list":                {full: "spec: {keyed: [{name: a, labels: {x: z}}]}", empty: "spec: {keyed: []}", extra: 2},
		"the map of a keyed item":   {full: "spec: {keyed: [{name: a}, {name: b, labels: {x: z}}]}", empty: "spec: {keyed: [{name: b, labels: {}}, {name: a}]}", extra: 2},
		"several":                   {full: "settings: {a: x}, spec: {map: {a: x}, mode: one, set: [a]}", empty: "settings: {}, spec: {map: {}, mode: two, set: []}", extra: 2},
		"a set that may not be":     {full: "spec: {mode: full, set: [a]}", empty: "spec: {mode: empty, set: []}", extra: 3},
		"a map moves":               {full: "spec: {free: {a: {b: 1}}}", empty: "spec: {free: {c: {}}}"},
	} {
		t.Run(name, func(t *testing.T) {
			s := one.another(t)
			s.create(test.full)
			s.applyAndCount(test.empty, 1+test.extra)
			s.expect(test.empty, cmp.Or(test.want, test.empty))
			s.applyAndCount(test.empty, 1)
			s.applyAndCount(test.full, 1)
			s.expect(test.full, cmp.Or(test.filled, test.full))
		})
	}
}

// The hub keeps entries that other clients have set in a map, and maps that another client has set without an entry.
func TestEmptiedMapsOfOtherManagers(t *testing.T) {
	t.Parallel()
	one := newShaper(t)
	force := metav1.PatchOptions{Force: new(true)}
	apply := func(fields string) string {
		return "{apiVersion: emptied.example.org/v1, kind: Shape, " + fields + "}"
	}
	for name, test := range map[string]struct {
		full   string
		change func(s *shaper)
		empty  string
		want   string
	}{
		"an entry of another client": {
			"spec: {map: {a: x}}", func(s *shaper) {
				s.patchAsOther(types.MergePatchType, `{"spec": {"map": {"b": "z"}}}`, metav1.PatchOptions{})
			},
			"spec: {map: {}}", "spec: {map: {b: z}}",
		},
		"an entry of another client, beside a map of the hub": {
			"settings: {a: x}, spec: {map: {a: x}}", func(s *shaper) {
				s.patchAsOther(types.MergePatchType, `{"spec": {"map": {"b": "z"}}}`, metav1.PatchOptions{})
			},
			"settings: {}, spec: {map: {}}", "settings: {}, spec: {map: {b: z}}",
		},
		"a field of another client in a removed entry": {
			"spec: {objects: {a: {size: 1}}}", func(s *shaper) {
				s.patchAsOther(types.MergePatchType, `{"spec": {"objects": {"a": {"more": {"b": "z"}}}}}`, metav1.PatchOptions{})
			},
			"spec: {objects: {}}", "spec: {objects: {}}",
		},
		"a field of another client in an object of the hub": {
			"spec: {struct: {size: 1}}", func(s *shaper) {
				s.patchAsOther(types.MergePatchType, `{"spec": {"struct": {"color": "red"}}}`, metav1.PatchOptions{})
			},
			"spec: {struct: {}}", "spec: {struct: {color: red}}",
		},
		"the same entry": {
			"settings: {a: x}", func(s *shaper) { s.patchAsOther(types.ApplyPatchType, apply("settings: {a: x}"), force) },
			"settings: {}", "settings: {a: x}",
		},
		"the empty map": {
			"settings: {a: x}", func(s *shaper) { s.patchAsOther(types.ApplyPatchType, apply("settings: {}"), force) },
			"values: {b: 1}", "values: {b: 1}, settings: {}",
		},
		"an empty object": {
			"spec: {objects: {a: {size: 1}}}", func(s *shaper) { s.patchAsOther(types.ApplyPatchType, apply("spec: {objects: {a: {}}}"), force) },
			"spec: {mode: x}", "spec: {mode: x, objects: {a: {}}}",
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := one.another(t)
			s.create(test.full)
			test.change(s)
			if err := s.apply(test.empty); err != nil {
				t.Fatal(err)
			}
			s.expect(test.empty, test.want)
		})
	}
}

// A released object still has the fields that the hub applied, and may be adopted with an empty map.
func TestEmptiedMapOfAReleasedObject(t *testing.T) {
	t.Parallel()
	s := newShaper(t)
	s.create("spec: {map: {a: x}}")
	adopt := func() error {
		live := s.live()
		current := plan.Copy{API: s.target.TargetAPI, Key: keyOf(live), Object: live}
		return s.adopt(t.Context(), current, live, s.desired(s.source("spec: {map: {}}"), ownership.PolicyDelete).AsAdopted())
	}
	if err := adopt(); !errors.Is(err, errOutdated) {
		t.Errorf("got %v", err)
	}
	if err := adopt(); err != nil {
		t.Error(err)
	}
	s.expect("spec: {map: {}}", "spec: {map: {}}")
}

// A changed immutable field is reported as immutable, and not as a null that no user wrote.
func TestEmptiedMapThatIsImmutable(t *testing.T) {
	t.Parallel()
	s := newShaper(t)
	s.create("spec: {fixed: {a: x}}")
	if err := s.apply("spec: {fixed: {}}"); err == nil || ReasonFor(err) != plan.ReasonImmutable || strings.Contains(err.Error(), "null") {
		t.Errorf("got %v", err)
	}
	s.expect("spec: {fixed: {a: x}}", "spec: {fixed: {a: x}}")
}

// The hub does not remove the fields of other clients where the mailbox has a null. It reports the conflict at each try.
func TestNullOverFieldsOfOtherManagers(t *testing.T) {
	t.Parallel()
	s := newShaper(t)
	s.create("spec: {nullable: null}")
	s.expect("spec: {nullable: null}", "spec: {nullable: null}")
	s.patchAsOther(types.MergePatchType, `{"spec": {"nullable": {"b": "z"}}}`, metav1.PatchOptions{})
	for range 2 {
		err := s.apply("spec: {nullable: null}")
		if err == nil || ReasonFor(err) != plan.ReasonContended || !strings.Contains(err.Error(), "somebody") || !strings.Contains(err.Error(), ".spec.nullable") {
			t.Fatalf("got %v", err)
		}
		live := s.live()
		dropped := s.view.writes.DroppedPaths(s.observeTarget(live).Ref())
		desired := s.desired(s.source("spec: {nullable: null}"), ownership.PolicyDelete)
		decision, err := plan.DecideDown(plan.SourceState{State: plan.Selected, Desired: desired}, s.observeTarget(live).Observed, dropped)
		if err != nil || decision.Cause != plan.Drifted {
			t.Errorf("want drift, got %v, %v", decision, err)
		}
		conflict := s.fieldConflictError(t.Context(), plan.Operation{Decision: decision, Copy: s.observeTarget(live), Desired: desired})
		if !strings.Contains(conflict.Error(), "[somebody] keeps changing [.spec.nullable]") {
			t.Errorf("got %v", conflict)
		}
	}
	s.patchAsOther(types.MergePatchType, `{"spec": {"nullable": null}}`, metav1.PatchOptions{})
	if err := s.apply("spec: {nullable: null}"); err != nil {
		t.Error(err)
	}
}

// An admission webhook fills a null as part of each write by the hub. The hub accepts that, like all changes by webhooks.
func TestNullThatAWebhookFills(t *testing.T) {
	t.Parallel()
	s := newShaper(t)
	s.create("spec: {nullable: null}")
	s.patchAsOther(types.MergePatchType, `{"spec": {"nullable": {"b": "z"}}}`, metav1.PatchOptions{FieldManager: testFieldManager})
	if err := s.apply("spec: {nullable: null}"); err != nil {
		t.Fatal(err)
	}
	copied := s.observeTarget(s.live())
	dropped := s.view.writes.DroppedPaths(copied.Ref())
	desired := s.desired(s.source("spec: {nullable: null}"), ownership.PolicyDelete)
	decision, err := plan.DecideDown(plan.SourceState{State: plan.Selected, Desired: desired}, copied.Observed, dropped)
	if err != nil || decision.Cause != plan.InSync {
		t.Errorf("want it in sync, got %v, %v", decision, err)
	}
}

// Built-in kinds are applied in one request, because null and empty are the same for their Go types.
func TestEmptiedMapOfABuiltInKind(t *testing.T) {
	t.Parallel()
	h := newTargetHarness(t, connect(t), configMapsV1, "ConfigMap", plan.Resource{})
	source := fixtures.Object(t, "{apiVersion: v1, kind: ConfigMap, metadata: {name: "+unique("emptied")+", namespace: default, uid: u}, data: {a: x}}")
	if err := h.applySource(source, ownership.PolicyDelete); err != nil {
		t.Fatal(err)
	}
	live := h.get(source)
	source.Object["data"] = map[string]any{}
	if err := h.applyInPlace(t.Context(), h.observeTarget(live), h.desired(source, ownership.PolicyDelete), live.GetUID()); err != nil {
		t.Fatal(err)
	}
	if data, ok := h.get(source).Object["data"]; ok {
		t.Errorf("it has %v", data)
	}
}
