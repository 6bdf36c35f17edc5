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

package discovery_test

import (
	"cmp"
	"context"
	"slices"
	"testing"

	apisv1alpha1 "github.com/kcp-dev/sdk/apis/apis/v1alpha1"
	apisv1alpha2 "github.com/kcp-dev/sdk/apis/apis/v1alpha2"
	conditionsv1alpha1 "github.com/kcp-dev/sdk/apis/third_party/conditions/apis/conditions/v1alpha1"
	. "github.com/onsi/gomega"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	synchubv1alpha1 "github.com/synchub-dev/synchub/apis/synchub/v1alpha1"
	"github.com/synchub-dev/synchub/provider/bootstrap"
	"github.com/synchub-dev/synchub/provider/schemas"
	"github.com/synchub-dev/synchub/test/framework"
	"github.com/synchub-dev/synchub/test/framework/suite"
)

// definition is a CRD to publish, with the settings of a PublishedResource.
type definition struct {
	crd        *apiextensionsv1.CustomResourceDefinition
	version    string
	projection *synchubv1alpha1.Projection
}

// published are the APIs of a workspace.
type published struct {
	config *rest.Config
	client dynamic.Interface
	// names maps the resources on the cluster to the resources in the workspace.
	names map[schema.GroupResource]schema.GroupResource
}

func (p published) version(version schema.GroupVersion, resource schema.GroupResource) schema.GroupVersion {
	return schema.GroupVersion{Group: p.names[resource].Group, Version: version.Version}
}

func (p published) resource(resource schema.GroupVersionResource) dynamic.NamespaceableResourceInterface {
	return p.client.Resource(p.names[resource.GroupResource()].WithVersion(resource.Version))
}

// kcpNatives returns the resources that kcp itself serves in every workspace. An export cannot provide them under these
// names.
func kcpNatives(t *testing.T) map[schema.GroupResource]bool {
	t.Helper()
	_, lists, err := suite.Discovery(t, kcp(t, "root")).ServerGroupsAndResources()
	if err != nil {
		t.Fatal(err)
	}
	natives := map[schema.GroupResource]bool{}
	for _, list := range lists {
		version, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			t.Fatal(err)
		}
		for _, served := range list.APIResources {
			natives[schema.GroupResource{Group: version.Group, Resource: served.Name}] = true
		}
	}
	return natives
}

// publish creates a workspace below root, and in it an export of the definitions with its binding. Resources that kcp
// itself serves get another group.
func publish(t *testing.T, workspace string, all []definition, natives map[schema.GroupResource]bool) published {
	t.Helper()
	ctx := t.Context()
	config := kcp(t, "root:"+workspace)
	if _, err := framework.CreateWorkspace(ctx, suite.KCP(t).Config, "root", workspace, ""); err != nil {
		t.Fatal(err)
	}
	admin, err := client.New(config, client.Options{Scheme: bootstrap.Scheme()})
	if err != nil {
		t.Fatal(err)
	}
	// A new workspace may refuse discovery for a moment.
	suite.Eventually(t, func(g Gomega) { g.Expect(admin.List(ctx, &apisv1alpha1.APIResourceSchemaList{})).To(Succeed()) })
	apis := published{config: config, client: suite.Dynamic(t, config), names: map[schema.GroupResource]schema.GroupResource{}}
	export := &apisv1alpha2.APIExport{ObjectMeta: metav1.ObjectMeta{Name: workspace}}
	var served []schema.GroupVersionResource
	for _, definition := range all {
		original := schema.GroupResource{Group: definition.crd.Spec.Group, Resource: definition.crd.Spec.Names.Plural}
		if natives[original] {
			definition.projection = &synchubv1alpha1.Projection{Group: new(cmp.Or(original.Group, "core") + ".corpus.example.dev")}
			if original.Resource == "namespaces" {
				definition.projection.Plural = "clusternamespaces"
			}
		}
		projected, err := schemas.Project(t.Context(), definition.crd, definition.version, definition.projection)
		if err != nil {
			t.Fatal(err)
		}
		resource, err := schemas.FromCRD(projected)
		if err != nil {
			t.Fatal(err)
		}
		if err := admin.Create(ctx, resource); err != nil {
			t.Errorf("kcp refuses the schema of %s: %v", original, err)
			continue
		}
		apis.names[original] = schema.GroupResource{Group: resource.Spec.Group, Resource: resource.Spec.Names.Plural}
		export.Spec.Resources = append(export.Spec.Resources, resourceSchema(resource))
		for _, version := range resource.Spec.Versions {
			if version.Served {
				served = append(served, schema.GroupVersionResource{Group: resource.Spec.Group, Version: version.Name, Resource: resource.Spec.Names.Plural})
			}
		}
	}
	if err := admin.Create(ctx, export); err != nil {
		t.Fatal(err)
	}
	bind(ctx, t, admin, workspace)
	// kcp serves a bound API after a moment.
	for _, resource := range served {
		suite.Eventually(t, func(g Gomega) {
			_, err := apis.client.Resource(resource).List(ctx, metav1.ListOptions{Limit: 1})
			g.Expect(err).NotTo(HaveOccurred())
		})
	}
	return apis
}

func resourceSchema(resource *apisv1alpha1.APIResourceSchema) apisv1alpha2.ResourceSchema {
	return apisv1alpha2.ResourceSchema{
		Name: resource.Spec.Names.Plural, Group: resource.Spec.Group, Schema: resource.Name,
		Storage: apisv1alpha2.ResourceSchemaStorage{CRD: &apisv1alpha2.ResourceSchemaStorageCRD{}},
	}
}

// bind binds an export in its own workspace, and waits until kcp has bound all its APIs.
func bind(ctx context.Context, t *testing.T, admin client.Client, export string) {
	t.Helper()
	binding := &apisv1alpha2.APIBinding{
		ObjectMeta: metav1.ObjectMeta{Name: export},
		Spec:       apisv1alpha2.APIBindingSpec{Reference: apisv1alpha2.BindingReference{Export: &apisv1alpha2.ExportBindingReference{Name: export}}},
	}
	if err := admin.Create(ctx, binding); err != nil {
		t.Fatal(err)
	}
	suite.Eventually(t, func(g Gomega) {
		g.Expect(admin.Get(ctx, client.ObjectKeyFromObject(binding), binding)).To(Succeed())
		failed := slices.DeleteFunc(slices.Clone(binding.Status.Conditions), func(condition conditionsv1alpha1.Condition) bool { return condition.Status == "True" })
		g.Expect(binding.Status.Phase).To(Equal(apisv1alpha2.APIBindingPhaseBound), "%v", failed)
		g.Expect(failed).To(BeEmpty())
	})
}
