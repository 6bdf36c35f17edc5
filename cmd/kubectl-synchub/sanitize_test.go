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

package main

import (
	"bytes"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/cli-runtime/pkg/printers"
	"k8s.io/client-go/rest"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/cmd/kubectl-synchub/check"
	"github.com/synchub-dev/synchub/cmd/kubectl-synchub/cli"
	"github.com/synchub-dev/synchub/cmd/kubectl-synchub/explain"
	"github.com/synchub-dev/synchub/cmd/kubectl-synchub/overview"
	"github.com/synchub-dev/synchub/cmd/kubectl-synchub/status"
)

// Texts in conditions, failures and names cannot move the cursor or start a new line.
func TestOutputIsSanitized(t *testing.T) {
	const hostile = "\x1b[2J\x1b[H\u202eok\r\nReady:  True\x07\u009b31m"
	now := time.Now()
	of := &edgev2alpha1.SyncTarget{ObjectMeta: metav1.ObjectMeta{Name: "florin"}}
	of.Status.ClusterID = hostile
	of.Status.Conditions = []metav1.Condition{{Type: "Ready", Status: metav1.ConditionFalse, Reason: "R", Message: hostile}}
	of.Status.SyncedResources = []edgev2alpha1.SyncedResource{{Resource: "configmaps", Message: hostile}}
	of.Status.Failures = []edgev2alpha1.ObjectFailure{{Resource: "configmaps", Name: hostile, Reason: "R", Message: hostile}}

	shown := map[string]string{}
	streams, _, out, errs := genericiooptions.NewTestIOStreams()
	if err := (explain.Explanation{Steps: []explain.Step{{What: hostile, Do: hostile}}, Result: explain.Result{Text: hostile}}).Print(out); err != nil {
		t.Fatal(err)
	}
	shown["explain"] = take(out)
	if err := status.Print(out, []overview.Row{overview.RowOf(of, now)}, true, now); err != nil {
		t.Fatal(err)
	}
	shown["status"] = take(out)
	inventory := cli.InventoryOptions{}
	inventory.IOStreams = streams
	inventory.Note(strings.ReplaceAll(hostile, "\n", ""))
	shown["a note"] = take(errs)
	tables := printers.NewTablePrinter(printers.PrintOptions{Wide: true})
	of.Status.Versions = &edgev2alpha1.TargetVersions{Kubernetes: hostile}
	if err := tables.PrintObj(cli.SanitizeTable(overview.Table([]overview.Row{overview.RowOf(of, now)}, now)), out); err != nil {
		t.Fatal(err)
	}
	shown["a table"] = take(out)
	(&check.Report{Findings: []check.Finding{{Area: "targets", Result: check.Problem, Message: hostile}}}).Print(out)
	shown["check"] = take(out)
	inventory.Progress("%s", hostile)
	shown["progress"] = take(errs)
	warnings := cli.RedactedWarnings{WarningHandler: rest.NewWarningWriter(errs, rest.WarningWriterOptions{})}
	warnings.HandleWarningHeader(299, "-", hostile)
	shown["a warning"] = take(errs)
	for by, text := range shown {
		if !strings.Contains(text, "ok") || strings.ContainsAny(text, "\x1b\u202e\r\x07\u009b") || strings.Contains(text, "\nReady:  True") {
			t.Errorf("%s shows %q", by, text)
		}
	}
}

func take(from *bytes.Buffer) string {
	defer from.Reset()
	return from.String()
}
