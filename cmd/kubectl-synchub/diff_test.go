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
	"encoding/json"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/cmd/kubectl-synchub/diff"
	"github.com/synchub-dev/synchub/test/framework/suite"
)

// renamedSecrets publishes Secrets under another name on targets too.
//
//nolint:gosec // no credential
const renamedSecrets = `
apiVersion: synchub.dev/v1alpha1
kind: PublishedResource
metadata: {name: secrets}
spec:
  resource: {group: "", resource: secrets, version: v1}
  naming: {name: "{{ .SyncTarget }}-{{ .Object.metadata.name }}"}
`

// bakerySettings are a changed object, a new one, and a Secret. Configs of the mailbox select them.
const bakerySettings = `
apiVersion: v1
kind: ConfigMap
metadata: {name: settings, namespace: bakery}
data: {a: c}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: absent, namespace: bakery}
---
apiVersion: v1
kind: Secret
metadata: {name: key, namespace: bakery}
stringData: {token: not-to-be-shown}
`

//nolint:gosec // no credential
const selectsSecrets = `
apiVersion: edge.kubestellar.io/v2alpha1
kind: SyncerConfig
metadata: {name: secrets}
spec: {namespacedObjects: [{resource: secrets, apiVersion: v1, objectsByNamespace: [{namespace: bakery, names: [key]}]}]}
`

// compared runs diff and returns its exit status, its report and what it printed about problems.
func compared(t *testing.T, args ...string) (string, diff.Report) {
	t.Helper()
	got := plugin(t, append([]string{"diff", "-o", "json"}, args...)...)
	var report diff.Report
	if err := json.Unmarshal([]byte(got.out), &report); err != nil {
		t.Fatalf("%v in %s%s", err, got.out, got.errs)
	}
	if strings.Contains(got.out+got.errs, "not-to-be-shown") || strings.Contains(got.out, "bm90LXRvLWJlLXNob3du") {
		t.Errorf("it shows a Secret: %s", got.out)
	}
	if got.err == nil {
		return "no difference", report
	}
	return got.err.Error(), report
}

// summaryOf returns the changes of a report in one line each.
func summaryOf(report diff.Report) (lines []string) {
	for _, change := range report.Changes {
		var fields []string
		for _, field := range change.Fields {
			if change.Action == diff.Update {
				fields = append(fields, field.Path)
			}
		}
		lines = append(lines, strings.TrimSpace(strings.Join(change.SyncTargets, ",")+" "+string(change.Action)+" "+change.String()+" "+strings.Join(fields, ",")))
	}
	return lines
}

func expectChanges(t *testing.T, what string, report diff.Report, want ...string) {
	t.Helper()
	if got := summaryOf(report); !slices.Equal(got, want) {
		t.Errorf("%s: want %q, got %q", what, want, got)
	}
}

// contents returns the versions of all ConfigMaps and Secrets of the namespace.
func (f *testFleet) contents(t *testing.T) (versions []string) {
	t.Helper()
	for _, list := range []client.ObjectList{&corev1.ConfigMapList{}, &corev1.SecretList{}} {
		if err := f.admin.List(t.Context(), list, client.InNamespace("bakery")); err != nil {
			t.Fatal(err)
		}
		versions = append(versions, list.GetResourceVersion())
	}
	var settings corev1.ConfigMapList
	if err := f.admin.List(t.Context(), &settings, client.InNamespace("bakery")); err != nil {
		t.Fatal(err)
	}
	versions = versions[:0]
	for i := range settings.Items {
		versions = append(versions, settings.Items[i].Name+"/"+settings.Items[i].ResourceVersion)
	}
	return versions
}

func TestDiff(t *testing.T) {
	f, ducat := newExplained(t)
	f.show(t, renamed, renamedSecrets)
	suite.Apply(t, f.Config, selectsSecrets)
	f.deleteAfter(t, &edgev2alpha1.SyncerConfig{ObjectMeta: metav1.ObjectMeta{Name: "secrets"}})
	file := write(t, map[string]string{"bakery.yaml": bakerySettings})[0]
	f.bring(t, ducat, "settings")
	before := f.contents(t)

	t.Run("an update and two new objects", func(t *testing.T) {
		status, report := compared(t, "-f", file)
		expectChanges(t, status, report, "ducat Create ConfigMap bakery/ducat-absent", "ducat Update ConfigMap bakery/ducat-settings data.a", "ducat Create Secret bakery/ducat-key")
		if status != "exit status 1" || len(report.Problems) > 0 {
			t.Errorf("got %s, %+v", status, report.Problems)
		}
	})
	t.Run("for people", func(t *testing.T) {
		got := plugin(t, "diff", "-f", file)
		for _, part := range []string{"# SyncTarget ducat\n", "-  a: b\n+  a: c\n", "v1.ConfigMap.bakery.ducat-settings", "+  token: '***'\n"} {
			if !strings.Contains(got.out, part) {
				t.Errorf("%q is missing in\n%s%s", part, got.out, got.errs)
			}
		}
		if strings.Contains(got.out, "synchub.dev") || got.errs != "" || got.err == nil || got.err.Error() != "exit status 1" {
			t.Errorf("got\n%s%s%v", got.out, got.errs, got.err)
		}
	})
	t.Run("as the page shows it", func(t *testing.T) { showsThePage(t) })
	t.Run("another program shows it", func(t *testing.T) {
		t.Setenv("KUBECTL_EXTERNAL_DIFF", "diff -N -q")
		if got := plugin(t, "diff", "-f", file); !strings.Contains(got.out, " differ\n") || strings.Contains(got.out, "a: c") {
			t.Errorf("got\n%s%s", got.out, got.errs)
		}
	})
	t.Run("no change", func(t *testing.T) {
		same := write(t, map[string]string{"same.yaml": strings.ReplaceAll(strings.SplitN(bakerySettings, "---", 2)[0], "a: c", "a: b")})[0]
		if status, report := compared(t, "-f", same); status != "no difference" || len(report.Changes) > 0 {
			t.Errorf("got %s, %+v", status, report)
		}
	})
	t.Run("other rules", func(t *testing.T) { comparesRules(t) })
	t.Run("what stands in the way", func(t *testing.T) { namesProblems(t, f, ducat, file) })
	t.Run("mistakes", func(t *testing.T) { refusesDiffs(t, file) })
	if after := f.contents(t); !slices.Equal(before, slices.DeleteFunc(after, func(name string) bool { return strings.HasPrefix(name, "ducat-absent/") })) {
		t.Errorf("it has written: %v, then %v", before, after)
	}
}

// showsThePage runs the example of the page.
func showsThePage(t *testing.T) {
	t.Helper()
	page := string(suite.ReadFile(t, "../../docs/ask-before.md"))
	command := regexp.MustCompile("(?ms)^```sh\nkubectl synchub (.*?)\n```$").FindStringSubmatch(page)
	want := regexp.MustCompile("(?ms)^```output\n(.*?)^```$").FindStringSubmatch(page)
	settings, _, _ := strings.Cut(bakerySettings, "---")
	t.Chdir(filepath.Dir(write(t, map[string]string{"settings.yaml": settings})[0]))
	got := plugin(t, strings.Fields(command[1])...)
	// Directories and times are left out.
	out := regexp.MustCompile(`\S*/(LIVE|MERGED)-\d+/`).ReplaceAllString(got.out, "$1/")
	out = regexp.MustCompile(`(?m)^((?:---|\+\+\+) \S+)\t.*$`).ReplaceAllString(out, "$1")
	if out != want[1] {
		t.Errorf("the page shows\n%s\nand it prints\n%s%s", want[1], out, got.errs)
	}
}

// comparesRules asks what other PublishedResources would do.
func comparesRules(t *testing.T) {
	t.Helper()
	for name, test := range map[string]struct {
		rules string
		want  []string
	}{
		"the same":    {renamed, nil},
		"a filter":    {renamed + "  filter: {resource: {matchLabels: {tier: gold}}}\n", []string{"ducat Delete ConfigMap bakery/ducat-settings"}},
		"a new name":  {strings.ReplaceAll(renamed, "}}-{{", "}}.{{"), []string{"ducat Create ConfigMap bakery/ducat.settings", "ducat Delete ConfigMap bakery/ducat-settings"}},
		"a mutation":  {renamed + "  mutation: {down: [{cel: {path: data.a, expression: '\"x\"'}}]}\n", []string{"ducat Update ConfigMap bakery/ducat-settings data.a"}},
		"a report":    {renamed + "  drift: Report\n", nil},
		"not a field": {renamed + "  ignoreFields: [{path: data.a}]\n", nil},
	} {
		file := write(t, map[string]string{"published.yaml": test.rules})[0]
		status, report := compared(t, "published-resource", "-f", file)
		slices.SortFunc(report.Changes, func(a, b diff.Change) int { return strings.Compare(string(a.Action), string(b.Action)) })
		expectChanges(t, name+": "+status, report, test.want...)
		if len(report.Problems) > 0 {
			t.Errorf("%s: got %+v", name, report.Problems)
		}
	}
}

// namesProblems asks about what would fail, and what cannot be asked.
func namesProblems(t *testing.T, f *testFleet, ducat *edgev2alpha1.SyncTarget, file string) {
	t.Helper()
	expect := func(message string, args ...string) {
		t.Helper()
		status, report := compared(t, append([]string{"-f", file}, args...)...)
		found := slices.ContainsFunc(report.Problems, func(one diff.Remark) bool { return strings.Contains(one.Message, message) })
		if status != "exit status 2" || !found {
			t.Errorf("want %q, got %s, %+v", message, status, report.Problems)
		}
	}
	taken := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "ducat-absent", "namespace": "bakery"}}}
	f.make(t, taken)
	expect("not the hub's, so the hub leaves it alone")

	change := func(what func()) {
		t.Helper()
		before := ducat.DeepCopy()
		what()
		if err := f.admin.Patch(t.Context(), ducat, client.MergeFrom(before)); err != nil {
			t.Fatal(err)
		}
	}
	change(func() { ducat.Spec.Adoption = edgev2alpha1.AdoptionAlways })
	status, report := compared(t, "-f", file)
	if status != "exit status 1" || len(report.Problems) > 0 {
		t.Errorf("adoption: got %s, %+v", status, report.Problems)
	}
	change(func() { ducat.Spec.Adoption, ducat.Spec.Unschedulable = "", true })
	_, report = compared(t, "-f", file)
	if !slices.ContainsFunc(report.Notes, func(one diff.Remark) bool {
		return strings.Contains(one.Message, "cordoned") && one.Name == "ducat-key"
	}) {
		t.Errorf("a cordon: got %+v", report)
	}
	change(func() { ducat.Spec.Unschedulable, ducat.Spec.Connection = false, edgev2alpha1.ConnectionTunnel })
	expect("it opens a tunnel to the hub")
	if status, _ := compared(t, "-f", file, "--target-kubeconfig", f.Kubeconfig); status != "exit status 2" {
		t.Errorf("with a kubeconfig of the cluster: got %s", status)
	}
}

func refusesDiffs(t *testing.T, file string) {
	t.Helper()
	placement := write(t, map[string]string{"placement.yaml": "{apiVersion: edge.kubestellar.io/v2alpha1, kind: EdgePlacement, metadata: {name: shop}}"})[0]
	for message, args := range map[string][]string{
		"give the files with -f":             {},
		"kubectl synchub diff placement -f":  {"-f", placement},
		`"nobody" not found`:                 {"-f", file, "--sync-targets", "nobody"},
		"--placement is for workload":        {"-f", file, "--placement", "shop"},
		"is no PublishedResource":            {"published-resource", "-f", file},
		"is no inventory workspace":          {"location", "-f", placement},
		"the current workspace is no workl":  {"placement", "-f", placement},
		"--concurrency must be at least 1":   {"-f", file, "--concurrency", "0"},
		"unknown flag: --nothing; see `kube": {"-f", file, "--nothing"},
	} {
		got := plugin(t, append([]string{"diff"}, args...)...)
		if got.err == nil || got.err.Error() != "exit status 2" || !strings.Contains(got.errs, message) {
			t.Errorf("%q: want %q, got %v\n%s", args, message, got.err, got.errs)
		}
	}
}
