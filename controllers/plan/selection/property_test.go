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
	"fmt"
	"reflect"
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/controllers/plan/conversion"
	"github.com/synchub-dev/synchub/controllers/plan/selection"
	"github.com/synchub-dev/synchub/test/fixtures"
	"github.com/synchub-dev/synchub/test/tier"
)

// check compares the matcher with the model, for all configs and without each of them.
func check(t *testing.T, g generator) tried {
	t.Helper()
	tried := tried{}
	syncerConfigs, edgeSyncConfigs := g.configs()
	matcher := selection.Compile(syncerConfigs, edgeSyncConfigs)
	all := modelRules(syncerConfigs, edgeSyncConfigs)
	without := map[string]*selection.Matcher{}
	for index, removed := range syncerConfigs {
		without[selection.SyncerConfigID(removed.Name)] = selection.Compile(slices.Delete(slices.Clone(syncerConfigs), index, index+1), edgeSyncConfigs)
	}
	for index, removed := range edgeSyncConfigs {
		without[selection.EdgeSyncConfigID(removed.Name)] = selection.Compile(syncerConfigs, slices.Delete(slices.Clone(edgeSyncConfigs), index, index+1))
	}
	for range 20 {
		object := g.object()
		for _, direction := range directions {
			got, ok := checkObject(t, direction, matcher, without, all, object)
			tried.count("selected", direction.up, ok)
			tried.count("converted", direction.up, got.Conversion != nil)
			tried.count("overruled", direction.up, len(got.Overruled) > 0)
		}
	}
	return tried
}

// tried counts the results by kind.
type tried map[answer]int

type answer struct {
	sort string
	up   bool
}

func (t tried) count(sort string, up, is bool) {
	if is {
		t[answer{sort, up}]++
	}
}

// direction is one of the matcher's two directions.
type direction struct {
	up      bool
	match   func(*selection.Matcher, selection.Object) (selection.Selection, bool)
	selects func(*selection.Matcher, schema.GroupResource, string) bool
	convert func(*conversion.Conversion, conversion.Name) (conversion.Name, bool)
}

var directions = []direction{
	{false, (*selection.Matcher).Match, (*selection.Matcher).SelectsDown, (*conversion.Conversion).Down},
	{true, (*selection.Matcher).MatchUp, (*selection.Matcher).SelectsUp, (*conversion.Conversion).Up},
}

func checkObject(t *testing.T, direction direction, matcher *selection.Matcher, without map[string]*selection.Matcher, all []modelRule, object selection.Object) (selection.Selection, bool) {
	t.Helper()
	got, ok := direction.match(matcher, object)
	isUnresolved := (*selection.Matcher).IsUnresolved
	if direction.up {
		isUnresolved = (*selection.Matcher).IsUnresolvedUp
	}
	if !ok && isUnresolved(matcher, object) {
		return got, ok
	}
	want, wantOK := matchByModel(all, object, direction.up)
	if ok != wantOK || !reflect.DeepEqual(got, want) {
		t.Fatalf("up: %v: %+v\nwant %+v, %v\ngot  %+v, %v\nof %+v", direction.up, object, want, wantOK, got, ok, all)
	}
	if ok {
		checkSelected(t, direction, matcher, object, got)
	}
	for removed, rest := range without {
		after, still := direction.match(rest, object)
		if !still && isUnresolved(rest, object) {
			continue
		}
		others := slices.DeleteFunc(slices.Clone(got.Configs), func(id string) bool { return id == removed })
		if still != (len(others) > 0) || !slices.Equal(after.Configs, others) {
			t.Fatalf("without %s: %+v is selected by %v, want %v", removed, object, after.Configs, others)
		}
		if len(others) == len(got.Configs) && !reflect.DeepEqual(after, got) {
			t.Fatalf("without %s, which does not select it: %+v changes from %+v to %+v", removed, object, got, after)
		}
	}
	return got, ok
}

// checkSelected checks further invariants of a selected object.
func checkSelected(t *testing.T, direction direction, matcher *selection.Matcher, object selection.Object, got selection.Selection) {
	t.Helper()
	resource := object.Resource.GroupResource()
	if !direction.selects(matcher, resource, object.Kind) {
		t.Fatalf("%+v is selected, but by no entry", object)
	}
	for _, config := range got.Configs {
		if !matcher.HasRules(config) {
			t.Fatalf("%s selects, but has no rules", config)
		}
	}
	other, ok := direction.convert(got.Conversion, called(object))
	if !ok || (got.Conversion == nil) != (other == called(object)) {
		t.Fatalf("%+v has the conversion %+v, which calls it %+v, %v", object, got.Conversion, other, ok)
	}
	if direction.up {
		if scope := matcher.UpScope(resource, object.Kind, object.Namespace != ""); !covers(scope, object) {
			t.Fatalf("%+v is upsynced, but outside of the scope: %+v", object, scope)
		}
		return
	}
	made := other.GVK.GroupKind()
	same := func(gvk schema.GroupVersionKind) bool {
		return gvk.GroupKind() == made && (gvk.Version == "" || gvk.Version == other.GVK.Version)
	}
	if made != called(object).GVK.GroupKind() && !slices.ContainsFunc(matcher.DownstreamKinds(called(object).GVK.GroupKind()), same) {
		t.Fatalf("%+v becomes %+v, which no entry reports", object, other)
	}
}

func covers(scope selection.Scope, object selection.Object) bool {
	return scope.All || slices.Contains(scope.Namespaces, object.Namespace) ||
		slices.Contains(scope.Names, types.NamespacedName{Namespace: object.Namespace, Name: object.Name})
}

func TestMatchesLikeTheModel(t *testing.T) {
	tier.Thorough(t)
	all := tried{}
	for seed := range uint64(3000) {
		for answer, count := range check(t, seeded(seed)) {
			all[answer] += count
		}
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
	for sort, least := range map[string]int{"selected": 5000, "converted": 500, "overruled": 80} {
		for _, up := range []bool{false, true} {
			if count := all[answer{sort, up}]; count < least || count > 55000 {
				t.Errorf("%s, up: %v: %d of 60000 answers: that tries only one side", sort, up, count)
			}
		}
	}
}

func FuzzMatch(f *testing.F) {
	f.Add([]byte{})
	for seed := range uint64(20) {
		random, data := seeded(seed), make([]byte, 400)
		for index := range data {
			data[index] = "0123456789abcdef"[random.IntN(16)]
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) { check(t, generator{&fixtures.Choices{Bytes: data}}) })
}

// FuzzMatchStrings uses names that the API server would not accept.
func FuzzMatchStrings(f *testing.F) {
	f.Add("", "configmaps", "a", "x", "v1", "key", "value", "In")
	f.Add("apps", "*", "*", "*", "", "a/b/c", "\x00", "Exists")
	f.Add("", "", "", "", "", "", "", "")
	f.Fuzz(func(t *testing.T, group, resource, namespace, name, version, key, value, operator string) {
		selector := &metav1.LabelSelector{
			MatchLabels:      map[string]string{key: value},
			MatchExpressions: []metav1.LabelSelectorRequirement{{Key: key, Operator: metav1.LabelSelectorOperator(operator), Values: []string{value}}},
		}
		of := edgev2alpha1.GroupResource{Group: group, Resource: resource}
		config := &edgev2alpha1.SyncerConfig{ObjectMeta: metav1.ObjectMeta{Name: name}}
		config.Spec.NamespaceScope = edgev2alpha1.NamespaceScopeDownsyncs{
			Namespaces: []string{namespace},
			Resources:  []edgev2alpha1.NamespaceScopeDownsyncResource{{GroupResource: of, APIVersion: version, LabelSelector: selector}},
		}
		config.Spec.ClusterScope = []edgev2alpha1.ClusterScopeDownsyncResource{{GroupResource: of, APIVersion: version, Objects: []string{name}, Annotations: map[string]string{key: value}}}
		edge := &edgev2alpha1.EdgeSyncConfig{ObjectMeta: metav1.ObjectMeta{Name: name}}
		edge.Spec.DownSyncedResources = []edgev2alpha1.EdgeSyncConfigResource{{Kind: resource, Group: group, Version: version, Namespace: namespace, Name: name}}
		config.Spec.Upsync = []edgev2alpha1.UpsyncSet{{APIGroup: group, Resources: []string{resource}, Namespaces: []string{namespace, key}, Names: []string{name, value}}}
		edge.Spec.UpSyncedResources = edge.Spec.DownSyncedResources
		edge.Spec.Conversions = []edgev2alpha1.Conversion{{
			Upstream:   edgev2alpha1.EdgeSyncConfigResource{Kind: resource, Group: group, Name: name},
			Downstream: edgev2alpha1.EdgeSyncConfigResource{Kind: key, Group: value, Version: version, Name: operator},
		}}
		config.Spec.Conversions = edge.Spec.Conversions
		matcher := selection.Compile([]*edgev2alpha1.SyncerConfig{config}, []*edgev2alpha1.EdgeSyncConfig{edge})
		if entries := matcher.Entries(); len(entries) != 5 {
			t.Errorf("want 5 entries, got %+v", entries)
		}
		object := selection.Object{Kind: resource, Namespace: namespace, Name: name, Labels: selection.MetadataMap{key: value}, Annotations: selection.MetadataMap{key: value}}
		object.Resource.Group, object.Resource.Resource, object.Resource.Version = group, resource, version
		for _, namespace := range []string{namespace, "", "other"} {
			object.Namespace = namespace
			for _, direction := range directions {
				first, ok := direction.match(matcher, object)
				if second, again := direction.match(matcher, object); ok != again || !reflect.DeepEqual(first, second) {
					t.Errorf("%+v, then %+v", first, second)
				}
				if ok == (len(first.Configs) == 0) {
					t.Errorf("selected: %v, by %v", ok, first.Configs)
				}
				if ok {
					checkSelected(t, direction, matcher, object, first)
				}
			}
		}
	})
}

// BenchmarkMatch uses a mailbox with 10,000 objects named one by one, as KubeStellar's placement translator writes them.
func BenchmarkMatch(b *testing.B) {
	config := &edgev2alpha1.SyncerConfig{ObjectMeta: metav1.ObjectMeta{Name: "the-one"}}
	names := make([]string, 10000)
	for index := range names {
		names[index] = fmt.Sprint("object-", index)
	}
	config.Spec.NamespacedObjects = []edgev2alpha1.NamespaceScopeDownsyncObjects{{
		GroupResource:      edgev2alpha1.GroupResource{Resource: "configmaps"},
		ObjectsByNamespace: []edgev2alpha1.NamespaceAndNames{{Namespace: "a", Names: names}},
	}}
	configs := []*edgev2alpha1.SyncerConfig{config}
	b.Run("compile", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			selection.Compile(configs, nil)
		}
	})
	matcher := selection.Compile(configs, nil)
	for name, want := range map[string]bool{"object-9999": true, "object-10000": false} {
		object := object("configmaps a/" + name)
		b.Run(fmt.Sprintf("match=%v", want), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, ok := matcher.Match(object); ok != want {
					b.Fatal(ok)
				}
			}
		})
	}
}
