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
	"fmt"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/synchub-dev/synchub/controllers/plan"
	"github.com/synchub-dev/synchub/controllers/plan/ownership"
	"github.com/synchub-dev/synchub/test/framework/suite"
)

// Copies of a former mailbox are counted as former until the new mailbox takes them over.
func TestSummary(t *testing.T) {
	t.Parallel()
	h := newHub(t, []plan.Resource{resourceNamed(t, configMapsV1, "")}, configMapsTravel)
	counts := func(what, want string) {
		t.Helper()
		var got string
		defer func() {
			if t.Failed() {
				t.Logf("the last counts were %s", got)
			}
		}()
		h.until(what, func() bool {
			sum := h.controllers[configMapsV1].Status.Summary()
			got = fmt.Sprintf("%d in sync, %d failed, %d of a former mailbox", sum.Synced, sum.Failed, sum.Former)
			return got == want
		})
	}
	put(t, "{apiVersion: v1, kind: ConfigMap, metadata: {name: taken, namespace: "+h.namespace+"}}")
	for _, name := range []string{"first", "second", "taken"} {
		h.putConfigMap(name, "a: b")
	}
	h.expectOnTarget(configMapsV1, "first")
	h.expectOnTarget(configMapsV1, "second")
	counts("two are in sync", "2 in sync, 1 failed, 0 of a former mailbox")
	if first := FirstFailures(h.controllers[configMapsV1].Status.Summary().Failures, 20); len(first) != 1 || first[0].Name != "taken" || first[0].Reason != plan.ReasonConflict {
		t.Errorf("the failed object is not listed: %+v", first)
	}
	h.stop()
	h.setMarkMailbox("first", "another")
	h.drop(configMapsV1, h.namespace, "first")
	h.start()
	counts("one copy is of a former mailbox", "1 in sync, 1 failed, 1 of a former mailbox")
	h.putConfigMap("first", "a: c")
	counts("the copy is taken over", "2 in sync, 1 failed, 0 of a former mailbox")
	h.waitUntilIdle()
	h.controllers[configMapsV1].Status.states.setFindings(types.NamespacedName{Namespace: h.namespace, Name: "second"}, findings{deferred: []string{"data.a"}})
	counts("one has deferred fields", "1 in sync, 1 failed, 0 of a former mailbox")
}

// Several copies of one object in one target API are counted once as synced, and all of them as former.
func TestSummaryOfSeveralCopies(t *testing.T) {
	h := newHub(t, []plan.Resource{resourceNamed(t, configMapsV1, "")}, configMapsTravel)
	h.putConfigMap("first", "a: b")
	h.expectOnTarget(configMapsV1, "first")
	h.stop()
	h.setMarkMailbox("first", "another")
	again := h.onTarget(configMapsV1, "first")
	mark, err := ownership.ParseMark(again.GetAnnotations()[ownership.MarkAnnotation])
	if err != nil {
		t.Fatal(err)
	}
	mark.Self.Name = "again"
	again.SetName(mark.Self.Name)
	for _, field := range []string{"uid", "resourceVersion", "managedFields"} {
		unstructured.RemoveNestedField(again.Object, "metadata", field)
	}
	addMark(again, mark)
	if _, err := administrator(t).Resource(configMapsV1).Namespace(h.namespace).Create(t.Context(), again, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	h.drop(configMapsV1, h.namespace, "first")
	h.start()
	var sum Summary
	h.until("both copies are of a former mailbox", func() bool {
		sum = h.controllers[configMapsV1].Status.Summary()
		return sum.Former == 2
	})
	if sum.Synced != 0 || sum.Failed != 0 {
		t.Errorf("%d in sync, %d failed", sum.Synced, sum.Failed)
	}
}

// A copy that the target refuses to delete stays in the status of the configs that name it. Each try verifies the absence of the
// source again, which does not count as a success.
func TestRefusedDeletion(t *testing.T) {
	t.Parallel()
	h := newHub(t, []plan.Resource{resourceNamed(t, configMapsV1, "")}, configMapsTravel)
	put(t, h.withNamespace(`
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: NS}
spec:
  matchConstraints:
    namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: NS}}
    resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [DELETE], resources: [configmaps]}]
  validations: [{expression: "oldObject.metadata.name != 'kept'", message: it must stay}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: NS}
spec: {policyName: NS, validationActions: [Deny]}
`))
	h.putConfigMap("kept", "a: b")
	h.expectOnTarget(configMapsV1, "kept")
	h.until("the policy is in force", func() bool {
		err := administrator(t).Resource(configMapsV1).Namespace(h.namespace).Delete(t.Context(), "kept", metav1.DeleteOptions{DryRun: []string{metav1.DryRunAll}})
		return apierrors.IsInvalid(err) || apierrors.IsForbidden(err)
	})
	h.drop(configMapsV1, h.namespace, "kept")
	controller, key := h.controllers[configMapsV1], types.NamespacedName{Namespace: h.namespace, Name: "kept"}
	h.until("the deletion was tried again and again", func() bool {
		return get(controller.Status.states, key, func(state *keyState) bool { return state.failedPasses >= 4 })
	})
	summaries := map[string]*ConfigSummary{}
	controller.Status.SummarizeConfigs(summaries)
	for config, summary := range summaries {
		if summary.Selected != 0 || summary.Failed != 1 || summary.Undeleted != 1 || len(summary.Failures) != 1 || summary.Failures[0].Failure.Reason != plan.ReasonAdmissionDenied || summary.Failures[0].Key != key {
			t.Errorf("%s: %+v", config, summary)
		}
	}
	if len(summaries) != 1 {
		t.Errorf("%d configs report the failure", len(summaries))
	}
}

// Objects that the mailbox does not show are not absent.
func TestUnreadableReason(t *testing.T) {
	h := newHub(t, []plan.Resource{resourceNamed(t, configMapsV1, "")}, configMapsTravel)
	controller := h.controllers[configMapsV1]
	if why := controller.Status.UnreadableReason(); why != "" {
		t.Errorf("a bound resource is unreadable: %s", why)
	}
	h.put(apiBindings, "{apiVersion: apis.kcp.io/v1alpha2, kind: APIBinding, metadata: {name: bound}, status: {phase: Bound}}")
	h.until("the binding no longer has the resource", func() bool { return controller.Status.UnreadableReason() != "" })
	h.put(apiBindings, "{apiVersion: apis.kcp.io/v1alpha2, kind: APIBinding, metadata: {name: bound}, status: {phase: Bound, boundResources: [{group: '', resource: configmaps}]}}")
	h.until("the resource is bound again", func() bool { return controller.Status.UnreadableReason() == "" })
}

// BenchmarkSummarizeConfigs measures the cost of a config's status per mailbox object.
func BenchmarkSummarizeConfigs(b *testing.B) {
	const objects = 1000
	h := newHub(b, []plan.Resource{resourceNamed(b, configMapsV1, "")}, configMapsTravel)
	for i := range objects {
		h.putConfigMap(fmt.Sprintf("object-%d", i), "a: b")
	}
	controller := h.controllers[configMapsV1]
	suite.WaitUntil(b, "all are in sync", func() bool { return controller.Status.Summary().Synced == objects })
	b.ReportAllocs()
	for b.Loop() {
		controller.Status.SummarizeConfigs(map[string]*ConfigSummary{})
	}
	b.ReportMetric(float64(b.Elapsed())/float64(b.N)/objects, "ns/object")
}
