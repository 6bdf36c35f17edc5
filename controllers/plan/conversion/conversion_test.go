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

package conversion_test

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/controllers/plan/conversion"
	"github.com/synchub-dev/synchub/test/fixtures"
)

// parse decodes a conversion in YAML, as in a config.
func parse(t testing.TB, text string) (conversion.Conversion, error) {
	t.Helper()
	spec := fixtures.Decode[edgev2alpha1.Conversion](t, text)
	return conversion.New(spec)
}

// called parses "group/version/Kind namespace/name". The core group is empty, and so is the namespace of cluster-scoped objects.
func called(t testing.TB, text string) conversion.Name {
	t.Helper()
	parts := strings.Split(text, "/")
	if len(parts) != 4 {
		t.Fatalf("%q is no name of an object", text)
	}
	kind, namespace, _ := strings.Cut(parts[2], " ")
	return conversion.Name{
		GVK:       schema.GroupVersionKind{Group: parts[0], Version: parts[1], Kind: kind},
		Namespace: namespace,
		Name:      parts[3],
	}
}

func TestDownAndUp(t *testing.T) {
	for name, test := range map[string]struct {
		conversion string
		// pairs are names of objects in the mailbox and on the target.
		pairs map[string]string
		// up and down are names on each side that the conversion does not match.
		up, down []string
	}{
		"a group": {
			conversion: "{upstream: {group: denatured.io, kind: Report}, downstream: {group: wgpolicyk8s.io, kind: Report}}",
			pairs: map[string]string{
				"denatured.io/v1/Report a/x":      "wgpolicyk8s.io/v1/Report a/x",
				"denatured.io/v1beta1/Report a/x": "wgpolicyk8s.io/v1beta1/Report a/x",
				"denatured.io/v1/Report /x":       "wgpolicyk8s.io/v1/Report /x",
			},
			up:   []string{"wgpolicyk8s.io/v1/Report a/x", "denatured.io/v1/Policy a/x", "x.denatured.io/v1/Report a/x"},
			down: []string{"denatured.io/v1/Report a/x", "wgpolicyk8s.io/v1/Policy a/x"},
		},
		"a kind": {
			conversion: "{upstream: {group: a.io, kind: Upper}, downstream: {group: a.io, kind: Lower}}",
			pairs:      map[string]string{"a.io/v1/Upper n/x": "a.io/v1/Lower n/x"},
			up:         []string{"a.io/v1/Lower n/x"},
			down:       []string{"a.io/v1/Upper n/x"},
		},
		"a version": {
			conversion: "{upstream: {group: a.io, kind: K, version: v1}, downstream: {group: a.io, kind: K, version: v1beta1}}",
			pairs:      map[string]string{"a.io/v1/K n/x": "a.io/v1beta1/K n/x"},
			up:         []string{"a.io/v1beta1/K n/x", "a.io/v2/K n/x"},
			down:       []string{"a.io/v1/K n/x"},
		},
		"a version on one side is the object's own": {
			conversion: "{upstream: {group: a.io, kind: K, version: v1}, downstream: {group: b.io, kind: K}}",
			pairs:      map[string]string{"a.io/v1/K n/x": "b.io/v1/K n/x"},
			up:         []string{"a.io/v2/K n/x"},
			down:       []string{"b.io/v2/K n/x"},
		},
		"a name": {
			conversion: "{upstream: {group: apiextensions.k8s.io, kind: CustomResourceDefinition, name: reports.wgpolicyk8s.io.denatured}, downstream: {group: apiextensions.k8s.io, kind: CustomResourceDefinition, name: reports.wgpolicyk8s.io}}",
			pairs:      map[string]string{"apiextensions.k8s.io/v1/CustomResourceDefinition /reports.wgpolicyk8s.io.denatured": "apiextensions.k8s.io/v1/CustomResourceDefinition /reports.wgpolicyk8s.io"},
			up:         []string{"apiextensions.k8s.io/v1/CustomResourceDefinition /reports.wgpolicyk8s.io"},
			down:       []string{"apiextensions.k8s.io/v1/CustomResourceDefinition /reports.wgpolicyk8s.io.denatured"},
		},
		"a name on one side is the object's own": {
			conversion: "{upstream: {group: a.io, kind: K, name: x}, downstream: {group: b.io, kind: K, name: '*'}}",
			pairs:      map[string]string{"a.io/v1/K n/x": "b.io/v1/K n/x"},
			up:         []string{"a.io/v1/K n/y"},
			down:       []string{"b.io/v1/K n/y"},
		},
		"every name": {
			conversion: "{upstream: {group: a.io, kind: K, name: '*', namespace: '*'}, downstream: {group: b.io, kind: K, name: '*', namespace: '*'}}",
			pairs:      map[string]string{"a.io/v1/K n/x": "b.io/v1/K n/x", "a.io/v1/K /y": "b.io/v1/K /y"},
			up:         []string{"a.io/v1/K n/*"},
			down:       []string{"b.io/v1/K n/*"},
		},
		"every kind of a group": {
			conversion: "{upstream: {group: a.io, kind: '*'}, downstream: {group: b.io, kind: '*'}}",
			pairs:      map[string]string{"a.io/v1/K n/x": "b.io/v1/K n/x", "a.io/v1/L /x": "b.io/v1/L /x"},
			up:         []string{"b.io/v1/K n/x", "a.io/v1/* n/x"},
		},
		"to the core group": {
			conversion: "{upstream: {group: a.io, version: v1, kind: Odd}, downstream: {version: v1, kind: ConfigMap}}",
			pairs:      map[string]string{"a.io/v1/Odd n/x": "/v1/ConfigMap n/x"},
			up:         []string{"/v1/ConfigMap n/x", "/v1/Odd n/x"},
			down:       []string{"a.io/v1/ConfigMap n/x", "a.io/v1/Odd n/x"},
		},
		"from the core group": {
			conversion: "{upstream: {kind: ConfigMap}, downstream: {group: a.io, kind: ConfigMap}}",
			pairs:      map[string]string{"/v1/ConfigMap n/x": "a.io/v1/ConfigMap n/x"},
			up:         []string{"a.io/v1/ConfigMap n/x"},
		},
		"in one namespace": {
			conversion: "{upstream: {group: a.io, kind: K, namespace: ns}, downstream: {group: b.io, kind: K}}",
			pairs:      map[string]string{"a.io/v1/K ns/x": "b.io/v1/K ns/x"},
			up:         []string{"a.io/v1/K m/x", "a.io/v1/K /x"},
			down:       []string{"b.io/v1/K m/x", "b.io/v1/K /x"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			converts, err := parse(t, test.conversion)
			if err != nil {
				t.Fatal(err)
			}
			for mailbox, target := range test.pairs {
				if got, ok := converts.Down(called(t, mailbox)); !ok || got != called(t, target) {
					t.Errorf("down: %s is called %+v, %v; want %s", mailbox, got, ok, target)
				}
				if got, ok := converts.Up(called(t, target)); !ok || got != called(t, mailbox) {
					t.Errorf("up: %s is called %+v, %v; want %s", target, got, ok, mailbox)
				}
			}
			for _, mailbox := range test.up {
				if got, ok := converts.Down(called(t, mailbox)); ok {
					t.Errorf("down: %s is called %+v", mailbox, got)
				}
			}
			for _, target := range test.down {
				if got, ok := converts.Up(called(t, target)); ok {
					t.Errorf("up: %s is called %+v", target, got)
				}
			}
		})
	}
}

func TestNoConversionChangesNothing(t *testing.T) {
	var none *conversion.Conversion
	name := called(t, "apps/v1/Deployment a/x")
	if got, ok := none.Down(name); !ok || got != name {
		t.Errorf("down: %+v, %v", got, ok)
	}
	if got, ok := none.Up(name); !ok || got != name {
		t.Errorf("up: %+v, %v", got, ok)
	}
}

func TestNewRefuses(t *testing.T) {
	for name, test := range map[string]struct {
		conversion string
		// fields are named in the error.
		fields []string
	}{
		"no kind at all":            {"{}", []string{"upstream.kind", "downstream.kind"}},
		"no kind upstream":          {"{downstream: {kind: K}}", []string{"upstream.kind"}},
		"no kind downstream":        {"{upstream: {kind: K}}", []string{"downstream.kind"}},
		"all kinds to one":          {"{upstream: {kind: '*'}, downstream: {kind: K}}", []string{"downstream.kind"}},
		"one kind to all":           {"{upstream: {kind: K}, downstream: {kind: '*'}}", []string{"downstream.kind"}},
		"another namespace":         {"{upstream: {kind: K, namespace: a}, downstream: {kind: K, namespace: b}}", []string{"downstream.namespace"}},
		"many names to one":         {"{upstream: {kind: K}, downstream: {kind: K, name: x}}", []string{"downstream.name"}},
		"all names to one":          {"{upstream: {kind: K, name: '*'}, downstream: {kind: K, name: x}}", []string{"downstream.name"}},
		"every group":               {"{upstream: {kind: K, group: '*'}, downstream: {kind: K, group: '*'}}", []string{"upstream.group", "downstream.group"}},
		"everything that is wrong":  {"{upstream: {namespace: a}, downstream: {kind: K, namespace: b, name: x}}", []string{"upstream.kind", "downstream.namespace", "downstream.name"}},
		"all kinds to none but one": {"{upstream: {kind: '*'}}", []string{"downstream.kind"}},
	} {
		t.Run(name, func(t *testing.T) {
			made, err := parse(t, test.conversion)
			if err == nil {
				t.Fatalf("it is taken for %+v", made)
			}
			for _, field := range []string{"upstream.kind", "downstream.kind", "upstream.group", "downstream.group", "downstream.namespace", "downstream.name"} {
				wanted := false
				for _, want := range test.fields {
					wanted = wanted || want == field
				}
				if named := strings.Contains(" "+strings.ReplaceAll(err.Error(), "[", " "), " "+field+":"); named != wanted {
					t.Errorf("it names %s: %v, want %v: %v", field, named, wanted, err)
				}
			}
		})
	}
}

// Two forms of the same conversion must be equal, since a changed conversion renames objects.
func TestNewNormalizesConversions(t *testing.T) {
	want := conversion.Conversion{
		Upstream:   conversion.Pattern{Group: "a.io", Kind: "K", Version: "v1", Namespace: "ns"},
		Downstream: conversion.Pattern{Group: "b.io", Kind: "K", Version: "v1", Namespace: "ns"},
	}
	for _, text := range []string{
		"{upstream: {group: a.io, kind: K, version: v1, namespace: ns}, downstream: {group: b.io, kind: K, version: v1, namespace: ns}}",
		"{upstream: {group: a.io, kind: K, version: v1}, downstream: {group: b.io, kind: K, namespace: ns}}",
		"{upstream: {group: a.io, kind: K, namespace: ns, name: '*'}, downstream: {group: b.io, kind: K, version: v1, namespace: '*', name: ''}}",
	} {
		if got, err := parse(t, text); err != nil || got != want {
			t.Errorf("%s: got %+v, %v", text, got, err)
		}
	}
}
