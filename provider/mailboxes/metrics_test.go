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

package mailboxes

import (
	"testing"

	. "github.com/onsi/gomega"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/synchub-dev/synchub/test/framework"
)

// scrape returns the metrics of an endpoint, by name and resource.
func scrape(t *testing.T, endpoint string) map[string]float64 {
	t.Helper()
	return framework.SeriesWithLabel(framework.Gather(t, Collectors()...), "endpoint", endpoint, "synchub_mailbox_")
}

// The size of the caches is exported by endpoint and resource, and only by the leader.
func TestMetricsOfCaches(t *testing.T) {
	g := NewWithT(t)
	shard := newFakeShard(t, caches{bindingsResource: bindings(here), configMaps: objects(here, 3), secrets: nil})
	mailboxes := startMailboxes(t, configMaps)
	mailboxes.setEndpoints([]string{shard.url()})
	g.Eventually(mailboxes.HasSynced).Should(BeTrue())
	g.Expect(scrape(t, shard.url())).To(HaveLen(1), "only whether the endpoint answers, without a leader")

	stop := runningMailboxes.Add(mailboxes)
	defer stop()
	g.Eventually(func() map[string]float64 { return scrape(t, shard.url()) }).Should(And(
		HaveKeyWithValue("endpoint_up", 1.0), HaveKeyWithValue("cache_objects configmaps", 3.0),
		HaveKeyWithValue("cache_bytes configmaps", BeNumerically(">", 3*300)), HaveKeyWithValue("cache_objects apibindings.apis.kcp.io", 1.0)))
	problems, err := testutil.CollectAndLint(runningMailboxes)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(problems).To(BeEmpty())
	mailboxes.setEndpoints(nil)
	g.Expect(scrape(t, shard.url())).To(BeEmpty())
}
