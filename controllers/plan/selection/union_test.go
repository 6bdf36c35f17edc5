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

package selection_test

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/controllers/plan/conversion"
	"github.com/synchub-dev/synchub/controllers/plan/ownership"
	"github.com/synchub-dev/synchub/controllers/plan/selection"
)

func TestLabelSelectorsAndAnnotations(t *testing.T) {
	const spec = `
namespaceScope:
  namespaces: [a]
  resources: [{group: "", resource: configmaps, apiVersion: v1, LIMITS}]
namespacedObjects: [{group: "", resource: secrets, apiVersion: v1, objectsByNamespace: [{namespace: a, names: [x]}], LIMITS}]
clusterScope: [{group: "", resource: namespaces, apiVersion: v1, objects: [x], LIMITS}]
upsync: [{apiGroup: "", resources: [configmaps, namespaces], namespaces: [a], names: [x], LIMITS}, {apiGroup: "", resources: [secrets], namespaces: [a], names: ["*"], LIMITS}]
`
	for name, test := range map[string]struct {
		limits              string
		labels, annotations map[string]string
		want                bool
	}{
		"no limits":                     {"labelSelector: null, annotations: {}", nil, nil, true},
		"the empty selector takes all":  {"labelSelector: {}", nil, nil, true},
		"labels match":                  {"labelSelector: {matchLabels: {tier: web}}", map[string]string{"tier": "web", "more": "x"}, nil, true},
		"another value":                 {"labelSelector: {matchLabels: {tier: web}}", map[string]string{"tier": "db"}, nil, false},
		"no labels":                     {"labelSelector: {matchLabels: {tier: web}}", nil, nil, false},
		"annotations are not labels":    {"labelSelector: {matchLabels: {tier: web}}", nil, map[string]string{"tier": "web"}, false},
		"an expression matches":         {"labelSelector: {matchExpressions: [{key: tier, operator: NotIn, values: [db]}, {key: tier, operator: Exists}]}", map[string]string{"tier": "web"}, nil, true},
		"an expression does not match":  {"labelSelector: {matchExpressions: [{key: tier, operator: DoesNotExist}]}", map[string]string{"tier": "web"}, nil, false},
		"annotations match":             {"annotations: {a: '1', b: ''}", nil, map[string]string{"a": "1", "b": "", "c": "x"}, true},
		"one annotation is missing":     {"annotations: {a: '1', b: ''}", nil, map[string]string{"a": "1"}, false},
		"another value of annotation":   {"annotations: {a: '1'}", nil, map[string]string{"a": "2"}, false},
		"labels are not annotations":    {"annotations: {a: '1'}", map[string]string{"a": "1"}, nil, false},
		"both must match, and do":       {"labelSelector: {matchLabels: {l: x}}, annotations: {a: '1'}", map[string]string{"l": "x"}, map[string]string{"a": "1"}, true},
		"both must match, one does not": {"labelSelector: {matchLabels: {l: x}}, annotations: {a: '1'}", map[string]string{"l": "x"}, nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			matcher := selection.Compile([]*edgev2alpha1.SyncerConfig{syncerConfig(t, "c", strings.ReplaceAll(spec, "LIMITS", test.limits))}, nil)
			for _, reference := range []string{"configmaps a/x", "secrets a/x", "namespaces x"} {
				object := object(reference)
				object.Labels, object.Annotations = entries(test.labels), entries(test.annotations)
				if _, got := matcher.Match(object); got != test.want {
					t.Errorf("%s: want %v, got %v", reference, test.want, got)
				}
				if _, got := matcher.MatchUp(object); got != test.want {
					t.Errorf("up: %s: want %v, got %v", reference, test.want, got)
				}
			}
		})
	}
}

// If configs disagree, the cautious value wins, in any order.
func TestUnion(t *testing.T) {
	config := func(name string, change func(*edgev2alpha1.SyncerConfigSpec)) *edgev2alpha1.SyncerConfig {
		config := syncerConfig(t, name, "{clusterScope: [{group: '', resource: namespaces, apiVersion: v1, objects: [a]}]}")
		change(&config.Spec)
		return config
	}
	plain := config("plain", func(*edgev2alpha1.SyncerConfigSpec) {})
	deleting := config("delete", func(s *edgev2alpha1.SyncerConfigSpec) { s.DeletionPolicy = edgev2alpha1.DeletionPolicyDelete })
	orphan := config("orphan", func(s *edgev2alpha1.SyncerConfigSpec) { s.DeletionPolicy = edgev2alpha1.DeletionPolicyOrphan })
	silent := config("silent", func(s *edgev2alpha1.SyncerConfigSpec) { s.StatusReturn = new(false) })
	suspended := config("suspended", func(s *edgev2alpha1.SyncerConfigSpec) { s.Suspend = true })
	elsewhere := config("elsewhere", func(s *edgev2alpha1.SyncerConfigSpec) {
		s.ClusterScope[0].Objects, s.DeletionPolicy = []string{"b"}, edgev2alpha1.DeletionPolicyOrphan
	})
	twice := config("twice", func(s *edgev2alpha1.SyncerConfigSpec) {
		s.ClusterScope = append(s.ClusterScope, s.ClusterScope[0], edgev2alpha1.ClusterScopeDownsyncResource{GroupResource: s.ClusterScope[0].GroupResource, Objects: []string{"*", "a"}})
	})
	edge := edgeSyncConfig(t, "plain", "{downSyncedResources: [{kind: Namespace, name: a}]}")

	type configs = []*edgev2alpha1.SyncerConfig
	for name, test := range map[string]struct {
		configs configs
		edge    bool
		want    selection.Selection
	}{
		"by default":                      {configs{plain}, false, selection.Selection{Policy: ownership.PolicyDelete, StatusReturn: true, Configs: []string{"SyncerConfig/plain"}}},
		"EdgeSyncConfig":                  {nil, true, selection.Selection{Policy: ownership.PolicyDelete, StatusReturn: true, Configs: []string{"EdgeSyncConfig/plain"}}},
		"all configs are named":           {configs{plain, deleting}, true, selection.Selection{Policy: ownership.PolicyDelete, StatusReturn: true, Configs: []string{"EdgeSyncConfig/plain", "SyncerConfig/delete", "SyncerConfig/plain"}}},
		"each config once":                {configs{twice}, false, selection.Selection{Policy: ownership.PolicyDelete, StatusReturn: true, Configs: []string{"SyncerConfig/twice"}}},
		"Orphan":                          {configs{orphan}, false, selection.Selection{Policy: ownership.PolicyOrphan, StatusReturn: true, Configs: []string{"SyncerConfig/orphan"}}},
		"Orphan beats Delete":             {configs{deleting, orphan, plain}, true, selection.Selection{Policy: ownership.PolicyOrphan, StatusReturn: true, Configs: []string{"EdgeSyncConfig/plain", "SyncerConfig/delete", "SyncerConfig/orphan", "SyncerConfig/plain"}}},
		"Orphan for another object":       {configs{plain, elsewhere}, false, selection.Selection{Policy: ownership.PolicyDelete, StatusReturn: true, Configs: []string{"SyncerConfig/plain"}}},
		"no status":                       {configs{silent}, false, selection.Selection{Policy: ownership.PolicyDelete, Configs: []string{"SyncerConfig/silent"}}},
		"status beats none":               {configs{plain, silent}, false, selection.Selection{Policy: ownership.PolicyDelete, StatusReturn: true, Configs: []string{"SyncerConfig/plain", "SyncerConfig/silent"}}},
		"EdgeSyncConfigs want the status": {configs{silent}, true, selection.Selection{Policy: ownership.PolicyDelete, StatusReturn: true, Configs: []string{"EdgeSyncConfig/plain", "SyncerConfig/silent"}}},
		"suspended":                       {configs{suspended}, false, selection.Selection{Policy: ownership.PolicyDelete, StatusReturn: true, Suspended: true, Configs: []string{"SyncerConfig/suspended"}}},
		"live beats suspended":            {configs{suspended, silent}, false, selection.Selection{Policy: ownership.PolicyDelete, StatusReturn: true, Configs: []string{"SyncerConfig/silent", "SyncerConfig/suspended"}}},
		"EdgeSyncConfigs are live":        {configs{suspended}, true, selection.Selection{Policy: ownership.PolicyDelete, StatusReturn: true, Configs: []string{"EdgeSyncConfig/plain", "SyncerConfig/suspended"}}},
	} {
		t.Run(name, func(t *testing.T) {
			var edges []*edgev2alpha1.EdgeSyncConfig
			if test.edge {
				edges = append(edges, edge)
			}
			for range 2 {
				got, ok := selection.Compile(test.configs, edges).Match(object("namespaces a"))
				if !ok || !reflect.DeepEqual(got, test.want) {
					t.Errorf("want %+v, got %+v, %v", test.want, got, ok)
				}
				slices.Reverse(test.configs)
			}
		})
	}
}

func TestProblems(t *testing.T) {
	const bad = "labelSelector: {matchExpressions: [{key: a, operator: Sometimes}]}"
	matcher := selection.Compile([]*edgev2alpha1.SyncerConfig{
		syncerConfig(t, "bad", `
namespaceScope:
  namespaces: [a]
  resources: [{group: "", resource: configmaps, apiVersion: v1}, {group: "", resource: secrets, apiVersion: v1, `+bad+`}]
namespacedObjects: [{group: apps, resource: deployments, apiVersion: v1, objectsByNamespace: [{namespace: a, names: [x]}, {namespace: b, names: [x]}], `+bad+`}]
clusterScope: [{group: "", resource: namespaces, apiVersion: v1, labelSelector: {matchLabels: {"not a key": x}}}, {group: "", resource: namespaces, apiVersion: v1, objects: [a]}]
upsync: [{apiGroup: "", resources: [configmaps, pods/status], namespaces: [a], names: [x], `+bad+`}, {apiGroup: "", resources: [pods/status, pods, ""], namespaces: [a], names: [x]}]
conversions: [{upstream: {kind: A}, downstream: {kind: B}}, {upstream: {kind: A}}]
`),
		syncerConfig(t, "good", "{clusterScope: [{group: '', resource: namespaces, apiVersion: v1, objects: [b]}]}"),
	}, []*edgev2alpha1.EdgeSyncConfig{edgeSyncConfig(t, "bad", "{downSyncedResources: [{kind: ConfigMap, namespace: b, name: x}, {name: x}], upSyncedResources: [{namespace: a, name: x}], conversions: [{upstream: {kind: '*'}, downstream: {kind: B}}]}")})

	for config, want := range map[string][]string{
		selection.SyncerConfigID("bad"): {
			"spec.conversions[1]", "spec.namespaceScope.resources[1].labelSelector", "spec.namespacedObjects[0].labelSelector", "spec.clusterScope[0].labelSelector",
			"spec.upsync[0].labelSelector", "spec.upsync[0].resources[1]", "spec.upsync[1].resources[0]", "spec.upsync[1].resources[2]",
		},
		selection.SyncerConfigID("good"):    nil,
		selection.SyncerConfigID("unknown"): nil,
		selection.EdgeSyncConfigID("bad"):   {"spec.conversions[0]", "spec.downSyncedResources[1]", "spec.upSyncedResources[0]"},
	} {
		var fields []string
		for _, problem := range matcher.Problems(config) {
			fields = append(fields, problem.Field)
			if problem.Message == "" {
				t.Errorf("%s: %s: no message", config, problem.Field)
			}
		}
		if !slices.Equal(fields, want) {
			t.Errorf("%s: want problems of %v, got %v", config, want, fields)
		}
	}
	for reference, want := range map[string]bool{
		"configmaps a/x": true, "namespaces a": true, "namespaces b": true, "configmaps b/x": false, // its conversion is invalid
		"secrets a/x": false, "deployments a/x": false, "deployments b/x": false,
	} {
		if _, got := matcher.Match(object(reference)); got != want {
			t.Errorf("%s: selected: %v, want %v", reference, got, want)
		}
	}
}

func TestEntriesAndHasRules(t *testing.T) {
	matcher := selection.Compile([]*edgev2alpha1.SyncerConfig{
		syncerConfig(t, "a", `
namespaceScope: {namespaces: [n], resources: [{group: "", resource: configmaps, apiVersion: v1}]}
namespacedObjects: [{group: apps, resource: deployments, apiVersion: v1, objectsByNamespace: [{namespace: a, names: [x]}, {namespace: b, names: [x]}]}, {group: apps, resource: daemonsets, apiVersion: v1}]
clusterScope: [{group: "", resource: namespaces, apiVersion: v1, objects: []}]
`),
		syncerConfig(t, "b", "{clusterScope: [{group: '', resource: namespaces, apiVersion: v1}], namespaceScope: {namespaces: [n]}}"),
		syncerConfig(t, "c", "{upsync: [{apiGroup: apps, resources: [deployments, '*'], names: [x]}, {apiGroup: '', resources: [], names: [x]}]}"),
	}, []*edgev2alpha1.EdgeSyncConfig{
		edgeSyncConfig(t, "a", "{downSyncedResources: [{kind: Secret, version: v1, namespace: a, name: x}]}"),
		edgeSyncConfig(t, "b", "{downSyncedResources: [{kind: Secret, version: v1, namespace: a}]}"),
		edgeSyncConfig(t, "c", "{upSyncedResources: [{kind: Kind, group: g.io, namespace: a, name: x}], conversions: [{upstream: {group: g.io, kind: Kind}, downstream: {group: g.io, version: v1, kind: Other}}]}"),
	})
	want := []selection.Entry{
		{Config: "EdgeSyncConfig/a", Field: "spec.downSyncedResources[0]", Version: "v1", Kind: "Secret"},
		{Config: "EdgeSyncConfig/b", Field: "spec.downSyncedResources[0]", Version: "v1", Kind: "Secret"},
		{Config: "EdgeSyncConfig/c", Field: "spec.upSyncedResources[0]", Up: true, Group: "g.io", Version: "v1", Kind: "Other", Namespaces: []string{"a"}, Names: []string{"x"}},
		{Config: "SyncerConfig/a", Field: "spec.namespaceScope.resources[0]", Version: "v1", Resource: "configmaps"},
		{Config: "SyncerConfig/a", Field: "spec.namespacedObjects[0]", Group: "apps", Version: "v1", Resource: "deployments"},
		{Config: "SyncerConfig/a", Field: "spec.namespacedObjects[1]", Group: "apps", Version: "v1", Resource: "daemonsets"},
		{Config: "SyncerConfig/a", Field: "spec.clusterScope[0]", Version: "v1", Resource: "namespaces"},
		{Config: "SyncerConfig/b", Field: "spec.clusterScope[0]", Version: "v1", Resource: "namespaces"},
		{Config: "SyncerConfig/c", Field: "spec.upsync[0].resources[0]", Up: true, Group: "apps", Resource: "deployments", Names: []string{"x"}},
		{Config: "SyncerConfig/c", Field: "spec.upsync[0].resources[1]", Up: true, Group: "apps", Resource: "*", Names: []string{"x"}},
	}
	if got := matcher.Entries(); !reflect.DeepEqual(got, want) {
		t.Errorf("want %+v\ngot  %+v", want, got)
	}
	for config, want := range map[string]bool{"SyncerConfig/a": true, "SyncerConfig/b": false, "EdgeSyncConfig/a": true, "EdgeSyncConfig/b": false, "SyncerConfig/c": true, "EdgeSyncConfig/c": true, "SyncerConfig/d": false} {
		if got := matcher.HasRules(config); got != want {
			t.Errorf("%s has rules: %v, want %v", config, got, want)
		}
	}
	for reference, want := range map[string]bool{"configmaps a/x": true, "deployments a/x": true, "secrets a/x": true, "namespaces a": false, "configmaps.example.com a/x": false} {
		object := object(reference)
		if got := matcher.SelectsDown(object.Resource.GroupResource(), object.Kind); got != want {
			t.Errorf("%s: an entry names the resource: %v, want %v", reference, got, want)
		}
		if got, want := matcher.SelectsUp(object.Resource.GroupResource(), object.Kind), object.Resource.Group == "apps"; got != want {
			t.Errorf("%s: an entry for upsync names the resource: %v, want %v", reference, got, want)
		}
	}
}

func TestNoMatcherSelectsNothing(t *testing.T) {
	var matcher *selection.Matcher
	object := object("configmaps a/x")
	resource := object.Resource.GroupResource()
	if _, ok := matcher.Match(object); ok {
		t.Error("the nil matcher selects an object")
	}
	if _, ok := matcher.MatchUp(object); ok || matcher.SelectsUp(resource, object.Kind) {
		t.Error("the nil matcher selects an object of the target")
	}
	if scope := matcher.UpScope(resource, object.Kind, true); !reflect.DeepEqual(scope, selection.Scope{}) || matcher.UpHash(resource, object.Kind) != selection.Compile(nil, nil).UpHash(resource, object.Kind) {
		t.Errorf("the nil matcher has a scope: %+v", scope)
	}
	if kinds := matcher.DownstreamKinds(schema.GroupKind{Kind: object.Kind}); kinds != nil {
		t.Errorf("the nil matcher converts to %v", kinds)
	}
	if matcher.SelectsDown(resource, object.Kind) || matcher.HasRules("SyncerConfig/a") || matcher.Entries() != nil || matcher.Problems("SyncerConfig/a") != nil {
		t.Error("the nil matcher has entries")
	}
}

func TestSelectionEqual(t *testing.T) {
	original := selection.Selection{Policy: ownership.PolicyDelete, StatusReturn: true, Configs: []string{"a"}, Conversion: &conversion.Conversion{Upstream: conversion.Pattern{Kind: "A"}}}
	for name, test := range map[string]struct {
		change func(*selection.Selection)
		want   bool
	}{
		"itself":        {func(*selection.Selection) {}, true},
		"configs":       {func(s *selection.Selection) { s.Configs = []string{"b"} }, true},
		"policy":        {func(s *selection.Selection) { s.Policy = ownership.PolicyOrphan }, false},
		"status":        {func(s *selection.Selection) { s.StatusReturn = false }, false},
		"suspend":       {func(s *selection.Selection) { s.Suspended = true }, false},
		"no conversion": {func(s *selection.Selection) { s.Conversion = nil }, false},
		"the same conversion": {func(s *selection.Selection) {
			s.Conversion = &conversion.Conversion{Upstream: conversion.Pattern{Kind: "A"}}
		}, true},
		"another conversion": {func(s *selection.Selection) {
			s.Conversion = &conversion.Conversion{Upstream: conversion.Pattern{Kind: "B"}}
		}, false},
		"overruled": {func(s *selection.Selection) { s.Overruled = []string{"b"} }, true},
	} {
		other := original
		test.change(&other)
		if original.Equal(other) != test.want || other.Equal(original) != test.want {
			t.Errorf("%s: equal: %v, want %v", name, !test.want, test.want)
		}
	}
}

// Entries that select nothing because a list is empty are reported, since KubeStellar took an absent clusterScope.objects for
// all.
func TestEmptyEntries(t *testing.T) {
	matcher := compileBoth(t, `{
		namespaceScope: {namespaces: [a], resources: [{group: "", resource: configmaps, apiVersion: v1}]},
		namespacedObjects: [
			{group: "", resource: secrets, apiVersion: v1, objectsByNamespace: [{namespace: a, names: [x]}, {namespace: b}]},
			{group: "", resource: secrets, apiVersion: v1, objectsByNamespace: [{namespace: b}]},
			{group: "", resource: secrets, apiVersion: v1}],
		clusterScope: [{group: "", resource: namespaces, apiVersion: v1, objects: ["*"]}, {group: "", resource: namespaces, apiVersion: v1}],
		upsync: [{apiGroup: "", resources: [configmaps, secrets], namespaces: ["*"], names: []}]}`,
		`{downSyncedResources: [{kind: ConfigMap, namespace: a}]}`)
	if got, want := matcher.EmptyEntries("SyncerConfig/syncer"), []string{
		"spec.namespacedObjects[1]", "spec.namespacedObjects[2]", "spec.clusterScope[1]", "spec.upsync[0].resources[0]", "spec.upsync[0].resources[1]",
	}; !slices.Equal(got, want) {
		t.Errorf("want %v, got %v", want, got)
	}
	if got := compileBoth(t, `{namespaceScope: {namespaces: [a]}}`, "").EmptyEntries("SyncerConfig/syncer"); !slices.Equal(got, []string{"spec.namespaceScope"}) {
		t.Errorf("namespaces without resources: got %v", got)
	}
	if got, want := matcher.EmptyEntries("EdgeSyncConfig/edge"), []string{"spec.downSyncedResources[0]"}; !slices.Equal(got, want) {
		t.Errorf("want %v, got %v", want, got)
	}
}

// ConfigsNaming ignores labels, because the labels of a deleted object are unknown.
func TestConfigsNaming(t *testing.T) {
	matcher := compileBoth(t, `{namespacedObjects: [{group: "", resource: configmaps, apiVersion: v1, objectsByNamespace: [{namespace: a, names: [x]}], labelSelector: {matchLabels: {k: v}}}]}`,
		"{downSyncedResources: [{kind: ConfigMap, namespace: a, name: '*'}, {kind: ConfigMap, namespace: a, name: x}]}")
	for name, want := range map[string]int{"x": 2, "y": 1} {
		if got := matcher.ConfigsNaming(selection.Object{Resource: schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}, Kind: "ConfigMap", Namespace: "a", Name: name}); len(got) != want {
			t.Errorf("%s: got %v", name, got)
		}
	}
	if got := (*selection.Matcher)(nil).ConfigsNaming(selection.Object{}); len(got) > 0 {
		t.Errorf("without configs there are %v", got)
	}
}

func TestIsSuspended(t *testing.T) {
	const entry = `namespacedObjects: [{group: "", resource: configmaps, apiVersion: v1, objectsByNamespace: [{namespace: a, names: [x]}], labelSelector: {matchLabels: {k: v}}}]`
	object := func(name string) selection.Object {
		return selection.Object{Resource: schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}, Kind: "ConfigMap", Namespace: "a", Name: name}
	}
	for name, test := range map[string]struct {
		syncer, edge string
		want         bool
	}{
		"suspended":                       {"{suspend: true, " + entry + "}", "", true},
		"not suspended":                   {"{" + entry + "}", "", false},
		"suspended, and by another":       {"{suspend: true, " + entry + "}", "{downSyncedResources: [{kind: ConfigMap, namespace: a, name: x}]}", false},
		"suspended, another by its names": {"{suspend: true, " + entry + "}", "{downSyncedResources: [{kind: ConfigMap, namespace: a, name: z}]}", true},
		"nothing":                         {"{suspend: true}", "", false},
	} {
		matcher := compileBoth(t, test.syncer, test.edge)
		if got := matcher.IsSuspended(object("x")); got != test.want {
			t.Errorf("%s: want %v, got %v", name, test.want, got)
		}
		if matcher.IsSuspended(object("y")) {
			t.Errorf("%s: an object that no config names is suspended", name)
		}
	}
	if (*selection.Matcher)(nil).IsSuspended(object("x")) {
		t.Error("without configs an object is suspended")
	}
}
