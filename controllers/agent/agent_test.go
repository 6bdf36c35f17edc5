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

package agent

import (
	"bytes"
	"errors"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	ktesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/cache"
	clocktesting "k8s.io/utils/clock/testing"
	crfake "sigs.k8s.io/controller-runtime/pkg/client/fake"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/controllers/agent/assignment"
	"github.com/synchub-dev/synchub/controllers/copystates"
	"github.com/synchub-dev/synchub/controllers/objectsync/plan/ownership"
	"github.com/synchub-dev/synchub/controllers/synctarget"
	"github.com/synchub-dev/synchub/provider/kcp"
	"github.com/synchub-dev/synchub/provider/ledger"
)

var key = bytes.Repeat([]byte{1}, assignment.KeyLength)

func newReporter(client *fake.Clientset, cluster string) *reporter {
	return &reporter{
		leases: client.CoordinationV1().Leases(assignment.Namespace), sealer: ownership.NewSealer(key), mailbox: "2x7fz9k1", syncTarget: "uid", cluster: cluster,
	}
}

func newMailbox() *fake.Clientset {
	return fake.NewClientset(&coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: assignment.Namespace, Name: assignment.Lease}})
}

// stored returns the report that the hub reads.
func stored(t *testing.T, client *fake.Clientset) *assignment.Report {
	t.Helper()
	lease, err := client.CoordinationV1().Leases(assignment.Namespace).Get(t.Context(), assignment.Lease, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	report, err := assignment.OpenReport(ownership.NewSealer(key), "2x7fz9k1", lease.Annotations[assignment.ReportAnnotation], lease.Annotations[assignment.SealAnnotation])
	if err != nil {
		t.Fatal(err)
	}
	return report
}

func TestReportsAreWrittenWhenDue(t *testing.T) {
	mailbox, start := newMailbox(), time.Now()
	reports := newReporter(mailbox, "first")
	condition := func(status metav1.ConditionStatus) *assignment.Report {
		report := &assignment.Report{Assignment: 1, Cluster: "first"}
		report.Status.Conditions = []metav1.Condition{{Type: edgev2alpha1.ConditionSyncerReady, Status: status, Reason: "Any"}}
		return report
	}
	last := int64(0)
	for _, step := range []struct {
		after   time.Duration
		status  metav1.ConditionStatus
		copies  int64
		written bool
	}{
		{0, metav1.ConditionTrue, 0, true},
		{time.Second, metav1.ConditionFalse, 0, false},                          // too soon
		{minReportInterval, metav1.ConditionFalse, 0, true},                     // it changed
		{minReportInterval + reportInterval/2, metav1.ConditionFalse, 0, false}, // nothing changed
		{minReportInterval + reportInterval, metav1.ConditionFalse, 0, true},    // the heartbeat
		{3*minReportInterval + reportInterval, metav1.ConditionFalse, 1, true},  // other states of copies
	} {
		report := condition(step.status)
		report.Copies = step.copies
		if err := reports.write(t.Context(), report, start.Add(step.after)); err != nil {
			t.Fatal(err)
		}
		sequence := stored(t, mailbox).Sequence
		if written := sequence > last; written != step.written || sequence < last {
			t.Errorf("after %s: the sequence was %d and is %d", step.after, last, sequence)
		}
		last = sequence
	}
}

func TestAnAgentOfAnotherClusterWaits(t *testing.T) {
	mailbox, start := newMailbox(), time.Now()
	if err := newReporter(mailbox, "first").write(t.Context(), &assignment.Report{Cluster: "first", Finished: true}, start); err != nil {
		t.Fatal(err)
	}
	other := newReporter(mailbox, "second")
	if _, err := other.claim(t.Context(), start.Add(claimPeriod/2)); !errors.Is(err, ErrOtherCluster) {
		t.Errorf("got %v", err)
	}
	if last, err := newReporter(mailbox, "first").claim(t.Context(), start); err != nil || last == nil || !last.Finished {
		t.Errorf("the agent of the same cluster must go on: %v, %v", last, err)
	}
	if _, err := other.claim(t.Context(), start.Add(claimPeriod)); err != nil {
		t.Errorf("the first agent is gone: %v", err)
	}
	expected := newReporter(mailbox, "second")
	expected.expected = "second"
	if _, err := expected.claim(t.Context(), start.Add(claimPeriod/2)); err != nil {
		t.Errorf("the first agent is in a cluster that nobody has confirmed: %v", err)
	}
	// The clock of the second may be behind. Its reports must still be newer.
	if err := other.write(t.Context(), &assignment.Report{Cluster: "second"}, start.Add(-time.Hour)); err != nil {
		t.Fatal(err)
	}
	if report := stored(t, mailbox); report.Cluster != "second" || report.Sequence <= start.UnixMilli() {
		t.Errorf("got %+v", report)
	}
}

// An agent that was cut off must not go on beside the one that has claimed the mailbox meanwhile.
func TestAnAgentThatLostItsClaimStartsAgain(t *testing.T) {
	mailbox, clock := newMailbox(), clocktesting.NewFakeClock(time.Now())
	first := &runner{Options: Options{Clock: clock}, reports: newReporter(mailbox, "first")}
	if err := first.report(t.Context(), &assignment.Report{Cluster: "first"}); err != nil {
		t.Fatal(err)
	}
	clock.Step(claimPeriod)
	if err := newReporter(mailbox, "second").write(t.Context(), &assignment.Report{Cluster: "second"}, clock.Now()); err != nil {
		t.Fatal(err)
	}
	mailbox.PrependReactor("update", "leases", func(ktesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewConflict(schema.GroupResource{Resource: "leases"}, assignment.Lease, nil)
	})
	if err := first.report(t.Context(), &assignment.Report{Cluster: "first"}); err == nil || errors.Is(err, ErrRestart) {
		t.Errorf("a conflict alone says nothing: got %v", err)
	}
	if err := first.report(t.Context(), &assignment.Report{Cluster: "first"}); !errors.Is(err, ErrRestart) || !errors.Is(err, ErrOtherCluster) {
		t.Errorf("got %v", err)
	}
}

// newRunner returns a runner whose mailbox has an assignment with a sequence and protected namespaces. It was started with sequence 2.
func newRunner(t *testing.T, mailbox *fake.Clientset, sequence int64, protected string) (*runner, *corev1.ConfigMap) {
	t.Helper()
	assigned := &assignment.Assignment{Sequence: sequence, Mailbox: "2x7fz9k1", ProtectedNamespaces: []string{protected}, SyncTarget: assignment.SyncTarget{Name: "edge", UID: "uid"}}
	content, seal, err := assignment.SealAssignment(ownership.NewSealer(key), assigned)
	if err != nil {
		t.Fatal(err)
	}
	stored := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: assignment.Namespace, Name: assignment.ConfigMap, ResourceVersion: "1"},
		BinaryData: map[string][]byte{assignment.AssignmentKey: content}, Data: map[string]string{assignment.SealKey: seal},
	}
	clock := clocktesting.NewFakeClock(time.Now())
	own := crfake.NewClientBuilder().Build()
	first := *assigned
	first.Sequence, first.ProtectedNamespaces = 2, []string{"kube-*"}
	r := &runner{
		Options: Options{Clock: clock, Credentials: &Credentials{Key: key, Mailbox: "2x7fz9k1", nextRenewal: clock.Now().Add(time.Hour)}}, first: &first,
		reports: newReporter(mailbox, "first"), copies: copystates.NewWriter(copystates.WriterOptions{}), syncTarget: &synctarget.AgentReconciler{},
		ledger:             ledger.New(ledger.Options{Client: own, Reader: own, Clock: clock}),
		assignmentInformer: cache.NewSharedIndexInformer(&cache.ListWatch{}, &corev1.ConfigMap{}, 0, cache.Indexers{}),
	}
	if err := r.ledger.Update(t.Context(), "uid", func(entry *ledger.Entry) { entry.Assignment = 2 }); err != nil {
		t.Fatal(err)
	}
	return r, stored
}

// An agent that has no assignment in force says so: the hub then puts its own back.
func TestAnAgentWithoutAnAssignmentReports(t *testing.T) {
	mailbox := newMailbox()
	r, forged := newRunner(t, mailbox, 2, "kube-*")
	r.status.Versions = &edgev2alpha1.TargetVersions{Kubernetes: "1"}
	forged.Data[assignment.SealKey] = "forged"
	if err := r.assignmentInformer.GetStore().Add(forged); err != nil {
		t.Fatal(err)
	}
	if err := r.pass(t.Context()); err != nil {
		t.Fatal(err)
	}
	if report := stored(t, mailbox); report.Problem == "" || report.Assignment != 0 || report.Status.Versions == nil {
		t.Errorf("got %+v", report)
	}
}

// An agent whose namespace was deleted and made again finds in the last report which resources it has written.
func TestAnAgentRestoresItsLedger(t *testing.T) {
	for cluster, restored := range map[string]bool{"own": true, "other": false} {
		mailbox := newMailbox()
		r, _ := newRunner(t, mailbox, 2, "kube-*")
		last := &assignment.Report{Cluster: cluster}
		last.Status.SyncedResources = []edgev2alpha1.SyncedResource{{Resource: "configmaps", Own: true, Versions: []string{"v1"}}}
		if err := newReporter(mailbox, cluster).write(t.Context(), last, r.Clock.Now().Add(-claimPeriod)); err != nil {
			t.Fatal(err)
		}
		r.syncTarget, r.cluster = nil, crfake.NewClientBuilder().WithObjects(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: metav1.NamespaceSystem, UID: "own"}}).Build()
		if err := r.prepare(t.Context()); err != nil {
			t.Fatal(err)
		}
		if resources := r.ledger.Get("uid").Resources; (len(resources) == 1) != restored {
			t.Errorf("after a report of the %s cluster: %v", cluster, resources)
		}
	}
}

// A tenant could otherwise make the agent start again as often as he likes.
func TestAnAssignmentThatWasPutBackIsRefused(t *testing.T) {
	for sequence, refused := range map[int64]bool{1: true, 3: false} {
		r, former := newRunner(t, newMailbox(), sequence, "other-*")
		if err := r.assignmentInformer.GetStore().Add(former); err != nil {
			t.Fatal(err)
		}
		if err := r.readAssignment(t.Context()); errors.Is(err, ErrRestart) == refused || (r.problem != "") != refused {
			t.Errorf("sequence %d: got %v, and the problem %q", sequence, err, r.problem)
		}
	}
}

func TestAnAgentLearnsWhichClusterIsExpected(t *testing.T) {
	mailbox := newMailbox()
	r, stored := newRunner(t, mailbox, 3, "kube-*")
	assigned, err := openAssignment(r.Credentials, stored)
	if err != nil {
		t.Fatal(err)
	}
	// Its rules are in force.
	r.inForce = assigned
	assigned.Cluster = "second"
	content, seal, err := assignment.SealAssignment(ownership.NewSealer(key), assigned)
	if err != nil {
		t.Fatal(err)
	}
	stored.BinaryData[assignment.AssignmentKey], stored.Data[assignment.SealKey] = content, seal
	if err := r.assignmentInformer.GetStore().Add(stored); err != nil {
		t.Fatal(err)
	}
	if err := r.ledger.Update(t.Context(), "uid", func(entry *ledger.Entry) { entry.Cluster = ledger.Cluster{ID: "first", Server: "here"} }); err != nil {
		t.Fatal(err)
	}
	if err := r.readAssignment(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := r.ledger.Get("uid").Cluster; got != (ledger.Cluster{ID: "second"}) || r.reports.expected != "second" {
		t.Errorf("got %+v", got)
	}
}

func TestAForgedReportIsNoClaim(t *testing.T) {
	mailbox := newMailbox()
	lease, _ := mailbox.CoordinationV1().Leases(assignment.Namespace).Get(t.Context(), assignment.Lease, metav1.GetOptions{})
	lease.Annotations = map[string]string{assignment.ReportAnnotation: `{"sequence": 9000000000000000000, "cluster": "other", "mailbox": "2x7fz9k1"}`, assignment.SealAnnotation: "forged"}
	if _, err := mailbox.CoordinationV1().Leases(assignment.Namespace).Update(t.Context(), lease, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	reports := newReporter(mailbox, "first")
	if last, err := reports.claim(t.Context(), time.Now()); last != nil || err != nil || reports.sequence != 0 {
		t.Errorf("got %v, %v, sequence %d", last, err, reports.sequence)
	}
}

func TestCredentialsAreChecked(t *testing.T) {
	const valid = `{apiVersion: v1, kind: Config, current-context: a, contexts: [{name: a, context: {cluster: a, user: a}}],
		users: [{name: a, user: {token: t}}], clusters: [{name: a, cluster: {server: "%s"}}]}`
	name := types.NamespacedName{Namespace: "agent", Name: "agent"}
	load := func(server string, key, marks []byte) (*Credentials, error) {
		secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: name.Namespace, Name: name.Name}, Data: map[string][]byte{
			edgev2alpha1.AgentKeyField: key, edgev2alpha1.MarkKeyField: marks, KubeconfigKey: bytes.ReplaceAll([]byte(valid), []byte("%s"), []byte(server)),
		}}
		return LoadCredentials(t.Context(), fake.NewClientset(secret).CoreV1(), name, kcp.Limits{})
	}
	found, err := load("https://kcp.example.org/prefix/clusters/2x7fz9k1", key, key)
	if err != nil || found.Mailbox != "2x7fz9k1" || found.Access.Host() != "https://kcp.example.org/prefix" {
		t.Errorf("got %+v, %v", found, err)
	}
	for _, server := range []string{"https://kcp.example.org", "https://kcp.example.org/clusters/root:org", "http://kcp.example.org/clusters/2x7fz9k1"} {
		if _, err := load(server, key, key); err == nil {
			t.Errorf("%s was accepted", server)
		}
	}
	for _, other := range [][]byte{nil, key[:5], append(bytes.Clone(key), 1)} {
		for _, keys := range [][][]byte{{other, key}, {key, other}} {
			if _, err := load("https://kcp.example.org/clusters/2x7fz9k1", keys[0], keys[1]); err == nil {
				t.Errorf("keys of %d and %d bytes were accepted", len(keys[0]), len(keys[1]))
			}
		}
	}
}
