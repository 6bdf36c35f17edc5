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
	"encoding/json"
	"fmt"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/test/framework"
)

const (
	// shop is the namespace of all teams.
	shop = "shop"
	// secretsQuota is how many Secrets a team may have in a namespace.
	secretsQuota = 3
)

// expectSeparate expects that the namespaces of each team have what the team put there, and the administrator's labels,
// regardless of other teams.
func (s *hostileTeams) expectSeparate(ctx context.Context) {
	GinkgoHelper()
	s.each(ctx, func(ctx context.Context, _ int, one *team) error {
		if err := s.hasAll(ctx, one); err != nil {
			return err
		}
		own, err := framework.List(ctx, target("florin"), namespaces, "", edgev2alpha1.LabelWorkspace+"="+one.hash)
		if err != nil || len(own) == 0 {
			return fmt.Errorf("namespaces of %s: %d, %w", one.name, len(own), err)
		}
		for _, found := range own {
			switch labels := found.GetLabels(); {
			case !strings.HasSuffix(found.GetName(), "-"+one.hash):
				return fmt.Errorf("the namespace %s has the label of %s", found.GetName(), one.name)
			case labels[podSecurity] != "baseline" || labels["spec"] != s.name || labels["pod-security.kubernetes.io/enforce-version"] != "":
				return fmt.Errorf("the namespace %s has the labels %v", found.GetName(), labels)
			case found.GetAnnotations()[edgev2alpha1.AnnotationWorkspacePath] != one.Path:
				return fmt.Errorf("the namespace %s has the annotations %v", found.GetName(), found.GetAnnotations())
			}
		}
		return nil
	})
}

// expectSecrecy expects that nothing that a team can read names another team.
func (s *hostileTeams) expectSecrecy(ctx context.Context) {
	GinkgoHelper()
	s.each(ctx, func(ctx context.Context, i int, one *team) error {
		seen, err := s.visibleTo(ctx, one)
		if err != nil {
			return err
		}
		for j, other := range s.teams {
			texts := []string{other.name, other.cluster, other.hash}
			if i == 0 && j == s.victimOf(i) {
				// The hostile team itself writes the hash.
				texts = texts[:2]
			}
			for _, text := range texts {
				if at := strings.Index(seen, text); i != j && at >= 0 {
					return fmt.Errorf("%s can read %s: %s", one.name, text, seen[max(0, at-200):min(len(seen), at+200)])
				}
			}
		}
		return nil
	})
}

// visibleTo returns the statuses, slices and events that a team can read.
func (s *hostileTeams) visibleTo(ctx context.Context, one *team) (string, error) {
	var all []unstructured.Unstructured
	for _, resource := range []schema.GroupVersionResource{edgePlacements, placedSlices, events} {
		found, err := framework.List(ctx, one.Config, resource, "", "")
		if err != nil {
			return "", err
		}
		all = append(all, found...)
	}
	for i := range all {
		all[i].SetManagedFields(nil)
		unstructured.RemoveNestedField(all[i].Object, "spec")
	}
	text, err := json.Marshal(all)
	return string(text), err
}

// expectFairness makes the first team place many objects at once, and expects that each other team's new object arrives before them.
func (s *hostileTeams) expectFairness(ctx context.Context) {
	GinkgoHelper()
	const flood, late = "flood", "late"
	hostile := s.teams[0]
	apply(ctx, hostile.Config, namespace(flood))
	client, err := dynamic.NewForConfig(hostile.Config)
	Expect(err).NotTo(HaveOccurred())
	var filling errgroup.Group
	filling.SetLimit(16)
	for i := range s.flood {
		object := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": fmt.Sprintf("%s-%d", flood, i)},
		}}
		filling.Go(func() error {
			_, err := client.Resource(configMaps).Namespace(flood).Create(ctx, object, metav1.CreateOptions{})
			return err
		})
	}
	Expect(filling.Wait()).To(Succeed())
	flooded := func() int {
		return len(identities(ctx, target("florin"), configMaps, hostile.theirs(flood), flood+"-"))
	}
	apply(ctx, hostile.Config, placementOn(flood, flood))
	Eventually(flooded).Should(BeNumerically(">", 0))
	others := s.teams[1:]
	s.each(ctx, func(ctx context.Context, i int, one *team) error {
		if i == 0 {
			return nil
		}
		client, err := dynamic.NewForConfig(one.Config)
		if err != nil {
			return err
		}
		object := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": late}, "data": map[string]any{"entry": one.name},
		}}
		_, err = client.Resource(configMaps).Namespace(shop).Create(ctx, object, metav1.CreateOptions{})
		return err
	})
	before := flooded()
	for _, one := range others {
		Eventually(value).WithArguments(ctx, target("florin"), configMaps, one.theirs(shop), late, "data", "entry").Should(Equal(one.name))
	}
	after := flooded()
	GinkgoWriter.Printf("%d objects of %d of the flood were there when the others were created, and %d when these had arrived\n", before, s.flood, after)
	Expect(after).To(BeNumerically("<", s.flood), "the objects of all other teams arrive before the flood is over")
	// A busy machine deletes five objects in a second.
	Eventually(flooded).WithTimeout(6 * time.Minute).Should(Equal(s.flood))
	remove(ctx, hostile.Config, edgePlacements, "", flood)
	Eventually(flooded).WithTimeout(6 * time.Minute).Should(BeZero())
}

// expectNewWorkspace deletes the last team's workspace, makes it again with the same path, and expects that the new one has nothing of
// the former one.
func (s *hostileTeams) expectNewWorkspace(ctx context.Context) {
	GinkgoHelper()
	last := len(s.teams) - 1
	former := s.teams[last]
	root := synchub.InWorkspace("root")
	remove(ctx, root, workspaces, "", former.name)
	eventuallyGone(ctx, target("florin"), configMaps, former.theirs(shop), "settings")
	eventuallyGone(ctx, target("florin"), deployments, former.theirs(shop), "web")
	eventuallyGone(ctx, root, workspaces, "", former.name)
	again, err := newTeam(ctx, former.name)
	Expect(err).NotTo(HaveOccurred())
	Expect(again.hash).NotTo(Equal(former.hash))
	s.teams[last] = again
	s.place(ctx)
	s.expectSeparate(ctx)
	s.expectSecrecy(ctx)
	seen, err := s.visibleTo(ctx, again)
	Expect(err).NotTo(HaveOccurred())
	Expect(seen).NotTo(Or(ContainSubstring(former.hash), ContainSubstring(former.cluster)))
	Expect(framework.Exists(ctx, target("florin"), configMaps, former.theirs(shop), "settings")).To(BeFalse())
	Expect(framework.Exists(ctx, target("florin"), roleBindings, former.theirs(shop), "web")).To(BeFalse())
}

var _ = Describe("teams on one cluster, one of them hostile", Label("placement"), func() {
	DescribeTable("do not see, change or delay each other", func(ctx SpecContext, name string, count, flood int) {
		inventory := newInventory(ctx, name)
		s := &hostileTeams{name: name, inventory: inventory, admin: userOf(ctx, inventory), flood: flood}
		s.register(ctx)
		By(fmt.Sprintf("%d teams place the same manifests", count))
		s.create(ctx, count)
		s.expectSeparate(ctx)
		s.expectSecrecy(ctx)
		s.attack(ctx)
		By("one team floods the cluster")
		s.expectFairness(ctx)
		By("a workspace is deleted and made again with the same path")
		s.expectNewWorkspace(ctx)
		By("at rest nothing is written")
		settled(ctx)
		s.unregister(ctx)
	},
		Entry("two", thorough, "hostile-two", 2, 300, NodeTimeout(10*time.Minute)),
		Entry("fifty", thorough, "hostile-fifty", 50, 1500, NodeTimeout(25*time.Minute)),
	)
})
