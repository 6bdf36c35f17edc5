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

package rules_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/controllers/placement/rules"
	"github.com/synchub-dev/synchub/controllers/plan/ownership"
)

func TestContentHash(t *testing.T) {
	t.Parallel()
	deployments := schema.GroupResource{Group: "apps", Resource: "deployments"}
	hashOf := func(change func(*unstructured.Unstructured)) uint64 {
		object := &unstructured.Unstructured{Object: map[string]any{}}
		object.SetName("till")
		object.SetUID("1")
		object.SetGeneration(1)
		object.SetResourceVersion("1")
		object.SetLabels(map[string]string{"a": "1", "b": "2"})
		object.SetAnnotations(map[string]string{"c": "3"})
		change(object)
		return rules.ContentHash(deployments, object)
	}
	before := hashOf(func(*unstructured.Unstructured) {})
	for what, change := range map[string]func(*unstructured.Unstructured){
		"the resource version": func(o *unstructured.Unstructured) { o.SetResourceVersion("2") },
		"what the hub writes": func(o *unstructured.Unstructured) {
			o.SetAnnotations(map[string]string{"c": "3", edgev2alpha1.AnnotationExecutingCount: "2", ownership.StatusAnnotation: "x", corev1.LastAppliedConfigAnnotation: "{}"})
		},
	} {
		if hashOf(change) != before {
			t.Errorf("a change of %s does not change the hash", what)
		}
	}
	for what, change := range map[string]func(*unstructured.Unstructured){
		"the generation":                     func(o *unstructured.Unstructured) { o.SetGeneration(2) },
		"a label":                            func(o *unstructured.Unstructured) { o.SetLabels(map[string]string{"a": "1", "b": "3"}) },
		"an annotation":                      func(o *unstructured.Unstructured) { o.SetAnnotations(map[string]string{"c": "4"}) },
		"the object":                         func(o *unstructured.Unstructured) { o.SetUID("2") },
		"the version without any generation": func(o *unstructured.Unstructured) { o.SetGeneration(0) },
	} {
		if hashOf(change) == before {
			t.Errorf("a change of %s changes the hash", what)
		}
	}
	// Kinds such as ConfigMaps have no generations: each change of such an object is a change of content.
	ungenerated := func(version string) uint64 {
		return hashOf(func(o *unstructured.Unstructured) { o.SetGeneration(0); o.SetResourceVersion(version) })
	}
	if first, again := ungenerated("1"), ungenerated("1"); first == ungenerated("2") || first != again {
		t.Error("a change of an object without a generation does not change the hash")
	}
	var one, two rules.Fingerprint
	one.Add(before)
	one.Add(7)
	two.Add(7)
	two.Add(before)
	if one != two || one.String() == new(rules.Fingerprint).String() {
		t.Errorf("%s and %s", one.String(), two.String())
	}
}
