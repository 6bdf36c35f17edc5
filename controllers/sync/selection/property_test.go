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
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/controllers/sync/selection"
)

// source gives the choices of a generator: random numbers, or what a fuzzer makes up.
type source interface{ IntN(int) int }

type generator struct{ source }

func seeded(seed uint64) generator {
	return generator{rand.New(rand.NewPCG(seed, 0))} //nolint:gosec // the same objects in every run
}

func (g generator) pick(names ...string) string { return names[g.IntN(len(names))] }

func (g generator) list(names ...string) []string {
	var result []string
	for range g.IntN(5) {
		result = append(result, g.pick(names...))
	}
	return result
}

func (g generator) resource() edgev2alpha1.GroupResource {
	return edgev2alpha1.GroupResource{Group: g.pick("", "", "", "apps"), Resource: g.pick("configmaps", "configmaps", "namespaces", "secrets", "serviceaccounts", "*", "*")}
}

func (g generator) version() string { return g.pick("", "v1", "v1", "v1", "v2") }

func (g generator) name() string {
	return g.pick("a", "b", "kube-root-ca.crt", "default", "kube-system", "*")
}

func (g generator) names() []string { return g.list("a", "b", "kube-root-ca.crt", "default", "*") }

func (g generator) namespace() string { return g.pick("a", "b", "kube-system", "*") }

func (g generator) selector() *metav1.LabelSelector {
	if g.IntN(4) > 0 {
		return nil
	}
	return &metav1.LabelSelector{MatchLabels: g.entries()}
}

// limits are annotations that an entry asks for: mostly none.
func (g generator) limits() map[string]string {
	if g.IntN(4) > 0 {
		return nil
	}
	return g.entries()
}

func (g generator) entries() map[string]string {
	result := map[string]string{}
	for range g.IntN(3) {
		result[g.pick("k", "l")] = g.pick("", "x")
	}
	return result
}

func (g generator) syncerConfig(name string) *edgev2alpha1.SyncerConfig {
	config := &edgev2alpha1.SyncerConfig{ObjectMeta: metav1.ObjectMeta{Name: name}}
	config.Spec.DeletionPolicy = edgev2alpha1.DeletionPolicy(g.pick("", "Delete", "Orphan"))
	config.Spec.StatusReturn = []*bool{nil, new(true), new(false)}[g.IntN(3)]
	config.Spec.Suspend = g.IntN(2) == 0
	config.Spec.NamespaceScope.Namespaces = g.list("a", "b", "kube-system", "*")
	for range g.IntN(3) {
		config.Spec.NamespaceScope.Resources = append(config.Spec.NamespaceScope.Resources, edgev2alpha1.NamespaceScopeDownsyncResource{
			GroupResource: g.resource(), APIVersion: g.version(), LabelSelector: g.selector(), Annotations: g.limits(),
		})
	}
	for range g.IntN(3) {
		entry := edgev2alpha1.NamespaceScopeDownsyncObjects{GroupResource: g.resource(), APIVersion: g.version(), LabelSelector: g.selector(), Annotations: g.limits()}
		for range g.IntN(3) {
			entry.ObjectsByNamespace = append(entry.ObjectsByNamespace, edgev2alpha1.NamespaceAndNames{Namespace: g.namespace(), Names: g.names()})
		}
		config.Spec.NamespacedObjects = append(config.Spec.NamespacedObjects, entry)
	}
	for range g.IntN(3) {
		config.Spec.ClusterScope = append(config.Spec.ClusterScope, edgev2alpha1.ClusterScopeDownsyncResource{
			GroupResource: g.resource(), APIVersion: g.version(), Objects: g.names(), LabelSelector: g.selector(), Annotations: g.limits(),
		})
	}
	return config
}

func (g generator) edgeSyncConfig(name string) *edgev2alpha1.EdgeSyncConfig {
	config := &edgev2alpha1.EdgeSyncConfig{ObjectMeta: metav1.ObjectMeta{Name: name}}
	for range g.IntN(3) {
		config.Spec.DownSyncedResources = append(config.Spec.DownSyncedResources, edgev2alpha1.EdgeSyncConfigResource{
			Kind: g.pick("ConfigMap", "Namespace", "Secret", "*", ""), Group: g.pick("", "apps"), Version: g.version(),
			Namespace: g.pick("", g.namespace()), Name: g.pick("", g.name()),
		})
	}
	return config
}

func (g generator) configs() (syncerConfigs []*edgev2alpha1.SyncerConfig, edgeSyncConfigs []*edgev2alpha1.EdgeSyncConfig) {
	for number := range g.IntN(4) {
		syncerConfigs = append(syncerConfigs, g.syncerConfig(fmt.Sprint("s", number)))
	}
	for number := range g.IntN(3) {
		edgeSyncConfigs = append(edgeSyncConfigs, g.edgeSyncConfig(fmt.Sprint("e", number)))
	}
	return syncerConfigs, edgeSyncConfigs
}

func (g generator) object() selection.Object {
	kind := g.pick("configmaps", "configmaps", "namespaces", "serviceaccounts", "secrets", "deployments")
	object := object(kind + " " + g.pick("a", "b", "kube-system", "c") + "/" + g.pick("a", "b", "c", "default", "kube-root-ca.crt"))
	if g.IntN(3) == 0 || kind == "namespaces" {
		object.Namespace, object.Name = "", g.pick("a", "b", "c", "default", "kube-system")
	}
	object.Resource.Version = g.pick("v1", "v1", "v1", "v1", "v2")
	object.Labels, object.Annotations = g.entries(), g.entries()
	if kind == "secrets" {
		object.SecretType = g.pick("", "Opaque", "kubernetes.io/service-account-token", "bootstrap.kubernetes.io/token")
	}
	return object
}

// check compares the matcher with the naive answer, for all configs and without each of them.
func check(t *testing.T, g generator) (selected int) {
	t.Helper()
	syncerConfigs, edgeSyncConfigs := g.configs()
	matcher := selection.Compile(syncerConfigs, edgeSyncConfigs)
	all := spellOut(syncerConfigs, edgeSyncConfigs)
	for range 20 {
		object := g.object()
		got, ok := matcher.Match(object)
		want, wantOK := naive(all, object)
		if ok != wantOK || !reflect.DeepEqual(got, want) {
			t.Fatalf("%+v\nwant %+v, %v\ngot  %+v, %v\nof %+v", object, want, wantOK, got, ok, all)
		}
		if ok {
			selected++
			if !matcher.Selects(object.Resource.GroupResource(), object.Kind) {
				t.Fatalf("%+v is selected, but no entry speaks of it", object)
			}
			for _, config := range got.Configs {
				if !matcher.HasRules(config) {
					t.Fatalf("%s selects, but has no rules", config)
				}
			}
		}
		for index, removed := range syncerConfigs {
			rest := slices.Delete(slices.Clone(syncerConfigs), index, index+1)
			after, still := selection.Compile(rest, edgeSyncConfigs).Match(object)
			others := slices.DeleteFunc(slices.Clone(got.Configs), func(id string) bool { return id == selection.SyncerConfigID(removed.Name) })
			if still != (len(others) > 0) || !slices.Equal(after.Configs, others) {
				t.Fatalf("without %s: %+v is selected by %v, want %v", removed.Name, object, after.Configs, others)
			}
			if len(others) == len(got.Configs) && !after.Equal(got) {
				t.Fatalf("without %s, which does not select it: %+v changes from %+v to %+v", removed.Name, object, got, after)
			}
		}
	}
	return selected
}

func TestMatchesLikeTheNaive(t *testing.T) {
	selected := 0
	for seed := range uint64(1000) {
		selected += check(t, seeded(seed))
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
	if selected < 1500 || selected > 18500 {
		t.Errorf("%d of 20000 objects were selected: that tries only one side", selected)
	}
}

// bytes are the choices of a fuzzer; when they are used up, the first choice is taken.
type choices struct{ bytes []byte }

func (c *choices) IntN(n int) int {
	if len(c.bytes) == 0 {
		return 0
	}
	choice := int(c.bytes[0]) % n
	c.bytes = c.bytes[1:]
	return choice
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
	f.Fuzz(func(t *testing.T, data []byte) { check(t, generator{&choices{data}}) })
}

// FuzzMatchStrings tries names that the API server would not let pass.
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
		matcher := selection.Compile([]*edgev2alpha1.SyncerConfig{config}, []*edgev2alpha1.EdgeSyncConfig{edge})
		if entries := matcher.Entries(); len(entries) != 3 {
			t.Errorf("want 3 entries, got %+v", entries)
		}
		object := selection.Object{Kind: resource, Namespace: namespace, Name: name, Labels: map[string]string{key: value}, Annotations: map[string]string{key: value}}
		object.Resource.Group, object.Resource.Resource, object.Resource.Version = group, resource, version
		for _, namespace := range []string{namespace, "", "other"} {
			object.Namespace = namespace
			first, ok := matcher.Match(object)
			if second, again := matcher.Match(object); ok != again || !reflect.DeepEqual(first, second) {
				t.Errorf("%+v, then %+v", first, second)
			}
			if ok == (len(first.Configs) == 0) {
				t.Errorf("selected: %v, by %v", ok, first.Configs)
			}
		}
	})
}

// A mailbox with 10,000 objects named one by one, as KubeStellar's placement translator writes them.
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
