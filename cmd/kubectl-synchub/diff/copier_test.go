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
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/kcp-dev/logicalcluster/v3"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	synchubv1alpha1 "github.com/synchub-dev/synchub/apis/synchub/v1alpha1"
	"github.com/synchub-dev/synchub/cmd/kubectl-synchub/cli"
	"github.com/synchub-dev/synchub/controllers/placement/rules"
	"github.com/synchub-dev/synchub/controllers/plan/tenancy"
	"github.com/synchub-dev/synchub/controllers/publishedresource"
	"github.com/synchub-dev/synchub/test/fixtures"
)

const (
	testWorkspace = logicalcluster.Name("team")
	testInventory = logicalcluster.Name("inventory")
)

// testPublished are the PublishedResources of the tests: natural kinds, and a twin.
const testPublished = `
[
  {metadata: {name: configmaps}, spec: {resource: {group: "", resource: configmaps}}},
  {metadata: {name: namespaces}, spec: {resource: {group: "", resource: namespaces}}},
  {metadata: {name: ingressclasses}, spec: {resource: {group: networking.k8s.io, resource: ingressclasses}}},
  {metadata: {name: rolebindings}, spec: {resource: {group: rbac.authorization.k8s.io, resource: rolebindings}}},
  {metadata: {name: rolebindings.denatured}, spec: {resource: {group: rbac.authorization.k8s.io, resource: rolebindings, kind: RoleBinding, version: v1}, projection: {group: denatured.synchub.dev}}},
  {metadata: {name: roles}, spec: {resource: {group: rbac.authorization.k8s.io, resource: roles}}},
]`

// testServed are the APIs of the workload workspace, by kind.
var testServed = map[string]publishedresource.API{
	"ConfigMap":    {GroupVersionResource: schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}, Namespaced: true},
	"Namespace":    {GroupVersionResource: schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}},
	"IngressClass": {GroupVersionResource: schema.GroupVersionResource{Group: "networking.k8s.io", Version: "v1", Resource: "ingressclasses"}},
	"RoleBinding":  {GroupVersionResource: schema.GroupVersionResource{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "rolebindings"}, Namespaced: true},
	"Role":         {GroupVersionResource: schema.GroupVersionResource{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "roles"}, Namespaced: true},
}

// testWorkload returns a workload workspace with an inventory, and a destination there.
func testWorkload(t *testing.T, syncTarget *edgev2alpha1.SyncTarget, customizers ...client.Object) (*workload, edgev2alpha1.SinglePlacement) {
	t.Helper()
	destination := edgev2alpha1.SinglePlacement{Cluster: testInventory.String(), LocationName: "north", SyncTargetName: syncTarget.Name, SyncTargetUID: syncTarget.UID}
	location := fixtures.Decode[*edgev2alpha1.Location](t, "metadata: {name: north, labels: {region: north}}")
	w := &workload{
		options:     &options{},
		here:        &cli.Reader{Client: fake.NewClientBuilder().WithScheme(cli.Scheme).WithObjects(customizers...).Build()},
		inventories: inventories{open: map[logicalcluster.Name]*inventory{}},
		self:        rules.Workspace{Cluster: testWorkspace, Path: "root:team"},
		hub:         "hub",
		published:   fixtures.Decode[[]synchubv1alpha1.PublishedResource](t, testPublished),
		clusters:    map[destinationKey]*cluster{keyOf(destination): {inventory: testInventory, syncTarget: syncTarget}},
		ruleSets:    map[ruleSetKey]*ruleSet{},
	}
	w.inventories.open[testInventory] = &inventory{name: testInventory, client: fake.NewClientBuilder().WithScheme(cli.Scheme).WithObjects(location).Build()}
	w.copier = copier{workload: w, customizers: map[types.NamespacedName]*edgev2alpha1.Customizer{}}
	return w, destination
}

// itemOf returns the item of a new object of the workspace.
func itemOf(t *testing.T, w *workload, destination edgev2alpha1.SinglePlacement, manifest string) *item {
	t.Helper()
	object := fixtures.Object(t, manifest)
	served := testServed[object.GetKind()]
	served.Kind, served.Versions = object.GetKind(), []string{served.Version}
	one := &change{served: &served, key: types.NamespacedName{Namespace: object.GetNamespace(), Name: object.GetName()}, after: object}
	at := keyOf(destination)
	made, err := w.item(t.Context(), &placedChange{change: one, after: map[destinationKey]*wanted{at: {destination: destination}}}, at, destination, nil)
	if err != nil {
		t.Fatal(err)
	}
	return made
}

const perWorkspace = "namespaces: PerWorkspace, namespaceLabels: {pod-security.kubernetes.io/enforce: restricted}"

// The copy has the name, the kind and the content that the hub gives it on a cluster that workspaces share.
func TestCopies(t *testing.T) {
	hash := tenancy.WorkspaceHash(testWorkspace)
	const (
		settings = "{apiVersion: v1, kind: ConfigMap, metadata: {name: settings, namespace: shop}, data: {a: b}}"
		binding  = "{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: robot, namespace: shop}, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: view}, subjects: [{kind: ServiceAccount, namespace: shop, name: robot}]}"
		class    = "{apiVersion: networking.k8s.io/v1, kind: IngressClass, metadata: {name: public}}"
	)
	for name, c := range map[string]struct {
		tenancy, manifest string
		// template is the naming of the destination, if the SyncTarget cannot be read.
		template string
		// want is the place on the cluster, with HASH for the workspace. fields are values there.
		want   string
		fields map[string]string
		// refusal is part of the reason why the object is not placed.
		refusal string
	}{
		"shared namespaces":        {manifest: settings, want: "configmaps shop/settings", fields: map[string]string{"data.a": "b"}},
		"a namespace of its own":   {tenancy: perWorkspace, manifest: settings, want: "configmaps shop-HASH/settings"},
		"an unreadable SyncTarget": {template: "t-{hash}-{namespace}", manifest: settings, want: "configmaps t-HASH-shop/settings"},
		"the Namespace itself": {
			tenancy: perWorkspace, manifest: "{apiVersion: v1, kind: Namespace, metadata: {name: shop, labels: {team: a, pod-security.kubernetes.io/enforce: privileged}}}",
			want: "namespaces shop-HASH", fields: map[string]string{"metadata.labels['pod-security.kubernetes.io/enforce']": "restricted", "metadata.labels.team": "a"},
		},
		"a twin, which refers to a namespace": {
			tenancy: perWorkspace, manifest: binding, want: "rolebindings.rbac.authorization.k8s.io shop-HASH/robot",
			fields: map[string]string{"kind": "RoleBinding", "apiVersion": "rbac.authorization.k8s.io/v1", "subjects[0].namespace": "shop-HASH"},
		},
		"a twin with shared namespaces":            {manifest: binding, want: "rolebindings.rbac.authorization.k8s.io shop/robot", fields: map[string]string{"subjects[0].namespace": "shop"}},
		"no twin is published":                     {manifest: "{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {name: a, namespace: shop}}", refusal: "roles.rbac.authorization.k8s.io act inside the mailbox workspace itself"},
		"cluster-scoped":                           {tenancy: perWorkspace, manifest: class, refusal: "each workspace has only its own namespaces on this cluster"},
		"cluster-scoped, as the SyncTarget allows": {tenancy: perWorkspace + ", clusterScoped: [{group: networking.k8s.io, resource: ingressclasses}]", manifest: class, want: "ingressclasses.networking.k8s.io public"},
		"cluster-scoped on a shared cluster":       {manifest: class, want: "ingressclasses.networking.k8s.io public"},
	} {
		t.Run(name, func(t *testing.T) {
			syncTarget := fixtures.Decode[*edgev2alpha1.SyncTarget](t, "{metadata: {name: florin, uid: uid}, spec: {tenancy: {"+c.tenancy+"}}}")
			if c.tenancy == "" {
				syncTarget.Spec.Tenancy = nil
			}
			w, destination := testWorkload(t, syncTarget)
			destination.NamespaceTemplate = c.template
			made := itemOf(t, w, destination, c.manifest)
			if c.refusal != "" {
				expectRefusal(t, made, c.refusal)
				return
			}
			got := made.predict(made.after, nil)
			if made.err != nil || got.Err != nil {
				t.Fatal(made.err, got.Err)
			}
			withHash := strings.NewReplacer("HASH", hash).Replace
			if at := fmt.Sprintf("%s %s", got.Ref.GroupResource(), strings.TrimPrefix(got.Ref.String(), "/")); at != withHash(c.want) {
				t.Errorf("it is at %s, not at %s", at, withHash(c.want))
			}
			expectFields(t, got.Plan.Desired.ForCreate(), c.fields, withHash)
		})
	}
}

func expectFields(t *testing.T, object *unstructured.Unstructured, fields map[string]string, replace func(string) string) {
	t.Helper()
	for path, want := range fields {
		var got any
		err := parsePath(t, path).Change(object.Object, false, func(value any, _ bool) (any, error) {
			got = value
			return value, nil
		})
		if err != nil || got != replace(want) {
			t.Errorf("%s is %v, not %s: %v", path, got, replace(want), err)
		}
	}
}

func expectRefusal(t *testing.T, made *item, want string) {
	t.Helper()
	if made.err == nil || !isRefusal(made.err) || !strings.Contains(made.err.Error(), want) {
		t.Errorf("the reason is %v, not %s", made.err, want)
	}
}

// Values for each cluster come from the Customizer that the workspace has, or would have after the change.
func TestCustomizedCopies(t *testing.T) {
	const (
		customized = "{apiVersion: v1, kind: ConfigMap, metadata: {name: settings, namespace: shop, annotations: {edge.kubestellar.io/customizer: values}}, data: {region: none}}"
		expanded   = "{apiVersion: v1, kind: ConfigMap, metadata: {name: settings, namespace: shop, annotations: {edge.kubestellar.io/expand-parameters: 'true'}}, data: {region: '%(PARAMETER)', env: '%(env)'}}"
	)
	customizer := func(value string) *edgev2alpha1.Customizer {
		return fixtures.Decode[*edgev2alpha1.Customizer](t, "{metadata: {name: values, namespace: shop, annotations: {edge.kubestellar.io/expand-parameters: 'true'}}, replacements: [{path: $.data.region, value: '\""+value+"\"'}]}")
	}
	for name, c := range map[string]struct {
		manifest        string
		stored, changed *edgev2alpha1.Customizer
		fields          map[string]string
		refusal         string
	}{
		"a label of the Location":       {manifest: strings.Replace(expanded, "PARAMETER", "region", 1), fields: map[string]string{"data.region": "north", "data.env": "prod"}},
		"a parameter that nobody has":   {manifest: strings.Replace(expanded, "PARAMETER", "tier", 1), refusal: "tier"},
		"a Customizer":                  {manifest: customized, stored: customizer("south-%(env)"), fields: map[string]string{"data.region": "south-prod"}},
		"a Customizer after its change": {manifest: customized, stored: customizer("south"), changed: customizer("west"), fields: map[string]string{"data.region": "west"}},
		"a new Customizer":              {manifest: customized, changed: customizer("west"), fields: map[string]string{"data.region": "west"}},
		"no Customizer":                 {manifest: customized, refusal: "the Customizer shop/values cannot be read"},
	} {
		t.Run(name, func(t *testing.T) {
			var stored []client.Object
			if c.stored != nil {
				stored = append(stored, c.stored)
			}
			w, destination := testWorkload(t, fixtures.Decode[*edgev2alpha1.SyncTarget](t, "{metadata: {name: florin, uid: uid, labels: {env: prod}}}"), stored...)
			if c.changed != nil {
				content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(c.changed)
				if err != nil {
					t.Fatal(err)
				}
				if err := w.copier.override(client.ObjectKeyFromObject(c.changed), &unstructured.Unstructured{Object: content}); err != nil {
					t.Fatal(err)
				}
			}
			made := itemOf(t, w, destination, c.manifest)
			if c.refusal != "" {
				expectRefusal(t, made, c.refusal)
				return
			}
			expectFields(t, made.predict(made.after, nil).Plan.Desired.ForCreate(), c.fields, func(text string) string { return text })
		})
	}
}

// What a user has set on an object of the workspace counts for its copies: a field that the hub leaves to the cluster is no change.
func TestCopiesKeepSettings(t *testing.T) {
	w, destination := testWorkload(t, fixtures.Decode[*edgev2alpha1.SyncTarget](t, "{metadata: {name: florin, uid: uid}}"))
	made := itemOf(t, w, destination, `{apiVersion: v1, kind: ConfigMap, metadata: {name: settings, namespace: shop,
  annotations: {synchub.dev/drift: Report, synchub.dev/ignore-fields: data.a}}, data: {a: x, b: x}}`)
	got := made.predict(made.after, nil)
	if made.err != nil || got.Err != nil {
		t.Fatal(made.err, got.Err)
	}
	desired := got.Plan.Desired
	if _, sets, _ := unstructured.NestedString(desired.Object.Object, "data", "a"); sets || !desired.ReportsDrift || len(desired.Object.GetAnnotations()[edgev2alpha1.AnnotationDrift]) > 0 {
		t.Errorf("it reports drift: %t, and sets %v", desired.ReportsDrift, desired.Object.Object)
	}
	expectFields(t, desired.ForCreate(), map[string]string{"data.a": "x", "data.b": "x"}, func(text string) string { return text })
}

// Where each workspace has an identity, the cluster answers about the ServiceAccount of the workspace.
func TestDryRunsImpersonateTheWorkspace(t *testing.T) {
	for identity, want := range map[edgev2alpha1.TenantIdentity]string{
		edgev2alpha1.TenantIdentityWorkspace: "system:serviceaccount:synchub-tenants:" + tenancy.WorkspaceHash(testWorkspace),
		edgev2alpha1.TenantIdentityHub:       "",
	} {
		var asked *http.Request
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			asked = r
			content, _ := io.ReadAll(r.Body)
			w.Header().Set("Content-Type", "application/json")
			_, _ = w.Write(content)
		}))
		t.Cleanup(server.Close)
		w, destination := testWorkload(t, fixtures.Decode[*edgev2alpha1.SyncTarget](t, "{metadata: {name: florin, uid: uid}, spec: {tenancy: {namespaces: PerWorkspace, identity: "+string(identity)+"}}}"))
		reader, err := cli.NewReader(&rest.Config{Host: server.URL})
		if err != nil {
			t.Fatal(err)
		}
		w.clusters[keyOf(destination)].reader = reader
		made := itemOf(t, w, destination, "{apiVersion: v1, kind: ConfigMap, metadata: {name: settings, namespace: shop}}")
		created := made.askCreated(t.Context(), made.predict(made.after, nil))
		if created.action != Create || asked == nil {
			t.Fatalf("%s: %+v", identity, created)
		}
		if user := asked.Header.Get("Impersonate-User"); user != want {
			t.Errorf("%s: it asks as %q, not as %q", identity, user, want)
		}
		if query := asked.URL.Query(); asked.Method != http.MethodPatch || query.Get("dryRun") != "All" {
			t.Errorf("%s: it is no dry run: %s %s", identity, asked.Method, asked.URL)
		}
	}
}
