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

package objectsync

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"k8s.io/utils/clock"
	"sigs.k8s.io/yaml"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/controllers/plan"
	"github.com/synchub-dev/synchub/controllers/plan/ownership"
	"github.com/synchub-dev/synchub/controllers/plan/selection"
	"github.com/synchub-dev/synchub/controllers/plan/transform"
	"github.com/synchub-dev/synchub/test/fixtures"
	"github.com/synchub-dev/synchub/test/framework/suite"
)

// selectingFixtures is the spec of a SyncerConfig that selects the fixtures, and other objects.
const selectingFixtures = `
namespaceScope:
  namespaces: [shop, tools]
  resources:
  - {group: "", resource: configmaps}
  - {group: "", resource: secrets}
  - {group: apps, resource: deployments, labelSelector: {matchLabels: {app.kubernetes.io/managed-by: kustomize}}}
namespacedObjects:
- {group: apps, resource: deployments, objectsByNamespace: [{namespace: tools, names: [scanner, mailer]}]}
upsync:
- {apiGroup: "", resources: [configmaps], namespaces: [reports], names: ["*"]}
`

// steps returns the steps of a pass for a fixture that is in sync, by name. No step has side effects.
func steps(tb testing.TB, kind fixtures.Fixture) map[string]func() {
	tb.Helper()
	resource := resourceOfKind(kind)
	down := transform.Down{
		Owner: testOwner, Mailbox: "mailbox", SyncTarget: "florin", Resource: kind.Resource.GroupResource(), Namespaced: true,
		Hasher: ownership.NewHasher([]byte("key")),
	}
	up := transform.Up{
		Owner: testOwner, Mailbox: "mailbox", SyncTarget: "florin", Resource: kind.Resource.GroupResource(), Namespaced: true,
		Version: kind.Resource.Version, Kind: kind.Kind, Hasher: down.Hasher,
	}
	options := &Options{Resource: resource, Owner: testOwner, Mailbox: "mailbox", Clock: clock.RealClock{}, OnChange: func() {}}
	view := newTargetView(options)
	writer := &mailboxWriter{resource: &resource, planner: &plan.Planner{Resource: resource, Down: down}, reporter: &reporter{}}
	matcher := matcherOf(tb, selectingFixtures)
	source := kind.MailboxObject(tb)
	spec := resource.DownSpec(ownership.PolicyDelete, nil)
	desired := must(down.Desired(source, spec))(tb)
	below := kind.TargetObject(tb, testFieldManager, desired.Object)
	kept := must(view.cachedCopyOf(below, verifiedMark{}))(tb)
	observed := kept.observed
	if decision := must(plan.DecideDown(plan.SourceState{State: plan.Selected, Desired: desired}, observed, nil))(tb); decision.Cause != plan.InSync {
		tb.Fatalf("the fixture is not in sync: %v", decision)
	}
	mark := testOwner.Seal(desired.Mark)
	return map[string]func(){
		"select":              func() { _, _ = resource.Selects(matcher, source) },
		"check downsync":      func() { _ = plan.WhyNotDownsynced(testOwner, source) },
		"transform down":      func() { _, _ = down.Desired(source, spec) },
		"transform up":        func() { _, _ = up.Desired(below, kind.Resource.GroupResource(), spec) },
		"hash":                func() { _, _ = down.Hasher.Hash(desired.Object.Object) },
		"seal the mark":       func() { _ = testOwner.Seal(desired.Mark) },
		"parse the mark":      func() { _, _ = ownership.ParseMark(mark) },
		"enter the cache":     func() { _, _ = view.cachedCopyOf(below, verifiedMark{}) },
		"change in the cache": func() { _, _ = view.cachedCopyOf(below, kept.verifiedMark()) },
		"index":               func() { _, _ = view.indexBySource(kept) },
		"find unowned paths":  func() { _, _ = ownership.UnownedPaths(desired.Object.Object, observed.AppliedFields) },
		"decide": func() {
			_, _ = plan.DecideDown(plan.SourceState{State: plan.Selected, Desired: desired}, observed, nil)
		},
		"compare the status": func() {
			_, _ = writer.writeStatus(tb.Context(), keyOf(source), source, plan.StatusReturn{OnTarget: kept.Unstructured, Applied: true})
		},
	}
}

// resourceOfKind returns the resource of a fixture with a PublishedResource without options.
func resourceOfKind(kind fixtures.Fixture) plan.Resource {
	return plan.Resource{
		PublishedResource: kind.Resource.Resource, GroupVersionResource: kind.Resource, Kind: kind.Kind, Namespaced: true, Exported: true,
		StatusReturn: true, StatusSubresource: kind == fixtures.Deployment,
	}
}

// must returns the result, or fails the test on an error.
func must[T any](result T, err error) func(testing.TB) T {
	return func(tb testing.TB) T {
		tb.Helper()
		if err != nil {
			tb.Fatal(err)
		}
		return result
	}
}

// matcherOf compiles the spec of one SyncerConfig.
func matcherOf(tb testing.TB, spec string) *selection.Matcher {
	tb.Helper()
	config := &edgev2alpha1.SyncerConfig{}
	config.Name = "the-one"
	config.Spec = fixtures.Decode[edgev2alpha1.SyncerConfigSpec](tb, spec)
	return selection.Compile([]*edgev2alpha1.SyncerConfig{config}, nil)
}

// maxAllocations is the maximum number of allocations of each step, for each fixture: 10 % above the number with the race
// detector, under which pools drop values. A change that exceeds a bound makes each event more expensive. After a change that
// stays far below a bound, lower the bound.
var maxAllocations = map[string][2]float64{
	"change in the cache": {57, 440},
	"check downsync":      {0, 0},
	"compare the status":  {2, 80},
	"decide":              {43, 275},
	"enter the cache":     {83, 468},
	"find unowned paths":  {43, 275},
	"hash":                {66, 410},
	"index":               {2, 2},
	"parse the mark":      {27, 29},
	"reconcile":           {167, 904},
	"seal the mark":       {5, 5},
	"select":              {3, 3},
	"transform down":      {103, 605},
	"transform up":        {100, 675},
}

// TestAllocations gives the same result on every machine, because it measures no time. BenchmarkSteps with -memprofile shows where
// the allocations are.
func TestAllocations(t *testing.T) {
	for i, kind := range fixtures.All() {
		all := steps(t, kind)
		all["reconcile"] = reconcileInSync(t, kind)
		for _, name := range slices.Sorted(maps.Keys(all)) {
			if made := allocations(all[name]); made > maxAllocations[name][i] {
				t.Errorf("%q of a %s makes %v allocations, %v at most are allowed", name, kind.Kind, made, maxAllocations[name][i])
			}
		}
	}
}

// allocations returns the number of allocations of a function: the minimum of many runs. A run also counts the allocations of
// other goroutines, and of pools, which drop every fourth value under the race detector.
func allocations(run func()) float64 {
	least := testing.AllocsPerRun(5, run)
	for range 40 {
		least = min(least, testing.AllocsPerRun(5, run))
	}
	return least
}

func BenchmarkSteps(b *testing.B) {
	for _, kind := range fixtures.All() {
		all := steps(b, kind)
		for _, name := range slices.Sorted(maps.Keys(all)) {
			b.Run(name+"/"+kind.Kind, func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					all[name]()
				}
			})
		}
	}
}

// BenchmarkReconcileInStep measures a pass for a key in sync: the cost of an event without a change.
func BenchmarkReconcileInStep(b *testing.B) {
	for _, kind := range fixtures.All() {
		b.Run(kind.Kind, func(b *testing.B) {
			reconcile := reconcileInSync(b, kind)
			b.ReportAllocs()
			for b.Loop() {
				reconcile()
			}
		})
	}
}

// reconcileInSync returns a function that reconciles a fixture in sync with a real target.
func reconcileInSync(tb testing.TB, kind fixtures.Fixture) (reconcile func()) {
	tb.Helper()
	resource := resourceOfKind(kind)
	h := newHub(tb, []plan.Resource{resource}, strings.ReplaceAll(selectingFixtures, "shop", "NS"))
	source := kind.MailboxObject(tb)
	source.SetNamespace(h.namespace)
	manifest := must(yaml.Marshal(source.Object))(tb)
	h.put(kind.Resource, string(manifest))
	controller := h.controllers[kind.Resource]
	suite.WaitUntil(tb, "the fixture is in sync", func() bool {
		return must(controller.runPass(tb.Context(), keyOf(source)))(tb).decision.Cause == plan.InSync
	})
	ctx := tb.Context()
	return func() { _, _ = controller.Reconcile(ctx, keyOf(source)) }
}
