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

package synctarget

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	ktesting "k8s.io/client-go/testing"
	clocktesting "k8s.io/utils/clock/testing"
	crfake "sigs.k8s.io/controller-runtime/pkg/client/fake"
	mcreconcile "sigs.k8s.io/multicluster-runtime/pkg/reconcile"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/controllers/agent/assignment"
	"github.com/synchub-dev/synchub/controllers/copystates"
	"github.com/synchub-dev/synchub/controllers/copystates/codec"
	"github.com/synchub-dev/synchub/controllers/objectsync"
	"github.com/synchub-dev/synchub/controllers/objectsync/plan"
	"github.com/synchub-dev/synchub/controllers/objectsync/plan/ownership"
	"github.com/synchub-dev/synchub/controllers/syncmanager"
	"github.com/synchub-dev/synchub/provider/ledger"
	"github.com/synchub-dev/synchub/provider/targets"
)

var agentEpoch = time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)

// agentFixture is a SyncTarget with an agent, as a hub sees it that has just started.
type agentFixture struct {
	*Controller
	clock      *clocktesting.FakeClock
	syncTarget *edgev2alpha1.SyncTarget
	state      *syncTargetState
}

func newAgentFixture() *agentFixture {
	clock := clocktesting.NewFakeClock(agentEpoch)
	syncTarget := &edgev2alpha1.SyncTarget{Spec: edgev2alpha1.SyncTargetSpec{Mode: edgev2alpha1.SyncModeAgent}}
	syncTarget.Name, syncTarget.UID, syncTarget.Generation = "edge", "uid", 1
	meta.SetStatusCondition(&syncTarget.Status.Conditions, metav1.Condition{Type: edgev2alpha1.ConditionMailboxReady, Status: metav1.ConditionTrue, Reason: "Ready"})
	return &agentFixture{NewController(Options{Clock: clock}), clock, syncTarget, &syncTargetState{since: clock.Now(), agent: agentState{leaseRead: true}}}
}

// receive lets the hub read a report.
func (f *agentFixture) receive(t *testing.T, report *assignment.Report, key byte) {
	t.Helper()
	sealer := func(key byte) *ownership.Sealer {
		return ownership.NewSealer(bytes.Repeat([]byte{key}, assignment.KeyLength))
	}
	report.Mailbox, report.SyncTarget = "mailbox", f.syncTarget.UID
	text, seal, err := assignment.SealReport(sealer(key), report)
	if err != nil {
		t.Fatal(err)
	}
	f.acceptReport(t.Context(), sealer(1), text, seal, f.syncTarget, "mailbox", f.state)
}

func (f *agentFixture) expect(t *testing.T, status metav1.ConditionStatus, reason string) {
	t.Helper()
	f.setAgentStatus(f.syncTarget, "mailbox", nil, f.state)
	ready := meta.FindStatusCondition(f.syncTarget.Status.Conditions, edgev2alpha1.ConditionReady)
	if ready == nil || ready.Status != status || ready.Reason != reason {
		t.Errorf("want %s %s, got %+v", status, reason, ready)
	}
}

// healthyReport returns the report of an agent that syncs, made at a time of its clock.
func healthyReport(at time.Time) *assignment.Report {
	report := &assignment.Report{Sequence: at.UnixMilli()}
	report.Status.Counts = &edgev2alpha1.TargetCounts{Synced: 3}
	for kind, reason := range map[string]string{edgev2alpha1.ConditionHeartbeatHealthy: "Ready", edgev2alpha1.ConditionSyncerReady: ReasonSyncing} {
		report.Status.Conditions = append(report.Status.Conditions, metav1.Condition{Type: kind, Status: metav1.ConditionTrue, Reason: reason})
	}
	return report
}

func TestAgentThatReportsIsReadyUntilItIsSilent(t *testing.T) {
	f := newAgentFixture()
	f.expect(t, metav1.ConditionUnknown, ReasonAgentNotSeen)
	f.receive(t, healthyReport(f.clock.Now()), 1)
	f.expect(t, metav1.ConditionTrue, ReasonReady)
	if f.syncTarget.Status.Counts == nil || f.syncTarget.Status.LastSyncerHeartbeatTime == nil {
		t.Errorf("got %+v", f.syncTarget.Status)
	}
	f.clock.Step(agentSilentAfter)
	f.expect(t, metav1.ConditionFalse, ReasonAgentSilent)
	if f.syncTarget.Status.Counts != nil {
		t.Error("the counts of a silent agent are still shown")
	}
	f.receive(t, healthyReport(f.clock.Now()), 1)
	f.expect(t, metav1.ConditionTrue, ReasonReady)
}

func TestOldAndForgedReportsDoNotCount(t *testing.T) {
	f := newAgentFixture()
	last := healthyReport(f.clock.Now())
	f.receive(t, last, 1)
	f.clock.Step(agentSilentAfter)
	f.receive(t, last, 1)
	f.receive(t, healthyReport(f.clock.Now()), 2)
	f.expect(t, metav1.ConditionFalse, ReasonAgentSilent)

	// After a restart of the hub a report from long ago, which somebody has put back, is no sign of life.
	f = newAgentFixture()
	f.receive(t, healthyReport(f.clock.Now().Add(-time.Hour)), 1)
	f.expect(t, metav1.ConditionUnknown, ReasonStarting)
	f.clock.Step(agentSilentAfter)
	f.expect(t, metav1.ConditionFalse, ReasonAgentSilent)
}

// A hub that starts leaves what its predecessor wrote until it knows better.
func TestRestartedHubKeepsTheStatusOfAgents(t *testing.T) {
	f := newAgentFixture()
	f.receive(t, healthyReport(f.clock.Now()), 1)
	f.expect(t, metav1.ConditionTrue, ReasonReady)
	f.state = &syncTargetState{since: f.clock.Now()}
	// It cannot read the Lease before it knows the rules.
	f.expect(t, metav1.ConditionTrue, ReasonReady)
	skewed := healthyReport(f.clock.Now().Add(time.Hour))
	f.receive(t, skewed, 1)
	f.expect(t, metav1.ConditionTrue, ReasonReady)
	f.clock.Step(20 * time.Second)
	skewed.Sequence++
	f.receive(t, skewed, 1)
	f.clock.Step(agentSilentAfter - time.Second)
	f.expect(t, metav1.ConditionTrue, ReasonReady)
}

// A hub that cannot read the Lease does not show for ever what its predecessor wrote.
func TestStatusOfAgentsIsKeptForABoundedTime(t *testing.T) {
	f := newAgentFixture()
	f.receive(t, healthyReport(f.clock.Now()), 1)
	f.expect(t, metav1.ConditionTrue, ReasonReady)
	f.state = &syncTargetState{since: f.clock.Now()}
	f.clock.Step(agentSilentAfter)
	f.expect(t, metav1.ConditionUnknown, ReasonAgentNotSeen)
}

func TestAgentThatRefusesItsAssignmentIsNotReady(t *testing.T) {
	f := newAgentFixture()
	report := healthyReport(f.clock.Now())
	report.Problem = "it is not the hub's"
	f.receive(t, report, 1)
	f.expect(t, metav1.ConditionFalse, ReasonAssignmentFailed)
}

// A status that kcp refuses must not leave the former one in place for ever.
func TestRefusedReportIsAProblem(t *testing.T) {
	f := newAgentFixture()
	f.receive(t, healthyReport(f.clock.Now()), 1)
	f.expect(t, metav1.ConditionTrue, ReasonReady)
	f.clock.Step(time.Second)
	f.receive(t, healthyReport(f.clock.Now()), 1)
	f.state.agent.refuse(errors.New("a reason has blanks"))
	f.expect(t, metav1.ConditionFalse, ReasonAssignmentFailed)
	if heartbeat := meta.FindStatusCondition(f.syncTarget.Status.Conditions, edgev2alpha1.ConditionHeartbeatHealthy); !strings.Contains(heartbeat.Message, "has blanks") {
		t.Errorf("got %+v", heartbeat)
	}
	f.clock.Step(time.Second)
	f.receive(t, healthyReport(f.clock.Now()), 1)
	f.expect(t, metav1.ConditionTrue, ReasonReady)
}

func TestForgedHub(t *testing.T) {
	state := &syncTargetState{}
	for i, shown := range []string{"former", "own", "former"} {
		if state.isForgedHub(shown, "own") {
			t.Errorf("%d: %s is taken for forged", i, shown)
		}
	}
	if !state.isForgedHub("mallory", "own") {
		t.Error("a forged name stays")
	}
}

func TestModesOfAgents(t *testing.T) {
	deleted := metav1.NewTime(agentEpoch)
	for want, change := range map[assignment.Mode]func(*edgev2alpha1.SyncTarget){
		assignment.ModeSync:    func(*edgev2alpha1.SyncTarget) {},
		assignment.ModeSuspend: func(s *edgev2alpha1.SyncTarget) { s.Spec.Suspend, s.Spec.Drain = true, true },
		assignment.ModeDrain:   func(s *edgev2alpha1.SyncTarget) { s.Spec.Drain = true },
		assignment.ModeOrphan:  func(s *edgev2alpha1.SyncTarget) { s.DeletionTimestamp, s.Spec.Suspend = &deleted, true },
		assignment.ModeDelete: func(s *edgev2alpha1.SyncTarget) {
			s.DeletionTimestamp, s.Spec.DeletionPolicy = &deleted, edgev2alpha1.DeletionPolicyDelete
		},
	} {
		syncTarget := &edgev2alpha1.SyncTarget{}
		change(syncTarget)
		if got := agentModeOf(syncTarget); got != want {
			t.Errorf("want %s, got %s", want, got)
		}
	}
}

// The states of copies are read when the report tells of newer ones. Earlier ones, and those of somebody else, do not count.
func TestStatesOfCopiesAreReadWhenTheyHaveChanged(t *testing.T) {
	f := newAgentFixture()
	f.Agents.Copies = copystates.NewStore(copystates.StoreOptions{Published: func() []plan.Resource { return nil }})
	resource, key := schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}, types.NamespacedName{Name: "till"}
	sealer := ownership.NewSealer(bytes.Repeat([]byte{1}, assignment.KeyLength))
	version := func(mark string) objectsync.PlacementCopyVersion {
		return objectsync.PlacementCopyVersion{UID: "uid", Mark: mark}
	}
	states := func(mark string, sequence int64) *corev1.ConfigMap {
		content := codec.Encode(sealer, f.syncTarget.UID, "mailbox", []objectsync.PlacementCopy{{Resource: resource, Key: key, Version: version(mark), State: objectsync.ObjectState{Synced: true}}})
		codec.SetSequence(content, sequence)
		stored := &corev1.ConfigMap{BinaryData: map[string][]byte{"states": content}, Data: map[string]string{"seal": codec.Seal(sealer, content)}}
		stored.Namespace, stored.Name = assignment.Namespace, assignment.CopiesConfigMap
		return stored
	}
	forged := states("forged", 9)
	forged.Data["seal"] = "forged"
	client := fake.NewClientset(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: assignment.Namespace, Name: assignment.CopiesConfigMap}})
	for _, step := range []struct {
		name     string
		reported int64
		stored   *corev1.ConfigMap
		requests int
		want     string
	}{
		{"the agent has none", 0, nil, 0, ""},
		{"the first", 5, states("one", 5), 1, "one"},
		{"no newer ones", 5, states("unseen", 6), 0, "one"},
		{"forged ones", 7, forged, 1, "one"},
		{"newer ones", 7, states("two", 7), 1, "two"},
		{"earlier ones that were put back", 8, states("one", 5), 1, "two"},
		{"even newer ones than the report says", 8, states("three", 9), 1, "three"},
		{"the report says so too", 9, states("three", 9), 0, "three"},
	} {
		if step.stored != nil {
			if err := client.Tracker().Update(corev1.SchemeGroupVersion.WithResource("configmaps"), step.stored, assignment.Namespace); err != nil {
				t.Fatal(err)
			}
		}
		client.ClearActions()
		f.state.agent.report = &assignment.Report{Copies: step.reported}
		if err := f.readCopies(t.Context(), &agentMailbox{core: client.CoreV1()}, sealer, f.syncTarget, "mailbox", f.state); err != nil {
			t.Fatal(err)
		}
		if got := len(client.Actions()); got != step.requests {
			t.Errorf("%s: %d requests", step.name, got)
		}
		for _, mark := range []string{"one", "two", "three", "forged", "unseen"} {
			if state, _ := f.Agents.Copies.ObjectState(f.syncTarget.UID, resource.GroupResource(), key, version(mark)); state.Synced != (mark == step.want) {
				t.Errorf("%s: %s is synced: %v", step.name, mark, state.Synced)
			}
		}
	}
	f.states[f.syncTarget.UID] = f.state
	f.setAgent(f.syncTarget)
	f.deleteState(f.syncTarget.UID)
	if _, known := f.Agents.Copies.ObjectState(f.syncTarget.UID, resource.GroupResource(), key, version("three")); known {
		t.Error("the states of a SyncTarget that is gone are kept")
	}
}

// mailboxFixture is the mailbox of an agent, which refuses the writes of the assignment on demand.
type mailboxFixture struct {
	*agentFixture
	client *fake.Clientset
	// refused counts down the writes that fail.
	refused int
}

func newMailboxFixture() *mailboxFixture {
	f := &mailboxFixture{agentFixture: newAgentFixture(), client: fake.NewClientset()}
	provider := crfake.NewClientBuilder().Build()
	f.Ledger = ledger.New(ledger.Options{Client: provider, Reader: provider, Clock: f.clock, Log: logr.Discard()})
	f.Sync = syncmanager.New(syncmanager.Options{Hub: "hub"})
	refuse := func(action ktesting.Action) (bool, runtime.Object, error) {
		object := action.(interface{ GetObject() runtime.Object }).GetObject()
		if config, ok := object.(*corev1.ConfigMap); !ok || config.Name != assignment.ConfigMap || f.refused == 0 {
			return false, nil, nil
		}
		f.refused--
		return true, nil, errors.New("refused")
	}
	f.client.PrependReactor("create", "configmaps", refuse)
	f.client.PrependReactor("update", "configmaps", refuse)
	return f
}

func (f *mailboxFixture) write(t *testing.T) error {
	t.Helper()
	sealer := ownership.NewSealer(bytes.Repeat([]byte{1}, assignment.KeyLength))
	mailbox := &agentMailbox{core: f.client.CoreV1(), leases: f.client.CoordinationV1(), rbac: f.client.RbacV1()}
	return f.writeAssignment(t.Context(), mcreconcile.Request{ClusterName: "inventory"}, mailbox, sealer, f.syncTarget, "mailbox", assignment.Rules{}, 1, f.state)
}

// stored returns the assignment that the agent reads.
func (f *mailboxFixture) stored(t *testing.T) *assignment.Assignment {
	t.Helper()
	config, err := f.client.CoreV1().ConfigMaps(assignment.Namespace).Get(t.Context(), assignment.ConfigMap, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	found, err := assignment.OpenAssignment(ownership.NewSealer(bytes.Repeat([]byte{1}, assignment.KeyLength)), "mailbox", config.BinaryData[assignment.AssignmentKey], config.Data[assignment.SealKey])
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// The hub must not believe that the agent knows what could not be written.
func TestFailedWriteOfAnAssignmentIsRepeated(t *testing.T) {
	f := newMailboxFixture()
	for _, suspend := range []bool{false, true} {
		f.syncTarget.Spec.Suspend = suspend
		f.refused = 1
		if f.write(t) == nil {
			t.Error("the write was refused, and the error is lost")
		}
		f.clock.Step(time.Second)
		if err := f.write(t); err != nil {
			t.Fatal(err)
		}
		if stored := f.stored(t); stored.Mode != agentModeOf(f.syncTarget) || stored.Sequence != f.Ledger.Get(f.syncTarget.UID).Assignment {
			t.Errorf("got %+v", stored)
		}
	}
	f.client.ClearActions()
	if err := f.write(t); err != nil || len(f.client.Actions()) > 0 {
		t.Errorf("%d requests at rest, %v", len(f.client.Actions()), err)
	}
}

// Somebody may put a former assignment back, which the agent takes if its ledger is gone.
func TestAssignmentThatTheAgentDoesNotUseIsWrittenAgain(t *testing.T) {
	for name, test := range map[string]struct {
		report   func(current int64) *assignment.Report
		repaired bool
	}{
		"the current one": {func(current int64) *assignment.Report { return &assignment.Report{Assignment: current} }, false},
		"a former one":    {func(current int64) *assignment.Report { return &assignment.Report{Assignment: current - 1} }, true},
		"none":            {func(int64) *assignment.Report { return &assignment.Report{Problem: "it is forged"} }, true},
		"no sign of life": {nil, false},
		"a refused newest": {func(current int64) *assignment.Report {
			return &assignment.Report{Assignment: current, Problem: "it is forged"}
		}, true},
	} {
		f := newMailboxFixture()
		if err := f.write(t); err != nil {
			t.Fatal(err)
		}
		if err := f.client.CoreV1().ConfigMaps(assignment.Namespace).Delete(t.Context(), assignment.ConfigMap, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		if test.report != nil {
			earlier := healthyReport(f.clock.Now())
			f.receive(t, earlier, 1)
			f.clock.Step(agentPollInterval)
			report := test.report(f.Ledger.Get(f.syncTarget.UID).Assignment)
			report.Sequence = f.clock.Now().UnixMilli()
			f.receive(t, report, 1)
		}
		if err := f.write(t); err != nil {
			t.Fatal(err)
		}
		_, err := f.client.CoreV1().ConfigMaps(assignment.Namespace).Get(t.Context(), assignment.ConfigMap, metav1.GetOptions{})
		if (err == nil) != test.repaired {
			t.Errorf("%s: got %v", name, err)
		}
		// A report that was seen before does not count again.
		f.client.ClearActions()
		f.clock.Step(time.Second)
		if err := f.write(t); err != nil || len(f.client.Actions()) > 0 {
			t.Errorf("%s: %d requests without another report, %v", name, len(f.client.Actions()), err)
		}
	}
}

// A SyncTarget is suspended or drained once its agent says so, for the present spec.
func TestOnlyTheAgentSaysThatItIsSuspendedOrDrained(t *testing.T) {
	for _, kind := range []string{edgev2alpha1.ConditionSuspended, edgev2alpha1.ConditionDrained} {
		f := newAgentFixture()
		f.syncTarget.Spec.Suspend, f.syncTarget.Spec.Drain = kind == edgev2alpha1.ConditionSuspended, kind == edgev2alpha1.ConditionDrained
		f.syncTarget.Generation = 3
		expect := func(want bool, when string) {
			t.Helper()
			f.setAgentStatus(f.syncTarget, "mailbox", nil, f.state)
			if got := meta.IsStatusConditionTrue(f.syncTarget.Status.Conditions, kind); got != want {
				t.Errorf("%s %s: got %v", kind, when, got)
			}
		}
		report := func(generation int64) {
			t.Helper()
			f.clock.Step(time.Second)
			next := healthyReport(f.clock.Now())
			if generation > 0 {
				next.Status.Conditions = append(next.Status.Conditions, metav1.Condition{Type: kind, Status: metav1.ConditionTrue, Reason: "Any", ObservedGeneration: generation})
			}
			f.receive(t, next, 1)
		}
		expect(false, "before a report")
		report(0)
		expect(false, "while the agent syncs")
		f.expect(t, metav1.ConditionTrue, ReasonReady)
		report(1)
		expect(false, "for a former spec")
		report(3)
		expect(true, "for the present spec")
		f.state.agent.report = nil
		expect(true, "while the hub starts")
		f.syncTarget.Generation++
		expect(false, "after another change")
	}
}

// Whoever has restored the agent's namespace in another cluster confirms that cluster as with the hub.
func TestAnotherClusterOfAnAgentCanBeConfirmed(t *testing.T) {
	f := newMailboxFixture()
	report := healthyReport(f.clock.Now())
	report.Status.ObservedClusterID = "other"
	heartbeat := meta.FindStatusCondition(report.Status.Conditions, edgev2alpha1.ConditionHeartbeatHealthy)
	heartbeat.Status, heartbeat.Reason = metav1.ConditionFalse, targets.ReasonClusterChanged
	f.receive(t, report, 1)
	f.expect(t, metav1.ConditionFalse, targets.ReasonClusterChanged)
	if f.syncTarget.Status.ObservedClusterID != "other" {
		t.Errorf("got %+v", f.syncTarget.Status)
	}
	f.syncTarget.Annotations = map[string]string{edgev2alpha1.AnnotationConfirmedCluster: "other"}
	if err := f.write(t); err != nil {
		t.Fatal(err)
	}
	if annotations := localSyncTarget(f.stored(t)).Annotations; annotations[edgev2alpha1.AnnotationConfirmedCluster] != "other" {
		t.Errorf("the agent reads %v", annotations)
	}
	f.clock.Step(time.Second)
	f.receive(t, healthyReport(f.clock.Now()), 1)
	f.expect(t, metav1.ConditionTrue, ReasonReady)
	if f.syncTarget.Status.ObservedClusterID != "" {
		t.Errorf("there is nothing to confirm any more: %+v", f.syncTarget.Status)
	}
}

// Another cluster that gets the agent's manifest syncs and cleans up nothing until an operator has confirmed it.
func TestAgentIsExpectedInTheClusterThatWasSynced(t *testing.T) {
	f := newMailboxFixture()
	report := func(cluster string, up metav1.ConditionStatus) {
		t.Helper()
		f.clock.Step(time.Second)
		report := healthyReport(f.clock.Now())
		report.Cluster = cluster
		meta.FindStatusCondition(report.Status.Conditions, edgev2alpha1.ConditionHeartbeatHealthy).Status = up
		f.receive(t, report, 1)
		if err := f.recordAgentCluster(t.Context(), mcreconcile.Request{ClusterName: "inventory"}, f.syncTarget, f.state); err != nil {
			t.Fatal(err)
		}
		if err := f.write(t); err != nil {
			t.Fatal(err)
		}
	}
	for _, step := range []struct {
		cluster   string
		up        metav1.ConditionStatus
		confirmed string
		want      string
	}{
		{strings.Repeat("x", maxAgentCluster+1), metav1.ConditionTrue, "", ""},
		{"restored", metav1.ConditionFalse, "", ""},
		{"first", metav1.ConditionTrue, "", "first"},
		{"second", metav1.ConditionTrue, "", "first"},
		{"second", metav1.ConditionFalse, "third", "first"},
		{"second", metav1.ConditionFalse, "second", "second"},
		{"first", metav1.ConditionTrue, "second", "second"},
	} {
		f.syncTarget.Annotations = map[string]string{edgev2alpha1.AnnotationConfirmedCluster: step.confirmed}
		report(step.cluster, step.up)
		if got := f.stored(t).Cluster; got != step.want {
			t.Errorf("%+v: the agent is expected in %q", step, got)
		}
	}
}

// An older agent must not take the mode of a later hub for permission to sync.
func TestUnknownModesSuspend(t *testing.T) {
	for mode, want := range map[assignment.Mode]string{
		assignment.ModeSync: "", assignment.ModeSuspend: "suspend", assignment.ModeDrain: "drain", assignment.ModeDelete: "drain", assignment.ModeOrphan: "drain", "Later": "suspend", "": "suspend",
	} {
		got := ""
		if spec := localSyncTarget(&assignment.Assignment{Mode: mode}).Spec; spec.Suspend {
			got = "suspend"
		} else if spec.Drain {
			got = "drain"
		}
		if got != want {
			t.Errorf("%q: want %q, got %q", mode, want, got)
		}
	}
}
