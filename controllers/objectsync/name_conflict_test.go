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
	"errors"
	"fmt"
	"reflect"
	"testing"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	synchubv1alpha1 "github.com/synchub-dev/synchub/apis/synchub/v1alpha1"
	"github.com/synchub-dev/synchub/controllers/plan"
	"github.com/synchub-dev/synchub/controllers/plan/ownership"
	"github.com/synchub-dev/synchub/controllers/plan/transform"
	"github.com/synchub-dev/synchub/provider/targets"
)

// desiredOf returns a desired object with a mark.
func desiredOf(t *testing.T, text string, mark ownership.Mark) *transform.Desired {
	t.Helper()
	return &transform.Desired{Object: &unstructured.Unstructured{Object: decode(t, text)}, Mark: mark}
}

// unowned returns a target object that another client created.
func unowned(t *testing.T, annotations map[string]string) *unstructured.Unstructured {
	t.Helper()
	object := &unstructured.Unstructured{Object: decode(t, `{"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "till", "namespace": "shop", "uid": "u"}}`)}
	object.SetAnnotations(annotations)
	return object
}

// An object that another hub owns, or whose mark cannot be parsed, is never adopted, whichever policy the PublishedResource has.
// The test makes no request, since it has no connection.
func TestMayAdopt(t *testing.T) {
	foreign := someMark
	foreign.Hub = "another"
	copied := someMark
	copied.Self.Name = "original"
	const itself = "Deployment/shop/till"
	marked := func(mark string) map[string]string {
		return map[string]string{ownership.MarkAnnotation: mark, ownership.KubeStellarDownsynced: itself}
	}
	for name, test := range map[string]struct {
		annotations map[string]string
		// Whether each of these policies allows the adoption.
		always, kubeStellar bool
	}{
		"no mark":                       {nil, true, false},
		"KubeStellar's":                 {map[string]string{ownership.KubeStellarDownsynced: itself}, true, true},
		"a copy of KubeStellar's":       {map[string]string{ownership.KubeStellarDownsynced: "Deployment/shop/original"}, true, false},
		"upsynced by KubeStellar":       {map[string]string{ownership.KubeStellarUpsynced: itself}, true, false},
		"a copied mark of this hub":     {marked(copied.String()), true, true},
		"another hub's":                 {marked(foreign.String()), false, false},
		"with a mark of a new version":  {marked(`{"v": 3, "hub": "hub"}`), false, false},
		"with a mark with a new field":  {marked(`{"v": 2, "hub": "hub", "news": true}`), false, false},
		"with a mark that is no mark":   {marked("x"), false, false},
		"with an empty mark":            {marked(""), false, false},
		"with a mark of another's kind": {marked(`[]`), false, false},
	} {
		t.Run(name, func(t *testing.T) {
			object := unowned(t, test.annotations)
			for policy, want := range map[synchubv1alpha1.AdoptionPolicy]bool{
				"": false, synchubv1alpha1.AdoptionNever: false, "Sometimes": false,
				synchubv1alpha1.AdoptionAlways: test.always, synchubv1alpha1.AdoptionKubeStellar: test.kubeStellar,
			} {
				writer := newAdopter(policy)
				_, reason := writer.view.observeObject(object)
				if reason == nil {
					t.Fatal("the object is the hub's")
				}
				got, err := writer.mayAdopt(t.Context(), plan.Copy{}, object, nil, reason)
				if err != nil || got != want {
					t.Errorf("%q: want %v, got %v, %v", policy, want, got, err)
				}
			}
			if !test.always {
				writer := newAdopter(synchubv1alpha1.AdoptionIfIdentical)
				_, reason := writer.view.observeObject(object)
				if got, err := writer.mayAdopt(t.Context(), plan.Copy{}, object, nil, reason); err != nil || got {
					t.Errorf("if identical: got %v, %v", got, err)
				}
			}
		})
	}
}

// Only the known reasons allow an adoption.
func TestMayNotAdoptForAnyReason(t *testing.T) {
	writer := newAdopter(synchubv1alpha1.AdoptionAlways)
	for _, reason := range []error{errors.New("no"), ownership.ErrForeign, fmt.Errorf("x: %w", ownership.ErrUnknownVersion)} {
		if got, err := writer.mayAdopt(t.Context(), plan.Copy{}, unowned(t, nil), nil, reason); err != nil || got {
			t.Errorf("%v: got %v, %v", reason, got, err)
		}
	}
}

func TestComparableContent(t *testing.T) {
	const bare = `{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "uid": "u"LABELS}, "data": {"a": "b"}}`
	object := func(more string) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: decode(t, bare[:len(bare)-len(`LABELS}, "data": {"a": "b"}}`)]+more+`}, "data": {"a": "b"}}`)}
	}
	const (
		written = `, "resourceVersion": "7", "generation": 3, "managedFields": [{"manager": "x"}]`
		labels  = `, "labels": {"app": "x", "synchub.dev/owner": "us"}`
		notes   = `, "annotations": {"note": "x", "synchub.dev/mark": "m"}`
	)
	for name, test := range map[string]struct {
		one, other string
		same       bool
	}{
		"the same":               {"", "", true},
		"only written again":     {"", written, true},
		"only the hub's label":   {"", `, "labels": {"synchub.dev/owner": "us"}`, true},
		"only the hub's mark":    {"", `, "annotations": {"synchub.dev/mark": "m"}`, true},
		"labels and the hub's":   {`, "labels": {"app": "x"}`, labels, true},
		"annotations and a mark": {`, "annotations": {"note": "x"}`, notes, true},
		"all of it":              {`, "labels": {"app": "x"}, "annotations": {"note": "x"}`, written + labels + notes, true},
		"labels of two hubs":     {labels, `, "labels": {"app": "x", "synchub.dev/owner": "them"}`, true},
		"another label":          {"", labels, false},
		"another annotation":     {"", notes, false},
		"another value":          {`, "labels": {"app": "y"}`, labels, false},
		"a finalizer":            {"", `, "finalizers": ["a/b"]`, false},
		"KubeStellar's mark":     {"", `, "annotations": {"edge.kubestellar.io/downsynced": "ConfigMap//a"}`, false},
		"a creation time":        {"", `, "creationTimestamp": "2026-01-02T03:04:05Z"`, false},
	} {
		one, other := object(test.one), object(test.other)
		before := other.DeepCopy()
		a, b := transform.ComparableContent(one, nil), transform.ComparableContent(other, nil)
		if same := apiequality.Semantic.DeepEqual(a, b); same != test.same {
			t.Errorf("%s: want %v, got %v and %v", name, test.same, a, b)
		}
		if !reflect.DeepEqual(other, before) {
			t.Errorf("%s: the object was changed: %v", name, other)
		}
		if again := transform.ComparableContent(&unstructured.Unstructured{Object: b}, nil); !reflect.DeepEqual(again, b) {
			t.Errorf("%s: first %v, then %v", name, b, again)
		}
	}
}

// Ignored fields may differ, or be absent on one side.
func TestComparableContentWithoutIgnoredFields(t *testing.T) {
	scaled := func(replicas string) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: decode(t, `{"metadata": {"name": "a", "labels": {"app": "x"}}, "spec": {`+replicas+`"paused": true}}`)}
	}
	for name, test := range map[string]struct {
		one, other, ignored string
		same                bool
	}{
		"another value":         {`"replicas": 1, `, `"replicas": 2, `, "spec.replicas", true},
		"none on one side":      {`"replicas": 1, `, ``, "spec.replicas", true},
		"another field differs": {`"replicas": 1, `, `"replicas": 2, `, "spec.paused", false},
		"all of it":             {`"replicas": 1, `, ``, "spec", true},
	} {
		ignored := rulesOf(t, "ignoreFields: [{path: "+test.ignored+"}]").IgnoredFields
		one, other := scaled(test.one), scaled(test.other)
		before := one.DeepCopy()
		if same := apiequality.Semantic.DeepEqual(transform.ComparableContent(one, ignored), transform.ComparableContent(other, ignored)); same != test.same {
			t.Errorf("%s: the contents are equal: %v", name, same)
		}
		if !reflect.DeepEqual(one, before) {
			t.Errorf("%s: the object was changed: %v", name, one)
		}
	}
}

func TestKubeStellarMarks(t *testing.T) {
	for name, test := range map[string]struct {
		annotations map[string]string
		want        []string
	}{
		"none":          {nil, nil},
		"other marks":   {map[string]string{"note": "x", ownership.MarkAnnotation: "m"}, nil},
		"KubeStellar's": {map[string]string{ownership.KubeStellarDownsynced: "Deployment/shop/till"}, []string{ownership.KubeStellarDownsynced}},
		"a copy of one": {map[string]string{ownership.KubeStellarDownsynced: "x"}, []string{ownership.KubeStellarDownsynced}},
		"an empty one":  {map[string]string{ownership.KubeStellarDownsynced: ""}, []string{ownership.KubeStellarDownsynced}},
	} {
		if got := kubeStellarMarks(unowned(t, test.annotations)); !reflect.DeepEqual(got, test.want) {
			t.Errorf("%s: want %v, got %v", name, test.want, got)
		}
	}
}

// newAdopter returns a writer to a target, for a resource with an adoption policy.
func newAdopter(policy synchubv1alpha1.AdoptionPolicy) *targetWriter {
	options := &Options{Resource: plan.Resource{Adoption: policy}, Owner: testOwner, Connection: &targets.Connection{}}
	return newTargetWriter(options, newTargetView(options), nil, nil)
}
