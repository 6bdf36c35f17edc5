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

package compatibility

import (
	"context"
	_ "embed"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/test/framework"
	"github.com/synchub-dev/synchub/test/framework/installation"
	"github.com/synchub-dev/synchub/test/framework/servers"
)

const (
	namespace = "shop"
	timeout   = 3 * time.Minute
)

var (
	configMaps    = corev1.SchemeGroupVersion.WithResource("configmaps")
	deployments   = appsv1.SchemeGroupVersion.WithResource("deployments")
	lamps         = schema.GroupVersionResource{Group: "shop.example.com", Version: "v1", Resource: "lamps"}
	syncerConfigs = edgev2alpha1.GroupVersion.WithResource("syncerconfigs")

	// tried are the additional versions of Kubernetes, with the program of each API server. hack/tools pins them.
	tried = []struct{ version, apiServer string }{{"oldest", "kube-apiserver-oldest"}, {"newest", "kube-apiserver-newest"}}
)

var (
	// mailbox is the content of the mailbox: an object of each kind that the chart publishes for workloads, and what selects them.
	//
	//go:embed testdata/mailbox.yaml
	mailbox string
	// definition is an API of the cluster's own. The hub publishes it with the schema that the cluster serves.
	//
	//go:embed testdata/definition.yaml
	definition string
	//go:embed testdata/published.yaml
	published string
)

// objects is how many objects of the mailbox are selected.
const objects = 13

func TestVersions(t *testing.T) {
	g := NewWithT(t)
	targets, users := map[string]servers.TargetOptions{}, []string{}
	for i, one := range tried {
		targets[one.version] = servers.TargetOptions{APIServer: one.apiServer}
		users = append(users, installation.HubUser(i+1))
	}
	suite, err := framework.StartSuite(t.Context(), "compatibility", servers.Options{Log: func(line string) { t.Log(line) }}, targets, users[1:]...)
	g.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(func() {
		if logs, err := suite.Finish(t.Failed()); err != nil || logs != "" {
			t.Log("logs:", logs, err)
		}
	})
	for i, one := range tried {
		t.Run(one.version, func(t *testing.T) {
			c := install(t, suite, suite.Targets[one.version], i+1)
			c.fill(t)
			c.follows(t)
			c.rests(t)
			c.withdraws(t)
		})
	}
}

// cluster is a cluster that hosts a hub and is its only target.
type cluster struct {
	*installation.Inventory
	g               *WithT
	hub             *installation.Hub
	target, mailbox *rest.Config
}

// install installs the chart with all that it publishes, and registers the cluster as the README does, with the rights of `register`.
func install(t *testing.T, suite *framework.Suite, target *servers.Target, number int) *cluster {
	t.Helper()
	g := NewWithT(t)
	g.SetDefaultEventuallyTimeout(timeout)
	g.Expect(framework.Apply(t.Context(), target.Config, definition)).To(Succeed())
	made, err := installation.New(t.Context(), suite.Options, suite.KCP, target, filepath.Join(suite.Options.Bin, "synchub-race"), number)
	g.Expect(err).NotTo(HaveOccurred())
	g.Eventually(framework.Apply).WithContext(t.Context()).WithArguments(target.Config, published).Should(Succeed())
	hub, err := made.StartHub()
	g.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(func() {
		code, err := hub.Terminate(context.WithoutCancel(t.Context()))
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(code).To(BeZero(), hub.LogTail(30))
	})
	g.Expect(hub.AwaitReady(t.Context())).To(Succeed())

	inventory, err := made.NewInventory(t.Context(), fmt.Sprint("fleet-", number))
	g.Expect(err).NotTo(HaveOccurred())
	g.Eventually(func() error {
		_, err := framework.List(t.Context(), inventory.Config, installation.SyncTargets, "", "")
		return err
	}).Should(Succeed(), "the workspace serves SyncTargets")
	kubeconfig, err := suite.KCP.WorkspaceKubeconfig(inventory.Path)
	g.Expect(err).NotTo(HaveOccurred())
	output, err := exec.CommandContext(t.Context(), filepath.Join(suite.Options.Bin, "kubectl-synchub"), "register", "florin", "--kubeconfig", kubeconfig,
		"--target-kubeconfig", target.Kubeconfig, "--hosting-kubeconfig", target.Kubeconfig, "--yes").CombinedOutput()
	g.Expect(err).NotTo(HaveOccurred(), string(output))
	c := &cluster{Inventory: inventory, g: g, hub: hub, target: target.Config}
	g.Eventually(func() (err error) { c.mailbox, err = inventory.Mailbox(t.Context(), "florin"); return err }).Should(Succeed())
	return c
}

// fill expects that an object of each published kind reaches the cluster, and that the hub finds each kind compatible.
func (c *cluster) fill(t *testing.T) {
	t.Helper()
	c.g.Eventually(framework.Apply).WithContext(t.Context()).WithArguments(c.mailbox, mailbox).Should(Succeed())
	c.g.Eventually(func() string {
		return c.value(t, c.mailbox, syncerConfigs, "", namespace, "status", "synced")
	}).Should(Equal(fmt.Sprint(objects)), func() string { return strings.Join(c.refusals(t), "\n") })
	c.g.Eventually(func() []string { return c.refusals(t) }).Should(BeEmpty())
}

// refusals returns the hub's messages about the kinds that it does not sync.
func (c *cluster) refusals(t *testing.T) (found []string) {
	t.Helper()
	syncTarget, err := c.SyncTarget(t.Context(), "florin")
	c.g.Expect(err).NotTo(HaveOccurred())
	for _, one := range syncTarget.Status.SyncedResources {
		if one.State != edgev2alpha1.SyncedResourceAccepted {
			found = append(found, fmt.Sprint(one.Resource, " ", one.State, " ", one.Message))
		}
	}
	return found
}

// follows expects that changes go down, that a status and an object of the cluster come up, and that a foreign change is undone.
func (c *cluster) follows(t *testing.T) {
	t.Helper()
	c.patch(t, c.mailbox, configMaps, "prices", `{"data": {"entry": "second"}}`)
	c.g.Eventually(c.entry(t, c.target, configMaps, "prices", "data", "entry")).Should(Equal("second"))
	c.patch(t, c.target, configMaps, "prices", `{"data": {"entry": "foreign"}}`)
	c.g.Eventually(c.entry(t, c.target, configMaps, "prices", "data", "entry")).Should(Equal("second"))
	c.patch(t, c.mailbox, deployments, "web", `{"spec": {"replicas": 3}}`)
	c.g.Eventually(c.entry(t, c.target, deployments, "web", "spec", "replicas")).Should(Equal("3"))
	// The cluster has no controllers.
	c.patch(t, c.target, deployments, "web", `{"status": {"replicas": 3, "readyReplicas": 2}}`, "status")
	c.g.Eventually(c.entry(t, c.mailbox, deployments, "web", "status", "readyReplicas")).Should(Equal("2"))
	c.g.Expect(framework.Apply(t.Context(), c.target, "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: report-1, namespace: shop}\ndata: {entry: fine}\n")).To(Succeed())
	c.g.Eventually(c.entry(t, c.mailbox, configMaps, "report-1", "data", "entry")).Should(Equal("fine"))
}

// rests expects that the hub writes no object when nothing changes, and none after one object has changed but that.
func (c *cluster) rests(t *testing.T) {
	t.Helper()
	c.g.Expect(c.hub.WaitIdle(t.Context(), 2*time.Second)).To(Succeed())
	before := c.versions(t)
	c.patch(t, c.mailbox, configMaps, "prices", `{"data": {"entry": "third"}}`)
	c.g.Eventually(c.entry(t, c.target, configMaps, "prices", "data", "entry")).Should(Equal("third"))
	c.g.Expect(c.hub.WaitIdle(t.Context(), 2*time.Second)).To(Succeed())
	after := c.versions(t)
	c.g.Expect(after["configmaps/prices"]).NotTo(Equal(before["configmaps/prices"]))
	delete(before, "configmaps/prices")
	delete(after, "configmaps/prices")
	c.g.Expect(after).To(Equal(before))
}

// versions returns the resourceVersion of objects on the cluster.
func (c *cluster) versions(t *testing.T) map[string]string {
	t.Helper()
	found := map[string]string{}
	for _, resource := range []schema.GroupVersionResource{configMaps, deployments, lamps} {
		list, err := framework.List(t.Context(), c.target, resource, namespace, "")
		c.g.Expect(err).NotTo(HaveOccurred())
		for _, one := range list {
			found[resource.Resource+"/"+one.GetName()] = one.GetResourceVersion()
		}
	}
	return found
}

// withdraws expects that what is deleted in the mailbox is deleted on the cluster.
func (c *cluster) withdraws(t *testing.T) {
	t.Helper()
	for _, resource := range []schema.GroupVersionResource{lamps, deployments} {
		name := map[schema.GroupVersionResource]string{lamps: "window", deployments: "web"}[resource]
		c.g.Expect(framework.Delete(t.Context(), c.mailbox, resource, namespace, name)).To(Succeed())
		c.g.Eventually(framework.Exists).WithContext(t.Context()).WithArguments(c.target, resource, namespace, name).Should(BeFalse())
	}
}

func (c *cluster) patch(t *testing.T, config *rest.Config, resource schema.GroupVersionResource, name, patch string, subresources ...string) {
	t.Helper()
	c.g.Expect(framework.Patch(t.Context(), config, resource, namespace, name, patch, subresources...)).To(Succeed())
}

// entry returns a function for a field of an object in the namespace.
func (c *cluster) entry(t *testing.T, config *rest.Config, resource schema.GroupVersionResource, name string, path ...string) func() string {
	return func() string { return c.value(t, config, resource, namespace, name, path...) }
}

// value returns a field of an object; empty without the object or the field.
func (c *cluster) value(t *testing.T, config *rest.Config, resource schema.GroupVersionResource, namespace, name string, path ...string) string {
	t.Helper()
	found, err := framework.Field(t.Context(), config, resource, namespace, name, path...)
	c.g.Expect(err).NotTo(HaveOccurred())
	return found
}
