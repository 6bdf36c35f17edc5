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

package e2e

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/tools/cache"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	synchubv1alpha1 "github.com/synchub-dev/synchub/apis/synchub/v1alpha1"
	"github.com/synchub-dev/synchub/controllers/placement/rules"
	"github.com/synchub-dev/synchub/test/framework/fleet"
)

// The targets are workspaces of the suite's kcp, and this spec stands in for their Deployment controllers: twenty clusters that run
// Deployments are too many for one machine.
var _ = Describe("a rollout over twenty clusters", thorough, Label("requests"), func() {
	It("stops at the group in which a cluster fails, and continues after a fix", SpecPriority(1), func(ctx SpecContext) {
		const ns, clusterCount, broken = "placement-waves", 20, 9
		inventory, workload := newInventory(ctx, ns), newWorkload(ctx, ns+"-workload")
		members, err := fleet.New(ctx, suite.KCP, ns+"-targets", fleet.IdleRequests{})
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(func() { Expect(members.Close()).To(Succeed()) })
		Expect(members.Serve(ctx, synchub.Workspace, synchubv1alpha1.MailboxExport, "apps", "deployments")).To(Succeed())
		made, err := members.Grow(ctx, clusterCount)
		Expect(err).NotTo(HaveOccurred())

		// Two, eight and ten of them are in the waves 1, 2 and 10.
		waveOf := func(i int) string {
			switch {
			case i < 2:
				return "1"
			case i < 10:
				return "2"
			default:
				return "10"
			}
		}
		var fails atomic.Bool
		for i, member := range made {
			runDeployments(ctx, member, func() bool { return i == broken && fails.Load() })
			Expect(inventory.Register(ctx, member.Name, member.DirectKubeconfig, map[string]string{"env": "prod", "wave": waveOf(i)})).To(Succeed())
		}
		apply(ctx, inventory.Config, location("prod", "prod", workload.Path))
		editions := func() string {
			var text strings.Builder
			for _, member := range made {
				text.WriteString(value(ctx, member.Config, deployments, ns, "till", "metadata", "labels", "edition") + " ")
			}
			return text.String()
		}
		everywhere := func(edition string) string { return strings.Repeat(edition+" ", clusterCount) }
		rollout := func(field string) string {
			return value(ctx, workload.Config, edgePlacements, "", "shop", "status", "rollout", field)
		}
		till := func(edition string) string {
			return fmt.Sprintf(`
apiVersion: apps/v1
kind: Deployment
metadata: {name: till, namespace: %[1]s, labels: {edition: %[2]q}}
spec:
  selector: {matchLabels: {app: till}}
  template:
    metadata: {labels: {app: till, edition: %[2]q}}
    spec: {containers: [{name: till, image: example.org/till}]}
`, ns, edition)
		}

		By("the first revision reaches all clusters, wave by wave")
		eventuallyPlaced(ctx, workload, documents(namespace(ns), till("1"), placementOn("shop", ns)+"  rolloutStrategy: {type: ProgressivePerGroup, groupBy: wave}\n"))
		Eventually(editions, 2*time.Minute).WithContext(ctx).Should(Equal(everywhere("1")))
		Expect(runPlugin(ctx, workload.Path, "rollout", "status", "shop", "--timeout=1m")).To(ContainSubstring("All destinations (20) have all objects"))

		By("the second revision stops in the second wave")
		quiet(ctx)
		before := requestCounts(ctx)
		fails.Store(true)
		apply(ctx, workload.Config, till("2"))
		Eventually(placementCondition).WithContext(ctx).WithArguments(workload, "shop", edgev2alpha1.ConditionRolledOut, "reason").Should(Equal(rules.ReasonStopped))
		Expect(editions()).To(Equal(strings.Repeat("2 ", 10) + strings.Repeat("1 ", 10)))
		Expect([]string{rollout("succeeded"), rollout("failed"), rollout("waiting"), rollout("failedClusters")}).To(Equal([]string{"9", "1", "10", "[" + made[broken].Name + "]"}))
		quiet(ctx)
		Expect(difference(before, requestCounts(ctx))).To(Equal(map[string]float64{
			"mailbox object update deployments": 10, "target object apply deployments": 10, "mailbox object patch deployments/status": 10,
			// RolloutStopped, and on the Deployment its failure and WaitingForRollout.
			"mailbox extra create events": 3,
		}))

		By("a fix reaches all clusters")
		fails.Store(false)
		apply(ctx, workload.Config, till("3"))
		Eventually(editions, 2*time.Minute).WithContext(ctx).Should(Equal(everywhere("3")))
		Eventually(placementCondition).WithContext(ctx).WithArguments(workload, "shop", edgev2alpha1.ConditionRolledOut, "reason").Should(Equal(rules.ReasonComplete))
	}, NodeTimeout(6*time.Minute))
})

// runDeployments stands in for the Deployment controller of a member until the spec ends: each Deployment is available at once, or does
// not come further.
func runDeployments(ctx context.Context, member *fleet.Member, fails func() bool) {
	GinkgoHelper()
	client, err := dynamic.NewForConfig(member.Config)
	Expect(err).NotTo(HaveOccurred())
	running, stop := context.WithCancel(ctx)
	informers := dynamicinformer.NewDynamicSharedInformerFactory(client, 0)
	settle := func(item any) {
		object, ok := item.(*unstructured.Unstructured)
		observed, _, _ := unstructured.NestedInt64(object.Object, "status", "observedGeneration")
		if !ok || observed == object.GetGeneration() {
			return
		}
		settled := object.DeepCopy()
		settled.Object["status"] = deploymentStatus(object.GetGeneration(), fails())
		// If the Deployment has changed, another event follows.
		_, _ = client.Resource(deployments).Namespace(object.GetNamespace()).UpdateStatus(running, settled, metav1.UpdateOptions{})
	}
	_, err = informers.ForResource(deployments).Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: settle, UpdateFunc: func(_, after any) { settle(after) },
	})
	Expect(err).NotTo(HaveOccurred())
	informers.Start(running.Done())
	DeferCleanup(func() {
		stop()
		informers.Shutdown()
	})
}

func deploymentStatus(generation int64, fails bool) map[string]any {
	progressing := map[string]any{"type": "Progressing", "status": "True", "reason": "NewReplicaSetAvailable"}
	available := map[string]any{"type": "Available", "status": "True", "reason": "MinimumReplicasAvailable"}
	count := int64(1)
	if fails {
		progressing["status"], progressing["reason"], available["status"], count = "False", "ProgressDeadlineExceeded", "False", 0
	}
	return map[string]any{
		"observedGeneration": generation, "replicas": int64(1), "updatedReplicas": int64(1), "readyReplicas": count, "availableReplicas": count,
		"conditions": []any{progressing, available},
	}
}
