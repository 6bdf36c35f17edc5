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
	"time"

	. "github.com/onsi/gomega"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/synchub-dev/synchub/controllers/plan/ownership"
	"github.com/synchub-dev/synchub/controllers/syncmanager/crd"
	"github.com/synchub-dev/synchub/test/framework/suite"
)

func TestForeign(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		// change turns the CRD that the hub would install into a foreign one.
		change  func(*apiextensionsv1.CustomResourceDefinition)
		version string
		reason  string
	}{
		"of somebody else":                  {notMarked, "v1", crd.ReasonNotOwned},
		"of somebody else, of another time": {notMarked, "v2", crd.ReasonVersionNotServed},
		"of another hub":                    {withMark(func(mark *ownership.Mark) { mark.Hub = "another" }), "v1", crd.ReasonNotOwned},
		"from a mailbox": {
			both(
				withMark(func(mark *ownership.Mark) {
					mark.Source = ownership.Source{Group: "apiextensions.k8s.io", Resource: "customresourcedefinitions", Name: mark.Self.Name, UID: "u"}
				}),
				func(object *apiextensionsv1.CustomResourceDefinition) {
					object.Labels = map[string]string{ownership.OwnerLabel: testOwner.LabelValue()}
				}),
			"v1", crd.ReasonNotOwned,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g, ctx, way := NewWithT(t), t.Context(), newConnectedTarget(t)
			source := unique("v1")
			theirs := desired(t, source)
			c.change(theirs)
			theirs.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties = nil
			createCRD(t, theirs)
			suite.Eventually(t, func(g Gomega) { g.Expect(getCRD(ctx, g, t, source.Name).Status.StoredVersions).NotTo(BeEmpty()) })
			controller := startController(t, way)
			asked := installationOf(source)
			asked.Version = c.version
			controller.SetInstallations([]crd.Installation{asked})
			var found *apiextensionsv1.CustomResourceDefinition
			suite.Eventually(t, func(g Gomega) {
				state := controller.state(source)
				g.Expect(state.Reason).To(Equal(c.reason))
				g.Expect(state.Ready).To(Equal(c.reason == crd.ReasonNotOwned))
				g.Expect(state.Installed).To(BeFalse())
				found = getCRD(ctx, g, t, source.Name)
			})
			g.Expect(found.ManagedFields).NotTo(ContainElement(HaveField("Manager", ownership.FieldManager(testOwner.Hub))))
			g.Expect(found.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties).To(BeEmpty())
			g.Expect(way.writes(source.Name)).To(BeEmpty())

			// Once the foreign CRD is deleted, the hub installs its own.
			deleteCRD(t, source.Name)
			suite.Eventually(t, func(g Gomega) {
				g.Expect(getCRD(ctx, g, t, source.Name).Spec.Versions[0].Schema.OpenAPIV3Schema.Properties).NotTo(BeEmpty())
				g.Expect(controller.state(source).Installed).To(BeTrue())
			})
		})
	}
}

// A change between a read and a write is neither overwritten nor taken for the hub's.
func TestRaces(t *testing.T) {
	t.Parallel()
	t.Run("somebody else installs it first", func(t *testing.T) {
		t.Parallel()
		g, ctx, way := NewWithT(t), t.Context(), newConnectedTarget(t)
		source := unique("v1")
		theirs := source.DeepCopy()
		theirs.Spec.Versions[0].Schema.OpenAPIV3Schema.Description = "theirs"
		way.beforeWriting(source.Name, func() { createCRD(t, theirs) })
		state, err := crd.NewInstaller(way.Connection, testOwner, clock.RealClock{}).Ensure(ctx, installationOf(source))
		g.Expect(err).NotTo(HaveOccurred(), "one more read is enough")
		g.Expect(state.Installed).To(BeFalse())
		g.Expect(way.writes(source.Name)).To(HaveLen(1))
		g.Expect(way.reads(source.Name)).To(HaveLen(2))
		g.Expect(getCRD(ctx, g, t, source.Name).Spec.Versions[0].Schema.OpenAPIV3Schema.Description).To(Equal("theirs"))
	})
	t.Run("a hub before us installed it", func(t *testing.T) {
		t.Parallel()
		g, ctx, way, other := NewWithT(t), t.Context(), newConnectedTarget(t), newConnectedTarget(t)
		source := unique("v1")
		older := source.DeepCopy()
		older.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties = nil
		way.beforeWriting(source.Name, func() {
			_, err := crd.NewInstaller(other.Connection, testOwner, clocktesting.NewFakePassiveClock(time.Now())).Ensure(ctx, installationOf(older))
			if err != nil {
				t.Error(err)
			}
		})
		controller := startController(t, way)
		controller.SetInstallations([]crd.Installation{installationOf(source)})
		controller.waitForReason(t, source, crd.ReasonInSync)
		g.Expect(other.writes(source.Name)).To(HaveLen(1))
		g.Expect(getCRD(ctx, g, t, source.Name).Spec.Versions[0].Schema.OpenAPIV3Schema.Properties).To(HaveKey("size"))
	})
	t.Run("somebody else replaces it", func(t *testing.T) {
		t.Parallel()
		g, ctx, way := NewWithT(t), t.Context(), newConnectedTarget(t)
		source := unique("v1")
		controller := startController(t, way)
		controller.SetInstallations([]crd.Installation{installationOf(source)})
		controller.waitForReason(t, source, crd.ReasonInSync)
		theirs := source.DeepCopy()
		theirs.Spec.Versions[0].Schema.OpenAPIV3Schema.Description = "theirs"
		changed := source.DeepCopy()
		changed.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties = nil
		way.beforeWriting(source.Name, func() {
			deleteCRD(t, source.Name)
			// The API server deletes it in the background.
			suite.Eventually(t, func(g Gomega) {
				_, err := administrator(t).Resource(definitions).Get(ctx, source.Name, metav1.GetOptions{})
				g.Expect(err).To(HaveOccurred())
			})
			createCRD(t, theirs)
		})
		controller.SetInstallations([]crd.Installation{installationOf(changed)})
		controller.waitForReason(t, source, crd.ReasonNotOwned)
		g.Expect(getCRD(ctx, g, t, source.Name).Spec.Versions[0].Schema.OpenAPIV3Schema.Description).To(Equal("theirs"))
	})
}

// Two writers that fight over a CRD write less and less often, and the state names the other writer.
func TestContended(t *testing.T) {
	t.Parallel()
	g, ctx, way, now := NewWithT(t), t.Context(), newConnectedTarget(t), clocktesting.NewFakePassiveClock(time.Now())
	installer := crd.NewInstaller(way.Connection, testOwner, now)
	source := unique("v1")
	ensure := func() crd.State {
		t.Helper()
		state, err := installer.Ensure(ctx, installationOf(source))
		g.Expect(err).NotTo(HaveOccurred())
		return state
	}
	vandalise := func() {
		t.Helper()
		_, err := administrator(t).Resource(definitions).Patch(ctx, source.Name, types.MergePatchType, []byte(`{"spec": {"versions": [`+
			`{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {"type": "object"}}}]}}`),
			metav1.PatchOptions{FieldManager: "vandal"})
		g.Expect(err).NotTo(HaveOccurred())
	}
	repaired := func() bool {
		return len(getCRD(ctx, g, t, source.Name).Spec.Versions[0].Schema.OpenAPIV3Schema.Properties) > 0
	}
	g.Expect(ensure().Installed).To(BeTrue())
	for range 2 {
		vandalise()
		g.Expect(ensure().Installed).To(BeTrue())
		g.Expect(repaired()).To(BeTrue())
	}
	suite.Eventually(t, func(g Gomega) { g.Expect(ensure().Reason).To(Equal(crd.ReasonInSync)) })
	vandalise()
	writes := len(way.writes(source.Name))
	state := ensure()
	g.Expect(state.Reason).To(Equal(crd.ReasonContended))
	g.Expect(state.Message).To(And(ContainSubstring("vandal"), ContainSubstring(".spec.versions")))
	g.Expect(state.Ready && state.Installed).To(BeTrue())
	g.Expect(state.RequeueAfter).To(BeNumerically(">", 0))
	g.Expect(way.writes(source.Name)).To(HaveLen(writes))
	g.Expect(repaired()).To(BeFalse())
	now.SetTime(now.Now().Add(state.RequeueAfter))
	g.Expect(ensure().Reason).To(Equal(crd.ReasonInSync))
	g.Expect(repaired()).To(BeTrue())

	// A write because the desired CRD changed does not count as a repair.
	vandalise()
	source.Spec.Names.ShortNames = []string{source.Spec.Names.Plural + "s"}
	g.Expect(ensure().Reason).To(Equal(crd.ReasonInSync))
	g.Expect(repaired()).To(BeTrue())

	// A writer that deletes the CRD again and again is contention, too.
	for range 3 {
		deleteCRD(t, source.Name)
		suite.Eventually(t, func(g Gomega) {
			g.Expect(ensure().Reason).NotTo(BeElementOf(crd.ReasonTerminating, crd.ReasonNotNeeded))
		})
	}
	state = ensure()
	g.Expect(state.Reason).To(Equal(crd.ReasonContended))
	g.Expect(state.Message).To(ContainSubstring("removing"))
	g.Expect(state.Ready || state.Installed).To(BeFalse())
}
