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

package placement

import (
	"testing"
	"time"

	"github.com/kcp-dev/logicalcluster/v3"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/synchub-dev/synchub/controllers/placement/rules"
	"github.com/synchub-dev/synchub/controllers/plan"
	"github.com/synchub-dev/synchub/provider/mailboxes"
)

// A copy is withdrawn only if it is certain why it is no longer desired.
func TestWithdrawal(t *testing.T) {
	t.Parallel()
	selected := []*resolvedPlacement{{Placement: &rules.Placement{}}}
	arrived := &pair{desired: true, placed: true, syncStatus: &syncStatus{synced: true}}
	for name, c := range map[string]struct {
		object         object
		certain, other plan.State
	}{
		"the source is gone":        {object{absence: plan.SourceNotFound}, plan.SourceNotFound, plan.SourceNotFound},
		"somebody deletes it":       {object{absence: plan.Terminating}, plan.Deselected, plan.Deselected},
		"no placement selects it":   {object{absence: plan.Deselected}, plan.Deselected, ""},
		"it has moved":              {object{selectedBy: selected, pairs: map[logicalcluster.Name]*pair{"m": arrived}}, plan.Deselected, ""},
		"it is moving":              {object{selectedBy: selected, pairs: map[logicalcluster.Name]*pair{"m": {desired: true}}}, "", ""},
		"it has no destination now": {object{selectedBy: selected}, plan.Deselected, ""},
	} {
		if got := c.object.withdrawal(true); got != c.certain {
			t.Errorf("%s: %q", name, got)
		}
		if got := c.object.withdrawal(false); got != c.other {
			t.Errorf("%s, and that is not certain: %q", name, got)
		}
	}
}

func TestMustSelectFirst(t *testing.T) {
	t.Parallel()
	selected := []*resolvedPlacement{{Placement: &rules.Placement{}}}
	for name, c := range map[string]struct {
		object                    object
		withSource, withoutSource bool
	}{
		"not selected yet":        {object{}, true, true},
		"selected":                {object{selectedBy: selected}, false, false},
		"the source was gone":     {object{absence: plan.SourceNotFound}, true, false},
		"somebody deletes it":     {object{absence: plan.Terminating}, false, false},
		"no placement selects it": {object{absence: plan.Deselected}, false, false},
	} {
		if got := c.object.mustSelect(true); got != c.withSource {
			t.Errorf("%s, with a source: %v", name, got)
		}
		if got := c.object.mustSelect(false); got != c.withoutSource {
			t.Errorf("%s, without a source: %v", name, got)
		}
	}
}

// After kcp went back to an earlier state, nothing is removed, and no content is overwritten.
func TestLosesState(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		action plan.Action
		cause  plan.Cause
		want   bool
	}{
		{plan.Delete, "", true}, {plan.Release, "", true}, {plan.VerifyAbsence, "", true}, {plan.Update, plan.Changed, true},
		{plan.Update, plan.Drifted, false}, {plan.Create, "", false}, {plan.None, "", false},
	} {
		if got := losesState(plan.Decision{Action: c.action, Cause: c.cause}); got != c.want {
			t.Errorf("%v, %v: %v", c.action, c.cause, got)
		}
	}
}

// What a user sees decides about reports, and what a copy contains about the status of its source.
func TestPassResults(t *testing.T) {
	t.Parallel()
	refused := func(message string) *failure { return &failure{plan.ReasonInvalid, message} }
	placed := passResult{placed: true}
	for name, c := range map[string]struct {
		before, next         passResult
		equal, changesNoCopy bool
	}{
		"nothing":             {placed, placed, true, true},
		"the same failure":    {passResult{failure: refused("a")}, passResult{failure: refused("a")}, true, true},
		"another message":     {passResult{failure: refused("a")}, passResult{failure: refused("b")}, false, false},
		"placed":              {passResult{}, placed, false, false},
		"the rollout ends":    {passResult{waiting: true}, passResult{}, false, false},
		"the failure is over": {passResult{failure: refused("a")}, passResult{}, false, false},
		"a cluster has it":    {placed, passResult{placed: true, syncStatus: &syncStatus{synced: true}}, false, true},
	} {
		if got := c.before.equal(c.next); got != c.equal {
			t.Errorf("%s: equal is %v", name, got)
		}
		if got := !c.before.changesCopy(c.next); got != c.changesNoCopy {
			t.Errorf("%s: changesCopy is %v", name, !got)
		}
	}
}

// The placements of a workspace are resolved again after a change of a spec, and not after the hub's own status writes.
func TestChangesOfPlacements(t *testing.T) {
	t.Parallel()
	changed := func(generation int64) *unstructured.Unstructured {
		object := sourceObject()
		object.SetGeneration(generation)
		return object
	}
	deleted := changed(2)
	deleted.SetDeletionTimestamp(&metav1.Time{Time: time.Unix(0, 0)})
	for name, c := range map[string]struct {
		event mailboxes.Event
		want  bool
	}{
		"new":             {mailboxes.Event{New: changed(1)}, true},
		"gone":            {mailboxes.Event{Old: changed(1)}, true},
		"the spec":        {mailboxes.Event{Old: changed(1), New: changed(2)}, true},
		"the status":      {mailboxes.Event{Old: changed(2), New: changed(2)}, false},
		"deleted":         {mailboxes.Event{Old: changed(2), New: deleted}, true},
		"read completely": {mailboxes.Event{Old: changed(2), New: changed(2), ProjectionOnly: true}, true},
	} {
		if got := changesPlacement(c.event); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func TestNamesOfConfigs(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]configKey{ConfigName: {mailbox: "m"}, ConfigName + "-team": {"m", "team"}} {
		if got, ok := configKeyOf("m", name); !ok || got != want || got.name() != name {
			t.Errorf("%s: %+v", name, got)
		}
	}
	for _, name := range []string{"mine", "placements", "the-" + ConfigName} {
		if key, ok := configKeyOf("m", name); ok {
			t.Errorf("%s is the hub's: %+v", name, key)
		}
	}
}
