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

package describe

import (
	"bytes"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/cmd/kubectl-synchub/cli"
)

// described returns the description of a SyncTarget, with words separated by one space.
func described(t *testing.T, of *edgev2alpha1.SyncTarget, now time.Time) string {
	t.Helper()
	var out bytes.Buffer
	description := &description{now: now}
	description.target(of)
	columns := cli.NewColumns(&out)
	description.print(columns)
	if err := columns.Flush(); err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	for line := range strings.Lines(out.String()) {
		text.WriteString(strings.Join(strings.Fields(line), " ") + "\n")
	}
	return text.String()
}

func TestDescribeShowsTheExpectedCluster(t *testing.T) {
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	of := &edgev2alpha1.SyncTarget{ObjectMeta: metav1.ObjectMeta{Name: "florin"}}
	of.Status.ClusterID = "expected"
	if got := described(t, of, now); strings.Contains(got, "Observed") || strings.Contains(got, "Former") {
		t.Errorf("all is as expected, and it prints\n%s", got)
	}

	of.Status.ObservedClusterID = "observed"
	of.Status.FormerClusters = []edgev2alpha1.FormerCluster{
		{Until: metav1.NewTime(now.Add(-48 * time.Hour))},
		{ClusterID: "former", Until: metav1.NewTime(now.Add(-time.Hour)), Resources: []metav1.GroupResource{{Resource: "secrets"}, {Group: "apps", Resource: "deployments"}}},
	}
	for kind, reason := range map[string]string{
		edgev2alpha1.ConditionReady: "ClusterChanged", edgev2alpha1.ConditionClusterShared: "OtherInventory", edgev2alpha1.ConditionAPIsMissing: "NamingConflict",
	} {
		of.Status.Conditions = append(of.Status.Conditions, metav1.Condition{Type: kind, Status: metav1.ConditionTrue, Reason: reason, Message: "Said.", LastTransitionTime: metav1.NewTime(now.Add(-time.Minute))})
	}
	got := described(t, of, now)
	for _, part := range []string{
		"Cluster ID: expected\nObserved Cluster ID: observed\nAnother cluster answers, so nothing is synced.", "`kubectl synchub confirm-cluster florin`",
		"ClusterShared True 60s OtherInventory Said.", "APIsMissing True 60s NamingConflict Said.", "ClusterChanged: Said.",
		"<unknown> 2d ago 0\nformer 60m ago 2\n", "`kubectl synchub stale-objects florin --target-kubeconfig FILE`",
	} {
		if !strings.Contains(got, part) {
			t.Errorf("%q is missing in\n%s", part, got)
		}
	}
}

func TestDescriptionIsSanitized(t *testing.T) {
	of := &edgev2alpha1.SyncTarget{}
	of.Status.ClusterID = "ok\x1b[2J\r\nReady:  True"
	if text := described(t, of, time.Now()); !strings.Contains(text, "ok") || strings.ContainsAny(text, "\x1b\r") || strings.Contains(text, "\nReady: True") {
		t.Errorf("it is shown as %q", text)
	}
}
