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
	"fmt"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"github.com/synchub-dev/synchub/controllers/objectsync/plan"
	"github.com/synchub-dev/synchub/controllers/objectsync/plan/health"
	"github.com/synchub-dev/synchub/controllers/objectsync/plan/ownership"
)

// A copy is in sync with the mark that it had in the last pass that succeeded; a failed pass does not change that.
func TestMarkedStates(t *testing.T) {
	states := newKeyStates(clock.RealClock{})
	key := types.NamespacedName{Name: "till"}
	withMark := func(mark string) *plan.Snapshot {
		object := &unstructured.Unstructured{Object: map[string]any{}}
		object.SetUID("uid")
		if mark != "" {
			object.SetAnnotations(map[string]string{ownership.MarkAnnotation: mark})
		}
		return &plan.Snapshot{Source: object, Down: &plan.DownSnapshot{State: plan.InSync}}
	}
	decided := func(action plan.Action, cause plan.Cause) outcome {
		return outcome{decision: plan.Decision{Action: action, Cause: cause}}
	}
	for _, step := range []struct {
		name    string
		mark    string
		down    outcome
		err     error
		changed bool
		want    markedState
		known   bool
	}{
		{"a user's object", "", decided(plan.Create, plan.Missing), nil, false, markedState{}, false},
		{"a copy that is refused", "one", decided(plan.Create, plan.Missing), errors.New("no"), true, markedState{}, true},
		{"a copy that is created", "one", decided(plan.Create, plan.Missing), nil, true, markedState{synced: Version{UID: "uid", Mark: "one"}}, true},
		{"nothing to do", "one", decided(plan.None, plan.InSync), nil, false, markedState{synced: Version{UID: "uid", Mark: "one"}}, true},
		{"an edit that is refused", "two", decided(plan.Apply, plan.Changed), errors.New("no"), false, markedState{synced: Version{UID: "uid", Mark: "one"}}, true},
		{"a pass that comes too late", "two", outcome{decision: plan.Decision{Action: plan.Apply}, stale: true}, nil, false, markedState{synced: Version{UID: "uid", Mark: "one"}}, true},
		{"an edit that is applied", "two", decided(plan.Apply, plan.Changed), nil, true, markedState{synced: Version{UID: "uid", Mark: "two"}}, true},
		{"upsync takes precedence", "two", decided(plan.None, plan.ExcludedByUpsync), nil, true, markedState{synced: Version{UID: "uid", Mark: "two"}, excluded: true}, true},
		{"it is released", "", decided(plan.None, plan.InSync), nil, true, markedState{}, false},
	} {
		result := step.down
		result.marked = newMarkedOutcome(withMark(step.mark), step.down, step.err)
		changed := states.recordMarked(key, result)
		got, _, known := states.markedState(key)
		if changed != step.changed || got != step.want || known != step.known {
			t.Errorf("%s: changed %v, %+v, %v", step.name, changed, got, known)
		}
	}
	states.recordMarked(key, outcome{marked: markedOutcome{version: Version{UID: "uid", Mark: "three"}, synced: true}})
	if changed := states.recordMarked(key, outcome{unreadable: true}); changed {
		t.Error("a mailbox that cannot be read changes what is known")
	}
}

// The states of all copies can be listed. A copy that was made again with the same content is not taken for synced.
func TestCopies(t *testing.T) {
	h := newHub(t, []plan.Resource{resourceNamed(t, configMapsV1, "{}")}, configMapsTravel)
	copied := func(name, mark string) *unstructured.Unstructured {
		h.put(configMapsV1, h.withNamespace(fmt.Sprintf("{apiVersion: v1, kind: ConfigMap, metadata: {namespace: NS, name: %s, annotations: {%s: %s}}, data: {x: y}}", name, ownership.MarkAnnotation, mark)))
		return h.get(configMapsV1, h.namespace, name)
	}
	key := types.NamespacedName{Namespace: h.namespace, Name: "till"}
	till := VersionOf(copied("till", "one"))
	h.put(configMapsV1, h.withNamespace("{apiVersion: v1, kind: ConfigMap, metadata: {namespace: NS, name: users}}"))
	controller := h.running()[0]
	h.until("the copy is synced", func() bool {
		state, known := controller.ObjectState(key, till)
		return known && state.Synced
	})
	h.until("the copy is listed", func() bool {
		copies := controller.Copies()
		return len(copies) == 1 && copies[0].Key == key && copies[0].Resource == configMapsV1 && copies[0].Version == till && copies[0].State.Synced && copies[0].State.Health.Status == health.Current
	})
	for name, version := range map[string]Version{"no version": {}, "another mark": {till.UID, "two"}, "a copy that was made again": {"other", till.Mark}} {
		if state, known := controller.ObjectState(key, version); !known || state.Synced {
			t.Errorf("%s is synced", name)
		}
	}
	put(t, h.withNamespace("{apiVersion: v1, kind: ConfigMap, metadata: {namespace: NS, name: taken}}"))
	copied("taken", "one")
	h.until("a copy that fails is listed", func() bool {
		return slices.ContainsFunc(controller.Copies(), func(c Copy) bool {
			return c.Key.Name == "taken" && c.Version == Version{} && !c.State.Synced && c.State.Failure != nil && c.State.Failure.Reason == ReasonConflict
		})
	})
	h.drop(configMapsV1, h.namespace, "till")
	h.until("a copy that is gone is not listed", func() bool { return len(controller.Copies()) == 1 })
}
