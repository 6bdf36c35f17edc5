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

package drift

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/controllers/plan"
)

func failureOf(name, reason string, differences ...edgev2alpha1.FieldDifference) edgev2alpha1.ObjectFailure {
	return edgev2alpha1.ObjectFailure{Resource: "configmaps", Namespace: "shop", Name: name, Reason: reason, Differences: differences}
}

var (
	differing = edgev2alpha1.FieldDifference{Path: ".data.a", Managers: []string{"kubectl-edit", "x"}, Desired: `"x"`, Observed: "\"\x1b[31m\""}
	absent    = edgev2alpha1.FieldDifference{Path: ".data.b", Desired: `"y"`}
)

// expectLines fails the test unless the report is printed with these lines; the words of a line are separated by single spaces.
func expectLines(t *testing.T, report *Report, isWide bool, want ...string) {
	t.Helper()
	report.sort()
	var out bytes.Buffer
	if err := report.print(&out, isWide); err != nil {
		t.Fatal(err)
	}
	var got []string
	for line := range strings.Lines(out.String()) {
		got = append(got, strings.Join(strings.Fields(line), " "))
	}
	if !slices.Equal(got, want) {
		t.Errorf("want %q\ngot  %q", want, got)
	}
}

func TestDriftOfPlacements(t *testing.T) {
	placement := &edgev2alpha1.EdgePlacement{}
	placement.Name = "shop"
	placement.Status.Failed = 5
	placement.Status.Failures = []edgev2alpha1.PlacementPair{
		{SyncTarget: "guilder", ObjectFailure: failureOf("settings", plan.ReasonDrifted, differing, absent), ClusterNamespace: "t-shop"},
		{SyncTarget: "florin", ObjectFailure: failureOf("settings", plan.ReasonAdoptionReported)},
		{SyncTarget: "florin", ObjectFailure: failureOf("other", plan.ReasonConflict)},
		{SyncTarget: "florin", ObjectFailure: failureOf("web", "Unhealthy")},
	}
	report := &Report{}
	report.addPlacement(placement)
	expectLines(t, report, false,
		"OBJECT SYNCTARGET FIELD MANAGER DESIRED OBSERVED",
		"configmaps shop/settings florin - - - -",
		`configmaps shop/settings guilder .data.a kubectl-edit,x "x" "\x1b[31m"`,
		`configmaps shop/settings guilder .data.b - "y" -`,
		"", "The hub only counts 2 more failures. Some of these may differ too.",
	)
	report.Unlisted = 0
	expectLines(t, report, true,
		"OBJECT SYNCTARGET FIELD MANAGER DESIRED OBSERVED REASON PLACEMENT CLUSTER NAMESPACE",
		"configmaps shop/settings florin - - - - AdoptionReported shop -",
		`configmaps shop/settings guilder .data.a kubectl-edit,x "x" "\x1b[31m" Drifted shop t-shop`,
		`configmaps shop/settings guilder .data.b - "y" - Drifted shop t-shop`,
	)
}

// Objects are sorted by cluster, resource, namespace, name and EdgePlacement, and each EdgePlacement counts its own failures.
func TestDriftOfSeveralPlacements(t *testing.T) {
	inNamespace := func(namespace, name string) edgev2alpha1.ObjectFailure {
		failure := failureOf(name, plan.ReasonDrifted)
		failure.Namespace = namespace
		return failure
	}
	report := &Report{}
	for _, one := range []struct {
		name   string
		failed int64
		pairs  []edgev2alpha1.PlacementPair
	}{
		{"web", 3, []edgev2alpha1.PlacementPair{{SyncTarget: "florin", ObjectFailure: inNamespace("shop", "a")}, {SyncTarget: "florin", ObjectFailure: inNamespace("bar", "b")}}},
		{"shop", 2, []edgev2alpha1.PlacementPair{{SyncTarget: "florin", ObjectFailure: inNamespace("shop", "a")}}},
		// The counts are older than the list.
		{"late", 0, []edgev2alpha1.PlacementPair{{SyncTarget: "ducat", ObjectFailure: inNamespace("shop", "z")}}},
	} {
		placement := &edgev2alpha1.EdgePlacement{}
		placement.Name, placement.Status.Failed, placement.Status.Failures = one.name, one.failed, one.pairs
		report.addPlacement(placement)
	}
	expectLines(t, report, true,
		"OBJECT SYNCTARGET FIELD MANAGER DESIRED OBSERVED REASON PLACEMENT CLUSTER NAMESPACE",
		"configmaps shop/z ducat - - - - Drifted late -",
		"configmaps bar/b florin - - - - Drifted web -",
		"configmaps shop/a florin - - - - Drifted shop -",
		"configmaps shop/a florin - - - - Drifted web -",
		"", "The hub only counts 2 more failures. Some of these may differ too.",
	)
}

// The configs of a mailbox have the values, and may list further objects.
func TestDriftOfSyncTargets(t *testing.T) {
	withoutValues := edgev2alpha1.FieldDifference{Path: ".data.a", Managers: []string{"kubectl-edit"}}
	syncTarget := &edgev2alpha1.SyncTarget{}
	syncTarget.Name = "florin"
	syncTarget.Status.Counts = &edgev2alpha1.TargetCounts{Failed: 2}
	syncTarget.Status.Failures = []edgev2alpha1.ObjectFailure{failureOf("one", plan.ReasonDrifted, withoutValues), failureOf("two", plan.ReasonDrifted, withoutValues)}
	report := &Report{}
	report.addSyncTarget(syncTarget, nil)
	expectLines(t, report, false,
		"OBJECT SYNCTARGET FIELD MANAGER DESIRED OBSERVED", "configmaps shop/one florin .data.a kubectl-edit - -", "configmaps shop/two florin .data.a kubectl-edit - -")
	configs := []edgev2alpha1.SyncerConfigStatus{
		{Failures: []edgev2alpha1.ObjectFailure{failureOf("one", plan.ReasonDrifted, absent), failureOf("taken", plan.ReasonConflict)}},
		{Failures: []edgev2alpha1.ObjectFailure{failureOf("one", plan.ReasonDrifted, absent)}},
	}
	report = &Report{}
	report.addSyncTarget(syncTarget, configs)
	expectLines(t, report, false,
		"OBJECT SYNCTARGET FIELD MANAGER DESIRED OBSERVED", `configmaps shop/one florin .data.b - "y" -`, "configmaps shop/two florin .data.a kubectl-edit - -")
	for name, c := range map[string]struct {
		failed int32
		reason string
		more   []edgev2alpha1.ObjectFailure
		want   int64
	}{
		"all are listed":                        {2, plan.ReasonDrifted, nil, 0},
		"a failure of another reason is listed": {2, plan.ReasonConflict, nil, 0},
		"one is not listed":                     {3, plan.ReasonConflict, nil, 1},
		"the configs list more":                 {4, plan.ReasonDrifted, []edgev2alpha1.ObjectFailure{failureOf("three", plan.ReasonDrifted)}, 1},
		"the counts are older than the lists":   {0, plan.ReasonDrifted, nil, 0},
	} {
		syncTarget.Status.Counts.Failed, syncTarget.Status.Failures[1].Reason = c.failed, c.reason
		report := &Report{}
		report.addSyncTarget(syncTarget, []edgev2alpha1.SyncerConfigStatus{{Failures: c.more}})
		if report.Unlisted != c.want {
			t.Errorf("%s: %d are not listed", name, report.Unlisted)
		}
	}
}
