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

package e2e

import (
	"context"
	"fmt"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/synchub-dev/synchub/test/framework"
	"github.com/synchub-dev/synchub/test/framework/installation"
)

// Gauges are namespaced and have a status subresource. Meters are cluster-scoped and have none.
var (
	gauges = schema.GroupVersionResource{Group: "up.example.com", Version: "v1", Resource: "gauges"}
	meters = schema.GroupVersionResource{Group: "up.example.com", Version: "v1", Resource: "meters"}
)

// publishInstruments installs Gauges and Meters on some targets and publishes them. Specs may call it concurrently; the
// APIs stay.
func publishInstruments(ctx context.Context, targets ...string) {
	GinkgoHelper()
	published := []struct {
		plural, kind, scope, subresources string
	}{{"gauges", "Gauge", "Namespaced", "{status: {}}"}, {"meters", "Meter", "Cluster", "{}"}}
	hosting := target("hosting")
	for _, resource := range published {
		crd := fmt.Sprintf(`
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: %[1]s.up.example.com}
spec:
  group: up.example.com
  scope: %[3]s
  names: {plural: %[1]s, singular: %[4]s, kind: %[2]s, listKind: %[2]sList}
  versions:
  - name: v1
    served: true
    storage: true
    subresources: %[5]s
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec: {type: object, properties: {size: {type: integer}}}
          status: {type: object, properties: {reading: {type: integer}}}
`, resource.plural, resource.kind, resource.scope, strings.ToLower(resource.kind), resource.subresources)
		for _, name := range targets {
			apply(ctx, target(name), crd)
		}
		apply(ctx, hosting, documents(fmt.Sprintf(`
apiVersion: v1
kind: ConfigMap
metadata: {name: up-%s, namespace: %s}
data:
  crd.yaml: |
    %s
`, resource.plural, installation.Namespace, strings.ReplaceAll(crd, "\n", "\n    ")), fmt.Sprintf(`
apiVersion: synchub.dev/v1alpha1
kind: PublishedResource
metadata: {name: up-%[1]s}
spec:
  resource: {group: up.example.com, resource: %[1]s}
  api: {source: Schema, schemaFrom: {configMap: {name: up-%[1]s}}}
  adoption: KubeStellar
`, resource.plural)))
	}
	for _, resource := range published {
		Eventually(framework.Condition).WithContext(ctx).WithArguments(hosting, publishedResources, "", "up-"+resource.plural, "Ready").Should(Equal("True"))
	}
}

func gauge(namespace, name string, size int) string {
	return fmt.Sprintf(`
apiVersion: up.example.com/v1
kind: Gauge
metadata: {name: %s, namespace: %s}
spec: {size: %d}
`, name, namespace, size)
}

func meter(name string, size int) string {
	return fmt.Sprintf(`
apiVersion: up.example.com/v1
kind: Meter
metadata: {name: %s}
spec: {size: %d}
`, name, size)
}

// syncerConfig returns a SyncerConfig with the spec in YAML's flow style.
func syncerConfig(name, spec string) string {
	return fmt.Sprintf(`
apiVersion: edge.kubestellar.io/v2alpha1
kind: SyncerConfig
metadata: {name: %s}
spec: %s
`, name, strings.ReplaceAll(spec, "\t", " "))
}

// readerOf returns a function whose results read fields of objects on one side, for Eventually.
func readerOf(ctx context.Context, config *rest.Config) func(resource schema.GroupVersionResource, namespace, name string, path ...string) func() string {
	return func(resource schema.GroupVersionResource, namespace, name string, path ...string) func() string {
		return func() string { return value(ctx, config, resource, namespace, name, path...) }
	}
}
