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

package transform_test

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/synchub-dev/synchub/controllers/plan/fieldpath"
	"github.com/synchub-dev/synchub/controllers/plan/ownership"
	"github.com/synchub-dev/synchub/controllers/plan/transform"
	"github.com/synchub-dev/synchub/test/fixtures"
)

// ignoring returns ignored fields. Fields that begin with "!" are not set at creation either.
func ignoring(t *testing.T, paths ...string) []transform.IgnoredField {
	t.Helper()
	var all []transform.IgnoredField
	for _, text := range paths {
		onCreate := text[0] != '!'
		if !onCreate {
			text = text[1:]
		}
		parsed, err := fieldpath.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, transform.IgnoredField{Path: parsed, OnCreate: onCreate})
	}
	return all
}

// pathsOf formats fields for ignoring.
func pathsOf(ignored []transform.IgnoredField) []string {
	paths := []string{}
	for _, field := range ignored {
		if field.OnCreate {
			paths = append(paths, field.Path.String())
		} else {
			paths = append(paths, "!"+field.Path.String())
		}
	}
	return paths
}

const scaled = "{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, namespace: shop, uid: u, labels: {app: web}, annotations: {note: x}}, spec: {replicas: 2, template: {spec: {containers: [{name: app, image: 'web:1'}, {name: side, image: 'side:1'}]}}}}"

func TestIgnored(t *testing.T) {
	for name, test := range map[string]struct {
		paths []string
		// applied and first are the spec of the applied and the created object, or their metadata if the text begins with
		// "metadata".
		applied, first string
	}{
		"nothing": {nil,
			"spec: {replicas: 2, template: {spec: {containers: [{name: app, image: 'web:1'}, {name: side, image: 'side:1'}]}}}",
			"spec: {replicas: 2, template: {spec: {containers: [{name: app, image: 'web:1'}, {name: side, image: 'side:1'}]}}}"},
		"a field, once set": {[]string{"spec.replicas"},
			"spec: {template: {spec: {containers: [{name: app, image: 'web:1'}, {name: side, image: 'side:1'}]}}}",
			"spec: {replicas: 2, template: {spec: {containers: [{name: app, image: 'web:1'}, {name: side, image: 'side:1'}]}}}"},
		"a field, never set": {[]string{"!spec.replicas"},
			"spec: {template: {spec: {containers: [{name: app, image: 'web:1'}, {name: side, image: 'side:1'}]}}}",
			"spec: {template: {spec: {containers: [{name: app, image: 'web:1'}, {name: side, image: 'side:1'}]}}}"},
		"one of each": {[]string{"spec.replicas", "!spec.template.spec.containers[*].image"},
			"spec: {template: {spec: {containers: [{name: app}, {name: side}]}}}",
			"spec: {replicas: 2, template: {spec: {containers: [{name: app}, {name: side}]}}}"},
		"an item": {[]string{"spec.template.spec.containers[?(@.name==\"side\")]"},
			"spec: {replicas: 2, template: {spec: {containers: [{name: app, image: 'web:1'}]}}}",
			"spec: {replicas: 2, template: {spec: {containers: [{name: app, image: 'web:1'}, {name: side, image: 'side:1'}]}}}"},
		"a field that is not there": {[]string{"spec.paused", "spec.replicas.deeper", "spec.template.spec.containers[7]"},
			"spec: {replicas: 2, template: {spec: {containers: [{name: app, image: 'web:1'}, {name: side, image: 'side:1'}]}}}",
			"spec: {replicas: 2, template: {spec: {containers: [{name: app, image: 'web:1'}, {name: side, image: 'side:1'}]}}}"},
		"all of it":               {[]string{"spec"}, "", "spec: {replicas: 2, template: {spec: {containers: [{name: app, image: 'web:1'}, {name: side, image: 'side:1'}]}}}"},
		"a field in one that is":  {[]string{"!spec", "spec.replicas"}, "", ""},
		"one that is in a field":  {[]string{"spec.replicas", "!spec"}, "", ""},
		"all labels, all remarks": {[]string{"metadata.labels", "!metadata.annotations"}, "metadata: {name: web, namespace: shop, labels: {}, annotations: {}}", "metadata: {name: web, namespace: shop, labels: {app: web}, annotations: {}}"},
		"a label":                 {[]string{"metadata.labels.app"}, "metadata: {name: web, namespace: shop, labels: {}, annotations: {note: x}}", "metadata: {name: web, namespace: shop, labels: {app: web}, annotations: {note: x}}"},
	} {
		t.Run(name, func(t *testing.T) {
			source := fixtures.Object(t, scaled)
			before := source.DeepCopy()
			desired, err := down.Desired(source, transform.SyncSpec{Policy: ownership.PolicyDelete, IgnoredFields: ignoring(t, test.paths...)})
			if err != nil {
				t.Fatal(err)
			}
			for what, got := range map[string]*unstructured.Unstructured{test.applied: desired.Object, test.first: desired.ForCreate()} {
				checkSealed(t, desired, got)
				want := fixtures.Object(t, "{apiVersion: apps/v1, kind: Deployment, "+what+"}").Object
				field := "spec"
				if want["metadata"] != nil {
					field = "metadata"
				}
				if is := unsealed(got)[field]; !reflect.DeepEqual(is, want[field]) {
					t.Errorf("want %v\ngot  %v", want[field], is)
				}
			}
			if !reflect.DeepEqual(pathsOf(desired.IgnoredFields), pathsOf(ignoring(t, test.paths...))) {
				t.Errorf("ignored are %v", pathsOf(desired.IgnoredFields))
			}
			// The source is shared with a cache, and the created object must not share memory with the applied one.
			fixtures.Scribble(desired.ForCreate().Object)
			if again, err := down.Desired(before, transform.SyncSpec{Policy: ownership.PolicyDelete, IgnoredFields: ignoring(t, test.paths...)}); err != nil || !reflect.DeepEqual(source, before) ||
				len(test.paths) > 0 && test.applied != test.first && !reflect.DeepEqual(again.Object, desired.Object) {
				t.Errorf("%v; the source is %v\nthe desired object %v", err, source, desired.Object)
			}
		})
	}
}

// checkSealed fails the test unless an object has the marks of the desired object.
func checkSealed(t *testing.T, desired *transform.Desired, got *unstructured.Unstructured) {
	t.Helper()
	if mark, err := down.Owner.Verify(got.GetAnnotations(), transform.SelfOf(got)); err != nil || mark != desired.Mark || got.GetLabels()[ownership.OwnerLabel] != down.Owner.LabelValue() {
		t.Errorf("the mark is %+v, %v, the labels are %v", mark, err, got.GetLabels())
	}
}

// unsealed returns the content without the hub's marks. Maps that become empty stay.
func unsealed(object *unstructured.Unstructured) map[string]any {
	content := object.DeepCopy().Object
	unstructured.RemoveNestedField(content, "metadata", "labels", ownership.OwnerLabel)
	unstructured.RemoveNestedField(content, "metadata", "annotations", ownership.MarkAnnotation)
	return content
}

// The created object has the same marks as the applied one, also if it is adopted or has another hash.
func TestForCreateCarriesTheMark(t *testing.T) {
	desired, err := down.Desired(fixtures.Object(t, scaled), transform.SyncSpec{Policy: ownership.PolicyDelete, IgnoredFields: ignoring(t, "spec.replicas")})
	if err != nil {
		t.Fatal(err)
	}
	adopted := desired.AsAdopted()
	checkSealed(t, adopted, adopted.ForCreate())
	checkSealed(t, desired, desired.ForCreate())
	if !adopted.Mark.Adopted || desired.Mark.Adopted {
		t.Errorf("adopted is %v, the other %v", adopted.Mark.Adopted, desired.Mark.Adopted)
	}
	if replicas, _, _ := unstructured.NestedInt64(adopted.ForCreate().Object, "spec", "replicas"); replicas != 2 {
		t.Errorf("what is created has %d replicas", replicas)
	}
}

// The hash is of the applied object: the value of an ignored field does not change it, and ignoring a field does.
func TestHashesWithIgnoredFields(t *testing.T) {
	hash := func(source string, paths ...string) string {
		desired, err := down.Desired(fixtures.Object(t, source), transform.SyncSpec{IgnoredFields: ignoring(t, paths...)})
		if err != nil {
			t.Fatal(err)
		}
		return desired.Mark.Hash
	}
	const other = "{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, namespace: shop, uid: u, labels: {app: web}, annotations: {note: x}}, spec: {replicas: 7, template: {spec: {containers: [{name: app, image: 'web:1'}, {name: side, image: 'side:1'}]}}}}"
	if hash(scaled, "spec.replicas") != hash(other, "spec.replicas") || hash(scaled, "spec.replicas") != hash(other, "!spec.replicas") {
		t.Error("a value that is left to the target makes a difference")
	}
	if hash(scaled) == hash(other) || hash(scaled) == hash(scaled, "spec.replicas") {
		t.Error("a value that is not left to the target makes no difference")
	}
	if hash(scaled) != hash(scaled, "spec.paused") {
		t.Error("to ignore what is not there makes a difference")
	}
}

// AsMarked takes only the hash and the ignored fields from the mark: all other parts must be as desired.
func TestAsMarked(t *testing.T) {
	desired, err := down.Desired(fixtures.Object(t, scaled), transform.SyncSpec{Policy: ownership.PolicyOrphan, Relation: "a/b", IgnoredFields: ignoring(t, "spec.replicas")})
	if err != nil {
		t.Fatal(err)
	}
	before := *desired
	marked := desired.AsMarked(ownership.Mark{Hash: "h", Ignored: "spec.paused", Policy: ownership.PolicyDelete, Mailbox: "x", Relation: "c/d", Adopted: true})
	want := desired.Mark
	want.Hash, want.Ignored = "h", "spec.paused"
	if marked.Mark != want || !reflect.DeepEqual(before, *desired) || !reflect.DeepEqual(marked.Object, desired.Object) || !reflect.DeepEqual(marked.ForCreate(), desired.ForCreate()) {
		t.Errorf("want %s\ngot  %s", want, marked.Mark)
	}
	if marked.SealedMark() != "" || desired.SealedMark() == "" {
		t.Errorf("the object carries the former mark, not the one with this annotation: %q", marked.SealedMark())
	}
}

// For any object and ignored fields: the applied object has none of them, the created object has all except those never to be
// set, and neither has fields that the other one lacks for another reason.
func TestIgnoredOfAnything(t *testing.T) {
	some := []string{"spec", "spec.a", "!spec.a", "data", "!data.x", "spec.a[*]", "!spec.a[0].spec", "metadata.labels", "!metadata.annotations.a", "stringData", "type", "spec['kcp.io/x']"}
	for seed := range uint64(1000) {
		source := seeded(seed).source()
		random := rand.New(rand.NewPCG(seed, 9)) //nolint:gosec // a repeatable choice
		var paths []string
		for range random.IntN(4) {
			paths = append(paths, some[random.IntN(len(some))])
		}
		ignored := ignoring(t, paths...)
		before := source.DeepCopy()
		plain, plainErr := down.Desired(source, transform.SyncSpec{})
		desired, err := down.Desired(source, transform.SyncSpec{IgnoredFields: ignored})
		if !reflect.DeepEqual(source, before) {
			t.Fatalf("seed %d: the source was changed", seed)
		}
		if plainErr != nil || err != nil {
			if fmt.Sprint(plainErr) != fmt.Sprint(err) {
				t.Fatalf("seed %d: %v, and without %q: %v", seed, err, paths, plainErr)
			}
			continue
		}
		applied, first := unsealed(plain.Object), unsealed(plain.Object)
		for _, field := range ignored {
			field.Path.Delete(applied)
			if !field.OnCreate {
				field.Path.Delete(first)
			}
		}
		checkSealed(t, desired, desired.Object)
		checkSealed(t, desired, desired.ForCreate())
		for what, pair := range map[string][2]map[string]any{"applied": {unsealed(desired.Object), applied}, "created": {unsealed(desired.ForCreate()), first}} {
			if got, want := withoutEmpty(pair[0]), withoutEmpty(pair[1]); !reflect.DeepEqual(got, want) {
				t.Fatalf("seed %d, %s without %q: want %v\ngot %v", seed, what, paths, want, got)
			}
		}
	}
}

// withoutEmpty removes empty labels and annotations.
func withoutEmpty(content map[string]any) map[string]any {
	metadata, _ := content["metadata"].(map[string]any)
	for _, field := range []string{"labels", "annotations"} {
		if entries, _ := metadata[field].(map[string]any); len(entries) == 0 {
			delete(metadata, field)
		}
	}
	return content
}
