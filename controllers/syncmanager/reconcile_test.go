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
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/controllers/plan"
	"github.com/synchub-dev/synchub/controllers/plan/selection"
)

// kindNamed returns the kind of a resource of these tests.
func kindNamed(resource string) string { return "KindOf" + strings.ReplaceAll(resource, ".", "") }

// resources returns published resources given as "resource" or "resource.group".
func resources(names ...string) []plan.Resource {
	var all []plan.Resource
	for _, name := range names {
		all = append(all, plan.Resource{GroupVersionResource: schema.ParseGroupResource(name).WithVersion("v1"), Kind: kindNamed(name)})
	}
	return all
}

// selecting compiles configs that downsync all objects of the resources.
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

// selectingUp compiles configs that upsync all objects of the target resources.
func selectingUp(names ...string) *selection.Matcher {
	config := &edgev2alpha1.SyncerConfig{ObjectMeta: metav1.ObjectMeta{Name: "c"}}
	for _, name := range names {
		parsed := schema.ParseGroupResource(name)
		config.Spec.Upsync = append(config.Spec.Upsync, edgev2alpha1.UpsyncSet{
			APIGroup: parsed.Group, Resources: []string{parsed.Resource}, Namespaces: []string{"*"}, Names: []string{"*"},
		})
	}
	return selection.Compile([]*edgev2alpha1.SyncerConfig{config}, nil)
}

func namesOf(resources []plan.Resource) []string {
	var names []string
	for _, resource := range resources {
		names = append(names, resource.GroupResource().String())
	}
	return names
}

func TestDesiredResources(t *testing.T) {
	type names = []string
	byKind := selection.Compile(nil, []*edgev2alpha1.EdgeSyncConfig{{Spec: edgev2alpha1.EdgeSyncConfigSpec{
		DownSyncedResources: []edgev2alpha1.EdgeSyncConfigResource{{Group: "apps", Kind: kindNamed("deployments.apps"), Name: "x"}},
	}}})
	for name, test := range map[string]struct {
		published names
		matcher   *selection.Matcher
		recorded  names
		// emptied are the resources that are known to be empty on the target. asked are the resources whose
		// emptiness was checked.
		emptied, asked, want names
	}{
		"nothing":                 {},
		"published, not selected": {published: names{"configmaps"}, matcher: selecting()},
		"selected, not published": {matcher: selecting("configmaps")},
		"selected": {
			published: names{"configmaps", "secrets", "deployments.apps"}, matcher: selecting("deployments.apps", "configmaps"),
			want: names{"configmaps", "deployments.apps"},
		},
		"selected for coming up": {published: names{"configmaps", "secrets"}, matcher: selectingUp("configmaps"), want: names{"configmaps"}},
		"selected for coming up by a wildcard": {
			published: names{"configmaps", "secrets", "deployments.apps"}, matcher: selectingUp("*"), want: names{"configmaps", "secrets"},
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
			broken := errors.New("the target does not respond")
			var asked []string
			got, err := desiredResources(&targetState{matcher: test.matcher, writtenResources: writtenOf(test.recorded...)}, resources(test.published...), withDirectAPIs(converting(), test.published...), func(resource plan.Resource) (bool, error) {
				asked = append(asked, resource.Resource)
				if resource.Resource == "broken" {
					return false, broken
				}
				return slices.Contains(test.emptied, resource.Resource), nil
			})
			if !slices.Equal(namesOf(got), test.want) || !slices.Equal(asked, test.asked) {
				t.Errorf("want %v after checking %v\ngot  %v after checking %v", test.want, test.asked, namesOf(got), asked)
			}
			if errors.Is(err, broken) != slices.Contains(test.asked, "broken") {
				t.Errorf("got the error %v", err)
			}
		})
	}
}

// Selecting the result of a conversion selects the mailbox resource: its objects are downsynced to, or upsynced from, the result.
func TestDesiredResourcesForTheirForms(t *testing.T) {
	published := resources("widgets.new")
	converted := map[schema.GroupResource]resolvedAPIs{{Group: "new", Resource: "widgets"}: {apis: targetsOf("widgets.new/v1", "widgets.old/v2")}}
	for name, test := range map[string]struct {
		matcher  *selection.Matcher
		recorded string
		emptied  bool
		want     bool
	}{
		"nothing selects it":                {selecting(), "", true, false},
		"it comes up from its other form":   {selectingUp("widgets.old"), "", true, true},
		"another of the other form's group": {selectingUp("gadgets.old"), "", true, false},
		"it was converted":                  {selecting(), "widgets.old/v2<widgets.new", false, true},
		"it was converted and is emptied":   {selecting(), "widgets.old/v2<widgets.new", true, false},
		"another was converted":             {selecting(), "widgets.old/v2<gadgets.new", false, false},
		"its other form has its own":        {selecting(), "widgets.old/v2", false, false},
	} {
		state := &targetState{matcher: test.matcher, writtenResources: parseWritten(test.recorded)}
		got, err := desiredResources(state, published, converted, func(plan.Resource) (bool, error) { return test.emptied, nil })
		if err != nil || (len(got) == 1) != test.want {
			t.Errorf("%s: want %v, got %v, %v", name, test.want, namesOf(got), err)
		}
	}
}
