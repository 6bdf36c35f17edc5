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

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	synchubv1alpha1 "github.com/synchub-dev/synchub/apis/synchub/v1alpha1"
	"github.com/synchub-dev/synchub/cmd/kubectl-synchub/explain"
	"github.com/synchub-dev/synchub/controllers/plan"
	"github.com/synchub-dev/synchub/controllers/plan/ownership"
	"github.com/synchub-dev/synchub/controllers/plan/transform"
	"github.com/synchub-dev/synchub/test/fixtures"
)

var mailboxCases = map[string]testCase{
	"not published": {
		change: func(_ *testing.T, f *explain.Facts) { f.Published.Value, f.Target.Value = nil, nil },
		step:   explain.StepPublished, state: explain.Stopped, reason: "NotPublished", texts: []string{"widgets.example.dev"},
	},
	"published under another name": {
		change: func(t *testing.T, f *explain.Facts) {
			f.Published.Value = []synchubv1alpha1.PublishedResource{fixtures.Decode[synchubv1alpha1.PublishedResource](t, `
metadata: {name: widgets}
spec: {resource: {group: example.dev, resource: widgets, version: v1}, projection: {group: shop.dev}}`)}
			f.Served.Value, f.Object.Value, f.Target.Value = nil, nil, nil
		},
		step: explain.StepPublished, state: explain.Stopped, texts: []string{"gives it another name in mailboxes: widgets (shop.dev)"},
	},
	"only related": {
		change: func(t *testing.T, f *explain.Facts) {
			f.Published.Value = []synchubv1alpha1.PublishedResource{fixtures.Decode[synchubv1alpha1.PublishedResource](t, `
metadata: {name: shops}
spec: {resource: {group: example.dev, resource: shops, version: v1}, related: [{identifier: front, origin: Mailbox, resource: {group: example.dev, resource: widgets, version: v1}, object: {reference: {path: spec.widget}}}]}`)}
			f.Target.Value = nil
		},
		step: explain.StepPublished, state: explain.Stopped, reason: "NotPublished", texts: []string{"shops/front"},
	},
	"a PublishedResource that is not ready": {
		change: func(_ *testing.T, f *explain.Facts) {
			publisher(f).Status.Conditions = []metav1.Condition{{Type: "Ready", Status: metav1.ConditionFalse, Reason: "SchemaMissing", Message: "There is no schema yet."}}
			f.Served.Value, f.Object.Value, f.Target.Value = nil, nil, nil
		},
		step: explain.StepPublished, state: explain.Stopped, reason: "SchemaMissing", texts: []string{"widgets is not ready: There is no schema yet"},
	},
	"an API whose name is taken in the mailbox": {
		change: func(_ *testing.T, f *explain.Facts) {
			f.SyncTarget.Status.Conditions = append(f.SyncTarget.Status.Conditions, metav1.Condition{Type: "APIsMissing", Status: metav1.ConditionTrue, Reason: "NamingConflict",
				Message: "The mailbox does not have gizmos.example.dev, widgets.example.dev: kcp does not bind it. Delete the CustomResourceDefinition widgets.example.dev in the mailbox."})
			f.Target.Value = nil
		},
		step: explain.StepPublished, state: explain.Stopped, reason: "NamingConflict", texts: []string{"Delete the CustomResourceDefinition widgets.example.dev"},
	},
	"an API that the mailbox does not serve": {
		change: func(_ *testing.T, f *explain.Facts) {
			f.Published = explain.Observed[[]synchubv1alpha1.PublishedResource]{Err: errDenied}
			f.Served.Value, f.Object.Value, f.Target.Value = nil, nil, nil
		},
		step: explain.StepPublished, state: explain.Stopped, texts: []string{"the mailbox does not serve widgets.example.dev"},
	},
	"a PublishedResource that is wrong": {
		change: func(_ *testing.T, f *explain.Facts) { publisher(f).Spec.Filter = &synchubv1alpha1.Filter{CEL: "self."} },
		step:   explain.StepPublished, state: explain.Stopped, reason: "Invalid", texts: []string{"spec.filter.cel"},
	},
	"PublishedResources that cannot be seen": {
		change: func(_ *testing.T, f *explain.Facts) {
			f.Published = explain.Observed[[]synchubv1alpha1.PublishedResource]{Err: errDenied}
		},
		state: explain.Unknown, onTarget: explain.Present, texts: []string{"cannot be seen: you may not", "--hosting-kubeconfig", "selected by SyncerConfig/all"},
	},
	"a version that the target serves": {
		change: func(_ *testing.T, f *explain.Facts) { inVersions(f, "v1", "v1beta1") },
		state:  explain.OK, onTarget: explain.Present, texts: []string{"on the cluster in version v1, which is preferred to v1beta1"},
	},
	"a version because the target does not serve another": {
		change: func(_ *testing.T, f *explain.Facts) {
			inVersions(f, "v1", "v1beta1")
			status(f).SyncedResources[0].Versions = []string{"v1beta1"}
		},
		state: explain.OK, onTarget: explain.Present, texts: []string{"on the cluster in version v1beta1, since it does not serve v1"},
	},
	"a version that an entry names": {
		change: func(_ *testing.T, f *explain.Facts) {
			inVersions(f, "v1", "v1beta1")
			config(f).Spec.NamespaceScope.Resources[0].APIVersion = "v1beta1"
		},
		state: explain.OK, onTarget: explain.Present, texts: []string{"on the cluster in version v1beta1, which spec.namespaceScope.resources[0] of SyncerConfig/all names"},
	},
	"no object anywhere": {
		change: func(_ *testing.T, f *explain.Facts) { f.Object.Value, f.Target.Value = nil, nil },
		step:   explain.StepObject, state: explain.Stopped, onTarget: explain.Absent, texts: []string{"there is no such object in the mailbox"},
	},
	"an object that is gone from the mailbox": {
		change: func(_ *testing.T, f *explain.Facts) { f.Object.Value = nil },
		step:   explain.StepObject, state: explain.Waiting, onTarget: explain.Present, texts: []string{"goes from the cluster, with the policy Delete"},
	},
	"an object that is gone from the mailbox, its config suspended": {
		change: func(_ *testing.T, f *explain.Facts) { f.Object.Value, config(f).Spec.Suspend = nil, true },
		step:   explain.StepObject, state: explain.Stopped, reason: "Suspended", texts: []string{"it is left on the cluster"},
	},
	"an object from a mailbox that was lost": {
		change: func(_ *testing.T, f *explain.Facts) { f.Object.Value, status(f).Mailbox.Cluster = nil, "another" },
		step:   explain.StepObject, state: explain.Stopped, texts: []string{"from a mailbox that was lost"},
	},
	"an object of the target alone": {
		change: func(_ *testing.T, f *explain.Facts) { f.Object.Value = nil; f.Target.Value.SetAnnotations(nil) },
		step:   explain.StepObject, state: explain.Stopped, texts: []string{"florin has an object web that did not come from the mailbox"},
	},
	"an object of the target that is to come up": {
		change: func(_ *testing.T, f *explain.Facts) {
			f.Object.Value = nil
			f.Target.Value.SetAnnotations(nil)
			config(f).Spec = edgev2alpha1.SyncerConfigSpec{Upsync: []edgev2alpha1.UpsyncSet{{APIGroup: "example.dev", Resources: []string{"widgets"}, Namespaces: []string{"shop"}, Names: []string{"*"}}}}
		},
		step: explain.StepObject, state: explain.Waiting, texts: []string{"selects it for coming up"},
	},
	"an object that came up": {
		change: func(t *testing.T, f *explain.Facts) {
			f.Target.Value.SetAnnotations(nil)
			f.Target.Value.SetLabels(nil)
			f.Object.Value = upsynced(t, f.Target.Value, "")
		},
		state: explain.OK, onTarget: explain.Present, texts: []string{"where it came up from", "it came up from the cluster, where it is shop/web"},
	},
	"an object that came up, and is gone below": {
		change: func(t *testing.T, f *explain.Facts) {
			f.Target.Value.SetAnnotations(nil)
			f.Object.Value, f.Target.Value = upsynced(t, f.Target.Value, ""), nil
		},
		step: explain.StepTarget, state: explain.Waiting, onTarget: explain.Absent, texts: []string{"once that is verified it goes from the mailbox"},
	},
	"an object that is being deleted": {
		change: func(_ *testing.T, f *explain.Facts) { f.Object.Value.SetDeletionTimestamp(&metav1.Time{Time: now}) },
		step:   explain.StepObject, state: explain.Stopped, reason: "Terminating",
	},
	"an object that waits for the target": {
		change: func(_ *testing.T, f *explain.Facts) {
			f.Object.Value.SetDeletionTimestamp(&metav1.Time{Time: now})
			f.Object.Value.SetFinalizers([]string{plan.Finalizer})
		},
		step: explain.StepObject, state: explain.Waiting, reason: "Terminating",
	},
	"an object that cannot be read": {
		change: func(_ *testing.T, f *explain.Facts) { f.Object.Value, f.Object.Err = nil, errDenied },
		state:  explain.Unknown, texts: []string{"it cannot be read in the mailbox: you may not"},
	},
	"a binding that gives users their rights": {
		change: func(_ *testing.T, f *explain.Facts) {
			f.Object.Value.SetLabels(map[string]string{edgev2alpha1.LabelMailboxAccess: "true"})
			f.Target.Value = nil
		},
		step: explain.StepSelected, state: explain.Stopped, texts: []string{"spec.mailboxAccess"},
	},
	"a namespace that was made for what came up": {
		change: func(_ *testing.T, f *explain.Facts) {
			f.Object.Value.SetAnnotations(map[string]string{ownership.EnsuredAnnotation: owner.EnsuredValue(transform.SelfOf(f.Object.Value))})
			f.Target.Value = nil
		},
		step: explain.StepSelected, state: explain.Stopped, texts: []string{"only for upsynced objects"},
	},
}

// inVersions publishes the Widgets in several versions.
func inVersions(f *explain.Facts, versions ...string) {
	publisher(f).Spec.Resource.Version = ""
	f.Served.Value.Versions = versions
}
