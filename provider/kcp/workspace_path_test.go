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

package kcp_test

import (
	"testing"

	"github.com/kcp-dev/logicalcluster/v3"
	corev1alpha1 "github.com/kcp-dev/sdk/apis/core/v1alpha1"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/synchub-dev/synchub/provider/kcp"
	"github.com/synchub-dev/synchub/test/framework"
	"github.com/synchub-dev/synchub/test/framework/connections"
	"github.com/synchub-dev/synchub/test/framework/suite"
	"github.com/synchub-dev/synchub/test/tier"
)

func TestMain(m *testing.M) { suite.Main(m) }

// The administrator of a workspace can write the path of another workspace into their own LogicalCluster.
func TestLogicalClusterOf(t *testing.T) {
	tier.Thorough(t)
	g, ctx, server := NewWithT(t), t.Context(), suite.KCP(t)
	access := connections.KCP(t, suite.ReadFile(t, server.HubKubeconfig))
	create := func(parent, name string) logicalcluster.Name {
		workspace, err := framework.CreateWorkspace(ctx, server.Config, parent, name, "root:universal")
		g.Expect(err).NotTo(HaveOccurred())
		return logicalcluster.Name(workspace.Spec.Cluster)
	}
	operator, tenant := create("root", "operator"), create("root", "tenant")
	create("root:operator", "inner")
	claimed, err := suite.Dynamic(t, server.Workspace("root:tenant")).Resource(corev1alpha1.SchemeGroupVersion.WithResource("logicalclusters")).
		Patch(ctx, corev1alpha1.LogicalClusterName, types.MergePatchType, []byte(`{"metadata": {"annotations": {"kcp.io/path": "root:operator"}}}`), metav1.PatchOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(claimed.GetAnnotations()).To(HaveKeyWithValue("kcp.io/path", "root:operator"), "else this test shows nothing")

	for path, want := range map[string]logicalcluster.Name{"root:operator": operator, "root:tenant": tenant, operator.String(): operator, "root": "root"} {
		g.Expect(access.LogicalClusterOf(ctx, logicalcluster.NewPath(path))).To(Equal(want), path)
	}
	_, err = access.LogicalClusterOf(ctx, logicalcluster.NewPath("root:nobody"))
	g.Expect(err).To(MatchError(kcp.ErrNoWorkspace))
	_, err = access.LogicalClusterOf(ctx, logicalcluster.NewPath("root:operator:inner"))
	g.Expect(err).To(MatchError(ContainSubstring("may not get the Workspace inner in the workspace root:operator")))
}
