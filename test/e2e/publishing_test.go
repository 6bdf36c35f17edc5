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

	"github.com/synchub-dev/synchub/test/framework"
	"github.com/synchub-dev/synchub/test/framework/installation"
)

// api is an API of the targets that specs publish in addition to the chart's.
type api struct {
	schema.GroupVersionResource
	kind string
	// claimed is true for APIs that kcp itself serves.
	claimed       bool
	clusterScoped bool
	// plainStatus makes the status a normal field, without a subresource.
	plainStatus bool
}

var (
	services        = api{GroupVersionResource: schema.GroupVersionResource{Version: "v1", Resource: "services"}, kind: "Service"}
	serviceAccounts = api{GroupVersionResource: schema.GroupVersionResource{Version: "v1", Resource: "serviceaccounts"}, kind: "ServiceAccount", claimed: true}
	jobs            = api{GroupVersionResource: schema.GroupVersionResource{Group: "batch", Version: "v1", Resource: "jobs"}, kind: "Job"}
	statefulSets    = api{GroupVersionResource: schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "statefulsets"}, kind: "StatefulSet"}
)

// ownNames are PublishedResources that specs create themselves, so that the suite installs the chart without them.
var ownNames = []string{"cronjobs", "ingresses", "jobs", "persistentvolumeclaims", "services", "statefulsets"}

// publish publishes APIs under their own names. Specs may publish the same APIs; they stay. The mailbox does not validate
// objects, so that the target rejects invalid ones.
func publish(ctx context.Context, apis ...api) {
	GinkgoHelper()
	publishCalled(ctx, func(api api) string { return api.Resource }, apis...)
}

// publishOnTarget publishes APIs that only conversions produce on targets. Their PublishedResources have the full names of
// the APIs, since each spec has a group of its own.
func publishOnTarget(ctx context.Context, apis ...api) {
	GinkgoHelper()
	publishCalled(ctx, func(api api) string { return api.GroupResource().String() }, apis...)
}

func publishCalled(ctx context.Context, nameOf func(api) string, apis ...api) {
	GinkgoHelper()
	hosting := target("hosting")
	for _, api := range apis {
		source := "api: {source: Auto}"
		if !api.claimed {
			source = fmt.Sprintf("api: {source: Schema, schemaFrom: {configMap: {name: schema-%s}}}", nameOf(api))
			apply(ctx, hosting, fmt.Sprintf(`
apiVersion: v1
kind: ConfigMap
metadata: {name: schema-%s, namespace: %s}
data:
  crd.yaml: |
    %s
`, nameOf(api), installation.Namespace, strings.ReplaceAll(api.definition(), "\n", "\n    ")))
		}
		apply(ctx, hosting, fmt.Sprintf(`
apiVersion: synchub.dev/v1alpha1
kind: PublishedResource
metadata: {name: %[4]s}
spec:
  resource: {group: %[1]q, resource: %[2]s}
  # The definitions below leave open what targets do not.
  compatibility: Warn
  %[3]s
`, api.Group, api.Resource, source, nameOf(api)))
	}
	for _, api := range apis {
		Eventually(framework.Condition).WithContext(ctx).WithArguments(hosting, publishedResources, "", nameOf(api), "Ready").
			Should(Equal("True"), "%s must be published", api.GroupResource())
	}
}

// definition returns a CRD of the API that does not validate objects.
func (a api) definition() string {
	scope, subresources := "Namespaced", "{status: {}}"
	if a.clusterScoped {
		scope = "Cluster"
	}
	if a.plainStatus {
		subresources = "{}"
	}
	return fmt.Sprintf(`
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: %[8]s}
spec:
  group: %[2]q
  scope: %[6]s
  names: {plural: %[1]s, singular: %[5]s, kind: %[4]s, listKind: %[4]sList}
  versions:
  - name: %[3]s
    served: true
    storage: true
    subresources: %[7]s
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
`, a.Resource, a.Group, a.Version, a.kind, strings.ToLower(a.kind), scope, subresources, a.GroupResource())
}

// selecting returns a config, with the name of the namespace, that selects all objects of some resources in it.
func selecting(namespace string, resources ...schema.GroupVersionResource) string {
	var entries strings.Builder
	for _, resource := range resources {
		fmt.Fprintf(&entries, "\n    - {group: %q, resource: %s, apiVersion: %s}", resource.Group, resource.Resource, resource.Version)
	}
	return fmt.Sprintf(`
apiVersion: edge.kubestellar.io/v2alpha1
kind: SyncerConfig
metadata: {name: %[1]s}
spec:
  namespaceScope:
    namespaces: [%[1]s]
    resources:%s
`, namespace, entries.String())
}
