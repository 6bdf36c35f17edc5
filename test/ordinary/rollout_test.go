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

package ordinary

import (
	"fmt"
	"testing"

	"github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/test/framework"
	"github.com/synchub-dev/synchub/test/framework/suite"
)

// ownPlacement selects one Namespace: the placement of all other Namespaces has a failing object.
const ownPlacement = `
apiVersion: edge.kubestellar.io/v2alpha1
kind: EdgePlacement
metadata: {name: rollout}
spec:
  locationSelectors: [{matchLabels: {env: prod}}]
  aggregateStatus: true
  downsync: [{namespaces: [%s]}]
`

const event = `
apiVersion: v1
kind: Event
metadata: {name: web.1, namespace: %[1]s}
involvedObject: {apiVersion: apps/v1, kind: Deployment, namespace: %[1]s, name: web}
reason: Seen
type: Normal
`

// The hub writes Events into workspaces, and nobody places them: who waits for a rollout does not wait for them. The command lists the
// objects of all resources, which must not take long.
func TestRolloutStatusWithAnEvent(t *testing.T) {
	w := environment(t)
	t.Parallel()
	g := gomega.NewWithT(t)
	s := w.newNamespace(t, w.workload, "rollout")
	suite.Apply(t, w.workload.config, fmt.Sprintf(ownPlacement, s.namespace))
	suite.Apply(t, w.workload.config, fmt.Sprintf(event, s.namespace))
	output, err := s.run(t.Context(), "kubectl create -f web.yaml && kubectl synchub rollout status rollout --timeout=2m")
	g.Expect(err).NotTo(gomega.HaveOccurred(), output)
	g.Expect(output).To(gomega.ContainSubstring("rollout is rolled out"))
	output, err = s.run(t.Context(), "kubectl synchub rollout pause rollout && kubectl synchub rollout resume rollout --wait --timeout=2m")
	g.Expect(err).NotTo(gomega.HaveOccurred(), output)
	object, err := framework.Get(t.Context(), w.workload.config, edgev2alpha1.GroupVersion.WithResource("edgeplacements"), "", "rollout")
	g.Expect(err).NotTo(gomega.HaveOccurred())
	unplaced, _, err := unstructured.NestedStringSlice(object.Object, "status", "unplacedResources")
	g.Expect(err).NotTo(gomega.HaveOccurred())
	g.Expect(unplaced).To(gomega.Equal([]string{"events", "logicalclusters.core.kcp.io"}))
}
