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
	"net/http"
	"sync/atomic"
	"testing"

	. "github.com/onsi/gomega"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/synchub-dev/synchub/controllers/syncmanager/crd"
	"github.com/synchub-dev/synchub/test/framework/suite"
)

// A name conflict is reported, and the CRD is established once the name is free.
func TestNamesConflict(t *testing.T) {
	t.Parallel()
	g, way := NewWithT(t), newConnectedTarget(t)
	source, other := unique("v1"), unique("v1")
	other.Spec.Names.Kind = source.Spec.Names.Kind
	createCRD(t, other)
	suite.Eventually(t, func(g Gomega) {
		g.Expect(getCRD(t.Context(), g, t, other.Name).Status.Conditions).To(ContainElement(HaveField("Type", apiextensionsv1.Established)))
	})
	controller := startController(t, way)
	controller.SetInstallations([]crd.Installation{installationOf(source)})
	suite.Eventually(t, func(g Gomega) {
		state := controller.state(source)
		g.Expect(state.Reason).To(Equal(crd.ReasonNamesNotAccepted))
		g.Expect(state.Message).To(ContainSubstring("already in use"))
		g.Expect(state.Ready).To(BeFalse())
		g.Expect(state.Installed).To(BeTrue())
	})
	deleteCRD(t, other.Name)
	controller.waitForReason(t, source, crd.ReasonInSync)
	g.Expect(way.writes(source.Name)).To(HaveLen(1))
}

// For a CRD that no target accepts, the state has the API server's message. Other CRDs are not delayed.
func TestInvalid(t *testing.T) {
	t.Parallel()
	g, way := NewWithT(t), newConnectedTarget(t)
	controller := startController(t, way)
	good, bad, unnamed := unique("v1"), unique("v1"), unique("v1")
	bad.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties = map[string]apiextensionsv1.JSONSchemaProps{"size": {Type: "strange"}}
	unnamed.Spec.Group = "Not A Group"
	controller.SetInstallations([]crd.Installation{installationOf(bad), installationOf(unnamed), installationOf(good)})
	controller.waitForReason(t, good, crd.ReasonInSync)
	state := controller.waitForReason(t, bad, crd.ReasonInvalid)
	g.Expect(state.Message).To(And(HavePrefix("Cannot install the definition: "), ContainSubstring("properties[size].type"), ContainSubstring("strange"), HaveSuffix(".")))
	g.Expect(state.Ready || state.Installed).To(BeFalse())
	unnamed.Name = unnamed.Spec.Names.Plural + "." + unnamed.Spec.Group
	state = controller.waitForReason(t, unnamed, crd.ReasonInvalid)
	g.Expect(state.Message).To(ContainSubstring("spec.group"))

	mended := bad.DeepCopy()
	mended.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties = nil
	controller.SetInstallations([]crd.Installation{installationOf(mended), installationOf(good)})
	controller.waitForReason(t, mended, crd.ReasonInSync)
	g.Expect(controller.States()).To(HaveLen(2))

	// After a refused change the existing CRD stays in use.
	controller.SetInstallations([]crd.Installation{installationOf(bad), installationOf(good)})
	state = controller.waitForReason(t, bad, crd.ReasonInvalid)
	g.Expect(state.Message).To(HavePrefix("Cannot change the definition: "))
	g.Expect(state.Ready && state.Installed).To(BeTrue())
	g.Expect(way.writes(good.Name)).To(HaveLen(1))
}

// A refusal by the target is reported with its reason, and retried.
func TestForbidden(t *testing.T) {
	t.Parallel()
	g, way := NewWithT(t), newConnectedTarget(t)
	source := unique("v1")
	var allowed atomic.Bool
	var refused atomic.Int64
	way.interfere.Store(new(func(writer http.ResponseWriter, request *http.Request) bool {
		if request.Method != http.MethodPatch || allowed.Load() || request.URL.Query().Has("dryRun") {
			return false
		}
		refused.Add(1)
		writer.Header().Set("Content-Type", "application/json")
		writer.WriteHeader(http.StatusForbidden)
		_, _ = writer.Write([]byte(`{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "Forbidden", "code": 403, "message": "not for you"}`))
		return true
	}))
	controller := startController(t, way)
	controller.SetInstallations([]crd.Installation{installationOf(source)})
	state := controller.waitForReason(t, source, crd.ReasonForbidden)
	g.Expect(state.Message).To(Equal("Cannot install the definition: not for you."))
	g.Expect(state.Ready || state.Installed).To(BeFalse())
	// The start of the watch also causes one reconcile.
	suite.Eventually(t, func(g Gomega) { g.Expect(refused.Load()).To(BeNumerically(">", 3)) })
	allowed.Store(true)
	controller.waitForReason(t, source, crd.ReasonInSync)
}
