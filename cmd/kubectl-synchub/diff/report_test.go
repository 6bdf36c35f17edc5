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

package diff

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/kcp-dev/logicalcluster/v3"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/cmd/kubectl-synchub/explain"
	"github.com/synchub-dev/synchub/controllers/plan/fieldpath"
	"github.com/synchub-dev/synchub/controllers/plan/transform"
	"github.com/synchub-dev/synchub/test/fixtures"
)

func clusterNamed(name string) *cluster {
	return &cluster{syncTarget: &edgev2alpha1.SyncTarget{ObjectMeta: metav1.ObjectMeta{Name: name}}}
}

func contentOf(t *testing.T, manifest string) map[string]any {
	t.Helper()
	return fixtures.Decode[map[string]any](t, manifest)
}

func refTo(name string) explain.TargetRef {
	ref := explain.TargetRef{NamespacedName: types.NamespacedName{Namespace: "shop", Name: name}}
	ref.Version, ref.Kind, ref.Resource = "v1", "ConfigMap", "configmaps"
	return ref
}

// Clusters with equal changes are one group, although other fields differ there.
func TestReportGroupsEqualChanges(t *testing.T) {
	change := func(cluster, own, to string) outcome {
		return outcome{
			cluster: clusterNamed(cluster), action: Update, ref: refTo("a"),
			from: contentOf(t, "{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: shop}, data: {own: "+own+", entry: one}}"),
			to:   contentOf(t, "{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: shop}, data: {own: "+own+", entry: "+to+"}}"),
		}
	}
	away := clusterNamed("away")
	away.err = errRefused
	report, err := newReport(&scope{clusters: []*cluster{away, clusterNamed("florin")}}, []outcome{
		change("guilder", "x", "two"), change("florin", "y", "two"), change("ducat", "z", "three"), {},
		{cluster: clusterNamed("florin"), ref: refTo("b"), note: "stays"}, {cluster: clusterNamed("ducat"), ref: refTo("b"), note: "stays"},
		{cluster: clusterNamed("ducat"), ref: refTo("c"), problem: "refused\n  twice"},
	})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, one := range report.Changes {
		got = append(got, strings.Join(one.SyncTargets, ",")+" "+one.Fields[0].Path+" "+one.Fields[0].After.(string))
	}
	if want := []string{"ducat data.entry three", "florin,guilder data.entry two"}; !slices.Equal(got, want) {
		t.Errorf("want %q, got %q", want, got)
	}
	if len(report.Notes) != 1 || !slices.Equal(report.Notes[0].SyncTargets, []string{"ducat", "florin"}) {
		t.Errorf("got %+v", report.Notes)
	}
	if len(report.Problems) != 2 || report.Problems[0].SyncTargets[0] != "away" || report.Problems[1].Message != "refused twice" {
		t.Errorf("got %+v", report.Problems)
	}
	var out, errs bytes.Buffer
	if err := report.print(genericiooptions.IOStreams{Out: &out, ErrOut: &errs}); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(out.String(), "# SyncTargets florin, guilder\n") || strings.Count(out.String(), "+  entry: two") != 1 {
		t.Errorf("got\n%s", out.String())
	}
	if want := "note: ducat, florin: ConfigMap shop/b: stays\nproblem: away: the cluster cannot be asked: it cannot be placed there\nproblem: ducat: ConfigMap shop/c: refused twice\n"; errs.String() != want {
		t.Errorf("want\n%sgot\n%s", want, errs.String())
	}
}

// SyncTargets of several inventories may have one name. A cluster that several workspaces use is one.
func TestReportNamesInventories(t *testing.T) {
	var clusters []*cluster
	var outcomes []outcome
	for _, inventory := range []logicalcluster.Name{"one", "two", "two"} {
		clusters = append(clusters, clusterNamed("florin"))
		clusters[len(clusters)-1].inventory = inventory
	}
	clusters = append(clusters, clusterNamed("guilder"))
	for _, one := range clusters {
		outcomes = append(outcomes, outcome{cluster: one, note: "a note"})
	}
	report, err := newReport(&scope{clusters: clusters}, outcomes)
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{"guilder", "one/florin", "two/florin"}; len(report.Notes) != 1 || !slices.Equal(report.Notes[0].SyncTargets, want) {
		t.Errorf("got %+v", report.Notes)
	}
}

// Values of Secrets are never shown, and clusters with different values are different groups.
func TestReportMasksSecrets(t *testing.T) {
	secret := func(value string) map[string]any {
		return contentOf(t, "{apiVersion: v1, kind: Secret, metadata: {name: a, namespace: shop}, data: {key: "+value+"}}")
	}
	report, err := newReport(&scope{}, []outcome{
		{cluster: clusterNamed("florin"), action: Update, ref: refTo("a"), from: secret("b25l"), to: secret("dHdv")},
		{cluster: clusterNamed("guilder"), action: Update, ref: refTo("a"), from: secret("b25l"), to: secret("dGhyZWU=")},
		{cluster: clusterNamed("ducat"), action: Create, ref: refTo("a"), to: secret("dHdv")},
		{cluster: clusterNamed("thaler"), action: Delete, ref: refTo("a"), from: secret("dHdv")},
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(report.Changes) != 4 {
		t.Errorf("got %+v", report.Changes)
	}
	content, err := json.Marshal(report)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := report.print(genericiooptions.IOStreams{Out: &out, ErrOut: &out}); err != nil {
		t.Fatal(err)
	}
	for _, value := range []string{"b25l", "dHdv", "dGhyZWU="} {
		if strings.Contains(string(content)+out.String(), value) {
			t.Errorf("it shows %s in\n%s\n%s", value, content, out.String())
		}
	}
	if !strings.Contains(out.String(), "+  key: '*** (after)'") {
		t.Errorf("got\n%s", out.String())
	}
}

func TestFields(t *testing.T) {
	for name, test := range map[string]struct {
		from, to string
		want     []string
	}{
		"equal":             {"{a: 1}", "{a: 1}", nil},
		"a value":           {"{a: {b: 1}}", "{a: {b: 2}}", []string{"a.b"}},
		"a new field":       {"{a: {}}", "{a: {b: 2}}", []string{"a.b"}},
		"a field less":      {"{a: {b: 2}, c: 1}", "{a: {}}", []string{"a.b", "c"}},
		"an item":           {"{a: [{b: 1, c: [x]}, {b: 2}]}", "{a: [{b: 3, c: [y]}, {b: 2}]}", []string{"a[0].b", "a[0].c[0]"}},
		"a list":            {"{a: [1]}", "{a: [1, 2]}", []string{"a"}},
		"a name with a dot": {"{a: {b.c/d: 1}}", "{a: {b.c/d: 2}}", []string{"a['b.c/d']"}},
	} {
		var got []string
		for _, field := range fieldsOf(contentOf(t, test.from), contentOf(t, test.to)) {
			got = append(got, field.Path)
		}
		if !slices.Equal(got, test.want) {
			t.Errorf("%s: want %q, got %q", name, test.want, got)
		}
	}
}

// What a server draws by lot is left out of a new object, and what the user asked for stays.
func TestContentWithoutRandomValues(t *testing.T) {
	service := contentOf(t, "{apiVersion: v1, kind: Service, metadata: {name: a}, spec: {clusterIP: 10.0.0.7, clusterIPs: [10.0.0.7], type: NodePort, ports: [{port: 80, nodePort: 30001}, {port: 81, nodePort: 30002}]}}")
	desired := &unstructured.Unstructured{Object: contentOf(t, "{apiVersion: v1, kind: Service, metadata: {name: a}, spec: {ports: [{port: 80}, {port: 81, nodePort: 30002}]}}")}
	got, err := json.Marshal(withoutRandom(service, desired, ""))
	if err != nil {
		t.Fatal(err)
	}
	if want := `{"apiVersion":"v1","kind":"Service","metadata":{"name":"a"},"spec":{"ports":[{"port":80},{"nodePort":30002,"port":81}],"type":"NodePort"}}`; string(got) != want {
		t.Errorf("want %s\ngot  %s", want, got)
	}
	job := contentOf(t, "{apiVersion: batch/v1, kind: Job, metadata: {name: a}, spec: {selector: {matchLabels: {uid: 1-2}}}}")
	if got, err := json.Marshal(withoutRandom(job, desired, "1-2")); err != nil || strings.Contains(string(got), "1-2") {
		t.Errorf("got %s, %v", got, err)
	}
}

func TestContent(t *testing.T) {
	object := fixtures.Object(t, `
apiVersion: v1
kind: ConfigMap
metadata:
  {name: a, uid: u, resourceVersion: "1", generation: 2, labels: {synchub.dev/owner: x, app: web}, annotations: {synchub.dev/mark: x}, creationTimestamp: "2026-01-02T03:04:05Z"}
data: {a: b}
`)
	before := object.DeepCopy()
	got, err := json.Marshal(content(object, nil))
	if err != nil {
		t.Fatal(err)
	}
	if want := `{"apiVersion":"v1","data":{"a":"b"},"kind":"ConfigMap","metadata":{"labels":{"app":"web"},"name":"a"}}`; string(got) != want {
		t.Errorf("want %s\ngot  %s", want, got)
	}
	ignored := []transform.IgnoredField{{Path: parsePath(t, "data.a")}}
	if left := content(object, ignored); left["data"] != nil {
		t.Errorf("got %v", left)
	}
	if object.GetUID() != before.GetUID() || len(object.GetLabels()) != 2 {
		t.Errorf("the object was changed: %v", object)
	}
}

func parsePath(t *testing.T, text string) fieldpath.Path {
	t.Helper()
	path, err := fieldpath.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return path
}
