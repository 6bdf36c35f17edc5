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
	"strings"
	"testing"

	"github.com/kcp-dev/logicalcluster/v3"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/cmd/kubectl-synchub/explain"
	"github.com/synchub-dev/synchub/controllers/plan/ownership"
	"github.com/synchub-dev/synchub/controllers/plan/tenancy"
	"github.com/synchub-dev/synchub/controllers/plan/transform"
	"github.com/synchub-dev/synchub/test/fixtures"
)

// placedFacts returns the facts of an object that one EdgePlacement selects, and that is healthy on both clusters.
func placedFacts(t *testing.T) *explain.PlacementFacts {
	t.Helper()
	facts := &explain.PlacementFacts{
		SyncTarget: "florin", Resource: schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}, Key: types.NamespacedName{Namespace: "shop", Name: "prices"},
	}
	facts.Object.Value = fixtures.Object(t, "{apiVersion: v1, kind: ConfigMap, metadata: {name: prices, namespace: shop, labels: {app: till}}}")
	facts.Namespace.Value = fixtures.Object(t, "{apiVersion: v1, kind: Namespace, metadata: {name: shop, labels: {team: a}}}")
	facts.Placements.Value = []edgev2alpha1.EdgePlacement{
		fixtures.Decode[edgev2alpha1.EdgePlacement](t, "{metadata: {name: other}, spec: {downsync: [{resources: [secrets]}]}}"),
		fixtures.Decode[edgev2alpha1.EdgePlacement](t, `
metadata: {name: web, generation: 2}
spec: {downsync: [{namespaceSelectors: [{matchLabels: {team: a}}]}]}
status: {specGeneration: 2, selected: 1, destinations: 2, placed: 2, synced: 2, healthy: 2}
`),
	}
	facts.Slices.Value = []edgev2alpha1.SinglePlacementSlice{fixtures.Decode[edgev2alpha1.SinglePlacementSlice](t, `
metadata: {name: web}
destinations: [{cluster: abc, syncTargetName: florin}, {cluster: abc, syncTargetName: guilder}]
`)}
	return facts
}

func TestFromWorkload(t *testing.T) {
	readError := errors.New("you may not")
	pair := func(syncTarget, reason, message string) edgev2alpha1.PlacementPair {
		return edgev2alpha1.PlacementPair{SyncTarget: syncTarget, ObjectFailure: edgev2alpha1.ObjectFailure{Resource: "configmaps", Namespace: "shop", Name: "prices", Reason: reason, Message: message}}
	}
	progressing := func(reason string) func(*explain.PlacementFacts) {
		return func(f *explain.PlacementFacts) {
			status := &f.Placements.Value[1].Status
			status.Healthy, status.Progressing = 1, []edgev2alpha1.PlacementPair{pair("florin", reason, "1 of 2")}
		}
	}
	failing := func(reason string) func(*explain.PlacementFacts) {
		return func(f *explain.PlacementFacts) {
			status := &f.Placements.Value[1].Status
			status.Healthy, status.Failures = 1, []edgev2alpha1.PlacementPair{pair("florin", reason, "it is theirs")}
		}
	}
	for name, test := range map[string]struct {
		change   func(*explain.PlacementFacts)
		presence explain.Presence
		state    explain.State
		step     string
		text     string
	}{
		"healthy":                   {func(*explain.PlacementFacts) {}, explain.Present, explain.OK, "", "prices is on florin"},
		"no object":                 {func(f *explain.PlacementFacts) { f.Object.Value = nil }, explain.PresenceUnknown, explain.Stopped, explain.StepWorkload, "does not have it"},
		"an object that is deleted": {func(f *explain.PlacementFacts) { f.Object.Value.SetDeletionTimestamp(new(metav1.Now())) }, explain.PresenceUnknown, explain.Waiting, explain.StepWorkload, "being deleted"},
		"an object of kcp":          {func(f *explain.PlacementFacts) { f.Object.Value.SetName("kube-root-ca.crt") }, explain.PresenceUnknown, explain.Stopped, explain.StepWorkload, "never placed"},
		"an object of the cluster":  {func(f *explain.PlacementFacts) { f.Object.Value = cameUp(t, "florin") }, explain.Present, explain.OK, "", "prices came up from florin"},
		"an object of another one":  {func(f *explain.PlacementFacts) { f.Object.Value = cameUp(t, "guilder") }, explain.PresenceUnknown, explain.Stopped, explain.StepWorkload, "it came up from guilder"},
		"an unreadable object": {func(f *explain.PlacementFacts) {
			f.Object = explain.Observed[*unstructured.Unstructured]{Err: readError}
		}, explain.PresenceUnknown, explain.Unknown, "", "you may not"},
		"no placement":           {func(f *explain.PlacementFacts) { f.Placements.Value = nil }, explain.PresenceUnknown, explain.Stopped, explain.StepPlacement, "bind compute"},
		"no placement that fits": {func(f *explain.PlacementFacts) { f.Placements.Value = f.Placements.Value[:1] }, explain.PresenceUnknown, explain.Stopped, explain.StepPlacement, "no EdgePlacement of the workspace (1) selects it"},
		"unreadable placements":  {func(f *explain.PlacementFacts) { f.Placements.Err = readError }, explain.PresenceUnknown, explain.Unknown, "", "you may not"},
		"an unreadable namespace": {func(f *explain.PlacementFacts) {
			f.Namespace = explain.Observed[*unstructured.Unstructured]{Err: readError}
		}, explain.PresenceUnknown, explain.Unknown, "", "labels of its Namespace"},
		"another cluster":            {func(f *explain.PlacementFacts) { f.SyncTarget = "krone" }, explain.PresenceUnknown, explain.Stopped, explain.StepDestination, "krone is no cluster of web"},
		"no destination at all":      {func(f *explain.PlacementFacts) { f.Slices.Value = nil; notReady(f, "NoLocation", 0) }, explain.PresenceUnknown, explain.Stopped, explain.StepDestination, "no Location"},
		"a placement beyond a limit": {func(f *explain.PlacementFacts) { notReady(f, "LimitExceeded", 2) }, explain.PresenceUnknown, explain.Stopped, explain.StepDestination, "the EdgePlacement web"},
		"unreadable slices":          {func(f *explain.PlacementFacts) { f.Slices.Err = readError }, explain.PresenceUnknown, explain.Unknown, "", "you may not"},
		"not in the mailbox yet":     {progressing("Placing"), explain.PresenceUnknown, explain.Waiting, explain.StepProgress, "on its way to the mailbox"},
		"not on the cluster yet":     {progressing("Syncing"), explain.PresenceUnknown, explain.Waiting, explain.StepProgress, "the cluster is away"},
		"not working yet":            {progressing("InProgress"), explain.Present, explain.Waiting, explain.StepProgress, "1 of 2"},
		"failing":                    {failing("Conflict"), explain.PresenceUnknown, explain.Stopped, explain.StepProgress, "it is theirs"},
		"unhealthy":                  {failing("Unhealthy"), explain.Present, explain.Stopped, explain.StepProgress, "it is theirs"},
		"too many that are not":      {func(f *explain.PlacementFacts) { f.Placements.Value[1].Status.Healthy = 0 }, explain.PresenceUnknown, explain.Unknown, "", "than its status describes"},
	} {
		facts := placedFacts(t)
		test.change(facts)
		got := explain.FromWorkload(facts).Result
		if got.OnTarget != test.presence || got.State != test.state || got.Step != test.step || !strings.Contains(got.Text, test.text) {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// cameUp returns an object of a workload workspace that came up from the object shop-1/prices of a cluster.
func cameUp(t *testing.T, syncTarget string) *unstructured.Unstructured {
	t.Helper()
	up := transform.Up{
		Owner: ownership.Owner{Hub: "hub", SyncTarget: "uid"}.ForWorkspace("workload", "inventory"), Mailbox: "mailbox", SyncTarget: syncTarget,
		Resource: schema.GroupResource{Resource: "configmaps"}, Version: "v1", Kind: "ConfigMap", Namespaced: true, Hasher: ownership.NewHasher([]byte("key")),
	}
	desired, err := up.Desired(fixtures.Object(t, "{apiVersion: v1, kind: ConfigMap, metadata: {name: prices, namespace: shop-1}}"), up.Resource, transform.SyncSpec{Namespace: "shop"})
	if err != nil {
		t.Fatal(err)
	}
	desired.Object.SetLabels(map[string]string{edgev2alpha1.LabelSyncTarget: syncTarget})
	return desired.Object
}

// The explanation follows an object that came up to the inventory and the mailbox that it came from.
func TestOriginOfAnObject(t *testing.T) {
	facts := placedFacts(t)
	facts.Object.Value = cameUp(t, "florin")
	if key := (types.NamespacedName{Namespace: "shop-1", Name: "prices"}); facts.ClusterKey() != key || facts.Inventory() != "inventory" {
		t.Errorf("it is %s of the inventory %s", facts.ClusterKey(), facts.Inventory())
	}
}

func notReady(facts *explain.PlacementFacts, reason string, destinations int32) {
	status := &facts.Placements.Value[1].Status
	status.Destinations = destinations
	status.Conditions = []metav1.Condition{{Type: edgev2alpha1.ConditionReady, Status: metav1.ConditionFalse, Reason: reason, Message: "There is no Location."}}
}

// The steps of the mailbox follow, and decide unless the workload workspace stops the object.
func TestFromWorkloadThenMailbox(t *testing.T) {
	inMailbox := explain.Explain(inStep(t))
	facts := placedFacts(t)
	if facts.Inventory() != "abc" {
		t.Errorf("the inventory is %q", facts.Inventory())
	}
	both := explain.FromWorkload(facts).Then(inMailbox)
	if both.Result != inMailbox.Result || len(both.Steps) != 4+len(inMailbox.Steps) || both.Steps[0].Step != explain.StepWorkload {
		t.Errorf("%+v", both)
	}
	facts.Object.Value = nil
	if stopped := explain.FromWorkload(facts).Then(inMailbox); stopped.Result.Step != explain.StepWorkload {
		t.Errorf("%+v", stopped.Result)
	}
}

// On a cluster where each workspace has namespaces of its own, the explanation names the object there.
func TestFromWorkloadWithOwnNamespaces(t *testing.T) {
	facts := placedFacts(t)
	facts.Object.Value.SetAnnotations(map[string]string{logicalcluster.AnnotationKey: "ws"})
	if key := facts.ClusterKey(); key != facts.Key {
		t.Errorf("with shared namespaces it is called %s", key)
	}
	facts.Slices.Value[0].Destinations[0].NamespaceTemplate = "{namespace}-{hash}"
	there := "shop-" + tenancy.WorkspaceHash("ws")
	if key := facts.ClusterKey(); key != (types.NamespacedName{Namespace: there, Name: "prices"}) {
		t.Errorf("it is called %s", key)
	}
	if step := explain.FromWorkload(facts).Steps[2]; step.State != explain.OK || !strings.Contains(step.What, there+"/prices") {
		t.Errorf("%+v", step)
	}
	facts.Resource.Resource, facts.Key = "namespaces", types.NamespacedName{Name: "shop"}
	if key := facts.ClusterKey(); key != (types.NamespacedName{Name: there}) {
		t.Errorf("the Namespace is called %s", key)
	}
}
