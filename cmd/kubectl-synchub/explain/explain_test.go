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
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	synchubv1alpha1 "github.com/synchub-dev/synchub/apis/synchub/v1alpha1"
	"github.com/synchub-dev/synchub/cmd/kubectl-synchub/explain"
	"github.com/synchub-dev/synchub/controllers/published"
	"github.com/synchub-dev/synchub/controllers/sync"
	"github.com/synchub-dev/synchub/controllers/sync/ownership"
	"github.com/synchub-dev/synchub/controllers/sync/transform"
)

const (
	hub     = types.UID("hub")
	florin  = types.UID("florin-uid")
	mailbox = "2x7abc"
)

var (
	now   = time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	owner = ownership.Owner{Hub: hub, SyncTarget: florin}
)

func object(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	read := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), &read.Object); err != nil {
		t.Fatal(err)
	}
	return read
}

func parse[T any](t *testing.T, text string) *T {
	t.Helper()
	read := new(T)
	if err := yaml.UnmarshalStrict([]byte(text), read); err != nil {
		t.Fatal(err)
	}
	return read
}

func setCondition(status *edgev2alpha1.SyncTargetStatus, kind string, is metav1.ConditionStatus, reason, message string) {
	status.Conditions = slices.DeleteFunc(status.Conditions, func(one metav1.Condition) bool { return one.Type == kind })
	status.Conditions = append(status.Conditions, metav1.Condition{Type: kind, Status: is, Reason: reason, Message: message})
}

// inStep are the facts about the Widget shop/web, which is on the target as it must be.
func inStep(t *testing.T) *explain.Facts {
	t.Helper()
	facts := &explain.Facts{Now: now, Hub: hub, Resource: schema.GroupResource{Group: "example.dev", Resource: "widgets"}, Key: types.NamespacedName{Namespace: "shop", Name: "web"}}
	facts.SyncTarget = &edgev2alpha1.SyncTarget{ObjectMeta: metav1.ObjectMeta{Name: "florin", UID: florin}}
	status := &facts.SyncTarget.Status
	for _, kind := range []string{edgev2alpha1.ConditionReady, edgev2alpha1.ConditionHeartbeatHealthy, edgev2alpha1.ConditionSyncerReady, edgev2alpha1.ConditionMailboxReady} {
		setCondition(status, kind, metav1.ConditionTrue, "Good", "It is.")
	}
	status.LastSyncerHeartbeatTime = &metav1.Time{Time: now.Add(-time.Minute)}
	status.Mailbox = &edgev2alpha1.MailboxStatus{Workspace: "root:synchub:florin", Cluster: mailbox}
	status.SyncedResources = []edgev2alpha1.SyncedResource{{Group: "example.dev", Resource: "widgets", Versions: []string{"v1"}, Own: true, State: edgev2alpha1.SyncedResourceAccepted, Reason: "Fits"}}
	facts.Served.It = &published.API{
		GroupVersionResource: facts.Resource.WithVersion("v1"), Kind: "Widget", Namespaced: true, StatusSubresource: true, Versions: []string{"v1"},
	}
	facts.Published.It = []synchubv1alpha1.PublishedResource{*parse[synchubv1alpha1.PublishedResource](t, `
metadata: {name: widgets}
spec: {resource: {group: example.dev, resource: widgets, version: v1}}
status: {conditions: [{type: Ready, status: "True"}]}`)}
	facts.Configs.It.SyncerConfigs = []*edgev2alpha1.SyncerConfig{parse[edgev2alpha1.SyncerConfig](t, `
metadata: {name: all}
spec: {namespaceScope: {namespaces: [shop], resources: [{group: example.dev, resource: widgets}]}}`)}
	facts.Object.It = object(t, `
apiVersion: example.dev/v1
kind: Widget
metadata: {name: web, namespace: shop, uid: above, generation: 1}
spec: {size: 3}
status: {ready: true}`)
	facts.Namespace.It = object(t, "{apiVersion: v1, kind: Namespace, metadata: {name: shop}}")
	facts.Target.It = placed(t, facts.Object.It, transform.Wish{Policy: ownership.PolicyDelete})
	return facts
}

// placed is what the hub makes of an object on the target.
func placed(t *testing.T, source *unstructured.Unstructured, wish transform.Wish) *unstructured.Unstructured {
	t.Helper()
	down := transform.Down{
		Owner: owner, Mailbox: mailbox, SyncTarget: "florin", Resource: schema.GroupResource{Group: "example.dev", Resource: "widgets"},
		Namespaced: true, Hasher: ownership.NewHasher([]byte("the key of the hub")),
	}
	desired, err := down.Desire(source, wish)
	if err != nil {
		t.Fatal(err)
	}
	made := desired.First().DeepCopy()
	made.SetUID("below")
	made.SetGeneration(1)
	made.SetManagedFields([]metav1.ManagedFieldsEntry{{
		Manager: ownership.FieldManager(hub), Operation: metav1.ManagedFieldsOperationApply,
		FieldsV1: metav1.NewFieldsV1(`{"f:metadata":{"f:labels":{"f:synchub.dev/owner":{}},"f:annotations":{"f:synchub.dev/mark":{}}},"f:spec":{"f:size":{}}}`),
	}})
	made.Object["status"] = map[string]any{"ready": true}
	return made
}

// raised makes an object of the mailbox one that came up.
func raised(t *testing.T, target *unstructured.Unstructured) *unstructured.Unstructured {
	t.Helper()
	up := transform.Up{
		Owner: owner, Mailbox: mailbox, SyncTarget: "florin", Resource: schema.GroupResource{Group: "example.dev", Resource: "widgets"},
		Version: "v1", Kind: "Widget", Namespaced: true, Hasher: ownership.NewHasher([]byte("the key of the hub")),
	}
	desired, err := up.Desire(target, up.Resource, transform.Wish{Policy: ownership.PolicyDelete})
	if err != nil {
		t.Fatal(err)
	}
	return desired.First()
}

func spec(f *explain.Facts) *edgev2alpha1.SyncTargetSpec            { return &f.SyncTarget.Spec }
func status(f *explain.Facts) *edgev2alpha1.SyncTargetStatus        { return &f.SyncTarget.Status }
func config(f *explain.Facts) *edgev2alpha1.SyncerConfig            { return f.Configs.It.SyncerConfigs[0] }
func publisher(f *explain.Facts) *synchubv1alpha1.PublishedResource { return &f.Published.It[0] }

var errDenied = errors.New("you may not")

// situation is one change of what is in step, and what it comes to.
type situation struct {
	change func(t *testing.T, f *explain.Facts)
	// step is the one that answers; empty if none stops the object.
	step   string
	state  explain.State
	reason string
	// says are parts of what the step says, or of the verdict if there is no step.
	says     []string
	onTarget explain.Presence
}

func TestExplain(t *testing.T) {
	for _, cases := range []map[string]situation{targetCases, mailboxCases, selectionCases, contentCases} {
		for name, test := range cases {
			t.Run(name, func(t *testing.T) { check(t, test) })
		}
	}
}

func check(t *testing.T, test situation) {
	t.Helper()
	facts := inStep(t)
	test.change(t, facts)
	got := explain.Explain(facts)
	if got.Verdict.Step != test.step || got.Verdict.State != test.state {
		t.Errorf("the answer is %s %s, want %s %s", got.Verdict.Step, got.Verdict.State, test.step, test.state)
	}
	if test.onTarget != "" && got.Verdict.OnTarget != test.onTarget {
		t.Errorf("on the target: %s, want %s", got.Verdict.OnTarget, test.onTarget)
	}
	said := got.Verdict.Text
	for _, step := range got.Steps {
		if test.step == "" || step.Step == test.step {
			said += " " + step.What + "; " + step.Do
			if test.step != "" && step.Reason != test.reason {
				t.Errorf("the reason is %q, want %q", step.Reason, test.reason)
			}
		}
	}
	for _, part := range test.says {
		if !strings.Contains(said, part) {
			t.Errorf("%q is missing", part)
		}
	}
	if t.Failed() {
		t.Logf("%+v\n%+v", got.Verdict, got.Steps)
	}
}

var targetCases = map[string]situation{
	"all is well": {
		change: func(*testing.T, *explain.Facts) {}, state: explain.OK, onTarget: explain.Present,
		says: []string{"web is on florin, in step with the mailbox", "selected by SyncerConfig/all spec.namespaceScope.resources[0]", "shows the cluster's status"},
	},
	"suspended": {
		change: func(_ *testing.T, f *explain.Facts) { spec(f).Suspend = true },
		step:   explain.StepSyncTarget, state: explain.Stopped, reason: "Suspended", says: []string{"web is on florin: ", "synchub resume florin"},
	},
	"drained": {
		change: func(_ *testing.T, f *explain.Facts) { spec(f).Drain, f.Target.It = true, nil },
		step:   explain.StepSyncTarget, state: explain.Stopped, reason: "Draining", onTarget: explain.Absent, says: []string{"web is not on florin: ", "synchub uncordon florin"},
	},
	"deleted, and what was placed with it": {
		change: func(_ *testing.T, f *explain.Facts) {
			f.SyncTarget.DeletionTimestamp = &metav1.Time{Time: now}
			spec(f).DeletionPolicy = edgev2alpha1.DeletionPolicyDelete
		},
		step: explain.StepSyncTarget, state: explain.Stopped, reason: "Deleting", says: []string{"and what the hub placed on the cluster with it"},
	},
	"deleted, and what was placed stays": {
		change: func(_ *testing.T, f *explain.Facts) { f.SyncTarget.DeletionTimestamp = &metav1.Time{Time: now} },
		step:   explain.StepSyncTarget, state: explain.Stopped, reason: "Deleting", says: []string{"is left there"},
	},
	"cordoned, and there already": {
		change: func(_ *testing.T, f *explain.Facts) { spec(f).Unschedulable = true }, state: explain.OK, says: []string{"cordoned"},
	},
	"cordoned, and not there": {
		change: func(_ *testing.T, f *explain.Facts) { spec(f).Unschedulable, f.Target.It = true, nil },
		step:   explain.StepTarget, state: explain.Stopped, reason: "TargetCordoned", says: []string{"synchub uncordon florin"},
	},
	"unreachable": {
		change: func(_ *testing.T, f *explain.Facts) {
			setCondition(status(f), edgev2alpha1.ConditionReady, metav1.ConditionFalse, "TargetUnreachable", "It does not answer.")
			setCondition(status(f), edgev2alpha1.ConditionHeartbeatHealthy, metav1.ConditionFalse, "TargetUnreachable", "It does not answer.")
		},
		step: explain.StepConnection, state: explain.Stopped, reason: "TargetUnreachable", says: []string{"It does not answer"},
	},
	"just connecting": {
		change: func(_ *testing.T, f *explain.Facts) {
			setCondition(status(f), edgev2alpha1.ConditionHeartbeatHealthy, metav1.ConditionUnknown, "Connecting", "The hub connects.")
		},
		step: explain.StepConnection, state: explain.Waiting, reason: "Connecting",
	},
	"another SyncTarget of the cluster": {
		change: func(_ *testing.T, f *explain.Facts) {
			setCondition(status(f), edgev2alpha1.ConditionSyncerReady, metav1.ConditionFalse, "SharedCluster", "guilder is the same cluster.")
		},
		step: explain.StepConnection, state: explain.Stopped, reason: "SharedCluster",
	},
	"no hub runs": {
		change: func(_ *testing.T, f *explain.Facts) {
			status(f).LastSyncerHeartbeatTime = &metav1.Time{Time: now.Add(-time.Hour)}
			f.Target.It = nil
		},
		step: explain.StepTarget, state: explain.Waiting, says: []string{"look whether the hub runs"},
	},
	"no hub runs, and all was done": {
		change: func(_ *testing.T, f *explain.Facts) {
			status(f).LastSyncerHeartbeatTime = &metav1.Time{Time: now.Add(-time.Hour)}
		},
		state: explain.Unknown, says: []string{"No hub has written anything"},
	},
	"no hub has said anything": {
		change: func(_ *testing.T, f *explain.Facts) { status(f).Conditions = nil }, state: explain.Unknown, says: []string{"No hub has said anything"},
	},
	"a mailbox that is being made": {
		change: func(_ *testing.T, f *explain.Facts) {
			setCondition(status(f), edgev2alpha1.ConditionMailboxReady, metav1.ConditionFalse, "Initializing", "It is being made.")
			status(f).Mailbox, f.Served.Error, f.Target.It = nil, errDenied, nil
		},
		step: explain.StepMailbox, state: explain.Waiting, reason: "Initializing",
	},
	"a mailbox that cannot be looked into": {
		change: func(_ *testing.T, f *explain.Facts) {
			f.Served.It, f.Served.Error, f.Object.It = nil, errDenied, nil
		},
		state: explain.Unknown, onTarget: explain.Present, says: []string{"cannot be looked into: you may not", "spec.mailboxAccess", "with the hub's mark"},
	},
	"the target cannot be asked": {
		change: func(_ *testing.T, f *explain.Facts) { f.Target.It, f.Target.Error = nil, errDenied },
		state:  explain.Unknown, onTarget: explain.PresenceUnknown, says: []string{"Whether web is on florin cannot be seen", "you may not", "--target-kubeconfig"},
	},
}

var mailboxCases = map[string]situation{
	"not published": {
		change: func(_ *testing.T, f *explain.Facts) { f.Published.It, f.Target.It = nil, nil },
		step:   explain.StepPublished, state: explain.Stopped, reason: "NotPublished", says: []string{"widgets.example.dev"},
	},
	"published under another name": {
		change: func(t *testing.T, f *explain.Facts) {
			f.Published.It = []synchubv1alpha1.PublishedResource{*parse[synchubv1alpha1.PublishedResource](t, `
metadata: {name: widgets}
spec: {resource: {group: example.dev, resource: widgets, version: v1}, projection: {group: shop.dev}}`)}
			f.Served.It, f.Object.It, f.Target.It = nil, nil, nil
		},
		step: explain.StepPublished, state: explain.Stopped, says: []string{"gives it another name in mailboxes: widgets (shop.dev)"},
	},
	"only related": {
		change: func(t *testing.T, f *explain.Facts) {
			f.Published.It = []synchubv1alpha1.PublishedResource{*parse[synchubv1alpha1.PublishedResource](t, `
metadata: {name: shops}
spec: {resource: {group: example.dev, resource: shops, version: v1}, related: [{identifier: front, origin: Mailbox, resource: {group: example.dev, resource: widgets, version: v1}, object: {reference: {path: spec.widget}}}]}`)}
			f.Target.It = nil
		},
		step: explain.StepPublished, state: explain.Stopped, reason: "NotPublished", says: []string{"shops/front"},
	},
	"a PublishedResource that is not ready": {
		change: func(_ *testing.T, f *explain.Facts) {
			publisher(f).Status.Conditions = []metav1.Condition{{Type: "Ready", Status: metav1.ConditionFalse, Reason: "SchemaMissing", Message: "There is no schema yet."}}
			f.Served.It, f.Object.It, f.Target.It = nil, nil, nil
		},
		step: explain.StepPublished, state: explain.Stopped, reason: "SchemaMissing", says: []string{"widgets is not ready: There is no schema yet"},
	},
	"an API that the mailbox does not serve": {
		change: func(_ *testing.T, f *explain.Facts) {
			f.Published = explain.Seen[[]synchubv1alpha1.PublishedResource]{Error: errDenied}
			f.Served.It, f.Object.It, f.Target.It = nil, nil, nil
		},
		step: explain.StepPublished, state: explain.Stopped, says: []string{"the mailbox does not serve widgets.example.dev"},
	},
	"a PublishedResource that is wrong": {
		change: func(_ *testing.T, f *explain.Facts) { publisher(f).Spec.Filter = &synchubv1alpha1.Filter{CEL: "self."} },
		step:   explain.StepPublished, state: explain.Stopped, reason: "Invalid", says: []string{"spec.filter.cel"},
	},
	"PublishedResources that cannot be seen": {
		change: func(_ *testing.T, f *explain.Facts) {
			f.Published = explain.Seen[[]synchubv1alpha1.PublishedResource]{Error: errDenied}
		},
		state: explain.Unknown, onTarget: explain.Present, says: []string{"cannot be seen: you may not", "--hosting-kubeconfig", "selected by SyncerConfig/all"},
	},
	"no object anywhere": {
		change: func(_ *testing.T, f *explain.Facts) { f.Object.It, f.Target.It = nil, nil },
		step:   explain.StepObject, state: explain.Stopped, onTarget: explain.Absent, says: []string{"there is no such object in the mailbox"},
	},
	"an object that is gone from the mailbox": {
		change: func(_ *testing.T, f *explain.Facts) { f.Object.It = nil },
		step:   explain.StepObject, state: explain.Waiting, onTarget: explain.Present, says: []string{"goes from the cluster, with the policy Delete"},
	},
	"an object that is gone from the mailbox, its config suspended": {
		change: func(_ *testing.T, f *explain.Facts) { f.Object.It, config(f).Spec.Suspend = nil, true },
		step:   explain.StepObject, state: explain.Stopped, reason: "Suspended", says: []string{"it is left on the cluster"},
	},
	"an object from a mailbox that was lost": {
		change: func(_ *testing.T, f *explain.Facts) { f.Object.It, status(f).Mailbox.Cluster = nil, "another" },
		step:   explain.StepObject, state: explain.Stopped, says: []string{"from a mailbox that was lost"},
	},
	"an object of the target alone": {
		change: func(_ *testing.T, f *explain.Facts) { f.Object.It = nil; f.Target.It.SetAnnotations(nil) },
		step:   explain.StepObject, state: explain.Stopped, says: []string{"florin has an object web that did not come from the mailbox"},
	},
	"an object of the target that is to come up": {
		change: func(t *testing.T, f *explain.Facts) {
			f.Object.It = nil
			f.Target.It.SetAnnotations(nil)
			config(f).Spec = edgev2alpha1.SyncerConfigSpec{Upsync: []edgev2alpha1.UpsyncSet{{APIGroup: "example.dev", Resources: []string{"widgets"}, Namespaces: []string{"shop"}, Names: []string{"*"}}}}
		},
		step: explain.StepObject, state: explain.Waiting, says: []string{"selects it for coming up"},
	},
	"an object that came up": {
		change: func(t *testing.T, f *explain.Facts) {
			f.Target.It.SetAnnotations(nil)
			f.Target.It.SetLabels(nil)
			f.Object.It = raised(t, f.Target.It)
		},
		state: explain.OK, onTarget: explain.Present, says: []string{"where it came up from", "it came up from the cluster, where it is shop/web"},
	},
	"an object that came up, and is gone below": {
		change: func(t *testing.T, f *explain.Facts) {
			f.Target.It.SetAnnotations(nil)
			f.Object.It, f.Target.It = raised(t, f.Target.It), nil
		},
		step: explain.StepTarget, state: explain.Waiting, onTarget: explain.Absent, says: []string{"once that is proven it goes from the mailbox"},
	},
	"an object that is being deleted": {
		change: func(_ *testing.T, f *explain.Facts) { f.Object.It.SetDeletionTimestamp(&metav1.Time{Time: now}) },
		step:   explain.StepObject, state: explain.Stopped, reason: "Terminating",
	},
	"an object that waits for the target": {
		change: func(_ *testing.T, f *explain.Facts) {
			f.Object.It.SetDeletionTimestamp(&metav1.Time{Time: now})
			f.Object.It.SetFinalizers([]string{sync.Finalizer})
		},
		step: explain.StepObject, state: explain.Waiting, reason: "Terminating",
	},
	"an object that cannot be read": {
		change: func(_ *testing.T, f *explain.Facts) { f.Object.It, f.Object.Error = nil, errDenied },
		state:  explain.Unknown, says: []string{"it cannot be read in the mailbox: you may not"},
	},
	"a binding that gives users their rights": {
		change: func(_ *testing.T, f *explain.Facts) {
			f.Object.It.SetLabels(map[string]string{edgev2alpha1.LabelMailboxAccess: "true"})
			f.Target.It = nil
		},
		step: explain.StepSelected, state: explain.Stopped, says: []string{"spec.mailboxAccess"},
	},
	"a namespace that was made for what came up": {
		change: func(_ *testing.T, f *explain.Facts) {
			f.Object.It.SetAnnotations(map[string]string{ownership.EnsuredAnnotation: owner.LabelValue()})
			f.Target.It = nil
		},
		step: explain.StepSelected, state: explain.Stopped, says: []string{"only for what came up"},
	},
}

// scope replaces what the config selects.
func scope(text string) func(*testing.T, *explain.Facts) {
	return func(t *testing.T, f *explain.Facts) {
		config(f).Spec = *parse[edgev2alpha1.SyncerConfigSpec](t, text)
		f.Target.It = nil
	}
}

// publish replaces a part of what the PublishedResource says.
func publish(text string, absent bool) func(*testing.T, *explain.Facts) {
	return func(t *testing.T, f *explain.Facts) {
		publisher(f).Spec = *parse[synchubv1alpha1.PublishedResourceSpec](t, "resource: {group: example.dev, resource: widgets, kind: Widget, version: v1}\n"+text)
		if absent {
			f.Target.It = nil
		}
	}
}

var selectionCases = map[string]situation{
	"no config": {
		change: func(_ *testing.T, f *explain.Facts) { f.Configs.It.SyncerConfigs, f.Target.It = nil, nil },
		step:   explain.StepSelected, state: explain.Stopped, reason: "NotSelected", says: []string{"no config of the mailbox names widgets.example.dev"},
	},
	"another namespace": {
		change: scope("namespaceScope: {namespaces: [bakery, mill], resources: [{group: example.dev, resource: widgets}]}"),
		step:   explain.StepSelected, state: explain.Stopped, reason: "NotSelected", says: []string{"SyncerConfig/all spec.namespaceScope.resources[0], but it names the namespaces bakery, mill"},
	},
	"another name, nearer than another namespace": {
		change: scope("namespacedObjects: [{group: example.dev, resource: widgets, objectsByNamespace: [{namespace: mill, names: [web]}]}, {group: example.dev, resource: widgets, objectsByNamespace: [{namespace: shop, names: [api]}]}]"),
		step:   explain.StepSelected, state: explain.Stopped, reason: "NotSelected", says: []string{"spec.namespacedObjects[1], but it names the objects api"},
	},
	"other labels": {
		change: scope("namespaceScope: {namespaces: ['*'], resources: [{group: example.dev, resource: widgets, labelSelector: {matchLabels: {tier: gold}}}]}"),
		step:   explain.StepSelected, state: explain.Stopped, reason: "NotSelected", says: []string{`its labelSelector "tier=gold" does not match`},
	},
	"other annotations": {
		change: scope("namespaceScope: {namespaces: ['*'], resources: [{group: example.dev, resource: widgets, annotations: {tier: gold}}]}"),
		step:   explain.StepSelected, state: explain.Stopped, reason: "NotSelected", says: []string{`lacks the annotation tier with the value "gold"`},
	},
	"another version": {
		change: scope("namespaceScope: {namespaces: ['*'], resources: [{group: example.dev, resource: widgets, apiVersion: v2}]}"),
		step:   explain.StepSelected, state: explain.Stopped, reason: "NotSelected", says: []string{"version v2, which mailboxes do not serve"},
	},
	"an empty list": {
		change: scope("namespacedObjects: [{group: example.dev, resource: widgets, objectsByNamespace: [{namespace: shop}]}]"),
		step:   explain.StepSelected, state: explain.Stopped, reason: "NotSelected", says: []string{"spec.namespacedObjects[0], but a list of it is absent or empty"},
	},
	"deselected, and still there": {
		change: func(_ *testing.T, f *explain.Facts) { f.Configs.It.SyncerConfigs = nil },
		step:   explain.StepSelected, state: explain.Stopped, reason: "NotSelected", onTarget: explain.Present, says: []string{"it goes from the cluster once that is proven, with the policy Delete"},
	},
	"suspended": {
		change: func(_ *testing.T, f *explain.Facts) { config(f).Spec.Suspend = true },
		step:   explain.StepSelected, state: explain.Stopped, reason: "Suspended", says: []string{"SyncerConfig/all"},
	},
	"configs that cannot be read": {
		change: func(_ *testing.T, f *explain.Facts) { f.Configs = explain.Seen[explain.Configs]{Error: errDenied} },
		state:  explain.Unknown, says: []string{"the configs of the mailbox cannot be read: you may not"},
	},
	"all of the resource": {
		change: func(t *testing.T, f *explain.Facts) {
			f.Configs.It.SyncerConfigs = nil
			publish("select: All", false)(t, f)
		},
		state: explain.OK, says: []string{"the PublishedResource selects all objects"},
	},
	"related to another": {
		change: func(t *testing.T, f *explain.Facts) {
			f.Configs.It.SyncerConfigs = nil
			f.Target.It = placed(t, f.Object.It, transform.Wish{Policy: ownership.PolicyDelete, Relation: "shops/front"})
		},
		state: explain.OK, onTarget: explain.Present, says: []string{"related to another object, by shops/front"},
	},
	"held back by its labels": {
		change: publish("filter: {resource: {matchLabels: {tier: gold}}}", true),
		step:   explain.StepFilter, state: explain.Stopped, reason: "Filtered", says: []string{"spec.filter of the PublishedResource widgets holds it back"},
	},
	"held back by its namespace": {
		change: publish("filter: {namespace: {matchLabels: {tier: gold}}}", true),
		step:   explain.StepFilter, state: explain.Stopped, reason: "Filtered",
	},
	"a namespace that cannot be seen": {
		change: func(t *testing.T, f *explain.Facts) {
			publish("filter: {namespace: {matchLabels: {tier: gold}}}", false)(t, f)
			f.Namespace.It, f.Namespace.Error = nil, errDenied
		},
		state: explain.Unknown, says: []string{"the labels of its namespace"},
	},
	"let pass": {
		change: publish("filter: {cel: self.spec.size == 3}", false), state: explain.OK, says: []string{"lets it pass"},
	},
	"a filter that fails": {
		change: publish("filter: {cel: self.spec.colour == 'red'}", true),
		step:   explain.StepFilter, state: explain.Stopped, reason: "RuleFailed",
	},
	"another name on the target": {
		change: publish("naming: {name: '{{ .SyncTarget }}-{{ .Object.metadata.name }}'}", true),
		step:   explain.StepTarget, state: explain.Waiting, says: []string{"does not have shop/florin-web yet"},
	},
	"a name that is not legal": {
		change: publish("naming: {name: '{{ .Object.metadata.name }}/x'}", true),
		step:   explain.StepName, state: explain.Stopped, reason: "Invalid", onTarget: explain.PresenceUnknown, says: []string{"web/x"},
	},
	"selected for coming up as well": {
		change: func(t *testing.T, f *explain.Facts) {
			config(f).Spec.Upsync = []edgev2alpha1.UpsyncSet{{APIGroup: "example.dev", Resources: []string{"widgets"}, Namespaces: []string{"shop"}, Names: []string{"web"}}}
			f.Target.It = nil
		},
		step: explain.StepName, state: explain.Stopped, reason: "SelectedUp",
	},
}

// synced changes what the SyncTarget says of the resource.
func synced(state edgev2alpha1.SyncedResourceState, reason string) func(*testing.T, *explain.Facts) {
	return func(_ *testing.T, f *explain.Facts) {
		resource := &status(f).SyncedResources[0]
		resource.State, resource.Reason, resource.Message = state, reason, "It says why."
		f.Target.It = nil
	}
}

func event(reason string, uid types.UID) corev1.Event {
	return corev1.Event{Reason: reason, Message: "It says why.", Type: corev1.EventTypeWarning, ReportingController: "synchub", InvolvedObject: corev1.ObjectReference{UID: uid}}
}

var contentCases = map[string]situation{
	"not listed yet": {
		change: func(_ *testing.T, f *explain.Facts) { status(f).SyncedResources, f.Target.It = nil, nil },
		step:   explain.StepCompatibility, state: explain.Waiting, says: []string{"status.syncedResources"},
	},
	"not compared yet": {
		change: synced(edgev2alpha1.SyncedResourcePending, "Pending"),
		step:   explain.StepCompatibility, state: explain.Waiting, reason: "Pending",
	},
	"not served": {
		change: synced(edgev2alpha1.SyncedResourceIncompatible, "NotServed"),
		step:   explain.StepCompatibility, state: explain.Stopped, reason: "NotServed", says: []string{"It says why"},
	},
	"incompatible": {
		change: synced(edgev2alpha1.SyncedResourceIncompatible, "SchemaIncompatible"),
		step:   explain.StepCompatibility, state: explain.Stopped, reason: "SchemaIncompatible",
	},
	"incompatible, and sent all the same": {
		change: func(t *testing.T, f *explain.Facts) {
			there := f.Target.It
			synced(edgev2alpha1.SyncedResourceIncompatible, "SchemaIncompatible")(t, f)
			publish("compatibility: Warn", false)(t, f)
			f.Target.It = there
		},
		state: explain.OK, says: []string{"lets them go down all the same"},
	},
	"a failure that its config reports": {
		change: func(_ *testing.T, f *explain.Facts) {
			config(f).Status.Failures = []edgev2alpha1.ObjectFailure{
				{Group: "example.dev", Resource: "widgets", Namespace: "shop", Name: "another", Reason: "Conflict", Message: "Not this."},
				{Group: "example.dev", Resource: "widgets", Namespace: "shop", Name: "web", Reason: "AdmissionDenied", Message: "The webhook said no."},
			}
			f.Target.It = nil
		},
		step: explain.StepReport, state: explain.Stopped, reason: "AdmissionDenied", says: []string{"SyncerConfig/all: The webhook said no"},
	},
	"a failure that an event tells": {
		change: func(_ *testing.T, f *explain.Facts) {
			f.Events, f.Target.It = []corev1.Event{event("Forbidden", "above"), event("Conflict", "its predecessor")}, nil
		},
		step: explain.StepReport, state: explain.Stopped, reason: "Forbidden", says: []string{"the last event about it: It says why"},
	},
	"an event that is past": {
		change: func(_ *testing.T, f *explain.Facts) { f.Events = []corev1.Event{event("Forbidden", "above")} }, state: explain.OK,
	},
	"more failures than are listed": {
		change: func(_ *testing.T, f *explain.Facts) { config(f).Status.Failed = 11 }, state: explain.Unknown, says: []string{"not all are listed"},
	},
	"a name that is taken": {
		change: func(_ *testing.T, f *explain.Facts) { f.Target.It.SetAnnotations(nil) },
		step:   explain.StepTarget, state: explain.Stopped, reason: "Conflict", onTarget: explain.Present,
		says: []string{"florin has an object web that did not come from the mailbox", "it has no mark of the hub", "spec.adoption"},
	},
	"a mark of another hub": {
		change: func(t *testing.T, f *explain.Facts) { f.Hub = "another" },
		step:   explain.StepTarget, state: explain.Stopped, reason: "Conflict", says: []string{ownership.ErrForeign.Error()},
	},
	"a hub that only the mark tells": {
		change: func(_ *testing.T, f *explain.Facts) { f.Hub = "" }, state: explain.OK, says: []string{"in step with the mailbox"},
	},
	"being deleted below": {
		change: func(_ *testing.T, f *explain.Facts) { f.Target.It.SetDeletionTimestamp(&metav1.Time{Time: now}) },
		step:   explain.StepTarget, state: explain.Waiting, reason: "Terminating",
	},
	"placed from another object": {
		change: func(t *testing.T, f *explain.Facts) {
			f.Object.It.SetName("other")
			f.Key.Name = "other"
			publish("naming: {name: web}", false)(t, f)
		},
		step: explain.StepContent, state: explain.Stopped, reason: "Conflict", says: []string{"widgets shop/web"},
	},
	"drifted": {
		change: func(_ *testing.T, f *explain.Facts) {
			entries := f.Target.It.GetManagedFields()
			entries[0].FieldsV1 = metav1.NewFieldsV1(`{"f:metadata":{"f:labels":{"f:synchub.dev/owner":{}},"f:annotations":{"f:synchub.dev/mark":{}}}}`)
			f.Target.It.SetManagedFields(entries)
		},
		state: explain.Unknown, says: []string{"does not hold .spec there"},
	},
	"without the label": {
		change: func(_ *testing.T, f *explain.Facts) { f.Target.It.SetLabels(nil) }, state: explain.Unknown, says: []string{ownership.OwnerLabel},
	},
	"another policy": {
		change: func(_ *testing.T, f *explain.Facts) {
			config(f).Spec.DeletionPolicy = edgev2alpha1.DeletionPolicyOrphan
		},
		step: explain.StepContent, state: explain.Waiting, reason: "Changed",
	},
	"another value": {
		change: func(_ *testing.T, f *explain.Facts) { f.Object.It.Object["spec"] = map[string]any{"size": int64(4)} },
		state:  explain.Unknown, says: []string{"values differ at .spec.size"},
	},
	"created once": {
		change: func(t *testing.T, f *explain.Facts) {
			f.Object.It.SetAnnotations(map[string]string{ownership.OverwriteAnnotation: "false"})
			f.Target.It = placed(t, f.Object.It, transform.Wish{Policy: ownership.PolicyDelete})
			f.Object.It.Object["spec"] = map[string]any{"size": int64(4)}
		},
		state: explain.OK, says: []string{"created once"},
	},
	"a mutation that fails": {
		change: publish("mutation: {down: [{regex: {path: spec, pattern: a}}]}", false),
		step:   explain.StepContent, state: explain.Stopped, reason: "RuleFailed",
	},
	"a status that is not back": {
		change: func(_ *testing.T, f *explain.Facts) { delete(f.Object.It.Object, "status") },
		step:   explain.StepStatus, state: explain.Waiting,
	},
	"a status that the PublishedResource keeps below": {
		change: func(t *testing.T, f *explain.Facts) {
			delete(f.Object.It.Object, "status")
			publish("statusReturn: false", false)(t, f)
		},
		state: explain.OK, says: []string{"statusReturn of the PublishedResource is false"},
	},
	"a status that the config keeps below": {
		change: func(_ *testing.T, f *explain.Facts) {
			delete(f.Object.It.Object, "status")
			config(f).Spec.StatusReturn = new(false)
		},
		state: explain.OK, says: []string{"statusReturn is false in all configs"},
	},
}

// Where to look on the target is known before it is asked.
func TestPlace(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*testing.T, *explain.Facts)
		want   string
	}{
		"the same":           {func(*testing.T, *explain.Facts) {}, "example.dev/v1 widgets Widget shop/web"},
		"another name":       {publish("naming: {name: '{{ .SyncTarget }}-{{ .Object.metadata.name }}'}", true), "example.dev/v1 widgets Widget shop/florin-web"},
		"no object":          {func(_ *testing.T, f *explain.Facts) { f.Object.It = nil }, "example.dev/v1 widgets Widget shop/web"},
		"no object to name":  {func(t *testing.T, f *explain.Facts) { publish("naming: {name: a}", true)(t, f); f.Object.It = nil }, "its name there is made of the object in the mailbox, which is not there"},
		"another resource":   {publish("", true), "example.dev/v1 widgets Widget shop/web"},
		"a conversion of it": {scope("namespaceScope: {namespaces: [shop], resources: [{group: example.dev, resource: widgets}]}\nconversions: [{upstream: {group: example.dev, version: v1, kind: Widget}, downstream: {group: example.dev, version: v2, kind: Gadget}}]"), "example.dev/v2  Gadget shop/web"},
		"what came up": {func(t *testing.T, f *explain.Facts) {
			f.Target.It.SetAnnotations(nil)
			f.Target.It.SetName("below")
			f.Object.It = raised(t, f.Target.It)
		}, "example.dev/v1 widgets Widget shop/below"},
	} {
		t.Run(name, func(t *testing.T) {
			facts := inStep(t)
			test.change(t, facts)
			place, err := facts.Place()
			got := strings.Join([]string{place.GroupVersion().String(), place.Resource, place.Kind, place.NamespacedName.String()}, " ")
			if err != nil {
				got = err.Error()
			}
			if got != test.want {
				t.Errorf("got %s, want %s", got, test.want)
			}
		})
	}
}
