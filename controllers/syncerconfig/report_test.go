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

package syncerconfig

import (
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/controllers/plan"
	"github.com/synchub-dev/synchub/controllers/plan/selection"
	"github.com/synchub-dev/synchub/controllers/syncmanager"
)

// An entry whose version another entry overrides is reported.
func TestVersionsThatDoNotCount(t *testing.T) {
	config := func(name string, versions ...string) *edgev2alpha1.EdgeSyncConfig {
		config := &edgev2alpha1.EdgeSyncConfig{ObjectMeta: metav1.ObjectMeta{Name: name}}
		for _, version := range versions {
			config.Spec.DownSyncedResources = append(config.Spec.DownSyncedResources, edgev2alpha1.EdgeSyncConfigResource{Group: "example.com", Version: version, Kind: "Widget", Namespace: "*", Name: "*"})
		}
		return config
	}
	widgets := plan.Resource{
		GroupVersionResource: schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "widgets"}, Kind: "Widget", Namespaced: true,
		Rules: &plan.Rules{Versions: []string{"v1", "v1beta1"}},
	}
	report := newReport(syncmanager.View{
		Matcher:   selection.Compile(nil, []*edgev2alpha1.EdgeSyncConfig{config("a", "v7", "", "v1beta1"), config("b", "v1"), config("c", "v1beta1"), config("d")}),
		Published: []plan.Resource{widgets.WithTargetVersion("v1beta1")},
	}, false)
	for name, want := range map[string][]string{
		"a": nil, "c": nil, "d": nil,
		"b": {"spec.downSyncedResources[0] names v1 for widgets.example.com, spec.downSyncedResources[2] of EdgeSyncConfig/a names v1beta1"},
	} {
		if got := report.observedConfig(selection.EdgeSyncConfigID(name), nil).OverruledVersions; !slices.Equal(got, want) {
			t.Errorf("%s: want %q, got %q", name, want, got)
		}
	}
	// An upsync entry may name any published version of the resource.
	up := selection.Entry{Up: true, Group: "example.com", Version: "v1", Kind: "Widget", Namespaces: []string{"*"}, Names: []string{"*"}}
	if got := report.availability.UnavailableEntries([]selection.Entry{up}, nil); len(got) > 0 {
		t.Errorf("got %v", got)
	}
	up.Version = "v7"
	if got := report.availability.UnavailableEntries([]selection.Entry{up}, nil); len(got) != 1 || got[0].Reason != ReasonNotPublished {
		t.Errorf("got %v", got)
	}
}

// Each config is reported by its own entries and conversions.
func TestObservedConfig(t *testing.T) {
	resource := func(kind, name string) edgev2alpha1.EdgeSyncConfigResource {
		return edgev2alpha1.EdgeSyncConfigResource{Group: "example.com", Kind: kind, Name: name}
	}
	conversions := map[string][]edgev2alpha1.Conversion{
		"converts": {
			{Upstream: resource("Widget", ""), Downstream: resource("Gadget", "one-for-all")},
			{Upstream: resource("Widget", ""), Downstream: resource("Gadget", "")},
		},
	}
	config := func(name string, resources ...string) *edgev2alpha1.SyncerConfig {
		config := &edgev2alpha1.SyncerConfig{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: edgev2alpha1.SyncerConfigSpec{Conversions: conversions[name]}}
		for _, resource := range resources {
			config.Spec.Upsync = append(config.Spec.Upsync, edgev2alpha1.UpsyncSet{APIGroup: "example.com", Resources: []string{resource}, Namespaces: []string{"*"}, Names: []string{"*"}})
		}
		return config
	}
	report := newReport(syncmanager.View{
		Matcher: selection.Compile([]*edgev2alpha1.SyncerConfig{
			config("plain", "widgets", "gadgets"), config("converts", "gadgets"), config("empty"),
		}, nil),
		Published: []plan.Resource{{GroupVersionResource: schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "widgets"}, Kind: "Widget", Namespaced: true}},
	}, false)
	for name, want := range map[string]struct {
		selects    bool
		problems   int
		shortfalls string
	}{
		"plain":    {selects: true, shortfalls: "spec.upsync[1].resources[0] (example.com gadgets)"},
		"converts": {selects: true, problems: 1, shortfalls: "spec.conversions[1] (Gadget.example.com): no PublishedResource publishes Gadget.example.com: have it published, or remove the conversion"},
		"empty":    {},
		"unknown":  {},
	} {
		got := report.observedConfig(selection.SyncerConfigID(name), conversions[name])
		var shortfalls string
		for _, shortfall := range got.UnavailableEntries {
			shortfalls += shortfall.String()
		}
		if got.Selects != want.selects || len(got.Problems) != want.problems || shortfalls != want.shortfalls || got.Summary != nil {
			t.Errorf("%s: want %+v, got %+v", name, want, got)
		}
	}
}
