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
	"sync"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/synchub-dev/synchub/controllers/syncmanager/crd"
	"github.com/synchub-dev/synchub/test/framework/suite"
)

// A CRD that is no longer desired stays with ReasonKept. The hub manages it again when it is desired again.
func TestControllerKeepsUnwantedCRDs(t *testing.T) {
	t.Parallel()
	g, ctx, way := NewWithT(t), t.Context(), newConnectedTarget(t)
	source, theirs, never := unique("v1"), unique("v1"), unique("v1")
	never.Spec.Versions[0].Storage = false // no API server accepts it
	createCRD(t, theirs)
	controller := startController(t, way)
	all := []crd.Installation{installationOf(source), installationOf(theirs), installationOf(never)}
	controller.SetInstallations(all)
	controller.waitForReason(t, source, crd.ReasonInSync)
	controller.waitForReason(t, theirs, crd.ReasonNotOwned)
	controller.waitForReason(t, never, crd.ReasonInvalid)
	before := getCRD(ctx, g, t, source.Name)

	controller.SetInstallations(nil)
	suite.Eventually(t, func(g Gomega) {
		g.Expect(controller.States()).To(HaveLen(1))
		state := controller.state(source)
		g.Expect(state.Reason).To(Equal(crd.ReasonKept))
		g.Expect(state.Ready).To(BeFalse())
		g.Expect(state.Installed).To(BeTrue())
	})
	g.Expect(getCRD(ctx, g, t, source.Name).ResourceVersion).To(Equal(before.ResourceVersion))
	// The hub no longer reacts to its changes.
	reads := len(way.reads(source.Name))
	touch(t, source.Name)
	controller.SetInstallations(all)
	controller.waitForReason(t, source, crd.ReasonInSync)
	g.Expect(len(way.reads(source.Name))).To(BeNumerically(">", reads))
	g.Expect(way.writes(source.Name)).To(HaveLen(1), "it is what it was")
}

// Setting equal installations again causes no requests.
func TestControllerIgnoresEqualInstallations(t *testing.T) {
	t.Parallel()
	g, way := NewWithT(t), newConnectedTarget(t)
	source, other, next := unique("v1"), unique("v1"), unique("v1")
	other.Spec.Names, other.Name = source.Spec.Names, source.Name
	controller := startController(t, way)
	first := installationOf(source)
	second := crd.Installation{PublishedResource: "second", UID: "second", CRD: other}
	controller.SetInstallations([]crd.Installation{first, second})
	controller.waitForReason(t, source, crd.ReasonInSync)
	controller.SetInstallations([]crd.Installation{first, second, installationOf(next)})
	controller.waitForReason(t, next, crd.ReasonInSync)
	reads := way.reads(source.Name)

	copied := first
	copied.CRD = source.DeepCopy()
	copied.CRD.ResourceVersion = "7"
	last := unique("v1")
	controller.SetInstallations([]crd.Installation{copied, second, installationOf(next), installationOf(last)})
	controller.waitForReason(t, last, crd.ReasonInSync)
	g.Expect(way.reads(source.Name)).To(Equal(reads))
	g.Expect(way.writes(source.Name)).To(HaveLen(1), "the first of two counts")

	// The mark names the PublishedResource, so the CRD is written again.
	controller.SetInstallations([]crd.Installation{second})
	suite.Eventually(t, func(g Gomega) {
		g.Expect(getCRD(t.Context(), g, t, source.Name).Annotations).To(ContainElement(ContainSubstring(`"name":"second"`)))
	})
	g.Expect(way.writes(source.Name)).To(HaveLen(2))
}

// SetInstallations may be called while a reconcile of the same CRD is running.
func TestControllerFollowsChangedInstallations(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*runningController, crd.Installation){
		"to nothing":        func(r *runningController, _ crd.Installation) { r.SetInstallations(nil) },
		"to something else": func(r *runningController, changed crd.Installation) { r.SetInstallations([]crd.Installation{changed}) },
		"to nothing, and back": func(r *runningController, changed crd.Installation) {
			r.SetInstallations(nil)
			r.SetInstallations([]crd.Installation{changed})
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g, way := NewWithT(t), newConnectedTarget(t)
			source := unique("v1")
			changed := source.DeepCopy()
			changed.Spec.Versions[0].Schema.OpenAPIV3Schema.Description = "changed"
			arrived, let := make(chan struct{}), make(chan struct{})
			release := sync.OnceFunc(func() { close(let) })
			defer release()
			way.beforeWriting(source.Name, func() {
				close(arrived)
				<-let
			})
			controller := startController(t, way)
			controller.SetInstallations([]crd.Installation{installationOf(source)})
			g.Eventually(arrived).Should(BeClosed())
			change(controller, installationOf(changed))
			release()
			if name == "to nothing" {
				controller.waitForReason(t, source, crd.ReasonKept)
				return
			}
			controller.waitForReason(t, source, crd.ReasonInSync)
			g.Expect(getCRD(t.Context(), g, t, source.Name).Spec.Versions[0].Schema.OpenAPIV3Schema.Description).To(Equal("changed"))
			g.Expect(way.writes(source.Name)).To(HaveLen(2))
		})
	}
}
