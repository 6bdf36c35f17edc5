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

package syncerconfig

import (
	"reflect"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/controllers/objectsync"
	"github.com/synchub-dev/synchub/controllers/plan"
	"github.com/synchub-dev/synchub/controllers/plan/selection"
	"github.com/synchub-dev/synchub/controllers/syncmanager"
)

// A config is not Ready while the hub syncs nothing. The counts stay, and the message reports that they are
// older.
func TestNotSyncedStatus(t *testing.T) {
	inStep := NextStatus(ObservedConfig{Summary: &objectsync.ConfigSummary{Selected: 2, Synced: 2}, Selects: true, Generation: 3}, edgev2alpha1.SyncerConfigStatus{})
	halt := syncmanager.NotSynced{SyncTarget: "florin", Mailbox: "m", Reason: "TargetUnreachable"}
	got := notSyncedStatus(halt, 4, inStep)
	ready := meta.FindStatusCondition(got.Conditions, edgev2alpha1.ConditionReady)
	want := "Nothing is synced now: SyncerReady of the SyncTarget florin is not True (TargetUnreachable). The counts and objects in this status are older."
	if ready.Status != metav1.ConditionFalse || ready.Reason != ReasonNotSynced || ready.Message != want || ready.ObservedGeneration != 4 {
		t.Errorf("got %+v", ready)
	}
	if got.Selected != 2 || got.Synced != 2 || got.ObservedGeneration != 3 {
		t.Errorf("the counts are %+v", got)
	}
	if again := notSyncedStatus(halt, 4, got); !reflect.DeepEqual(got, again) {
		t.Errorf("it is written again: %+v", again)
	}
}

func TestDecodeStatus(t *testing.T) {
	for _, kind := range []string{"SyncerConfig", "EdgeSyncConfig"} {
		got, err := decodeStatus(&unstructured.Unstructured{Object: map[string]any{"kind": kind, "status": map[string]any{"selected": int64(2)}}})
		if err != nil || got.Selected != 2 {
			t.Errorf("%s: got %+v, %v", kind, got, err)
		}
	}
	if got, err := decodeStatus(&unstructured.Unstructured{Object: map[string]any{}}); err != nil || got.Selected != 0 {
		t.Errorf("without a status: got %+v, %v", got, err)
	}
}

// An entry is reported as not visible, or its initial sync as pending, only if it names such a resource.
func TestHiddenEntries(t *testing.T) {
	published := func(name, kind string) plan.Resource {
		return plan.Resource{GroupVersionResource: schema.GroupVersionResource{Version: "v1", Resource: name}, Kind: kind, Namespaced: true}
	}
	supply := Availability{
		Published:          []plan.Resource{published("configmaps", "ConfigMap"), published("secrets", "Secret"), published("pods", "Pod")},
		Hidden:             map[schema.GroupResource]string{{Resource: "secrets"}: "no claim"},
		InitialSyncPending: map[schema.GroupResource]bool{{Resource: "pods"}: true},
	}
	if !supply.isIncomplete() || (Availability{Hidden: map[schema.GroupResource]string{}}).isIncomplete() {
		t.Error("it is looked at again although all is seen, or not although it is not")
	}
	for _, up := range []bool{false, true} {
		for name, test := range map[string]struct{ hidden, unfinished bool }{
			"configmaps": {}, "secrets": {hidden: true}, "pods": {unfinished: true}, "*": {true, true},
		} {
			entries := []selection.Entry{{Field: "spec.x", Resource: name, Up: up}}
			unavailable := supply.UnavailableEntries(entries, nil)
			if hidden := len(unavailable) == 1 && unavailable[0] == (UnavailableEntry{Field: "spec.x", Resource: "secrets", Reason: ReasonNotVisible, Message: "no claim"}); hidden != test.hidden || !hidden && len(unavailable) > 0 {
				t.Errorf("%s, up %v: got %v", name, up, unavailable)
			}
			if got := supply.IsInitialSyncPending(entries, nil); got != test.unfinished {
				t.Errorf("%s, up %v: unfinished %v", name, up, got)
			}
		}
	}
}

// A hub that was just started has not listed the mailbox yet. It reports that only if it lasts, or if another
// cause is known.
func TestFirstListHidesNoConfig(t *testing.T) {
	group := schema.GroupResource{Resource: "configmaps"}
	for name, test := range map[string]struct {
		unreadable                string
		firstPassDone, keepCounts bool
		hidden, pending           bool
	}{
		"listed and tried":                  {firstPassDone: true},
		"listed, not tried":                 {pending: true},
		"not listed, after a start":         {unreadable: objectsync.NotListedReason, keepCounts: true, pending: true},
		"not listed, for long":              {unreadable: objectsync.NotListedReason, hidden: true},
		"not listed any more":               {unreadable: objectsync.NotListedReason, firstPassDone: true, keepCounts: true, hidden: true},
		"no claim, after a start":           {unreadable: "no claim", keepCounts: true, hidden: true},
		"no claim, after it had been tried": {unreadable: "no claim", firstPassDone: true, hidden: true},
	} {
		t.Run(name, func(t *testing.T) {
			availability := Availability{Hidden: map[schema.GroupResource]string{}, InitialSyncPending: map[schema.GroupResource]bool{}}
			availability.setVisibility(group, test.unreadable, test.firstPassDone, test.keepCounts)
			if _, hidden := availability.Hidden[group]; hidden != test.hidden || availability.InitialSyncPending[group] != test.pending {
				t.Errorf("got %+v", availability)
			}
		})
	}
}
