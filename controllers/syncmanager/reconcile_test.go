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

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/controllers/sync"
	"github.com/synchub-dev/synchub/controllers/sync/selection"
)

// resources are published, as "resource" or "resource.group".
func resources(names ...string) []sync.Resource {
	var all []sync.Resource
	for _, name := range names {
		all = append(all, sync.Resource{GroupVersionResource: schema.ParseGroupResource(name).WithVersion("v1"), Kind: "Kind of " + name})
	}
	return all
}

// selecting compiles configs that select all objects of the resources.
func selecting(names ...string) *selection.Matcher {
	config := &edgev2alpha1.SyncerConfig{ObjectMeta: metav1.ObjectMeta{Name: "c"}}
	for _, name := range names {
		parsed := schema.ParseGroupResource(name)
		config.Spec.ClusterScope = append(config.Spec.ClusterScope, edgev2alpha1.ClusterScopeDownsyncResource{
			GroupResource: edgev2alpha1.GroupResource{Group: parsed.Group, Resource: parsed.Resource}, Objects: []string{"*"},
		})
	}
	return selection.Compile([]*edgev2alpha1.SyncerConfig{config}, nil)
}

func groups(names ...string) map[schema.GroupResource]struct{} {
	set := map[schema.GroupResource]struct{}{}
	for _, name := range names {
		set[schema.ParseGroupResource(name)] = struct{}{}
	}
	return set
}

func namesOf(resources []sync.Resource) []string {
	var names []string
	for _, resource := range resources {
		names = append(names, resource.GroupResource().String())
	}
	return names
}

func TestWanted(t *testing.T) {
	type names = []string
	byKind := selection.Compile(nil, []*edgev2alpha1.EdgeSyncConfig{{Spec: edgev2alpha1.EdgeSyncConfigSpec{
		DownSyncedResources: []edgev2alpha1.EdgeSyncConfigResource{{Group: "apps", Kind: "Kind of deployments.apps", Name: "x"}},
	}}})
	for name, test := range map[string]struct {
		published names
		matcher   *selection.Matcher
		recorded  names
		// emptied are the resources of which the target is known to have nothing; asked are those it was asked about.
		emptied, asked, want names
	}{
		"nothing":                 {},
		"published, not selected": {published: names{"configmaps"}, matcher: selecting()},
		"selected, not published": {matcher: selecting("configmaps")},
		"selected": {
			published: names{"configmaps", "secrets", "deployments.apps"}, matcher: selecting("deployments.apps", "configmaps"),
			want: names{"configmaps", "deployments.apps"},
		},
		"selected by kind":       {published: names{"configmaps", "deployments.apps"}, matcher: byKind, want: names{"deployments.apps"}},
		"selected by a wildcard": {published: names{"configmaps", "secrets", "deployments.apps"}, matcher: selecting("*"), want: names{"configmaps", "secrets"}},
		"the same name in another group": {
			published: names{"configmaps.example.com"}, matcher: selecting("configmaps"), recorded: names{"configmaps"},
		},
		"selected and recorded": {
			published: names{"configmaps"}, matcher: selecting("configmaps"), recorded: names{"configmaps"}, emptied: names{"configmaps"},
			want: names{"configmaps"},
		},
		"recorded, not emptied": {
			published: names{"configmaps", "secrets"}, matcher: selecting("secrets"), recorded: names{"configmaps"},
			asked: names{"configmaps"}, want: names{"configmaps", "secrets"},
		},
		"recorded and emptied": {
			published: names{"configmaps", "secrets"}, matcher: selecting("secrets"), recorded: names{"configmaps", "secrets"}, emptied: names{"configmaps"},
			asked: names{"configmaps"}, want: names{"secrets"},
		},
		"recorded, and no config at all":   {published: names{"configmaps"}, recorded: names{"configmaps"}, asked: names{"configmaps"}, want: names{"configmaps"}},
		"recorded, not published any more": {matcher: selecting(), recorded: names{"configmaps"}},
		"one that the target does not tell of holds up no other": {
			published: names{"broken", "secrets", "configmaps"}, matcher: selecting("configmaps"), recorded: names{"broken", "secrets"}, emptied: names{"secrets"},
			asked: names{"broken", "secrets"}, want: names{"broken", "configmaps"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			broken := errors.New("the target does not say")
			var asked []string
			got, err := wanted(&managed{matcher: test.matcher, recorded: groups(test.recorded...)}, resources(test.published...), func(resource sync.Resource) (bool, error) {
				asked = append(asked, resource.Resource)
				if resource.Resource == "broken" {
					return false, broken
				}
				return slices.Contains(test.emptied, resource.Resource), nil
			})
			if !slices.Equal(namesOf(got), test.want) || !slices.Equal(asked, test.asked) {
				t.Errorf("want %v after asking about %v\ngot  %v after asking about %v", test.want, test.asked, namesOf(got), asked)
			}
			if errors.Is(err, broken) != slices.Contains(test.asked, "broken") {
				t.Errorf("got the error %v", err)
			}
		})
	}
}

func TestRecord(t *testing.T) {
	type names = []string
	for name, test := range map[string]struct {
		recorded, wanted, published names
		// want is what is written, empty if nothing is; then what is recorded after it.
		want string
		then names
	}{
		"nothing":                           {nil, nil, nil, "", nil},
		"the first pair":                    {nil, names{"configmaps"}, names{"configmaps", "secrets"}, "configmaps/v1", names{"configmaps"}},
		"no change":                         {names{"configmaps", "secrets"}, names{"secrets", "configmaps"}, names{"configmaps", "secrets"}, "", names{"configmaps", "secrets"}},
		"one more":                          {names{"configmaps"}, names{"configmaps", "deployments.apps"}, names{"configmaps", "deployments.apps"}, "configmaps/v1 deployments.apps/v1", names{"configmaps", "deployments.apps"}},
		"one less":                          {names{"configmaps", "secrets"}, names{"secrets"}, names{"configmaps", "secrets"}, "secrets/v1", names{"secrets"}},
		"one for another":                   {names{"configmaps"}, names{"secrets"}, names{"configmaps", "secrets"}, "secrets/v1", names{"secrets"}},
		"not published any more":            {names{"configmaps", "secrets"}, names{"secrets"}, names{"secrets"}, "", names{"configmaps", "secrets"}},
		"not published any more, and a new": {names{"configmaps"}, names{"secrets"}, names{"secrets"}, "configmaps/ secrets/v1", names{"configmaps", "secrets"}},
		"none is published any more":        {names{"configmaps"}, nil, nil, "", names{"configmaps"}},
		"the same name in another group":    {names{"events"}, names{"events.events.k8s.io"}, names{"events.events.k8s.io"}, "events.events.k8s.io/v1 events/", names{"events", "events.events.k8s.io"}},
		"the last one":                      {names{"configmaps"}, nil, names{"configmaps"}, "-", nil},
	} {
		t.Run(name, func(t *testing.T) {
			manager, notes := newManager(t)
			managed := &managed{recorded: groups(test.recorded...)}
			record := func() error {
				return manager.record(t.Context(), managed, resources(test.wanted...), resources(test.published...))
			}
			var want []string
			if test.want != "" {
				want = []string{strings.Trim(test.want, "-")}
				// What could not be written is tried again.
				notes.fail = errors.New("no")
				if err := record(); !errors.Is(err, notes.fail) || !reflect.DeepEqual(managed.recorded, groups(test.recorded...)) {
					t.Errorf("after a failure: %v, %v", err, managed.recorded)
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
			if !reflect.DeepEqual(managed.recorded, groups(test.then...)) {
				t.Errorf("want %v recorded, got %v", test.then, managed.recorded)
			}
		})
	}
}
