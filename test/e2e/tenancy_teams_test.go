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
	"time"

	"github.com/kcp-dev/logicalcluster/v3"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"golang.org/x/sync/errgroup"

	"github.com/synchub-dev/synchub/controllers/plan/tenancy"
	"github.com/synchub-dev/synchub/test/framework"
	"github.com/synchub-dev/synchub/test/framework/installation"
)

// team is a workload workspace that shares a cluster with the workspaces of other teams.
type team struct {
	*installation.Workload
	name, cluster, hash string
}

// theirs returns the name on the cluster of one of the team's namespaces.
func (t *team) theirs(namespace string) string { return namespace + "-" + t.hash }

// newTeam creates the workspace of a team.
func newTeam(ctx context.Context, name string) (*team, error) {
	workload, err := synchub.NewWorkload(ctx, name)
	if err != nil {
		return nil, err
	}
	cluster, err := framework.Field(ctx, workload.Config, logicalClusters, "", "cluster", "metadata", "annotations", logicalcluster.AnnotationKey)
	return &team{workload, name, cluster, tenancy.WorkspaceHash(logicalcluster.Name(cluster))}, err
}

// manifests returns what each team places.
func (t *team) manifests() string {
	return documents(namespace(shop), configMap(shop, "settings", t.name), fmt.Sprintf(`
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: shop}
spec:
  replicas: 0
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: main, image: "example.org/%s:1"}]}
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: web, namespace: shop}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: web, namespace: shop}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: view}
subjects: [{kind: ServiceAccount, name: web, namespace: shop}]
`, t.name), placementOn(shop, shop))
}

// hostileTeams is a spec with teams on one cluster, each in a workspace of its own.
type hostileTeams struct {
	name      string
	inventory *installation.Inventory
	admin     *user
	teams     []*team
	// flood is the number of objects that one team places at once.
	flood int
}

// each calls a function for each team, several at a time.
func (s *hostileTeams) each(ctx context.Context, do func(ctx context.Context, i int, one *team) error) {
	GinkgoHelper()
	var running errgroup.Group
	running.SetLimit(8)
	for i, one := range s.teams {
		running.Go(func() error {
			if err := do(ctx, i, one); err != nil {
				return fmt.Errorf("team %d: %w", i, err)
			}
			return nil
		})
	}
	Expect(running.Wait()).To(Succeed())
}

// register registers florin for tenants.
func (s *hostileTeams) register(ctx context.Context) {
	GinkgoHelper()
	s.admin.succeeds(ctx, "synchub", "register", s.name, "--labels", "env=prod", "--tenancy", "PerWorkspace", "--tenant-role", "admin", "--yes", "--target-kubeconfig", clusters["florin"].Kubeconfig)
	patch(ctx, s.inventory.Config, syncTargets, "", s.name, fmt.Sprintf(
		`{"spec": {"deletionPolicy": "Delete", "tenancy": {"namespaceLabels": {%q: "baseline", "spec": %q}, "resourceQuota": {"hard": {"count/secrets": "%d"}}}}}`, podSecurity, s.name, secretsQuota))
}

// unregister removes the cluster with all copies, and the namespaces that it leaves.
func (s *hostileTeams) unregister(ctx context.Context) {
	GinkgoHelper()
	s.admin.succeeds(ctx, "synchub", "unregister", s.name, "--yes", "--target-kubeconfig", clusters["florin"].Kubeconfig)
	left, err := framework.List(ctx, target("florin"), namespaces, "", "spec="+s.name)
	Expect(err).NotTo(HaveOccurred())
	for _, one := range left {
		remove(ctx, target("florin"), namespaces, "", one.GetName())
	}
}

// create creates the workspaces of the teams, lets them use the cluster, and places the manifests of each.
func (s *hostileTeams) create(ctx context.Context, count int) {
	GinkgoHelper()
	s.teams = make([]*team, count)
	s.each(ctx, func(ctx context.Context, i int, _ *team) (err error) {
		s.teams[i], err = newTeam(ctx, fmt.Sprintf("%s-%02d", s.name, i))
		return err
	})
	paths := make([]string, count)
	for i, one := range s.teams {
		paths[i] = fmt.Sprintf("%q", one.Path)
	}
	apply(ctx, s.inventory.Config, fmt.Sprintf(`
apiVersion: edge.kubestellar.io/v2alpha1
kind: Location
metadata: {name: prod, labels: {env: prod}}
spec:
  resource: {group: edge.kubestellar.io, version: v2alpha1, resource: synctargets}
  availableTo: {workspaces: [%s]}
`, strings.Join(paths, ", ")))
	s.place(ctx)
}

// place applies the manifests of each team, and waits until the cluster has them.
func (s *hostileTeams) place(ctx context.Context) {
	GinkgoHelper()
	s.each(ctx, func(ctx context.Context, _ int, one *team) error {
		return eventually(ctx, func() error { return framework.Apply(ctx, one.Config, one.manifests()) })
	})
	s.each(ctx, func(ctx context.Context, _ int, one *team) error {
		return eventually(ctx, func() error { return s.hasAll(ctx, one) })
	})
}

// eventually calls a function until it succeeds. Unlike Gomega's, it may run in any goroutine.
func eventually(ctx context.Context, do func() error) error {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	for {
		err := do()
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(200 * time.Millisecond):
		}
	}
}

// hasAll returns an error until the cluster has the manifests of a team in its own namespace, with its own content.
func (s *hostileTeams) hasAll(ctx context.Context, one *team) error {
	entry, err := framework.Field(ctx, target("florin"), configMaps, one.theirs(shop), "settings", "data", "entry")
	if err != nil || entry != one.name {
		return fmt.Errorf("settings of %s: %q, %w", one.name, entry, err)
	}
	image, err := framework.Field(ctx, target("florin"), deployments, one.theirs(shop), "web", "spec", "template", "spec", "containers")
	if err != nil || !strings.Contains(image, one.name) {
		return fmt.Errorf("web of %s: %q, %w", one.name, image, err)
	}
	subjects, err := framework.Field(ctx, target("florin"), roleBindings, one.theirs(shop), "web", "subjects")
	if err != nil || !strings.Contains(subjects, "namespace:"+one.theirs(shop)) {
		return fmt.Errorf("RoleBinding of %s: %q, %w", one.name, subjects, err)
	}
	return nil
}
