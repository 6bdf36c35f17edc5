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

package definition_test

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/synchub-dev/synchub/controllers/definition"
	"github.com/synchub-dev/synchub/controllers/sync/ownership"
)

func TestForeign(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		// change makes of what we would have installed what somebody else has.
		change  func(*apiextensionsv1.CustomResourceDefinition)
		version string
		reason  string
	}{
		"of somebody else":                  {notMarked, "v1", definition.ReasonNotOwned},
		"of somebody else, of another time": {notMarked, "v2", definition.ReasonVersionNotServed},
		"of another hub":                    {remarked(func(mark *ownership.Mark) { mark.Hub = "another" }), "v1", definition.ReasonNotOwned},
		"from a mailbox": {
			both(
				remarked(func(mark *ownership.Mark) {
					mark.Source = ownership.Source{Group: "apiextensions.k8s.io", Resource: "customresourcedefinitions", Name: mark.Self.Name, UID: "u"}
				}),
				func(crd *apiextensionsv1.CustomResourceDefinition) {
					crd.Labels = map[string]string{ownership.OwnerLabel: us.LabelValue()}
				}),
			"v1", definition.ReasonNotOwned,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g, ctx, way := NewWithT(t), t.Context(), newUpWay(t)
			source := unique("v1")
			theirs := desired(t, source)
			c.change(theirs)
			theirs.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties = nil
			put(t, theirs)
			eventually(t, func(g Gomega) { g.Expect(get(ctx, g, t, source.Name).Status.StoredVersions).NotTo(BeEmpty()) })
			keeper := keep(t, way)
			asked := wanted(source)
			asked.Version = c.version
			keeper.Set([]definition.Wanted{asked})
			var found *apiextensionsv1.CustomResourceDefinition
			eventually(t, func(g Gomega) {
				state := keeper.state(source)
				g.Expect(state.Reason).To(Equal(c.reason))
				g.Expect(state.Ready).To(Equal(c.reason == definition.ReasonNotOwned))
				g.Expect(state.Installed).To(BeFalse())
				found = get(ctx, g, t, source.Name)
			})
			g.Expect(found.ManagedFields).NotTo(ContainElement(HaveField("Manager", ownership.FieldManager(us.Hub))))
			g.Expect(found.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties).To(BeEmpty())
			g.Expect(way.writes(source.Name)).To(BeEmpty())

			// Once it has made room, ours is installed.
			remove(t, source.Name)
			eventually(t, func(g Gomega) {
				g.Expect(get(ctx, g, t, source.Name).Spec.Versions[0].Schema.OpenAPIV3Schema.Properties).NotTo(BeEmpty())
				g.Expect(keeper.state(source).Installed).To(BeTrue())
			})
		})
	}
}

// What comes between a look and a write is neither overwritten nor taken for ours.
func TestRaces(t *testing.T) {
	t.Parallel()
	t.Run("somebody else installs it first", func(t *testing.T) {
		t.Parallel()
		g, ctx, way := NewWithT(t), t.Context(), newUpWay(t)
		source := unique("v1")
		theirs := source.DeepCopy()
		theirs.Spec.Versions[0].Schema.OpenAPIV3Schema.Description = "theirs"
		way.beforeWriting(source.Name, func() { put(t, theirs) })
		state, err := definition.NewInstaller(way.Connection, us, clock.RealClock{}).Ensure(ctx, wanted(source))
		g.Expect(err).NotTo(HaveOccurred(), "it is read once more, and that says all")
		g.Expect(state.Installed).To(BeFalse())
		g.Expect(way.writes(source.Name)).To(HaveLen(1))
		g.Expect(way.reads(source.Name)).To(HaveLen(2))
		g.Expect(get(ctx, g, t, source.Name).Spec.Versions[0].Schema.OpenAPIV3Schema.Description).To(Equal("theirs"))
	})
	t.Run("a hub before us installed it", func(t *testing.T) {
		t.Parallel()
		g, ctx, way, other := NewWithT(t), t.Context(), newUpWay(t), newUpWay(t)
		source := unique("v1")
		older := source.DeepCopy()
		older.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties = nil
		way.beforeWriting(source.Name, func() {
			_, err := definition.NewInstaller(other.Connection, us, clocktesting.NewFakePassiveClock(time.Now())).Ensure(ctx, wanted(older))
			if err != nil {
				t.Error(err)
			}
		})
		keeper := keep(t, way)
		keeper.Set([]definition.Wanted{wanted(source)})
		keeper.reaches(t, source, definition.ReasonInStep)
		g.Expect(other.writes(source.Name)).To(HaveLen(1))
		g.Expect(get(ctx, g, t, source.Name).Spec.Versions[0].Schema.OpenAPIV3Schema.Properties).To(HaveKey("size"))
	})
	t.Run("somebody else replaces it", func(t *testing.T) {
		t.Parallel()
		g, ctx, way := NewWithT(t), t.Context(), newUpWay(t)
		source := unique("v1")
		keeper := keep(t, way)
		keeper.Set([]definition.Wanted{wanted(source)})
		keeper.reaches(t, source, definition.ReasonInStep)
		theirs := source.DeepCopy()
		theirs.Spec.Versions[0].Schema.OpenAPIV3Schema.Description = "theirs"
		changed := source.DeepCopy()
		changed.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties = nil
		way.beforeWriting(source.Name, func() {
			remove(t, source.Name)
			// The API server makes it go in the background.
			eventually(t, func(g Gomega) {
				_, err := administrator(t).Resource(definitions).Get(ctx, source.Name, metav1.GetOptions{})
				g.Expect(err).To(HaveOccurred())
			})
			put(t, theirs)
		})
		keeper.Set([]definition.Wanted{wanted(changed)})
		keeper.reaches(t, source, definition.ReasonNotOwned)
		g.Expect(get(ctx, g, t, source.Name).Spec.Versions[0].Schema.OpenAPIV3Schema.Description).To(Equal("theirs"))
	})
}

// Two that fight over a definition do so less and less often, and the loser says with whom.
func TestContended(t *testing.T) {
	t.Parallel()
	g, ctx, way, now := NewWithT(t), t.Context(), newUpWay(t), clocktesting.NewFakePassiveClock(time.Now())
	installer := definition.NewInstaller(way.Connection, us, now)
	source := unique("v1")
	ensure := func() definition.State {
		t.Helper()
		state, err := installer.Ensure(ctx, wanted(source))
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
		return len(get(ctx, g, t, source.Name).Spec.Versions[0].Schema.OpenAPIV3Schema.Properties) > 0
	}
	g.Expect(ensure().Installed).To(BeTrue())
	for range 2 {
		vandalise()
		g.Expect(ensure().Installed).To(BeTrue())
		g.Expect(repaired()).To(BeTrue())
	}
	eventually(t, func(g Gomega) { g.Expect(ensure().Reason).To(Equal(definition.ReasonInStep)) })
	vandalise()
	writes := len(way.writes(source.Name))
	state := ensure()
	g.Expect(state.Reason).To(Equal(definition.ReasonContended))
	g.Expect(state.Message).To(And(ContainSubstring("vandal"), ContainSubstring(".spec.versions")))
	g.Expect(state.Ready && state.Installed).To(BeTrue())
	g.Expect(state.Again).To(BeNumerically(">", 0))
	g.Expect(way.writes(source.Name)).To(HaveLen(writes))
	g.Expect(repaired()).To(BeFalse())
	now.SetTime(now.Now().Add(state.Again))
	g.Expect(ensure().Reason).To(Equal(definition.ReasonInStep))
	g.Expect(repaired()).To(BeTrue())

	// What must be has changed: that is no fight.
	vandalise()
	source.Spec.Names.ShortNames = []string{source.Spec.Names.Plural + "s"}
	g.Expect(ensure().Reason).To(Equal(definition.ReasonInStep))
	g.Expect(repaired()).To(BeTrue())

	// Whoever removes it again and again is a rival too.
	for range 3 {
		remove(t, source.Name)
		eventually(t, func(g Gomega) {
			g.Expect(ensure().Reason).NotTo(BeElementOf(definition.ReasonTerminating, definition.ReasonNotNeeded))
		})
	}
	state = ensure()
	g.Expect(state.Reason).To(Equal(definition.ReasonContended))
	g.Expect(state.Message).To(ContainSubstring("removing"))
	g.Expect(state.Ready || state.Installed).To(BeFalse())
}
