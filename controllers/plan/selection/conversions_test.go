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
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/controllers/plan/selection"
)

// name formats an object's name on the other side.
func name(object selection.Object, selected selection.Selection, up bool) string {
	convert := selected.Conversion.Down
	if up {
		convert = selected.Conversion.Up
	}
	name, ok := convert(called(object))
	if !ok {
		return "its conversion does not match it"
	}
	return strings.TrimSpace(fmt.Sprintf("%s/%s/%s %s/%s", name.GVK.Group, name.GVK.Version, name.GVK.Kind, name.Namespace, name.Name))
}

func TestConversions(t *testing.T) {
	const (
		selectAll = "namespaceScope: {namespaces: ['*'], resources: [{group: '', resource: '*', apiVersion: v1}]}, " +
			"upsync: [{apiGroup: example.com, resources: ['*'], namespaces: ['*'], names: ['*']}, {apiGroup: '', resources: ['*'], namespaces: ['*'], names: ['*']}]"
		group = "{upstream: {kind: ConfigMap}, downstream: {group: example.com, kind: ConfigMap}}"
		named = "{upstream: {kind: ConfigMap, name: x}, downstream: {kind: ConfigMap, name: yy}}"
	)
	for title, test := range map[string]struct {
		conversions string
		// down and up are names of objects on the other side; "-" if both sides have the same name.
		down, up map[string]string
	}{
		"none": {
			conversions: "[]",
			down:        map[string]string{"configmaps a/x": "-"},
			up:          map[string]string{"configmaps a/x": "-"},
		},
		"of a kind": {
			conversions: "[" + group + "]",
			down:        map[string]string{"configmaps a/x": "example.com/v1/ConfigMap a/x", "secrets a/x": "-"},
			up:          map[string]string{"configmaps.example.com a/x": "/v1beta1/ConfigMap a/x", "configmaps a/x": "-"},
		},
		"of a name": {
			conversions: "[" + named + "]",
			down:        map[string]string{"configmaps a/x": "/v1/ConfigMap a/yy", "configmaps a/z": "-"},
			up:          map[string]string{"configmaps a/yy": "/v1/ConfigMap a/x", "configmaps a/x": "-"},
		},
		"the first that matches": {
			conversions: "[" + named + ", " + group + "]",
			down:        map[string]string{"configmaps a/x": "/v1/ConfigMap a/yy", "configmaps a/z": "example.com/v1/ConfigMap a/z"},
			up:          map[string]string{"configmaps a/yy": "/v1/ConfigMap a/x", "configmaps.example.com a/yy": "/v1beta1/ConfigMap a/yy"},
		},
		"the first that matches, even with fewer parts": {
			conversions: "[" + group + ", " + named + "]",
			down:        map[string]string{"configmaps a/x": "example.com/v1/ConfigMap a/x"},
			up:          map[string]string{"configmaps a/yy": "/v1/ConfigMap a/x", "configmaps.example.com a/yy": "/v1beta1/ConfigMap a/yy"},
		},
		"one that changes nothing, first": {
			conversions: "[{upstream: {kind: ConfigMap}, downstream: {kind: ConfigMap}}, " + group + "]",
			down:        map[string]string{"configmaps a/x": "-"},
			up:          map[string]string{"configmaps a/x": "-", "configmaps.example.com a/yy": "/v1beta1/ConfigMap a/yy"},
		},
		"of all kinds": {
			conversions: "[{upstream: {kind: '*'}, downstream: {group: example.com, kind: '*'}}]",
			down:        map[string]string{"configmaps a/x": "example.com/v1/ConfigMap a/x", "services a/x": "example.com/v1/Service a/x"},
			up:          map[string]string{"configmaps.example.com a/x": "/v1beta1/ConfigMap a/x"},
		},
		"of another version": {
			conversions: "[{upstream: {kind: ConfigMap, version: v2}, downstream: {group: example.com, kind: ConfigMap, version: v1beta1}}]",
			down:        map[string]string{"configmaps a/x": "-"},
			up:          map[string]string{"configmaps.example.com a/x": "/v2/ConfigMap a/x"},
		},
	} {
		t.Run(title, func(t *testing.T) {
			matcher := compileBoth(t, "{"+selectAll+", conversions: "+test.conversions+"}", "")
			check := func(reference, want string, up bool) {
				object := object(reference)
				match := matcher.Match
				if up {
					match = matcher.MatchUp
				}
				selected, ok := match(object)
				got := "-"
				if selected.Conversion != nil {
					got = name(object, selected, up)
				}
				if !ok || got != want || selected.Overruled != nil {
					t.Errorf("up: %v: %s is called %s, want %s: %+v, %v", up, reference, got, want, selected, ok)
				}
			}
			for reference, want := range test.down {
				check(reference, want, false)
			}
			for reference, want := range test.up {
				check(reference, want, true)
			}
		})
	}
}

// If configs disagree, the oldest config decides, of either kind.
func TestOldestConversionWins(t *testing.T) {
	const (
		selectX  = "namespacedObjects: [{group: '', resource: configmaps, apiVersion: v1, objectsByNamespace: [{namespace: a, names: [x]}]}]"
		toY, toZ = "{upstream: {kind: ConfigMap, name: x}, downstream: {kind: ConfigMap, name: yy}}", "{upstream: {kind: ConfigMap, name: x}, downstream: {kind: ConfigMap, name: z}}"
		alsoToY  = "{upstream: {kind: ConfigMap, namespace: a, name: x}, downstream: {kind: ConfigMap, name: yy}}"
	)
	syncer := func(name, conversions string, created int64) *edgev2alpha1.SyncerConfig {
		config := syncerConfig(t, name, "{"+selectX+", conversions: ["+conversions+"]}")
		config.CreationTimestamp = metav1.Unix(created, 0)
		return config
	}
	edge := func(name, conversions string, created int64) *edgev2alpha1.EdgeSyncConfig {
		config := edgeSyncConfig(t, name, "{downSyncedResources: [{kind: ConfigMap, namespace: a, name: x}], conversions: ["+conversions+"]}")
		config.CreationTimestamp = metav1.Unix(created, 0)
		return config
	}
	type syncers = []*edgev2alpha1.SyncerConfig
	type edges = []*edgev2alpha1.EdgeSyncConfig
	for title, test := range map[string]struct {
		syncers   syncers
		edges     edges
		want      string
		overruled []string
	}{
		"the older":                        {syncers{syncer("a", toY, 2), syncer("b", toZ, 1)}, nil, "/v1/ConfigMap a/z", []string{"SyncerConfig/a"}},
		"an EdgeSyncConfig is older":       {syncers{syncer("a", toY, 2)}, edges{edge("a", toZ, 1)}, "/v1/ConfigMap a/z", []string{"SyncerConfig/a"}},
		"an EdgeSyncConfig is younger":     {syncers{syncer("a", toY, 1)}, edges{edge("a", toZ, 2)}, "/v1/ConfigMap a/yy", []string{"EdgeSyncConfig/a"}},
		"by kind when equally old":         {syncers{syncer("a", toY, 1)}, edges{edge("b", toZ, 1)}, "/v1/ConfigMap a/z", []string{"SyncerConfig/a"}},
		"by name when equally old":         {syncers{syncer("b", toY, 1), syncer("a", toZ, 1)}, nil, "/v1/ConfigMap a/z", []string{"SyncerConfig/b"}},
		"all other ones are overruled":     {syncers{syncer("a", toY, 1), syncer("b", toZ, 2), syncer("c", "", 3), syncer("d", toY, 4)}, nil, "/v1/ConfigMap a/yy", []string{"SyncerConfig/b", "SyncerConfig/c"}},
		"none is a conversion too":         {syncers{syncer("a", "", 1), syncer("b", toZ, 2)}, nil, "/v1/ConfigMap a/x", []string{"SyncerConfig/b"}},
		"the same in other words is equal": {syncers{syncer("a", toY, 1), syncer("b", alsoToY, 2)}, nil, "/v1/ConfigMap a/yy", nil},
	} {
		t.Run(title, func(t *testing.T) {
			for range 2 {
				object := object("configmaps a/x")
				selected, ok := selection.Compile(test.syncers, test.edges).Match(object)
				if got := name(object, selected, false); !ok || got != test.want || !slices.Equal(selected.Overruled, test.overruled) {
					t.Errorf("want %s against %v, got %s against %v, %v", test.want, test.overruled, got, selected.Overruled, ok)
				}
				slices.Reverse(test.syncers)
			}
		})
	}
	// A config that does not select the object does not affect its name.
	stranger := edgeSyncConfig(t, "stranger", "{conversions: ["+toZ+"]}")
	selected, _ := selection.Compile(syncers{syncer("a", toY, 1)}, edges{stranger}).Match(object("configmaps a/x"))
	if got := name(object("configmaps a/x"), selected, false); got != "/v1/ConfigMap a/yy" || selected.Overruled != nil {
		t.Errorf("called %s against %v", got, selected.Overruled)
	}
}

// Older configs use the mailbox's names of upsynced objects.
func TestUpSyncedResourcesInMailboxTerms(t *testing.T) {
	const to = ", conversions: [{upstream: {kind: ConfigMap}, downstream: {group: example.com, kind: ConfigMap}}, {upstream: {kind: Secret, namespace: a, name: x}, downstream: {kind: Endpoints, name: yy}}]}"
	for title, test := range map[string]struct {
		entry   string
		yes, no []string
	}{
		"the target's kind":            {"{kind: ConfigMap, group: example.com, namespace: a, name: x}", []string{"configmaps.example.com a/x"}, []string{"configmaps a/x", "configmaps.example.com a/yy"}},
		"the mailbox's kind":           {"{kind: ConfigMap, namespace: a, name: x}", []string{"configmaps.example.com a/x"}, []string{"configmaps a/x", "configmaps.example.com b/x"}},
		"the mailbox's kind, anywhere": {"{kind: ConfigMap, namespace: '*', name: '*'}", []string{"configmaps.example.com a/x"}, []string{"configmaps a/x", "configmaps.example.com kube-system/x"}},
		"the mailbox's name":           {"{kind: Secret, namespace: '*', name: x}", []string{"endpoints a/yy"}, []string{"secrets a/x", "endpoints a/x", "endpoints b/yy"}},
		"all of the mailbox's names":   {"{kind: Secret, namespace: a, name: '*'}", []string{"endpoints a/yy"}, []string{"secrets a/x", "endpoints a/x", "endpoints b/yy"}},
		"a name that is not converted": {"{kind: Secret, namespace: a, name: z}", []string{"secrets a/z"}, []string{"endpoints a/yy"}},
		"the mailbox's version":        {"{kind: ConfigMap, version: v1beta1, namespace: a, name: x}", []string{"configmaps.example.com a/x"}, []string{"configmaps a/x"}},
		"another version":              {"{kind: ConfigMap, version: v3, namespace: a, name: x}", nil, []string{"configmaps.example.com a/x"}},
		"a kind without a conversion":  {"{kind: Service, namespace: a, name: x}", []string{"services a/x"}, []string{"configmaps a/x"}},
	} {
		t.Run(title, func(t *testing.T) {
			matcher := compileBoth(t, "{}", "{upSyncedResources: ["+test.entry+"]"+to)
			for _, reference := range test.yes {
				if _, ok := matcher.MatchUp(object(reference)); !ok {
					t.Errorf("%s is not upsynced", reference)
				}
			}
			for _, reference := range test.no {
				if _, ok := matcher.MatchUp(object(reference)); ok {
					t.Errorf("%s is upsynced", reference)
				}
			}
			if problems := matcher.Problems(selection.EdgeSyncConfigID("edge")); problems != nil {
				t.Errorf("problems: %+v", problems)
			}
		})
	}
}

func TestDownstreamKinds(t *testing.T) {
	matcher := compileBoth(t, `
conversions:
- {upstream: {kind: ConfigMap, version: v1}, downstream: {group: b.io, version: v2, kind: Map}}
- {upstream: {kind: ConfigMap, name: x}, downstream: {group: b.io, kind: Map, name: yy}}
- {upstream: {kind: ConfigMap, name: z}, downstream: {group: b.io, kind: Map, name: z}}
- {upstream: {kind: ConfigMap, name: v}, downstream: {kind: ConfigMap, name: w}}
- {upstream: {kind: ConfigMap, version: v1}, downstream: {kind: ConfigMap, version: v2}}
`, "{conversions: [{upstream: {kind: '*'}, downstream: {group: a.io, kind: '*'}}, {upstream: {group: c.io, kind: ConfigMap}, downstream: {group: d.io, kind: ConfigMap}}, {upstream: {kind: Secret}, downstream: {kind: ConfigMap}}]}")
	for kind, want := range map[schema.GroupKind][]schema.GroupVersionKind{
		{Kind: "ConfigMap"}:                {{Group: "a.io", Kind: "ConfigMap"}, {Group: "b.io", Kind: "Map"}, {Group: "b.io", Version: "v2", Kind: "Map"}},
		{Kind: "Secret"}:                   {{Kind: "ConfigMap"}, {Group: "a.io", Kind: "Secret"}},
		{Group: "c.io", Kind: "ConfigMap"}: {{Group: "d.io", Kind: "ConfigMap"}},
		{Group: "c.io", Kind: "Secret"}:    nil,
	} {
		if got := matcher.DownstreamKinds(kind); !reflect.DeepEqual(got, want) {
			t.Errorf("%v: want %v, got %v", kind, want, got)
		}
	}
}

// A config of ordinary size must not compile to an arbitrarily large matcher.
func TestConversionsOfManyEntriesAreBounded(t *testing.T) {
	config := &edgev2alpha1.EdgeSyncConfig{ObjectMeta: metav1.ObjectMeta{Name: "many"}}
	for number := range 200 {
		config.Spec.UpSyncedResources = append(config.Spec.UpSyncedResources, edgev2alpha1.EdgeSyncConfigResource{Kind: "Secret", Namespace: fmt.Sprint("ns", number), Name: "*"})
		config.Spec.Conversions = append(config.Spec.Conversions, edgev2alpha1.Conversion{
			Upstream:   edgev2alpha1.EdgeSyncConfigResource{Kind: "Secret", Name: fmt.Sprint("up", number)},
			Downstream: edgev2alpha1.EdgeSyncConfigResource{Kind: "Endpoints", Name: fmt.Sprint("down", number)},
		})
	}
	config.Spec.UpSyncedResources = append(config.Spec.UpSyncedResources, edgev2alpha1.EdgeSyncConfigResource{Kind: "ConfigMap", Namespace: "a", Name: "x"})
	matcher := selection.Compile(nil, []*edgev2alpha1.EdgeSyncConfig{config})
	if entries := len(matcher.Entries()); entries > 10201 || entries < 9000 {
		t.Errorf("%d entries", entries)
	}
	problems := matcher.Problems("EdgeSyncConfig/many")
	if len(problems) == 0 || problems[0].Field != "spec.upSyncedResources[50]" {
		t.Errorf("problems: %+v", problems)
	}
	for reference, want := range map[string]bool{"endpoints ns0/down199": true, "endpoints ns199/down0": false, "configmaps a/x": true} {
		if _, got := matcher.MatchUp(object(reference)); got != want {
			t.Errorf("%s is upsynced: %v, want %v", reference, got, want)
		}
	}
}
