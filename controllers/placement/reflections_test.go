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

package placement

import (
	"slices"
	"testing"

	"github.com/kcp-dev/logicalcluster/v3"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/synchub-dev/synchub/controllers/placement/fleet"
	"github.com/synchub-dev/synchub/controllers/plan"
	"github.com/synchub-dev/synchub/controllers/plan/ownership"
	"github.com/synchub-dev/synchub/controllers/plan/transform"
	"github.com/synchub-dev/synchub/provider/mailboxes"
)

var podResource = schema.GroupVersionResource{Version: "v1", Resource: "pods"}

// newReflection returns a Pod of the workspace "workload" that came up from the Pod shop-1/web of a mailbox.
func newReflection(t *testing.T, m marks) *unstructured.Unstructured {
	t.Helper()
	up := transform.Up{
		Owner: ownership.Owner{Hub: m.hub, SyncTarget: "uid", Sealer: m.sealer}.ForWorkspace("workload", "inventory"), Mailbox: "mailbox", SyncTarget: "florin",
		Resource: podResource.GroupResource(), Version: "v1", Kind: "Pod", Namespaced: true, Hasher: ownership.NewHasher([]byte("key")),
	}
	origin := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Pod", "metadata": map[string]any{"name": "web", "namespace": "shop-1"}}}
	desired, err := up.Desired(origin, up.Resource, transform.SyncSpec{Policy: ownership.PolicyDelete, Namespace: "shop", Name: "web.florin"})
	if err != nil {
		t.Fatal(err)
	}
	desired.Object.SetUID("reflection")
	return desired.Object
}

// Only the hub makes reflections, each for one object of one workspace.
func TestMarksOfReflections(t *testing.T) {
	t.Parallel()
	m := marks{"hub", ownership.NewSealer([]byte("key"))}
	for name, c := range map[string]struct {
		workspace logicalcluster.Name
		change    func(*unstructured.Unstructured)
		want      bool
	}{
		"a reflection":      {"workload", func(*unstructured.Unstructured) {}, true},
		"in another one":    {"other", func(*unstructured.Unstructured) {}, false},
		"another name":      {"workload", func(o *unstructured.Unstructured) { o.SetName("mine") }, false},
		"another namespace": {"workload", func(o *unstructured.Unstructured) { o.SetNamespace("mine") }, false},
		"without a mark":    {"workload", func(o *unstructured.Unstructured) { o.SetAnnotations(nil) }, false},
		"a forged mark": {"workload", func(o *unstructured.Unstructured) {
			o.SetAnnotations(map[string]string{ownership.MarkAnnotation: (marks{"hub", ownership.NewSealer([]byte("other"))}).seal(t, o)})
		}, false},
	} {
		object := newReflection(t, m)
		c.change(object)
		origin, owner, got := m.reflectionOf(c.workspace, podResource, object)
		if got != c.want {
			t.Errorf("%s: %v", name, got)
		}
		if _, inventory, syncTarget, _ := owner.SplitForWorkspace(); got && (inventory != "inventory" || syncTarget != "uid" || origin != (copyKey{podResource, "mailbox", types.NamespacedName{Namespace: "shop-1", Name: "web"}})) {
			t.Errorf("%s: from %v, %s %s", name, origin, inventory, syncTarget)
		}
		if _, isCopy := m.workspaceOf(object); isCopy {
			t.Errorf("%s: it counts as a copy of a placement", name)
		}
	}
}

// seal returns the mark of a reflection, sealed with another key.
func (m marks) seal(t *testing.T, _ *unstructured.Unstructured) string {
	t.Helper()
	return newReflection(t, m).GetAnnotations()[ownership.MarkAnnotation]
}

// An object that the hub reflected stays a reflection without its mark, so that it is never placed, but not another object of its name.
func TestReflectionsWithoutMarks(t *testing.T) {
	t.Parallel()
	w := newWorkspace(newTestShared(func(o *Options) { o.Hub, o.Sealer = "hub", ownership.NewSealer([]byte("key")) }), "workload")
	m := marks{"hub", ownership.NewSealer([]byte("key"))}
	object := newReflection(t, m)
	key := keyOf(podResource, object)
	without, other := object.DeepCopy(), object.DeepCopy()
	without.SetAnnotations(nil)
	other.SetAnnotations(nil)
	other.SetUID("other")
	for _, step := range []struct {
		name  string
		event mailboxes.Event
		is    bool
	}{
		{"created", mailboxes.Event{New: object}, true},
		{"its mark is removed", mailboxes.Event{Old: object, New: without}, true},
		{"another edit", mailboxes.Event{Old: without, New: without}, true},
		{"the mark is back", mailboxes.Event{Old: without, New: object}, true},
		{"deleted", mailboxes.Event{Old: object}, true},
		{"a user's object", mailboxes.Event{New: other}, false},
	} {
		if got := w.reflections.onObject(m, key, step.event); got != step.is {
			t.Errorf("%s: %v", step.name, got)
		}
	}
}

// A namespace that workspaces share is the one's that alone has copies there.
func TestUsersOfNamespaces(t *testing.T) {
	t.Parallel()
	users, at := newNamespaceUsers(), site{"m", "shop"}
	steps := []struct {
		workspace logicalcluster.Name
		by        int
		affected  []logicalcluster.Name
		only      logicalcluster.Name
		count     int
	}{
		{"one", 1, []logicalcluster.Name{"one"}, "one", 1},
		{"one", 1, nil, "one", 1},
		{"two", 1, []logicalcluster.Name{"one", "two"}, "", 2},
		{"one", -1, nil, "", 2},
		{"one", -1, []logicalcluster.Name{"one", "two"}, "two", 1},
		{"two", -1, []logicalcluster.Name{"two"}, "", 0},
	}
	for i, step := range steps {
		affected := users.change(at, step.workspace, step.by)
		slices.Sort(affected)
		only, count, known := users.only(at)
		if !slices.Equal(affected, step.affected) || only != step.only || count != step.count || known {
			t.Errorf("step %d: %v, only %q of %d, known %v", i, affected, only, count, known)
		}
	}
	if users.setComplete("m"); !users.isComplete("m") || users.isComplete("other") {
		t.Error("the mailbox is not complete, or another one is")
	}
}

// Beyond the limit, a reflection that the workspace has already stays.
func TestLimitOfReflections(t *testing.T) {
	t.Parallel()
	w := newWorkspace(newTestShared(func(o *Options) { o.MaxReflections = 2 }), "workload")
	observed := func(name string, state plan.State, size int64) bool {
		s := &reflectionSnapshot{key: copyKey{podResource, "m", types.NamespacedName{Namespace: "shop", Name: name}}, name: types.NamespacedName{Namespace: "shop", Name: name}, size: size}
		s.State, s.syncTarget = state, fleet.SyncTarget{Name: "florin"}
		if state == plan.Selected {
			s.selectedBy = []types.UID{"p"}
		}
		return w.reflections.record(s)
	}
	for i, step := range []struct {
		name   string
		state  plan.State
		size   int64
		within bool
	}{
		{"a", plan.Selected, 1, true}, {"b", plan.Selected, 1, true}, {"a", plan.Selected, 2, true}, {"c", plan.Selected, 1, false},
		{"a", plan.Deselected, 0, true}, {"c", plan.Selected, maxReflectedBytes, false}, {"c", plan.Selected, 1, true}, {"d", plan.Selected, 1, false},
	} {
		if got := observed(step.name, step.state, step.size); got != step.within {
			t.Errorf("step %d: within the limit: %v", i, got)
		}
	}
	w.reflections.update(copyKey{podResource, "m", types.NamespacedName{Namespace: "shop", Name: "d"}}, func(found *reflected) { found.uid = "present" })
	if !observed("d", plan.Selected, 1) {
		t.Error("a reflection that the workspace has does not stay")
	}
}
