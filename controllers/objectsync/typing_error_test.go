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
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/synchub-dev/synchub/controllers/plan"
	"github.com/synchub-dev/synchub/controllers/plan/ownership"
	"github.com/synchub-dev/synchub/test/fixtures"
)

// An entry with a typing error deletes nothing, even if a new hub reads it and does not know its former selection. A corrected
// entry decides again.
func TestTypingErrorDeletesNothing(t *testing.T) {
	t.Parallel()
	h := newHub(t, []plan.Resource{resourceNamed(t, secretsV1, "")}, "namespacedObjects: [{group: '', resource: secrets, objectsByNamespace: [{namespace: NS, names: ['*']}]}]")
	for _, name := range []string{"first", "second"} {
		h.put(secretsV1, "{apiVersion: v1, kind: Secret, metadata: {name: "+name+", namespace: "+h.namespace+", labels: {tier: "+name+"}}, type: Opaque, data: {flag: eA==}}")
		h.expectOnTarget(secretsV1, name, func(*unstructured.Unstructured) bool { return true })
	}
	first := h.onTarget(secretsV1, "first")
	use := func(config string) {
		h.matcher = h.compileMatcher(config)
		for _, controller := range h.controllers {
			controller.SetMatcher(h.matcher)
		}
	}
	use("namespacedObjects: [{group: '', resource: secrets, objectsByNamespace: [{namespace: NS, names: ['*']}], labelSelector: {matchExpressions: [{key: tier, operator: In}]}}]")
	h.waitUntilIdle()
	h.expectUnchangedOnTarget(secretsV1, first)
	h.restart()
	h.waitUntilIdle()
	h.expectUnchangedOnTarget(secretsV1, first)
	use("namespacedObjects: [{group: '', resource: secrets, objectsByNamespace: [{namespace: NS, names: ['*']}], labelSelector: {matchExpressions: [{key: tier, operator: In, values: [first]}]}}]")
	h.until("the deselected object is deleted", func() bool { return h.onTarget(secretsV1, "second") == nil })
	h.expectUnchangedOnTarget(secretsV1, first)
}

var clusterRolesV1 = schema.GroupVersionResource{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "clusterroles"}

// The rules of an aggregated ClusterRole stay when the hub gives up the ownership of rules that it applied before.
func TestAggregatedRulesStay(t *testing.T) {
	t.Parallel()
	h := newTargetHarness(t, connect(t), clusterRolesV1, "ClusterRole", plan.Resource{})
	name := unique("aggregated")
	source := fixtures.Object(t, "{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: "+name+", uid: u}, rules: [{verbs: [get], apiGroups: [''], resources: [pods]}]}")
	if err := h.applySource(source, ownership.PolicyDelete); err != nil {
		t.Fatal(err)
	}
	aggregated := source.DeepCopy()
	_ = unstructured.SetNestedField(aggregated.Object, []any{map[string]any{"matchLabels": map[string]any{"aggregate-to": name}}}, "aggregationRule", "clusterRoleSelectors")
	before := h.get(source)
	if err := h.applyInPlace(t.Context(), h.observeTarget(before), h.desired(aggregated, ownership.PolicyDelete), before.GetUID()); err != nil {
		t.Fatal(err)
	}
	after := h.get(source)
	if rules, _, _ := unstructured.NestedSlice(after.Object, "rules"); len(rules) != 1 {
		t.Errorf("the rules are %v", rules)
	}
	// A controller of the target replaces the rules, which is no drift.
	patch := []byte(`{"rules": [{"verbs": ["list"], "apiGroups": [""], "resources": ["pods"]}]}`)
	changed, err := administrator(t).Resource(clusterRolesV1).Patch(t.Context(), name, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: "controller"})
	if err != nil {
		t.Fatal(err)
	}
	decision, err := plan.DecideDown(plan.SourceState{State: plan.Selected, Desired: h.desired(aggregated, ownership.PolicyDelete)}, h.observeTarget(changed).Observed, nil)
	if err != nil || decision.Cause != plan.InSync {
		t.Errorf("want it in sync, got %v, %v", decision, err)
	}
}
