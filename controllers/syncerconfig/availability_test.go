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

package syncerconfig_test

import (
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/controllers/objectsync"
	"github.com/synchub-dev/synchub/controllers/plan"
	"github.com/synchub-dev/synchub/controllers/plan/conversion"
	"github.com/synchub-dev/synchub/controllers/plan/policy"
	"github.com/synchub-dev/synchub/controllers/plan/selection"
	"github.com/synchub-dev/synchub/controllers/syncerconfig"
	"github.com/synchub-dev/synchub/controllers/syncmanager"
)

func TestNotPublished(t *testing.T) {
	published := []plan.Resource{
		{GroupVersionResource: schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}, Kind: "ConfigMap", Namespaced: true},
		{GroupVersionResource: schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}, Kind: "Namespace"},
		{GroupVersionResource: schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}, Kind: "Deployment", Namespaced: true},
	}
	entry := func(group, version, resource string) edgev2alpha1.SyncerConfigSpec {
		return edgev2alpha1.SyncerConfigSpec{ClusterScope: []edgev2alpha1.ClusterScopeDownsyncResource{{
			GroupResource: edgev2alpha1.GroupResource{Group: group, Resource: resource}, APIVersion: version, Objects: []string{"x"},
		}}}
	}
	older := func(group, version, kind string) edgev2alpha1.EdgeSyncConfigSpec {
		return edgev2alpha1.EdgeSyncConfigSpec{DownSyncedResources: []edgev2alpha1.EdgeSyncConfigResource{{Group: group, Version: version, Kind: kind, Name: "x"}}}
	}
	for name, test := range map[string]struct {
		syncer edgev2alpha1.SyncerConfigSpec
		edge   edgev2alpha1.EdgeSyncConfigSpec
		want   string
	}{
		"published":                        {syncer: entry("", "v1", "configmaps")},
		"published, any version":           {syncer: entry("", "", "configmaps")},
		"published, of a group":            {syncer: entry("apps", "v1", "deployments")},
		"another version":                  {syncer: entry("", "v2", "configmaps"), want: "spec.clusterScope[0] (v2 configmaps)"},
		"another version, of a group":      {syncer: entry("apps", "v1beta1", "deployments"), want: "spec.clusterScope[0] (apps/v1beta1 deployments)"},
		"another resource":                 {syncer: entry("", "v1", "secrets"), want: "spec.clusterScope[0] (v1 secrets)"},
		"another resource, any version":    {syncer: entry("", "", "secrets"), want: "spec.clusterScope[0] (secrets)"},
		"another group":                    {syncer: entry("apps", "v1", "configmaps"), want: "spec.clusterScope[0] (apps/v1 configmaps)"},
		"another group, any version":       {syncer: entry("example.com", "", "configmaps"), want: "spec.clusterScope[0] (example.com configmaps)"},
		"a kind is no resource":            {syncer: entry("", "v1", "ConfigMap"), want: "spec.clusterScope[0] (v1 ConfigMap)"},
		"all resources of a group":         {syncer: entry("", "v1", "*")},
		"all resources, any version":       {syncer: entry("apps", "", "*")},
		"all resources in another version": {syncer: entry("apps", "v2", "*"), want: "spec.clusterScope[0] (apps/v2 *)"},
		"all resources of another group":   {syncer: entry("example.com", "v1", "*"), want: "spec.clusterScope[0] (example.com/v1 *)"},
		"a kind":                           {edge: older("", "v1", "ConfigMap")},
		"a kind, any version":              {edge: older("apps", "", "Deployment")},
		"another kind":                     {edge: older("", "v1", "Secret"), want: "spec.downSyncedResources[0] (v1 Secret)"},
		"a kind of another group":          {edge: older("apps", "v1", "ConfigMap"), want: "spec.downSyncedResources[0] (apps/v1 ConfigMap)"},
		"a kind in another version":        {edge: older("", "v2", "ConfigMap"), want: "spec.downSyncedResources[0] (v2 ConfigMap)"},
		"a resource is no kind":            {edge: older("", "v1", "configmaps"), want: "spec.downSyncedResources[0] (v1 configmaps)"},
		"all kinds of a group":             {edge: older("apps", "v1", "*")},
		"all kinds of another group":       {edge: older("example.com", "", "*"), want: "spec.downSyncedResources[0] (example.com *)"},
	} {
		t.Run(name, func(t *testing.T) {
			matcher := selection.Compile(
				[]*edgev2alpha1.SyncerConfig{{ObjectMeta: metav1.ObjectMeta{Name: "a"}, Spec: test.syncer}},
				[]*edgev2alpha1.EdgeSyncConfig{{ObjectMeta: metav1.ObjectMeta{Name: "b"}, Spec: test.edge}},
			)
			got := syncerconfig.Availability{Published: published}.UnavailableEntries(matcher.Entries(), nil)
			check(t, got, test.want)
			for _, shortfall := range got {
				if shortfall.Reason != syncerconfig.ReasonNotPublished {
					t.Errorf("got the reason %s", shortfall.Reason)
				}
			}
		})
	}
}

// check compares unavailable entries, formatted as in messages, with the wanted ones; "" means none.
func check(t *testing.T, got []syncerconfig.UnavailableEntry, want ...string) {
	t.Helper()
	var texts []string
	for _, shortfall := range got {
		texts = append(texts, shortfall.String())
	}
	if want = slices.DeleteFunc(want, func(text string) bool { return text == "" }); !slices.Equal(texts, want) {
		t.Errorf("want %q, got %q", want, texts)
	}
}

func TestUnavailableEntriesOfTakenNames(t *testing.T) {
	gizmos := schema.GroupVersionResource{Group: "acme.io", Version: "v1", Resource: "gizmos"}
	supply := syncerconfig.Availability{
		Published:   []plan.Resource{{GroupVersionResource: gizmos, Kind: "Gizmo", Namespaced: true}},
		MissingAPIs: syncmanager.MissingAPIs{Resources: []schema.GroupResource{gizmos.GroupResource()}, Message: "Taken."},
	}
	for resource, want := range map[string]string{"gizmos": edgev2alpha1.ReasonNamingConflict, "*": ""} {
		got := ""
		for _, shortfall := range supply.UnavailableEntries([]selection.Entry{{Group: "acme.io", Version: "v1", Resource: resource}}, nil) {
			got = shortfall.Reason
		}
		if got != want {
			t.Errorf("%s: want %q, got %q", resource, want, got)
		}
	}
	status := syncerconfig.NextStatus(syncerconfig.ObservedConfig{Selects: true, MissingAPIs: supply.MissingAPIs}, edgev2alpha1.SyncerConfigStatus{})
	if missing := meta.FindStatusCondition(status.Conditions, edgev2alpha1.ConditionAPIsMissing); missing == nil || missing.Message != "Taken." {
		t.Errorf("the condition is %v", missing)
	}
	status = syncerconfig.NextStatus(syncerconfig.ObservedConfig{Selects: true}, status)
	if meta.FindStatusCondition(status.Conditions, edgev2alpha1.ConditionAPIsMissing) != nil {
		t.Error("the condition stays")
	}
}

func TestUnavailableEntriesOfManyConversions(t *testing.T) {
	resource := edgev2alpha1.GroupResource{Group: "example.com", Resource: "widgets"}
	spec := edgev2alpha1.SyncerConfigSpec{
		NamespaceScope:    edgev2alpha1.NamespaceScopeDownsyncs{Namespaces: []string{"*"}, Resources: []edgev2alpha1.NamespaceScopeDownsyncResource{{GroupResource: resource}}},
		NamespacedObjects: []edgev2alpha1.NamespaceScopeDownsyncObjects{{GroupResource: resource}},
		ClusterScope:      []edgev2alpha1.ClusterScopeDownsyncResource{{GroupResource: resource}, {GroupResource: resource}},
	}
	matcher := selection.Compile([]*edgev2alpha1.SyncerConfig{{ObjectMeta: metav1.ObjectMeta{Name: "a"}, Spec: spec}}, nil)
	check(t, syncerconfig.Availability{}.UnavailableEntries(matcher.Entries(), nil),
		"spec.namespaceScope.resources[0] (example.com widgets)", "spec.namespacedObjects[0] (example.com widgets)",
		"spec.clusterScope[0] (example.com widgets)", "spec.clusterScope[1] (example.com widgets)",
	)
	check(t, syncerconfig.Availability{}.UnavailableEntries(nil, nil))
}

func TestUnavailableEntries(t *testing.T) {
	supply := syncerconfig.Availability{
		Published: []plan.Resource{
			{GroupVersionResource: schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}, Kind: "ConfigMap"},
			{GroupVersionResource: schema.GroupVersionResource{Group: "up.com", Version: "v1", Resource: "widgets"}, Kind: "Widget"},
			{GroupVersionResource: schema.GroupVersionResource{Group: "up.com", Version: "v1", Resource: "gauges"}, Kind: "Gauge"},
		},
		Targets: map[schema.GroupResource][]plan.TargetAPI{{Group: "up.com", Resource: "gauges"}: {
			{GroupVersionResource: schema.GroupVersionResource{Group: "down.com", Version: "v1", Resource: "dice"}, Kind: "Die"},
		}},
	}
	lacking := func(resource, target, kind, reason string) func(*syncerconfig.Availability) {
		return func(s *syncerconfig.Availability) {
			s.Unavailable = map[schema.GroupResource][]objectsync.UnavailableResource{
				schema.ParseGroupResource(resource): {{GroupResource: schema.ParseGroupResource(target), Kind: kind, Reason: reason, Message: " says the target. "}},
			}
		}
	}
	noWidgets := lacking("widgets.up.com", "widgets.up.com", "Widget", plan.ReasonNotServed)
	noGadgets := lacking("widgets.up.com", "gadgets.down.com", "Gadget", plan.ReasonNotServed)
	unknownGadgets := lacking("widgets.up.com", ".down.com", "Gadget", plan.ReasonNotServed)
	closedWidgets := lacking("widgets.up.com", "widgets.up.com", "Widget", plan.ReasonForbidden)
	pattern := func(group, kind, name string) conversion.Pattern {
		return conversion.Pattern{Group: group, Kind: kind, Name: name}
	}
	toGadgets := conversion.Conversion{Upstream: pattern("up.com", "Widget", ""), Downstream: pattern("down.com", "Gadget", "")}
	oneToGadget := conversion.Conversion{Upstream: pattern("up.com", "Widget", "x"), Downstream: pattern("down.com", "Gadget", "y")}
	toDice := conversion.Conversion{Upstream: pattern("up.com", "Gauge", ""), Downstream: pattern("down.com", "Die", "")}
	allToDown := conversion.Conversion{Upstream: pattern("up.com", "*", ""), Downstream: pattern("down.com", "*", "")}
	otherVersion := conversion.Conversion{Upstream: conversion.Pattern{Group: "up.com", Version: "v2", Kind: "Widget"}, Downstream: pattern("down.com", "Gadget", "")}
	nextVersion := conversion.Conversion{Upstream: conversion.Pattern{Group: "up.com", Version: "v1", Kind: "Widget"}, Downstream: conversion.Pattern{Group: "up.com", Version: "v2", Kind: "Widget"}}

	down := func(group, resource string) selection.Entry {
		return selection.Entry{Field: "e", Group: group, Resource: resource}
	}
	up := func(group, resource string) selection.Entry {
		return selection.Entry{Field: "e", Group: group, Resource: resource, Up: true}
	}
	upKind := func(group, version, kind string) selection.Entry {
		return selection.Entry{Field: "e", Group: group, Version: version, Kind: kind, Up: true}
	}
	for name, test := range map[string]struct {
		entry       selection.Entry
		conversions []conversion.Conversion
		lacking     func(*syncerconfig.Availability)
		reason      string
		want        string
	}{
		"all is well":               {entry: down("up.com", "widgets")},
		"not served":                {entry: down("up.com", "widgets"), lacking: noWidgets, reason: plan.ReasonNotServed, want: "e (up.com widgets): says the target"},
		"not permitted":             {entry: down("up.com", "widgets"), lacking: closedWidgets, reason: plan.ReasonForbidden, want: "e (up.com widgets): says the target"},
		"another one is not served": {entry: down("", "configmaps"), lacking: noWidgets},
		"by kind":                   {entry: selection.Entry{Field: "e", Group: "up.com", Kind: "Widget"}, lacking: noWidgets, reason: plan.ReasonNotServed, want: "e (up.com Widget): says the target"},
		"all of the group, of which one is not served": {entry: down("up.com", "*"), lacking: noWidgets},
		"all of the group, of which one is closed":     {entry: down("up.com", "*"), lacking: closedWidgets, reason: plan.ReasonForbidden, want: "e (up.com * as widgets.up.com): says the target"},

		"converted, and the result is not served": {
			entry: down("up.com", "widgets"), conversions: []conversion.Conversion{toGadgets}, lacking: noGadgets,
			reason: plan.ReasonNotServed, want: "e (up.com widgets as gadgets.down.com): says the target",
		},
		"converted to an API that the target does not know": {
			entry: down("up.com", "widgets"), conversions: []conversion.Conversion{toGadgets}, lacking: unknownGadgets,
			reason: plan.ReasonNotServed, want: "e (up.com widgets as Gadget.down.com): says the target",
		},
		"up, converted from an API that the target does not know": {
			entry: upKind("down.com", "", "Gadget"), conversions: []conversion.Conversion{toGadgets}, lacking: unknownGadgets,
			reason: plan.ReasonNotServed, want: "e (down.com Gadget): says the target",
		},
		"converted, and only the original is not served": {entry: down("up.com", "widgets"), conversions: []conversion.Conversion{toGadgets}, lacking: noWidgets},
		"converted in part, and one result is not served": {
			entry: down("up.com", "widgets"), conversions: []conversion.Conversion{oneToGadget}, lacking: noGadgets,
			reason: plan.ReasonNotServed, want: "e (up.com widgets as gadgets.down.com): says the target",
		},
		"converted in part, and the rest is not served": {
			entry: down("up.com", "widgets"), conversions: []conversion.Conversion{oneToGadget}, lacking: noWidgets,
			reason: plan.ReasonNotServed, want: "e (up.com widgets): says the target",
		},
		"the first conversion leaves nothing to the second": {entry: down("up.com", "widgets"), conversions: []conversion.Conversion{allToDown, toGadgets}, lacking: noGadgets},
		"a conversion of another version":                   {entry: down("up.com", "widgets"), conversions: []conversion.Conversion{otherVersion}, lacking: noGadgets},
		"a conversion of another config":                    {entry: down("up.com", "widgets"), lacking: noGadgets},
		"going down is named as in the mailbox":             {entry: down("down.com", "gadgets"), conversions: []conversion.Conversion{toGadgets}, reason: syncerconfig.ReasonNotPublished, want: "e (down.com gadgets)"},

		"up":                              {entry: up("up.com", "widgets")},
		"up, not published":               {entry: up("down.com", "gadgets"), reason: syncerconfig.ReasonNotPublished, want: "e (down.com gadgets)"},
		"up, not served":                  {entry: up("up.com", "widgets"), lacking: noWidgets, reason: plan.ReasonNotServed, want: "e (up.com widgets): says the target"},
		"up, all of the group":            {entry: up("up.com", "*"), lacking: noWidgets},
		"up, converted":                   {entry: up("down.com", "gadgets"), conversions: []conversion.Conversion{toGadgets}},
		"up, converted, by kind":          {entry: upKind("down.com", "v1", "Gadget"), conversions: []conversion.Conversion{toGadgets}},
		"up, converted, any kind":         {entry: upKind("down.com", "", "*"), conversions: []conversion.Conversion{toGadgets}},
		"up, converted, of the same kind": {entry: up("down.com", "gauges"), conversions: []conversion.Conversion{allToDown}},
		"up, converted, with a plural that the target knows": {entry: up("down.com", "dice"), conversions: []conversion.Conversion{toDice}},
		"up, converted, in another version":                  {entry: upKind("up.com", "v2", "Widget"), conversions: []conversion.Conversion{nextVersion}},
		"up, in a version that nothing has":                  {entry: upKind("down.com", "v9", "Gadget"), conversions: []conversion.Conversion{toGadgets}, reason: syncerconfig.ReasonNotPublished, want: "e (down.com/v9 Gadget)"},
		"up, converted, not served": {
			entry: up("down.com", "gadgets"), conversions: []conversion.Conversion{toGadgets}, lacking: noGadgets,
			reason: plan.ReasonNotServed, want: "e (down.com gadgets): says the target",
		},
		"up, converted in part, the other is not served": {entry: up("down.com", "gadgets"), conversions: []conversion.Conversion{oneToGadget}, lacking: noWidgets},
		"up, made by no conversion":                      {entry: up("up.com", "widgets"), conversions: []conversion.Conversion{toGadgets}, lacking: noGadgets},
		"up, made by no conversion, not served": {
			entry: up("up.com", "widgets"), conversions: []conversion.Conversion{toGadgets}, lacking: noWidgets,
			reason: plan.ReasonNotServed, want: "e (up.com widgets): says the target",
		},
	} {
		t.Run(name, func(t *testing.T) {
			held := supply
			if test.lacking != nil {
				test.lacking(&held)
			}
			// An entry that compiles to several entries is reported once.
			got := held.UnavailableEntries([]selection.Entry{test.entry, test.entry}, test.conversions)
			check(t, got, test.want)
			for _, shortfall := range got {
				if shortfall.Reason != test.reason {
					t.Errorf("want the reason %s, got %s", test.reason, shortfall.Reason)
				}
			}
		})
	}
}

// An entry for all resources of a group selects no twins for upsync, so the config is not refused. An entry that names one is.
func TestAllResourcesAreNoTwins(t *testing.T) {
	twin := plan.Resource{
		GroupVersionResource: schema.GroupVersionResource{Group: "denatured.synchub.dev", Version: "v1", Resource: "limitranges"}, Kind: "LimitRange", Namespaced: true,
		Projected: plan.TargetAPI{GroupVersionResource: schema.GroupVersionResource{Version: "v1", Resource: "limitranges"}, Kind: "LimitRange"},
	}
	for resource, want := range map[string]string{"*": "", "limitranges": policy.ReasonPrivilegedUpsync} {
		matcher := selection.Compile([]*edgev2alpha1.SyncerConfig{{ObjectMeta: metav1.ObjectMeta{Name: "a"}, Spec: edgev2alpha1.SyncerConfigSpec{
			Upsync: []edgev2alpha1.UpsyncSet{{Resources: []string{resource}, Namespaces: []string{"*"}, Names: []string{"*"}}},
		}}}, nil)
		got := syncerconfig.Availability{Published: []plan.Resource{twin}}.UnavailableEntries(matcher.Entries(), nil)
		if len(got) != min(len(want), 1) || len(got) == 1 && got[0].Reason != want {
			t.Errorf("%s: %v", resource, got)
		}
	}
}
