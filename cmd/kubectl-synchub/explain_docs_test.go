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
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	synchubv1alpha1 "github.com/synchub-dev/synchub/apis/synchub/v1alpha1"
	"github.com/synchub-dev/synchub/cmd/kubectl-synchub/explain"
	"github.com/synchub-dev/synchub/controllers/publishedresource"
)

// explainSection returns the section about explain on the page for operators.
func explainSection(t *testing.T) string {
	t.Helper()
	content, err := os.ReadFile("../../docs/operations.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(content), "\n## Why is it not there?\n")
	section, _, found := strings.Cut(section, "\n## ")
	if !found {
		t.Fatal("the section is missing")
	}
	return section
}

// documented returns the facts of the page's example.
func documented() *explain.Facts {
	syncTarget := &edgev2alpha1.SyncTarget{ObjectMeta: metav1.ObjectMeta{Name: "florin", UID: "florin"}}
	for _, kind := range []string{edgev2alpha1.ConditionReady, edgev2alpha1.ConditionHeartbeatHealthy, edgev2alpha1.ConditionSyncerReady, edgev2alpha1.ConditionMailboxReady} {
		syncTarget.Status.Conditions = append(syncTarget.Status.Conditions, metav1.Condition{Type: kind, Status: metav1.ConditionTrue})
	}
	syncTarget.Status.Mailbox = &edgev2alpha1.MailboxStatus{Workspace: "root:synchub:2x7abc-mb-5f0e", Cluster: "a"}
	web := &unstructured.Unstructured{}
	web.SetAPIVersion("apps/v1")
	web.SetKind("Deployment")
	web.SetNamespace("shop")
	web.SetName("web")
	deployments := schema.GroupResource{Group: "apps", Resource: "deployments"}
	facts := &explain.Facts{Now: time.Now(), SyncTarget: syncTarget, Resource: deployments, Key: types.NamespacedName{Namespace: "shop", Name: "web"}}
	facts.Served.Value = &publishedresource.API{GroupVersionResource: deployments.WithVersion("v1"), Kind: "Deployment", Namespaced: true, Versions: []string{"v1"}}
	facts.Published.Value = []synchubv1alpha1.PublishedResource{{
		ObjectMeta: metav1.ObjectMeta{Name: "deployments"},
		Spec:       synchubv1alpha1.PublishedResourceSpec{Resource: synchubv1alpha1.ResourceDescriptor{Group: "apps", Resource: "deployments"}},
	}}
	facts.Configs.Value.SyncerConfigs = []*edgev2alpha1.SyncerConfig{{
		ObjectMeta: metav1.ObjectMeta{Name: "all"},
		Spec: edgev2alpha1.SyncerConfigSpec{NamespaceScope: edgev2alpha1.NamespaceScopeDownsyncs{
			Namespaces: []string{"bakery", "mill"},
			Resources:  []edgev2alpha1.NamespaceScopeDownsyncResource{{GroupResource: edgev2alpha1.GroupResource(deployments)}},
		}},
	}}
	facts.Object.Value = web
	return facts
}

func TestDocumentedExplanationIsWhatIsPrinted(t *testing.T) {
	var out bytes.Buffer
	if err := explain.Explain(documented()).Print(&out); err != nil {
		t.Fatal(err)
	}
	_, shown, _ := strings.Cut(explainSection(t), "```output\n")
	shown, _, _ = strings.Cut(shown, "```")
	if out.String() != shown {
		t.Errorf("it prints\n%s\nand the page shows\n%s", out.String(), shown)
	}
}

// The plugin accepts the command on the page.
func TestDocumentedExplanationCanBeAskedFor(t *testing.T) {
	_, command, _ := strings.Cut(explainSection(t), "```sh\n")
	command, _, _ = strings.Cut(command, "```")
	args := strings.Fields(command)
	if len(args) < 3 || args[0] != "kubectl" || args[1] != "synchub" {
		t.Fatalf("%q does not run the plugin", command)
	}
	found, left, err := newCommand(genericiooptions.NewTestIOStreamsDiscard()).Find(args[2:])
	if err != nil || found.Name() != "explain" {
		t.Fatal(found.Name(), err)
	}
	if err := found.ParseFlags(left); err != nil {
		t.Fatal(err)
	}
	if err := found.Args(found, found.Flags().Args()); err != nil {
		t.Error(err)
	}
}

func TestDocumentedStepsAreThoseThatThereAre(t *testing.T) {
	_, table, _ := strings.Cut(explainSection(t), "| step | what it looks at |")
	table, _, _ = strings.Cut(table, "\n\n")
	var listed []string
	for row := range strings.Lines(table) {
		first, _, _ := strings.Cut(strings.TrimPrefix(row, "|"), "|")
		for _, name := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(first, -1) {
			listed = append(listed, name[1])
		}
	}
	want := []string{
		explain.StepWorkload, explain.StepPlacement, explain.StepDestination, explain.StepProgress,
		explain.StepSyncTarget, explain.StepConnection, explain.StepMailbox, explain.StepPublished, explain.StepObject, explain.StepSelected,
		explain.StepFilter, explain.StepName, explain.StepCompatibility, explain.StepReport, explain.StepTarget, explain.StepContent, explain.StepStatus,
	}
	if !slices.Equal(listed, want) {
		t.Errorf("the page lists\n%q\nand there are\n%q", listed, want)
	}
}
