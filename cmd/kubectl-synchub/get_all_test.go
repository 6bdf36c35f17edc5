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
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/synchub-dev/synchub/test/framework/suite"
)

func TestGetAllArguments(t *testing.T) {
	withCluster(t, http.NotFound)
	for name, test := range map[string]struct {
		args []string
		want string
	}{
		"without the flag":               {[]string{"get", "deployments"}, "give --all-mailboxes to read \"deployments\" in all mailboxes; to read the current workspace, run `kubectl get`; see `kubectl synchub get --help`"},
		"without a resource":             {[]string{"get", "--all-mailboxes"}, "give a resource, such as deployments"},
		"two resources":                  {[]string{"get", "deployments,pods", "--all-mailboxes"}, `"deployments,pods" is not one resource`},
		"a resource with a name":         {[]string{"get", "deployments/web", "--all-mailboxes"}, `"deployments/web" is not one resource`},
		"a wrong selector":               {[]string{"get", "pods", "--all-mailboxes", "-l", "a in"}, "--selector: "},
		"a wrong field selector":         {[]string{"get", "pods", "--all-mailboxes", "--field-selector", "a"}, "--field-selector: "},
		"a wrong format":                 {[]string{"get", "pods", "--all-mailboxes", "-o", "table"}, `--output: "table" is none of json, yaml, kyaml`},
		"a wrong workspace":              {[]string{"get", "pods", "--all-mailboxes", "--provider-workspace", "a b"}, "--provider-workspace: "},
		"a cluster that is no workspace": {[]string{"get", "pods", "--all-mailboxes"}, "the current context is no workspace of kcp"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := execute(t, "", test.args...); got.err == nil || !strings.Contains(got.err.Error(), test.want) {
				t.Errorf("got %v, want %q", got.err, test.want)
			}
		})
	}
	if got := execute(t, "", "get"); got.err != nil || !strings.Contains(got.out, "--all-mailboxes") || !strings.Contains(got.out, "targets ") {
		t.Errorf("the help is %v\n%s", got.err, got.out)
	}
}

// fakeShards is a kcp with two endpoints of the mailbox export. The first returns tables, and the second lists.
type fakeShards struct {
	lock  sync.Mutex
	lists []string
	// events is the response to a watch at the first endpoint, which then ends. The watch at the second has no event and
	// does not end.
	events string
	url    string
}

func newFakeShards(t *testing.T) *fakeShards {
	t.Helper()
	f := &fakeShards{}
	server := suite.ServeTLS(t, f)
	f.url = server.URL
	file := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(file, suite.Kubeconfig(t, server.URL+"/clusters/root:inventory", suite.CertificateOf(server), "token"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("KUBECONFIG", file)
	return f
}

func (f *fakeShards) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	const widgets = "/clusters/*/apis/example.org/v1/widgets"
	switch path := r.URL.Path; {
	case path == "/clusters/root:synchub/apis/apis.kcp.io/v1alpha1/apiexportendpointslices/mailbox.edge.kubestellar.io":
		fmt.Fprintf(w, `{"apiVersion":"apis.kcp.io/v1alpha1","kind":"APIExportEndpointSlice","metadata":{"name":"mailbox.edge.kubestellar.io"},"status":{"endpoints":[{"url":"%[1]s/a"},{"url":"%[1]s/b"}]}}`, f.url)
	case path == "/a/clusters/*/api":
		fmt.Fprint(w, `{"kind":"APIVersions","versions":["v1"]}`)
	case path == "/a/clusters/*/api/v1":
		fmt.Fprint(w, `{"kind":"APIResourceList","groupVersion":"v1","resources":[]}`)
	case path == "/a/clusters/*/apis":
		fmt.Fprint(w, `{"kind":"APIGroupList","apiVersion":"v1","groups":[{"name":"example.org","versions":[{"groupVersion":"example.org/v1","version":"v1"}],"preferredVersion":{"groupVersion":"example.org/v1","version":"v1"}}]}`)
	case path == "/a/clusters/*/apis/example.org/v1":
		fmt.Fprint(w, `{"kind":"APIResourceList","groupVersion":"example.org/v1","resources":[{"name":"widgets","singularName":"widget","namespaced":true,"kind":"Widget","verbs":["list"],"shortNames":["wd"]}]}`)
	case strings.HasSuffix(path, widgets) && r.URL.Query().Get("watch") != "":
		f.serveWatch(w, r)
	case path == "/a"+widgets:
		f.count(r)
		if strings.Contains(r.Header.Get("Accept"), "as=Table") {
			fmt.Fprint(w, `{"kind":"Table","apiVersion":"meta.k8s.io/v1","metadata":{"resourceVersion":"7"},"columnDefinitions":[{"name":"Name","type":"string","format":"name"},{"name":"Size","type":"integer"}],"rows":[`+tableRow("one", `"\u001b[2Jev\til\u202e"`)+`]}`)
			return
		}
		fmt.Fprint(w, `{"kind":"WidgetList","apiVersion":"example.org/v1","metadata":{"resourceVersion":"7"},"items":[`+widget("a", "one")+`]}`)
	case path == "/b"+widgets:
		f.count(r)
		fmt.Fprint(w, `{"kind":"WidgetList","apiVersion":"example.org/v1","metadata":{"resourceVersion":"9"},"items":[`+widget("b", "two")+`]}`)
	default:
		w.WriteHeader(http.StatusForbidden)
		fmt.Fprint(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":403,"message":"no"}`)
	}
}

func (f *fakeShards) serveWatch(w http.ResponseWriter, r *http.Request) {
	fmt.Fprint(w, f.eventsOf(r))
	if err := http.NewResponseController(w).Flush(); err == nil && f.eventsOf(r) == "" {
		<-r.Context().Done()
	}
}

func (f *fakeShards) eventsOf(r *http.Request) string {
	if strings.HasPrefix(r.URL.Path, "/b/") || r.URL.Query().Get("resourceVersion") != "7" {
		return ""
	}
	return f.events
}

func (f *fakeShards) count(r *http.Request) {
	f.lock.Lock()
	defer f.lock.Unlock()
	f.lists = append(f.lists, r.URL.Path+"?"+r.URL.RawQuery)
}

func widget(cluster, name string) string {
	return fmt.Sprintf(`{"kind":"Widget","apiVersion":"example.org/v1","metadata":{"name":%q,"namespace":"shop","annotations":{"kcp.io/cluster":%q}}}`, name, cluster)
}

// tableRow returns a row of a table whose first cell is not the name.
func tableRow(name, first string) string {
	return `{"cells":[` + first + `,4],"object":` + strings.Replace(widget("a", name), `"kind":"Widget","apiVersion":"example.org/v1"`, `"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1"`, 1) + `}`
}

// An endpoint gets one request. Texts of tenants do not reach the terminal as they are.
func TestGetAllOfManyEndpoints(t *testing.T) {
	f, g := newFakeShards(t), NewWithT(t)
	got := execute(t, "", "get", "wd", "-A", "--all-mailboxes", "-l", "a=b")
	g.Expect(got.err).NotTo(HaveOccurred())
	g.Expect(got.out).To(Equal("TARGET   NAMESPACE   NAME                 SIZE   AGE\na        shop        \\x1b[2Jev il\\u202e   4      <unknown>\n" +
		"TARGET   NAMESPACE   NAME   AGE\nb        shop        two    <unknown>\n"))
	g.Expect(f.lists).To(Equal([]string{"/a/clusters/*/apis/example.org/v1/widgets?labelSelector=a%3Db", "/b/clusters/*/apis/example.org/v1/widgets?labelSelector=a%3Db"}))

	got = execute(t, "", "get", "widgets", "-A", "--all-mailboxes", "-o", "json")
	g.Expect(got.err).NotTo(HaveOccurred())
	list := &unstructured.UnstructuredList{}
	g.Expect(json.Unmarshal([]byte(got.out), list)).To(Succeed())
	g.Expect(list.Items).To(HaveLen(2))
	g.Expect(f.lists).To(HaveLen(4))
}

func TestGetAllWatch(t *testing.T) {
	changed := func(rows string) string {
		return `{"type":"MODIFIED","object":{"kind":"Table","apiVersion":"meta.k8s.io/v1","metadata":{},"rows":[` + rows + `]}}` + "\n"
	}
	const ended = "the server has ended the watch; run the command again"
	for name, test := range map[string]struct{ events, out, err string }{
		"an event without columns": {changed(tableRow("new", `"new"`)), "TARGET   NAME   SIZE   AGE\na        new    4      <unknown>\n", ended},
		"an event of another name": {changed(tableRow("old", `"old"`)), "", ended},
		"an error": {
			`{"type":"ERROR","object":{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Expired","code":410,"message":"too old"}}` + "\n",
			"", "cannot watch widgets.example.org of all mailboxes: too old",
		},
	} {
		t.Run(name, func(t *testing.T) {
			f, g := newFakeShards(t), NewWithT(t)
			f.events = test.events
			got := execute(t, "", "get", "widgets", "new", "-n", "shop", "--all-mailboxes", "--watch")
			g.Expect(got.out).To(Equal(test.out))
			g.Expect(got.err).To(MatchError(test.err))
		})
	}
}
