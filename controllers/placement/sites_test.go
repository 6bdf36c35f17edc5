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

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/controllers/placement/fleet"
	"github.com/synchub-dev/synchub/controllers/placement/rules"
	"github.com/synchub-dev/synchub/controllers/plan"
	"github.com/synchub-dev/synchub/controllers/plan/tenancy"
)

// placedAt returns a placement of a team whose only destination shares its cluster in the given way.
func placedAt(of *edgev2alpha1.Tenancy) *resolvedPlacement {
	destination := rules.Destination{SyncTarget: fleet.SyncTarget{Mailbox: "mailbox", Tenancy: tenancy.SettingsOf(of)}}
	return &resolvedPlacement{
		Placement: &rules.Placement{}, workspace: rules.Workspace{Cluster: "team"}, mailboxes: map[logicalcluster.Name]rules.Destination{"mailbox": destination},
	}
}

// While the inventory has another tenancy already, and the placement is not resolved again, the copy keeps the names of its site.
func TestAPairKeepsTheTenancyOfItsSite(t *testing.T) {
	t.Parallel()
	perWorkspace := &edgev2alpha1.Tenancy{Namespaces: edgev2alpha1.NamespacesPerWorkspace}
	hash := tenancy.WorkspaceHash("team")
	bindings := schema.GroupVersionResource{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "rolebindings"}
	references, err := tenancy.CompileReferences(bindings.GroupResource(), nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		resolved, inventory *edgev2alpha1.Tenancy
		at, wants           string
	}{
		"shared, and the inventory is not":     {nil, perWorkspace, "shop", "shop"},
		"own names, and the inventory has not": {perWorkspace, nil, "shop-" + hash, "shop-" + hash},
		"another template":                     {perWorkspace, &edgev2alpha1.Tenancy{Namespaces: edgev2alpha1.NamespacesPerWorkspace, NamespaceTemplate: "{hash}-{namespace}"}, "shop-" + hash, "shop-" + hash},
		"a former site":                        {perWorkspace, perWorkspace, "shop", ""},
	} {
		key := pairKey{objectKey{bindings, types.NamespacedName{Namespace: "shop", Name: "web"}}, site{"mailbox", c.at}}
		selection := selectionResult{selectedBy: []*resolvedPlacement{placedAt(c.resolved)}}
		settings, isWanted := selection.tenancyAt(key)
		if isWanted != (c.wants != "") {
			t.Errorf("%s: wanted %v", name, isWanted)
		}
		if !isWanted {
			continue
		}
		s := &pairSnapshot{
			resource: plan.Resource{GroupVersionResource: bindings, Namespaced: true, Rules: &plan.Rules{NamespaceReferences: references}}, tenancy: settings,
			syncTarget: fleet.SyncTarget{Mailbox: "mailbox", Tenancy: tenancy.SettingsOf(c.inventory)},
		}
		s.Up = &plan.UpSnapshot{Object: &unstructured.Unstructured{Object: map[string]any{
			"subjects": []any{map[string]any{"kind": "ServiceAccount", "name": "web", "namespace": "shop"}},
		}}}
		if err := (&observer{sources: &sources{cluster: "team"}, active: &activePlacements{state: selectionState{placements: &placements{}}}}).move(s); err != nil {
			t.Fatal(err)
		}
		subjects, _, _ := unstructured.NestedSlice(s.Up.Object.Object, "subjects")
		if got := subjects[0].(map[string]any)["namespace"]; got != c.wants {
			t.Errorf("%s: the RoleBinding names %s, want %s", name, got, c.wants)
		}
	}
}

// Only the first and the last object that a placement selects in a namespace change the Namespace, not an edit between them.
func TestContentsChangeTheNamespace(t *testing.T) {
	t.Parallel()
	one, renewed, other := placedAt(nil), placedAt(nil), placedAt(nil)
	one.UID, renewed.UID, other.UID = "one", "one", "other"
	counted := contents{}
	for _, step := range []struct {
		what          string
		before, after []*resolvedPlacement
		changes       int
	}{
		{"the first object", nil, []*resolvedPlacement{one}, 1},
		{"an edit", []*resolvedPlacement{one}, []*resolvedPlacement{one}, 0},
		{"the placement was resolved again", []*resolvedPlacement{one}, []*resolvedPlacement{renewed}, 0},
		{"another placement", []*resolvedPlacement{renewed}, []*resolvedPlacement{renewed, other}, 1},
		{"the last object", []*resolvedPlacement{renewed, other}, nil, 1},
	} {
		w := newTestWorkspace()
		w.tasks.startup.begin()
		w.pairs.contents = counted
		w.pairs.countContents(objectKey{name: types.NamespacedName{Namespace: "shop", Name: "web"}}, step.before, step.after)
		if tasks := w.tasks.queue.Len(); tasks != step.changes {
			t.Errorf("%s: %d tasks, want %d", step.what, tasks, step.changes)
		}
	}
	if len(counted) != 0 {
		t.Errorf("objects are left: %v", counted)
	}
}

// The configs of mailboxes that the workspace brings objects up from name its namespaces. A cluster-scoped object is in no namespace.
func TestContentsChangeEntriesForUpsync(t *testing.T) {
	t.Parallel()
	one := placedAt(nil)
	one.UID = "one"
	for name, c := range map[string]struct {
		wanting, namespace string
		before             []*resolvedPlacement
		want               []configKey
	}{
		"a mailbox":               {"workload", "shop", nil, []configKey{{"up", "workload"}}},
		"another workspace's":     {"other", "shop", nil, nil},
		"an edit":                 {"workload", "shop", []*resolvedPlacement{one}, nil},
		"a cluster-scoped object": {"workload", "", nil, nil},
	} {
		w := newTestWorkspace()
		w.tasks.startup.begin()
		w.pairs.contents = contents{}
		w.pairs.reflections.wanting["up"] = map[logicalcluster.Name]struct{}{logicalcluster.Name(c.wanting): {}}
		var published []configKey
		w.pairs.requests.config.Subscribe(t.Context(), func(key configKey) { published = append(published, key) })
		w.pairs.countContents(objectKey{name: types.NamespacedName{Namespace: c.namespace, Name: "web"}}, c.before, []*resolvedPlacement{one})
		if !slices.Equal(published, c.want) {
			t.Errorf("%s: want %v, got %v", name, c.want, published)
		}
		if hasTask := w.tasks.queue.Len() > 0; hasTask != (c.namespace != "" && c.before == nil) {
			t.Errorf("%s: a task for the Namespace: %v", name, hasTask)
		}
	}
}

// Once all contents are known, the copies of Namespaces that no placement wants are enqueued.
func TestNamespacesAreWithdrawnOnceTheirContentsAreKnown(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		found pair
		want  int
	}{
		"a copy that nothing wants": {pair{hasCopy: true}, 1},
		"a copy":                    {pair{hasCopy: true, desired: true}, 0},
		"no copy":                   {pair{}, 0},
	} {
		w := newTestWorkspace()
		w.tasks.startup.begin()
		key := objectKey{namespaces, types.NamespacedName{Name: "shop"}}
		w.pairs.objects[key], w.pairs.namespaces[key] = &object{pairs: map[site]*pair{at("m"): &c.found}}, struct{}{}
		w.pairs.enqueueNamespaces()
		if count := w.tasks.queue.Len(); count != c.want {
			t.Errorf("%s: %d tasks, want %d", name, count, c.want)
		}
	}
}

func TestANamespaceStaysUntilItsContentsAreKnown(t *testing.T) {
	t.Parallel()
	perWorkspace := &edgev2alpha1.Tenancy{Namespaces: edgev2alpha1.NamespacesPerWorkspace}
	own := "shop-" + tenancy.WorkspaceHash("team")
	namespace := objectKey{namespaces, types.NamespacedName{Name: "shop"}}
	for name, c := range map[string]struct {
		key         pairKey
		tenancy     *edgev2alpha1.Tenancy
		allSelected bool
		want        bool
	}{
		"some objects are not listed":          {pairKey{namespace, site{"mailbox", own}}, perWorkspace, false, false},
		"all objects are selected":             {pairKey{namespace, site{"mailbox", own}}, perWorkspace, true, true},
		"a former site":                        {pairKey{namespace, site{"mailbox", "shop"}}, perWorkspace, false, true},
		"another mailbox":                      {pairKey{namespace, site{"elsewhere", own}}, perWorkspace, false, true},
		"workspaces share the namespaces":      {pairKey{namespace, site{"mailbox", "shop"}}, nil, false, true},
		"an object that contains no other one": {pairKey{objectKey{customizers, types.NamespacedName{Namespace: "shop", Name: "web"}}, site{"mailbox", own}}, perWorkspace, false, true},
	} {
		state := selectionState{placements: &placements{all: []*resolvedPlacement{placedAt(c.tenancy)}}, allSelected: c.allSelected}
		if got := state.knowsContentsAt(c.key); got != c.want {
			t.Errorf("%s: known %v, want %v", name, got, c.want)
		}
	}
}

// A Namespace counts as selected only with the placements whose objects it contains: before that, the entries for upsync lack it.
func TestANamespaceIsCountedWithItsContents(t *testing.T) {
	t.Parallel()
	own, shared := placedAt(&edgev2alpha1.Tenancy{Namespaces: edgev2alpha1.NamespacesPerWorkspace}), placedAt(nil)
	namespace, config := objectKey{namespaces, types.NamespacedName{Name: "shop"}}, objectKey{customizers, types.NamespacedName{Namespace: "shop", Name: "web"}}
	for name, c := range map[string]struct {
		key       objectKey
		placement *resolvedPlacement
		selected  bool
		entry     *object
		want      bool
	}{
		"the Namespace of another placement":       {objectKey{namespaces, types.NamespacedName{Name: "other"}}, own, false, nil, true},
		"no task has recorded the contents":        {namespace, own, false, nil, false},
		"an entry without the contents":            {namespace, own, false, &object{}, false},
		"the contents are recorded":                {namespace, own, false, &object{containerFor: []*resolvedPlacement{own}}, true},
		"the placement selects the Namespace":      {namespace, own, true, &object{selectedBy: []*resolvedPlacement{own}}, true},
		"workspaces share the namespaces":          {namespace, shared, false, nil, true},
		"an object that nothing selects":           {config, own, false, nil, true},
		"an object whose selection is not counted": {config, own, true, nil, false},
	} {
		w := newTestWorkspace()
		w.pairs.contents = contents{}
		w.pairs.contents.add("shop", c.placement.UID, 1)
		if c.entry != nil {
			w.pairs.objects[c.key] = c.entry
		}
		var selected []*resolvedPlacement
		if c.selected {
			selected = append(selected, c.placement)
		}
		if got := w.pairs.isCounted(c.key, selected, &placements{all: []*resolvedPlacement{c.placement}}); got != c.want {
			t.Errorf("%s: counted %v, want %v", name, got, c.want)
		}
	}
}
