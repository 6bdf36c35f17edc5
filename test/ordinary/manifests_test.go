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
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/test/framework"
	"github.com/synchub-dev/synchub/test/framework/suite"
)

// Expected results for an object of a manifest. Any other text is the reason in the status of the SyncerConfig or EdgePlacement.
const (
	arrives   = "it arrives on the cluster"
	unserved  = "the workspace does not serve it"
	elsewhere = "nothing selects it"
)

// manifests are shapes of public install manifests. Each object is in a line of its own: what becomes of it in a mailbox whose SyncerConfig
// selects all, and in a workload workspace whose EdgePlacement selects the Namespace.
var manifests = map[string]map[string]struct{ mailbox, workload string }{
	"application.yaml": {
		"ServiceAccount app":          {arrives, arrives},
		"ConfigMap app":               {arrives, arrives},
		"Secret app":                  {arrives, arrives},
		"Service app":                 {arrives, arrives},
		"Service database":            {arrives, arrives},
		"Deployment app":              {arrives, arrives},
		"StatefulSet database":        {arrives, arrives},
		"DaemonSet collector":         {arrives, arrives},
		"CronJob report":              {arrives, arrives},
		"Ingress app":                 {arrives, arrives},
		"PodDisruptionBudget app":     {arrives, arrives},
		"HorizontalPodAutoscaler app": {arrives, arrives},
		"NetworkPolicy app":           {arrives, arrives},
		"PersistentVolumeClaim data":  {arrives, arrives},
	},
	"operator.yaml": {
		"CustomResourceDefinition kettles.NAMESPACE.example.org": {arrives, elsewhere},
		"ServiceAccount operator":                                {arrives, arrives},
		"ClusterRole NAMESPACE-operator":                         {arrives, elsewhere},
		"ClusterRoleBinding NAMESPACE-operator":                  {arrives, elsewhere},
		"Role leader-election":                                   {arrives, arrives},
		"RoleBinding leader-election":                            {arrives, arrives},
		"Service webhook":                                        {arrives, arrives},
		"Deployment operator":                                    {arrives, arrives},
	},
}

// clusterScoped selects the cluster-scoped objects of a manifest in a mailbox.
const clusterScoped = `
apiVersion: edge.kubestellar.io/v2alpha1
kind: SyncerConfig
metadata: {name: %[1]s-cluster}
spec:
  clusterScope:
  - {group: apiextensions.k8s.io, resource: customresourcedefinitions, objects: [kettles.%[1]s.example.org]}
  - {group: rbac.authorization.k8s.io, resource: clusterroles, objects: [%[1]s-operator]}
  - {group: rbac.authorization.k8s.io, resource: clusterrolebindings, objects: [%[1]s-operator]}
`

func TestManifests(t *testing.T) {
	w := environment(t)
	for file, objects := range manifests {
		for _, at := range []*destination{w.mailbox, w.workload} {
			t.Run(file+" in the "+at.name, func(t *testing.T) {
				t.Parallel()
				s := w.newNamespace(t, at, strings.TrimSuffix(file, ".yaml"))
				if at == w.mailbox {
					suite.Apply(t, at.config, fmt.Sprintf(clusterScoped, s.namespace))
				}
				content, err := os.ReadFile(filepath.Join("testdata", file))
				gomega.NewWithT(t).Expect(err).NotTo(gomega.HaveOccurred())
				documents := strings.Split(strings.ReplaceAll(string(content), "NAMESPACE", s.namespace), "\n---\n")
				gomega.NewWithT(t).Expect(documents).To(gomega.HaveLen(len(objects)))
				for _, document := range documents {
					object := &unstructured.Unstructured{}
					gomega.NewWithT(t).Expect(yaml.Unmarshal([]byte(document), &object.Object)).To(gomega.Succeed())
					name := object.GetKind() + " " + strings.ReplaceAll(object.GetName(), s.namespace, "NAMESPACE")
					want, ok := objects[name]
					if !ok {
						t.Fatalf("%s is in no row", name)
					}
					outcome := want.mailbox
					if at == w.workload {
						outcome = want.workload
					}
					s.expectOutcome(t, object, document, outcome)
				}
			})
		}
	}
}

// expectOutcome applies an object and waits for what becomes of it.
func (s *shell) expectOutcome(t *testing.T, object *unstructured.Unstructured, document, outcome string) {
	t.Helper()
	g := gomega.NewWithT(t)
	name := object.GetKind() + " " + object.GetName()
	output, err := s.run(t.Context(), "kubectl apply --server-side -f - <<'END'\n"+document+"\nEND\n")
	if outcome == unserved {
		g.Expect(err).To(gomega.HaveOccurred(), name)
		g.Expect(output).To(gomega.MatchRegexp(notServed), name)
		return
	}
	g.Expect(err).NotTo(gomega.HaveOccurred(), "%s: %s", name, output)
	onCluster := &shell{world: s.world, at: s.cluster, namespace: s.namespace, kubeconfig: s.cluster.kubeconfig}
	get := fmt.Sprintf("kubectl wait --for=create --timeout=%%s -n %s %s/%s", s.namespace, object.GetKind(), object.GetName())
	switch outcome {
	case arrives:
		output, err = onCluster.run(t.Context(), fmt.Sprintf(get, "2m"))
		g.Expect(err).NotTo(gomega.HaveOccurred(), "%s: %s%v", name, output, s.failures(t))
	case elsewhere:
	default:
		g.Eventually(func() []string { return s.failures(t) }).WithContext(t.Context()).Should(gomega.ContainElement(outcome+" "+object.GetName()), name)
	}
	if outcome != arrives {
		_, err = onCluster.run(t.Context(), fmt.Sprintf(get, "0"))
		g.Expect(err).To(gomega.HaveOccurred(), name)
	}
}

// failures returns the reasons and names in the status of what selects the objects.
func (s *shell) failures(t *testing.T) (found []string) {
	t.Helper()
	resource, name := edgev2alpha1.GroupVersion.WithResource("syncerconfigs"), s.namespace
	if s.at == s.workload {
		resource, name = edgev2alpha1.GroupVersion.WithResource("edgeplacements"), "ordinary"
	}
	object, err := framework.Get(t.Context(), s.at.config, resource, "", name)
	if err != nil {
		t.Fatal(err)
	}
	failures, _, _ := unstructured.NestedSlice(object.Object, "status", "failures")
	for _, one := range failures {
		failure, _ := one.(map[string]any)
		if failure["namespace"] == s.namespace || failure["namespace"] == nil {
			found = append(found, fmt.Sprint(failure["reason"], " ", failure["name"]))
		}
	}
	return found
}
