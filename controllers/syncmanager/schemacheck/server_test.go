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

package schemacheck_test

import (
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/go-logr/logr"
	. "github.com/onsi/gomega"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/clock"

	synchubv1alpha1 "github.com/synchub-dev/synchub/apis/synchub/v1alpha1"
	"github.com/synchub-dev/synchub/controllers/publishedresource"
	"github.com/synchub-dev/synchub/controllers/syncmanager/schemacheck"
	"github.com/synchub-dev/synchub/provider/discovery"
	"github.com/synchub-dev/synchub/provider/kcp"
	"github.com/synchub-dev/synchub/provider/schemas/builtin"
	"github.com/synchub-dev/synchub/provider/targets"
	"github.com/synchub-dev/synchub/test/fixtures"
	"github.com/synchub-dev/synchub/test/framework"
	"github.com/synchub-dev/synchub/test/framework/connections"
	"github.com/synchub-dev/synchub/test/framework/faults"
	"github.com/synchub-dev/synchub/test/framework/suite"
)

func TestMain(m *testing.M) { suite.Main(m) }

// counter records the paths of requests.
type counter struct {
	lock  sync.Mutex
	paths []string
}

func (c *counter) add(path string) {
	c.lock.Lock()
	defer c.lock.Unlock()
	c.paths = append(c.paths, path)
}

// get returns the paths so far, take removes them, too.
func (c *counter) get() []string {
	c.lock.Lock()
	defer c.lock.Unlock()
	return slices.Clone(c.paths)
}

func (c *counter) take() (paths []string) {
	c.lock.Lock()
	defer c.lock.Unlock()
	paths, c.paths = c.paths, nil
	return paths
}

// countingClient returns a client of the cluster that counts its requests.
func countingClient(t *testing.T) (*discovery.Client, *counter) {
	t.Helper()
	counter := &counter{}
	config := suite.Observe(suite.Target(t).Config, func(request *http.Request) { counter.add(request.URL.Path) })
	client, err := discovery.NewClient(config, nil)
	if err != nil {
		t.Fatal(err)
	}
	return client, counter
}

// resourceFor returns the resource that mailboxes get from a CRD.
func resourceFor(t *testing.T, spec *synchubv1alpha1.PublishedResourceSpec, definition *apiextensionsv1.CustomResourceDefinition) schemacheck.Resource {
	t.Helper()
	exported, err := publishedresource.BuildSchema(t.Context(), spec, definition)
	if err != nil {
		t.Fatal(err)
	}
	openAPI, err := exported.Spec.Versions[0].GetSchema()
	if err != nil {
		t.Fatal(err)
	}
	return schemacheck.Resource{
		Schema: schemacheck.Schema{Name: exported.Name, Version: exported.Spec.Versions[0].Name, OpenAPI: openAPI},
		Target: schema.GroupVersionResource{Group: definition.Spec.Group, Version: spec.Resource.Version, Resource: definition.Spec.Names.Plural},
		Kind:   definition.Spec.Names.Kind,
	}
}

// defaultResources returns the resources that the chart publishes with its own schemas, by their OpenAPI documents. In another order the
// checker may read a document again, since it holds fewer documents than there are.
func defaultResources(t *testing.T) (all []schemacheck.Resource) {
	t.Helper()
	root, err := framework.RepositoryRoot()
	if err != nil {
		t.Fatal(err)
	}
	directory := filepath.Join(root, "charts", "synchub", "files", "published")
	files, err := filepath.Glob(filepath.Join(directory, "*.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		resource := fixtures.DecodeFile[synchubv1alpha1.PublishedResource](t, file)
		if from := resource.Spec.API.SchemaFrom; from == nil || from.BuiltIn == nil {
			continue
		}
		definition, err := builtin.Find(resource.Spec.Resource)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, resourceFor(t, &resource.Spec, definition))
	}
	slices.SortStableFunc(all, func(a, b schemacheck.Resource) int {
		return strings.Compare(a.Target.GroupVersion().String(), b.Target.GroupVersion().String())
	})
	return all
}

// All resources of the chart fit into the chart's Kubernetes version. A second equal cluster causes almost no
// work.
func TestDefaultResourcesAreCompatible(t *testing.T) {
	checker := schemacheck.NewChecker(clock.RealClock{})
	all := defaultResources(t)
	if len(all) < 8 {
		t.Fatalf("the chart has %d schemas", len(all))
	}
	for cluster, want := range [][]string{
		slices.Concat([]string{"/openapi/v3"}, documentsOf(all), definitionsOf(all)),
		append(definitionsOf(all), "/openapi/v3"),
	} {
		client, counter := countingClient(t)
		schemas := checker.NewTargetSchemas(client)
		for _, desired := range all {
			state, err := schemas.Check(t.Context(), desired)
			if err != nil || state.Reason != schemacheck.ReasonCompatible {
				t.Errorf("%s: %v, %+v", desired.Target, err, state)
			}
		}
		NewWithT(t).Expect(counter.paths).To(ConsistOf(want), "cluster %d", cluster)
	}
}

var deployments = schema.GroupResource{Group: "apps", Resource: "deployments"}

const crdsPath = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/"

// documentsOf returns the paths of the OpenAPI documents with the resources.
func documentsOf(all []schemacheck.Resource) []string {
	paths := sets.New[string]()
	for _, one := range all {
		path := "/openapi/v3/apis/" + one.Target.GroupVersion().String()
		if one.Target.Group == "" {
			path = "/openapi/v3/api/" + one.Target.Version
		}
		paths.Insert(path)
	}
	return paths.UnsortedList()
}

// definitionsOf returns the paths of the definitions of the resources: the group of a definition has a dot.
func definitionsOf(all []schemacheck.Resource) (paths []string) {
	for _, one := range all {
		if strings.Contains(one.Target.Group, ".") {
			paths = append(paths, crdsPath+one.Target.GroupResource().String())
		}
	}
	return paths
}

const widgets = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.compatibility.example.com}
spec:
  group: compatibility.example.com
  scope: Namespaced
  names: {plural: widgets, singular: widget, kind: Widget, listKind: WidgetList}
  versions:
  - name: VERSION
    served: true
    storage: true
    subresources: {status: {}}
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec: SPEC
          status: {type: object, x-kubernetes-preserve-unknown-fields: true}
`

func widget(version, spec string) string {
	return strings.NewReplacer("VERSION", version, "SPEC", spec).Replace(widgets)
}

// A resource is compared again whenever its CRD on the target changes.
func TestControllerFollowsTheCRD(t *testing.T) {
	g, target := NewWithT(t), suite.Target(t)
	ours := widget("v1", `{type: object, properties: {a: {type: string, maxLength: 5}, b: {type: integer}}}`)
	definition := fixtures.Decode[*apiextensionsv1.CustomResourceDefinition](t, ours)
	spec := &synchubv1alpha1.PublishedResourceSpec{Resource: synchubv1alpha1.ResourceDescriptor{Group: "compatibility.example.com", Resource: "widgets", Kind: "Widget", Version: "v1"}}
	desired := resourceFor(t, spec, definition)
	resource := desired.Target.GroupResource()

	told := make(chan struct{}, 100)
	controller := schemacheck.New(schemacheck.Options{
		Connection: connections.ConnectToTarget(t, "test", "florin"), Checker: schemacheck.NewChecker(clock.RealClock{}), OnChange: func() { told <- struct{}{} }, Clock: clock.RealClock{}, Log: logr.Discard(),
	})
	framework.RunInTest(t, controller.Run)
	if _, known := controller.State(resource); known {
		t.Error("a resource that is not desired has a state")
	}
	controller.SetResources(map[schema.GroupResource]schemacheck.Resource{resource: desired})
	becomes := func(what, reason, says string) {
		t.Helper()
		g.Eventually(told).Should(Receive(), what)
		g.Eventually(func(g Gomega) {
			state, known := controller.State(resource)
			g.Expect(known).To(BeTrue(), what)
			g.Expect(state.Reason).To(Equal(reason), "%s: %+v", what, state)
			g.Expect(state.Message).To(ContainSubstring(says), what)
		}).Should(Succeed())
	}
	put := func(manifest string) {
		t.Helper()
		suite.Apply(t, target.Config, manifest)
	}

	becomes("without a definition", schemacheck.ReasonNotServed, "")
	put(ours)
	becomes("with the same", schemacheck.ReasonCompatible, "")
	g.Expect(controller.Unblocked(resource)).To(BeClosed())
	put(widget("v1", `{type: object, properties: {a: {type: string, maxLength: 4}, b: {type: integer}}}`))
	becomes("with a narrower", schemacheck.ReasonSchemaIncompatible, "spec.a: ")
	put(widget("v1", `{type: object, properties: {a: {type: string, maxLength: 6}, b: {type: number}, c: {type: string}}}`))
	becomes("with a wider", schemacheck.ReasonCompatible, "")
	put(widget("v1", `{type: object, properties: {a: {type: string}}}`))
	becomes("with fewer fields", schemacheck.ReasonSchemaIncompatible, "spec.b: ")
	if err := framework.Delete(t.Context(), target.Config, apiextensionsv1.SchemeGroupVersion.WithResource("customresourcedefinitions"), "", definition.Name); err != nil {
		t.Fatal(err)
	}
	becomes("without a definition again", schemacheck.ReasonNotServed, "")
	put(widget("v2", `{type: object}`))
	becomes("with another version", schemacheck.ReasonVersionNotServed, "v2")
	controller.SetResources(nil)
	if _, known := controller.State(resource); known {
		t.Error("a resource that is no longer desired still has a state")
	}
}

// A controller compares all resources that are due at once with the same requests as one schemas. It sends no
// request while the target is down, and compares changed resources when the target is up again.
func TestControllerSharesRequests(t *testing.T) {
	g, target, counted := NewWithT(t), suite.Target(t), &counter{}
	proxy, err := faults.NewProxy(t.Context(), target.Config)
	g.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(func() { g.Expect(proxy.Close()).To(Succeed()) })
	server := suite.ServeTLS(t, http.HandlerFunc(func(writer http.ResponseWriter, request *http.Request) {
		if strings.HasPrefix(request.URL.Path, "/openapi/v3") || strings.HasPrefix(request.URL.Path, crdsPath) {
			counted.add(request.URL.Path)
		}
		proxy.ServeHTTP(writer, request)
	}))
	kubeconfig := suite.Kubeconfig(t, server.URL, suite.CertificateOf(server), target.Config.BearerToken)
	connection := connections.Connect(t, connections.NewRegistry(t, targets.Options{}), "florin", kubeconfig, kcp.Limits{})
	synced := make(chan struct{}, 1)
	t.Cleanup(connection.Watches.Subscribe(targets.Listener{OnCRD: func(schema.GroupResource) {}, OnSynced: func() { synced <- struct{}{} }}))
	g.Eventually(synced).Should(Receive())

	controller := schemacheck.New(schemacheck.Options{
		Connection: connection, Checker: schemacheck.NewChecker(clock.RealClock{}), OnChange: func() {}, Clock: clock.RealClock{}, Log: logr.Discard(),
	})
	framework.RunInTest(t, controller.Run)
	resources := map[schema.GroupResource]schemacheck.Resource{}
	all := defaultResources(t)
	for _, one := range all {
		resources[one.Target.GroupResource()] = one
	}
	controller.SetResources(resources)
	areCompatible := func(g Gomega) {
		for resource := range resources {
			state, _ := controller.State(resource)
			g.Expect(state.Reason).To(Equal(schemacheck.ReasonCompatible), "%s: %+v", resource, state)
		}
	}
	g.Eventually(areCompatible).Should(Succeed())
	// On a busy machine the resources become due one after another. Then there are several TargetSchemas, and each reads the index of the
	// documents; without sharing it would be read at least once for each resource.
	indexes := 0
	asked := slices.DeleteFunc(counted.take(), func(path string) bool {
		if path == "/openapi/v3" {
			indexes++
		}
		return path == "/openapi/v3"
	})
	g.Expect(indexes).To(BeNumerically("<", len(resources)), "of %d resources", len(resources))
	slices.Sort(asked)
	g.Expect(slices.Compact(asked)).To(ConsistOf(append(documentsOf(all), definitionsOf(all)...)))

	g.Expect(proxy.Set(t.Context(), faults.Failing)).To(Succeed())
	g.Eventually(func() bool {
		connection.Health.ProbeNow()
		return connection.Health.IsUp()
	}).Should(BeFalse())
	changed := resources[deployments]
	changed.Schema.Name = "another"
	resources[deployments] = changed
	controller.SetResources(resources)
	g.Expect(counted.get()).To(BeEmpty())
	g.Expect(proxy.Set(t.Context(), faults.None)).To(Succeed())
	g.Eventually(func() bool {
		connection.Health.ProbeNow()
		return connection.Health.IsUp()
	}).Should(BeTrue())
	g.Eventually(func() string {
		state, _ := controller.State(deployments)
		return state.Schema
	}).Should(Equal(changed.Schema.ID()))
	again := slices.DeleteFunc(counted.get(), func(path string) bool { return path != "/openapi/v3" })
	g.Expect(again).To(HaveLen(1))
}
