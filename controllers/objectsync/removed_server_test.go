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
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/synchub-dev/synchub/controllers/plan"
	"github.com/synchub-dev/synchub/controllers/plan/ownership"
	"github.com/synchub-dev/synchub/test/fixtures"
)

var (
	jobsV1   = schema.GroupVersionResource{Group: "batch", Version: "v1", Resource: "jobs"}
	claimsV1 = schema.GroupVersionResource{Version: "v1", Resource: "persistentvolumeclaims"}
)

const jobsTravel = "namespaceScope: {namespaces: [NS], resources: [{group: batch, resource: jobs}]}"

// putJob puts a Job into the mailbox.
func (h *testHub) putJob(image, more string) {
	h.t.Helper()
	h.put(jobsV1, fmt.Sprintf("{apiVersion: batch/v1, kind: Job, metadata: {name: migrate, namespace: %s}, spec: {%s template: {spec: {restartPolicy: Never, containers: [{name: main, image: %s}]}}}}", h.namespace, more, image))
}

// completeJob completes the target's Job, and deletes it at once.
func (n *targetNamespace) completeJob() {
	n.t.Helper()
	patch := []byte(`{"status": {"startTime": "2026-01-02T03:04:05Z", "completionTime": "2026-01-02T03:04:06Z", "succeeded": 1, "uncountedTerminatedPods": {}, "conditions": [
		{"type": "SuccessCriteriaMet", "status": "True", "lastProbeTime": "2026-01-02T03:04:06Z", "lastTransitionTime": "2026-01-02T03:04:06Z"},
		{"type": "Complete", "status": "True", "lastProbeTime": "2026-01-02T03:04:06Z", "lastTransitionTime": "2026-01-02T03:04:06Z"}]}}`)
	if _, err := administrator(n.t).Resource(jobsV1).Namespace(n.namespace).Patch(n.t.Context(), "migrate", types.MergePatchType, patch, metav1.PatchOptions{}, "status"); err != nil {
		n.t.Fatal(err)
	}
	background := metav1.DeletePropagationBackground
	if err := administrator(n.t).Resource(jobsV1).Namespace(n.namespace).Delete(n.t.Context(), "migrate", metav1.DeleteOptions{PropagationPolicy: &background}); err != nil {
		n.t.Fatal(err)
	}
}

// isComplete reports whether a mailbox object has the status of a completed Job, and the hub's annotation.
func isComplete(object *unstructured.Unstructured) bool {
	conditions, _, _ := unstructured.NestedSlice(object.Object, "status", "conditions")
	_, noted := object.GetAnnotations()[ownership.FinishedAnnotation]
	return len(conditions) == 2 && noted
}

// A finished Job that was removed from the target does not run again, also after a restart, until its source changes.
func TestFinishedJob(t *testing.T) {
	h := newHub(t, []plan.Resource{resourceNamed(t, jobsV1, "")}, jobsTravel)
	h.putJob("one", "ttlSecondsAfterFinished: 0,")
	first := h.expectOnTarget(jobsV1, "migrate")
	h.completeJob()
	h.expectInMailbox(jobsV1, "migrate", isComplete)
	notRun := func(when string) {
		t.Helper()
		h.waitUntilIdle()
		if again := h.onTarget(jobsV1, "migrate"); again != nil {
			t.Fatalf("%s: the Job runs again", when)
		}
	}
	notRun("after it has finished")
	h.until("it counts as in sync and ready", func() bool {
		summaries := map[string]*ConfigSummary{}
		h.controllers[jobsV1].Status.SummarizeConfigs(summaries)
		for _, one := range summaries {
			return one.Synced == 1 && one.Ready == 1 && one.Failed == 0
		}
		return false
	})
	h.written()
	h.restart()
	notRun("after a restart")
	if writes := h.written(); len(writes) > 0 {
		t.Errorf("a restart writes %v", writes)
	}

	h.putJob("two", "")
	second := h.expectOnTarget(jobsV1, "migrate")
	h.completeJob()
	h.expectInMailbox(jobsV1, "migrate", isComplete)
	notRun("after the second")
	h.drop(jobsV1, h.namespace, "migrate")
	h.putJob("two", "")
	third := h.expectOnTarget(jobsV1, "migrate")
	if first.GetUID() == second.GetUID() || second.GetUID() == third.GetUID() {
		t.Error("a Job was not replaced")
	}
	if made := h.get(jobsV1, h.namespace, "migrate"); isComplete(made) || made.Object["status"] != nil {
		t.Errorf("the new Job has the status of the former: %v", made.Object["status"])
	}
}

// A copy that the target always removes is created a few times, and then reported.
func TestCopyThatTheTargetRemoves(t *testing.T) {
	h := newHub(t, []plan.Resource{resourceNamed(t, secretsV1, ""), resourceNamed(t, configMapsV1, "")},
		"namespacedObjects: [{group: '', resource: secrets, objectsByNamespace: [{namespace: NS, names: [token]}]}]", configMapsTravel)
	created := h.removeAtOnce(secretsV1)
	removed := h.removeAtOnce(configMapsV1)
	h.put(secretsV1, "{apiVersion: v1, kind: Secret, type: kubernetes.io/service-account-token, metadata: {name: token, namespace: "+h.namespace+", annotations: {kubernetes.io/service-account.name: till}}}")
	h.put(configMapsV1, "{apiVersion: v1, kind: ConfigMap, metadata: {name: prices, namespace: "+h.namespace+"}, data: {a: b}}")
	for resource, text := range map[schema.GroupVersionResource]string{secretsV1: "ServiceAccount " + h.namespace + "/till", configMapsV1: "controller"} {
		h.until(resource.Resource+" are reported", func() bool {
			for _, failure := range h.controllers[resource].Status.states.failures() {
				return failure.Reason == plan.ReasonRemovedByCluster && strings.Contains(failure.Message, text)
			}
			return false
		})
	}
	h.waitUntilIdle()
	if secrets, configMaps := created.Load(), removed.Load(); secrets != 3 || configMaps != 3 {
		t.Errorf("created %d Secrets and %d ConfigMaps", secrets, configMaps)
	}

	h.put(configMapsV1, "{apiVersion: v1, kind: ConfigMap, metadata: {name: prices, namespace: "+h.namespace+"}, data: {a: c}}")
	h.until("the change is tried", func() bool { return removed.Load() > 3 })
}

// removeAtOnce deletes and counts all objects of the hub as soon as the target has them.
func (n *targetNamespace) removeAtOnce(resource schema.GroupVersionResource) *atomic.Int64 {
	n.t.Helper()
	client := administrator(n.t).Resource(resource).Namespace(n.namespace)
	watched, err := client.Watch(n.t.Context(), metav1.ListOptions{LabelSelector: Selector(n.owner)})
	if err != nil {
		n.t.Fatal(err)
	}
	count := &atomic.Int64{}
	ended := make(chan struct{})
	n.t.Cleanup(func() {
		watched.Stop()
		<-ended
	})
	go func() {
		defer close(ended)
		for event := range watched.ResultChan() {
			if event.Type == watch.Added {
				count.Add(1)
				_ = client.Delete(n.t.Context(), event.Object.(*unstructured.Unstructured).GetName(), metav1.DeleteOptions{})
			}
		}
	}()
	return count
}

// An object that was deleted and created again while the hub was stopped is another object.
func TestObjectsCreatedAgain(t *testing.T) {
	travel := "namespaceScope: {namespaces: [NS], resources: [{group: batch, resource: jobs}, {group: '', resource: configmaps}, {group: '', resource: secrets}, {group: '', resource: persistentvolumeclaims}, {group: apps, resource: deployments}]}"
	var resources []plan.Resource
	all := []schema.GroupVersionResource{jobsV1, configMapsV1, secretsV1, claimsV1, deploymentsV1}
	for _, resource := range all {
		resources = append(resources, resourceNamed(t, resource, ""))
	}
	h := newHub(t, resources, travel)
	manifest := func(kind, name, more string) string {
		return fmt.Sprintf("{apiVersion: %s, metadata: {name: %s, namespace: %s}, %s}", kind, name, h.namespace, more)
	}
	const deployment = "spec: {selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: {containers: [{name: main, image: one}]}}}"
	const claim = "spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}"
	putAll := func(content, secretType string) {
		h.putJob("one", "")
		h.put(configMapsV1, manifest("v1, kind: ConfigMap", "fixed", "immutable: true, data: {a: "+content+"}"))
		h.put(configMapsV1, manifest("v1, kind: ConfigMap", "loose", "data: {a: "+content+"}"))
		h.put(secretsV1, manifest("v1, kind: Secret", "typed", "type: "+secretType+", data: {a: eA==}"))
		h.put(claimsV1, manifest("v1, kind: PersistentVolumeClaim", "data", claim))
		h.put(deploymentsV1, manifest("apps/v1, kind: Deployment", "web", deployment))
	}
	names := map[string]schema.GroupVersionResource{"migrate": jobsV1, "fixed": configMapsV1, "loose": configMapsV1, "typed": secretsV1, "data": claimsV1, "web": deploymentsV1}
	putAll("one", "example.org/one")
	before := map[string]types.UID{}
	for name, resource := range names {
		before[name] = h.expectOnTarget(resource, name).GetUID()
	}
	h.waitUntilIdle()
	h.stop()
	// No controller protects the claims that are in use.
	noFinalizers := []byte(`{"metadata": {"finalizers": null}}`)
	if _, err := administrator(t).Resource(claimsV1).Namespace(h.namespace).Patch(t.Context(), "data", types.MergePatchType, noFinalizers, metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	for name, resource := range names {
		h.drop(resource, h.namespace, name)
	}
	putAll("two", "example.org/two")
	h.start()
	for name, resource := range names {
		source := h.get(resource, h.namespace, name).GetUID()
		after := h.expectOnTarget(resource, name, func(object *unstructured.Unstructured) bool {
			mark, err := ownership.ParseMark(object.GetAnnotations()[ownership.MarkAnnotation])
			return err == nil && mark.Source.UID == source && object.GetDeletionTimestamp() == nil
		})
		replaced, want := after.GetUID() != before[name], !slices.Contains([]string{"loose", "web"}, name)
		if replaced != want {
			t.Errorf("%s: replaced %v", name, replaced)
		}
	}
}

// A copy that was restored from a backup is not deleted with its source.
func TestCopyFromABackup(t *testing.T) {
	h := newHub(t, []plan.Resource{resourceNamed(t, configMapsV1, "")}, configMapsTravel)
	client := administrator(t).Resource(configMapsV1).Namespace(h.namespace)
	again := func(object *unstructured.Unstructured) *unstructured.Unstructured {
		t.Helper()
		object = object.DeepCopy()
		object.SetUID("")
		object.SetResourceVersion("")
		object.SetManagedFields(nil)
		made, err := client.Create(t.Context(), object, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return made
	}
	h.putConfigMap("gone", "a: b")
	h.putConfigMap("kept", "a: b")
	gone, kept := h.expectOnTarget(configMapsV1, "gone"), h.expectOnTarget(configMapsV1, "kept")
	h.waitUntilIdle()
	h.drop(configMapsV1, h.namespace, "gone")
	h.expectGoneFromTarget(configMapsV1, "gone")
	restored := again(gone)
	h.expectUnchangedOnTarget(configMapsV1, restored)
	if summary := h.controllers[configMapsV1].Status.Summary(); summary.Former != 1 {
		t.Errorf("the summary does not count it: %+v", summary)
	}

	h.stop()
	h.deleteOnTarget(configMapsV1, "kept")
	again(kept)
	h.start()
	h.expectOnTarget(configMapsV1, "kept", func(object *unstructured.Unstructured) bool {
		return strings.Contains(object.GetAnnotations()[ownership.IdentityAnnotation], string(object.GetUID()))
	})
	h.drop(configMapsV1, h.namespace, "kept")
	h.expectGoneFromTarget(configMapsV1, "kept")
	h.expectUnchangedOnTarget(configMapsV1, restored)

	h.putConfigMap("gone", "a: c")
	h.expectOnTarget(configMapsV1, "gone", func(object *unstructured.Unstructured) bool { return object.GetUID() == restored.GetUID() })
	h.drop(configMapsV1, h.namespace, "gone")
	h.expectGoneFromTarget(configMapsV1, "gone")
}

// An upsynced object that the mailbox's user always deletes is created a few times, and then reported, also as an event. A
// changed source is tried at once.
func TestUpsyncedObjectThatTheMailboxRemoves(t *testing.T) {
	t.Parallel()
	const travels = "upsync: [{apiGroup: '', resources: [configmaps], namespaces: [NS], names: [theirs]}]"
	h := newHub(t, []plan.Resource{resourceNamed(t, configMapsV1, "")}, travels)
	client := administrator(t).Resource(configMapsV1).Namespace(h.namespace)
	if _, err := client.Create(t.Context(), fixtures.Object(t, "{apiVersion: v1, kind: ConfigMap, metadata: {name: theirs}, data: {a: b}}"), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	// The hub's own deletions do not count as removals by another client.
	for range 4 {
		h.expectInMailbox(configMapsV1, "theirs")
		h.configure()
		h.until("it is deselected", func() bool { return h.get(configMapsV1, h.namespace, "theirs") == nil })
		h.configure(travels)
	}
	for range 3 {
		h.expectInMailbox(configMapsV1, "theirs")
		h.waitUntilIdle()
		h.drop(configMapsV1, h.namespace, "theirs")
	}
	h.expectFailure(configMapsV1, "theirs", plan.ReasonRemovedInMailbox)
	h.waitUntilIdle()
	if h.get(configMapsV1, h.namespace, "theirs") != nil {
		t.Error("the object was created again at once")
	}
	h.until("an event is about it", func() bool {
		h.lock.Lock()
		defer h.lock.Unlock()
		for _, event := range h.objects[eventsResource] {
			reason, _, _ := unstructured.NestedString(event.Object, "reason")
			name, _, _ := unstructured.NestedString(event.Object, "involvedObject", "name")
			kind, _, _ := unstructured.NestedString(event.Object, "involvedObject", "kind")
			if reason == plan.ReasonRemovedInMailbox && name == "theirs" && kind == "ConfigMap" {
				return true
			}
		}
		return false
	})
	if _, err := client.Patch(t.Context(), "theirs", types.MergePatchType, []byte(`{"data": {"a": "c"}}`), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	h.expectInMailbox(configMapsV1, "theirs", holds("a", "c"))
	h.waitUntilIdle()
	if failures := h.controllers[configMapsV1].Status.states.failures(); len(failures) > 0 {
		t.Errorf("still failing: %v", failures)
	}
}
