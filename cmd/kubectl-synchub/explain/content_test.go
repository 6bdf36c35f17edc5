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

package explain_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	synchubv1alpha1 "github.com/synchub-dev/synchub/apis/synchub/v1alpha1"
	"github.com/synchub-dev/synchub/cmd/kubectl-synchub/explain"
	"github.com/synchub-dev/synchub/controllers/plan/fieldpath"
	"github.com/synchub-dev/synchub/controllers/plan/ownership"
	"github.com/synchub-dev/synchub/controllers/plan/transform"
)

// synced changes the state of the resource in the SyncTarget's status.
func synced(state edgev2alpha1.SyncedResourceState, reason string) func(*testing.T, *explain.Facts) {
	return func(_ *testing.T, f *explain.Facts) {
		resource := &status(f).SyncedResources[0]
		resource.State, resource.Reason, resource.Message = state, reason, "The reason."
		f.Target.Value = nil
	}
}

func event(reason string, uid types.UID) corev1.Event {
	return corev1.Event{
		Reason: reason, Message: "The reason.", Type: corev1.EventTypeWarning, ReportingController: "synchub", InvolvedObject: corev1.ObjectReference{UID: uid},
		LastTimestamp: metav1.NewTime(now.Add(-3 * time.Minute)),
	}
}

// tookBack makes the object one whose replicas were ignored at creation but no longer are, while the target has
// another number.
func tookBack(target int64) func(*testing.T, *explain.Facts) {
	return func(t *testing.T, f *explain.Facts) {
		t.Helper()
		field, err := fieldpath.Parse("spec.replicas")
		if err != nil {
			t.Fatal(err)
		}
		f.Object.Value.Object["spec"] = map[string]any{"size": int64(3), "replicas": int64(3)}
		f.Target.Value = placed(t, f.Object.Value, transform.SyncSpec{Policy: ownership.PolicyDelete, IgnoredFields: []transform.IgnoredField{{Path: field, OnCreate: true}}})
		f.Target.Value.Object["spec"] = map[string]any{"size": int64(3), "replicas": target}
	}
}

// drifted makes another client the manager of the copy's spec, with a size.
func drifted(size int64) func(*testing.T, *explain.Facts) {
	return func(_ *testing.T, f *explain.Facts) {
		entries := f.Target.Value.GetManagedFields()
		entries[0].FieldsV1 = metav1.NewFieldsV1(`{"f:metadata":{"f:labels":{"f:synchub.dev/owner":{}},"f:annotations":{"f:synchub.dev/mark":{}}}}`)
		f.Target.Value.SetManagedFields(entries)
		f.Target.Value.Object["spec"] = map[string]any{"size": size}
	}
}

// limitExceeded sets the condition of the SyncTarget that its mailbox exceeds a limit.
func limitExceeded(f *explain.Facts, reason, of string) {
	setCondition(status(f), edgev2alpha1.ConditionMailboxLimitExceeded, metav1.ConditionTrue, reason, "The mailbox has "+of+", of which it may have 3.")
}

var contentCases = map[string]testCase{
	"not listed yet": {
		change: func(_ *testing.T, f *explain.Facts) { status(f).SyncedResources, f.Target.Value = nil, nil },
		step:   explain.StepCompatibility, state: explain.Waiting, texts: []string{"status.syncedResources"},
	},
	"not compared yet": {
		change: synced(edgev2alpha1.SyncedResourcePending, "Pending"),
		step:   explain.StepCompatibility, state: explain.Waiting, reason: "Pending",
	},
	"not served": {
		change: synced(edgev2alpha1.SyncedResourceIncompatible, "NotServed"),
		step:   explain.StepCompatibility, state: explain.Stopped, reason: "NotServed", texts: []string{"The reason"},
	},
	"incompatible": {
		change: synced(edgev2alpha1.SyncedResourceIncompatible, "SchemaIncompatible"),
		step:   explain.StepCompatibility, state: explain.Stopped, reason: "SchemaIncompatible",
	},
	"incompatible, and sent all the same": {
		change: func(t *testing.T, f *explain.Facts) {
			there := f.Target.Value
			synced(edgev2alpha1.SyncedResourceIncompatible, "SchemaIncompatible")(t, f)
			publish("compatibility: Warn", false)(t, f)
			f.Target.Value = there
		},
		state: explain.OK, texts: []string{"lets them go down all the same"},
	},
	"a failure that its config reports": {
		change: func(_ *testing.T, f *explain.Facts) {
			config(f).Status.Failures = []edgev2alpha1.ObjectFailure{
				{Group: "example.dev", Resource: "widgets", Namespace: "shop", Name: "another", Reason: "Conflict", Message: "Not this."},
				{Group: "example.dev", Resource: "widgets", Namespace: "shop", Name: "web", Reason: "AdmissionDenied", Message: "The webhook said no."},
			}
			f.Target.Value = nil
		},
		step: explain.StepReport, state: explain.Stopped, reason: "AdmissionDenied", texts: []string{"SyncerConfig/all: The webhook said no"},
	},
	"a failure that an event reports": {
		change: func(_ *testing.T, f *explain.Facts) {
			f.Events, f.Target.Value = []corev1.Event{event("Forbidden", "above"), event("Conflict", "its predecessor")}, nil
		},
		step: explain.StepReport, state: explain.Stopped, reason: "Forbidden", texts: []string{"the last event about it, 3m ago: The reason"},
	},
	"an event that is past": {
		change: func(_ *testing.T, f *explain.Facts) { f.Events = []corev1.Event{event("Forbidden", "above")} }, state: explain.OK,
	},
	"an event about its predecessor": {
		change: func(_ *testing.T, f *explain.Facts) {
			f.Events, f.Target.Value = []corev1.Event{event("Conflict", "its predecessor")}, nil
		},
		step: explain.StepTarget, state: explain.Waiting,
	},
	"an event that is over": {
		change: func(_ *testing.T, f *explain.Facts) {
			f.Events, f.Target.Value = []corev1.Event{event("Forbidden", "above")}, nil
			status(f).Counts = &edgev2alpha1.TargetCounts{}
		},
		step: explain.StepTarget, state: explain.Waiting,
	},
	"an event that may not be over, since not all failures are listed": {
		change: func(_ *testing.T, f *explain.Facts) {
			f.Events, f.Target.Value = []corev1.Event{event("Forbidden", "above")}, nil
			status(f).Counts = &edgev2alpha1.TargetCounts{Failed: 1}
		},
		step: explain.StepReport, state: explain.Stopped, reason: "Forbidden", texts: []string{"the last event about it, 3m ago"},
	},
	"a failure that only the SyncTarget reports": {
		change: func(t *testing.T, f *explain.Facts) {
			f.Configs.Value.SyncerConfigs = nil
			publish("select: All", false)(t, f)
			f.Target.Value = nil
			status(f).Failures = []edgev2alpha1.ObjectFailure{{Group: "example.dev", Resource: "widgets", Namespace: "shop", Name: "web", Reason: "Forbidden", Message: "You may not."}}
		},
		step: explain.StepReport, state: explain.Stopped, reason: "Forbidden", texts: []string{"SyncTarget/florin: You may not"},
	},
	"too much of the resource": {
		change: func(t *testing.T, f *explain.Facts) {
			publish("limits: {mailboxObjects: 3}", true)(t, f)
			limitExceeded(f, "ResourceLimitExceeded", "8 widgets.example.dev")
			f.Target.Value = nil
		},
		step: explain.StepReport, state: explain.Stopped, reason: "ResourceLimitExceeded", texts: []string{"it may be among the objects beyond a limit: The mailbox has 8 widgets.example.dev"},
	},
	"too much of everything, and a change": {
		change: func(_ *testing.T, f *explain.Facts) {
			limitExceeded(f, "MailboxLimitExceeded", "8 objects")
			config(f).Spec.DeletionPolicy = edgev2alpha1.DeletionPolicyOrphan
		},
		step: explain.StepContent, state: explain.Stopped, reason: "MailboxLimitExceeded", texts: []string{"left as it is: The mailbox has 8 objects"},
	},
	"too much of everything, and another value": {
		change: func(_ *testing.T, f *explain.Facts) {
			limitExceeded(f, "MailboxLimitExceeded", "8 objects")
			f.Object.Value.Object["spec"] = map[string]any{"size": int64(4)}
		},
		state: explain.Unknown, texts: []string{"values differ at .spec.size; it may be among the objects beyond a limit"},
	},
	"too much of another resource": {
		change: func(_ *testing.T, f *explain.Facts) {
			limitExceeded(f, "ResourceLimitExceeded", "8 secrets")
			f.Target.Value = nil
		},
		step: explain.StepTarget, state: explain.Waiting,
	},
	"too many configs": {
		change: func(_ *testing.T, f *explain.Facts) {
			publisher(f).Spec.Limits = &synchubv1alpha1.ResourceLimits{}
			limitExceeded(f, "ConfigLimitExceeded", "300 objects, so to say")
			f.Target.Value = nil
		},
		step: explain.StepTarget, state: explain.Waiting,
	},
	"too much, but it is in sync": {change: func(_ *testing.T, f *explain.Facts) { limitExceeded(f, "MailboxLimitExceeded", "8 objects") }, state: explain.OK},
	"a field that is not ignored any more": {
		change: tookBack(6),
		step:   explain.StepContent, state: explain.Waiting, reason: "LeftToTarget",
		texts: []string{"left to the target until the next change in the mailbox", "spec.replicas is 6 on the target and 3 in the mailbox"},
	},
	"a field that is not ignored any more and has the same value": {
		change: tookBack(3), state: explain.OK, texts: []string{"in sync with the mailbox"},
	},
	"a field that is not ignored any more, and a source that has changed": {
		change: func(t *testing.T, f *explain.Facts) {
			tookBack(6)(t, f)
			f.Object.Value.Object["spec"] = map[string]any{"size": int64(4), "replicas": int64(3)}
		},
		state: explain.Unknown, texts: []string{"does not own .spec.replicas there"},
	},
	"more failures than are listed": {
		change: func(_ *testing.T, f *explain.Facts) {
			config(f).Status.Failed = 11
			f.Target = explain.Observed[*unstructured.Unstructured]{Err: errDenied}
		},
		state: explain.Unknown, onTarget: explain.PresenceUnknown, texts: []string{"not all are listed"},
	},
	"more failures than are listed, but the cluster has it": {
		change: func(_ *testing.T, f *explain.Facts) { config(f).Status.Failed = 11 }, state: explain.OK,
	},
	"a name that is taken": {
		change: func(_ *testing.T, f *explain.Facts) { f.Target.Value.SetAnnotations(nil) },
		step:   explain.StepTarget, state: explain.Stopped, reason: "Conflict", onTarget: explain.Present,
		texts: []string{"florin has an object web that did not come from the mailbox", "it has no mark of the hub", "spec.adoption"},
	},
	"a mark of another hub": {
		change: func(_ *testing.T, f *explain.Facts) { f.Hub = "another" },
		step:   explain.StepTarget, state: explain.Stopped, reason: "Conflict", texts: []string{ownership.ErrForeign.Error()},
	},
	"a hub that only the mark contains": {
		change: func(_ *testing.T, f *explain.Facts) { f.Hub = "" }, state: explain.OK, texts: []string{"in sync with the mailbox"},
	},
	"being deleted below": {
		change: func(_ *testing.T, f *explain.Facts) { f.Target.Value.SetDeletionTimestamp(&metav1.Time{Time: now}) },
		step:   explain.StepTarget, state: explain.Waiting, reason: "Terminating",
	},
	"placed from another object": {
		change: func(t *testing.T, f *explain.Facts) {
			f.Object.Value.SetName("other")
			f.Key.Name = "other"
			publish("naming: {name: web}", false)(t, f)
		},
		step: explain.StepContent, state: explain.Stopped, reason: "Conflict", texts: []string{"widgets shop/web"},
	},
	"drifted": {
		change: drifted(5), state: explain.Unknown, texts: []string{"does not own .spec there"},
	},
	"drifted, which is only reported": {
		change: func(t *testing.T, f *explain.Facts) {
			drifted(5)(t, f)
			f.Object.Value.SetAnnotations(map[string]string{edgev2alpha1.AnnotationDrift: "Report"})
		},
		step: explain.StepContent, state: explain.Stopped, reason: "Drifted", texts: []string{"values differ at .spec.size", "drift is Report"},
	},
	"drifted to the same value, which is only reported": {
		change: func(t *testing.T, f *explain.Facts) {
			drifted(3)(t, f)
			publisher(f).Spec.Drift = synchubv1alpha1.DriftReport
		},
		state: explain.OK, texts: []string{"in sync with the mailbox"},
	},
	"a wrong setting": {
		change: func(_ *testing.T, f *explain.Facts) {
			f.Object.Value.SetAnnotations(map[string]string{edgev2alpha1.AnnotationIgnoreFields: "kind"})
		},
		step: explain.StepName, state: explain.Stopped, reason: "Invalid", texts: []string{edgev2alpha1.AnnotationIgnoreFields},
	},
	"without the label": {
		change: func(_ *testing.T, f *explain.Facts) { f.Target.Value.SetLabels(nil) }, state: explain.Unknown, texts: []string{ownership.OwnerLabel},
	},
	"another policy": {
		change: func(_ *testing.T, f *explain.Facts) {
			config(f).Spec.DeletionPolicy = edgev2alpha1.DeletionPolicyOrphan
		},
		step: explain.StepContent, state: explain.Waiting, reason: "Changed",
	},
	"another value": {
		change: func(_ *testing.T, f *explain.Facts) { f.Object.Value.Object["spec"] = map[string]any{"size": int64(4)} },
		state:  explain.Unknown, texts: []string{"values differ at .spec.size"},
	},
	"the same quantity": {
		change: func(t *testing.T, f *explain.Facts) {
			f.Object.Value.Object["spec"] = map[string]any{"size": "1000m"}
			f.Target.Value = placed(t, f.Object.Value, transform.SyncSpec{Policy: ownership.PolicyDelete})
			f.Target.Value.Object["spec"] = map[string]any{"size": "1"}
		},
		state: explain.OK,
	},
	"created once": {
		change: func(t *testing.T, f *explain.Facts) {
			f.Object.Value.SetAnnotations(map[string]string{ownership.OverwriteAnnotation: "false"})
			f.Target.Value = placed(t, f.Object.Value, transform.SyncSpec{Policy: ownership.PolicyDelete})
			f.Object.Value.Object["spec"] = map[string]any{"size": int64(4)}
		},
		state: explain.OK, texts: []string{"created once"},
	},
	"a mutation that fails": {
		change: publish("mutation: {down: [{regex: {path: spec, pattern: a}}]}", false),
		step:   explain.StepContent, state: explain.Stopped, reason: "RuleFailed",
	},
	"a mutation that needs a label of the SyncTarget": {
		change: publish("mutation: {down: [{cel: {path: spec.region, expression: syncTarget.metadata.labels.region}}]}", false),
		step:   explain.StepContent, state: explain.Stopped, reason: "RuleFailed", texts: []string{"no such key: region"},
	},
	"a status that is not back": {
		change: func(_ *testing.T, f *explain.Facts) { delete(f.Object.Value.Object, "status") },
		step:   explain.StepStatus, state: explain.Waiting,
	},
	"a status that the PublishedResource keeps below": {
		change: func(t *testing.T, f *explain.Facts) {
			delete(f.Object.Value.Object, "status")
			publish("statusReturn: false", false)(t, f)
		},
		state: explain.OK, texts: []string{"statusReturn of the PublishedResource is false"},
	},
	"a status that the config keeps below": {
		change: func(_ *testing.T, f *explain.Facts) {
			delete(f.Object.Value.Object, "status")
			config(f).Spec.StatusReturn = new(false)
		},
		state: explain.OK, texts: []string{"statusReturn is false in all configs"},
	},
}
