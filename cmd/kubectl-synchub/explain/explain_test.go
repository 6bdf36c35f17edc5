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

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	synchubv1alpha1 "github.com/synchub-dev/synchub/apis/synchub/v1alpha1"
	"github.com/synchub-dev/synchub/cmd/kubectl-synchub/explain"
	"github.com/synchub-dev/synchub/controllers/plan/ownership"
	"github.com/synchub-dev/synchub/controllers/plan/transform"
	"github.com/synchub-dev/synchub/controllers/publishedresource"
	"github.com/synchub-dev/synchub/test/fixtures"
)

const (
	hub     = types.UID("hub")
	florin  = types.UID("florin-uid")
	mailbox = "2x7abc"
)

var (
	now   = time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	owner = ownership.Owner{Hub: hub, SyncTarget: florin, Sealer: ownership.InsecureSealer}
)

func setCondition(status *edgev2alpha1.SyncTargetStatus, kind string, is metav1.ConditionStatus, reason, message string) {
	status.Conditions = slices.DeleteFunc(status.Conditions, func(one metav1.Condition) bool { return one.Type == kind })
	status.Conditions = append(status.Conditions, metav1.Condition{Type: kind, Status: is, Reason: reason, Message: message})
}

// inStep returns the facts of the Widget shop/web, which is in sync on the target.
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
	status.SyncedResources = []edgev2alpha1.SyncedResource{{Group: "example.dev", Resource: "widgets", Versions: []string{"v1"}, Own: true, State: edgev2alpha1.SyncedResourceAccepted, Reason: "Compatible"}}
	facts.Served.Value = &publishedresource.API{
		GroupVersionResource: facts.Resource.WithVersion("v1"), Kind: "Widget", Namespaced: true, StatusSubresource: true, Versions: []string{"v1"},
	}
	facts.Published.Value = []synchubv1alpha1.PublishedResource{fixtures.Decode[synchubv1alpha1.PublishedResource](t, `
metadata: {name: widgets}
spec: {resource: {group: example.dev, resource: widgets, version: v1}}
status: {conditions: [{type: Ready, status: "True"}]}`)}
	facts.Configs.Value.SyncerConfigs = []*edgev2alpha1.SyncerConfig{fixtures.Decode[*edgev2alpha1.SyncerConfig](t, `
metadata: {name: all}
spec: {namespaceScope: {namespaces: [shop], resources: [{group: example.dev, resource: widgets}]}}`)}
	facts.Object.Value = fixtures.Object(t, `
apiVersion: example.dev/v1
kind: Widget
metadata: {name: web, namespace: shop, uid: above, generation: 1}
spec: {size: 3}
status: {ready: true}`)
	facts.Namespace.Value = fixtures.Object(t, "{apiVersion: v1, kind: Namespace, metadata: {name: shop}}")
	facts.Target.Value = placed(t, facts.Object.Value, transform.SyncSpec{Policy: ownership.PolicyDelete})
	return facts
}

// placed returns the copy that the hub makes of an object on the target.
func placed(t *testing.T, source *unstructured.Unstructured, syncSpec transform.SyncSpec) *unstructured.Unstructured {
	t.Helper()
	down := transform.Down{
		Owner: owner, Mailbox: mailbox, SyncTarget: "florin", Resource: schema.GroupResource{Group: "example.dev", Resource: "widgets"},
		Namespaced: true, Hasher: ownership.NewHasher([]byte("the key of the hub")),
	}
	desired, err := down.Desired(source, syncSpec)
	if err != nil {
		t.Fatal(err)
	}
	made := desired.ForCreate().DeepCopy()
	made.SetUID("below")
	made.SetGeneration(1)
	made.SetManagedFields([]metav1.ManagedFieldsEntry{{
		Manager: ownership.FieldManager(hub), Operation: metav1.ManagedFieldsOperationApply,
		FieldsV1: metav1.NewFieldsV1(`{"f:metadata":{"f:labels":{"f:synchub.dev/owner":{}},"f:annotations":{"f:synchub.dev/mark":{}}},"f:spec":{"f:size":{}}}`),
	}})
	made.Object["status"] = map[string]any{"ready": true}
	return made
}

// upsynced returns the mailbox object that the hub makes of a target object.
func upsynced(t *testing.T, target *unstructured.Unstructured, namespace string) *unstructured.Unstructured {
	t.Helper()
	up := transform.Up{
		Owner: owner, Mailbox: mailbox, SyncTarget: "florin", Resource: schema.GroupResource{Group: "example.dev", Resource: "widgets"},
		Version: "v1", Kind: "Widget", Namespaced: true, Hasher: ownership.NewHasher([]byte("the key of the hub")),
	}
	desired, err := up.Desired(target, up.Resource, transform.SyncSpec{Policy: ownership.PolicyDelete, Namespace: namespace})
	if err != nil {
		t.Fatal(err)
	}
	return desired.ForCreate()
}

func spec(f *explain.Facts) *edgev2alpha1.SyncTargetSpec            { return &f.SyncTarget.Spec }
func status(f *explain.Facts) *edgev2alpha1.SyncTargetStatus        { return &f.SyncTarget.Status }
func config(f *explain.Facts) *edgev2alpha1.SyncerConfig            { return f.Configs.Value.SyncerConfigs[0] }
func publisher(f *explain.Facts) *synchubv1alpha1.PublishedResource { return &f.Published.Value[0] }

var errDenied = errors.New("you may not")

// testCase is one change of the facts in sync, and the expected explanation.
type testCase struct {
	change func(t *testing.T, f *explain.Facts)
	// step is the expected stopping step. It is empty if none stops the object.
	step   string
	state  explain.State
	reason string
	// texts are parts of the step's text, or of the result's text if there is no step.
	texts    []string
	onTarget explain.Presence
}

func TestExplain(t *testing.T) {
	for _, cases := range []map[string]testCase{targetCases, mailboxCases, selectionCases, contentCases} {
		for name, test := range cases {
			t.Run(name, func(t *testing.T) { check(t, test) })
		}
	}
}

func check(t *testing.T, test testCase) {
	t.Helper()
	facts := inStep(t)
	test.change(t, facts)
	got := explain.Explain(facts)
	if got.Result.Step != test.step || got.Result.State != test.state {
		t.Errorf("the answer is %s %s, want %s %s", got.Result.Step, got.Result.State, test.step, test.state)
	}
	if test.onTarget != "" && got.Result.OnTarget != test.onTarget {
		t.Errorf("on the target: %s, want %s", got.Result.OnTarget, test.onTarget)
	}
	text := got.Result.Text
	for _, step := range got.Steps {
		if test.step == "" || step.Step == test.step {
			text += " " + step.What + "; " + step.Do
			if test.step != "" && step.Reason != test.reason {
				t.Errorf("the reason is %q, want %q", step.Reason, test.reason)
			}
		}
	}
	for _, part := range test.texts {
		if !strings.Contains(text, part) {
			t.Errorf("%q is missing", part)
		}
	}
	if t.Failed() {
		t.Logf("%+v\n%+v", got.Result, got.Steps)
	}
}

func TestErrOfAResult(t *testing.T) {
	for state, fails := range map[explain.State]bool{explain.OK: false, explain.Unknown: false, explain.Waiting: true, explain.Stopped: true} {
		if err := (explain.Result{State: state, Step: explain.StepSelected}).Err(); (err != nil) != fails {
			t.Errorf("%s: %v", state, err)
		}
	}
}
