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
	"context"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	synchubv1alpha1 "github.com/synchub-dev/synchub/apis/synchub/v1alpha1"
	"github.com/synchub-dev/synchub/cmd/kubectl-synchub/cli"
	"github.com/synchub-dev/synchub/cmd/kubectl-synchub/publish"
	"github.com/synchub-dev/synchub/test/framework/servers"
	"github.com/synchub-dev/synchub/test/framework/suite"
)

// crdOf returns the manifest of a CRD in example.com. Its description has the given size.
func crdOf(kind string, bytes int) string {
	return fmt.Sprintf(`apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: %[1]ss.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {plural: %[1]ss, singular: %[1]s, kind: %[2]s, listKind: %[2]sList}
  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true, description: "%[3]s"}}}]
`, strings.ToLower(kind), kind, strings.Repeat("d", bytes))
}

const otherKinds = "---\napiVersion: v1\nkind: List\nitems:\n- {apiVersion: v1, kind: Service, metadata: {name: a}}\n- {apiVersion: apps/v1, kind: Deployment, metadata: {name: a}}\n- {apiVersion: v1, kind: Service, metadata: {name: b}}\n"

func TestPublishRefuses(t *testing.T) {
	beta := strings.Replace(crdOf("Widget", 0), "apiextensions.k8s.io/v1", "apiextensions.k8s.io/v1beta1", 1)
	for name, test := range map[string]struct {
		input string
		args  []string
		want  string
	}{
		"no file":              {args: []string{}, want: `required flag(s) "filename" not set`},
		"an argument":          {args: []string{"crds.yaml"}, want: "unexpected argument \"crds.yaml\"; see `kubectl synchub publish --help`"},
		"an absent file":       {args: []string{"-f", "absent.yaml"}, want: "open absent.yaml: no such file"},
		"an unknown dry run":   {args: []string{"-f", "-", "--dry-run=maybe"}, want: `--dry-run: "maybe" is none of`},
		"no namespace":         {args: []string{"-f", "-", "-n", ""}, want: `--namespace: "" is not the name of a namespace`},
		"a negative time":      {args: []string{"-f", "-", "--timeout", "-1s"}, want: "--timeout: it must not be negative"},
		"no definition":        {input: otherKinds, args: []string{"-f", "-"}, want: "-f: there is no CustomResourceDefinition in the files"},
		"no YAML":              {input: "a: [", args: []string{"-f", "-"}, want: "-: "},
		"an old definition":    {input: crdOf("Gadget", 0) + "---\n" + beta, args: []string{"-f", "-"}, want: "-: the CustomResourceDefinition widgets.example.com is written in apiextensions.k8s.io/v1beta1, which the hub does not read: convert it to apiextensions.k8s.io/v1"},
		"two of a resource":    {input: crdOf("Widget", 0) + "---\n" + crdOf("Widget", 1), args: []string{"-f", "-", "--dry-run=client"}, want: "the files define widgets.example.com more than once"},
		"all that is invalid":  {input: strings.ReplaceAll(crdOf("Widget", 0)+"---\n"+crdOf("Gadget", 0), "scope:", "scape:"), args: []string{"-f", "-", "--dry-run=client"}, want: "unknown field \"scape\"\ngadgets.example.com is not a CustomResourceDefinition: "},
		"a cluster without it": {input: crdOf("Widget", 0), args: []string{"-f", "-"}, want: "the current cluster hosts no hub: it serves no PublishedResources. Choose another with --kubeconfig or --context"},
	} {
		t.Run(name, func(t *testing.T) {
			withCluster(t, noAPIs)
			got := execute(t, test.input, append([]string{"publish"}, test.args...)...)
			if got.err == nil || !strings.Contains(got.err.Error(), test.want) || got.out != "" {
				t.Errorf("want an error with %q, got %v, and\n%s", test.want, got.err, got.out)
			}
		})
	}
}

// noAPIs answers as an API server that serves only the group apps.
func noAPIs(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path != "/apis" {
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write([]byte(`{"kind": "APIGroupList", "apiVersion": "v1", "groups": [{"name": "apps", "versions": [{"groupVersion": "apps/v1", "version": "v1"}]}]}`))
}

// Without a cluster a dry run prints the objects, which the output of a second dry run confirms.
func TestPublishPrintsObjectsOffline(t *testing.T) {
	withCluster(t, noAPIs)
	file := write(t, map[string]string{"crds.yaml": crdOf("Widget", 0) + otherKinds})[0]
	got := execute(t, "# nothing\n---\n"+crdOf("Gadget", 0), "publish", "-f", file, "-f", "-", "-n", "hub", "--install-crd", "--dry-run=client", "-o", "yaml")
	if got.err != nil {
		t.Fatal(got.err)
	}
	want := "ConfigMap schema-widgets.example.com, PublishedResource widgets.example.com, ConfigMap schema-gadgets.example.com, PublishedResource gadgets.example.com"
	if names := strings.Join(objects(t, got.out), ", "); names != want {
		t.Errorf("got %s", names)
	}
	for _, part := range []string{"namespace: hub", "installCRD: true"} {
		if !strings.Contains(got.out, part) {
			t.Errorf("%q is missing in\n%s", part, got.out)
		}
	}
	for _, part := range []string{"status:", "creationTimestamp"} {
		if strings.Contains(got.out, part) {
			t.Errorf("%q is in\n%s", part, got.out)
		}
	}
	for _, part := range []string{"Objects of other kinds in the files are left out: Deployment (1), Service (2).\n", "the command assumes that nothing is published"} {
		if !strings.Contains(got.errs, part) {
			t.Errorf("%q is missing in\n%s", part, got.errs)
		}
	}
	if other := execute(t, crdOf("Gadget", 0), "publish", "-f", "-", "--dry-run=client", "-o", "yaml"); !strings.Contains(other.out, "namespace: synchub\n") {
		t.Errorf("without -n it prints\n%s", other.out)
	}
	// render reads the printed objects, and finds the definition in the ConfigMap.
	if rendered := runRender(t, got.out, "-f", "-"); rendered.err != nil || len(objects(t, rendered.out)) != 2 {
		t.Errorf("%v\n%s", rendered.err, rendered.out)
	}
}

// publishTest is a hosting cluster without a hub.
type publishTest struct {
	*servers.Target
	admin client.WithWatch
}

func newPublishTest(t *testing.T) *publishTest {
	t.Helper()
	hosting := startHosting(t)
	admin, err := cli.ClientOf(hosting.Config)
	if err != nil {
		t.Fatal(err)
	}
	p := &publishTest{hosting, admin}
	(&testFleet{Target: hosting, admin: admin}).hosts(t)
	suite.Apply(t, hosting.Config, "{apiVersion: v1, kind: Namespace, metadata: {name: hub}}\n---\n{apiVersion: v1, kind: Namespace, metadata: {name: hub-two}}")
	t.Cleanup(func() {
		ctx := context.WithoutCancel(t.Context())
		for _, err := range []error{
			admin.DeleteAllOf(ctx, &synchubv1alpha1.PublishedResource{}),
			admin.DeleteAllOf(ctx, &corev1.ConfigMap{}, client.InNamespace("hub-two")),
			admin.DeleteAllOf(ctx, &corev1.ConfigMap{}, client.InNamespace("hub")),
		} {
			if err != nil {
				t.Error(err)
			}
		}
	})
	return p
}

// widgets returns the PublishedResource of the widgets.
func (p *publishTest) widgets(t *testing.T) *synchubv1alpha1.PublishedResource {
	t.Helper()
	found := &synchubv1alpha1.PublishedResource{}
	if err := p.admin.Get(t.Context(), types.NamespacedName{Name: "widgets.example.com"}, found); err != nil {
		t.Fatal(err)
	}
	return found
}

// publishInHub is the command for the hub's namespace in these tests. The namespace synchub belongs to tests of register.
var publishInHub = []string{"publish", "-n", "hub"}

// expect runs the command and compares the lines that it prints.
func (p *publishTest) expect(t *testing.T, want string, args ...string) printed {
	t.Helper()
	got := succeed(t, slices.Concat(publishInHub, args)...)
	if got.out != want {
		t.Errorf("%q prints\n%s\nnot\n%s\n%s", args, got.out, want, got.errs)
	}
	return got
}

func lines(results ...string) string {
	var text strings.Builder
	for _, result := range results {
		kind, rest, _ := strings.Cut(result, " ")
		prefix := map[string]string{"cm": "configmap/schema-", "pr": "publishedresource.synchub.dev/"}[kind]
		text.WriteString(prefix + strings.Replace(rest, " ", ".example.com ", 1) + "\n")
	}
	return text.String()
}

func TestPublish(t *testing.T) {
	p := newPublishTest(t)
	const big = publish.MaxConfigMapBytes
	file := write(t, map[string]string{"crds.yaml": crdOf("Widget", 0) + "---\n" + crdOf("Gadget", big-1000) + "---\n" + crdOf("Gizmo", big) + otherKinds})[0]

	p.expect(t, lines("cm widgets created (server dry run)", "pr widgets created (server dry run)"), "-f", write(t, map[string]string{"crd.yaml": crdOf("Widget", 0)})[0], "--dry-run=server")
	if err := p.admin.Get(t.Context(), types.NamespacedName{Name: "widgets.example.com"}, &synchubv1alpha1.PublishedResource{}); !apierrors.IsNotFound(err) {
		t.Errorf("the dry run has written: %v", err)
	}
	all := func(result string) string {
		return lines("cm widgets "+result, "pr widgets "+result, "cm gadgets "+result, "pr gadgets "+result, "cm gizmos "+result, "pr gizmos "+result)
	}
	got := p.expect(t, all("created"), "-f", file)
	if !regexp.MustCompile(`The descriptions of gizmos.example.com are left out: with them the definition takes \d+ bytes, and a ConfigMap holds 1048576\.\n$`).MatchString(got.errs) || strings.Count(got.errs, "The descriptions") != 1 {
		t.Errorf("it prints\n%s", got.errs)
	}
	before := p.widgets(t)
	p.expect(t, all("unchanged"), "-f", file)
	if after := p.widgets(t); after.ResourceVersion != before.ResourceVersion {
		t.Errorf("it was written: %s, before %s", after.ResourceVersion, before.ResourceVersion)
	}
	p.keepsRules(t)
	p.leavesOthers(t)
	p.waits(t)
	p.namesRights(t)
}

// keepsRules tests that a changed definition is replaced, and that nothing else changes in the PublishedResource.
func (p *publishTest) keepsRules(t *testing.T) {
	t.Helper()
	tuned := p.widgets(t)
	tuned.Spec.Adoption = synchubv1alpha1.AdoptionIfIdentical
	if err := p.admin.Update(t.Context(), tuned); err != nil {
		t.Fatal(err)
	}
	changed := write(t, map[string]string{"crd.yaml": crdOf("Widget", 2)})[0]
	shown := succeed(t, "publish", "-n", "hub", "-f", changed, "--dry-run=client", "-o", "yaml")
	for _, part := range []string{"adoption: IfIdentical", `"description":"dd"`} {
		if !strings.Contains(shown.out, part) || strings.Contains(shown.out, "resourceVersion") {
			t.Errorf("%q is missing, or there is too much, in\n%s", part, shown.out)
		}
	}
	p.expect(t, lines("cm widgets configured", "pr widgets unchanged"), "-f", changed)
	p.expect(t, lines("cm widgets unchanged", "pr widgets configured"), "-f", changed, "--install-crd")
	p.expect(t, lines("cm widgets unchanged", "pr widgets unchanged"), "-f", changed)
	if spec := p.widgets(t).Spec; !spec.InstallCRD || spec.Adoption != synchubv1alpha1.AdoptionIfIdentical {
		t.Errorf("got %+v", spec)
	}
	p.expect(t, lines("cm widgets unchanged", "pr widgets configured"), "-f", changed, "--install-crd=false")
}

// leavesOthers tests objects that the command has not made.
func (p *publishTest) leavesOthers(t *testing.T) {
	t.Helper()
	suite.Apply(t, p.Config, publishedResource("theirs", "resource: {group: example.com, resource: tools}")+
		"---\n{apiVersion: v1, kind: ConfigMap, metadata: {name: schema-tents.example.com, namespace: hub}, data: {a: b}}")
	got := p.expect(t, "publishedresource.synchub.dev/theirs unchanged\n", "-f", write(t, map[string]string{"crd.yaml": crdOf("Tool", 0)})[0])
	if !strings.Contains(got.errs, "tools.example.com is published already, not from this command's ConfigMap: the PublishedResource theirs is left as it is.\n") {
		t.Errorf("it prints\n%s", got.errs)
	}
	tents := write(t, map[string]string{"crd.yaml": crdOf("Tent", 0)})[0]
	fail(t, "the ConfigMap hub/schema-tents.example.com was not made by this command and is left as it is", "publish", "-n", "hub", "-f", tents)
	fail(t, "the cluster has no namespace nowhere: name the hub's namespace with -n", "publish", "-f", tents, "-n", "nowhere")
	p.expect(t, lines("cm tents created", "pr tents created"), "-f", tents, "-n", "hub-two")
	var found corev1.ConfigMap
	if err := p.admin.Get(t.Context(), types.NamespacedName{Namespace: "hub-two", Name: "schema-tents.example.com"}, &found); err != nil {
		t.Error(err)
	}
}

// waits tests that the command waits for the schema of the definition that it has written.
func (p *publishTest) waits(t *testing.T) {
	t.Helper()
	first, second := crdOf("Widget", 2), crdOf("Widget", 3)
	files := write(t, map[string]string{"1": first, "2": second})
	fail(t, "the PublishedResource widgets.example.com was not ready after 1s: the hub has not reported anything yet", "publish", "-n", "hub", "-f", files[0], "--wait", "--timeout", "1s")
	p.reports(t, metav1.ConditionFalse, "")
	fail(t, "was not ready after 1s: Said: so.", "publish", "-n", "hub", "-f", files[0], "--wait", "--timeout", "1s")
	p.reports(t, metav1.ConditionTrue, "first")
	got := succeed(t, "publish", "-n", "hub", "-f", files[0], "--wait", "--timeout", "20s")
	if !strings.HasSuffix(got.errs, "the PublishedResource widgets.example.com is ready: mailboxes get the API within seconds\n") {
		t.Errorf("it prints\n%s", got.errs)
	}
	fail(t, "was not ready after 1s: the hub has not replaced the former schema yet", "publish", "-n", "hub", "-f", files[1], "--wait", "--timeout", "1s")
	p.reports(t, metav1.ConditionTrue, "second")
	succeed(t, "publish", "-n", "hub", "-f", files[1], "--wait", "--timeout", "20s")
}

// reports sets the status of the widgets as a hub does.
func (p *publishTest) reports(t *testing.T, status metav1.ConditionStatus, schemaName string) {
	t.Helper()
	resource := p.widgets(t)
	resource.Status.SchemaName = schemaName
	meta.SetStatusCondition(&resource.Status.Conditions, metav1.Condition{
		Type: synchubv1alpha1.ConditionReady, Status: status, Reason: "Said", Message: "so.", ObservedGeneration: resource.Generation,
	})
	if err := p.admin.Status().Update(t.Context(), resource); err != nil {
		t.Fatal(err)
	}
}

// namesRights tests a user who has only some rights.
func (p *publishTest) namesRights(t *testing.T) {
	t.Helper()
	suite.Apply(t, p.Config, "{apiVersion: v1, kind: ServiceAccount, metadata: {name: publisher, namespace: hub}}")
	kubeconfig, err := p.ServiceAccountKubeconfig(t.Context(), "hub", "publisher")
	if err != nil {
		t.Fatal(err)
	}
	paths := write(t, map[string]string{"crd": crdOf("Wagon", 0), "kubeconfig": string(kubeconfig)})
	args := []string{"-f", paths[0], "--kubeconfig", paths[1]}
	command := slices.Concat(publishInHub, args)
	fail(t, `cannot list resource "publishedresources" in API group "synchub.dev" at the cluster scope`, command...)
	fail(t, "give the output of --dry-run=client -o yaml to an administrator", command...)
	p.expect(t, lines("cm wagons created (client dry run)", "pr wagons created (client dry run)"), append(args, "--dry-run=client")...)
	suite.Apply(t, p.Config, `apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: publish-test}
rules: [{apiGroups: [synchub.dev], resources: [publishedresources], verbs: [list]}, {apiGroups: [""], resources: [configmaps], verbs: [get, create]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: publish-test}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: publish-test}
subjects: [{kind: ServiceAccount, name: publisher, namespace: hub}]
`)
	suite.Eventually(t, func(g gomega.Gomega) {
		got := plugin(t, command...)
		g.Expect(got.errs).To(gomega.ContainSubstring(`cannot create the PublishedResource wagons.example.com: publishedresources.synchub.dev is forbidden`))
		g.Expect(got.errs).To(gomega.ContainSubstring(`cannot create resource "publishedresources"`))
	})
}
