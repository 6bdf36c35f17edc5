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
	"errors"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	synchubv1alpha1 "github.com/synchub-dev/synchub/apis/synchub/v1alpha1"
	"github.com/synchub-dev/synchub/provider/discovery"
	"github.com/synchub-dev/synchub/provider/schemas"
	"github.com/synchub-dev/synchub/test/fixtures"
	"github.com/synchub-dev/synchub/test/framework/suite"
)

// ownGroup is the group of the CRDs that these tests create.
const ownGroup = "definitions.example.com"

// clockCRD has one version that is not served, two that are, and a conversion webhook.
const clockCRD = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: clocks.definitions.example.com
  labels: {team: a}
  annotations: {example.com/built-by: hand}
spec:
  group: definitions.example.com
  scope: Namespaced
  names: {plural: clocks, singular: clock, kind: Clock, listKind: ClockList, shortNames: [clk], categories: [all]}
  conversion:
    strategy: Webhook
    webhook: {conversionReviewVersions: [v1], clientConfig: {url: "https://127.0.0.1:1/convert"}}
  versions:
  - {name: v1alpha1, served: false, storage: false, schema: {openAPIV3Schema: {type: object}}}
  - name: v1beta1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {time: {type: string}, old: {type: string}}}}}}
  - name: v1
    served: true
    storage: false
    additionalPrinterColumns: [{name: Time, type: string, jsonPath: .spec.time}]
    subresources: {status: {}, scale: {specReplicasPath: .spec.hands, statusReplicasPath: .status.hands}}
    schema:
      openAPIV3Schema:
        description: A clock.
        type: object
        required: [spec]
        properties:
          spec:
            type: object
            required: [time]
            x-kubernetes-validations: [{rule: "self.time != self.zone", message: "no", fieldPath: .time}]
            properties:
              time: {type: string, maxLength: 9, default: "12:00", enum: ["12:00", "24:00"]}
              zone: {type: string, maxLength: 9, default: UTC}
              hands: {type: integer, format: int32, minimum: 2}
              port: {x-kubernetes-int-or-string: true, anyOf: [{type: integer}, {type: string}]}
              closed: {type: object}
              parts: {type: array, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [name], items: {type: object, required: [name], properties: {name: {type: string}, size: {type: number, nullable: true}}}}
              pod: {type: object, x-kubernetes-embedded-resource: true, x-kubernetes-preserve-unknown-fields: true}
            oneOf: [{required: [port]}, {properties: {hands: {maximum: 3}}}]
          status: {type: object, x-kubernetes-preserve-unknown-fields: true, properties: {hands: {type: integer}}}
`

func read(t *testing.T, config *rest.Config, resource synchubv1alpha1.ResourceDescriptor) (*apiextensionsv1.CustomResourceDefinition, error) {
	t.Helper()
	return discoveryClient(t, config).CRDFor(t.Context(), resource)
}

// installClockCRD creates the CRD, waits until it is served, and returns the result of CRDFor.
func installClockCRD(t *testing.T) *apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	suite.Apply(t, cluster(t), clockCRD)
	var crd *apiextensionsv1.CustomResourceDefinition
	suite.Eventually(t, func(g Gomega) {
		var err error
		crd, err = read(t, cluster(t), synchubv1alpha1.ResourceDescriptor{Group: ownGroup, Resource: "clocks"})
		g.Expect(err).NotTo(HaveOccurred())
	})
	return crd
}

func TestCRDForOfACRD(t *testing.T) {
	g := NewWithT(t)
	crd := installClockCRD(t)
	wanted := fixtures.Decode[*apiextensionsv1.CustomResourceDefinition](t, clockCRD)
	wanted.Labels, wanted.Annotations = nil, nil
	wanted.Spec.Conversion = &apiextensionsv1.CustomResourceConversion{Strategy: apiextensionsv1.NoneConverter}
	g.Expect(jsonOf(t, crd)).To(MatchJSON(jsonOf(t, wanted)))

	for name, resource := range map[string]synchubv1alpha1.ResourceDescriptor{
		"by its kind":     {Group: ownGroup, Kind: "Clock"},
		"by both":         {Group: ownGroup, Resource: "clocks", Kind: "Clock"},
		"for one version": {Group: ownGroup, Resource: "clocks", Version: "v1"},
		"for another":     {Group: ownGroup, Kind: "Clock", Version: "v1beta1"},
	} {
		again, err := read(t, cluster(t), resource)
		g.Expect(err).NotTo(HaveOccurred(), name)
		g.Expect(again).To(Equal(crd), name)
	}
}

// A user who may not read the CRD gets the same schema from the OpenAPI document.
func TestCRDForWithoutPermission(t *testing.T) {
	g := NewWithT(t)
	crd := installClockCRD(t)
	config := rest.CopyConfig(cluster(t))
	config.Impersonate = rest.ImpersonationConfig{UserName: "nobody", Groups: []string{"system:authenticated"}}
	_, err := suite.Dynamic(t, config).Resource(apiextensionsv1.SchemeGroupVersion.WithResource("customresourcedefinitions")).
		Get(t.Context(), crd.Name, metav1.GetOptions{})
	g.Expect(apierrors.IsForbidden(err)).To(BeTrue())

	// The document is updated a moment after the API.
	var published *apiextensionsv1.CustomResourceDefinition
	suite.Eventually(t, func(g Gomega) {
		published, err = read(t, config, synchubv1alpha1.ResourceDescriptor{Group: ownGroup, Resource: "clocks"})
		g.Expect(err).NotTo(HaveOccurred())
	})
	g.Expect(published.Annotations[schemas.NotesAnnotation]).To(ContainSubstring("clocks.definitions.example.com may not be read"))
	g.Expect(published.Spec.Names).To(Equal(crd.Spec.Names))
	g.Expect(published.Spec.Versions).To(HaveLen(2))
	for _, version := range published.Spec.Versions {
		original := crd.Spec.Versions[slices.IndexFunc(crd.Spec.Versions, func(candidate apiextensionsv1.CustomResourceDefinitionVersion) bool {
			return candidate.Name == version.Name
		})]
		g.Expect(version.Storage).To(Equal(version.Name == "v1"), "the preferred version")
		g.Expect(version.Subresources == nil).To(Equal(original.Subresources == nil))
		g.Expect(jsonOf(t, withoutMeta(version))).To(MatchJSON(jsonOf(t, withoutMeta(original))), version.Name)
	}
}

// withoutMeta returns the schema of a version without the fields that the server adds to the schemas of all kinds.
func withoutMeta(version apiextensionsv1.CustomResourceDefinitionVersion) *apiextensionsv1.JSONSchemaProps {
	schema := version.DeepCopy().Schema.OpenAPIV3Schema
	for _, name := range []string{"apiVersion", "kind", "metadata"} {
		delete(schema.Properties, name)
		delete(schema.Properties["spec"].Properties["pod"].Properties, name)
	}
	if pod, ok := schema.Properties["spec"].Properties["pod"]; ok {
		pod.Required, pod.Properties = nil, nil // the server adds fields to an embedded resource
		schema.Properties["spec"].Properties["pod"] = pod
	}
	return schema
}

func TestCRDForOfABuiltinKind(t *testing.T) {
	g := NewWithT(t)
	crd, err := read(t, cluster(t), synchubv1alpha1.ResourceDescriptor{Group: "apps", Kind: "Deployment"})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(crd.Name).To(Equal("deployments.apps"))
	g.Expect(crd.Spec.Names).To(Equal(apiextensionsv1.CustomResourceDefinitionNames{
		Plural: "deployments", Singular: "deployment", Kind: "Deployment", ListKind: "DeploymentList", ShortNames: []string{"deploy"}, Categories: []string{"all"},
	}))
	g.Expect(crd.Spec.Scope).To(Equal(apiextensionsv1.NamespaceScoped))
	g.Expect(crd.Spec.Versions).To(HaveLen(1))
	version := crd.Spec.Versions[0]
	g.Expect(version.Subresources).To(Equal(&apiextensionsv1.CustomResourceSubresources{
		Status: &apiextensionsv1.CustomResourceSubresourceStatus{},
		Scale:  &apiextensionsv1.CustomResourceSubresourceScale{SpecReplicasPath: ".spec.replicas", StatusReplicasPath: ".status.replicas"},
	}))
	container := version.Schema.OpenAPIV3Schema.Properties["spec"].Properties["template"].Properties["spec"].Properties["containers"]
	g.Expect(*container.XListType).To(Equal("map"))
	g.Expect(container.Items.Schema.Required).To(Equal([]string{"name"}))
	g.Expect(container.Items.Schema.Properties["ports"].XListMapKeys).To(Equal([]string{"containerPort", "protocol"}))
	g.Expect(string(container.Items.Schema.Properties["ports"].Items.Schema.Properties["protocol"].Default.Raw)).To(Equal(`"TCP"`))
	g.Expect(crd.Annotations).To(Equal(map[string]string{schemas.NamesAnnotation: schemas.AnyName}))

	pods, err := read(t, cluster(t), synchubv1alpha1.ResourceDescriptor{Resource: "pods"})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(pods.Name).To(Equal("pods.core"))
	g.Expect(pods.Spec.Group).To(BeEmpty())

	nodes, err := read(t, cluster(t), synchubv1alpha1.ResourceDescriptor{Kind: "Node", Version: "v1"})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(nodes.Spec.Scope).To(Equal(apiextensionsv1.ClusterScoped))

	scalers, err := read(t, cluster(t), synchubv1alpha1.ResourceDescriptor{Group: "autoscaling", Resource: "horizontalpodautoscalers"})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(scalers.Spec.Versions).To(HaveLen(2))
	for _, version := range scalers.Spec.Versions {
		g.Expect(version.Served).To(BeTrue())
		g.Expect(version.Storage).To(Equal(version.Name == "v2"))
	}
	scalers, err = read(t, cluster(t), synchubv1alpha1.ResourceDescriptor{Group: "autoscaling", Resource: "horizontalpodautoscalers", Version: "v1"})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(scalers.Spec.Versions).To(HaveLen(1))
	g.Expect(scalers.Spec.Versions[0].Storage).To(BeTrue())
}

func TestCRDForOfUnservedResources(t *testing.T) {
	installClockCRD(t)
	for name, test := range map[string]struct {
		resource synchubv1alpha1.ResourceDescriptor
		unusable string // empty if it is not served
	}{
		"a group":                {synchubv1alpha1.ResourceDescriptor{Group: "none.example.com", Resource: "clocks"}, ""},
		"a resource":             {synchubv1alpha1.ResourceDescriptor{Group: "apps", Resource: "clocks"}, ""},
		"a resource of the core": {synchubv1alpha1.ResourceDescriptor{Resource: "clocks"}, ""},
		"a kind":                 {synchubv1alpha1.ResourceDescriptor{Group: "apps", Kind: "Clock"}, ""},
		"a version of a group":   {synchubv1alpha1.ResourceDescriptor{Group: "apps", Resource: "deployments", Version: "v9"}, ""},
		"a version not served":   {synchubv1alpha1.ResourceDescriptor{Group: ownGroup, Resource: "clocks", Version: "v1alpha1"}, ""},
		"another kind":           {synchubv1alpha1.ResourceDescriptor{Group: "apps", Resource: "deployments", Kind: "StatefulSet"}, ""},
		"a subresource":          {synchubv1alpha1.ResourceDescriptor{Group: "apps", Kind: "Scale"}, ""},
		"only list":              {synchubv1alpha1.ResourceDescriptor{Resource: "componentstatuses"}, "without watch"},
		"only create":            {synchubv1alpha1.ResourceDescriptor{Group: "authorization.k8s.io", Kind: "SubjectAccessReview"}, "without get"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := read(t, cluster(t), test.resource)
			unusable, found := errors.AsType[*discovery.UnusableError](err)
			switch {
			case test.unusable == "" && !errors.Is(err, discovery.ErrNotServed):
				t.Errorf("got %v, wanted that it is not served", err)
			case test.unusable != "" && (!found || !strings.Contains(unusable.Reason, test.unusable)):
				t.Errorf("got %v, wanted %q", err, test.unusable)
			}
		})
	}
}

// CRDFor does not use a terminating CRD, although it is served until its objects are gone.
func TestCRDForOfATerminatingCRD(t *testing.T) {
	g := NewWithT(t)
	manifest := strings.NewReplacer("clock", "watche", "Clock", "Watche", "clk", "wtc").Replace(clockCRD)
	suite.Apply(t, cluster(t), manifest)
	resource := synchubv1alpha1.ResourceDescriptor{Group: ownGroup, Resource: "watches"}
	suite.Eventually(t, func(g Gomega) {
		_, err := read(t, cluster(t), resource)
		g.Expect(err).NotTo(HaveOccurred())
	})
	suite.Apply(t, cluster(t), `{apiVersion: definitions.example.com/v1beta1, kind: Watche, metadata: {name: kept, namespace: default, finalizers: [example.com/kept]}}`)
	crds := suite.Dynamic(t, cluster(t)).Resource(apiextensionsv1.SchemeGroupVersion.WithResource("customresourcedefinitions"))
	g.Expect(crds.Delete(t.Context(), "watches.definitions.example.com", metav1.DeleteOptions{})).To(Succeed())
	_, err := read(t, cluster(t), resource)
	g.Expect(err).To(MatchError(ContainSubstring("is being deleted")))
}
