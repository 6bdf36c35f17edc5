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
	"errors"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/synchub-dev/synchub/controllers/plan"
	"github.com/synchub-dev/synchub/controllers/plan/ownership"
)

// A copy is in sync with the mark that it had in the last successful pass. A failed pass does not change that.
func TestMarkedStates(t *testing.T) {
	states := &syncStatuses{states: map[types.NamespacedName]recordedStatus{}}
	key := types.NamespacedName{Name: "till"}
	withMark := func(mark string) *plan.Snapshot {
		object := &unstructured.Unstructured{Object: map[string]any{}}
		object.SetUID("uid")
		if mark != "" {
			object.SetAnnotations(map[string]string{ownership.MarkAnnotation: mark})
		}
		return &plan.Snapshot{InMailbox: object, Down: &plan.DownSnapshot{State: plan.Selected}}
	}
	decided := func(action plan.Action, cause plan.Cause) outcome {
		return outcome{decision: plan.Decision{Action: action, Cause: cause}}
	}
	gone, stuck := &plan.Snapshot{Down: &plan.DownSnapshot{State: plan.SourceNotFound}}, &cannotWithdrawError{"user", "team", errors.New("no")}
	for _, step := range []struct {
		name    string
		mark    string
		down    outcome
		err     error
		changed bool
		want    recordedStatus
		known   bool
	}{
		{"a user's object", "", decided(plan.Create, plan.Missing), nil, false, recordedStatus{}, false},
		{"a copy that is refused", "one", decided(plan.Create, plan.Missing), errors.New("no"), true, recordedStatus{}, true},
		{"a copy that is created", "one", decided(plan.Create, plan.Missing), nil, true, recordedStatus{synced: CopyVersion{UID: "uid", Mark: "one"}}, true},
		{"nothing to do", "one", decided(plan.None, plan.InSync), nil, false, recordedStatus{synced: CopyVersion{UID: "uid", Mark: "one"}}, true},
		{"an edit that is refused", "two", decided(plan.Apply, plan.Changed), errors.New("no"), false, recordedStatus{synced: CopyVersion{UID: "uid", Mark: "one"}}, true},
		{"a pass with an outdated object", "two", outcome{decision: plan.Decision{Action: plan.Apply}, outdated: true}, nil, false, recordedStatus{synced: CopyVersion{UID: "uid", Mark: "one"}}, true},
		{"an edit that is applied", "two", decided(plan.Apply, plan.Changed), nil, true, recordedStatus{synced: CopyVersion{UID: "uid", Mark: "two"}}, true},
		{"upsync takes precedence", "two", decided(plan.None, plan.ExcludedByUpsync), nil, true, recordedStatus{synced: CopyVersion{UID: "uid", Mark: "two"}, excluded: true}, true},
		{"the mark is removed", "", decided(plan.None, plan.InSync), nil, true, recordedStatus{}, false},
		{"a copy again", "one", decided(plan.Create, plan.Missing), nil, true, recordedStatus{synced: CopyVersion{UID: "uid", Mark: "one"}}, true},
		{"a copy that is gone, and cannot be withdrawn", "gone", decided(plan.Delete, plan.Cause(plan.SourceNotFound)), stuck, true, recordedStatus{workspace: "team"}, true},
		{"the absence is verified again", "gone", decided(plan.VerifyAbsence, plan.Cause(plan.SourceNotFound)), nil, false, recordedStatus{workspace: "team"}, true},
		{"it is withdrawn", "gone", decided(plan.Delete, plan.Cause(plan.SourceNotFound)), nil, true, recordedStatus{}, false},
		{"a copy of nobody cannot be withdrawn", "gone", decided(plan.Delete, plan.Cause(plan.SourceNotFound)), &cannotWithdrawError{err: errors.New("no")}, false, recordedStatus{}, false},
	} {
		snapshot := withMark(step.mark)
		if step.mark == "gone" {
			snapshot = gone
		}
		changed := states.update(key, newSyncStatusOutcome(snapshot, step.down, step.err))
		got, known := states.get(key)
		if changed != step.changed || got != step.want || known != step.known {
			t.Errorf("%s: changed %v, %+v, %v", step.name, changed, got, known)
		}
	}
}
