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

package apiresourceschema_test

import (
	"fmt"
	"strings"
	"testing"

	apisv1alpha1 "github.com/kcp-dev/sdk/apis/apis/v1alpha1"
	. "github.com/onsi/gomega"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/types"

	synchubv1alpha1 "github.com/synchub-dev/synchub/apis/synchub/v1alpha1"
	"github.com/synchub-dev/synchub/controllers/apiresourceschema"
	"github.com/synchub-dev/synchub/controllers/publishedresource"
	"github.com/synchub-dev/synchub/test/framework"
	"github.com/synchub-dev/synchub/test/framework/suite"
	"github.com/synchub-dev/synchub/test/tier"
)

// definition returns the manifest of the CRD gadgets.<group>, whose spec has one field.
func definition(group, field string) string {
	return fmt.Sprintf(`
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: gadgets.%[1]s}
spec:
  group: %[1]s
  scope: Namespaced
  names: {plural: gadgets, singular: gadget, kind: Gadget, listKind: GadgetList}
  versions:
  - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {%[2]s: {type: string}}}}}}}
  - {name: v2beta1, served: true, storage: false, schema: {openAPIV3Schema: {type: object}}}
`, group, field)
}

// configMap returns the manifest of a ConfigMap with one key.
func configMap(name, key, text string) string {
	return fmt.Sprintf("{apiVersion: v1, kind: ConfigMap, metadata: {name: %s, namespace: default}, data: {%s: %q}}", name, key, text)
}

var definitions = apiextensionsv1.SchemeGroupVersion.WithResource("customresourcedefinitions")

func TestSchemaFromTheHostingCluster(t *testing.T) {
	tier.Thorough(t)
	w := sharedTestEnv(t)
	const group = "hosting.example.com"
	w.publish(t, "gadgets-here", "resource: {group: "+group+", kind: Gadget}")
	w.becomes(t, "gadgets-here", apiresourceschema.ReasonNotServed, "spec.resource: the hosting cluster does not serve it")
	w.hasEvent(t, "gadgets-here", apiresourceschema.ReasonNotServed)

	// The event of a new CRD causes a schema.
	w.apply(t, hosting, definition(group, "first"))
	first := w.becomes(t, "gadgets-here", apiresourceschema.ReasonCreated, "The APIResourceSchema is v")
	w.hasEvent(t, "gadgets-here", apiresourceschema.ReasonCreated, first)
	if versions := w.schemaNamed(t, first).Spec.Versions; len(versions) != 2 || !strings.Contains(string(versions[0].Schema.Raw), "first") {
		t.Errorf("got %+v", versions)
	}

	// A changed CRD causes a new schema, and the old one is kept.
	w.apply(t, hosting, definition(group, "second"))
	second := w.changes(t, "gadgets-here", first)
	w.hasEvent(t, "gadgets-here", apiresourceschema.ReasonSchemaChanged, first, second)
	w.schemaNamed(t, first)

	// If the CRD changes back, the first schema is used again.
	w.apply(t, hosting, definition(group, "first"))
	if third := w.changes(t, "gadgets-here", second); third != first {
		t.Errorf("want %s, got %s", first, third)
	}

	// A deleted CRD changes nothing.
	if err := framework.Delete(t.Context(), w.Targets[hosting].Config, definitions, "", "gadgets."+group); err != nil {
		t.Fatal(err)
	}
	if kept := w.becomes(t, "gadgets-here", apiresourceschema.ReasonNotServed, "The schema "+first+" stays in force."); kept != first {
		t.Errorf("want %s, got %s", first, kept)
	}
	w.hasEvent(t, "gadgets-here", apiresourceschema.ReasonNotServed, first)
}

// The controller leaves a PublishedResource of another hub alone until status.hub is handed over.
func TestResourceOfAnotherHub(t *testing.T) {
	tier.Thorough(t)
	w := sharedTestEnv(t)
	const group = "hubs.example.com"
	for _, name := range []string{"gadgets-theirs", "gadgets-ours"} {
		w.publish(t, name, "resource: {group: "+group+", kind: Gadget}")
		w.becomes(t, name, apiresourceschema.ReasonNotServed, "does not serve it")
	}
	w.setHub(t, "gadgets-theirs", &synchubv1alpha1.HubReference{UID: "other-hub", Workspace: "root:other"})
	w.hasEvent(t, "gadgets-theirs", publishedresource.ReasonAnotherHub, "root:other (other-hub)", "root:provider (this-hub)", "kubectl patch publishedresources gadgets-theirs")

	w.apply(t, hosting, definition(group, "first"))
	w.becomes(t, "gadgets-ours", apiresourceschema.ReasonCreated, "The APIResourceSchema is v")
	theirs := w.get(NewWithT(t), t, "gadgets-theirs")
	if theirs.Status.SchemaName != "" || theirs.Status.Hub.UID != "other-hub" {
		t.Errorf("another hub's was written: %+v", theirs.Status)
	}

	w.setHub(t, "gadgets-theirs", nil)
	w.becomes(t, "gadgets-theirs", apiresourceschema.ReasonCreated, "The APIResourceSchema is v")
	if ours := w.get(NewWithT(t), t, "gadgets-theirs"); ours.Status.Hub == nil || ours.Status.Hub.UID != "this-hub" || ours.Status.Hub.Workspace != "root:provider" {
		t.Errorf("it was not taken over: %+v", ours.Status.Hub)
	}
}

func TestSchemaOfBuiltInKinds(t *testing.T) {
	tier.Thorough(t)
	w := sharedTestEnv(t)
	w.publish(t, "deployments", "{resource: {group: apps, resource: deployments}, api: {schemaFrom: {hostingCluster: {}}}}")
	w.publish(t, "pods", "{resource: {kind: Pod}}")
	w.publish(t, "quotas", "{resource: {resource: resourcequotas}, projection: {group: quotas.example.com}}")
	for name, suffix := range map[string]string{"deployments": ".deployments.apps", "pods": ".pods.core", "quotas": ".resourcequotas.quotas.example.com"} {
		if schema := w.becomes(t, name, apiresourceschema.ReasonCreated, ""); !strings.HasSuffix(schema, suffix) {
			t.Errorf("%s: %s", name, schema)
		}
	}
	// Only an API with a CRD of its own can be installed.
	w.publish(t, "jobs", "{resource: {group: batch, resource: jobs}, installCRD: true}")
	w.publish(t, "leases", "{resource: {group: networking.k8s.io, resource: ingresses}, installCRD: true}")
	w.becomes(t, "jobs", apiresourceschema.ReasonInvalid, "spec.installCRD: ")
	w.hasEvent(t, "jobs", apiresourceschema.ReasonInvalid, "spec.installCRD: ")
	w.becomes(t, "leases", apiresourceschema.ReasonInvalid, "spec.installCRD: the cluster that serves ingresses.networking.k8s.io has no CustomResourceDefinition")
	if w.installed("jobs") != nil || w.installed("leases") != nil {
		t.Error("a built-in kind is installed")
	}
}

func TestSchemaFromATarget(t *testing.T) {
	tier.Thorough(t)
	w := sharedTestEnv(t)
	const group = "florin.example.com"
	from := func(workspace, name string) string {
		return "{resource: {group: " + group + ", resource: gadgets, version: v1}, installCRD: true, api: {schemaFrom: {syncTarget: {cluster: '" + workspace + "', name: " + name + "}}}}"
	}
	w.apply(t, florin, definition(group, "first"))
	w.publish(t, "by-path", from(inventoryPath, florin))
	first := w.becomes(t, "by-path", apiresourceschema.ReasonCreated, "")
	if versions := w.schemaNamed(t, first).Spec.Versions; len(versions) != 1 || versions[0].Name != "v1" {
		t.Errorf("got %+v", versions)
	}
	// The CRD to install is complete and has its own name.
	suite.Eventually(t, func(g Gomega) {
		installed := w.installed("by-path")
		g.Expect(installed).NotTo(BeNil())
		g.Expect(installed.CRD.Spec.Versions).To(HaveLen(2))
		g.Expect(installed.Version).To(Equal("v1"))
		g.Expect(installed.UID).To(Equal(w.get(g, t, "by-path").UID))
	})
	w.publish(t, "by-cluster", from(inventoryCluster, florin))
	if same := w.becomes(t, "by-cluster", apiresourceschema.ReasonCreated, ""); same != first {
		t.Errorf("want %s, got %s", first, same)
	}
	for name, spec := range map[string]string{
		"no-target": from(inventoryPath, "guilder"), "no-path": from("root:elsewhere", florin), "no-cluster": from("elsewhere", florin),
	} {
		w.publish(t, name, spec)
		w.becomes(t, name, apiresourceschema.ReasonSchemaMissing, "spec.api.schemaFrom.syncTarget: the hub sees no SyncTarget")
	}

	// The event of a changed CRD on the target causes a new schema.
	w.apply(t, florin, definition(group, "second"))
	second := w.changes(t, "by-path", first)

	// If the target goes down, mailboxes keep the schema.
	if err := w.Targets[florin].Kill9(); err != nil {
		t.Fatal(err)
	}
	kept := w.becomes(t, "by-path", apiresourceschema.ReasonSourceUnreachable, "The schema "+second+" stays in force.")
	if kept != second || w.installed("by-path") == nil {
		t.Errorf("want %s, got %s", second, kept)
	}
	// After the target is up again, the controller reads from it again.
	if err := w.Targets[florin].Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.becomes(t, "by-path", apiresourceschema.ReasonCreated, second)
	w.apply(t, florin, definition(group, "third"))
	w.changes(t, "by-path", second)
}

func TestSchemaFromAConfigMap(t *testing.T) {
	tier.Thorough(t)
	w := sharedTestEnv(t)
	const group = "written.example.com"
	const spec = "{resource: {group: " + group + ", resource: gadgets}, api: {schemaFrom: {configMap: {name: written}}}}"
	w.publish(t, "written", spec)
	for _, step := range []struct{ manifest, reason, part string }{
		{"", apiresourceschema.ReasonSchemaMissing, "spec.api.schemaFrom.configMap: the ConfigMap default/written does not exist"},
		{configMap("written", "other", "{}"), apiresourceschema.ReasonSchemaMissing, `the ConfigMap default/written has no key "crd.yaml"`},
		{configMap("written", "crd.yaml", "{"), apiresourceschema.ReasonInvalid, "spec.api.schemaFrom.configMap: crd.yaml in default/written is not a CustomResourceDefinition"},
		{configMap("written", "crd.yaml", "{kind: CustomResourceDefinition, spec: {grupp: a}}"), apiresourceschema.ReasonInvalid, "is not a CustomResourceDefinition"},
		{configMap("written", "crd.yaml", definition("another.example.com", "a")), apiresourceschema.ReasonInvalid, "spec.resource: the definition defines gadgets.another.example.com (Gadget)"},
		{configMap("written", "crd.yaml", definition(group, "first")), apiresourceschema.ReasonCreated, "The APIResourceSchema is"},
	} {
		if step.manifest != "" {
			w.apply(t, hosting, step.manifest)
		}
		w.becomes(t, "written", step.reason, step.part)
	}
	var first string
	suite.Eventually(t, func(g Gomega) { first = w.get(g, t, "written").Status.SchemaName })
	w.apply(t, hosting, configMap("written", "crd.yaml", "{"))
	if kept := w.becomes(t, "written", apiresourceschema.ReasonInvalid, "The schema "+first+" stays in force."); kept != first {
		t.Errorf("want %s, got %s", first, kept)
	}
}

func TestSchemaOfTheHub(t *testing.T) {
	w := sharedTestEnv(t)
	const from = "api: {source: Schema, schemaFrom: {builtIn: {}}}"
	w.publish(t, "built-in", "{resource: {group: scheduling.k8s.io, resource: priorityclasses, kind: PriorityClass, version: v1}, "+from+"}")
	w.becomes(t, "built-in", apiresourceschema.ReasonCreated, "The APIResourceSchema is")
	w.publish(t, "not-built-in", "{resource: {group: built.example.com, resource: gadgets}, "+from+"}")
	w.becomes(t, "not-built-in", apiresourceschema.ReasonSchemaMissing, "spec.api.schemaFrom.builtIn: the hub has no schema of gadgets.built.example.com")
	w.publish(t, "not-installed", "{resource: {group: policy, resource: poddisruptionbudgets}, installCRD: true, "+from+"}")
	w.becomes(t, "not-installed", apiresourceschema.ReasonInvalid, "spec.installCRD: ")
}

// A deleted schema is created again.
func TestSchemaThatWasRemoved(t *testing.T) {
	tier.Thorough(t)
	w := sharedTestEnv(t)
	const group = "removed.example.com"
	w.apply(t, hosting, configMap("removed", "crd.yaml", definition(group, "first")))
	w.publish(t, "removed", "{resource: {group: "+group+", resource: gadgets}, api: {schemaFrom: {configMap: {name: removed}}}}")
	name := w.becomes(t, "removed", apiresourceschema.ReasonCreated, "")
	before := w.schemaNamed(t, name)
	if err := w.provider.Delete(t.Context(), before.DeepCopy()); err != nil {
		t.Fatal(err)
	}
	suite.Eventually(t, func(g Gomega) {
		after := &apisv1alpha1.APIResourceSchema{}
		g.Expect(w.provider.Get(t.Context(), types.NamespacedName{Name: name}, after)).To(Succeed())
		g.Expect(after.UID).NotTo(Equal(before.UID))
	})
}

// The CRD to install is removed with spec.installCRD, not with the schema.
func TestDefinitionToInstall(t *testing.T) {
	tier.Thorough(t)
	w := sharedTestEnv(t)
	const group = "installed.example.com"
	w.apply(t, hosting, configMap("installed", "crd.yaml", definition(group, "first")))
	w.publish(t, "installed", "{resource: {group: "+group+", resource: gadgets}, installCRD: true, projection: {group: projected.example.com}, api: {schemaFrom: {configMap: {name: installed}}}}")
	name := w.becomes(t, "installed", apiresourceschema.ReasonCreated, "")
	if !strings.HasSuffix(name, ".gadgets.projected.example.com") {
		t.Error(name)
	}
	suite.Eventually(t, func(g Gomega) {
		g.Expect(w.installed("installed")).NotTo(BeNil())
		g.Expect(w.installed("installed").CRD.Spec.Group).To(Equal(group))
	})
	suite.Eventually(t, func(g Gomega) {
		resource := w.get(g, t, "installed")
		resource.Spec.InstallCRD = false
		g.Expect(w.hosting.Update(t.Context(), resource)).To(Succeed())
	})
	suite.Eventually(t, func(g Gomega) { g.Expect(w.installed("installed")).To(BeNil()) })
	suite.Eventually(t, func(g Gomega) {
		resource := w.get(g, t, "installed")
		resource.Spec.InstallCRD = true
		g.Expect(w.hosting.Update(t.Context(), resource)).To(Succeed())
	})
	suite.Eventually(t, func(g Gomega) { g.Expect(w.installed("installed")).NotTo(BeNil()) })
	var gone types.UID
	suite.Eventually(t, func(g Gomega) {
		resource := w.get(g, t, "installed")
		gone = resource.UID
		g.Expect(w.hosting.Delete(t.Context(), resource)).To(Succeed())
	})
	suite.Eventually(t, func(g Gomega) { g.Expect(w.installed("installed")).To(BeNil(), string(gone)) })
	w.schemaNamed(t, name)
}
