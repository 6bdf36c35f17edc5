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

package syncmanager

import (
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/synchub-dev/synchub/controllers/plan"
)

// parseWritten parses written resources. The form is "resource.group/version" for the mailbox's own objects.
// "<" and mailbox resources separated by commas follow if these are converted into the resource. Then "+" after
// the version means that the resource also has the mailbox's own objects.
func parseWritten(text string) WrittenResources {
	all := WrittenResources{}
	for field := range strings.FieldsSeq(text) {
		resource, sources, converted := strings.Cut(field, "<")
		name, version, _ := strings.Cut(resource, "/")
		record := WrittenResource{Version: strings.TrimSuffix(version, "+"), Direct: !converted || strings.HasSuffix(version, "+")}
		if converted {
			for source := range strings.SplitSeq(sources, ",") {
				record.ConvertedFrom = append(record.ConvertedFrom, schema.ParseGroupResource(source))
			}
		}
		all[schema.ParseGroupResource(name)] = record
	}
	return all
}

// writtenOf returns entries of the mailbox's own objects in version v1.
func writtenOf(names ...string) WrittenResources {
	all := WrittenResources{}
	for _, name := range names {
		all[schema.ParseGroupResource(name)] = WrittenResource{Version: "v1", Direct: true}
	}
	return all
}

// formatWritten is the inverse of parseWritten, with a stable order.
func formatWritten(all WrittenResources) string {
	var fields []string
	for resource, record := range all {
		field := resource.String() + "/" + record.Version
		if len(record.ConvertedFrom) > 0 {
			var sources []string
			for _, source := range record.ConvertedFrom {
				sources = append(sources, source.String())
			}
			if record.Direct {
				field += "+"
			}
			field += "<" + strings.Join(sources, ",")
		}
		fields = append(fields, field)
	}
	slices.Sort(fields)
	return strings.Join(fields, " ")
}

// targetsOf parses target resources given as "resource.group/version".
func targetsOf(names ...string) []plan.TargetAPI {
	var all []plan.TargetAPI
	for _, name := range names {
		resource, version, _ := strings.Cut(name, "/")
		all = append(all, plan.TargetAPI{GroupVersionResource: schema.ParseGroupResource(resource).WithVersion(version), Kind: kindNamed(resource)})
	}
	return all
}

// converting returns the forms of resources: each argument has the resource itself, then the results of its conversions.
func converting(all ...[]string) map[schema.GroupResource]resolvedAPIs {
	result := map[schema.GroupResource]resolvedAPIs{}
	for _, names := range all {
		result[schema.ParseGroupResource(names[0])] = resolvedAPIs{apis: targetsOf(append([]string{names[0] + "/v1"}, names[1:]...)...)}
	}
	return result
}

// withDirectAPIs adds the APIs of resources that are not converted.
func withDirectAPIs(all map[schema.GroupResource]resolvedAPIs, names ...string) map[schema.GroupResource]resolvedAPIs {
	for _, name := range names {
		if resource := schema.ParseGroupResource(name); len(all[resource].apis) == 0 {
			all[resource] = resolvedAPIs{apis: targetsOf(name + "/v1")}
		}
	}
	return all
}

func TestStoreWrittenResources(t *testing.T) {
	type names = []string
	type conversions = [][]string
	for name, test := range map[string]struct {
		recorded          string
		wanted, published names
		conversions       conversions
		// then are the written resources afterwards. They are stored if they differ.
		then string
	}{
		"nothing":                           {"", nil, nil, nil, ""},
		"the first pair":                    {"", names{"configmaps"}, names{"configmaps", "secrets"}, nil, "configmaps/v1"},
		"no change":                         {"configmaps/v1 secrets/v1", names{"secrets", "configmaps"}, names{"configmaps", "secrets"}, nil, "configmaps/v1 secrets/v1"},
		"one more":                          {"configmaps/v1", names{"configmaps", "deployments.apps"}, names{"configmaps", "deployments.apps"}, nil, "configmaps/v1 deployments.apps/v1"},
		"one less":                          {"configmaps/v1 secrets/v1", names{"secrets"}, names{"configmaps", "secrets"}, nil, "secrets/v1"},
		"one for another":                   {"configmaps/v1", names{"secrets"}, names{"configmaps", "secrets"}, nil, "secrets/v1"},
		"another version":                   {"configmaps/v1beta1", names{"configmaps"}, names{"configmaps"}, nil, "configmaps/v1"},
		"not published any more":            {"configmaps/v2 secrets/v1", names{"secrets"}, names{"secrets"}, nil, "configmaps/v2 secrets/v1"},
		"not published any more, and a new": {"configmaps/v2", names{"secrets"}, names{"secrets"}, nil, "configmaps/v2 secrets/v1"},
		"none is published any more":        {"configmaps/v1", nil, nil, nil, "configmaps/v1"},
		"the same name in another group":    {"events/v1", names{"events.events.k8s.io"}, names{"events.events.k8s.io"}, nil, "events.events.k8s.io/v1 events/v1"},
		"the last one":                      {"configmaps/v1", nil, names{"configmaps"}, nil, ""},
		"without a version":                 {"configmaps/ secrets/v1", names{"secrets"}, names{"secrets"}, nil, "configmaps/ secrets/v1"},

		"a conversion": {
			"", names{"widgets.new"}, names{"widgets.new"}, conversions{{"widgets.new", "widgets.old/v2"}}, "widgets.new/v1 widgets.old/v2<widgets.new",
		},
		"two conversions of one": {
			"", names{"widgets.new"}, names{"widgets.new"}, conversions{{"widgets.new", "widgets.old/v2", "gadgets.old/v3"}},
			"gadgets.old/v3<widgets.new widgets.new/v1 widgets.old/v2<widgets.new",
		},
		"two conversions into one": {
			"", names{"b.new", "a.new"}, names{"a.new", "b.new"}, conversions{{"b.new", "c.old/v2"}, {"a.new", "c.old/v2"}},
			"a.new/v1 b.new/v1 c.old/v2<a.new,b.new",
		},
		"a conversion into one that is published": {
			"", names{"a.new", "c.old"}, names{"a.new", "c.old"}, conversions{{"a.new", "c.old/v2"}}, "a.new/v1 c.old/v1+<a.new",
		},
		"the same, the other way round": {
			"", names{"c.old", "a.new"}, names{"a.new", "c.old"}, conversions{{"a.new", "c.old/v2"}}, "a.new/v1 c.old/v1+<a.new",
		},
		"a conversion that goes on": {
			"a.new/v1 c.old/v2<a.new", names{"a.new"}, names{"a.new"}, conversions{{"a.new", "c.old/v2"}}, "a.new/v1 c.old/v2<a.new",
		},
		"a conversion of which nothing is left": {
			"a.new/v1 c.old/v2<a.new", names{"a.new"}, names{"a.new"}, nil, "a.new/v1",
		},
		"one of two conversions into one of which nothing is left": {
			"a.new/v1 b.new/v1 c.old/v2<a.new,b.new", names{"a.new", "b.new"}, names{"a.new", "b.new"}, conversions{{"b.new", "c.old/v2"}},
			"a.new/v1 b.new/v1 c.old/v2<b.new",
		},
		"a conversion for another": {
			"a.new/v1 c.old/v2<a.new", names{"a.new"}, names{"a.new"}, conversions{{"a.new", "d.old/v3"}}, "a.new/v1 d.old/v3<a.new",
		},
		"what was converted is not published any more": {
			"a.new/v1 c.old/v2<a.new", nil, nil, nil, "a.new/v1 c.old/v2<a.new",
		},
		"what was converted is not published, another is": {
			"a.new/v1 c.old/v2<a.new", names{"b.new"}, names{"b.new"}, conversions{{"b.new", "c.old/v2"}}, "a.new/v1 b.new/v1 c.old/v2<a.new,b.new",
		},
		"what it was converted into is published now": {
			"a.new/v1 c.old/v2<a.new", names{"c.old"}, names{"c.old"}, nil, "a.new/v1 c.old/v1+<a.new",
		},
		"what it was converted into is not published any more": {
			"c.old/v1+<a.new", names{"a.new"}, names{"a.new"}, conversions{{"a.new", "c.old/v1"}}, "a.new/v1 c.old/v1+<a.new",
		},
		"nothing selects what was converted and has been emptied": {
			"a.new/v1 c.old/v2<a.new secrets/v1", names{"secrets"}, names{"a.new", "secrets"}, conversions{{"a.new", "c.old/v2"}}, "secrets/v1",
		},
	} {
		t.Run(name, func(t *testing.T) {
			manager, notes := newManager(t)
			state := &targetState{writtenResources: parseWritten(test.recorded)}
			record := func() error {
				return passWith(manager, state, resources(test.published...)...).storeWrittenResources(t.Context(), resources(test.wanted...), withDirectAPIs(converting(test.conversions...), test.published...))
			}
			var want []string
			if test.then != test.recorded {
				want = []string{test.then}
				// A failed write is retried.
				notes.fail = errors.New("no")
				if err := record(); !errors.Is(err, notes.fail) || !reflect.DeepEqual(state.writtenResources, parseWritten(test.recorded)) {
					t.Errorf("after a failure: %v, %v", err, state.writtenResources)
				}
				notes.fail = nil
			}
			for range 2 {
				if err := record(); err != nil {
					t.Fatal(err)
				}
			}
			if !slices.Equal(notes.records, want) {
				t.Errorf("want the records %q, got %q", want, notes.records)
			}
			if got := formatWritten(state.writtenResources); got != test.then {
				t.Errorf("want %s recorded, got %s", test.then, got)
			}
		})
	}
}

func TestWrittenResourceWithSource(t *testing.T) {
	source := func(name string) schema.GroupResource { return schema.ParseGroupResource(name) }
	first := WrittenResource{}.withSource(source("b.x"), "v1")
	second := first.withSource(source("a.x"), "v2")
	again := second.withSource(source("b.x"), "v2")
	for name, test := range map[string]struct {
		got  WrittenResource
		want string
	}{
		"the first":              {first, "r/v1<b.x"},
		"one more":               {second, "r/v2<a.x,b.x"},
		"the first again":        {again, "r/v2<a.x,b.x"},
		"of one that has itself": {WrittenResource{Version: "v9", Direct: true}.withSource(source("a.x"), "v1"), "r/v9+<a.x"},
	} {
		if got := formatWritten(WrittenResources{{Resource: "r"}: test.got}); got != test.want {
			t.Errorf("%s: want %s, got %s", name, test.want, got)
		}
	}
	if len(first.ConvertedFrom) != 1 || !second.equal(again) || first.equal(second) || (WrittenResource{Direct: true}).equal(WrittenResource{}) {
		t.Errorf("%v, %v, %v", first, second, again)
	}
}

func TestIsInInventory(t *testing.T) {
	written := parseWritten("a/v1 c.old/v2<a.new,b.new d/v1+<a")
	for name, want := range map[string]bool{"a": true, "c.old": false, "a.new": true, "b.new": true, "d": true, "b": false, "a.old": false} {
		if got := written.mayContain(schema.ParseGroupResource(name)); got != want {
			t.Errorf("%s: want %v, got %v", name, want, got)
		}
	}
}
