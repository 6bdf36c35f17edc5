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
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/controllers/compatibility"
	"github.com/synchub-dev/synchub/controllers/sync"
	"github.com/synchub-dev/synchub/controllers/sync/relation"
	"github.com/synchub-dev/synchub/controllers/sync/selection"
	"github.com/synchub-dev/synchub/provider/targets"
)

// oldWidgets are published in these versions; the target of discovery serves them in v2 and v1.
func oldWidgets(versions ...string) sync.Resource {
	return sync.Resource{
		PublishedResource: "widgets", GroupVersionResource: schema.GroupVersionResource{Group: "old", Version: versions[0], Resource: "widgets"}, Kind: "Widget",
		Namespaced: true, Exported: true, Rules: &sync.Rules{Versions: versions},
	}
}

// naming compiles a config that selects all Widgets and names a version.
func naming(version string) *selection.Matcher {
	config := &edgev2alpha1.EdgeSyncConfig{ObjectMeta: metav1.ObjectMeta{Name: "c"}}
	config.Spec.DownSyncedResources = []edgev2alpha1.EdgeSyncConfigResource{{Group: "old", Version: version, Kind: "Widget", Namespace: "*", Name: "*"}}
	return selection.Compile(nil, []*edgev2alpha1.EdgeSyncConfig{config})
}

func TestChooseVersions(t *testing.T) {
	connection := discovery(t)
	for name, test := range map[string]struct {
		resource sync.Resource
		named    string
		recorded string
		want     string
		again    time.Duration
	}{
		"one version":                             {resource: oldWidgets("v3"), want: "v3"},
		"the preferred one is served":             {resource: oldWidgets("v2", "v1"), want: "v2"},
		"an older one is served":                  {resource: oldWidgets("v3", "v1"), want: "v1", again: versionsInterval},
		"none is served":                          {resource: oldWidgets("v4", "v3"), want: "v4", again: versionsInterval},
		"none is served any more":                 {resource: oldWidgets("v4", "v3"), recorded: "widgets.old/v3", want: "v3", again: versionsInterval},
		"one is named":                            {resource: oldWidgets("v2", "v1"), named: "v1", want: "v1"},
		"one is named that is not served":         {resource: oldWidgets("v3", "v2"), named: "v3", want: "v3"},
		"one is named that is not published":      {resource: oldWidgets("v3", "v2"), named: "v1", want: "v2", again: versionsInterval},
		"the target was given another one before": {resource: oldWidgets("v2", "v1"), recorded: "widgets.old/v1", want: "v2"},
	} {
		t.Run(name, func(t *testing.T) {
			manager, _ := newManager(t)
			managed := &managed{target: Target{Connection: connection}, matcher: naming(test.named), recorded: records(test.recorded)}
			heard := make(chan struct{}, 1)
			defer connection.Subscribe(targets.Listener{Answered: func() {
				select {
				case heard <- struct{}{}:
				default:
				}
			}})()
			published := []sync.Resource{test.resource}
			for {
				again, err := manager.chooseVersions(managed, published)
				if err != nil {
					t.Fatal(err)
				}
				chosen := managed.inVersions(published)[0]
				if chosen.OnTarget().Version == test.want && again == test.again {
					if isOwn := chosen == test.resource; isOwn != (test.want == test.resource.Version) {
						t.Errorf("got %+v", chosen)
					}
					return
				}
				select {
				case <-heard:
				case <-time.After(time.Minute):
					t.Fatalf("want %s, got %s; again after %v", test.want, chosen.OnTarget().Version, again)
				}
			}
		})
	}
}

// A target that is away keeps the version that it was given last. What nobody wants is not asked for.
func TestChooseVersionsOfATargetThatIsAway(t *testing.T) {
	manager, _ := newManager(t)
	published := []sync.Resource{oldWidgets("v2", "v1")}
	managed := &managed{target: Target{Connection: connection(t)}, matcher: naming(""), recorded: records("widgets.old/v1")}
	if _, err := manager.chooseVersions(managed, published); err != nil || managed.inVersions(published)[0].OnTarget().Version != "v1" {
		t.Errorf("got %v, %v", managed.versions, err)
	}
	managed.matcher, managed.recorded = selecting("configmaps"), nil
	if _, err := manager.chooseVersions(managed, published); err != nil || len(managed.versions) > 0 || managed.hasSeveral(published[0].GroupResource()) {
		t.Errorf("got %v, %v", managed.versions, err)
	}
}

// Whether objects fit is known of one version, and says nothing about another.
func TestAnotherVersionIsComparedAnew(t *testing.T) {
	manager, _ := newManager(t)
	group := schema.GroupResource{Group: "old", Resource: "widgets"}
	published := []sync.Resource{oldWidgets("v2", "v1")}
	managed := &managed{target: Target{Connection: connection(t)}, matcher: naming("v1"), recorded: records("widgets.old/v1")}
	managed.fits = map[schema.GroupResource]compatibility.State{group: refusing()}
	for named, want := range map[string]int{"v1": 1, "v2": 0} {
		managed.matcher = naming(named)
		managed.fits = map[schema.GroupResource]compatibility.State{group: refusing()}
		if _, err := manager.chooseVersions(managed, published); err != nil || len(managed.fits) != want {
			t.Errorf("%s: %v, %v", named, managed.fits, err)
		}
	}
}

// Related objects are written in the version that was chosen, whatever the relation names, and so is what conversions make of
// another kind if they leave the version open.
func TestFormsAreInTheChosenVersions(t *testing.T) {
	manager, _ := newManager(t)
	connection := discovery(t)
	managed := &managed{target: Target{Connection: connection}, matcher: naming("")}
	related := &relation.Relation{OnTarget: schema.GroupVersionResource{Group: "old", Version: "v3", Resource: "widgets"}}
	found := answered(t, manager, managed, oldWidgets("v3", "v2").In("v2"), nil, related)
	if served, unresolved := described(found); !slices.Equal(served, []string{"widgets.old/v2 Widget"}) || len(unresolved) > 0 {
		t.Errorf("got %q without %q", served, unresolved)
	}

	config := &edgev2alpha1.EdgeSyncConfig{ObjectMeta: metav1.ObjectMeta{Name: "c"}}
	config.Spec.Conversions = []edgev2alpha1.Conversion{{
		Upstream: edgev2alpha1.EdgeSyncConfigResource{Group: "old", Kind: "Gadget"}, Downstream: edgev2alpha1.EdgeSyncConfigResource{Group: "old", Kind: "Widget"},
	}}
	managed.matcher = selection.Compile(nil, []*edgev2alpha1.EdgeSyncConfig{config})
	gadgets := oldWidgets("v3", "v2").In("v2")
	gadgets.PublishedResource, gadgets.Resource, gadgets.Kind = "gadgets", "gadgets", "Gadget"
	found = answered(t, manager, managed, gadgets, []sync.Resource{gadgets, oldWidgets("v3", "v2", "v1").In("v1")})
	if served, unresolved := described(found); !slices.Equal(served, []string{"gadgets.old/v2 Gadget", "widgets.old/v1 Widget"}) || len(unresolved) > 0 {
		t.Errorf("got %q without %q", served, unresolved)
	}
}
