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
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/net/html"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/cmd/kubectl-synchub/cli"
	"github.com/synchub-dev/synchub/cmd/kubectl-synchub/placed"
	"github.com/synchub-dev/synchub/controllers/plan"
)

const driftWorkspace = "root:shop"

// absentKubeconfig returns the path of a kubeconfig that does not exist. No server answers, so pages have no explanation.
func absentKubeconfig(t *testing.T) string { return filepath.Join(t.TempDir(), "absent") }

// objectPageOf returns the page of the ConfigMap shop/settings on florin, in a workspace with the objects given.
func objectPageOf(t *testing.T, kubeconfig, placement string, objects ...client.Object) *html.Node {
	t.Helper()
	address := objectURL(objectQuery{Workspace: driftWorkspace, Placement: placement, SyncTarget: "florin", Object: placed.Object{
		GroupResource: schema.GroupResource{Resource: "configmaps"}, NamespacedName: types.NamespacedName{Namespace: "shop", Name: "settings"},
	}})
	return pageOf(t, kubeconfig, address, objects...)
}

// pageOf returns a page about a workspace with the objects given.
func pageOf(t *testing.T, kubeconfig, address string, objects ...client.Object) *html.Node {
	t.Helper()
	t.Setenv("KUBECONFIG", kubeconfig)
	w := &workspace{
		name: driftWorkspace, isInventory: true, isWorkload: true, options: cli.NewWorkspaceOptions(genericiooptions.NewTestIOStreamsDiscard()),
		reader: &cli.Reader{Client: newCountingClient(objects...)},
	}
	changed := newChanges()
	if err := watchAll(t.Context(), []*workspace{w}, changed); err != nil {
		t.Fatal(err)
	}
	recorder := httptest.NewRecorder()
	newServer([]*workspace{w}, changed).ServeHTTP(recorder, httptest.NewRequestWithContext(t.Context(), http.MethodGet, address, nil))
	page, err := html.Parse(recorder.Body)
	if recorder.Code != http.StatusOK || err != nil {
		t.Fatalf("got %d, %v", recorder.Code, err)
	}
	return page
}

// find returns the elements for which isWanted is true, in the order of the page.
func find(in *html.Node, isWanted func(*html.Node) bool) (found []*html.Node) {
	for node := range in.Descendants() {
		if node.Type == html.ElementNode && isWanted(node) {
			found = append(found, node)
		}
	}
	return found
}

func hasAttribute(key, value string) func(*html.Node) bool {
	return func(node *html.Node) bool {
		return slices.ContainsFunc(node.Attr, func(one html.Attribute) bool { return one.Key == key && one.Val == value })
	}
}

// rowsOf returns the texts of the cells below the head of the tables in an element, separated by |.
func rowsOf(in *html.Node) (rows []string) {
	for _, row := range find(in, func(node *html.Node) bool { return node.Data == "tr" && node.Parent.Data == "tbody" }) {
		var cells []string
		for _, cell := range find(row, func(node *html.Node) bool { return node.Data == "th" || node.Data == "td" }) {
			cells = append(cells, textOf(cell))
		}
		rows = append(rows, strings.Join(cells, "|"))
	}
	return rows
}

func textOf(in *html.Node) string {
	var text strings.Builder
	for node := range in.Descendants() {
		if node.Type == html.TextNode {
			text.WriteString(node.Data)
		}
	}
	return text.String()
}

func driftFailure(reason string, differences ...edgev2alpha1.FieldDifference) edgev2alpha1.ObjectFailure {
	return edgev2alpha1.ObjectFailure{Resource: "configmaps", Namespace: "shop", Name: "settings", Reason: reason, Message: "m", Differences: differences}
}

func placementFailing(failures ...edgev2alpha1.PlacementPair) *edgev2alpha1.EdgePlacement {
	return &edgev2alpha1.EdgePlacement{ObjectMeta: metav1.ObjectMeta{Name: "shop"}, Status: edgev2alpha1.EdgePlacementStatus{Failures: failures}}
}

func targetFailing(mailbox string, failures ...edgev2alpha1.ObjectFailure) *edgev2alpha1.SyncTarget {
	return &edgev2alpha1.SyncTarget{ObjectMeta: metav1.ObjectMeta{Name: "florin"}, Status: edgev2alpha1.SyncTargetStatus{Mailbox: &edgev2alpha1.MailboxStatus{Cluster: mailbox}, Failures: failures}}
}

func TestObjectPageShowsDrift(t *testing.T) {
	const (
		notShown   = "The hub reports no values"
		unreadable = "The values cannot be shown: there is no kubeconfig"
		theirs     = "Another client has changed these fields on the cluster."
	)
	changed := edgev2alpha1.FieldDifference{Path: ".data.a", Managers: []string{"kubectl-edit", "helm"}, Desired: `"x"`, Observed: `"y"`}
	absent := edgev2alpha1.FieldDifference{Path: ".data.b", Desired: `"x"`}
	withoutValues := edgev2alpha1.FieldDifference{Path: ".data.a", Managers: []string{"kubectl-edit"}}
	onFlorin := func(failure edgev2alpha1.ObjectFailure) edgev2alpha1.PlacementPair {
		return edgev2alpha1.PlacementPair{SyncTarget: "florin", ObjectFailure: failure}
	}
	onGuilder := edgev2alpha1.PlacementPair{SyncTarget: "guilder", ObjectFailure: driftFailure(plan.ReasonDrifted, changed)}
	other := driftFailure(plan.ReasonDrifted, changed)
	other.Name = "other"
	for name, c := range map[string]struct {
		placement string
		objects   []client.Object
		rows      []string
		has, not  []string
	}{
		"changed fields": {
			"shop", []client.Object{placementFailing(onGuilder, onFlorin(other), onFlorin(driftFailure(plan.ReasonDrifted, changed, absent)))},
			[]string{`.data.a|kubectl-edit,helm|"x"|"y"`, `.data.b|-|"x"|-`}, []string{theirs}, []string{notShown, unreadable},
		},
		"a Secret": {
			"shop", []client.Object{placementFailing(onFlorin(driftFailure(plan.ReasonDrifted, withoutValues)))},
			[]string{".data.a|kubectl-edit|-|-"}, []string{theirs, notShown}, []string{unreadable},
		},
		"an object that the hub would take over": {
			"shop", []client.Object{placementFailing(onFlorin(driftFailure(plan.ReasonAdoptionReported, withoutValues)))},
			[]string{".data.a|kubectl-edit|-|-"}, []string{"if it took the object over", notShown}, []string{theirs},
		},
		"no fields": {
			"shop", []client.Object{placementFailing(onFlorin(driftFailure(plan.ReasonAdoptionReported)))},
			[]string{"-|-|-|-"}, nil, nil,
		},
		"an object in a mailbox that the user cannot read": {
			"", []client.Object{targetFailing("mailbox", other, driftFailure(plan.ReasonDrifted, withoutValues))},
			[]string{".data.a|kubectl-edit|-|-"}, []string{theirs, unreadable}, []string{notShown},
		},
		"an object in a mailbox, by its SyncTarget": {
			"", []client.Object{targetFailing("", driftFailure(plan.ReasonDrifted, changed))}, []string{`.data.a|kubectl-edit,helm|"x"|"y"`}, []string{theirs}, []string{unreadable},
		},
		"another failure":    {"shop", []client.Object{placementFailing(onFlorin(driftFailure(plan.ReasonConflict, changed)))}, nil, nil, nil},
		"another cluster":    {"shop", []client.Object{placementFailing(onGuilder)}, nil, nil, nil},
		"another object":     {"", []client.Object{targetFailing("", other)}, nil, nil, nil},
		"no such SyncTarget": {"", nil, nil, nil, nil},
	} {
		section := find(objectPageOf(t, absentKubeconfig(t), c.placement, c.objects...), hasAttribute("aria-label", "Drift"))
		if c.rows == nil {
			if len(section) > 0 {
				t.Errorf("%s: %s", name, textOf(section[0]))
			}
			continue
		}
		if len(section) != 1 {
			t.Errorf("%s: %d sections", name, len(section))
			continue
		}
		if rows := rowsOf(section[0]); !slices.Equal(rows, c.rows) {
			t.Errorf("%s: want %q, got %q", name, c.rows, rows)
		}
		text := textOf(section[0])
		for _, want := range c.has {
			if !strings.Contains(text, want) {
				t.Errorf("%s: no %q in %s", name, want, text)
			}
		}
		for _, unwanted := range c.not {
			if strings.Contains(text, unwanted) {
				t.Errorf("%s: %q in %s", name, unwanted, text)
			}
		}
		links := find(section[0], func(node *html.Node) bool { return node.Data == "a" })
		compare := comparePath + "?name=settings&namespace=shop"
		if c.placement != "" {
			compare += "&placement=shop"
		}
		if compare += "&resource=configmaps&target=florin&workspace=root%3Ashop"; len(links) != 1 || !hasAttribute("href", compare)(links[0]) {
			t.Errorf("%s: no link to %s", name, compare)
		}
	}
}

// Fields, managers and values come from clusters and workspaces, whose users may write anything.
func TestDriftIsEscaped(t *testing.T) {
	hostile := edgev2alpha1.FieldDifference{
		Path: `.data."><img src=x onerror=alert(1)>`, Managers: []string{"</td><script>alert(2)</script>", "' onclick='x"},
		Desired: `"</table></section><iframe src=javascript:alert(3)>"`, Observed: "\"\x1b[31m<b>{{.Command}}&lt;\u202e\"",
	}
	pair := edgev2alpha1.PlacementPair{SyncTarget: "florin", ObjectFailure: driftFailure(plan.ReasonDrifted, hostile)}
	page := objectPageOf(t, absentKubeconfig(t), "shop", placementFailing(pair))
	for _, element := range find(page, func(node *html.Node) bool {
		return slices.Contains([]string{"script", "img", "iframe", "b"}, node.Data)
	}) {
		if !hasAttribute("src", "/assets/live.js")(element) {
			t.Errorf("the page has the element %s", element.Data)
		}
	}
	for _, element := range find(page, func(node *html.Node) bool {
		return slices.ContainsFunc(node.Attr, func(one html.Attribute) bool { return strings.HasPrefix(one.Key, "on") })
	}) {
		t.Errorf("the element %s has a handler", element.Data)
	}
	rows := rowsOf(find(page, hasAttribute("aria-label", "Drift"))[0])
	want := hostile.Path + "|" + strings.Join(hostile.Managers, ",") + "|" + hostile.Desired + `|"\x1b[31m<b>{{.Command}}&lt;\u202e"`
	if !slices.Equal(rows, []string{want}) {
		t.Errorf("want %q\ngot  %q", want, rows)
	}
}
