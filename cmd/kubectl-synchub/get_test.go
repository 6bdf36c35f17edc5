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
	"bufio"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/cmd/kubectl-synchub/overview"

	"github.com/synchub-dev/synchub/test/framework/suite"
)

// place creates a SyncTarget with the given status.
func (f *testFleet) place(t *testing.T, name string, ready metav1.ConditionStatus, reason string, failed int32) *edgev2alpha1.SyncTarget {
	t.Helper()
	made := &edgev2alpha1.SyncTarget{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"fleet": "test"}}}
	f.make(t, made)
	f.writeStatus(t, made, ready, reason, failed)
	return made
}

// writeStatus writes a status, as the hub does.
func (f *testFleet) writeStatus(t *testing.T, of *edgev2alpha1.SyncTarget, ready metav1.ConditionStatus, reason string, failed int32) {
	t.Helper()
	now := metav1.Now()
	of.Status.LastSyncerHeartbeatTime = &now
	of.Status.Conditions = []metav1.Condition{{
		Type: edgev2alpha1.ConditionReady, Status: ready, Reason: reason, Message: "A message about " + of.Name + ".", LastTransitionTime: now,
	}}
	of.Status.Counts = &edgev2alpha1.TargetCounts{Synced: 40, Failed: failed}
	of.Status.Versions = &edgev2alpha1.TargetVersions{Kubernetes: "v1.35.4"}
	of.Status.Mailbox = &edgev2alpha1.MailboxStatus{Workspace: "root:synchub:" + of.Name}
	of.Status.SyncedResources = []edgev2alpha1.SyncedResource{{
		Group: "apps", Resource: "deployments", Versions: []string{"v1"}, State: edgev2alpha1.SyncedResourceIncompatible, Reason: "NotServed",
	}}
	if err := f.admin.Status().Update(t.Context(), of); err != nil {
		t.Fatal(err)
	}
}

// firstWords returns the first word of each line.
func firstWords(text string) (words []string) {
	for line := range strings.Lines(text) {
		if fields := strings.Fields(line); len(fields) > 0 {
			words = append(words, fields[0])
		}
	}
	return words
}

func TestFleet(t *testing.T) {
	f := newFleet(t)
	mine := []string{"-l", "fleet=test"}
	if got := succeed(t, append([]string{"get", "targets"}, mine...)...); got.out != "" || !strings.Contains(got.errs, "No SyncTargets found") {
		t.Errorf("where there are none it prints %q, %q", got.out, got.errs)
	}
	f.place(t, "a-well", "True", "Ready", 0)
	f.place(t, "b-failing", "True", "Ready", 3)
	down := f.place(t, "c-down", "False", "TargetUnreachable", 0)

	t.Run("get", func(t *testing.T) { getsTargets(t, mine) })
	t.Run("watch", func(t *testing.T) { watchesTargets(t, f, down) })
	t.Run("status", func(t *testing.T) { showsStatus(t, mine) })
	t.Run("status, and its changes", func(t *testing.T) { watchesStatus(t, f, mine) })
	t.Run("events", func(t *testing.T) { listsEvents(t, f, down) })
	t.Run("version", func(t *testing.T) { printsVersions(t, f) })
	t.Run("describe", func(t *testing.T) { describesTargets(t) })
}

func getsTargets(t *testing.T, mine []string) {
	t.Helper()
	got := succeed(t, append([]string{"get", "targets"}, mine...)...)
	if words := firstWords(got.out); !slices.Equal(words, []string{"NAME", "a-well", "b-failing", "c-down"}) {
		t.Errorf("got\n%s", got.out)
	}
	if strings.Contains(got.out, "root:synchub") {
		t.Errorf("the mailbox belongs into wide tables only:\n%s", got.out)
	}
	wideTable := succeed(t, "get", "targets", "b-failing", "-o", "wide", "--no-headers")
	for _, part := range []string{"b-failing", "True", "40", "3", "v1.35.4", "root:synchub:b-failing", "Ready"} {
		if !slices.Contains(strings.Fields(wideTable.out), part) {
			t.Errorf("%q is missing in\n%s", part, wideTable.out)
		}
	}
	names := succeed(t, append([]string{"get", "targets", "-o", "name"}, mine...)...)
	if want := "synctarget.edge.kubestellar.io/a-well\nsynctarget.edge.kubestellar.io/b-failing\nsynctarget.edge.kubestellar.io/c-down\n"; names.out != want {
		t.Errorf("got\n%swant\n%s", names.out, want)
	}
	var one edgev2alpha1.SyncTarget
	if err := json.Unmarshal([]byte(succeed(t, "get", "targets", "c-down", "-o", "json").out), &one); err != nil || one.Name != "c-down" || one.Kind != "SyncTarget" {
		t.Errorf("got %+v, %v", one, err)
	}
	var all edgev2alpha1.SyncTargetList
	if err := json.Unmarshal([]byte(succeed(t, append([]string{"get", "targets", "-o", "json"}, mine...)...).out), &all); err != nil || len(all.Items) != 3 {
		t.Errorf("got %d, %v", len(all.Items), err)
	}
	fail(t, `"nobody" not found`, "get", "targets", "nobody")
	fail(t, "--output", "get", "targets", "-o", "table")
	fail(t, "--selector", "get", "targets", "-l", "a in")
}

func watchesTargets(t *testing.T, f *testFleet, down *edgev2alpha1.SyncTarget) {
	t.Helper()
	ctx, stop := context.WithTimeout(t.Context(), suite.Timeout)
	defer stop()
	command := pluginProcess(ctx, "get", "targets", "c-down", "--watch")
	command.Cancel = func() error { return command.Process.Signal(os.Interrupt) }
	command.WaitDelay = time.Minute
	out, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	var lines []string
	for reader := bufio.NewScanner(out); reader.Scan(); {
		if lines = append(lines, reader.Text()); len(lines) == 2 {
			f.writeStatus(t, down, "True", "Ready", 0)
		}
		if len(lines) == 3 {
			stop()
		}
	}
	if err := command.Wait(); err != nil && ctx.Err() == nil {
		t.Error(err)
	}
	if len(lines) != 3 || !slices.Contains(strings.Fields(lines[1]), "False") || !slices.Contains(strings.Fields(lines[2]), "True") {
		t.Errorf("got\n%s", strings.Join(lines, "\n"))
	}
	f.writeStatus(t, down, "False", "TargetUnreachable", 0)
}

func showsStatus(t *testing.T, mine []string) {
	t.Helper()
	got := succeed(t, append([]string{"status"}, mine...)...).out
	for _, part := range []string{"3 clusters: 2 ready, 1 not ready. 120 objects synced, 3 failed, counted up to ", "c-down:   TargetUnreachable: A message about c-down."} {
		if !strings.Contains(got, part) {
			t.Errorf("%q is missing in\n%s", part, got)
		}
	}
	if strings.Index(got, "c-down") > strings.Index(got, "b-failing") {
		t.Errorf("the worst does not come first:\n%s", got)
	}
	fail(t, "unexpected argument", "status", "florin")
	fail(t, "--output: ", "status", "-o", "table")
	var document overview.Document
	if err := json.Unmarshal([]byte(succeed(t, append([]string{"status", "-o", "json"}, mine...)...).out), &document); err != nil || len(document.SyncTargets) != 3 {
		t.Fatalf("got %+v, %v", document, err)
	}
	if worst, best := document.SyncTargets[0], document.SyncTargets[2]; worst.Name != "c-down" || !worst.NeedsAttention || best.Name != "a-well" || best.LastSeen == nil {
		t.Errorf("got %+v", document)
	}
	if got := succeed(t, append([]string{"status", "-o", "yaml"}, mine...)...).out; !strings.HasPrefix(got, "syncTargets:\n") {
		t.Errorf("got\n%s", got)
	}
}

func describesTargets(t *testing.T) {
	t.Helper()
	got := succeed(t, "describe", "target", "c-down").out
	for _, part := range []string{"TargetUnreachable", "root:synchub:c-down", "deployments.apps", "Incompatible", "fleet=test", "40 synced, 0 failed"} {
		if !strings.Contains(got, part) {
			t.Errorf("%q is missing in\n%s", part, got)
		}
	}
	fail(t, `"nobody" not found`, "describe", "target", "nobody")
	fail(t, "name of one SyncTarget", "describe", "target")
}

// kubectl completes a plugin by a program beside it.
func TestCompletionProgram(t *testing.T) {
	directory := t.TempDir()
	if err := os.Symlink(os.Args[0], filepath.Join(directory, "kubectl-synchub")); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", directory+string(os.PathListSeparator)+os.Getenv("PATH"))
	t.Setenv(asPlugin, "1")
	output, err := exec.CommandContext(t.Context(), "./kubectl_complete-synchub", "unr").CombinedOutput()
	if err != nil || !strings.HasPrefix(string(output), "unregister\t") {
		t.Errorf("%v: %s", err, output)
	}
}

// startWatch starts the plugin, and returns its output line by line. It is interrupted at the end of the test.
func startWatch(t *testing.T, args ...string) *bufio.Scanner {
	t.Helper()
	ctx, stop := context.WithTimeout(t.Context(), suite.Timeout)
	t.Cleanup(stop)
	command := pluginProcess(ctx, args...)
	command.Cancel = func() error { return command.Process.Signal(os.Interrupt) }
	out, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		stop()
		_ = command.Wait()
	})
	return bufio.NewScanner(out)
}

// awaitLine reads lines up to one with a text.
func awaitLine(t *testing.T, lines *bufio.Scanner, text string) {
	t.Helper()
	for lines.Scan() {
		if strings.Contains(lines.Text(), text) {
			return
		}
	}
	t.Fatalf("no line has %q", text)
}

func watchesStatus(t *testing.T, f *testFleet, mine []string) {
	t.Helper()
	lines := startWatch(t, append([]string{"status", "--watch"}, mine...)...)
	awaitLine(t, lines, "3 clusters: 2 ready, 1 not ready.")
	added := f.place(t, "d-new", "True", "Ready", 0)
	awaitLine(t, lines, "4 clusters: 3 ready, 1 not ready.")
	if err := f.admin.Delete(t.Context(), added); err != nil {
		t.Fatal(err)
	}
	awaitLine(t, lines, "3 clusters: 2 ready, 1 not ready.")
	fail(t, "if any flags in the group [watch output] are set", "status", "--watch", "-o", "json")
}

func listsEvents(t *testing.T, f *testFleet, about *edgev2alpha1.SyncTarget) {
	t.Helper()
	record := func(name, reason string, minutes int) {
		t.Helper()
		event := &corev1.Event{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}, Reason: reason, Message: "a message", Type: "Warning"}
		event.InvolvedObject = corev1.ObjectReference{Kind: "SyncTarget", Name: about.Name, UID: about.UID}
		// An age of ten minutes and more is shown without seconds.
		event.LastTimestamp = metav1.NewTime(time.Now().Add(-time.Duration(minutes)*time.Minute - 5*time.Second))
		if err := f.admin.Create(t.Context(), event); err != nil {
			t.Fatal(err)
		}
	}
	record("a-later", "Later", 12)
	record("b-earlier", "Earlier", 20)
	got := succeed(t, "events", about.Name)
	if words := firstWords(got.out); !slices.Equal(words, []string{"LAST", "20m", "12m"}) {
		t.Errorf("want the oldest first, got\n%s", got.out)
	}
	if !strings.Contains(got.out, "inventory") || !strings.Contains(got.out, "synctarget/"+about.Name) {
		t.Errorf("got\n%s", got.out)
	}
	if got := succeed(t, "events", "a-well"); got.out != "" || !strings.Contains(got.errs, "There are no events of a-well.") {
		t.Errorf("got\n%s%s", got.out, got.errs)
	}
	fail(t, `"c-dwn" not found (did you mean "c-down"?)`, "events", "c-dwn")

	lines := startWatch(t, "events", about.Name, "--watch")
	awaitLine(t, lines, "Later")
	record("c-new", "New", 0)
	awaitLine(t, lines, "New")
}

func printsVersions(t *testing.T, f *testFleet) {
	t.Helper()
	got := succeed(t, "version")
	if !strings.HasPrefix(got.out, "kubectl-synchub ") || !strings.Contains(got.errs, "The version of the hub is unknown: no SyncTarget of the current workspace") {
		t.Errorf("got\n%s%s", got.out, got.errs)
	}
	for _, name := range []string{"a-well", "b-failing"} {
		syncTarget := &edgev2alpha1.SyncTarget{}
		if err := f.admin.Get(t.Context(), types.NamespacedName{Name: name}, syncTarget); err != nil {
			t.Fatal(err)
		}
		syncTarget.Status.HubVersion = "v9.9.9"
		if err := f.admin.Status().Update(t.Context(), syncTarget); err != nil {
			t.Fatal(err)
		}
	}
	got = succeed(t, "version")
	if !strings.HasSuffix(got.out, "\nhub v9.9.9\n") || !strings.Contains(got.errs, "Warning: the plugin has version") {
		t.Errorf("got\n%s%s", got.out, got.errs)
	}
	var versions struct{ Hub []string }
	if err := json.Unmarshal([]byte(succeed(t, "version", "-o", "json").out), &versions); err != nil || !slices.Equal(versions.Hub, []string{"v9.9.9"}) {
		t.Errorf("got %+v, %v", versions, err)
	}
	if got := succeed(t, "version", "--client"); strings.Contains(got.out, "hub") && strings.Contains(got.out, "\nhub ") || got.errs != "" {
		t.Errorf("got\n%s%s", got.out, got.errs)
	}
}
