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
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	testclock "k8s.io/utils/clock/testing"

	"github.com/synchub-dev/synchub/controllers/plan/health"
)

// fakePods is a target with ReplicaSets and Pods. It counts the lists.
type fakePods struct {
	replicaSets, pods []unstructured.Unstructured
	lists             int
	err               error
}

func (f *fakePods) List(_ context.Context, resource schema.GroupVersionResource, namespace, selector string, limit int64) ([]unstructured.Unstructured, error) {
	f.lists++
	if namespace != "shop" || selector != "app=web" || limit > 50 {
		panic(namespace + " " + selector)
	}
	if resource == podsResource {
		return f.pods, f.err
	}
	return f.replicaSets, nil
}

// ownedBy returns an object that another one controls, with a status.
func ownedBy(owner types.UID, name string, status map[string]any) unstructured.Unstructured {
	object := unstructured.Unstructured{Object: map[string]any{"status": status}}
	object.SetName(name)
	object.SetUID(types.UID(name + "-uid"))
	object.SetOwnerReferences([]metav1.OwnerReference{{UID: owner, Controller: new(true)}})
	return object
}

func waitingFor(reason, message string) map[string]any {
	return map[string]any{"containerStatuses": []any{map[string]any{"name": "main", "state": map[string]any{"waiting": map[string]any{"reason": reason, "message": message}}}}}
}

// A workload that is not healthy costs two lists of its Pods, however long that lasts, and a healthy one none.
func TestPodReasons(t *testing.T) {
	t.Parallel()
	clock, key := testclock.NewFakeClock(time.Unix(1000, 0)), types.NamespacedName{Namespace: "shop", Name: "web"}
	target := &fakePods{
		replicaSets: []unstructured.Unstructured{ownedBy("web-uid", "web-1", nil), ownedBy("other", "web-2", nil)},
		pods: []unstructured.Unstructured{
			ownedBy("web-2-uid", "secret", waitingFor("CrashLoopBackOff", "of another workspace")),
			ownedBy("web-1-uid", "b", waitingFor("ImagePullBackOff", "no such image")), ownedBy("web-1-uid", "a", waitingFor("ContainerCreating", "")),
		},
	}
	pods := newPodReasons(schema.GroupResource{Group: "apps", Resource: "deployments"}, target, clock)
	of := &workload{uid: "web-uid", namespace: "shop", health: health.Health{Status: health.InProgress, Message: "not available"}, selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}}
	check := func(isInitial, wantChanged bool, wantAgain time.Duration, wantLists int) {
		t.Helper()
		changed, again := pods.check(t.Context(), key, of, isInitial)
		if changed != wantChanged || again != wantAgain || target.lists != wantLists {
			t.Fatalf("changed %v, again %v, %d lists", changed, again, target.lists)
		}
	}
	check(false, false, 15*time.Second, 0)
	if got := pods.explain(key, of.health); got != of.health {
		t.Errorf("nothing is known: %+v", got)
	}
	clock.Step(15 * time.Second)
	check(false, true, 45*time.Second, 2)
	want := "Pod b, container main: ImagePullBackOff: no such image"
	if got := pods.explain(key, of.health); got.Message != want || got.Status != health.InProgress {
		t.Errorf("got %+v", got)
	}
	clock.Step(45 * time.Second)
	check(false, false, 0, 4)
	clock.Step(time.Hour)
	check(false, false, 0, 4)
	of.health = health.Health{Status: health.Failed, Message: "the deadline has passed."}
	check(false, false, 15*time.Second, 4)
	clock.Step(15 * time.Second)
	check(false, true, 45*time.Second, 6)
	if got := pods.explain(key, of.health).Message; got != "the deadline has passed. "+want {
		t.Errorf("got %q", got)
	}
	of.health = health.Health{Status: health.Current}
	check(false, false, 0, 6)
	if len(pods.entries) > 0 {
		t.Error("a healthy workload costs memory")
	}
	of.health = health.Health{Status: health.InProgress}
	check(true, true, 45*time.Second, 8)
}

func TestPodsAreForbidden(t *testing.T) {
	t.Parallel()
	clock, key := testclock.NewFakeClock(time.Unix(1000, 0)), types.NamespacedName{Namespace: "shop", Name: "web"}
	target := &fakePods{err: apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "", nil)}
	pods := newPodReasons(schema.GroupResource{Group: "apps", Resource: "statefulsets"}, target, clock)
	of := &workload{uid: "web-uid", namespace: "shop", health: health.Health{Status: health.InProgress}, selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}}
	pods.check(t.Context(), key, of, true)
	lists := target.lists
	clock.Step(time.Minute)
	if _, again := pods.check(t.Context(), key, of, false); again != 0 || target.lists != lists {
		t.Errorf("it is tried again after %v: %d lists", again, target.lists)
	}
	if newPodReasons(schema.GroupResource{Resource: "configmaps"}, target, clock) != nil {
		t.Error("ConfigMaps have Pods")
	}
	var none *podReasons
	if changed, again := none.check(t.Context(), key, of, true); changed || again != 0 || none.explain(key, of.health) != of.health {
		t.Error("nil finds something")
	}
}

func TestPodObstacles(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		status map[string]any
		want   string
	}{
		"it runs":          {map[string]any{"containerStatuses": []any{map[string]any{"name": "main", "state": map[string]any{"running": map[string]any{}}}}}, ""},
		"it is created":    {waitingFor("ContainerCreating", ""), ""},
		"no node":          {map[string]any{"conditions": []any{map[string]any{"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/3 nodes are available."}}}, "Pod p: Unschedulable: 0/3 nodes are available."},
		"it ended":         {map[string]any{"containerStatuses": []any{map[string]any{"name": "main", "state": map[string]any{"terminated": map[string]any{"exitCode": int64(3), "reason": "Error"}}}}}, "Pod p, container main: Error: it ended with the exit code 3."},
		"no valid content": {map[string]any{"conditions": "x"}, ""},
	} {
		pod := ownedBy("o", "p", test.status)
		if got := podObstacle(&pod); got != test.want {
			t.Errorf("%s: got %q", name, got)
		}
	}
	if got := firstObstacle(firstObstacle("", "b"), "a"); got != "a" || !strings.HasPrefix(firstObstacle("a", ""), "a") {
		t.Errorf("got %q", got)
	}
}
