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

package bootstrap_test

import (
	"testing"

	apisv1alpha2 "github.com/kcp-dev/sdk/apis/apis/v1alpha2"
	. "github.com/onsi/gomega"

	"github.com/synchub-dev/synchub/provider/bootstrap"
	"github.com/synchub-dev/synchub/test/framework/suite"
	"github.com/synchub-dev/synchub/test/tier"
)

// A provider workspace that an older release prepared has no workload export, and Run adds the export.
func TestHasWorkloadExport(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	provider := newProvider(t, "older").bootstrapped(t)
	suite.Eventually(t, func(g Gomega) { g.Expect(bootstrap.HasWorkloadExport(t.Context(), provider.hub(t))).To(BeTrue()) })

	export := &apisv1alpha2.APIExport{}
	export.Name = bootstrap.WorkloadExport
	g.Expect(provider.admin(t).Delete(t.Context(), export)).To(Succeed())
	suite.Eventually(t, func(g Gomega) { g.Expect(bootstrap.HasWorkloadExport(t.Context(), provider.hub(t))).To(BeFalse()) })
	g.Expect(bootstrap.NoWorkloadExportMessage(provider.path)).To(And(
		ContainSubstring("root:older has no APIExport workload.edge.kubestellar.io"), ContainSubstring("run `synchub init --provider-workspace root:older")))

	provider.bootstrapped(t)
	g.Expect(bootstrap.HasWorkloadExport(t.Context(), provider.hub(t))).To(BeTrue())
}

func TestHasWorkloadExportWithoutRights(t *testing.T) {
	tier.Thorough(t)
	t.Parallel()
	provider := newProvider(t, "without-rights").create(t)
	_, err := bootstrap.HasWorkloadExport(t.Context(), provider.hub(t))
	NewWithT(t).Expect(err).To(MatchError(ContainSubstring("cannot get the APIExport workload.edge.kubestellar.io")))
}
