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

package bootstrap_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	apisv1alpha1 "github.com/kcp-dev/sdk/apis/apis/v1alpha1"
	apisv1alpha2 "github.com/kcp-dev/sdk/apis/apis/v1alpha2"
	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/apis/schemas"
	synchubv1alpha1 "github.com/synchub-dev/synchub/apis/synchub/v1alpha1"
	"github.com/synchub-dev/synchub/test/fixtures"
	"github.com/synchub-dev/synchub/test/framework"
	"github.com/synchub-dev/synchub/test/framework/suite"
	"github.com/synchub-dev/synchub/test/tier"
)

var syncerConfigs = edgev2alpha1.GroupVersion.WithResource("syncerconfigs")

// selectorFields are all selectors that users write: the field, and a spec in which %s stands for the selector.
var selectorFields = []struct{ kind, field, spec string }{
	{"SyncerConfig", "namespaceScope.resources[0].labelSelector", "namespaceScope: {namespaces: [a], resources: [{resource: secrets, labelSelector: %s}]}"},
	{"SyncerConfig", "namespacedObjects[0].labelSelector", "namespacedObjects: [{resource: secrets, labelSelector: %s}]"},
	{"SyncerConfig", "clusterScope[0].labelSelector", "clusterScope: [{resource: namespaces, labelSelector: %s}]"},
	{"SyncerConfig", "upsync[0].labelSelector", "upsync: [{resources: [pods], labelSelector: %s}]"},
	{"EdgePlacement", "locationSelectors[0]", "locationSelectors: [%s]"},
	{"EdgePlacement", "downsync[0].namespaceSelectors[0]", "downsync: [{namespaceSelectors: [%s]}]"},
	{"EdgePlacement", "downsync[0].labelSelectors[0]", "downsync: [{labelSelectors: [%s]}]"},
	{"EdgePlacement", "upsync[0].labelSelector", "upsync: [{resources: [pods], labelSelector: %s}]"},
	{"Location", "instanceSelector", "{resource: {group: edge.kubestellar.io, version: v2alpha1, resource: synctargets}, instanceSelector: %s}"},
	{"PublishedResource", "filter.resource", "{resource: {resource: secrets}, filter: {resource: %s}}"},
	{"PublishedResource", "filter.namespace", "{resource: {resource: secrets}, filter: {namespace: %s}}"},
	{"PublishedResource", "related[0].object.selector", "{resource: {resource: secrets}, related: [{identifier: a, origin: Mailbox, resource: {resource: configmaps, version: v1}, object: {selector: %s}}]}"},
	{"PublishedResource", "related[0].namespace.selector", "{resource: {resource: secrets}, related: [{identifier: a, origin: Mailbox, resource: {resource: configmaps, version: v1}, object: {owner: {}}, namespace: {selector: %s}}]}"},
}

// badSelectors are selectors that no API server evaluates, with the field and the text of the refusal.
var badSelectors = []struct{ selector, field, message string }{
	{"{matchExpressions: [{key: a, operator: In}]}", "matchExpressions[0].values", "the operators In and NotIn need values, Exists and DoesNotExist take none"},
	{"{matchExpressions: [{key: a, operator: NotIn, values: []}]}", "matchExpressions[0].values", "the operators In and NotIn need values, Exists and DoesNotExist take none"},
	{"{matchExpressions: [{key: a, operator: In, values: null}]}", "matchExpressions[0].values", "the operators In and NotIn need values, Exists and DoesNotExist take none"},
	{"{matchExpressions: [{key: a, operator: Exists, values: [b]}]}", "matchExpressions[0].values", "the operators In and NotIn need values, Exists and DoesNotExist take none"},
	{"{matchExpressions: [{key: b, operator: Exists}, {key: a, operator: DoesNotExist, values: [b]}]}", "matchExpressions[1].values", "the operators In and NotIn need values, Exists and DoesNotExist take none"},
	{"{matchExpressions: [{key: a, operator: in, values: [b]}]}", "matchExpressions[0].operator", `Unsupported value: "in": supported values: "In", "NotIn", "Exists", "DoesNotExist"`},
	{"{matchExpressions: [{key: a, operator: Gt, values: ['1']}]}", "matchExpressions[0].operator", `Unsupported value: "Gt"`},
	{"{matchExpressions: [{key: a, operator: '', values: [b]}]}", "matchExpressions[0].operator", `Unsupported value: ""`},
	{"{matchExpressions: [{key: '', operator: Exists}]}", "matchExpressions[0].key", "should match"},
	{"{matchExpressions: [{key: 'a b', operator: Exists}]}", "matchExpressions[0].key", "should match"},
	{"{matchExpressions: [{operator: Exists}]}", "matchExpressions[0].key", "Required value"},
	{"{matchExpressions: [{key: a, operator: In, values: ['b c']}]}", "matchExpressions[0].values[0]", "should match"},
	{"{matchExpressions: [{key: a, operator: In, values: [" + strings.Repeat("x", 64) + "]}]}", "matchExpressions[0].values[0]", "may not be more than 63 bytes"},
}

// goodSelectors are selectors that each API server evaluates.
var goodSelectors = []string{
	"{matchLabels: {a: b}}",
	"{matchLabels: {a: ''}}",
	"{matchExpressions: [{key: example.org/a, operator: In, values: [b, '', B.c_d-e]}]}",
	"{matchExpressions: [{key: a, operator: NotIn, values: [b]}, {key: A_b.c-d, operator: Exists}, {key: e, operator: DoesNotExist, values: []}, {key: f, operator: Exists, values: null}]}",
}

// Kinds refuse the selectors that no API server evaluates, in each field and with the field in the message. They accept all
// other selectors.
func TestSelectorsAreRefused(t *testing.T) {
	t.Parallel()
	clients := newKinds(t, "selectors")
	for _, place := range selectorFields {
		t.Run(place.kind+" "+place.field, func(t *testing.T) {
			t.Parallel()
			for _, good := range goodSelectors {
				if err := clients.create(t, place.kind, fmt.Sprintf(place.spec, good)); err != nil {
					t.Errorf("%s: %v", good, err)
				}
			}
			for _, bad := range badSelectors {
				err := clients.create(t, place.kind, fmt.Sprintf(place.spec, bad.selector))
				if !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "spec."+place.field+"."+bad.field+": ") || !strings.Contains(err.Error(), bad.message) {
					t.Errorf("%s: %v", bad.selector, err)
				}
			}
		})
	}
}

// kinds has clients of all kinds by their names, in a workspace that binds the three exports and has the CRD of PublishedResource.
type kinds map[string]dynamic.ResourceInterface

func newKinds(t *testing.T, name string) kinds {
	t.Helper()
	provider := newProvider(t, name).bootstrapped(t)
	path := newProvider(t, name+"-user").create(t).path
	config := framework.InWorkspace(provider.Config, path)
	for _, export := range []string{synchubv1alpha1.InventoryExport, synchubv1alpha1.MailboxExport, synchubv1alpha1.WorkloadExport} {
		bind(t, config, provider.path, export)
	}
	crd, err := yaml.Marshal(schemas.PublishedResourceCRD())
	if err != nil {
		t.Fatal(err)
	}
	suite.Apply(t, config, string(crd))
	client := suite.Dynamic(t, config)
	clients := kinds{}
	for kind, resource := range map[string]schema.GroupVersionResource{
		"SyncerConfig": syncerConfigs, "EdgePlacement": edgev2alpha1.GroupVersion.WithResource("edgeplacements"),
		"Location": edgev2alpha1.GroupVersion.WithResource("locations"), "PublishedResource": synchubv1alpha1.GroupVersion.WithResource("publishedresources"),
	} {
		clients[kind] = client.Resource(resource)
		suite.Eventually(t, func(g Gomega) {
			_, err := clients[kind].List(t.Context(), metav1.ListOptions{})
			g.Expect(err).NotTo(HaveOccurred())
		})
	}
	return clients
}

// bind binds an export without its claims.
func bind(t *testing.T, config *rest.Config, path, export string) {
	t.Helper()
	suite.Apply(t, config, fmt.Sprintf("{apiVersion: apis.kcp.io/v1alpha2, kind: APIBinding, metadata: {name: %s}, spec: {reference: {export: {path: '%s', name: %s}}}}", export, path, export))
}

// create creates an object as a dry run.
func (k kinds) create(t *testing.T, kind, spec string) error {
	t.Helper()
	group := edgev2alpha1.GroupVersion
	if kind == "PublishedResource" {
		group = synchubv1alpha1.GroupVersion
	}
	object := fixtures.Object(t, fmt.Sprintf("{apiVersion: %s, kind: %s, metadata: {generateName: tested-}, spec: %s}", group, kind, block(spec)))
	_, err := k[kind].Create(t.Context(), object, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	return err
}

// block returns a spec as a mapping of YAML in one line.
func block(spec string) string {
	if strings.HasPrefix(spec, "{") {
		return spec
	}
	return "{" + spec + "}"
}

// An object that was stored before the schema refused its selector stays writable: the hub reports the selector in its status, through
// the virtual workspace, and users change other fields.
func TestStoredSelectorsStayWritable(t *testing.T) {
	tier.Thorough(t)
	t.Parallel()
	g := NewWithT(t)
	provider := newProvider(t, "stored-selectors").create(t)
	current := schemas.MailboxSchemas()[0]
	older := withoutSelectorRules(t, current)
	older.Name = "v0." + older.Spec.Names.Plural + "." + older.Spec.Group
	for _, one := range []*apisv1alpha1.APIResourceSchema{older, current} {
		g.Expect(provider.admin(t).Create(t.Context(), one)).To(Succeed())
	}
	export := &apisv1alpha2.APIExport{ObjectMeta: metav1.ObjectMeta{Name: "configs"}, Spec: apisv1alpha2.APIExportSpec{Resources: []apisv1alpha2.ResourceSchema{{
		Name: older.Spec.Names.Plural, Group: older.Spec.Group, Schema: older.Name, Storage: apisv1alpha2.ResourceSchemaStorage{CRD: &apisv1alpha2.ResourceSchemaStorageCRD{}},
	}}}}
	g.Expect(provider.admin(t).Create(t.Context(), export)).To(Succeed())
	user := newProvider(t, "stored-selectors-user").create(t)
	config := framework.InWorkspace(provider.Config, user.path)
	bind(t, config, provider.path, "configs")
	client := suite.Dynamic(t, config).Resource(syncerConfigs)
	const spec = "{clusterScope: [{resource: namespaces, objects: [a], labelSelector: {matchExpressions: [{key: a, operator: In}]}}, {resource: namespaces, objects: [b]}], upsync: [{resources: [pods], labelSelector: {matchExpressions: [{key: a, operator: Like}]}}]}"
	stored := fixtures.Object(t, "{apiVersion: edge.kubestellar.io/v2alpha1, kind: SyncerConfig, metadata: {name: stored}, spec: "+spec+"}")
	var created *unstructured.Unstructured
	suite.Eventually(t, func(g Gomega) {
		var err error
		created, err = client.Create(t.Context(), stored.DeepCopy(), metav1.CreateOptions{})
		g.Expect(err).NotTo(HaveOccurred())
	})
	provider.change(t, export, named("configs"), func() { export.Spec.Resources[0].Schema = current.Name })
	another := stored.DeepCopy()
	another.SetName("another")
	suite.Eventually(t, func(g Gomega) {
		_, err := client.Create(t.Context(), another.DeepCopy(), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		g.Expect(apierrors.IsInvalid(err)).To(BeTrue(), "%v", err)
	})

	hub := virtualWorkspace(t, provider, "configs", created.GetAnnotations()["kcp.io/cluster"])
	writable := func(client dynamic.ResourceInterface, value string) {
		t.Helper()
		for _, write := range []struct {
			patch        string
			subresources []string
		}{
			{`{"status":{"selected":1,"conditions":[{"type":"Ready","status":"False","reason":"InvalidEntry","message":"` + value + `","lastTransitionTime":"2026-01-01T00:00:00Z"}]}}`, []string{"status"}},
			{`{"metadata":{"annotations":{"a":"` + value + `"}}}`, nil},
			{`{"spec":{"suspend":` + value + `}}`, nil},
		} {
			if _, err := client.Patch(t.Context(), "stored", types.MergePatchType, []byte(write.patch), metav1.PatchOptions{}, write.subresources...); err != nil {
				t.Errorf("%s: %v", write.patch, err)
			}
		}
	}
	writable(client, "true")
	writable(hub, "false")
	// A PUT, as the hub writes its own configs.
	object, err := hub.Get(t.Context(), "stored", metav1.GetOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(unstructured.SetNestedField(object.Object, "Orphan", "spec", "deletionPolicy")).To(Succeed())
	_, err = hub.Update(t.Context(), object, metav1.UpdateOptions{})
	g.Expect(err).NotTo(HaveOccurred())
}

// withoutSelectorRules returns the schema as it was before selectors were restricted.
func withoutSelectorRules(t *testing.T, current *apisv1alpha1.APIResourceSchema) *apisv1alpha1.APIResourceSchema {
	t.Helper()
	older := current.DeepCopy()
	content := map[string]any{}
	if err := json.Unmarshal(older.Spec.Versions[0].Schema.Raw, &content); err != nil {
		t.Fatal(err)
	}
	removeSelectorRules(content)
	raw, err := json.Marshal(content)
	if err != nil {
		t.Fatal(err)
	}
	older.Spec.Versions[0].Schema = runtime.RawExtension{Raw: raw}
	return older
}

func removeSelectorRules(value any) {
	switch value := value.(type) {
	case map[string]any:
		if list, ok := value["matchExpressions"].(map[string]any); ok {
			items := list["items"].(map[string]any)
			delete(items, "x-kubernetes-validations")
			delete(items["properties"].(map[string]any)["operator"].(map[string]any), "enum")
		}
		for _, child := range value {
			removeSelectorRules(child)
		}
	case []any:
		for _, child := range value {
			removeSelectorRules(child)
		}
	}
}

// virtualWorkspace returns a client for the SyncerConfigs of a workspace that binds an export, as the hub has it.
func virtualWorkspace(t *testing.T, provider provider, export, cluster string) dynamic.ResourceInterface {
	t.Helper()
	slice := &apisv1alpha1.APIExportEndpointSlice{}
	suite.Eventually(t, func(g Gomega) {
		g.Expect(provider.admin(t).Get(t.Context(), named(export), slice)).To(Succeed())
		g.Expect(slice.Status.APIExportEndpoints).NotTo(BeEmpty())
	})
	config := rest.CopyConfig(provider.Config)
	config.Host = slice.Status.APIExportEndpoints[0].URL + "/clusters/" + cluster
	return suite.Dynamic(t, config).Resource(syncerConfigs)
}
