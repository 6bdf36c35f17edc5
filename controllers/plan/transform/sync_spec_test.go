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
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	synchubv1alpha1 "github.com/synchub-dev/synchub/apis/synchub/v1alpha1"
	"github.com/synchub-dev/synchub/controllers/plan/conversion"
	"github.com/synchub-dev/synchub/controllers/plan/mutation"
	"github.com/synchub-dev/synchub/controllers/plan/naming"
	"github.com/synchub-dev/synchub/controllers/plan/ownership"
	"github.com/synchub-dev/synchub/controllers/plan/transform"
	"github.com/synchub-dev/synchub/test/fixtures"
)

// namer compiles templates, which may also use a primary.
func namer(t *testing.T, namespace, name string) *naming.Namer {
	t.Helper()
	compiled, err := naming.Compile(&synchubv1alpha1.Naming{Namespace: namespace, Name: name}, "Object", "Primary", "Mailbox", "SyncTarget")
	if err != nil {
		t.Fatal(err)
	}
	return compiled
}

// mutate compiles steps, given as a list in YAML; nil for an empty text.
func mutate(t *testing.T, steps string) *mutation.Program {
	t.Helper()
	parsed := fixtures.Decode[[]synchubv1alpha1.MutationStep](t, steps)
	program, err := mutation.Compile(parsed)
	if err != nil {
		t.Fatal(err)
	}
	return program
}

// namespaced returns the transformation of namespaced objects for the SyncTarget florin.
func namespaced() transform.Down {
	made := down
	made.SyncTarget, made.Namespaced = "florin", true
	return made
}

const till = "{apiVersion: shop.example/v1, kind: Till, metadata: {name: till, namespace: shop, uid: u, labels: {team: a}, annotations: {kcp.io/cluster: m}}, spec: {drawer: 1}, status: {open: true}}"

var deployment = schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}

func TestNamesDown(t *testing.T) {
	odd := conversion.Conversion{Upstream: conversion.Pattern{Group: "shop.example", Kind: "Till"}, Downstream: conversion.Pattern{Group: "old.example", Kind: "Box"}}
	renamed := odd
	renamed.Upstream.Name, renamed.Downstream.Name = "till", "chest"
	primary := map[string]any{"Primary": map[string]any{"metadata": map[string]any{"name": "boss"}}}
	for name, test := range map[string]struct {
		down   transform.Down
		source string
		spec   transform.SyncSpec
		// want is the apiVersion, kind, namespace and name.
		want [4]string
	}{
		"unchanged":                       {namespaced(), till, transform.SyncSpec{}, [4]string{"shop.example/v1", "Till", "shop", "till"}},
		"another kind":                    {namespaced(), till, transform.SyncSpec{Kind: deployment}, [4]string{"apps/v1", "Deployment", "shop", "till"}},
		"another version":                 {namespaced(), till, transform.SyncSpec{Kind: schema.GroupVersionKind{Group: "shop.example", Version: "v2", Kind: "Till"}}, [4]string{"shop.example/v2", "Till", "shop", "till"}},
		"to the core group":               {namespaced(), till, transform.SyncSpec{Kind: schema.GroupVersionKind{Version: "v1", Kind: "Pod"}}, [4]string{"v1", "Pod", "shop", "till"}},
		"another namespace":               {namespaced(), till, transform.SyncSpec{Namespace: "bank"}, [4]string{"shop.example/v1", "Till", "bank", "till"}},
		"a namespace for what has none":   {down, "{apiVersion: v1, kind: Node, metadata: {name: node}}", transform.SyncSpec{Namespace: "bank"}, [4]string{"v1", "Node", "", "node"}},
		"a template for the name":         {namespaced(), till, transform.SyncSpec{Naming: namer(t, "", "{{ .SyncTarget }}-{{ .Object.metadata.name }}")}, [4]string{"shop.example/v1", "Till", "shop", "florin-till"}},
		"a template for the namespace":    {namespaced(), till, transform.SyncSpec{Naming: namer(t, "{{ .Object.metadata.labels.team }}-{{ .Mailbox }}", "")}, [4]string{"shop.example/v1", "Till", "a-2f5wd0xyz", "till"}},
		"a template over another":         {namespaced(), till, transform.SyncSpec{Naming: namer(t, "", "{{ .Primary.metadata.name }}"), Variables: primary}, [4]string{"shop.example/v1", "Till", "shop", "boss"}},
		"no namespace for a cluster's":    {down, "{apiVersion: v1, kind: Node, metadata: {name: node}}", transform.SyncSpec{Naming: namer(t, "bank", "x")}, [4]string{"v1", "Node", "", "x"}},
		"a template, moved":               {namespaced(), till, transform.SyncSpec{Naming: namer(t, "", "x"), Namespace: "bank"}, [4]string{"shop.example/v1", "Till", "bank", "x"}},
		"the namespace has a template":    {namespaced(), till, transform.SyncSpec{Naming: namer(t, "vault", ""), Namespace: "bank"}, [4]string{"shop.example/v1", "Till", "vault", "till"}},
		"all of it at once":               {namespaced(), till, transform.SyncSpec{Kind: deployment, Naming: namer(t, "n", "x")}, [4]string{"apps/v1", "Deployment", "n", "x"}},
		"a conversion stands in for Kind": {namespaced(), till, transform.SyncSpec{Conversion: &odd, Kind: deployment}, [4]string{"old.example/v1", "Box", "shop", "till"}},
		"templates over a conversion": {
			namespaced(), till, transform.SyncSpec{Conversion: &renamed, Naming: namer(t, "{{ .SyncTarget }}", "{{ .Object.kind | lower }}-{{ .Object.metadata.name }}-{{ .Object.metadata.labels.team }}")},
			[4]string{"old.example/v1", "Box", "florin", "box-chest-a"},
		},
		"a name that is too long": {
			namespaced(), till, transform.SyncSpec{Kind: schema.GroupVersionKind{Version: "v1", Kind: "Service"}, Naming: namer(t, "", strings.Repeat("x", 64))},
			[4]string{"v1", "Service", "shop", strings.Repeat("x", 42) + "-7ce100971f64e7001e8f"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			source := fixtures.Object(t, test.source)
			before := source.DeepCopy()
			test.spec.Policy = ownership.PolicyDelete
			desired, err := test.down.Desired(source, test.spec)
			if err != nil {
				t.Fatal(err)
			}
			got := desired.Object
			if is := [4]string{got.GetAPIVersion(), got.GetKind(), got.GetNamespace(), got.GetName()}; is != test.want {
				t.Errorf("want %q, got %q", test.want, is)
			}
			called, err := test.down.Name(source, test.spec)
			if apiVersion, kind := called.GVK.ToAPIVersionAndKind(); err != nil || [4]string{apiVersion, kind, called.Namespace, called.Name} != test.want {
				t.Errorf("it is called %+v, %v", called, err)
			}
			// The source in the mark does not change, since it leads from the copy to its source.
			if desired.Mark.Self != transform.SelfOf(got) || desired.Mark.Source.Name != before.GetName() || desired.Mark.Source.Namespace != before.GetNamespace() {
				t.Errorf("the mark is %s", desired.Mark)
			}
			if !reflect.DeepEqual(source, before) {
				t.Errorf("the source was changed: %v", source)
			}
		})
	}
}

// An invalid name is an error of the object or the template. The error contains the field of the PublishedResource, and the name.
func TestInvalidNames(t *testing.T) {
	up := upFor(fixtures.Object(t, till))
	up.Namespaced = true
	for name, test := range map[string]struct {
		namespace, name, field, value string
	}{
		"an empty name":               {"", "{{ index .Object.metadata.labels \"none\" | default \"\" }}", "spec.naming.name", ""},
		"a name with a slash":         {"", "{{ .Object.metadata.name }}/x", "spec.naming.name", "till/x"},
		"capitals":                    {"", "Till", "spec.naming.name", "Till"},
		"a namespace with a dot":      {"a.b", "", "spec.naming.namespace", "a.b"},
		"a namespace with underlines": {"{{ .Object.metadata.name }}_x", "x", "spec.naming.namespace", "till_x"},
	} {
		spec := transform.SyncSpec{Policy: ownership.PolicyDelete, Kind: deployment, Naming: namer(t, test.namespace, test.name)}
		desired, err := namespaced().Desired(fixtures.Object(t, till), spec)
		var refused *transform.InvalidObjectError
		if !errors.As(err, &refused) || desired != nil || refused.Field != test.field || refused.Message == "" {
			t.Errorf("%s: want a refusal of %s, got %v, %v", name, test.field, desired, err)
			continue
		}
		if !strings.Contains(err.Error(), test.value) {
			t.Errorf("%s: the message does not contain the name: %v", name, err)
		}
		// The same for upsync, where the kind may differ.
		if name == "capitals" {
			continue
		}
		if desired, err := up.Desired(fixtures.Object(t, till), targetResource, spec); !errors.As(err, &refused) || desired != nil || refused.Field != test.field {
			t.Errorf("%s: upwards: want a refusal of %s, got %v, %v", name, test.field, desired, err)
		}
	}
}

// The error of a template that fails for an object is returned.
func TestNamesThatFail(t *testing.T) {
	spec := transform.SyncSpec{Naming: namer(t, "", "{{ .Object.spec.none.deeper }}")}
	for direction, transformed := range map[string]func() (*transform.Desired, error){
		"down": func() (*transform.Desired, error) { return namespaced().Desired(fixtures.Object(t, till), spec) },
		"up": func() (*transform.Desired, error) {
			return upFor(fixtures.Object(t, till)).Desired(fixtures.Object(t, till), targetResource, spec)
		},
	} {
		desired, err := transformed()
		var refused *transform.InvalidObjectError
		if !errors.As(err, &refused) || desired != nil || !strings.Contains(err.Error(), "spec.naming.name") || !strings.Contains(err.Error(), "none") {
			t.Errorf("%s: got %v, %v", direction, desired, err)
		}
	}
}

func TestNamesUp(t *testing.T) {
	up := upFor(fixtures.Object(t, till))
	up.SyncTarget, up.Namespaced = "florin", true
	below := fixtures.Object(t, "{apiVersion: old.example/v2, kind: Box, metadata: {name: box, namespace: bank, uid: b}}")
	for name, test := range map[string]struct {
		spec transform.SyncSpec
		want [2]string
	}{
		"unchanged":    {transform.SyncSpec{}, [2]string{"bank", "box"}},
		"moved":        {transform.SyncSpec{Namespace: "shop"}, [2]string{"shop", "box"}},
		"by templates": {transform.SyncSpec{Naming: namer(t, "{{ .SyncTarget }}", "{{ .Mailbox }}-{{ .Object.metadata.name }}")}, [2]string{"florin", "2f5wd0xyz-box"}},
		// An upsynced object has the kind that the mailbox serves, not the kind in the spec.
		"the kind is that of the mailbox": {transform.SyncSpec{Kind: deployment}, [2]string{"bank", "box"}},
	} {
		desired, err := up.Desired(below, targetResource, test.spec)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		got := desired.Object
		if is := [2]string{got.GetNamespace(), got.GetName()}; is != test.want || got.GetAPIVersion() != "shop.example/v1" || got.GetKind() != "Till" {
			t.Errorf("%s: want %q, got %v", name, test.want, got)
		}
		if desired.Mark.Source.Name != "box" || desired.Mark.Source.Namespace != "bank" || desired.Mark.Self != transform.SelfOf(got) {
			t.Errorf("%s: the mark is %s", name, desired.Mark)
		}
	}
}
