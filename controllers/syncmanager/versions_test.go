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
	"github.com/synchub-dev/synchub/controllers/plan"
	"github.com/synchub-dev/synchub/controllers/plan/related"
	"github.com/synchub-dev/synchub/controllers/plan/selection"
	"github.com/synchub-dev/synchub/controllers/syncmanager/schemacheck"
	"github.com/synchub-dev/synchub/provider/targets"
)

// oldWidgets returns the Widgets published in these versions. The target of discovery serves v2 and v1.
func oldWidgets(versions ...string) plan.Resource {
	return plan.Resource{
		PublishedResource: "widgets", GroupVersionResource: schema.GroupVersionResource{Group: "old", Version: versions[0], Resource: "widgets"}, Kind: "Widget",
		Namespaced: true, Exported: true, Rules: &plan.Rules{Versions: versions},
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
		resource plan.Resource
		named    string
		recorded string
		want     string
		again    time.Duration
	}{
		"one version":                             {resource: oldWidgets("v3"), want: "v3"},
		"the preferred one is served":             {resource: oldWidgets("v2", "v1"), want: "v2"},
		"an older one is served":                  {resource: oldWidgets("v3", "v1"), want: "v1", again: versionPollInterval},
		"none is served":                          {resource: oldWidgets("v4", "v3"), want: "v4", again: versionPollInterval},
		"none is served any more":                 {resource: oldWidgets("v4", "v3"), recorded: "widgets.old/v3", want: "v3", again: versionPollInterval},
		"one is named":                            {resource: oldWidgets("v2", "v1"), named: "v1", want: "v1"},
		"one is named that is not served":         {resource: oldWidgets("v3", "v2"), named: "v3", want: "v3"},
		"one is named that is not published":      {resource: oldWidgets("v3", "v2"), named: "v1", want: "v2", again: versionPollInterval},
		"the target was given another one before": {resource: oldWidgets("v2", "v1"), recorded: "widgets.old/v1", want: "v2"},
	} {
		t.Run(name, func(t *testing.T) {
			manager, _ := newManager(t)
			state := &targetState{target: Target{Connection: connection}, matcher: naming(test.named), writtenResources: parseWritten(test.recorded)}
			heard := make(chan struct{}, 1)
			defer connection.Watches.Subscribe(targets.Listener{OnLookup: func() {
				select {
				case heard <- struct{}{}:
				default:
				}
			}})()
			published := []plan.Resource{test.resource}
			for {
				pass := passWith(manager, state, published...)
				again, err := pass.chooseVersions()
				if err != nil {
					t.Fatal(err)
				}
				chosen := pass.published[0]
				if chosen.TargetAPI().Version == test.want && again == test.again {
					if isOwn := chosen == test.resource; isOwn != (test.want == test.resource.Version) {
						t.Errorf("got %+v", chosen)
					}
					return
				}
				select {
				case <-heard:
				case <-time.After(time.Minute):
					t.Fatalf("want %s, got %s; again after %v", test.want, chosen.TargetAPI().Version, again)
				}
			}
		})
	}
}

// While a target is down, its last version stays. Unselected resources are not resolved.
func TestChooseVersionsOfATargetThatIsAway(t *testing.T) {
	manager, _ := newManager(t)
	published := []plan.Resource{oldWidgets("v2", "v1")}
	state := &targetState{target: Target{Connection: connection(t)}, matcher: naming(""), writtenResources: parseWritten("widgets.old/v1")}
	pass := passWith(manager, state, published...)
	if _, err := pass.chooseVersions(); err != nil || pass.published[0].TargetAPI().Version != "v1" {
		t.Errorf("got %v, %v", state.chosenVersions, err)
	}
	state.matcher, state.writtenResources = selecting("configmaps"), nil
	if _, err := passWith(manager, state, published...).chooseVersions(); err != nil || len(state.chosenVersions) > 0 || state.apiEvents.isMultiVersion(published[0].GroupResource()) {
		t.Errorf("got %v, %v", state.chosenVersions, err)
	}
}

// The compatibility of one version is no evidence for another.
func TestAnotherVersionIsComparedAnew(t *testing.T) {
	manager, _ := newManager(t)
	group := schema.GroupResource{Group: "old", Resource: "widgets"}
	published := []plan.Resource{oldWidgets("v2", "v1")}
	state := &targetState{target: Target{Connection: connection(t)}, matcher: naming("v1"), writtenResources: parseWritten("widgets.old/v1")}
	state.compatibilityStates = map[schema.GroupResource]schemacheck.State{group: incompatibleState()}
	for named, want := range map[string]int{"v1": 1, "v2": 0} {
		state.matcher = naming(named)
		state.compatibilityStates = map[schema.GroupResource]schemacheck.State{group: incompatibleState()}
		if _, err := passWith(manager, state, published...).chooseVersions(); err != nil || len(state.compatibilityStates) != want {
			t.Errorf("%s: %v, %v", named, state.compatibilityStates, err)
		}
	}
}

// Related objects are written in the chosen version, whichever version the relation names. So are results of conversions that leave
// the version open.
func TestFormsAreInTheChosenVersions(t *testing.T) {
	manager, _ := newManager(t)
	connection := discovery(t)
	state := &targetState{target: Target{Connection: connection}, matcher: naming("")}
	related := &related.Relation{OnTarget: schema.GroupVersionResource{Group: "old", Version: "v3", Resource: "widgets"}}
	found := resolvedAPIsOf(t, manager, state, oldWidgets("v3", "v2").WithTargetVersion("v2"), nil, related)
	if served, unresolved := described(found); !slices.Equal(served, []string{"widgets.old/v2 Widget"}) || len(unresolved) > 0 {
		t.Errorf("got %q without %q", served, unresolved)
	}

	config := &edgev2alpha1.EdgeSyncConfig{ObjectMeta: metav1.ObjectMeta{Name: "c"}}
	config.Spec.Conversions = []edgev2alpha1.Conversion{{
		Upstream: edgev2alpha1.EdgeSyncConfigResource{Group: "old", Kind: "Gadget"}, Downstream: edgev2alpha1.EdgeSyncConfigResource{Group: "old", Kind: "Widget"},
	}}
	state.matcher = selection.Compile(nil, []*edgev2alpha1.EdgeSyncConfig{config})
	gadgets := oldWidgets("v3", "v2").WithTargetVersion("v2")
	gadgets.PublishedResource, gadgets.Resource, gadgets.Kind = "gadgets", "gadgets", "Gadget"
	found = resolvedAPIsOf(t, manager, state, gadgets, []plan.Resource{gadgets, oldWidgets("v3", "v2", "v1").WithTargetVersion("v1")})
	if served, unresolved := described(found); !slices.Equal(served, []string{"gadgets.old/v2 Gadget", "widgets.old/v1 Widget"}) || len(unresolved) > 0 {
		t.Errorf("got %q without %q", served, unresolved)
	}
}
