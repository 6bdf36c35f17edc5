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

// Package e2e tests the hub as a whole: real kcp, real clusters, the real binary with the rights the chart gives it.
package e2e

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/client-go/rest"

	"github.com/synchub-dev/synchub/test/framework"
	"github.com/synchub-dev/synchub/test/framework/installation"
	"github.com/synchub-dev/synchub/test/framework/servers"
)

// The servers and the installation are shared; each spec has its own inventory workspace and its own namespaces.
var (
	suite   *framework.Suite
	synchub *installation.Installation
	hub     *installation.Hub
)

func TestE2E(t *testing.T) {
	RegisterFailHandler(Fail)
	SetDefaultEventuallyTimeout(90 * time.Second)
	SetDefaultEventuallyPollingInterval(100 * time.Millisecond)
	RunSpecs(t, "synchub")
}

var _ = BeforeSuite(func(ctx SpecContext) {
	var err error
	suite, err = framework.StartSuite(ctx, "e2e", map[string]servers.TargetOptions{
		"florin": {Controllers: true}, "guilder": {Controllers: true}, "hosting": {},
	}, func(line string) { GinkgoWriter.Println(line) })
	Expect(err).NotTo(HaveOccurred())
	binary := filepath.Join(suite.Options.Bin, "synchub-race")
	synchub, err = installation.New(ctx, suite.Options, suite.KCP, suite.Targets["hosting"], binary)
	Expect(err).NotTo(HaveOccurred())
	startHub(ctx)
}, NodeTimeout(10*time.Minute))

var _ = AfterSuite(func(ctx SpecContext) {
	if hub != nil && !hub.Ended() {
		code, err := hub.Terminate(ctx)
		Expect(err).NotTo(HaveOccurred())
		Expect(code).To(BeZero(), "the hub must end cleanly on SIGTERM:\n%s", hub.LogTail(30))
	}
	if suite != nil {
		logs, err := suite.Finish(failed)
		Expect(err).NotTo(HaveOccurred())
		if failed {
			GinkgoWriter.Println("logs:", logs)
		}
	}
}, NodeTimeout(2*time.Minute))

var failed bool

var _ = ReportAfterEach(func(report SpecReport) { failed = failed || report.Failed() })

func startHub(ctx context.Context) {
	GinkgoHelper()
	var err error
	hub, err = synchub.StartHub()
	Expect(err).NotTo(HaveOccurred())
	Expect(hub.AwaitReady(ctx)).To(Succeed())
}

// newInventory makes an inventory workspace whose SyncTargets go with the spec.
func newInventory(ctx context.Context, name string) *installation.Inventory {
	GinkgoHelper()
	inventory, err := synchub.NewInventory(ctx, name)
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func(ctx SpecContext) {
		if hub.Ended() {
			startHub(ctx)
		}
		syncTargets, err := framework.List(ctx, inventory.Config, installation.SyncTargets, "", "")
		Expect(err).NotTo(HaveOccurred())
		for _, syncTarget := range syncTargets {
			Expect(framework.Delete(ctx, inventory.Config, installation.SyncTargets, "", syncTarget.GetName())).To(Succeed())
		}
		Eventually(framework.List).WithContext(ctx).WithArguments(inventory.Config, installation.SyncTargets, "", "").Should(BeEmpty())
	}, NodeTimeout(2*time.Minute))
	return inventory
}

// register makes a SyncTarget for one of the suite's clusters and returns its mailbox.
func register(ctx context.Context, inventory *installation.Inventory, name, target string) *rest.Config {
	GinkgoHelper()
	kubeconfig, err := os.ReadFile(suite.Targets[target].Kubeconfig)
	Expect(err).NotTo(HaveOccurred())
	Expect(inventory.Register(ctx, name, kubeconfig, nil)).To(Succeed())
	return mailboxOf(ctx, inventory, name)
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

// mailboxConfig returns a configuration for the mailbox of a SyncTarget, ready or not.
func mailboxConfig(ctx context.Context, inventory *installation.Inventory, name string) *rest.Config {
	GinkgoHelper()
	syncTarget, err := inventory.SyncTarget(ctx, name)
	Expect(err).NotTo(HaveOccurred())
	Expect(syncTarget.Status.Mailbox).NotTo(BeNil())
	return synchub.InWorkspace(syncTarget.Status.Mailbox.Workspace)
}
