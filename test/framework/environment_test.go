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

package framework_test

import (
	"context"
	"errors"
	"net"
	"os"
	"strconv"
	"syscall"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/synchub-dev/synchub/test/framework"
	"github.com/synchub-dev/synchub/test/framework/servers"
	"github.com/synchub-dev/synchub/test/framework/suite"
	"github.com/synchub-dev/synchub/test/tier"
)

const (
	startLimit = 5 * time.Minute
	otherHub   = "other-hub"
)

var (
	configMaps  = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
	namespaces  = schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}
	deployments = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}
	pods        = schema.GroupVersionResource{Version: "v1", Resource: "pods"}
	widgets     = schema.GroupVersionResource{Group: "example.org", Version: "v1", Resource: "widgets"}
)

func TestMain(m *testing.M) { suite.Main(m) }

// TestWorld starts the servers once, checks each of their features, and then that nothing of them is left.
func TestWorld(t *testing.T) {
	tier.Thorough(t)
	g := NewWithT(t)
	ctx, cancel := context.WithTimeout(t.Context(), startLimit)
	defer cancel()
	options := servers.Options{Log: func(line string) { t.Log(line) }}
	suite, err := framework.StartSuite(ctx, "framework", options, map[string]servers.TargetOptions{"florin": {Controllers: true}}, otherHub)
	g.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(func() {
		logs, err := suite.Finish(t.Failed())
		if err != nil {
			t.Error(err)
		}
		if t.Failed() {
			t.Log("the logs of the servers are in", logs)
		}
	})
	target := suite.Targets["florin"]

	t.Run("a Deployment becomes Available and goes again", func(t *testing.T) { deploy(t, target.Config) })
	t.Run("a manifest may define the API that it uses", func(t *testing.T) { applyCustomResource(t, target.Config) })
	t.Run("a service account has the rights that RBAC gives it", func(t *testing.T) { useServiceAccount(t, target) })
	t.Run("workspaces are made", func(t *testing.T) { useWorkspaces(t, suite.KCP) })
	t.Run("another process is a client of the same servers", func(t *testing.T) { open(t, suite) })
	t.Run("a paused API server answers nothing", func(t *testing.T) { pause(t, target) })
	t.Run("a killed API server comes back with its data", func(t *testing.T) { restart(t, target.Server, target.Config) })
	t.Run("kcp comes back with its data", func(t *testing.T) { restart(t, suite.KCP.Server, suite.KCP.Workspace("root")) })

	// This runs last, also after a failure.
	t.Run("after a stop nothing is left", func(t *testing.T) { stop(t, suite.Environment) })
}

func deploy(t *testing.T, config *rest.Config) {
	g := NewWithT(t)
	ctx := t.Context()
	g.Expect(framework.Apply(ctx, config, `
apiVersion: v1
kind: Namespace
metadata: {name: shop}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: shop}
spec:
  replicas: 3
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: "example.org/web:1"}]}
`)).To(Succeed())
	available := func(ctx context.Context) (string, error) {
		return framework.Condition(ctx, config, deployments, "shop", "web", "Available")
	}
	g.Eventually(available).WithContext(ctx).Should(Equal("True"))
	g.Expect(framework.List(ctx, config, pods, "shop", "app=web")).To(HaveLen(3))

	g.Expect(framework.Delete(ctx, config, deployments, "shop", "web")).To(Succeed())
	g.Eventually(framework.List).WithContext(ctx).WithArguments(config, pods, "shop", "").Should(BeEmpty())
	g.Expect(framework.Delete(ctx, config, namespaces, "", "shop")).To(Succeed())
	g.Eventually(framework.Exists).WithContext(ctx).WithArguments(config, namespaces, "", "shop").Should(BeFalse())
}

func applyCustomResource(t *testing.T, config *rest.Config) {
	g := NewWithT(t)
	g.Expect(framework.Apply(t.Context(), config, `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.example.org}
spec:
  group: example.org
  scope: Namespaced
  names: {plural: widgets, singular: widget, kind: Widget}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
---
apiVersion: example.org/v1
kind: Widget
metadata: {name: cog}
`)).To(Succeed())
	g.Expect(framework.Exists(t.Context(), config, widgets, "default", "cog")).To(BeTrue())
}

func useServiceAccount(t *testing.T, target *servers.Target) {
	g := NewWithT(t)
	ctx := t.Context()
	g.Expect(framework.Apply(ctx, target.Config, `
apiVersion: v1
kind: ServiceAccount
metadata: {name: reader}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: reader}
rules: [{apiGroups: [""], resources: [configmaps], verbs: [list]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: reader}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: reader}
subjects: [{kind: ServiceAccount, name: reader, namespace: default}]
`)).To(Succeed())
	kubeconfig, err := target.ServiceAccountKubeconfig(ctx, "default", "reader")
	g.Expect(err).NotTo(HaveOccurred())
	config, err := clientcmd.RESTConfigFromKubeConfig(kubeconfig)
	g.Expect(err).NotTo(HaveOccurred())

	g.Eventually(framework.List).WithContext(ctx).WithArguments(config, configMaps, "default", "").ShouldNot(BeEmpty())
	_, err = framework.List(ctx, config, pods, "default", "")
	g.Expect(err).To(MatchError(ContainSubstring("forbidden")))
}

func useWorkspaces(t *testing.T, kcp *servers.KCP) {
	g := NewWithT(t)
	ctx := t.Context()
	parent, err := framework.CreateWorkspace(ctx, kcp.Config, "root", "org", "")
	g.Expect(err).NotTo(HaveOccurred())
	_, err = framework.CreateWorkspace(ctx, kcp.Config, "root:org", "team", "root:universal")
	g.Expect(err).NotTo(HaveOccurred())
	again, err := framework.CreateWorkspace(ctx, kcp.Config, "root", "org", "")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(again.UID).To(Equal(parent.UID))

	// A workspace can be reached by its path, by the name of its logical cluster, and with a kubeconfig file.
	g.Expect(framework.Apply(ctx, kcp.Workspace("root:org"), "{apiVersion: v1, kind: ConfigMap, metadata: {name: note}}")).To(Succeed())
	g.Expect(framework.Exists(ctx, kcp.Workspace(parent.Spec.Cluster), configMaps, "default", "note")).To(BeTrue())
	g.Expect(framework.Exists(ctx, kcp.Workspace("root:org:team"), configMaps, "default", "note")).To(BeFalse())
	file, err := kcp.WorkspaceKubeconfig("root:org")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(framework.Exists(ctx, load(t, file), configMaps, "default", "note")).To(BeTrue())

	// The hubs' users can authenticate and have no rights in the workspace.
	g.Expect(kcp.HubKubeconfigOf(servers.HubUser)).To(Equal(kcp.HubKubeconfig))
	for _, user := range []string{servers.HubUser, otherHub} {
		hub := load(t, kcp.HubKubeconfigOf(user))
		g.Expect(hub.Host).To(Equal(kcp.Config.Host))
		_, err = framework.List(ctx, framework.InWorkspace(hub, "root:org"), configMaps, "default", "")
		g.Expect(err).To(MatchError(And(ContainSubstring("forbidden"), ContainSubstring(strconv.Quote(user)))))
	}
}

// open opens the suite a second time, as another process would.
func open(t *testing.T, suite *framework.Suite) {
	g := NewWithT(t)
	ctx := t.Context()
	opened, err := framework.OpenSuite("framework", []string{"florin"}, nil)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(opened.Options.Dir).To(Equal(suite.Options.Dir))

	target, kcp := opened.Targets["florin"], opened.KCP
	g.Expect(target.Config).To(Equal(suite.Targets["florin"].Config))
	g.Expect(kcp.Config).To(Equal(suite.KCP.Config))
	g.Expect(kcp.HubConfig).To(Equal(suite.KCP.HubConfig))
	kubeconfig, err := target.ServiceAccountKubeconfig(ctx, "default", "default")
	g.Expect(err).NotTo(HaveOccurred())
	config, err := clientcmd.RESTConfigFromKubeConfig(kubeconfig)
	g.Expect(err).NotTo(HaveOccurred())
	_, err = framework.List(ctx, config, pods, "default", "")
	g.Expect(err).To(MatchError(And(ContainSubstring("forbidden"), ContainSubstring("system:serviceaccount:default:default"))))
	file, err := kcp.WorkspaceKubeconfig("root")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(framework.Exists(ctx, load(t, file), namespaces, "", "default")).To(BeTrue())

	notOurs := MatchError(ContainSubstring("another process started this server"))
	for _, server := range opened.Servers() {
		g.Expect(server.Start(ctx)).To(notOurs)
		g.Expect(server.Pause()).To(notOurs)
		g.Expect(server.Kill9()).To(notOurs)
		g.Expect(server.Stop()).To(notOurs)
	}
	g.Expect(opened.Servers()).To(HaveLen(2))
	g.Expect(framework.Exists(ctx, target.Config, namespaces, "", "default")).To(BeTrue())
}

func load(t *testing.T, file string) *rest.Config {
	t.Helper()
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	config, err := clientcmd.RESTConfigFromKubeConfig(content)
	if err != nil {
		t.Fatal(err)
	}
	return config
}

func pause(t *testing.T, target *servers.Target) {
	g := NewWithT(t)
	read := func(limit time.Duration) error {
		ctx, cancel := context.WithTimeout(t.Context(), limit)
		defer cancel()
		_, err := framework.Get(ctx, target.Config, namespaces, "", "default")
		return err
	}
	g.Expect(read(suite.Timeout)).To(Succeed())
	g.Expect(target.Pause()).To(Succeed())
	g.Expect(read(time.Second)).To(MatchError(context.DeadlineExceeded))
	g.Expect(target.Resume()).To(Succeed())
	g.Expect(read(suite.Timeout)).To(Succeed())
}

func restart(t *testing.T, server *servers.Server, config *rest.Config) {
	g := NewWithT(t)
	ctx, cancel := context.WithTimeout(t.Context(), startLimit)
	defer cancel()
	g.Expect(framework.Apply(ctx, config, "{apiVersion: v1, kind: ConfigMap, metadata: {name: kept}}")).To(Succeed())
	before, err := framework.Get(ctx, config, configMaps, "default", "kept")
	g.Expect(err).NotTo(HaveOccurred())

	g.Expect(server.Kill9()).To(Succeed())
	_, err = framework.Get(ctx, config, configMaps, "default", "kept")
	g.Expect(err).To(MatchError(syscall.ECONNREFUSED))
	g.Expect(server.Start(ctx)).To(Succeed())

	after, err := framework.Get(ctx, config, configMaps, "default", "kept")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(after.GetUID()).To(Equal(before.GetUID()))
}

func stop(t *testing.T, world *servers.Environment) {
	g := NewWithT(t)
	var ports, pids []int
	for _, server := range world.Servers() {
		ports = append(ports, server.Ports()...)
		pids = append(pids, server.Process().Pid())
	}
	// Ports: two of kcp's etcd, two of etcd, kcp, API server, controller manager, scheduler and kwok.
	g.Expect(ports).To(HaveLen(9))
	g.Expect(pids).To(HaveLen(6))
	g.Expect(listening(t, ports)).To(HaveLen(9))
	g.Expect(living(pids)).To(HaveLen(6))

	g.Expect(world.Stop()).To(Succeed())
	g.Expect(listening(t, ports)).To(BeEmpty())
	g.Expect(living(pids)).To(BeEmpty())
}

func listening(t *testing.T, ports []int) []int {
	t.Helper()
	var found []int
	for _, port := range ports {
		connection, err := new(net.Dialer).DialContext(t.Context(), "tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
		if err != nil {
			continue
		}
		found = append(found, port)
		if err := connection.Close(); err != nil {
			t.Error(err)
		}
	}
	return found
}

func living(pids []int) []int {
	var found []int
	for _, pid := range pids {
		if !errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) {
			found = append(found, pid)
		}
	}
	return found
}
