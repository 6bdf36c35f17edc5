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
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/synchub-dev/synchub/test/framework"
	"github.com/synchub-dev/synchub/test/framework/dashboards"
)

var _ = Describe("metrics", func() {
	It("report changes and the state of a target, until the SyncTarget is deleted", func(ctx SpecContext) {
		const ns = "metrics"
		inventory := newInventory(ctx, ns)
		mailbox := register(ctx, inventory, "quiet", "hosting")
		hosting := target("hosting")
		apply(ctx, mailbox, documents(namespace(ns), everythingIn(ns), configMap(ns, "first", "x"), deployment(ns, "web")))
		eventuallyExists(ctx, hosting, configMaps, ns, "first")
		eventuallyExists(ctx, hosting, deployments, ns, "web")
		quiet(ctx)
		syncTarget, err := inventory.SyncTarget(ctx, "quiet")
		Expect(err).NotTo(HaveOccurred())
		uid := string(syncTarget.UID)
		sample := func(name string, labels ...string) func() float64 {
			return func() float64 { return samples(ctx, name, append(labels, fmt.Sprintf("sync_target=%q", uid))...) }
		}
		expect := func(want any, name string, labels ...string) {
			GinkgoHelper()
			Eventually(sample(name, labels...)).WithContext(ctx).Should(BeEquivalentTo(want), "%s %v", name, labels)
		}

		By("measuring each change once, from the side on which the hub observed it")
		before := sample("synchub_sync_latency_seconds_count", `resource="configmaps"`, `direction="down"`)()
		apply(ctx, mailbox, configMap(ns, "second", "x"))
		expect(before+1, "synchub_sync_latency_seconds_count", `resource="configmaps"`, `direction="down"`)
		patch(ctx, mailbox, configMaps, ns, "second", `{"data": {"entry": "y"}}`)
		expect(before+2, "synchub_sync_latency_seconds_count", `resource="configmaps"`, `direction="down"`)
		remove(ctx, mailbox, configMaps, ns, "second")
		expect(before+3, "synchub_sync_latency_seconds_count", `resource="configmaps"`, `direction="down"`)
		patch(ctx, hosting, deployments, ns, "web", `{"status": {"replicas": 2}}`, "status")
		expect(1, "synchub_sync_latency_seconds_count", `resource="deployments.apps"`, `direction="status"`)
		By("counting a repair as one")
		patch(ctx, hosting, configMaps, ns, "first", `{"data": {"entry": "red"}}`)
		expect(1, "synchub_sync_actions_total", `resource="configmaps"`, `action="Apply"`, `cause="Drifted"`, `result="done"`)
		quiet(ctx)
		expect(before+3, "synchub_sync_latency_seconds_count", `resource="configmaps"`, `direction="down"`)

		By("reporting the state of the target, and its cached objects")
		expect(1, "synchub_target_up")
		expect(1, "synchub_target_state", `reason="Connected"`)
		expect(1, "synchub_sync_target_info", `name="quiet"`)
		expect(1, "synchub_sync_target_condition", `name="quiet"`, `condition="Ready"`, `status="True"`)
		all, err := hub.Metrics(ctx)
		Expect(err).NotTo(HaveOccurred())
		Expect(all["synchub_mailbox_creation_seconds_count"]).To(BeNumerically(">=", 1))
		Expect(samples(ctx, "synchub_mailbox_creations", `state="waiting"`)).To(BeEquivalentTo(0))
		Expect(samples(ctx, "leader_election_master_status", `name="synchub"`)).To(BeEquivalentTo(1))
		expect(1, "synchub_target_cache_objects", `resource="deployments.apps"`)
		Expect(sample("synchub_target_cache_bytes", `resource="deployments.apps"`)()).To(BeNumerically(">", 1000))
		Expect(samples(ctx, "synchub_mailbox_cache_bytes", `resource="deployments.apps"`)).To(BeNumerically(">", 1000))
		expect(0, "synchub_sync_queue_depth")
		expect(0, "synchub_sync_pending_objects")
		By("having only documented metrics and labels")
		expectOnPage(ctx)
		By("giving the panels of the dashboards data")
		expectPanels(ctx, syncTarget.Annotations["kcp.io/cluster"], "quiet")

		remove(ctx, inventory.Config, syncTargets, "", "quiet")
		eventuallyGone(ctx, inventory.Config, syncTargets, "", "quiet")
		Eventually(seriesOf).WithContext(ctx).WithArguments(uid).Should(BeZero())
	}, NodeTimeout(3*time.Minute))
})

// expectPanels expects each query of the dashboards to have a result, unless it shows only what is wrong.
func expectPanels(ctx context.Context, inventory, name string) {
	GinkgoHelper()
	root, err := framework.RepositoryRoot()
	Expect(err).NotTo(HaveOccurred())
	all, err := dashboards.Read(filepath.Join(root, "charts", "synchub", "files", "dashboards"))
	Expect(err).NotTo(HaveOccurred())
	var queries []string
	for _, dashboard := range all {
		queries = append(queries, dashboard.Queries(map[string]string{"inventory": inventory, "name": name})...)
	}
	samples, err := hub.Metrics(ctx)
	Expect(err).NotTo(HaveOccurred())
	empty, err := dashboards.Empty(ctx, filepath.Join(suite.Options.Bin, "promtool"), GinkgoT().TempDir(), samples, queries)
	Expect(err).NotTo(HaveOccurred())
	for _, query := range empty {
		// The token of the tests' kubeconfigs does not end.
		Expect(query).To(Or(ContainSubstring(" > "), ContainSubstring(`status!="True"`), ContainSubstring("token_expiry")), "it has no result")
	}
	Expect(len(empty)).To(BeNumerically("<", len(queries)/2))
}

var (
	documentedMetric = regexp.MustCompile("(?m)^\\| `(synchub_\\w+)` \\| \\w+ \\| ([^|]*) \\|")
	sampleLabel      = regexp.MustCompile(`(\w+)="`)
)

// expectOnPage expects each series of the hub to have the labels that docs/metrics.md documents.
func expectOnPage(ctx context.Context) {
	GinkgoHelper()
	labelsOf := map[string][]string{}
	for _, row := range documentedMetric.FindAllStringSubmatch(page("metrics.md"), -1) {
		var labels []string
		if row[2] != "none" {
			labels = strings.Split(strings.ReplaceAll(row[2], "`", ""), ", ")
		}
		if slices.Contains(labels, "sync_target") {
			labels = append(labels, "name", "inventory")
		}
		slices.Sort(labels)
		labelsOf[row[1]] = labels
	}
	all, err := hub.Metrics(ctx)
	Expect(err).NotTo(HaveOccurred())
	seen := map[string]bool{}
	for sample := range all {
		name, rest, _ := strings.Cut(sample, "{")
		if !strings.HasPrefix(name, "synchub_") {
			continue
		}
		for _, part := range []string{"_bucket", "_sum", "_count"} {
			name = strings.TrimSuffix(name, part)
		}
		labels := map[string]bool{}
		for _, label := range sampleLabel.FindAllStringSubmatch(rest, -1) {
			labels[label[1]] = label[1] != "le"
		}
		maps.DeleteFunc(labels, func(_ string, is bool) bool { return !is })
		Expect(slices.Sorted(maps.Keys(labels))).To(Equal(labelsOf[name]), sample)
		seen[name] = true
	}
	Expect(len(seen)).To(BeNumerically(">", 15), "%v", seen)
}
