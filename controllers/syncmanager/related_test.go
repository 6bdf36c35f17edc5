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

package syncmanager

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	synchubv1alpha1 "github.com/synchub-dev/synchub/apis/synchub/v1alpha1"
	"github.com/synchub-dev/synchub/controllers/objectsync"
	"github.com/synchub-dev/synchub/controllers/plan"
	"github.com/synchub-dev/synchub/controllers/plan/related"
)

// relating returns resources. Each argument is a name followed by its related resources: in "a b c.x", b and c.x are related to a. A name
// with the prefix "+" is selected in all mailboxes, one with "-" is only published for relations.
func relating(t *testing.T, all ...string) []plan.Resource {
	t.Helper()
	var published []plan.Resource
	for _, text := range all {
		names := strings.Fields(text)
		resource := resources(strings.TrimLeft(names[0], "+-"))[0]
		resource.PublishedResource = "of-" + resource.Resource
		switch names[0][0] {
		case '+':
			resource.SelectAll = true
		case '-':
			resource.RelatedOnly, resource.PublishedResource = true, ""
		}
		var spec []synchubv1alpha1.RelatedResource
		for index, name := range names[1:] {
			related := schema.ParseGroupResource(name)
			spec = append(spec, synchubv1alpha1.RelatedResource{
				Identifier: fmt.Sprint("to-", index), Origin: synchubv1alpha1.RelatedOriginMailbox,
				Resource: synchubv1alpha1.RelatedResourceDescriptor{Group: related.Group, Version: "v1", Resource: related.Resource},
				Object:   synchubv1alpha1.RelatedObject{Reference: &synchubv1alpha1.RelatedReference{Path: "data.key"}},
			})
		}
		relations, err := related.Compile(spec)
		if err != nil {
			t.Fatal(err)
		}
		resource.Rules = &plan.Rules{Related: relations}
		published = append(published, resource)
	}
	return published
}

// named returns the resource of that name.
func named(published []plan.Resource, name string) plan.Resource {
	return published[slices.IndexFunc(published, func(r plan.Resource) bool { return r.GroupResource().String() == name })]
}

func TestRelationsTo(t *testing.T) {
	published := relating(t, "a b c", "b c", "c", "d.x b b", "b.x")
	for name, want := range map[string]int{"a": 0, "b": 3, "c": 2, "d.x": 0, "b.x": 0} {
		relations := relationsTo(published, named(published, name))
		if len(relations) != want {
			t.Errorf("%s: want %d relations, got %d", name, want, len(relations))
		}
		// A controller is restarted when its relations differ.
		if again := relationsTo(published, named(published, name)); !slices.Equal(again, relations) {
			t.Errorf("%s: first %v, then %v", name, relations, again)
		}
	}
}

func TestWithRelated(t *testing.T) {
	type names = []string
	published := relating(t, "c", "a b", "b c", "self self", "x y", "y x", "lone", "-friend", "m friend none")
	for name, test := range map[string]struct{ chosen, want names }{
		"nothing":                  {nil, nil},
		"without relatives":        {names{"lone"}, names{"lone"}},
		"relatives of relatives":   {names{"a"}, names{"c", "a", "b"}},
		"chosen for itself":        {names{"b", "c"}, names{"c", "b"}},
		"related to itself":        {names{"self"}, names{"self"}},
		"round in circles":         {names{"y"}, names{"x", "y"}},
		"what is not published":    {names{"m"}, names{"-friend", "m"}},
		"in the order of the list": {names{"m", "a", "lone"}, names{"c", "a", "b", "lone", "-friend", "m"}},
	} {
		var chosen []plan.Resource
		for _, name := range test.chosen {
			chosen = append(chosen, named(published, name))
		}
		before := slices.Clone(chosen)
		var want names
		for _, name := range test.want {
			want = append(want, strings.TrimPrefix(name, "-"))
		}
		if got := withRelated(chosen, published); !slices.Equal(namesOf(got), want) {
			t.Errorf("%s: want %v, got %v", name, want, namesOf(got))
		}
		if !slices.Equal(chosen, before) {
			t.Errorf("%s: the list that was given has changed", name)
		}
	}
}

// Related resources are wanted while one of their primaries is, and then until they are empty on the target.
func TestDesiredResourcesWithRelated(t *testing.T) {
	type names = []string
	for name, test := range map[string]struct {
		published, selected names
		recorded            string
		emptied, want       names
	}{
		"what travels with one":             {names{"a b", "b"}, names{"a"}, "", nil, names{"a", "b"}},
		"not without one":                   {names{"a b", "b"}, nil, "", nil, nil},
		"all travel":                        {names{"+a", "b"}, nil, "", nil, names{"a"}},
		"all travel, with others":           {names{"+a b", "-b"}, nil, "", nil, names{"a", "b"}},
		"configs do not select companions":  {names{"a b", "-b"}, names{"b"}, "", nil, nil},
		"a companion that may be left":      {names{"a b", "-b"}, nil, "b/v1", nil, names{"b"}},
		"of which nothing is left":          {names{"a b", "-b"}, nil, "b/v1", names{"b"}, nil},
		"one that may be left, with others": {names{"a b", "b"}, nil, "a/v1", nil, names{"a", "b"}},
		"the other is left, without one":    {names{"a b", "b"}, nil, "a/v1 b/v1", names{"a"}, names{"b"}},
	} {
		published := relating(t, test.published...)
		var plain names
		for _, resource := range published {
			plain = append(plain, resource.GroupResource().String())
		}
		state := &targetState{matcher: selecting(test.selected...), writtenResources: parseWritten(test.recorded)}
		got, err := desiredResources(state, published, withDirectAPIs(converting(), plain...), func(resource plan.Resource) (bool, error) {
			return slices.Contains(test.emptied, resource.GroupResource().String()), nil
		})
		if err != nil || !slices.Equal(namesOf(got), test.want) {
			t.Errorf("%s: want %v, got %v, %v", name, test.want, namesOf(got), err)
		}
	}
}

// A resource that is about to be unpublished is wanted neither as a primary nor as a related resource.
func TestDesiredResourcesOfUnpublishing(t *testing.T) {
	published := relating(t, "+a b", "+b")
	published[1].Unpublishing = true
	state := &targetState{matcher: selecting("b"), writtenResources: parseWritten("b/v1")}
	got, err := desiredResources(state, published, withDirectAPIs(converting(), "a", "b"), func(plan.Resource) (bool, error) { return false, nil })
	if err != nil || !slices.Equal(namesOf(got), []string{"a"}) {
		t.Errorf("got %v, %v", namesOf(got), err)
	}
}

// The written resources hold a projected resource under its name on the target.
func TestInventoryOfAProjection(t *testing.T) {
	published := resources("boxes.shop")
	published[0].Projected = plan.TargetAPI{GroupVersionResource: schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}, Kind: "ConfigMap"}
	all := map[schema.GroupResource]resolvedAPIs{published[0].GroupResource(): {apis: []plan.TargetAPI{published[0].TargetAPI()}}}
	for name, test := range map[string]struct {
		recorded string
		wanted   bool
		then     string
	}{
		"the first pair":        {"", true, "configmaps/v1<boxes.shop"},
		"no change":             {"configmaps/v1<boxes.shop", true, "configmaps/v1<boxes.shop"},
		"nothing is left":       {"configmaps/v1<boxes.shop", false, ""},
		"beside another's":      {"configmaps/v1+<shelves.shop", true, "configmaps/v1+<boxes.shop,shelves.shop"},
		"it was itself, before": {"boxes.shop/v1", true, "configmaps/v1<boxes.shop"},
	} {
		manager, _ := newManager(t)
		state := &targetState{writtenResources: parseWritten(test.recorded)}
		var wanted []plan.Resource
		if test.wanted {
			wanted = published
		}
		if err := passWith(manager, state, published...).storeWrittenResources(t.Context(), wanted, all); err != nil {
			t.Fatal(err)
		}
		if got := formatWritten(state.writtenResources); got != test.then {
			t.Errorf("%s: want %s recorded, got %s", name, test.then, got)
		}
		if test.wanted && !state.writtenResources.mayContain(published[0].GroupResource()) {
			t.Errorf("%s: that something may be there is not known", name)
		}
	}
}

// The former name of a resource stays among its forms until the target is known to have no objects under that
// name.
func TestFormsOfAProjection(t *testing.T) {
	manager, _ := newManager(t)
	projected := widgets()
	projected.Projected = plan.TargetAPI{GroupVersionResource: schema.GroupVersionResource{Group: "old", Version: "v2", Resource: "widgets"}, Kind: "Widget"}
	for recorded, want := range map[string][]string{
		"":                           {"widgets.old/v2 Widget"},
		"widgets.old/v2<widgets.new": {"widgets.old/v2 Widget"},
		"widgets.new/v1":             {"widgets.old/v2 Widget", "widgets.new/v1 "},
		"gadgets.old/v1<widgets.new": {"widgets.old/v2 Widget", "gadgets.old/v1 "},
	} {
		state := &targetState{target: Target{Connection: connection(t)}, matcher: selecting(), writtenResources: parseWritten(recorded)}
		forms, err := passWith(manager, state).resolveTargetAPIsOf(projected, nil)
		if served, _ := described(forms); err != nil || !slices.Equal(served, want) {
			t.Errorf("%q: want %q, got %q, %v", recorded, want, served, err)
		}
	}
}

// Relations add the target resources of their objects. APIs that the target does not serve are reported. While
// the target does not respond, the controller keeps its forms.
func TestFormsOfRelations(t *testing.T) {
	relatedTo := func(resources ...string) (relations []*related.Relation) {
		for _, primary := range relating(t, "primary "+strings.Join(resources, " ")) {
			relations = append(relations, primary.Related()...)
		}
		for _, relation := range relations {
			relation.OnTarget.Version = "v2"
		}
		return relations
	}
	connection := discovery(t)
	for name, test := range map[string]struct {
		relations          []*related.Relation
		served, unresolved []string
	}{
		"none":                    {nil, []string{"widgets.new/v1 Widget"}, nil},
		"another resource":        {relatedTo("gadgets.old"), []string{"widgets.new/v1 Widget", "gadgets.old/v2 Gadget"}, nil},
		"one resource twice":      {relatedTo("gadgets.old", "gadgets.old"), []string{"widgets.new/v1 Widget", "gadgets.old/v2 Gadget"}, nil},
		"one that is not served":  {relatedTo("valves.old", "gadgets.old"), []string{"widgets.new/v1 Widget", "gadgets.old/v2 Gadget"}, []string{".old NotServed"}},
		"the resource itself":     {relatedTo("widgets.old"), []string{"widgets.new/v1 Widget", "widgets.old/v2 Widget"}, nil},
		"a group that is unknown": {relatedTo("widgets.older"), []string{"widgets.new/v1 Widget"}, []string{".older NotServed"}},
	} {
		manager, _ := newManager(t)
		state := &targetState{target: Target{Connection: connection}, matcher: selecting()}
		forms := resolvedAPIsOf(t, manager, state, widgets(), nil, test.relations...)
		served, unresolved := described(forms)
		if !slices.Equal(served, test.served) || !slices.Equal(unresolved, test.unresolved) {
			t.Errorf("%s: want %q without %q\ngot  %q without %q", name, test.served, test.unresolved, served, unresolved)
		}
		if options := (objectsync.Options{TargetAPIs: forms.apis, UnresolvedKinds: forms.unresolved, Relations: test.relations}); !forms.equal(options) {
			t.Errorf("%s: it would be restarted without a reason", name)
		}
		if options := (objectsync.Options{TargetAPIs: forms.apis, UnresolvedKinds: forms.unresolved, Relations: relatedTo("others")}); forms.equal(options) {
			t.Errorf("%s: it is not restarted for another relation", name)
		}
	}
}

// wants makes a contributor claim an object of the mailbox.
func wants(registry *related.Registry, contributor string, relation *related.Relation, name string) {
	key := types.NamespacedName{Namespace: "shop", Name: name}
	registry.SetClaim(contributor, key, relation, related.Query{SourceNamespace: "shop", Names: []types.NamespacedName{key}})
}

// unrelated reports whether the registry is sure that no primary claims an object of the mailbox.
func unrelated(registry *related.Registry, resource, name string) bool {
	return registry.IsUnrelated(synchubv1alpha1.RelatedOriginMailbox, schema.ParseGroupResource(resource), related.Object{Key: types.NamespacedName{Namespace: "shop", Name: name}})
}

// The registry has every contributor before any controller can read it, for as long as the contributor is
// wanted and runs.
func TestUpdatePrimaries(t *testing.T) {
	f := newFixture(t)
	published := relating(t, "+configmaps secrets", "secrets", "+deployments.apps secrets configmaps")
	f.manager.Publish(published)
	f.target.Connection = discovery(t)
	f.manager.StartSync(f.target)
	setMatcher(f.manager, selecting())
	state, _ := f.manager.get(florin)
	registry := state.registry
	if !unrelated(registry, "secrets", "x") {
		t.Error("before the first publish an initial sync is requested")
	}
	// The target reveals none of its objects, so no initial sync completes.
	f.manager.reconcileAnyway(t)
	if unrelated(registry, "secrets", "x") || unrelated(registry, "configmaps", "x") {
		t.Error("an absence is known before all initial syncs are done")
	}
	source := published[0]
	wants(registry, source.PublishedResource, source.Related()[0], "x")
	registry.CompleteInitialSync("of-configmaps")
	registry.CompleteInitialSync("of-deployments")
	if unrelated(registry, "secrets", "x") || !unrelated(registry, "secrets", "y") {
		t.Error("a finished initial sync does not count")
	}
	// Nothing changed, so the claims stay.
	f.manager.reconcileAnyway(t)
	if unrelated(registry, "secrets", "x") || !unrelated(registry, "secrets", "y") {
		t.Error("a finished initial sync is requested again")
	}
	// The PublishedResource changed: the controller restarts, and its former claims hold until its next initial sync is complete.
	changed := slices.Clone(published)
	changed[0].Orphan = true
	f.manager.Publish(changed)
	f.manager.reconcileAnyway(t)
	if unrelated(registry, "secrets", "x") || unrelated(registry, "secrets", "y") {
		t.Error("a restarted pair needs no initial sync")
	}
	if _, found := registry.Find(synchubv1alpha1.RelatedOriginMailbox, schema.GroupResource{Resource: "secrets"}, related.Object{Key: types.NamespacedName{Namespace: "shop", Name: "x"}}); !found {
		t.Error("the former relations are not kept")
	}
	// The resource is no longer published, so no controller waits for its initial sync.
	f.manager.Publish(changed[1:])
	f.manager.reconcileAnyway(t)
	registry.CompleteInitialSync("of-deployments")
	if !unrelated(registry, "secrets", "x") || !unrelated(registry, "secrets", "y") {
		t.Error("an unpublished resource is still waited for")
	}
	if f.manager.catalog.isPublished("of-configmaps") || !f.manager.catalog.isPublished("of-deployments") {
		t.Error("the published resources are unknown")
	}
}

// reconcileAnyway reconciles the SyncTarget.
func (m *Manager) reconcileAnyway(t *testing.T) {
	t.Helper()
	state, _ := m.get(florin)
	for _, resource := range m.Published() {
		resolvedAPIsOf(t, m, state, resource, m.Published(), relationsTo(m.Published(), resource)...)
	}
	if _, err := m.Reconcile(t.Context(), florin); err != nil {
		t.Fatal(err)
	}
}

// A resource that is about to be unpublished does not count as published, so objects that came by its relations are kept.
func TestIsPublished(t *testing.T) {
	manager, _ := newManager(t)
	published := relating(t, "a b", "b", "-c")
	published[0].Unpublishing = true
	manager.Publish(published)
	for name, want := range map[string]bool{"of-a": false, "of-b": true, "of-c": false, "none": false} {
		if got := manager.catalog.isPublished(name); got != want {
			t.Errorf("%q is published: %v, want %v", name, got, want)
		}
	}
}
