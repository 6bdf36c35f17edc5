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

package syncerconfig_test

import (
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/controllers/objectsync"
	"github.com/synchub-dev/synchub/controllers/plan"
	"github.com/synchub-dev/synchub/controllers/plan/selection"
	"github.com/synchub-dev/synchub/controllers/syncerconfig"
)

func failure(group, resource, namespace, name string) objectsync.ObjectFailure {
	return objectsync.ObjectFailure{
		Resource: plan.Resource{GroupVersionResource: schema.GroupVersionResource{Group: group, Version: "v1", Resource: resource}},
		Key:      types.NamespacedName{Namespace: namespace, Name: name},
		Failure:  objectsync.Failure{Reason: plan.ReasonConflict, Message: name + " is taken"},
	}
}

// observedConfig returns the observed state of a config whose two objects are both in sync.
func observedConfig(change func(*syncerconfig.ObservedConfig)) syncerconfig.ObservedConfig {
	found := syncerconfig.ObservedConfig{Summary: &objectsync.ConfigSummary{Selected: 2, Synced: 2}, Selects: true, Generation: 3}
	change(&found)
	return found
}

// unpublished returns unavailable entries that name resources which are not published.
func unpublished(names ...string) (all []syncerconfig.UnavailableEntry) {
	for _, name := range names {
		all = append(all, syncerconfig.UnavailableEntry{Field: "spec." + name, Resource: name, Reason: syncerconfig.ReasonNotPublished})
	}
	return all
}

func TestStatus(t *testing.T) {
	problem := selection.Problem{Field: "spec.clusterScope[0].labelSelector", Message: "oops"}
	for name, test := range map[string]struct {
		findings syncerconfig.ObservedConfig
		// ready is the status and reason of the condition Ready, and message is a part of its message. otherTypes are the types
		// of the other conditions.
		ready, message string
		otherTypes     []string
	}{
		"in sync": {
			observedConfig(func(*syncerconfig.ObservedConfig) {}),
			"True InSync", "All selected objects", nil,
		},
		"in sync, except for ignored objects": {
			observedConfig(func(f *syncerconfig.ObservedConfig) {
				f.Summary.Synced, f.Summary.Deferred = 1, []objectsync.DeferredObject{{ObjectName: objectsync.ObjectName{
					Resource: schema.GroupResource{Group: "apps", Resource: "deployments"}, Key: types.NamespacedName{Namespace: "a", Name: "x"},
				}, Fields: []string{"spec.replicas"}}}
			}),
			"True LeftToTarget", "1 of 2 objects are in sync. Of the remaining ones the target keeps fields that ignoreFields no longer names, until the object changes in the mailbox: deployments.apps a/x (spec.replicas).", nil,
		},
		"of another version": {
			observedConfig(func(f *syncerconfig.ObservedConfig) {
				f.UnavailableEntries = []syncerconfig.UnavailableEntry{{Field: "spec.x", Resource: "gadgets", Reason: "VersionNotServed", Message: "v2 only."}}
			}),
			"False VersionNotServed", "Served by the target in other versions only: spec.x (gadgets): v2 only.", nil,
		},
		"syncing": {
			observedConfig(func(f *syncerconfig.ObservedConfig) { f.Summary.Synced = 1 }),
			"False Syncing", "1 of 2", nil,
		},
		"failed": {
			observedConfig(func(f *syncerconfig.ObservedConfig) {
				f.Summary.Synced, f.Summary.Failed, f.Summary.Failures = 1, 1, []objectsync.ObjectFailure{failure("", "configmaps", "a", "x")}
			}),
			"False ObjectsFailed", "1 of 2", nil,
		},
		"failed and suspended": {
			observedConfig(func(f *syncerconfig.ObservedConfig) { f.Summary.Failed, f.Suspended = 1, true }),
			"False ObjectsFailed", "1 of 2", []string{"Suspended"},
		},
		"suspended": {
			observedConfig(func(f *syncerconfig.ObservedConfig) { f.Suspended = true }),
			"False Suspended", "suspended", []string{"Suspended"},
		},
		"suspended and behind": {
			observedConfig(func(f *syncerconfig.ObservedConfig) { f.Suspended, f.Summary.Synced = true, 0 }),
			"False Suspended", "suspended", []string{"Suspended"},
		},
		"an entry with a problem": {
			observedConfig(func(f *syncerconfig.ObservedConfig) {
				f.Problems = []selection.Problem{problem, {Field: "x", Message: "y"}}
			}),
			"False InvalidEntry", "spec.clusterScope[0].labelSelector: oops", nil,
		},
		"a problem before all else": {
			observedConfig(func(f *syncerconfig.ObservedConfig) {
				f.Problems, f.UnavailableEntries, f.Suspended, f.Summary.Failed = []selection.Problem{problem}, unpublished("a"), true, 1
			}),
			"False InvalidEntry", "oops", []string{"Suspended"},
		},
		"not published": {
			observedConfig(func(f *syncerconfig.ObservedConfig) { f.UnavailableEntries = unpublished("a", "b") }),
			"False NotPublished", "Not published by the hub: spec.a (a); spec.b (b).", nil,
		},
		"not published and failed": {
			observedConfig(func(f *syncerconfig.ObservedConfig) { f.UnavailableEntries, f.Summary.Failed = unpublished("a"), 2 }),
			"False NotPublished", "spec.a (a)", nil,
		},
		"not served": {
			observedConfig(func(f *syncerconfig.ObservedConfig) {
				f.UnavailableEntries = []syncerconfig.UnavailableEntry{{Field: "spec.a", Resource: "a", Reason: plan.ReasonNotServed, Message: "no such thing."}}
			}),
			"False NotServed", "Not served by the target: spec.a (a): no such thing.", nil,
		},
		"the worst shortfall first": {
			observedConfig(func(f *syncerconfig.ObservedConfig) {
				f.UnavailableEntries = append([]syncerconfig.UnavailableEntry{
					{Field: "spec.a", Resource: "a", Reason: plan.ReasonForbidden, Message: "you may not"},
					{Field: "spec.b", Resource: "b", Reason: plan.ReasonNotServed},
				}, unpublished("c")...)
				f.Suspended, f.Summary.Failed = true, 1
			}),
			"False NotPublished", "hub: spec.c (c). Not served by the target: spec.b (b). Not permitted on the target: spec.a (a): you may not.", []string{"Suspended"},
		},
		"not permitted and failed": {
			observedConfig(func(f *syncerconfig.ObservedConfig) {
				f.UnavailableEntries, f.Summary.Failed = []syncerconfig.UnavailableEntry{{Field: "spec.a", Resource: "a", Reason: plan.ReasonForbidden}}, 1
			}),
			"False Forbidden", "spec.a (a)", nil,
		},
		"more entries than a message names": {
			observedConfig(func(f *syncerconfig.ObservedConfig) {
				f.UnavailableEntries = unpublished("a", "b", "c", "d", "e", "f", "g")
			}),
			"False NotPublished", "spec.e (e); and 2 more.", nil,
		},
		"overruled": {
			observedConfig(func(f *syncerconfig.ObservedConfig) { f.Summary.Overruled = []objectsync.ObjectName{{}} }),
			"True InSync", "", []string{"Overlapping"},
		},
		"selects nothing": {
			observedConfig(func(f *syncerconfig.ObservedConfig) { f.Selects, f.Summary = false, nil }),
			"True InSync", "", []string{"SelectsNothing"},
		},
		"an entry selects nothing": {
			observedConfig(func(f *syncerconfig.ObservedConfig) { f.EmptyEntries = []string{"spec.clusterScope[1]"} }),
			"True InSync", "", []string{"SelectsNothing"},
		},
		"finds nothing": {
			observedConfig(func(f *syncerconfig.ObservedConfig) { f.Summary = nil }),
			"True InSync", "No existing object is selected by the config.", nil,
		},
		"not all was tried": {
			observedConfig(func(f *syncerconfig.ObservedConfig) { f.InitialSyncPending = true }),
			"False Syncing", "Not all selected objects have been tried yet.", nil,
		},
		"not all was tried, and some failed": {
			observedConfig(func(f *syncerconfig.ObservedConfig) { f.InitialSyncPending, f.Summary.Failed = true, 1 }),
			"False ObjectsFailed", "1 of 2", nil,
		},
		"everything": {
			observedConfig(func(f *syncerconfig.ObservedConfig) {
				f.Selects, f.Suspended, f.Summary = false, true, &objectsync.ConfigSummary{ExcludedByUpsync: []objectsync.ObjectName{{}}}
			}),
			"False Suspended", "", []string{"Overlapping", "SelectsNothing", "Suspended"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := syncerconfig.NextStatus(test.findings, edgev2alpha1.SyncerConfigStatus{})
			if otherTypes := checkConditions(t, got.Conditions); !slices.Equal(otherTypes, test.otherTypes) {
				t.Errorf("want the conditions %v in addition to Ready, got %v", test.otherTypes, otherTypes)
			}
			ready := meta.FindStatusCondition(got.Conditions, edgev2alpha1.ConditionReady)
			if ready == nil || string(ready.Status)+" "+ready.Reason != test.ready || !strings.Contains(ready.Message, test.message) {
				t.Errorf("want %s with %q, got %+v", test.ready, test.message, ready)
			}
			summary := test.findings.Summary
			if summary == nil {
				summary = &objectsync.ConfigSummary{}
			}
			if got.Selected != summary.Selected || got.Synced != summary.Synced || got.Failed != summary.Failed || len(got.Failures) != len(summary.Failures) || got.ObservedGeneration != 3 {
				t.Errorf("want the counts of %+v, got %+v", summary, got)
			}
		})
	}
}

// checkConditions checks that all conditions are complete, and returns their types except Ready.
func checkConditions(t *testing.T, conditions []metav1.Condition) (otherTypes []string) {
	t.Helper()
	for _, condition := range conditions {
		if condition.ObservedGeneration != 3 || condition.LastTransitionTime.IsZero() || condition.Reason == "" || condition.Message == "" {
			t.Errorf("the condition %s lacks something: %+v", condition.Type, condition)
		}
		if condition.Type == edgev2alpha1.ConditionReady {
			continue
		}
		otherTypes = append(otherTypes, condition.Type)
		if condition.Status != metav1.ConditionTrue {
			t.Errorf("the condition %s is %s", condition.Type, condition.Status)
		}
	}
	slices.Sort(otherTypes)
	return otherTypes
}

// The same observation changes nothing, and another one changes only the affected fields: no write without a cause.
func TestStatusAgain(t *testing.T) {
	long := metav1.NewTime(time.Unix(1000, 0))
	one := observedConfig(func(f *syncerconfig.ObservedConfig) { f.Summary.ExcludedByUpsync = []objectsync.ObjectName{{}} })
	current := syncerconfig.NextStatus(one, edgev2alpha1.SyncerConfigStatus{})
	current.LastSyncerHeartbeatTime = &long //nolint:staticcheck // deprecated, and left as it is
	for i := range current.Conditions {
		current.Conditions[i].LastTransitionTime = long
	}
	foreign := metav1.Condition{Type: "Foreign", Status: metav1.ConditionTrue, Reason: "Foreign", LastTransitionTime: long}
	current.Conditions = append(current.Conditions, foreign)
	before := current.DeepCopy()

	again := syncerconfig.NextStatus(one, current)
	if !reflect.DeepEqual(again, *before) || !reflect.DeepEqual(current, *before) {
		t.Errorf("want %+v\ngot  %+v", *before, again)
	}

	transitions := func(status edgev2alpha1.SyncerConfigStatus) map[string]bool {
		moved := map[string]bool{}
		for _, condition := range status.Conditions {
			moved[condition.Type] = condition.LastTransitionTime != long
		}
		return moved
	}
	for name, test := range map[string]struct {
		change func(*syncerconfig.ObservedConfig)
		want   map[string]bool
	}{
		"another generation": {
			func(f *syncerconfig.ObservedConfig) { f.Generation = 4 },
			map[string]bool{"Ready": false, "Overlapping": false, "Foreign": false},
		},
		"more objects": {
			func(f *syncerconfig.ObservedConfig) {
				f.Summary = &objectsync.ConfigSummary{Selected: 5, Synced: 5, ExcludedByUpsync: f.Summary.ExcludedByUpsync}
			},
			map[string]bool{"Ready": false, "Overlapping": false, "Foreign": false},
		},
		"no longer ready": {
			func(f *syncerconfig.ObservedConfig) {
				f.Summary = &objectsync.ConfigSummary{Selected: 5, Synced: 4, ExcludedByUpsync: f.Summary.ExcludedByUpsync}
			},
			map[string]bool{"Ready": true, "Overlapping": false, "Foreign": false},
		},
		"nothing overlaps any more": {
			func(f *syncerconfig.ObservedConfig) { f.Summary = &objectsync.ConfigSummary{Selected: 2, Synced: 2} },
			map[string]bool{"Ready": false, "Foreign": false},
		},
		"suspended in the meantime": {
			func(f *syncerconfig.ObservedConfig) { f.Suspended = true },
			map[string]bool{"Ready": true, "Overlapping": false, "Suspended": true, "Foreign": false},
		},
	} {
		changed := one
		test.change(&changed)
		if got := transitions(syncerconfig.NextStatus(changed, current)); !reflect.DeepEqual(got, test.want) {
			t.Errorf("%s: want the transitions %v, got %v", name, test.want, got)
		}
	}

	// Conditions of a temporary state are removed after that state.
	suspended := one
	suspended.Suspended, suspended.Selects = true, false
	back := syncerconfig.NextStatus(one, syncerconfig.NextStatus(suspended, current))
	for i := range back.Conditions {
		back.Conditions[i].LastTransitionTime = long
	}
	slices.SortFunc(back.Conditions, func(a, b metav1.Condition) int { return strings.Compare(b.Type, a.Type) })
	slices.SortFunc(before.Conditions, func(a, b metav1.Condition) int { return strings.Compare(b.Type, a.Type) })
	if !reflect.DeepEqual(back, *before) {
		t.Errorf("want %+v\ngot  %+v", *before, back)
	}
}

func TestCopiesThatCannotBeDeleted(t *testing.T) {
	for want, summary := range map[string]objectsync.ConfigSummary{
		"2 of 4 objects failed; see status.failures and the events on them.":                                                                          {Selected: 4, Failed: 2},
		"1 copy of deleted objects cannot be deleted from the cluster; see status.failures.":                                                          {Selected: 4, Synced: 4, Failed: 1, Undeleted: 1},
		"2 of 4 objects failed, and 1 copy of deleted objects cannot be deleted from the cluster; see status.failures and the events on the objects.": {Selected: 4, Failed: 3, Undeleted: 1},
	} {
		next := syncerconfig.NextStatus(syncerconfig.ObservedConfig{Selects: true, Summary: &summary}, edgev2alpha1.SyncerConfigStatus{})
		if ready := next.Conditions[0]; ready.Reason != syncerconfig.ReasonObjectsFailed || ready.Message != want {
			t.Errorf("got %+v", ready)
		}
	}
}

// Objects may be beyond several limits. The message names each limit, in a stable order.
func TestObjectsBeyondLimits(t *testing.T) {
	beyond := func(message string) objectsync.ObjectFailure {
		return objectsync.ObjectFailure{Failure: objectsync.Failure{Reason: plan.ReasonMailboxLimitExceeded, Message: message}}
	}
	failures := []objectsync.ObjectFailure{beyond("too many secrets"), beyond("too many objects"), beyond("too many secrets")}
	for range 2 {
		next := syncerconfig.NextStatus(syncerconfig.ObservedConfig{Selects: true, Summary: &objectsync.ConfigSummary{Selected: 4, Failed: 3, Failures: failures}}, edgev2alpha1.SyncerConfigStatus{})
		if ready := next.Conditions[0]; ready.Reason != plan.ReasonMailboxLimitExceeded || ready.Message != "too many objects; too many secrets" {
			t.Errorf("got %+v", ready)
		}
		slices.Reverse(failures)
	}
}

// A config beyond the limits reports only that, in a message that does not change with the number of configs.
func TestBeyondLimits(t *testing.T) {
	current := edgev2alpha1.SyncerConfigStatus{Conditions: []metav1.Condition{{Type: edgev2alpha1.ConditionReady, Status: metav1.ConditionTrue, Reason: syncerconfig.ReasonInSync}}}
	next := syncerconfig.NextStatus(syncerconfig.ObservedConfig{BeyondLimits: true, Generation: 2}, current)
	if len(next.Conditions) != 1 || next.ObservedGeneration != 2 {
		t.Fatalf("got %+v", next)
	}
	if ready := next.Conditions[0]; ready.Status != metav1.ConditionFalse || ready.Reason != plan.ReasonMailboxLimitExceeded || !strings.Contains(ready.Message, "256 configs") {
		t.Errorf("got %+v", ready)
	}
	if again := syncerconfig.NextStatus(syncerconfig.ObservedConfig{BeyondLimits: true, Generation: 2}, next); !reflect.DeepEqual(next, again) {
		t.Errorf("it is written again: %+v", again)
	}
}

// Objects that the hub cannot list are not counted, and the previous counts stay.
func TestHiddenObjectsAreNotCounted(t *testing.T) {
	inStep := syncerconfig.NextStatus(observedConfig(func(*syncerconfig.ObservedConfig) {}), edgev2alpha1.SyncerConfigStatus{})
	hidden := observedConfig(func(f *syncerconfig.ObservedConfig) {
		f.Summary = nil
		f.UnavailableEntries = []syncerconfig.UnavailableEntry{{Field: "spec.upsync[0]", Resource: "secrets", Reason: syncerconfig.ReasonNotVisible, Message: "no claim"}}
	})
	got := syncerconfig.NextStatus(hidden, inStep)
	ready := meta.FindStatusCondition(got.Conditions, edgev2alpha1.ConditionReady)
	if ready.Status != metav1.ConditionFalse || ready.Reason != syncerconfig.ReasonNotVisible || !strings.Contains(ready.Message, "spec.upsync[0] (secrets): no claim") || got.Selected != 2 || got.Synced != 2 {
		t.Errorf("got %+v", got)
	}
}

// During its initial sync, a new leader keeps the condition Ready of the previous leader, unless the config has changed or
// an object has failed.
func TestReadyConfigStaysReadyDuringInitialSync(t *testing.T) {
	inStep := syncerconfig.NextStatus(observedConfig(func(*syncerconfig.ObservedConfig) {}), edgev2alpha1.SyncerConfigStatus{})
	for name, test := range map[string]struct {
		change func(*syncerconfig.ObservedConfig)
		want   string
	}{
		"unchanged":         {func(*syncerconfig.ObservedConfig) {}, syncerconfig.ReasonInSync},
		"changed":           {func(f *syncerconfig.ObservedConfig) { f.Generation++ }, syncerconfig.ReasonSyncing},
		"not on the target": {func(f *syncerconfig.ObservedConfig) { f.Summary.Synced = 1 }, syncerconfig.ReasonSyncing},
	} {
		found := observedConfig(func(f *syncerconfig.ObservedConfig) { f.InitialSyncPending = true })
		test.change(&found)
		if ready := meta.FindStatusCondition(syncerconfig.NextStatus(found, inStep).Conditions, edgev2alpha1.ConditionReady); ready.Reason != test.want {
			t.Errorf("%s: got %+v", name, ready)
		}
	}
}

// During its initial sync, a new leader also keeps the counts of the previous leader, unless it knows something else.
func TestCountsStayDuringInitialSync(t *testing.T) {
	inSync := syncerconfig.NextStatus(observedConfig(func(*syncerconfig.ObservedConfig) {}), edgev2alpha1.SyncerConfigStatus{})
	halted := inSync.DeepCopy()
	meta.SetStatusCondition(&halted.Conditions, metav1.Condition{
		Type: edgev2alpha1.ConditionReady, Status: metav1.ConditionFalse, Reason: syncerconfig.ReasonNotSynced, ObservedGeneration: 3,
	})
	for name, test := range map[string]struct {
		current edgev2alpha1.SyncerConfigStatus
		change  func(*syncerconfig.ObservedConfig)
		stays   bool
	}{
		"nothing is found yet":  {inSync, func(f *syncerconfig.ObservedConfig) { f.Summary = nil }, true},
		"a part is found":       {inSync, func(f *syncerconfig.ObservedConfig) { f.Summary.Synced = 1 }, true},
		"an object failed":      {inSync, func(f *syncerconfig.ObservedConfig) { f.Summary.Synced, f.Summary.Failed = 1, 1 }, false},
		"an API is missing":     {inSync, func(f *syncerconfig.ObservedConfig) { f.Summary, f.UnavailableEntries = nil, unpublished("foos") }, false},
		"the config changed":    {inSync, func(f *syncerconfig.ObservedConfig) { f.Summary.Synced, f.Generation = 1, 4 }, false},
		"all have been tried":   {inSync, func(f *syncerconfig.ObservedConfig) { f.Summary.Synced, f.InitialSyncPending = 1, false }, false},
		"it takes too long":     {inSync, func(f *syncerconfig.ObservedConfig) { f.Summary.Synced, f.KeepCounts = 1, false }, false},
		"nothing was synced":    {*halted, func(f *syncerconfig.ObservedConfig) { f.Summary.Synced = 1 }, false},
		"there was no status":   {edgev2alpha1.SyncerConfigStatus{}, func(f *syncerconfig.ObservedConfig) { f.Summary.Synced = 1 }, false},
		"the mailbox is beyond": {inSync, func(f *syncerconfig.ObservedConfig) { f.Summary.Synced, f.BeyondLimits = 1, true }, false},
	} {
		found := observedConfig(func(f *syncerconfig.ObservedConfig) { f.InitialSyncPending, f.KeepCounts = true, true })
		test.change(&found)
		if got := syncerconfig.NextStatus(found, test.current); reflect.DeepEqual(got, test.current) != test.stays {
			t.Errorf("%s: before %+v, got %+v", name, test.current, got)
		}
	}
}
