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

package ui

import (
	"html"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/synchub-dev/synchub/cmd/kubectl-synchub/cli"
	"github.com/synchub-dev/synchub/cmd/kubectl-synchub/diff"
	"github.com/synchub-dev/synchub/cmd/kubectl-synchub/placed"
)

func compared(t *testing.T, report *diff.Report) string {
	t.Helper()
	content := compareContent{objectQuery: objectQuery{
		Workspace: "root:shop", Placement: "shop", SyncTarget: "florin",
		Object: placed.Object{GroupResource: schema.GroupResource{Group: "apps", Resource: "deployments"}, NamespacedName: types.NamespacedName{Namespace: "shop", Name: "web"}},
	}}
	content.ObjectURL, content.Command = objectURL(content.objectQuery), compareCommand(content.objectQuery)
	content.add(report)
	page, err := render(view{Title: "web", template: "compare.html", Content: content, IsStatic: true}, "page")
	if err != nil {
		t.Fatal(err)
	}
	return string(page)
}

func TestComparePage(t *testing.T) {
	const same = "The cluster has the object as the hub would write it."
	web := diff.Object{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "shop", Name: "web"}
	many := make([]diff.Field, maxFields+3)
	for name, c := range map[string]struct {
		report   diff.Report
		has, not []string
	}{
		"equal": {diff.Report{}, []string{same, "data-static", "kubectl get deployments.apps web --namespace shop -o yaml | kubectl synchub diff -f - --sync-targets florin"}, []string{"<table"}},
		"changed": {
			diff.Report{Changes: []diff.Change{{Action: diff.Update, Object: web, Note: "the hub takes the object over", Fields: []diff.Field{
				{Path: "spec.replicas", Before: int64(5), After: int64(3)}, {Path: "metadata.labels.team", After: "<b>"}, {Path: "spec.paused", Before: true},
			}}}},
			[]string{
				"Update Deployment shop/web", "the hub takes the object over", `<th scope="row">spec.replicas</th><td><del>5</del></td><td><ins>3</ins></td>`,
				"<td></td><td><ins>&lt;b&gt;</ins></td>", "<td><del>true</del></td><td></td>",
			}, []string{same},
		},
		"many fields": {diff.Report{Changes: []diff.Change{{Action: diff.Create, Object: web, Fields: many}}}, []string{"and 3 more"}, nil},
		"no answer": {
			diff.Report{Problems: []diff.Remark{{Message: "the cluster cannot be asked: no route"}}, Notes: []diff.Remark{{Message: "the SyncTarget is suspended"}}},
			[]string{"the cluster cannot be asked: no route", "the SyncTarget is suspended"}, []string{same},
		},
		"an unanswered question": {diff.Report{Problems: []diff.Remark{{Message: "no route"}}}, []string{"no route"}, []string{same}},
		"a note":                 {diff.Report{Notes: []diff.Remark{{Message: "it is suspended"}}}, []string{"it is suspended"}, []string{same}},
	} {
		page := compared(t, &c.report)
		for _, want := range c.has {
			if !strings.Contains(strings.ReplaceAll(page, "&#39;", "'"), want) {
				t.Errorf("%s: no %q in\n%s", name, want, page)
			}
		}
		for _, unwanted := range c.not {
			if strings.Contains(page, unwanted) {
				t.Errorf("%s: %q in\n%s", name, unwanted, page)
			}
		}
	}
}

// The page of a comparison is made on request only, and names the command that makes the same one.
func TestComparePageOnRequest(t *testing.T) {
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "absent"))
	w := &workspace{name: "root:shop", options: cli.NewWorkspaceOptions(genericiooptions.NewTestIOStreamsDiscard())}
	page := newServer([]*workspace{w}, newChanges())
	const get = "kubectl get deployments.apps web --namespace shop -o yaml | kubectl synchub diff -f -"
	const object = "resource=deployments.apps&namespace=shop&name=web"
	for query, want := range map[string]string{
		"workspace=root:shop&placement=shop&target=florin&" + object:              get + " --sync-targets florin</code>",
		"workspace=root:shop&target=florin&" + object:                             get + "</code>",
		"workspace=root:shop&target=florin&resource=namespaces&name=shop":         "kubectl get namespaces shop -o yaml | kubectl synchub diff -f -</code>",
		"workspace=root:other&target=florin&" + object:                            "",
		"workspace=root:shop&" + object:                                           "",
		"workspace=root:shop&target=florin&resource=deployments.apps&namespace=a": "",
		"workspace=root:shop&target=florin&name=web":                              "",
	} {
		recorder := httptest.NewRecorder()
		page.ServeHTTP(recorder, httptest.NewRequestWithContext(t.Context(), http.MethodGet, comparePath+"?"+query, nil))
		content := html.UnescapeString(recorder.Body.String())
		switch {
		case want == "" && recorder.Code != http.StatusNotFound:
			t.Errorf("%s: %d", query, recorder.Code)
		case want == "":
		case recorder.Code != http.StatusOK, !strings.Contains(content, want), !strings.Contains(content, "data-static"), !strings.Contains(content, "there is no kubeconfig"):
			t.Errorf("%s: %d, no %q in\n%s", query, recorder.Code, want, content)
		}
	}
}
