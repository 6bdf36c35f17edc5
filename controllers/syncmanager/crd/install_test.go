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
	"context"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/synchub-dev/synchub/apis/schemas"
	"github.com/synchub-dev/synchub/controllers/plan/ownership"
	"github.com/synchub-dev/synchub/controllers/syncmanager/crd"
	"github.com/synchub-dev/synchub/provider/metrics/requestmetrics"
	"github.com/synchub-dev/synchub/test/fixtures"
	"github.com/synchub-dev/synchub/test/framework"
	"github.com/synchub-dev/synchub/test/framework/suite"
)

func TestInstall(t *testing.T) {
	t.Parallel()
	ours := func(name string) *apiextensionsv1.CustomResourceDefinition {
		crd, err := schemas.CRD(name)
		if err != nil {
			t.Fatal(err)
		}
		return crd
	}
	protected := unique("v1")
	protected.Spec.Group = "install.test.k8s.io"
	protected.Name = protected.Spec.Names.Plural + "." + protected.Spec.Group
	for name, source := range map[string]*apiextensionsv1.CustomResourceDefinition{
		"of two versions":          unique("v1", "v2"),
		"with all there is":        fixtures.Decode[*apiextensionsv1.CustomResourceDefinition](t, rich),
		"once v1beta1's":           fixtures.Decode[*apiextensionsv1.CustomResourceDefinition](t, legacy),
		"a large one":              ours("publishedresources.synchub.dev"),
		"a generated one":          ours("synctargets.edge.kubestellar.io"),
		"of a group of Kubernetes": protected,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g, ctx, way := NewWithT(t), t.Context(), newConnectedTarget(t)
			controller := startController(t, way)
			// Another run of this test may have left it.
			t.Cleanup(func() {
				ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), time.Minute)
				defer cancel()
				_ = framework.Delete(ctx, suite.Target(t).Config, definitions, "", source.Name)
			})
			controller.SetInstallations([]crd.Installation{installationOf(source)})
			g.Expect(controller.state(source)).To(HaveField("Reason", crd.ReasonPending))
			state := controller.waitForReason(t, source, crd.ReasonInSync)
			g.Expect(state.Ready).To(BeTrue())
			g.Expect(state.Installed).To(BeTrue())
			g.Expect(controller.changes.Load()).To(BeNumerically(">=", 1))
			g.Expect(way.writes(source.Name)).To(HaveLen(1))

			installed := getCRD(ctx, g, t, source.Name)
			g.Expect(installed.Labels).To(HaveKeyWithValue(ownership.InstalledByLabel, testOwner.LabelValue()))
			g.Expect(installed.Annotations).To(HaveKey(ownership.MarkAnnotation))
			g.Expect(installed.ManagedFields[0].Manager).To(Equal(ownership.FieldManager(testOwner.Hub)))
			g.Expect(installed.ManagedFields[0].Operation).To(Equal(metav1.ManagedFieldsOperationApply))
			g.Expect(installed.Spec.Conversion.Strategy).To(Equal(apiextensionsv1.NoneConverter))
			controller.stop()

			// A hub that starts finds everything in sync.
			second := newConnectedTarget(t)
			again := startController(t, second)
			again.SetInstallations([]crd.Installation{installationOf(source)})
			again.waitForReason(t, source, crd.ReasonInSync)
			g.Expect(second.writes(source.Name)).To(BeEmpty())
			g.Expect(second.reads(source.Name)).NotTo(BeEmpty())
			expectClasses(t)
		})
	}
}

// expectClasses checks the classes of all requests that this package's tests have made to targets.
func expectClasses(t *testing.T) {
	t.Helper()
	seen := map[string]int{}
	for _, one := range framework.Gather(t, requestmetrics.Collectors()...) {
		if one.Labels["resource"] == "customresourcedefinitions" {
			seen[one.Labels["verb"]+" "+one.Labels["class"]]++
		}
	}
	g := NewWithT(t)
	g.Expect(seen).To(HaveKey("get background"))
	g.Expect(seen).To(HaveKey("apply extra"))
	for _, unexpected := range []string{"get object", "apply object", "apply background"} {
		g.Expect(seen).NotTo(HaveKey(unexpected))
	}
}

func TestUpdate(t *testing.T) {
	t.Parallel()
	g, ctx, way := NewWithT(t), t.Context(), newConnectedTarget(t)
	controller := startController(t, way)
	first := unique("v1")
	first.Spec.Names.ShortNames = []string{first.Spec.Names.Plural + "s"}
	controller.SetInstallations([]crd.Installation{installationOf(first)})
	controller.waitForReason(t, first, crd.ReasonInSync)
	installed := getCRD(ctx, g, t, first.Name)

	second := first.DeepCopy()
	second.Spec.Names.ShortNames = nil
	second.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties = map[string]apiextensionsv1.JSONSchemaProps{"color": {Type: "string"}}
	addVersion("v2", true)(second)
	controller.SetInstallations([]crd.Installation{installationOf(second)})
	suite.Eventually(t, func(g Gomega) {
		updated := getCRD(ctx, g, t, first.Name)
		g.Expect(updated.Spec.Versions).To(HaveLen(2))
		g.Expect(updated.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties).To(And(HaveLen(1), HaveKey("color")))
		g.Expect(updated.Spec.Names.ShortNames).To(BeEmpty())
		g.Expect(updated.UID).To(Equal(installed.UID))
	})
	controller.waitForReason(t, first, crd.ReasonInSync)
	g.Expect(way.writes(first.Name)).To(HaveLen(2))

	// The hub undoes a change by another client.
	_, err := administrator(t).Resource(definitions).Patch(ctx, first.Name, types.MergePatchType,
		[]byte(`{"spec": {"names": {"shortNames": ["`+first.Spec.Names.Plural+`x"]}, "versions": [`+
			`{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {"type": "object"}}}]}}`),
		metav1.PatchOptions{FieldManager: "vandal"})
	g.Expect(err).NotTo(HaveOccurred())
	suite.Eventually(t, func(g Gomega) {
		g.Expect(getCRD(ctx, g, t, first.Name).Spec.Versions).To(HaveLen(2))
		g.Expect(way.writes(first.Name)).To(HaveLen(3))
	})
	// Fields of other clients that do not conflict stay, and the hub does not fight them.
	state := controller.waitForReason(t, first, crd.ReasonInSync)
	g.Expect(state.Ready).To(BeTrue())
	g.Expect(getCRD(ctx, g, t, first.Name).Spec.Names.ShortNames).NotTo(BeEmpty())
	// The second reconcile starts after the first has ended.
	for range 2 {
		reads := len(way.reads(first.Name))
		touch(t, first.Name)
		suite.Eventually(t, func(g Gomega) { g.Expect(len(way.reads(first.Name))).To(BeNumerically(">", reads)) })
	}
	controller.stop()
	g.Expect(way.writes(first.Name)).To(HaveLen(3))
}

// touch changes a part of a CRD that the hub does not manage.
func touch(t *testing.T, name string) {
	t.Helper()
	_, err := administrator(t).Resource(definitions).Patch(t.Context(), name, types.MergePatchType,
		[]byte(`{"metadata": {"annotations": {"touched": "`+unique().Name+`"}}}`), metav1.PatchOptions{})
	if err != nil {
		t.Fatal(err)
	}
}

func TestNeverDowngrades(t *testing.T) {
	t.Parallel()
	g, ctx, way := NewWithT(t), t.Context(), newConnectedTarget(t)
	controller := startController(t, way)
	newer := unique("v1", "v2")
	controller.SetInstallations([]crd.Installation{installationOf(newer)})
	controller.waitForReason(t, newer, crd.ReasonInSync)
	before := getCRD(ctx, g, t, newer.Name)

	older := newer.DeepCopy()
	older.Spec.Versions = older.Spec.Versions[:1]
	older.Spec.Versions[0].Storage = true
	controller.SetInstallations([]crd.Installation{installationOf(older)})
	state := controller.waitForReason(t, older, crd.ReasonNewer)
	g.Expect(state.Ready).To(BeTrue(), "it serves v1")
	g.Expect(state.Installed).To(BeTrue())
	g.Expect(state.Message).To(ContainSubstring("v2"))
	g.Expect(way.writes(newer.Name)).To(HaveLen(1))
	g.Expect(getCRD(ctx, g, t, newer.Name).ResourceVersion).To(Equal(before.ResourceVersion))

	// A user who needs the older versions must remove the newer ones.
	admin := administrator(t).Resource(definitions)
	_, err := admin.Patch(ctx, newer.Name, types.MergePatchType, []byte(`{"spec": {"versions": [`+
		`{"name": "v2", "served": false, "storage": false, "schema": {"openAPIV3Schema": {"type": "object"}}},`+
		`{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {"type": "object"}}}]}}`), metav1.PatchOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	_, err = admin.Patch(ctx, newer.Name, types.MergePatchType, []byte(`{"status": {"storedVersions": ["v1"]}}`), metav1.PatchOptions{}, "status")
	g.Expect(err).NotTo(HaveOccurred())
	_, err = admin.Patch(ctx, newer.Name, types.MergePatchType, []byte(`{"spec": {"versions": [`+
		`{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {"type": "object"}}}]}}`), metav1.PatchOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	controller.waitForReason(t, older, crd.ReasonInSync)
	g.Expect(getCRD(ctx, g, t, newer.Name).Spec.Versions[0].Schema.OpenAPIV3Schema.Properties).To(HaveKey("size"))
}

// The hub waits for a terminating CRD with all its custom resources, and then installs it again.
func TestInstallsAgain(t *testing.T) {
	t.Parallel()
	g, ctx, way := NewWithT(t), t.Context(), newConnectedTarget(t)
	controller := startController(t, way)
	source := unique("v1")
	controller.SetInstallations([]crd.Installation{installationOf(source)})
	controller.waitForReason(t, source, crd.ReasonInSync)
	first := getCRD(ctx, g, t, source.Name)
	deleteCRD(t, source.Name)
	suite.Eventually(t, func(g Gomega) { g.Expect(getCRD(ctx, g, t, source.Name).UID).NotTo(Equal(first.UID)) })
	controller.waitForReason(t, source, crd.ReasonInSync)
	second := getCRD(ctx, g, t, source.Name)

	resource := definitions
	resource.Group, resource.Version, resource.Resource = group, "v1", source.Spec.Names.Plural
	object := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": group + "/v1", "kind": source.Spec.Names.Kind,
		"metadata": map[string]any{"name": "held", "finalizers": []any{"tests.example.org/held"}},
	}}
	held := administrator(t).Resource(resource).Namespace(metav1.NamespaceDefault)
	suite.Eventually(t, func(g Gomega) {
		_, err := held.Create(ctx, object, metav1.CreateOptions{})
		g.Expect(err).NotTo(HaveOccurred())
	})
	deleteCRDWithObjects(t, source.Name)
	state := controller.waitForReason(t, source, crd.ReasonTerminating)
	g.Expect(state.Ready).To(BeFalse())
	g.Expect(state.Installed).To(BeTrue())
	writes := len(way.writes(source.Name))
	g.Expect(writes).To(Equal(2))
	_, err := held.Patch(ctx, "held", types.MergePatchType, []byte(`{"metadata": {"finalizers": null}}`), metav1.PatchOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	controller.waitForReason(t, source, crd.ReasonInSync)
	g.Expect(getCRD(ctx, g, t, source.Name).UID).NotTo(Equal(second.UID))
	g.Expect(way.writes(source.Name)).To(HaveLen(3))
}

// An API that the target serves itself needs no CRD.
func TestInstallsOnlyWhatIsNeeded(t *testing.T) {
	t.Parallel()
	g, way := NewWithT(t), newConnectedTarget(t)
	controller := startController(t, way)
	source := newCRD("deployments", "Deployment", "v1")
	source.Spec.Group, source.Name = "apps", "deployments.apps"
	controller.SetInstallations([]crd.Installation{installationOf(source)})
	state := controller.waitForReason(t, source, crd.ReasonNotNeeded)
	g.Expect(state.Ready).To(BeTrue())
	g.Expect(state.Installed).To(BeFalse())
	g.Expect(way.writes(source.Name)).To(BeEmpty())
}
