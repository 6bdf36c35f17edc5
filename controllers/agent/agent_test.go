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
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/controllers/agent/assignment"
	"github.com/synchub-dev/synchub/controllers/objectsync/plan/ownership"
	"github.com/synchub-dev/synchub/provider/kcp"
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
	// The clock of the second may be behind. Its reports must still be newer.
	if err := other.write(t.Context(), &assignment.Report{Cluster: "second"}, start.Add(-time.Hour)); err != nil {
		t.Fatal(err)
	}
	if report := stored(t, mailbox); report.Cluster != "second" || report.Sequence <= start.UnixMilli() {
		t.Errorf("got %+v", report)
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
	load := func(server string, key []byte) (*Credentials, error) {
		secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: name.Namespace, Name: name.Name}, Data: map[string][]byte{
			KeyKey: key, KubeconfigKey: bytes.ReplaceAll([]byte(valid), []byte("%s"), []byte(server)),
		}}
		return LoadCredentials(t.Context(), fake.NewClientset(secret).CoreV1(), name, kcp.Limits{})
	}
	found, err := load("https://kcp.example.org/prefix/clusters/2x7fz9k1", key)
	if err != nil || found.Mailbox != "2x7fz9k1" || found.Access.Host() != "https://kcp.example.org/prefix" {
		t.Errorf("got %+v, %v", found, err)
	}
	for server, key := range map[string][]byte{
		"https://kcp.example.org/clusters/2x7fz9k1/": key[:5],
		"https://kcp.example.org":                    key,
		"https://kcp.example.org/clusters/root:org":  key,
		"http://kcp.example.org/clusters/2x7fz9k1":   key,
	} {
		if _, err := load(server, key); err == nil {
			t.Errorf("%s with a key of %d bytes was accepted", server, len(key))
		}
	}
}
