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
	"errors"
	"reflect"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/synchub-dev/synchub/controllers/plan/conversion"
	"github.com/synchub-dev/synchub/controllers/plan/mutation"
	"github.com/synchub-dev/synchub/controllers/plan/ownership"
	"github.com/synchub-dev/synchub/controllers/plan/transform"
	"github.com/synchub-dev/synchub/test/fixtures"
)

func TestMutationsDown(t *testing.T) {
	other := map[string]any{"status": map[string]any{"ip": "10.0.0.1"}}
	toBox := conversion.Conversion{Upstream: conversion.Pattern{Group: "shop.example", Kind: "Till"}, Downstream: conversion.Pattern{Group: "old.example", Kind: "Box"}}
	for name, test := range map[string]struct {
		source, steps string
		spec          transform.SyncSpec
		want          string
	}{
		"none": {till, "", transform.SyncSpec{}, "{apiVersion: shop.example/v1, kind: Till, metadata: {name: till, namespace: shop, labels: {team: a}}, spec: {drawer: 1}}"},
		"the content": {
			till, "[{set: {path: spec.drawer, value: 7}}, {set: {path: metadata.labels.team, value: b}}]", transform.SyncSpec{},
			"{apiVersion: shop.example/v1, kind: Till, metadata: {name: till, namespace: shop, labels: {team: b}}, spec: {drawer: 7}}",
		},
		"what it sees is called as on the target": {
			till, "[{template: {path: spec.me, template: '{{ .Object.kind }} {{ .Object.metadata.namespace }}'}}]", transform.SyncSpec{Kind: deployment, Namespace: "bank"},
			"{apiVersion: apps/v1, kind: Deployment, metadata: {name: till, namespace: bank, labels: {team: a}}, spec: {drawer: 1, me: Deployment bank}}",
		},
		"the other side": {
			till, "[{template: {path: spec.ip, template: '{{ .Other.status.ip }}'}}]", transform.SyncSpec{Inputs: mutation.Inputs{Other: other}},
			"{apiVersion: shop.example/v1, kind: Till, metadata: {name: till, namespace: shop, labels: {team: a}}, spec: {drawer: 1, ip: 10.0.0.1}}",
		},
		"what a conversion made": {
			till, "[{set: {path: spec.drawer, value: 7}}]", transform.SyncSpec{Conversion: &toBox},
			"{apiVersion: old.example/v1, kind: Box, metadata: {name: till, namespace: shop, labels: {team: a}}, spec: {drawer: 7}}",
		},
		"stringData is text still": {
			"{apiVersion: v1, kind: Secret, metadata: {name: s}, data: {a: YQ==}, stringData: {b: old}}",
			"[{regex: {path: stringData.b, pattern: old, replacement: new}}, {set: {path: stringData.c, value: c}}]", transform.SyncSpec{},
			"{apiVersion: v1, kind: Secret, metadata: {name: s}, data: {a: YQ==, b: bmV3, c: Yw==}}",
		},
		// Mutations cannot set marks of the hub or fields that are not synced. The status is the target's own.
		"marks": {
			till, "[{set: {path: \"metadata.labels['synchub.dev/owner']\", value: forged}}, {set: {path: \"metadata.annotations['synchub.dev/mark']\", value: forged}}]", transform.SyncSpec{},
			"{apiVersion: shop.example/v1, kind: Till, metadata: {name: till, namespace: shop, labels: {team: a}}, spec: {drawer: 1}}",
		},
		"a status": {
			till, "[{set: {path: status.open, value: false}}]", transform.SyncSpec{},
			"{apiVersion: shop.example/v1, kind: Till, metadata: {name: till, namespace: shop, labels: {team: a}}, spec: {drawer: 1}}",
		},
		"nulls in a value": {
			till, "[{set: {path: spec.b, value: {c: null, d: [null]}}}]", transform.SyncSpec{},
			"{apiVersion: shop.example/v1, kind: Till, metadata: {name: till, namespace: shop, labels: {team: a}}, spec: {drawer: 1, b: {c: null, d: [null]}}}",
		},
	} {
		t.Run(name, func(t *testing.T) {
			source := fixtures.Object(t, test.source)
			before, otherBefore := source.DeepCopy(), (&unstructured.Unstructured{Object: other}).DeepCopy()
			test.spec.Policy, test.spec.Mutation = ownership.PolicyDelete, mutate(t, test.steps)
			desired, err := namespaced().Desired(source, test.spec)
			if err != nil {
				t.Fatal(err)
			}
			if got, want := unmarked(t, desired), fixtures.Object(t, test.want).Object; !reflect.DeepEqual(got, want) {
				t.Errorf("want %v\ngot  %v", want, got)
			}
			if !reflect.DeepEqual(source, before) || !reflect.DeepEqual(other, otherBefore.Object) {
				t.Errorf("an argument has changed: %v, %v", source, other)
			}
			// The same input gives an object in sync.
			again, err := namespaced().Desired(source, test.spec)
			if err != nil || again.Mark != desired.Mark {
				t.Errorf("first %s, then %v, %v", desired.Mark, again, err)
			}
		})
	}
}

// The error of a failed step contains its number and path, and no object is returned.
func TestMutationsThatFail(t *testing.T) {
	steps := mutate(t, "[{set: {path: spec.a, value: 1}}, {set: {path: spec.drawer.deeper, value: 1}}]")
	source := fixtures.Object(t, till)
	before := source.DeepCopy()
	desired, err := namespaced().Desired(source, transform.SyncSpec{Mutation: steps})
	var failed *mutation.Error
	if !errors.As(err, &failed) || failed.Step != 1 || desired != nil || !reflect.DeepEqual(source, before) {
		t.Errorf("down: got %v, %v of %v", desired, err, source)
	}
	desired, err = upFor(source).Desired(source, targetResource, transform.SyncSpec{Mutation: steps})
	if !errors.As(err, &failed) || failed.Step != 1 || desired != nil || !reflect.DeepEqual(source, before) {
		t.Errorf("up: got %v, %v of %v", desired, err, source)
	}
	if status, err := transform.MutatedStatus(source, steps, mutation.Inputs{}); !errors.As(err, &failed) || status != nil || !reflect.DeepEqual(source, before) {
		t.Errorf("the status: got %v, %v of %v", status, err, source)
	}
}

func TestMutationsUp(t *testing.T) {
	other := map[string]any{"spec": map[string]any{"note": "theirs"}}
	for name, test := range map[string]struct{ steps, want string }{
		"the content":      {"[{set: {path: spec.drawer, value: 7}}]", "{apiVersion: shop.example/v1, kind: Till, metadata: {name: till, namespace: shop, labels: {team: a}}, spec: {drawer: 7}}"},
		"of what is there": {"[{template: {path: spec.note, template: '{{ .Other.spec.note }}'}}]", "{apiVersion: shop.example/v1, kind: Till, metadata: {name: till, namespace: shop, labels: {team: a}}, spec: {drawer: 1, note: theirs}}"},
		// The status is returned separately.
		"a status": {"[{set: {path: status.open, value: false}}]", "{apiVersion: shop.example/v1, kind: Till, metadata: {name: till, namespace: shop, labels: {team: a}}, spec: {drawer: 1}}"},
	} {
		target := fixtures.Object(t, till)
		before := target.DeepCopy()
		desired, err := upFor(target).Desired(target, targetResource, transform.SyncSpec{Policy: ownership.PolicyDelete, Mutation: mutate(t, test.steps), Inputs: mutation.Inputs{Other: other}})
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if got, want := unmarked(t, desired), fixtures.Object(t, test.want).Object; !reflect.DeepEqual(got, want) {
			t.Errorf("%s: want %v\ngot  %v", name, want, got)
		}
		if !reflect.DeepEqual(target, before) || other["spec"].(map[string]any)["note"] != "theirs" {
			t.Errorf("%s: an argument has changed: %v, %v", name, target, other)
		}
	}
}

func TestStatusUp(t *testing.T) {
	other := fixtures.Object(t, "{apiVersion: shop.example/v1, kind: Till, metadata: {name: till}, spec: {factor: 3}}")
	for name, test := range map[string]struct {
		target, steps string
		want          any
	}{
		"no steps":            {till, "", map[string]any{"open": true}},
		"no status":           {"{apiVersion: v1, kind: A, metadata: {name: a}}", "[{set: {path: status.open, value: false}}]", nil},
		"a field of it":       {till, "[{set: {path: status.open, value: false}}]", map[string]any{"open": false}},
		"with the other side": {till, "[{cel: {path: status.sum, expression: 'self.spec.drawer + other.spec.factor'}}]", map[string]any{"open": true, "sum": int64(4)}},
		"only the spec":       {till, "[{set: {path: spec.drawer, value: 7}}]", map[string]any{"open": true}},
		"the whole of it":     {till, "[{delete: {path: status}}]", nil},
		"of what was changed": {till, "[{set: {path: spec.drawer, value: 7}}, {cel: {path: status.drawer, expression: self.spec.drawer}}]", map[string]any{"open": true, "drawer": int64(7)}},
	} {
		target := fixtures.Object(t, test.target)
		before, otherBefore := target.DeepCopy(), other.DeepCopy()
		got, err := transform.MutatedStatus(target, mutate(t, test.steps), mutation.Inputs{Other: other.Object})
		if err != nil || !reflect.DeepEqual(got, test.want) {
			t.Errorf("%s: want %v, got %v, %v", name, test.want, got, err)
		}
		if !reflect.DeepEqual(target, before) || !reflect.DeepEqual(other, otherBefore) {
			t.Errorf("%s: an argument has changed: %v, %v", name, target, other)
		}
	}
}
