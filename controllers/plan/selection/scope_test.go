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
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/synchub-dev/synchub/controllers/plan/selection"
)

// list returns a number of names as a YAML list.
func list(prefix string, count int) string {
	names := make([]string, count)
	for number := range names {
		names[number] = fmt.Sprintf("%s%d", prefix, number)
	}
	return "[" + strings.Join(names, ", ") + "]"
}

func TestUpScope(t *testing.T) {
	namesIn := func(namespace string, names ...string) (all []types.NamespacedName) {
		for _, name := range names {
			all = append(all, types.NamespacedName{Namespace: namespace, Name: name})
		}
		return all
	}
	const configMaps, nodes = "apiGroup: '', resources: [configmaps]", "apiGroup: '', resources: [nodes]"
	for title, test := range map[string]struct {
		syncer, edge string
		clusterScope bool
		want         selection.Scope
	}{
		"nothing":                      {syncer: "{}", want: selection.Scope{}},
		"another resource":             {syncer: "{upsync: [{apiGroup: '', resources: [secrets], namespaces: [a], names: [x]}]}", want: selection.Scope{}},
		"downsync":                     {syncer: "{namespaceScope: {namespaces: ['*'], resources: [{group: '', resource: configmaps, apiVersion: v1}]}}", want: selection.Scope{}},
		"a name":                       {syncer: "{upsync: [{" + configMaps + ", namespaces: [a], names: [x]}]}", want: selection.Scope{Names: namesIn("a", "x")}},
		"names of several entries":     {syncer: "{upsync: [{" + configMaps + ", namespaces: [b], names: [x]}, {apiGroup: '', resources: ['*'], namespaces: [a], names: [w, x]}]}", want: selection.Scope{Names: append(namesIn("a", "w", "x"), namesIn("b", "x")...)}},
		"the same name twice":          {syncer: "{upsync: [{" + configMaps + ", namespaces: [a, a], names: [x, x]}]}", edge: "{upSyncedResources: [{kind: ConfigMap, namespace: a, name: x}]}", want: selection.Scope{Names: namesIn("a", "x")}},
		"8 names":                      {syncer: "{upsync: [{" + configMaps + ", namespaces: [a], names: " + list("x", 8) + "}]}", want: selection.Scope{Names: namesIn("a", "x0", "x1", "x2", "x3", "x4", "x5", "x6", "x7")}},
		"9 names":                      {syncer: "{upsync: [{" + configMaps + ", namespaces: [a], names: " + list("x", 9) + "}]}", want: selection.Scope{Namespaces: []string{"a"}}},
		"3 names in 3 namespaces":      {syncer: "{upsync: [{" + configMaps + ", namespaces: [c, b, a], names: [x, w, z]}]}", want: selection.Scope{Namespaces: []string{"a", "b", "c"}}},
		"all names":                    {syncer: "{upsync: [{" + configMaps + ", namespaces: [b, a], names: ['*']}]}", want: selection.Scope{Namespaces: []string{"a", "b"}}},
		"all names, and one elsewhere": {syncer: "{upsync: [{" + configMaps + ", namespaces: [a], names: ['*']}]}", edge: "{upSyncedResources: [{kind: ConfigMap, namespace: c, name: x}]}", want: selection.Scope{Namespaces: []string{"a", "c"}}},
		"8 namespaces":                 {syncer: "{upsync: [{" + configMaps + ", namespaces: " + list("a", 8) + ", names: ['*']}]}", want: selection.Scope{Namespaces: []string{"a0", "a1", "a2", "a3", "a4", "a5", "a6", "a7"}}},
		"9 namespaces":                 {syncer: "{upsync: [{" + configMaps + ", namespaces: " + list("a", 9) + ", names: ['*']}]}", want: selection.Scope{All: true}},
		"9 namespaces, a name":         {syncer: "{upsync: [{" + configMaps + ", namespaces: " + list("a", 9) + ", names: [x]}]}", want: selection.Scope{All: true}},
		"all namespaces":               {syncer: "{upsync: [{" + configMaps + ", namespaces: ['*'], names: ['*']}]}", want: selection.Scope{All: true}},
		"a name in all namespaces":     {syncer: "{upsync: [{" + configMaps + ", namespaces: ['*'], names: [x]}]}", want: selection.Scope{All: true}},
		"no namespaces":                {syncer: "{upsync: [{" + configMaps + ", names: ['*']}]}", want: selection.Scope{}},
		"no names":                     {syncer: "{upsync: [{" + configMaps + ", namespaces: ['*']}]}", want: selection.Scope{}},
		"cluster-scoped, a name":       {syncer: "{upsync: [{" + nodes + ", namespaces: ['*'], names: [x]}]}", clusterScope: true, want: selection.Scope{Names: namesIn("", "x")}},
		"cluster-scoped, 9 names":      {syncer: "{upsync: [{" + nodes + ", namespaces: [a], names: " + list("x", 9) + "}]}", clusterScope: true, want: selection.Scope{All: true}},
		"cluster-scoped, all names":    {syncer: "{upsync: [{" + nodes + ", names: ['*']}]}", clusterScope: true, want: selection.Scope{All: true}},
		"cluster-scoped, by kind":      {edge: "{upSyncedResources: [{kind: Node, name: x}, {kind: Node, namespace: a, name: w}, {kind: Node, namespace: '*', name: '*'}]}", syncer: "{}", clusterScope: true, want: selection.Scope{Names: namesIn("", "x")}},
	} {
		t.Run(title, func(t *testing.T) {
			resource, kind := schema.GroupResource{Resource: "configmaps"}, "ConfigMap"
			if test.clusterScope {
				resource, kind = schema.GroupResource{Resource: "nodes"}, "Node"
			}
			if got := compileBoth(t, test.syncer, test.edge).UpScope(resource, kind, !test.clusterScope); !reflect.DeepEqual(got, test.want) {
				t.Errorf("want %+v, got %+v", test.want, got)
			}
		})
	}
}

func TestUpHash(t *testing.T) {
	key := func(syncer, edge string) string {
		return compileBoth(t, syncer, edge).UpHash(schema.GroupResource{Resource: "configmaps"}, "ConfigMap")
	}
	const entry = "apiGroup: '', resources: [configmaps], namespaces: [a, b], names: [x, w], labelSelector: {matchLabels: {k: v}}, annotations: {l: w}"
	original := key("{upsync: [{"+entry+"}]}", "")
	for title, syncer := range map[string]string{
		"itself":                  "{upsync: [{" + entry + "}]}",
		"another order":           "{upsync: [{apiGroup: '', resources: [secrets, configmaps], namespaces: [b, a, b], names: [w, x, w], labelSelector: {matchLabels: {k: v}}, annotations: {l: w}}]}",
		"twice":                   "{upsync: [{" + entry + "}, {" + entry + "}]}",
		"another resource":        "{upsync: [{" + entry + "}, {apiGroup: '', resources: [secrets], namespaces: ['*'], names: ['*']}]}",
		"a downsync":              "{upsync: [{" + entry + "}], clusterScope: [{group: '', resource: configmaps, apiVersion: v1, objects: ['*']}]}",
		"what becomes of objects": "{upsync: [{" + entry + "}], deletionPolicy: Orphan, suspend: true, conversions: [{upstream: {kind: A}, downstream: {kind: B}}]}",
	} {
		if key(syncer, "") != original {
			t.Errorf("%s: the key differs", title)
		}
	}
	keys := map[string]string{"the original": original}
	for title, test := range map[string]struct{ syncer, edge string }{
		"nothing":                     {"{}", ""},
		"another name":                {"{upsync: [{" + strings.Replace(entry, "[x, w]", "[x, z]", 1) + "}]}", ""},
		"all names":                   {"{upsync: [{" + strings.Replace(entry, "[x, w]", "['*']", 1) + "}]}", ""},
		"all names and some":          {"{upsync: [{" + strings.Replace(entry, "[x, w]", "['*', x]", 1) + "}]}", ""},
		"names written as one":        {"{upsync: [{" + strings.Replace(entry, "[x, w]", "['w x']", 1) + "}]}", ""},
		"another namespace":           {"{upsync: [{" + strings.Replace(entry, "[a, b]", "[a]", 1) + "}]}", ""},
		"all namespaces":              {"{upsync: [{" + strings.Replace(entry, "[a, b]", "['*']", 1) + "}]}", ""},
		"another label":               {"{upsync: [{" + strings.Replace(entry, "k: v", "k: w", 1) + "}]}", ""},
		"another annotation":          {"{upsync: [{" + strings.Replace(entry, "l: w", "l: v", 1) + "}]}", ""},
		"one more":                    {"{upsync: [{" + entry + "}, {apiGroup: '', resources: ['*'], namespaces: [z], names: [z]}]}", ""},
		"another name in the mailbox": {"{upsync: [{" + entry + "}], conversions: [{upstream: {kind: Note}, downstream: {kind: ConfigMap}}]}", ""},
		"one more, by kind":           {"{upsync: [{" + entry + "}]}", "{upSyncedResources: [{kind: ConfigMap, namespace: z, name: zz}]}"},
		"one more, with its version":  {"{upsync: [{" + entry + "}]}", "{upSyncedResources: [{kind: ConfigMap, version: v1, namespace: z, name: zz}]}"},
	} {
		got := key(test.syncer, test.edge)
		for other, same := range keys {
			if got == same {
				t.Errorf("%s has the key of %s", title, other)
			}
		}
		keys[title] = got
	}
}
