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

// Package e2e tests the whole hub: real kcp, real clusters, and the real binary with the rights of the chart.
package e2e

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	ginkgo "github.com/onsi/ginkgo/v2/types"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/synchub-dev/synchub/test/framework"
	"github.com/synchub-dev/synchub/test/framework/installation"
	"github.com/synchub-dev/synchub/test/framework/servers"
)

const suiteName = "e2e"

// Several processes run the specs. They share kcp and the targets florin and guilder. Each process has its own
// installation: a hub, a provider workspace, a kcp user and a hosting cluster. A spec may kill and start its hub, count the
// hub's requests, and change PublishedResources. Its objects on shared servers, and its inventory workspace, have unique
// names. Ginkgo's process 1 has started the servers. It runs the specs marked Serial last, when no other hub
// runs: only those may signal kcp or a shared target.
var (
	suite   *framework.Suite
	synchub *installation.Installation
	hub     *installation.Hub
	// inventoryOfSpecs is what sharedInventory returns. Its SyncTarget florin has the first mailbox of the process.
	inventoryOfSpecs *installation.Inventory
	// clusters are the clusters for target and register: "florin" and "guilder" with controllers, and "hosting", the
	// process's own hosting cluster. The latter has no controllers, so only the spec makes changes.
	clusters = map[string]*servers.Target{}
)

var shared = []string{"florin", "guilder"}

// thorough marks a spec, or all of a container, that `make test-all` runs and `make test` does not. See
// docs/design/0026-test-tiers.md.
var thorough = Label("thorough")

const (
	// absenceDelay is short, since the few mailboxes of the tests are bound in a moment: deletions need not wait as long as in
	// a fleet.
	absenceDelay = 2 * time.Second
	// absenceVerified is longer than the verification of an absence takes, after a change of the binding and twice.
	absenceVerified = 6 * absenceDelay
)

func hostingOf(process int) string { return fmt.Sprintf("hosting-%d", process) }

func TestE2E(t *testing.T) {
	RegisterFailHandler(Fail)
	SetDefaultEventuallyTimeout(90 * time.Second)
	SetDefaultEventuallyPollingInterval(100 * time.Millisecond)
	RunSpecs(t, "synchub")
}

var _ = SynchronizedBeforeSuite(func(ctx SpecContext) {
	targets, users := map[string]servers.TargetOptions{}, []string{}
	for _, name := range shared {
		targets[name] = servers.TargetOptions{Controllers: true}
	}
	configuration, _ := GinkgoConfiguration()
	for process := 1; process <= configuration.ParallelTotal; process++ {
		targets[hostingOf(process)] = servers.TargetOptions{}
		users = append(users, installation.HubUser(process))
	}
	var err error
	suite, err = framework.StartSuite(ctx, suiteName, servers.Options{Log: progress}, targets, users[1:]...)
	Expect(err).NotTo(HaveOccurred())
}, func(ctx SpecContext) {
	process := GinkgoParallelProcess()
	hosting := hostingOf(process)
	var err error
	if process != 1 {
		suite, err = framework.OpenSuite(suiteName, append([]string{hosting}, shared...), progress)
		Expect(err).NotTo(HaveOccurred())
	}
	for _, name := range shared {
		clusters[name] = suite.Targets[name]
	}
	clusters["hosting"] = suite.Targets[hosting]
	binary := filepath.Join(suite.Options.Bin, "synchub-race")
	synchub, err = installation.New(ctx, suite.Options, suite.KCP, clusters["hosting"], binary, process, ownNames...)
	Expect(err).NotTo(HaveOccurred())
	synchub.HubArguments = []string{fmt.Sprintf("--binding-settle-period=%s", absenceDelay), fmt.Sprintf("--mass-deletion-delay=%s", absenceDelay)}
	Expect(synchub.EnableTunnels()).To(Succeed())
	startHub(ctx)
	makeFirstMailbox(ctx)
}, NodeTimeout(10*time.Minute))

// makeFirstMailbox makes the first mailbox of this process, for which kcp sets up all published APIs: on a busy machine that takes longer than
// specs wait. Without it no spec can pass.
func makeFirstMailbox(ctx context.Context) {
	GinkgoHelper()
	var err error
	inventoryOfSpecs, err = synchub.NewInventory(ctx, fmt.Sprintf("shared-%d", GinkgoParallelProcess()))
	Expect(err).NotTo(HaveOccurred())
	Expect(inventoryOfSpecs.Register(ctx, "florin", kubeconfigOf("florin"), nil)).To(Succeed())
	clusterOf[inventoryOfSpecs.Path+"/florin"] = "florin"
	Eventually(inventoryOfSpecs.Mailbox).WithContext(ctx).WithArguments("florin").WithTimeout(5*time.Minute).ShouldNot(BeNil(), "kcp and the hub make no mailbox ready")
}

var _ = SynchronizedAfterSuite(func(ctx SpecContext) {
	if hub != nil && !hub.Ended() {
		code, err := hub.Terminate(ctx)
		Expect(err).NotTo(HaveOccurred())
		Expect(code).To(BeZero(), "the hub must end cleanly on SIGTERM:\n%s", hub.LogTail(30))
	}
}, func() {
	if suite != nil {
		ended := suite.Ended()
		Expect(suite.Stop()).To(Succeed())
		Expect(ended).To(BeEmpty(), "a server has ended by itself")
		expectSoundHubs()
	}
}, NodeTimeout(2*time.Minute))

// unsound matches a data race or a panic in a hub's log. The exit status of a killed replica does not show these.
var unsound = regexp.MustCompile(`(?m)^WARNING: DATA RACE|^panic: |^fatal error: |Observed a panic`)

func expectSoundHubs() {
	GinkgoHelper()
	logs, err := filepath.Glob(filepath.Join(suite.Options.Dir, "logs", "hub-*.log"))
	Expect(err).NotTo(HaveOccurred())
	Expect(logs).NotTo(BeEmpty())
	for _, log := range logs {
		content, err := os.ReadFile(log)
		Expect(err).NotTo(HaveOccurred())
		Expect(unsound.Find(content)).To(BeNil(), "%s", log)
	}
}

// Only now it is known whether a spec of any process has failed.
var _ = ReportAfterSuite("logs", func(report Report) {
	if suite == nil {
		return
	}
	logs, err := suite.Finish(!report.SuiteSucceeded)
	Expect(err).NotTo(HaveOccurred())
	if !report.SuiteSucceeded {
		fmt.Println("logs:", logs)
		fmt.Println(firstFailures(report.SpecReports))
	}
})

// firstFailures describes the failures that came first: if most specs fail, these may have broken the servers for the rest.
func firstFailures(specs ginkgo.SpecReports) string {
	failed := specs.WithState(ginkgo.SpecStateFailureStates)
	slices.SortFunc(failed, func(a, b ginkgo.SpecReport) int {
		return a.Failure.TimelineLocation.Time.Compare(b.Failure.TimelineLocation.Time)
	})
	text := &strings.Builder{}
	for _, spec := range failed[:min(len(failed), 3)] {
		fmt.Fprintf(text, "failed first: [process %d, %s to %s] %s\n%s\n%s\n", spec.ParallelProcess, spec.StartTime.Format(time.TimeOnly),
			spec.Failure.TimelineLocation.Time.Format(time.TimeOnly), spec.FullText(), spec.Failure.Location, firstBytes(spec.Failure.Message, 800))
	}
	return text.String()
}

func firstBytes(text string, limit int) string {
	return strings.ToValidUTF8(text[:min(len(text), limit)], "")
}

func progress(line string) { GinkgoWriter.Println(line) }

// startHub starts a hub, with more arguments if given, and waits until it is ready.
func startHub(ctx context.Context, args ...string) {
	GinkgoHelper()
	launchHub(ctx, args...)
	Expect(hub.AwaitReady(ctx)).To(Succeed())
}

// launchHub starts a hub, with more arguments if given. It first takes the Lease from a hub that was killed, as time would after some
// seconds.
func launchHub(ctx context.Context, args ...string) {
	GinkgoHelper()
	if hub != nil {
		patch(ctx, target("hosting"), leases, installation.Namespace, "synchub", `{"spec": {"holderIdentity": ""}}`)
	}
	var err error
	hub, err = synchub.StartHub(args...)
	Expect(err).NotTo(HaveOccurred())
}

// newInventory creates an inventory workspace whose SyncTargets are deleted after the spec.
func newInventory(ctx context.Context, name string) *installation.Inventory {
	GinkgoHelper()
	inventory, err := synchub.NewInventory(ctx, name)
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func(ctx SpecContext) {
		startEndedHub(ctx)
		syncTargets, err := framework.List(ctx, inventory.Config, installation.SyncTargets, "", "")
		Expect(err).NotTo(HaveOccurred())
		for _, syncTarget := range syncTargets {
			// The target may be gone, and the SyncTarget too if the spec has deleted it.
			Expect(client.IgnoreNotFound(framework.Patch(ctx, inventory.Config, installation.SyncTargets, "", syncTarget.GetName(), `{"metadata": {"annotations": {"synchub.dev/force-removal": "true"}}}`))).To(Succeed())
			Expect(framework.Delete(ctx, inventory.Config, installation.SyncTargets, "", syncTarget.GetName())).To(Succeed())
		}
		Eventually(framework.List).WithContext(ctx).WithArguments(inventory.Config, installation.SyncTargets, "", "").Should(BeEmpty())
	}, NodeTimeout(2*time.Minute))
	return inventory
}

// startEndedHub starts a hub if a spec has left none.
func startEndedHub(ctx context.Context) {
	GinkgoHelper()
	if hub.Ended() {
		progress("the hub has ended: " + hub.LogTail(5))
		startHub(ctx)
	}
}

// sharedInventory returns the inventory workspace of this process, for specs that need no mailbox of their own: creating and
// deleting a mailbox takes longer than most specs. Its SyncTargets have the names of their clusters. After the spec their
// mailboxes have no configs, and their spec is as registered. Objects stay in the mailboxes, in namespaces that no other spec
// uses, so a spec that selects all namespaces needs an inventory of its own.
func sharedInventory() *installation.Inventory {
	GinkgoHelper()
	DeferCleanup(func(ctx SpecContext) {
		startEndedHub(ctx)
		registered, err := framework.List(ctx, inventoryOfSpecs.Config, installation.SyncTargets, "", "")
		Expect(err).NotTo(HaveOccurred())
		for _, syncTarget := range registered {
			restore(ctx, inventoryOfSpecs, syncTarget.GetName())
		}
	}, NodeTimeout(2*time.Minute))
	return inventoryOfSpecs
}

// sharedMailbox returns a client config for the shared mailbox of a cluster; see sharedInventory.
func sharedMailbox(ctx context.Context, cluster string) *rest.Config {
	GinkgoHelper()
	return register(ctx, sharedInventory(), cluster, cluster)
}

// restore deletes all configs in the mailbox of a SyncTarget and sets its spec as Inventory.Register does.
func restore(ctx context.Context, inventory *installation.Inventory, name string) {
	GinkgoHelper()
	mailbox, err := dynamic.NewForConfig(mailboxConfig(ctx, inventory, name))
	Expect(err).NotTo(HaveOccurred())
	for _, resource := range []schema.GroupVersionResource{syncerConfigs, edgeSyncConfigs} {
		Expect(mailbox.Resource(resource).DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{})).To(Succeed())
	}
	workspace, err := dynamic.NewForConfig(inventory.Config)
	Expect(err).NotTo(HaveOccurred())
	spec := fmt.Appendf(nil, `[{"op": "replace", "path": "/spec", "value": {"kubeconfigSecretRef": {"name": "%s-kubeconfig"}, "allowSharedCluster": true}}]`, name)
	_, err = workspace.Resource(installation.SyncTargets).Patch(ctx, name, types.JSONPatchType, spec, metav1.PatchOptions{})
	Expect(err).NotTo(HaveOccurred())
	eventuallyObserved(ctx, inventory, name)
}

// clusterOf has the cluster of each registered SyncTarget, by its inventory workspace and name.
var clusterOf = map[string]string{}

// register creates a SyncTarget for one of the suite's clusters and returns a client config for its mailbox.
func register(ctx context.Context, inventory *installation.Inventory, name, target string) *rest.Config {
	GinkgoHelper()
	Expect(inventory.Register(ctx, name, kubeconfigOf(target), nil)).To(Succeed())
	clusterOf[inventory.Path+"/"+name] = target
	return mailboxOf(ctx, inventory, name)
}

// newCluster starts a cluster without controllers that only this spec uses and may kill; target and register know its name.
// Call it before newInventory: cleanup runs in reverse order.
func newCluster(ctx context.Context, name string) *servers.Target {
	GinkgoHelper()
	cluster, err := servers.StartTarget(ctx, suite.Options, name, servers.TargetOptions{})
	Expect(err).NotTo(HaveOccurred())
	clusters[name] = cluster
	DeferCleanup(func() {
		delete(clusters, name)
		Expect(cluster.Stop()).To(Succeed())
	})
	return cluster
}

func kubeconfigOf(target string) []byte {
	GinkgoHelper()
	kubeconfig, err := os.ReadFile(clusters[target].Kubeconfig)
	Expect(err).NotTo(HaveOccurred())
	return kubeconfig
}

func mailboxOf(ctx context.Context, inventory *installation.Inventory, name string) (mailbox *rest.Config) {
	GinkgoHelper()
	Eventually(func(g Gomega) {
		var err error
		mailbox, err = inventory.Mailbox(ctx, name)
		g.Expect(err).NotTo(HaveOccurred())
	}).WithContext(ctx).Should(Succeed())
	return mailbox
}

// mailboxConfig returns a client config for the mailbox of a SyncTarget, ready or not.
func mailboxConfig(ctx context.Context, inventory *installation.Inventory, name string) *rest.Config {
	GinkgoHelper()
	syncTarget, err := inventory.SyncTarget(ctx, name)
	Expect(err).NotTo(HaveOccurred())
	Expect(syncTarget.Status.Mailbox).NotTo(BeNil())
	return synchub.InWorkspace(syncTarget.Status.Mailbox.Workspace)
}
