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

package ownership_test

import (
	"maps"
	"math/rand/v2"
	"slices"

	"sigs.k8s.io/structured-merge-diff/v6/typed"
)

// allSorts has a list and a map of every type that API servers record differently.
const allSorts = typed.YAMLObject(`
types:
- name: root
  map: {fields: [{name: spec, type: {namedType: node}}, {name: data, type: {map: {elementType: {scalar: string}}}}]}
- name: node
  map:
    fields:
    - {name: text, type: {scalar: string}}
    - {name: number, type: {scalar: numeric}}
    - {name: flag, type: {scalar: boolean}}
    - {name: struct, type: {namedType: node}}
    - {name: map, type: {map: {elementType: {scalar: string}}}}
    - {name: atomicMap, type: {map: {elementType: {scalar: string}, elementRelationship: atomic}}}
    - {name: atomicList, type: {list: {elementType: {namedType: node}, elementRelationship: atomic}}}
    - {name: set, type: {list: {elementType: {scalar: string}, elementRelationship: associative}}}
    - {name: numbers, type: {list: {elementType: {scalar: numeric}, elementRelationship: associative}}}
    - {name: keyed, type: {list: {elementType: {namedType: item}, elementRelationship: associative, keys: [name]}}}
    - {name: ports, type: {list: {elementType: {namedType: port}, elementRelationship: associative, keys: [port, protocol]}}}
- name: item
  map: {fields: [{name: name, type: {scalar: string}}, {name: node, type: {namedType: node}}]}
- name: port
  map: {fields: [{name: port, type: {scalar: numeric}}, {name: protocol, type: {scalar: string}, default: TCP}, {name: node, type: {namedType: node}}]}
`)

type generator struct{ *rand.Rand }

func seeded(seed uint64) generator {
	return generator{rand.New(rand.NewPCG(seed, 0))} //nolint:gosec // the same objects in every run
}

// name returns one of few names, some of them unusual, so that objects have names in common.
func (g generator) name() string {
	return []string{"a", "b", "a.b", "a/b", "", `"`, "é", "f:a", "."}[g.IntN(9)]
}

func (g generator) object() map[string]any {
	result := map[string]any{"spec": g.node(3)}
	if g.IntN(2) == 0 {
		result["data"] = g.strings()
	}
	return result
}

func (g generator) strings() map[string]any {
	result := map[string]any{}
	for range g.IntN(4) {
		result[g.name()] = g.name()
	}
	return result
}

func (g generator) node(depth int) map[string]any {
	makers := map[string]func() any{
		"text":      func() any { return g.name() },
		"number":    func() any { return int64(g.IntN(3)) },
		"flag":      func() any { return g.IntN(2) == 0 },
		"map":       func() any { return g.strings() },
		"atomicMap": func() any { return g.strings() },
		"set": func() any {
			items := []any{}
			for name := range g.strings() {
				items = append(items, name)
			}
			return items
		},
		"numbers": func() any {
			items := []any{}
			for _, number := range g.Perm(g.IntN(4)) {
				items = append(items, int64(number))
			}
			return items
		},
	}
	if depth > 0 {
		makers["struct"] = func() any { return g.node(depth - 1) }
		makers["atomicList"] = func() any {
			items := []any{}
			for range g.IntN(3) {
				items = append(items, g.node(depth-1))
			}
			return items
		}
		makers["keyed"] = func() any {
			items := []any{}
			for name := range g.strings() {
				items = append(items, map[string]any{"name": name, "node": g.node(depth - 1)})
			}
			return items
		}
		makers["ports"] = func() any {
			items := []any{}
			for _, number := range g.Perm(6)[:g.IntN(5)] {
				item := map[string]any{"port": int64(number / 3)}
				if protocol := []string{"SCTP", "TCP", "UDP"}[number%3]; protocol != "TCP" || g.IntN(3) == 0 {
					item["protocol"] = protocol
				}
				if g.IntN(2) == 0 {
					item["node"] = g.node(depth - 1)
				}
				items = append(items, item)
			}
			return items
		}
	}
	result := map[string]any{}
	for _, field := range slices.Sorted(maps.Keys(makers)) {
		if g.IntN(3) == 0 {
			result[field] = makers[field]()
		}
	}
	return result
}
