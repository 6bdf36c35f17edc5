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
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/controllers/internal/status"
	"github.com/synchub-dev/synchub/controllers/objectsync"
	"github.com/synchub-dev/synchub/controllers/plan"
	"github.com/synchub-dev/synchub/controllers/plan/selection"
	"github.com/synchub-dev/synchub/controllers/syncerconfig"
)

func TestOverlapping(t *testing.T) {
	object := func(resource, namespace, name string) objectsync.ObjectName {
		return objectsync.ObjectName{Resource: schema.ParseGroupResource(resource), Key: types.NamespacedName{Namespace: namespace, Name: name}}
	}
	role, late, early := object("clusterroles.rbac.authorization.k8s.io", "", "x"), object("configmaps", "b", "x"), object("configmaps", "a", "y")
	var many []objectsync.ObjectName
	for _, name := range []string{"g", "f", "e", "d", "c", "b", "a"} {
		many = append(many, object("configmaps", "n", name))
	}
	for name, test := range map[string]struct {
		overruled, leftOut []objectsync.ObjectName
		versions           []string
		reason             string
		message            []string
	}{
		"nothing": {},
		"overruled": {
			overruled: []objectsync.ObjectName{late, role, early}, reason: syncerconfig.ReasonConversionOverruled,
			message: []string{"An older config", "names on the target: clusterroles.rbac.authorization.k8s.io x; configmaps a/y; configmaps b/x."},
		},
		"upsynced": {
			leftOut: []objectsync.ObjectName{late, late, early}, reason: syncerconfig.ReasonSelectedUp,
			message: []string{"are not downsynced", "selects them too: configmaps a/y; configmaps b/x."},
		},
		"a version": {
			versions: []string{"one names v1"}, reason: syncerconfig.ReasonVersionOverruled, message: []string{"the oldest entry that names one decides: one names v1."},
		},
		"both": {
			overruled: []objectsync.ObjectName{late}, leftOut: []objectsync.ObjectName{role}, reason: syncerconfig.ReasonConversionOverruled,
			message: []string{"target: configmaps b/x. These", "too: clusterroles.rbac.authorization.k8s.io x."},
		},
		"many": {
			leftOut: many, reason: syncerconfig.ReasonSelectedUp,
			message: []string{": configmaps n/a; configmaps n/b; configmaps n/c; configmaps n/d; configmaps n/e; and 2 more."},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := syncerconfig.NextStatus(observedConfig(func(f *syncerconfig.ObservedConfig) {
				f.Summary.Overruled, f.Summary.ExcludedByUpsync, f.OverruledVersions = test.overruled, test.leftOut, test.versions
			}), edgev2alpha1.SyncerConfigStatus{})
			condition := meta.FindStatusCondition(got.Conditions, edgev2alpha1.ConditionOverlapping)
			if test.reason == "" {
				if condition != nil {
					t.Errorf("got %+v", condition)
				}
				return
			}
			if condition == nil || condition.Reason != test.reason {
				t.Fatalf("want the reason %s, got %+v", test.reason, condition)
			}
			for _, part := range test.message {
				if !strings.Contains(condition.Message, part) {
					t.Errorf("want %q in %q", part, condition.Message)
				}
			}
		})
	}
}

// The API server accepts the status, however long the texts of servers, users and policies are.
func TestMessagesAreBounded(t *testing.T) {
	long := strings.Repeat("ä", 5000)
	failed := failure("", "configmaps", "a", "x")
	failed.Failure.Message = long
	entry := syncerconfig.UnavailableEntry{Field: "spec.clusterScope[0]", Resource: "configmaps", Reason: plan.ReasonForbidden, Message: status.Truncate(long)}
	for name, change := range map[string]func(*syncerconfig.ObservedConfig){
		"a failure": func(f *syncerconfig.ObservedConfig) { f.Summary.Failures = []objectsync.ObjectFailure{failed} },
		"a problem": func(f *syncerconfig.ObservedConfig) {
			f.Problems = []selection.Problem{{Field: "spec.x", Message: long}}
		},
		"shortfalls": func(f *syncerconfig.ObservedConfig) {
			f.UnavailableEntries = slices.Repeat([]syncerconfig.UnavailableEntry{entry}, 10000)
		},
	} {
		got := syncerconfig.NextStatus(observedConfig(change), edgev2alpha1.SyncerConfigStatus{})
		for _, failure := range got.Failures {
			if len(failure.Message) > 1024 || !utf8.ValidString(failure.Message) {
				t.Errorf("%s: the message has %d bytes", name, len(failure.Message))
			}
		}
		for _, condition := range got.Conditions {
			if len(condition.Message) > 32768 || !utf8.ValidString(condition.Message) {
				t.Errorf("%s: the message of %s has %d bytes", name, condition.Type, len(condition.Message))
			}
		}
	}
}

func TestFailuresAreTheFirstByName(t *testing.T) {
	var all []objectsync.ObjectFailure
	for _, name := range []string{"e", "c", "a", "d", "b"} {
		all = append(all, failure("apps", "deployments", "z", name), failure("", "secrets", "y", name), failure("", "configmaps", name, "x"))
	}
	summary := &objectsync.ConfigSummary{Selected: 20, Synced: 5, Failed: 15, Failures: all}
	original := slices.Clone(all)
	got := syncerconfig.NextStatus(observedConfig(func(f *syncerconfig.ObservedConfig) { f.Summary = summary }), edgev2alpha1.SyncerConfigStatus{})

	var names []string
	for _, failure := range got.Failures {
		names = append(names, fmt.Sprintf("%s.%s %s/%s", failure.Resource, failure.Group, failure.Namespace, failure.Name))
		if failure.Reason != "Conflict" || failure.Message != failure.Name+" is taken" {
			t.Errorf("got %+v", failure)
		}
	}
	want := []string{
		"configmaps. a/x", "configmaps. b/x", "configmaps. c/x", "configmaps. d/x", "configmaps. e/x",
		"deployments.apps z/a", "deployments.apps z/b", "deployments.apps z/c", "deployments.apps z/d", "deployments.apps z/e",
	}
	if !slices.Equal(names, want) || got.Failed != 15 {
		t.Errorf("want %v\ngot  %v of %d", want, names, got.Failed)
	}
	if !slices.EqualFunc(summary.Failures, original, func(a, b objectsync.ObjectFailure) bool { return a == b }) {
		t.Error("the summary was changed")
	}
	for range 10 {
		slices.Reverse(all)
		if again := syncerconfig.NextStatus(observedConfig(func(f *syncerconfig.ObservedConfig) { f.Summary = summary }), got); !reflect.DeepEqual(again.Failures, got.Failures) {
			t.Fatalf("in another order: %v", again.Failures)
		}
	}
	healed := syncerconfig.NextStatus(observedConfig(func(*syncerconfig.ObservedConfig) {}), got)
	if healed.Failures != nil || healed.Failed != 0 {
		t.Errorf("after all is well: %+v", healed)
	}
}

func TestHowManyFailuresAreListed(t *testing.T) {
	for failed, want := range map[int]int{0: 0, 1: 1, 9: 9, 10: 10, 11: 10, 12: 10, 100: 10} {
		summary := &objectsync.ConfigSummary{Selected: 100, Failed: int64(failed)}
		for i := range failed {
			summary.Failures = append(summary.Failures, failure("", "configmaps", "a", fmt.Sprint(i)))
		}
		got := syncerconfig.NextStatus(observedConfig(func(f *syncerconfig.ObservedConfig) { f.Summary = summary }), edgev2alpha1.SyncerConfigStatus{})
		if len(got.Failures) != want || got.Failed != int64(failed) {
			t.Errorf("of %d failures want %d listed, got %d of %d", failed, want, len(got.Failures), got.Failed)
		}
	}
}
