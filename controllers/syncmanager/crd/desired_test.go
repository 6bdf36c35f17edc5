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

package crd_test

import (
	"testing"

	. "github.com/onsi/gomega"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/synchub-dev/synchub/controllers/plan/ownership"
	"github.com/synchub-dev/synchub/controllers/syncmanager/crd"
	"github.com/synchub-dev/synchub/test/fixtures"
)

// legacy is a CRD that once was v1beta1, with all the fields that only its own cluster can use.
const legacy = `
metadata:
  name: widgets.tests.example.org
  uid: source
  resourceVersion: "1"
  labels: {app.kubernetes.io/managed-by: Helm}
  annotations: {meta.helm.sh/release-name: widgets, cert-manager.io/inject-ca-from: widgets/ca}
  finalizers: [customresourcecleanup.apiextensions.k8s.io]
  ownerReferences: [{apiVersion: v1, kind: ConfigMap, name: owner, uid: owner}]
spec:
  group: tests.example.org
  scope: Namespaced
  names: {plural: widgets, kind: Widget, shortNames: [wi]}
  preserveUnknownFields: true
  conversion:
    strategy: Webhook
    webhook: {conversionReviewVersions: [v1], clientConfig: {service: {namespace: widgets, name: webhook}}}
  versions:
  - {name: v1, served: true, storage: true}
  - {name: v2, served: true, storage: false, schema: {openAPIV3Schema: {type: object, description: A widget.}}}
status:
  storedVersions: [v1]
  acceptedNames: {plural: widgets, kind: Widget}
  conditions: [{type: Established, status: "True", lastTransitionTime: null, reason: "", message: ""}]
`

func TestDesired(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	source := fixtures.Decode[*apiextensionsv1.CustomResourceDefinition](t, legacy)
	before := source.DeepCopy()
	found, err := crd.Desired(installationOf(source), testOwner)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(source).To(Equal(before), "others share it")

	self := ownership.Self{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition", Name: "widgets.tests.example.org"}
	mark, err := testOwner.Verify(found.Annotations, self)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(mark.Source).To(Equal(ownership.Source{Group: "synchub.dev", Resource: "publishedresources", Name: "published", UID: "published-uid"}))
	g.Expect(found.Labels).To(Equal(map[string]string{ownership.InstalledByLabel: testOwner.LabelValue()}), "the label of synced objects is not ours to use")
	g.Expect(found.Annotations).To(HaveLen(1))
	g.Expect(found.UID).To(BeEmpty())
	g.Expect(found.OwnerReferences).To(BeEmpty())
	g.Expect(found.Finalizers).To(BeEmpty())
	g.Expect(found.Status).To(BeZero())

	g.Expect(found.Spec.Conversion).To(Equal(&apiextensionsv1.CustomResourceConversion{Strategy: apiextensionsv1.NoneConverter}))
	g.Expect(found.Spec.PreserveUnknownFields).To(BeFalse())
	g.Expect(found.Spec.Names).To(Equal(apiextensionsv1.CustomResourceDefinitionNames{
		Plural: "widgets", Singular: "widget", Kind: "Widget", ListKind: "WidgetList", ShortNames: []string{"wi"},
	}))
	g.Expect(found.Spec.Versions).To(HaveLen(2))
	g.Expect(found.Spec.Versions[0].Storage).To(BeTrue())
	g.Expect(found.Spec.Versions[0].Schema.OpenAPIV3Schema).To(Equal(&apiextensionsv1.JSONSchemaProps{Type: "object", XPreserveUnknownFields: new(true)}))
	g.Expect(found.Spec.Versions[1].Schema.OpenAPIV3Schema).To(Equal(&apiextensionsv1.JSONSchemaProps{
		Type: "object", Description: "A widget.", XPreserveUnknownFields: new(true),
	}))
}

func TestDesiredOfKubernetesGroups(t *testing.T) {
	t.Parallel()
	const approved = apiextensionsv1.KubeAPIApprovedAnnotation
	for name, c := range map[string]struct{ group, annotation, expected string }{
		"its own approval": {"gateway.networking.k8s.io", "https://example.org/1", "https://example.org/1"},
		"none":             {"gateway.networking.k8s.io", "", "unapproved, installed for the API of the mailboxes"},
		"not needed":       {"tests.example.org", "https://example.org/1", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			source := newCRD("widgets", "Widget", "v1")
			source.Spec.Group, source.Annotations = c.group, map[string]string{approved: c.annotation}
			NewWithT(t).Expect(desired(t, source).Annotations[approved]).To(Equal(c.expected))
		})
	}
}

func TestDesiredRefuses(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change  func(*apiextensionsv1.CustomResourceDefinition)
		message string
	}{
		"no group":            {func(object *apiextensionsv1.CustomResourceDefinition) { object.Spec.Group = "" }, "spec.group"},
		"no plural":           {func(object *apiextensionsv1.CustomResourceDefinition) { object.Spec.Names.Plural = "" }, "spec.names.plural"},
		"a name with a path":  {func(object *apiextensionsv1.CustomResourceDefinition) { object.Spec.Names.Plural = "../widgets" }, "spec.names.plural"},
		"a group with a path": {func(object *apiextensionsv1.CustomResourceDefinition) { object.Spec.Group = "example.org/../.." }, "spec.group"},
		"a default not JSON":  {func(object *apiextensionsv1.CustomResourceDefinition) { withDefault(object, "{") }, "spec"},
		"a default with more": {func(object *apiextensionsv1.CustomResourceDefinition) { withDefault(object, "{} {}") }, "spec"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			source := newCRD("widgets", "Widget", "v1")
			c.change(source)
			_, err := crd.Desired(installationOf(source), testOwner)
			NewWithT(t).Expect(err).To(MatchError(And(HavePrefix("the definition "), ContainSubstring(c.message))))
		})
	}
}

func withDefault(object *apiextensionsv1.CustomResourceDefinition, raw string) {
	object.Spec.Versions[0].Schema.OpenAPIV3Schema.Default = &apiextensionsv1.JSON{Raw: []byte(raw)}
}
