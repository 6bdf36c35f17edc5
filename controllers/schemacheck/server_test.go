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
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"sigs.k8s.io/yaml"

	synchubv1alpha1 "github.com/synchub-dev/synchub/apis/synchub/v1alpha1"
	"github.com/synchub-dev/synchub/controllers/publishedresource"
	"github.com/synchub-dev/synchub/controllers/schemacheck"
	"github.com/synchub-dev/synchub/provider/discovery"
	"github.com/synchub-dev/synchub/provider/kcp"
	"github.com/synchub-dev/synchub/provider/targets"
	"github.com/synchub-dev/synchub/test/framework"
	"github.com/synchub-dev/synchub/test/framework/servers"
)

const (
	startLimit = 5 * time.Minute
	// patience is how long a test waits for an expected event.
	patience = 3 * time.Minute
)

// target is the cluster of this package.
var target *servers.Target

func TestMain(m *testing.M) {
	code, err := run(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

func run(m *testing.M) (code int, err error) {
	root, err := framework.RepositoryRoot()
	if err != nil {
		return 1, err
	}
	dir, err := os.MkdirTemp("", "synchub-compatibility-")
	if err != nil {
		return 1, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), startLimit)
	defer cancel()
	if target, err = servers.StartTarget(ctx, servers.Options{Dir: dir, Bin: filepath.Join(root, "bin")}, "target", servers.TargetOptions{}); err != nil {
		return 1, err
	}
	code = m.Run()
	if err := target.Stop(); err != nil || code != 0 {
		fmt.Fprintln(os.Stderr, "the files of the servers are in", dir)
		return code, err
	}
	return code, os.RemoveAll(dir)
}

// counter records the paths of requests.
type counter struct {
	lock  sync.Mutex
	paths []string
}

func (c *counter) wrap(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(request *http.Request) (*http.Response, error) {
		c.lock.Lock()
		c.paths = append(c.paths, request.URL.Path)
		c.lock.Unlock()
		return next.RoundTrip(request)
	})
}

type roundTripper func(*http.Request) (*http.Response, error)

func (r roundTripper) RoundTrip(request *http.Request) (*http.Response, error) { return r(request) }

// countingClient returns a client of the cluster whose requests are counted.
func countingClient(t *testing.T) (*discovery.Client, *counter) {
	t.Helper()
	counter := &counter{}
	config := rest.CopyConfig(target.Config)
	config.Wrap(counter.wrap)
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

// defaultResources returns the resources that the chart publishes with its own schemas.
func defaultResources(t *testing.T) (all []schemacheck.Resource) {
	t.Helper()
	root, err := framework.RepositoryRoot()
	if err != nil {
		t.Fatal(err)
	}
	directory := filepath.Join(root, "charts", "synchub", "files", "published")
	files, err := filepath.Glob(filepath.Join(directory, "schema-*.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		var configMap corev1.ConfigMap
		var definition apiextensionsv1.CustomResourceDefinition
		var resource synchubv1alpha1.PublishedResource
		read(t, file, &configMap)
		if err := yaml.Unmarshal([]byte(configMap.Data["crd.yaml"]), &definition); err != nil {
			t.Fatal(err)
		}
		read(t, filepath.Join(directory, strings.TrimPrefix(filepath.Base(file), "schema-")), &resource)
		all = append(all, resourceFor(t, &resource.Spec, &definition))
	}
	return all
}

func read(t *testing.T, file string, into any) {
	t.Helper()
	content, err := os.ReadFile(file) //nolint:gosec // a file of the repository
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal(content, into); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
}

// All resources of the chart fit into the Kubernetes version that the chart is made for. A second equal cluster costs almost nothing.
func TestDefaultResourcesAreCompatible(t *testing.T) {
	checker := schemacheck.NewChecker(clock.RealClock{})
	all := defaultResources(t)
	if len(all) < 8 {
		t.Fatalf("the chart has %d schemas", len(all))
	}
	for cluster, want := range [][]string{
		{"/openapi/v3", "/openapi/v3/apis/apps/v1", "/openapi/v3/apis/batch/v1", "/openapi/v3/api/v1", "/openapi/v3/apis/networking.k8s.io/v1", ingressDefinition},
		{"/openapi/v3", ingressDefinition},
	} {
		client, counter := countingClient(t)
		session := checker.NewSession(client)
		for _, desired := range all {
			state, err := session.Check(t.Context(), desired)
			if err != nil || state.Reason != schemacheck.ReasonCompatible {
				t.Errorf("%s: %v, %+v", desired.Target, err, state)
			}
		}
		NewWithT(t).Expect(counter.paths).To(ConsistOf(want), "cluster %d", cluster)
	}
}

const ingressDefinition = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/ingresses.networking.k8s.io"

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

// connect returns a connection to the cluster.
func connect(t *testing.T) (connection *targets.Connection) {
	t.Helper()
	registry := targets.NewRegistry(targets.Options{
		FieldManager: "test", Limits: kcp.Limits{QPS: 100, Burst: 100}, Clock: clock.RealClock{}, Log: logr.Discard(), OnChange: func(types.UID) {},
	})
	framework.RunInTest(t, registry.Start)
	kubeconfig, err := os.ReadFile(target.Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	NewWithT(t).Eventually(func() (err error) {
		connection, err = registry.Connect("florin", kubeconfig, kcp.Limits{})
		return err
	}).WithTimeout(patience).Should(Succeed())
	return connection
}

// A resource is compared again whenever its CRD on the target changes.
func TestControllerFollowsTheCRD(t *testing.T) {
	g := NewWithT(t)
	var definition apiextensionsv1.CustomResourceDefinition
	ours := widget("v1", `{type: object, properties: {a: {type: string, maxLength: 5}, b: {type: integer}}}`)
	if err := yaml.Unmarshal([]byte(ours), &definition); err != nil {
		t.Fatal(err)
	}
	spec := &synchubv1alpha1.PublishedResourceSpec{Resource: synchubv1alpha1.ResourceDescriptor{Group: "compatibility.example.com", Resource: "widgets", Kind: "Widget", Version: "v1"}}
	desired := resourceFor(t, spec, &definition)
	resource := desired.Target.GroupResource()

	told := make(chan struct{}, 100)
	keeper := schemacheck.New(schemacheck.Options{
		Connection: connect(t), Checker: schemacheck.NewChecker(clock.RealClock{}), OnChange: func() { told <- struct{}{} }, Clock: clock.RealClock{}, Log: logr.Discard(),
	})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		keeper.Run(ctx)
	}()
	t.Cleanup(func() {
		cancel()
		<-ended
	})
	if _, known := keeper.State(resource); known {
		t.Error("something is known of what nobody wants")
	}
	keeper.SetResources(map[schema.GroupResource]schemacheck.Resource{resource: desired})
	becomes := func(what, reason, says string) {
		t.Helper()
		g.Eventually(told).WithTimeout(patience).Should(Receive(), what)
		g.Eventually(func(g Gomega) {
			state, known := keeper.State(resource)
			g.Expect(known).To(BeTrue(), what)
			g.Expect(state.Reason).To(Equal(reason), "%s: %+v", what, state)
			g.Expect(state.Message).To(ContainSubstring(says), what)
		}).WithTimeout(patience).Should(Succeed())
	}
	put := func(manifest string) {
		t.Helper()
		if err := framework.Apply(t.Context(), target.Config, manifest); err != nil {
			t.Fatal(err)
		}
	}

	becomes("without a definition", schemacheck.ReasonNotServed, "")
	put(ours)
	becomes("with the same", schemacheck.ReasonCompatible, "")
	g.Expect(keeper.Unblocked(resource)).To(BeClosed())
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
	keeper.SetResources(nil)
	if _, known := keeper.State(resource); known {
		t.Error("what is not wanted any more is not forgotten")
	}
}
