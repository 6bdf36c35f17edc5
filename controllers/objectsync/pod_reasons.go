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
	"context"
	"fmt"
	"slices"
	gosync "sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"github.com/synchub-dev/synchub/controllers/plan/health"
	"github.com/synchub-dev/synchub/provider/redact"
	"github.com/synchub-dev/synchub/provider/requestclass"
)

// podListDelays are when the hub lists the Pods of a workload, after it has observed that the workload is not healthy: most images are
// pulled until the first one, and the back-off of a failed one has begun until the second. A workload that is not healthy costs no
// request later, until its health changes.
var podListDelays = []time.Duration{15 * time.Second, time.Minute}

const (
	// maxPods bounds the Pods, and the ReplicaSets, that the hub lists for a workload.
	maxPods = 50
	// podsForbiddenDelay is how long the hub lists no Pods after the target denied that.
	podsForbiddenDelay = 10 * time.Minute
)

var (
	podsResource        = corev1.SchemeGroupVersion.WithResource("pods")
	replicaSetsResource = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "replicasets"}
	// workloads are the resources whose Pods the hub finds by spec.selector. The Pods of a Deployment belong to its ReplicaSets.
	workloads = map[schema.GroupResource]bool{
		{Group: "apps", Resource: "deployments"}: true, {Group: "apps", Resource: "statefulsets"}: true, {Group: "apps", Resource: "daemonsets"}: true, {Group: "apps", Resource: "replicasets"}: true,
	}
)

// podLister lists objects of the target, as [targets.Objects] does.
type podLister interface {
	List(ctx context.Context, resource schema.GroupVersionResource, namespace, selector string, limit int64) ([]unstructured.Unstructured, error)
}

// podReasons finds out why the Pods of workloads that placements made do not run. There is no watch of Pods: the hub lists them a few times
// after a workload has become unhealthy. A nil podReasons finds nothing.
type podReasons struct {
	lister podLister
	clock  clock.PassiveClock

	lock    gosync.Mutex
	entries map[types.NamespacedName]*podEntry
	// forbiddenUntil is until when the hub lists no Pods.
	forbiddenUntil time.Time
}

// podEntry is a workload that is not healthy.
type podEntry struct {
	uid    types.UID
	status health.Status
	since  time.Time
	// lists is the number of lists so far.
	lists int
	// message is why Pods do not run; empty if the hub does not know.
	message string
}

// newPodReasons returns nil if the resource has no Pods.
func newPodReasons(resource schema.GroupResource, lister podLister, clock clock.PassiveClock) *podReasons {
	if !workloads[resource] {
		return nil
	}
	return &podReasons{lister: lister, clock: clock, entries: map[types.NamespacedName]*podEntry{}}
}

// workload is a copy of a workload on the target.
type workload struct {
	uid       types.UID
	namespace string
	health    health.Health
	// selector selects the Pods.
	selector *metav1.LabelSelector
}

// check lists the Pods of a workload if that is due, and returns whether the message changed, and when the next list is due; zero for
// never. isInitial is true for a workload that the hub finds at its start: it must know at once what it knew before.
func (p *podReasons) check(ctx context.Context, key types.NamespacedName, of *workload, isInitial bool) (changed bool, again time.Duration) {
	if p == nil {
		return false, 0
	}
	if of == nil || of.health.Status != health.InProgress && of.health.Status != health.Failed {
		p.forget(key)
		return false, 0
	}
	again = p.nextList(key, of, isInitial)
	if again != 0 {
		return false, max(again, 0)
	}
	message, err := p.list(requestclass.With(ctx, requestclass.Background), of)
	return p.listed(key, message, err)
}

// nextList returns how long the next list must wait: zero if it is due, and negative if none follows.
func (p *podReasons) nextList(key types.NamespacedName, of *workload, isInitial bool) time.Duration {
	p.lock.Lock()
	defer p.lock.Unlock()
	now := p.clock.Now()
	entry := p.entries[key]
	if entry == nil || entry.uid != of.uid || entry.status != of.health.Status {
		entry = &podEntry{uid: of.uid, status: of.health.Status, since: now}
		if isInitial {
			entry.since = now.Add(-podListDelays[0])
		}
		p.entries[key] = entry
	}
	if entry.lists >= len(podListDelays) || now.Before(p.forbiddenUntil) {
		return -1
	}
	return max(entry.since.Add(podListDelays[entry.lists]).Sub(now), 0)
}

// listed records the result of a list.
func (p *podReasons) listed(key types.NamespacedName, message string, err error) (changed bool, again time.Duration) {
	p.lock.Lock()
	defer p.lock.Unlock()
	entry := p.entries[key]
	if entry == nil {
		return false, 0
	}
	entry.lists++
	switch {
	case apierrors.IsForbidden(err):
		p.forbiddenUntil = p.clock.Now().Add(podsForbiddenDelay)
	case err == nil:
		changed, entry.message = entry.message != message, message
	}
	if entry.lists < len(podListDelays) {
		again = max(entry.since.Add(podListDelays[entry.lists]).Sub(p.clock.Now()), time.Second)
	}
	return changed, again
}

// forget drops a workload that is healthy, or gone.
func (p *podReasons) forget(key types.NamespacedName) {
	p.lock.Lock()
	defer p.lock.Unlock()
	delete(p.entries, key)
}

// explain returns the health of a workload with the reason why its Pods do not run, if that is known.
func (p *podReasons) explain(key types.NamespacedName, of health.Health) health.Health {
	if p == nil {
		return of
	}
	p.lock.Lock()
	defer p.lock.Unlock()
	entry := p.entries[key]
	if entry == nil || entry.message == "" || entry.status != of.Status {
		return of
	}
	if of.Status == health.InProgress || of.Message == "" {
		return health.Health{Status: of.Status, Message: entry.message}
	}
	return health.Health{Status: of.Status, Message: redact.Text(of.Message + " " + entry.message)}
}

// list returns why a Pod of a workload does not run; empty if the Pods do not have a reason.
func (p *podReasons) list(ctx context.Context, of *workload) (message string, err error) {
	selector, err := metav1.LabelSelectorAsSelector(of.selector)
	if err != nil || of.selector == nil || selector.Empty() {
		return "", err
	}
	owners := map[types.UID]bool{of.uid: true}
	replicaSets, err := p.lister.List(ctx, replicaSetsResource, of.namespace, selector.String(), maxPods)
	if err != nil && !apierrors.IsForbidden(err) {
		return "", err
	}
	for i := range replicaSets {
		// Other workloads may have the same labels, also workloads of other workspaces.
		if isOwned(&replicaSets[i], owners) {
			owners[replicaSets[i].GetUID()] = true
		}
	}
	pods, err := p.lister.List(ctx, podsResource, of.namespace, selector.String(), maxPods)
	if err != nil {
		return "", err
	}
	for i := range pods {
		if isOwned(&pods[i], owners) {
			message = firstObstacle(message, podObstacle(&pods[i]))
		}
	}
	return redact.Text(message), nil
}

// isOwned reports whether one of the owners controls an object.
func isOwned(object *unstructured.Unstructured, owners map[types.UID]bool) bool {
	return slices.ContainsFunc(object.GetOwnerReferences(), func(reference metav1.OwnerReference) bool {
		return owners[reference.UID] && reference.Controller != nil && *reference.Controller
	})
}

// firstObstacle returns the first of two texts in a stable order; an empty one is none.
func firstObstacle(a, b string) string {
	if a == "" || b != "" && b < a {
		return b
	}
	return a
}

// startingReasons are the reasons of containers that are about to run.
var startingReasons = []string{"", "ContainerCreating", "PodInitializing"}

// podObstacle returns why a Pod does not run; empty if it does, or is about to.
func podObstacle(object *unstructured.Unstructured) string {
	var pod corev1.Pod
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &pod); err != nil {
		return ""
	}
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodScheduled && condition.Status == corev1.ConditionFalse {
			return fmt.Sprintf("Pod %s: %s: %s", pod.Name, condition.Reason, condition.Message)
		}
	}
	for _, container := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses) {
		waiting, terminated := container.State.Waiting, container.State.Terminated
		switch {
		case waiting != nil && !slices.Contains(startingReasons, waiting.Reason):
			return fmt.Sprintf("Pod %s, container %s: %s: %s", pod.Name, container.Name, waiting.Reason, waiting.Message)
		case terminated != nil && terminated.ExitCode != 0:
			return fmt.Sprintf("Pod %s, container %s: %s: it ended with the exit code %d.", pod.Name, container.Name, terminated.Reason, terminated.ExitCode)
		}
	}
	return ""
}

// checkPods lists the Pods of a placed workload if that is due. It returns when the next list is due; zero for never.
func (c *Controller) checkPods(ctx context.Context, key types.NamespacedName) (again time.Duration) {
	if c.pods == nil {
		return 0
	}
	var of *workload
	inMailbox, _ := c.mailbox.get(key)
	if copies := c.target.CopiesOf(key); len(copies) > 0 && inMailbox != nil && c.Status.isPlaced(key) {
		copied := copies[0]
		of = &workload{uid: copied.Observed.UID, namespace: copied.Key.Namespace, health: copied.Observed.Health, selector: selectorOf(inMailbox)}
	}
	changed, again := c.pods.check(ctx, key, of, !c.firstPass.isOver())
	if changed {
		c.Status.placed.publishOne(key, "")
	}
	return again
}

// selectorOf returns spec.selector of a workload; nil if it has none.
func selectorOf(object *unstructured.Unstructured) *metav1.LabelSelector {
	content, found, _ := unstructured.NestedMap(object.Object, "spec", "selector")
	selector := &metav1.LabelSelector{}
	if !found || runtime.DefaultUnstructuredConverter.FromUnstructured(content, selector) != nil {
		return nil
	}
	return selector
}

// isPlaced reports whether a placement made an object of the mailbox.
func (s *Status) isPlaced(key types.NamespacedName) bool {
	_, known := s.placed.get(key)
	return known
}
