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
	"slices"
	"strings"
	"testing"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/controllers/plan/selection"
)

func TestExplain(t *testing.T) {
	matcher := selection.Compile([]*edgev2alpha1.SyncerConfig{
		syncerConfig(t, "scope", `
namespaceScope: {namespaces: [shop, mill], resources: [{resource: configmaps}, {group: apps, resource: deployments}, {resource: secrets, apiVersion: v2}]}
clusterScope: [{resource: namespaces}, {resource: namespaces, objects: ["*"], labelSelector: {matchLabels: {tier: gold}}}]
upsync: [{resources: [configmaps], namespaces: ["*"], names: ["*"]}]`),
		syncerConfig(t, "objects", `
namespacedObjects:
- {resource: configmaps, objectsByNamespace: [{namespace: shop, names: [a, b]}, {namespace: mill, names: ["*"]}]}
- {resource: configmaps, labelSelector: {matchLabels: {tier: "??"}}, objectsByNamespace: [{namespace: shop, names: ["*"]}]}
- {resource: secrets, annotations: {tier: gold, zone: a}, objectsByNamespace: [{namespace: "*", names: ["*"]}]}`),
	}, nil)
	for reference, want := range map[string][]string{
		"configmaps shop/c": {
			"SyncerConfig/scope spec.namespaceScope.resources[0]: ",
			"SyncerConfig/objects spec.namespacedObjects[0]: it names the objects a, b",
			`SyncerConfig/objects spec.namespacedObjects[1]: it cannot be understood: values[0][tier`,
		},
		"configmaps bakery/c": {
			"SyncerConfig/objects spec.namespacedObjects[0]: it names the namespaces shop, and it names the namespaces mill",
			"SyncerConfig/scope spec.namespaceScope.resources[0]: it names the namespaces mill, shop",
			`SyncerConfig/objects spec.namespacedObjects[1]: it cannot be understood: values[0][tier`,
		},
		"configmaps shop/kube-root-ca.crt": {
			"SyncerConfig/objects spec.namespacedObjects[0]: it names the objects a, b",
			`SyncerConfig/scope spec.namespaceScope.resources[0]: "*" does not include what Kubernetes itself makes, such as kube-root-ca.crt`,
			`SyncerConfig/objects spec.namespacedObjects[1]: it cannot be understood: values[0][tier`,
		},
		"secrets shop/c": {
			`SyncerConfig/objects spec.namespacedObjects[2]: the object lacks the annotation tier with the value "gold"`,
			"SyncerConfig/scope spec.namespaceScope.resources[2]: it asks for version v2, which mailboxes do not serve",
		},
		"secrets kube-system/c": {
			`SyncerConfig/objects spec.namespacedObjects[2]: "*" does not include the system namespace kube-system`,
			"SyncerConfig/scope spec.namespaceScope.resources[2]: it asks for version v2, which mailboxes do not serve",
		},
		"namespaces shop": {
			`SyncerConfig/scope spec.clusterScope[1]: its labelSelector "tier=gold" does not match the object's labels`,
			"SyncerConfig/scope spec.clusterScope[0]: a list of it is absent or empty, which selects nothing",
		},
		"services shop/c": nil,
	} {
		t.Run(reference, func(t *testing.T) {
			var got []string
			for _, reading := range matcher.Explain(object(reference)) {
				got = append(got, fmt.Sprintf("%s %s: %s", reading.Config, reading.Field, strings.SplitN(reading.Why, `]:`, 2)[0]))
			}
			if !slices.Equal(got, want) {
				t.Errorf("got\n%q, want\n%q", got, want)
			}
		})
	}
}

// An explanation reports that an entry selects an object if and only if the matcher selects it, with the same configs.
func TestExplainAgreesWithTheMatcher(t *testing.T) {
	selected, not := 0, 0
	for seed := range uint64(1000) {
		g := seeded(seed)
		matcher := selection.Compile(g.configs())
		for range 20 {
			object := g.object()
			var configs []string
			for _, reading := range matcher.Explain(object) {
				if reading.Why == "" {
					configs = append(configs, reading.Config)
				}
			}
			slices.Sort(configs)
			match, ok := matcher.Match(object)
			if !ok && matcher.IsUnresolved(object) {
				continue
			}
			if got := slices.Compact(configs); !slices.Equal(got, match.Configs) {
				t.Fatalf("seed %d: %v is selected by %q, and by the explanations %q", seed, object, match.Configs, got)
			}
			if len(configs) > 0 {
				selected++
			} else {
				not++
			}
		}
	}
	if selected < 1000 || not < 1000 {
		t.Errorf("%d selected, %d not: that tries only one side", selected, not)
	}
}
