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

package restore

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/rest"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/test/framework"
	"github.com/synchub-dev/synchub/test/framework/installation"
	"github.com/synchub-dev/synchub/test/framework/servers"
	"github.com/synchub-dev/synchub/test/framework/suite"
	"github.com/synchub-dev/synchub/test/tier"
)

func TestMain(m *testing.M) { suite.Main(m) }

const (
	namespace = "shop"
	patience  = 3 * time.Minute
	// believed is longer than the hub takes to believe that an object is gone.
	believed = 25 * time.Second
)

var (
	configMaps    = corev1.SchemeGroupVersion.WithResource("configmaps")
	syncerConfigs = edgev2alpha1.SchemeGroupVersion.WithResource("syncerconfigs")
)

// environment is a kcp with a hub and one cluster, which hosts the hub too.
type environment struct {
	*WithT
	kcp             *servers.KCP
	install         *installation.Installation
	hub             *installation.Hub
	inventory       *installation.Inventory
	mailbox, target *rest.Config
	kubeconfig      string
	bin             string
}

func TestRestoredKCP(t *testing.T) {
	tier.Thorough(t)
	e := start(t)
	e.apply(t, e.mailbox, configMap("kept", "1"), configMap("edited", "1"), configMap("deleted", "1"))
	e.expectData(t, "kept", "1")
	e.expectData(t, "edited", "1")
	e.expectData(t, "deleted", "1")
	backup := e.backUp(t)

	t.Log("a kcp that was only started again")
	e.apply(t, e.mailbox, configMap("passing", "1"))
	e.expectData(t, "passing", "1")
	e.remove(t, "passing")
	e.expectGone(t, "passing")
	e.expectNotHeld(t)

	t.Log("a hub that runs while kcp is restored")
	e.change(t)
	e.restore(t, backup)
	e.expectHeld(t)
	e.confirm(t)
	e.expectBackupState(t)

	t.Log("a hub that does not run during the restore")
	e.change(t)
	e.stopHub(t)
	e.restore(t, backup)
	e.startHub(t)
	e.expectHeld(t)
	e.stopHub(t)
	e.startHub(t)
	e.expectHeld(t)
	e.confirm(t)
	e.expectBackupState(t)
	e.remove(t, "kept")
	e.expectGone(t, "kept")
}

// backUp takes a snapshot of kcp. With the watches of a hub, kcp takes long to end by itself.
func (e *environment) backUp(t *testing.T) servers.Snapshot {
	t.Helper()
	e.Expect(e.kcp.Kill9()).To(Succeed())
	backup, err := e.kcp.TakeSnapshot(t.Context())
	e.Expect(err).NotTo(HaveOccurred())
	e.Expect(e.kcp.Start(t.Context())).To(Succeed())
	return backup
}

func (e *environment) restore(t *testing.T, backup servers.Snapshot) {
	t.Helper()
	e.Expect(e.kcp.Kill9()).To(Succeed())
	e.Expect(e.kcp.Restore(t.Context(), backup)).To(Succeed())
}

// change makes, edits and deletes objects after the backup, and returns when the cluster has all that.
func (e *environment) change(t *testing.T) {
	t.Helper()
	for i := range 3 {
		e.apply(t, e.mailbox, configMap(fmt.Sprint("new-", i), "1"))
	}
	e.apply(t, e.mailbox, configMap("edited", "2"))
	e.remove(t, "deleted")
	for i := range 3 {
		e.expectData(t, fmt.Sprint("new-", i), "1")
	}
	e.expectData(t, "edited", "2")
	e.expectGone(t, "deleted")
}

// expectHeld expects that the hub shows the restore, and has neither removed nor overwritten a copy.
func (e *environment) expectHeld(t *testing.T) {
	t.Helper()
	e.Eventually(func() bool { return e.isHeld(t) }).WithTimeout(patience).Should(BeTrue())
	e.Eventually(func() (string, error) {
		return framework.Condition(t.Context(), e.mailbox, syncerConfigs, "", namespace, edgev2alpha1.ConditionStoreWentBack)
	}).WithTimeout(patience).Should(HavePrefix("True"))
	e.Eventually(func() string {
		status := e.syncTarget(t).Status.StoreWentBack
		if status == nil {
			return ""
		}
		return fmt.Sprintf("%d removals, %d overwrites", status.Removals, status.Overwrites)
	}).WithTimeout(patience).Should(Equal("3 removals, 1 overwrites"))
	e.Consistently(func() string {
		return e.dataOf(t, "new-0") + e.dataOf(t, "new-1") + e.dataOf(t, "new-2") + e.dataOf(t, "edited")
	}).
		WithTimeout(believed).WithPolling(time.Second).Should(Equal("1112"))
	e.expectData(t, "deleted", "1")
}

// expectBackupState expects that the cluster has the objects of the backup, once the restore is confirmed.
func (e *environment) expectBackupState(t *testing.T) {
	t.Helper()
	for i := range 3 {
		e.expectGone(t, fmt.Sprint("new-", i))
	}
	e.expectData(t, "edited", "1")
	e.Eventually(func() bool { return e.isHeld(t) }).WithTimeout(patience).Should(BeFalse())
}

func (e *environment) expectNotHeld(t *testing.T) {
	t.Helper()
	e.Expect(e.isHeld(t)).To(BeFalse())
}

func (e *environment) syncTarget(t *testing.T) *edgev2alpha1.SyncTarget {
	t.Helper()
	var found *edgev2alpha1.SyncTarget
	e.Eventually(func() (err error) {
		found, err = e.inventory.SyncTarget(t.Context(), "florin")
		return err
	}).WithTimeout(patience).Should(Succeed())
	return found
}

func (e *environment) isHeld(t *testing.T) bool {
	t.Helper()
	status := e.syncTarget(t).Status
	return meta.IsStatusConditionTrue(status.Conditions, edgev2alpha1.ConditionStoreWentBack) && status.StoreWentBack != nil
}

// confirm lists what differs and confirms the restore with the plugin.
func (e *environment) confirm(t *testing.T) {
	t.Helper()
	inventory, err := e.kcp.WorkspaceKubeconfig(e.inventory.Path)
	e.Expect(err).NotTo(HaveOccurred())
	command := exec.CommandContext(t.Context(), filepath.Join(e.bin, "kubectl-synchub"), "confirm-restore", "florin", "--target-kubeconfig", e.kubeconfig)
	command.Env = append(os.Environ(), "KUBECONFIG="+inventory)
	output, err := command.CombinedOutput()
	t.Logf("%s", output)
	e.Expect(err).NotTo(HaveOccurred())
	for _, line := range []string{"new-0 missing", "new-1 missing", "new-2 missing", "edited older"} {
		e.Expect(strings.Join(strings.Fields(string(output)), " ")).To(ContainSubstring(line))
	}
}

func start(t *testing.T) *environment {
	t.Helper()
	opts := suite.Options(t)
	e := &environment{WithT: NewWithT(t), kcp: suite.KCP(t), bin: opts.Bin}
	hosting := suite.StartTarget(t, "hosting", servers.TargetOptions{})
	e.target, e.kubeconfig = hosting.Config, hosting.Kubeconfig
	var err error
	e.install, err = installation.New(t.Context(), opts, e.kcp, hosting, filepath.Join(opts.Bin, "synchub-race"), 1)
	e.Expect(err).NotTo(HaveOccurred())
	e.startHub(t)
	t.Cleanup(func() { e.stopHub(t) })
	e.inventory, err = e.install.NewInventory(t.Context(), "fleet")
	e.Expect(err).NotTo(HaveOccurred())
	kubeconfig, err := os.ReadFile(e.kubeconfig)
	e.Expect(err).NotTo(HaveOccurred())
	e.Expect(e.inventory.Register(t.Context(), "florin", kubeconfig, nil)).To(Succeed())
	e.Eventually(func() (err error) { e.mailbox, err = e.inventory.Mailbox(t.Context(), "florin"); return err }).WithTimeout(patience).Should(Succeed())
	e.apply(t, e.mailbox, fmt.Sprintf("apiVersion: v1\nkind: Namespace\nmetadata: {name: %s}\n", namespace),
		fmt.Sprintf("apiVersion: edge.kubestellar.io/v2alpha1\nkind: SyncerConfig\nmetadata: {name: %s}\nspec: {namespaceScope: {namespaces: [%s], resources: [{group: '', resource: configmaps}]}}\n", namespace, namespace))
	return e
}

func (e *environment) startHub(t *testing.T) {
	t.Helper()
	var err error
	e.hub, err = e.install.StartHub()
	e.Expect(err).NotTo(HaveOccurred())
	e.Expect(e.hub.AwaitReady(t.Context())).To(Succeed())
}

func (e *environment) stopHub(t *testing.T) {
	t.Helper()
	code, err := e.hub.Terminate(context.WithoutCancel(t.Context()))
	e.Expect(err).NotTo(HaveOccurred())
	e.Expect(code).To(BeZero(), e.hub.LogTail(30))
}

func configMap(name, entry string) string {
	return fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: %s, namespace: %s}\ndata: {entry: %q}\n", name, namespace, entry)
}

func (e *environment) apply(t *testing.T, config *rest.Config, manifests ...string) {
	t.Helper()
	e.Eventually(func() error { return framework.Apply(t.Context(), config, strings.Join(manifests, "---\n")) }).WithTimeout(patience).Should(Succeed())
}

func (e *environment) remove(t *testing.T, name string) {
	t.Helper()
	e.Expect(framework.Delete(t.Context(), e.mailbox, configMaps, namespace, name)).To(Succeed())
}

// dataOf returns the entry of a ConfigMap on the cluster; "-" if there is none.
func (e *environment) dataOf(t *testing.T, name string) string {
	t.Helper()
	if exists, err := framework.Exists(t.Context(), e.target, configMaps, namespace, name); err != nil || !exists {
		return "-"
	}
	entry, err := framework.Field(t.Context(), e.target, configMaps, namespace, name, "data", "entry")
	e.Expect(err).NotTo(HaveOccurred())
	return entry
}

func (e *environment) expectData(t *testing.T, name, entry string) {
	t.Helper()
	e.Eventually(func() string { return e.dataOf(t, name) }).WithTimeout(patience).Should(Equal(entry), name)
}

func (e *environment) expectGone(t *testing.T, name string) { t.Helper(); e.expectData(t, name, "-") }
