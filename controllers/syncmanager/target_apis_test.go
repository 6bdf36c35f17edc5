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
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/controllers/objectsync"
	"github.com/synchub-dev/synchub/controllers/plan"
	"github.com/synchub-dev/synchub/controllers/plan/related"
	"github.com/synchub-dev/synchub/controllers/plan/selection"
	"github.com/synchub-dev/synchub/provider/targets"
	"github.com/synchub-dev/synchub/test/framework/suite"
)

// convertingTo compiles a config that selects all objects of widgets.new and converts them to the kinds, given as "Kind.group" or
// "Kind.version.group".
func convertingTo(kinds ...string) *selection.Matcher {
	config := &edgev2alpha1.EdgeSyncConfig{ObjectMeta: metav1.ObjectMeta{Name: "c"}}
	config.Spec.DownSyncedResources = []edgev2alpha1.EdgeSyncConfigResource{{Group: "new", Kind: "Widget", Namespace: "*", Name: "*"}}
	for index, kind := range kinds {
		name := fmt.Sprintf("w%d", index)
		parts := strings.Split(kind, ".")
		downstream := edgev2alpha1.EdgeSyncConfigResource{Kind: parts[0], Group: parts[len(parts)-1], Name: name}
		if len(parts) == 3 {
			downstream.Version = parts[1]
		}
		config.Spec.Conversions = append(config.Spec.Conversions, edgev2alpha1.Conversion{
			Upstream: edgev2alpha1.EdgeSyncConfigResource{Group: "new", Kind: "Widget", Name: name}, Downstream: downstream,
		})
	}
	return selection.Compile(nil, []*edgev2alpha1.EdgeSyncConfig{config})
}

// publishing returns PublishedResources for kinds given as to convertingTo, under the names that the target has.
func publishing(kinds ...string) []plan.Resource {
	var published []plan.Resource
	for _, kind := range kinds {
		parts := strings.Split(kind, ".")
		published = append(published, plan.Resource{
			PublishedResource:    strings.ToLower(kind),
			GroupVersionResource: schema.GroupVersionResource{Group: parts[len(parts)-1], Version: "v2", Resource: strings.ToLower(parts[0]) + "s"}, Kind: parts[0],
			Namespaced: true, Rules: &plan.Rules{Versions: []string{"v1", "v2", "v3"}},
		})
	}
	return published
}

// discovery is a target that serves only discovery. Group old has Widgets in v1 and v2, and Gadgets in v2. The core group has Secrets
// and ConfigMaps.
func discovery(t *testing.T) *targets.Connection {
	t.Helper()
	answers := map[string]string{
		"/version":     `{"gitVersion": "v1.35.4"}`,
		"/api/v1":      `{"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": "v1", "resources": [{"name": "secrets", "kind": "Secret", "namespaced": true, "verbs": ["list"]}, {"name": "configmaps", "kind": "ConfigMap", "namespaced": true, "verbs": ["list"]}]}`,
		"/apis/old":    `{"kind": "APIGroup", "apiVersion": "v1", "name": "old", "versions": [{"groupVersion": "old/v2", "version": "v2"}, {"groupVersion": "old/v1", "version": "v1"}], "preferredVersion": {"groupVersion": "old/v2", "version": "v2"}}`,
		"/apis/old/v1": `{"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": "old/v1", "resources": [{"name": "widgets", "kind": "Widget", "namespaced": true, "verbs": ["list"]}]}`,
		"/apis/old/v2": `{"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": "old/v2", "resources": [
			{"name": "widgets/status", "kind": "Widget", "namespaced": true, "verbs": ["get"]},
			{"name": "widgets", "kind": "Widget", "namespaced": true, "verbs": ["list"]}, {"name": "gadgets", "kind": "Gadget", "namespaced": true, "verbs": ["list"]}
		]}`,
	}
	server := suite.ServeTLS(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		answer, ok := answers[r.URL.Path]
		if !ok {
			w.WriteHeader(http.StatusNotFound)
			answer = `{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "NotFound", "code": 404, "details": {"kind": "namespaces", "name": "kube-system"}}`
		}
		if _, err := w.Write([]byte(answer)); err != nil {
			t.Log(err)
		}
	}))
	certificate := suite.CertificateOf(server)
	connection := connectionTo(t, server.URL, certificate...)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := connection.Health.WaitUntilUp(ctx); err != nil {
		t.Fatal(err)
	}
	return connection
}

func widgets() plan.Resource {
	return plan.Resource{GroupVersionResource: schema.GroupVersionResource{Group: "new", Version: "v1", Resource: "widgets"}, Kind: "Widget", Namespaced: true}
}

// described returns forms as text: the target resources, then the unresolved ones.
func described(forms resolvedAPIs) (served, unresolved []string) {
	for _, target := range forms.apis {
		served = append(served, target.GroupResource().String()+"/"+target.Version+" "+target.Kind)
	}
	for _, missing := range forms.unresolved {
		unresolved = append(unresolved, missing.Kind+"."+missing.GroupResource.Group+" "+missing.Reason)
	}
	return served, unresolved
}

// resolvedAPIsOf returns the APIs of a resource after the target has answered.
func resolvedAPIsOf(t *testing.T, manager *Manager, state *targetState, resource plan.Resource, published []plan.Resource, relations ...*related.Relation) (found resolvedAPIs) {
	t.Helper()
	heard := make(chan struct{}, 1)
	defer state.target.Connection.Watches.Subscribe(targets.Listener{OnLookup: func() {
		select {
		case heard <- struct{}{}:
		default:
		}
	}})()
	for {
		found, err := passWith(manager, state, published...).resolveTargetAPIsOf(resource, relations)
		if err != nil {
			t.Fatal(err)
		}
		if !found.unknown {
			return found
		}
		select {
		case <-heard:
		case <-time.After(time.Minute):
			t.Fatal("the target did not answer")
		}
	}
}

func TestForms(t *testing.T) {
	type names = []string
	itself := "widgets.new/v1 Widget"
	connection := discovery(t)
	for name, test := range map[string]struct {
		kinds              names
		recorded           string
		served, unresolved names
	}{
		"no conversion":                      {nil, "", names{itself}, nil},
		"another group":                      {names{"Widget.old"}, "", names{itself, "widgets.old/v2 Widget"}, nil},
		"another group, in a version":        {names{"Widget.v1.old"}, "", names{itself, "widgets.old/v1 Widget"}, nil},
		"two kinds":                          {names{"Widget.old", "Gadget.old"}, "", names{itself, "gadgets.old/v2 Gadget", "widgets.old/v2 Widget"}, nil},
		"one kind twice":                     {names{"Widget.old", "Widget.old"}, "", names{itself, "widgets.old/v2 Widget"}, nil},
		"a kind that is not served":          {names{"Valve.old"}, "", names{itself}, names{"Valve.old NotServed"}},
		"a version that is not served":       {names{"Widget.v3.old"}, "", names{itself}, names{"Widget.old NotServed"}},
		"a group that is not served":         {names{"Widget.older"}, "", names{itself}, names{"Widget.older NotServed"}},
		"one of two is not served":           {names{"Valve.old", "Gadget.old"}, "", names{itself, "gadgets.old/v2 Gadget"}, names{"Valve.old NotServed"}},
		"a conversion of former times":       {nil, "widgets.old/v2<widgets.new", names{itself, "widgets.old/v2 "}, nil},
		"two of former times":                {nil, "widgets.old/v2<widgets.new gadgets.old/v1<widgets.new", names{itself, "gadgets.old/v1 ", "widgets.old/v2 "}, nil},
		"of former times, that of another":   {nil, "widgets.old/v2<valves.new", names{itself}, nil},
		"of former times, and one of now":    {names{"Gadget.old"}, "widgets.old/v2<widgets.new", names{itself, "gadgets.old/v2 Gadget", "widgets.old/v2 "}, nil},
		"of former times and of now":         {names{"Widget.old"}, "widgets.old/v2<widgets.new", names{itself, "widgets.old/v2 Widget"}, nil},
		"of former times in another version": {names{"Widget.old"}, "widgets.old/v1<widgets.new", names{itself, "widgets.old/v2 Widget"}, nil},
		"of former times, not served now":    {names{"Valve.old"}, "valves.old/v2<widgets.new", names{itself, "valves.old/v2 "}, names{"Valve.old NotServed"}},
	} {
		t.Run(name, func(t *testing.T) {
			manager, _ := newManager(t)
			state := &targetState{target: Target{Connection: connection}, matcher: convertingTo(test.kinds...), writtenResources: parseWritten(test.recorded)}
			for range 2 {
				forms := resolvedAPIsOf(t, manager, state, widgets(), publishing(test.kinds...))
				served, unresolved := described(forms)
				if !slices.Equal(served, test.served) || !slices.Equal(unresolved, test.unresolved) || state.apiEvents.hasUnresolved.Load() != (len(test.unresolved) > 0) {
					t.Errorf("want %q without %q\ngot  %q without %q", test.served, test.unresolved, served, unresolved)
				}
				// A controller is restarted only if its forms differ.
				again, err := passWith(manager, state, publishing(test.kinds...)...).resolveTargetAPIsOf(widgets(), nil)
				if err != nil || !again.equal(objectsync.Options{TargetAPIs: forms.apis, UnresolvedKinds: forms.unresolved}) {
					t.Errorf("first %v, then %v, %v", forms, again, err)
				}
			}
		})
	}
}

// Two conversions may name one kind in different versions. Its objects are the same, so there is one form.
func TestFormsAreOfDifferentResources(t *testing.T) {
	manager, _ := newManager(t)
	state := &targetState{target: Target{Connection: discovery(t)}, matcher: convertingTo("Widget.old", "Widget.v1.old", "Widget.v2.old"), writtenResources: parseWritten("widgets.old/v1<widgets.new")}
	forms := resolvedAPIsOf(t, manager, state, widgets(), publishing("Widget.old"))
	if served, _ := described(forms); len(served) != 2 || !strings.HasPrefix(served[1], "widgets.old/") {
		t.Errorf("got %q", served)
	}
}

// While a target is down its kinds cannot be resolved, and the written resources must not lose an entry because of that.
func TestFormsOfATargetThatIsAway(t *testing.T) {
	f := newFixture(t)
	published := append(append(resources("configmaps"), widgets()), publishing("Widget.old")...)
	f.manager.Publish(published)
	state, _ := f.manager.get(florin)
	state.writtenResources = parseWritten("configmaps/v1 widgets.new/v1 gadgets.old/v2<widgets.new")
	setMatcher(f.manager, convertingTo("Widget.old"))
	// An event reports when the target is up, so nothing is retried until then.
	if result, err := f.manager.Reconcile(t.Context(), florin); err != nil || !result.IsZero() {
		t.Errorf("got %+v, %v", result, err)
	}
	if got, want := formatWritten(state.writtenResources), "configmaps/v1 gadgets.old/v2<widgets.new widgets.new/v1"; got != want {
		t.Errorf("recorded was %s, now it is %s", want, got)
	}
	// Other resources are not delayed.
	if running := f.manager.running(florin); !slices.Equal(running, []string{"configmaps"}) {
		t.Errorf("only %v run", running)
	}
}

func TestFormsEqual(t *testing.T) {
	missing := []objectsync.UnavailableResource{{Kind: "Valve", Reason: plan.ReasonNotServed, Message: "m"}}
	one := resolvedAPIs{apis: targetsOf("widgets.new/v1", "widgets.old/v2"), unresolved: missing}
	for name, test := range map[string]struct {
		other resolvedAPIs
		want  bool
	}{
		"the same":          {resolvedAPIs{apis: slices.Clone(one.apis), unresolved: slices.Clone(missing)}, true},
		"another version":   {resolvedAPIs{apis: targetsOf("widgets.new/v1", "widgets.old/v3"), unresolved: missing}, false},
		"one less":          {resolvedAPIs{apis: one.apis[:1], unresolved: missing}, false},
		"all is served now": {resolvedAPIs{apis: one.apis}, false},
		"nothing is known":  {resolvedAPIs{}, false},
	} {
		if got := one.equal(objectsync.Options{TargetAPIs: test.other.apis, UnresolvedKinds: test.other.unresolved}); got != test.want {
			t.Errorf("%s: want %v, got %v", name, test.want, got)
		}
	}
}

// A running controller keeps a former form until it has observed that the form is empty.
func TestLeftoversOfARunningController(t *testing.T) {
	f := newFixture(t)
	state, _ := f.manager.get(florin)
	state.writtenResources = parseWritten("widgets.old/v2<widgets.new gadgets.old/v2<widgets.new")
	known := []plan.TargetAPI{
		{GroupVersionResource: widgets().GroupVersionResource, Kind: "Widget"},
		{GroupVersionResource: schema.GroupVersionResource{Group: "old", Version: "v2", Resource: "widgets"}, Kind: "Widget"},
	}
	pass := f.manager.newPass(state)
	pass.startController(widgets(), resolvedAPIs{apis: known})
	left := pass.formerTargets(widgets(), resolvedAPIs{apis: known[:1]})
	want := []plan.TargetAPI{
		{GroupVersionResource: schema.GroupVersionResource{Group: "old", Version: "v2", Resource: "gadgets"}},
		known[1],
	}
	if !slices.Equal(left, want) {
		t.Errorf("want %v, got %v", want, left)
	}
}
