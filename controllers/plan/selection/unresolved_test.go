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
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/controllers/plan/selection"
)

// An invalid entry leaves only the objects unresolved that it may be meant for.
func TestUnresolved(t *testing.T) {
	const in = "labelSelector: {matchExpressions: [{key: a, operator: In}]}"
	for name, test := range map[string]struct {
		config                            string
		selected, unresolved, notSelected []string
	}{
		"In without values": {
			config:      "namespaceScope: {namespaces: [a], resources: [{group: '', resource: configmaps, " + in + "}, {group: '', resource: secrets}]}",
			selected:    []string{"secrets a/x"},
			unresolved:  []string{"configmaps a/x"},
			notSelected: []string{"configmaps b/x", "deployments a/x"},
		},
		"an unknown operator": {
			config:      "namespaceScope: {namespaces: ['*'], resources: [{group: '', resource: configmaps, labelSelector: {matchExpressions: [{key: a, operator: in, values: [b]}]}}]}",
			unresolved:  []string{"configmaps a/x", "configmaps b/x"},
			notSelected: []string{"secrets a/x"},
		},
		"Exists with values":      {config: "clusterScope: [{group: '', resource: namespaces, objects: [a], labelSelector: {matchExpressions: [{key: a, operator: Exists, values: [b]}]}}]", unresolved: []string{"namespaces a"}, notSelected: []string{"namespaces b"}},
		"a label key":             {config: "namespacedObjects: [{group: '', resource: configmaps, objectsByNamespace: [{namespace: a, names: [x]}], labelSelector: {matchLabels: {'a b': c}}}]", unresolved: []string{"configmaps a/x"}, notSelected: []string{"configmaps a/z"}},
		"a label value":           {config: "namespacedObjects: [{group: '', resource: configmaps, objectsByNamespace: [{namespace: a, names: ['*']}], labelSelector: {matchLabels: {a: 'b c'}}}]", unresolved: []string{"configmaps a/x"}, notSelected: []string{"configmaps b/x"}},
		"an annotation key":       {config: "namespacedObjects: [{group: '', resource: configmaps, objectsByNamespace: [{namespace: a, names: ['*']}], annotations: {'a b': c}}]", unresolved: []string{"configmaps a/x"}, notSelected: []string{"configmaps b/x"}},
		"a pattern of names":      {config: "namespacedObjects: [{group: '', resource: configmaps, objectsByNamespace: [{namespace: a, names: [x, 'web-*']}]}]", selected: []string{"configmaps a/x"}, unresolved: []string{"configmaps a/web-1", "configmaps a/z"}, notSelected: []string{"configmaps b/x", "secrets a/x"}},
		"a pattern of namespaces": {config: "namespaceScope: {namespaces: ['team-*', a], resources: [{group: '', resource: configmaps}]}", selected: []string{"configmaps a/x"}, unresolved: []string{"configmaps team-b/x"}, notSelected: []string{"secrets team-b/x"}},
		"a namespace":             {config: "namespaceScope: {namespaces: [Team], resources: [{group: '', resource: configmaps}]}", unresolved: []string{"configmaps team/x"}, notSelected: []string{"secrets team/x"}},
		"a version":               {config: "namespaceScope: {namespaces: [a], resources: [{group: apps, resource: deployments, apiVersion: apps/v1}]}", unresolved: []string{"deployments a/x"}, notSelected: []string{"deployments b/x", "secrets a/x"}},
		"a group with a version":  {config: "namespaceScope: {namespaces: [a], resources: [{group: apps/v1, resource: deployments}]}", unresolved: []string{"deployments a/x", "secrets b/x"}},
		"a subresource":           {config: "namespaceScope: {namespaces: [a], resources: [{group: apps, resource: deployments/scale}]}", unresolved: []string{"deployments a/x", "secrets b/x"}},
		"a kind as a resource":    {config: "namespaceScope: {namespaces: [a], resources: [{group: apps, resource: Deployment}]}", unresolved: []string{"deployments a/x", "secrets b/x"}},
		"a conversion": {
			config:      "{namespaceScope: {namespaces: [a], resources: [{group: '', resource: configmaps}, {group: '', resource: secrets}]}, conversions: [{upstream: {kind: ConfigMap, name: '*'}, downstream: {kind: ConfigMap, name: z}}]}",
			selected:    []string{"secrets a/x"},
			unresolved:  []string{"configmaps a/x"},
			notSelected: []string{"configmaps b/x"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			matcher := selection.Compile([]*edgev2alpha1.SyncerConfig{syncerConfig(t, "one", test.config)}, nil)
			if len(matcher.Problems(selection.SyncerConfigID("one"))) == 0 || !matcher.HasUnresolved() {
				t.Error("the config has no problem")
			}
			for _, group := range []struct {
				objects              []string
				selected, unresolved bool
			}{{test.selected, true, false}, {test.unresolved, false, true}, {test.notSelected, false, false}} {
				for _, reference := range group.objects {
					_, selected := matcher.Match(object(reference))
					if unresolved := !selected && matcher.IsUnresolved(object(reference)); selected != group.selected || unresolved != group.unresolved {
						t.Errorf("%s: selected %v, unresolved %v", reference, selected, unresolved)
					}
				}
			}
		})
	}
}

// breakConfig makes one entry of a config invalid, like a typing error. It returns false if the config has no such entry.
func (g generator) breakConfig(spec *edgev2alpha1.SyncerConfigSpec) bool { //nolint:gocyclo // one case for each part of a config
	odd := &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "k", Operator: metav1.LabelSelectorOperator(g.pick("In", "Is", "")), Values: nil}}}
	damage := func(group, resource, version *string, selector **metav1.LabelSelector, annotations *map[string]string) {
		switch g.IntN(5) {
		case 0:
			*group = "a/" + *group
		case 1:
			*resource += "/x"
		case 2:
			*version = "x/v1"
		case 3:
			*selector = odd
		default:
			*annotations = map[string]string{"no key": "x"}
		}
	}
	switch g.IntN(6) {
	case 0:
		if len(spec.NamespaceScope.Resources) == 0 {
			return false
		}
		entry := &spec.NamespaceScope.Resources[0]
		damage(&entry.Group, &entry.Resource, &entry.APIVersion, &entry.LabelSelector, &entry.Annotations)
	case 1:
		if len(spec.NamespaceScope.Namespaces) == 0 || len(spec.NamespaceScope.Resources) == 0 {
			return false
		}
		spec.NamespaceScope.Namespaces[0] = g.pick("a*", "A", "a_b")
	case 2:
		if len(spec.ClusterScope) == 0 {
			return false
		}
		entry := &spec.ClusterScope[0]
		if len(entry.Objects) > 0 && g.IntN(2) == 0 {
			entry.Objects[0] = g.pick("a*", "a/b")
			return true
		}
		damage(&entry.Group, &entry.Resource, &entry.APIVersion, &entry.LabelSelector, &entry.Annotations)
	case 3:
		if len(spec.NamespacedObjects) == 0 {
			return false
		}
		entry := &spec.NamespacedObjects[0]
		damage(&entry.Group, &entry.Resource, &entry.APIVersion, &entry.LabelSelector, &entry.Annotations)
	case 4:
		if len(spec.Upsync) == 0 {
			return false
		}
		entry, version := &spec.Upsync[0], ""
		damage(&entry.APIGroup, &entry.Resources[0], &version, &entry.LabelSelector, &entry.Annotations)
		return version == ""
	default:
		if len(spec.Conversions) == 0 {
			return false
		}
		*[]*string{&spec.Conversions[0].Upstream.Kind, &spec.Conversions[0].Downstream.Kind}[g.IntN(2)] = ""
	}
	return true
}

// After any typing error, each object that was selected is selected or unresolved.
func TestTypingErrorsDeselectNothing(t *testing.T) {
	kept := 0
	for seed := range uint64(4000) {
		g := seeded(seed)
		syncerConfigs, edgeSyncConfigs := g.configs()
		if len(syncerConfigs) == 0 {
			continue
		}
		before := selection.Compile(syncerConfigs, edgeSyncConfigs)
		broken := slices.Clone(syncerConfigs)
		broken[0] = broken[0].DeepCopy()
		if !g.breakConfig(&broken[0].Spec) {
			continue
		}
		after := selection.Compile(broken, edgeSyncConfigs)
		for range 20 {
			object := g.object()
			if _, was := before.Match(object); was {
				if _, is := after.Match(object); !is && !after.IsUnresolved(object) {
					t.Fatalf("seed %d: %+v is deselected by %+v, before %+v", seed, object, broken[0].Spec, syncerConfigs[0].Spec)
				} else if !is {
					kept++
				}
			}
			if _, was := before.MatchUp(object); was {
				if _, is := after.MatchUp(object); !is && !after.IsUnresolvedUp(object) {
					t.Fatalf("seed %d: upsync of %+v ends by %+v, before %+v", seed, object, broken[0].Spec, syncerConfigs[0].Spec)
				}
			}
		}
	}
	if kept < 500 {
		t.Errorf("only %d objects were kept", kept)
	}
}
