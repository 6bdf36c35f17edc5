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

package targets

import (
	"context"
	"encoding/base64"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	dto "github.com/prometheus/client_model/go"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"github.com/synchub-dev/synchub/provider/kcp"
	"github.com/synchub-dev/synchub/provider/metrics"
	"github.com/synchub-dev/synchub/provider/metrics/requestmetrics"
	"github.com/synchub-dev/synchub/test/framework"
	"github.com/synchub-dev/synchub/test/framework/suite"
)

// scrape returns the metrics of a SyncTarget, by name and other labels.
func scrape(t *testing.T, syncTarget types.UID) map[string]float64 {
	t.Helper()
	return framework.SeriesWithLabel(framework.Gather(t, Collectors()...), "sync_target", string(syncTarget), "synchub_target_")
}

// registryWithTarget is a registry whose only SyncTarget no other test has.
func registryWithTarget(ctx context.Context, t *testing.T) (*Registry, types.UID) {
	t.Helper()
	registry := newRegistry(ctx, t, clock.RealClock{})
	registry.syncTarget = types.UID("metrics of " + t.Name())
	return registry.Registry, registry.syncTarget
}

// The metrics show the present state of a target, and are gone after it is disconnected.
func TestMetricsOfAConnection(t *testing.T) {
	g := NewWithT(t)
	leading, endLead := context.WithCancel(t.Context())
	defer endLead()
	registry, uid := registryWithTarget(leading, t)
	g.Expect(scrape(t, uid)).To(BeEmpty())
	target := steady(t)
	proxy := newFlakyProxy(t, target)
	_, err := registry.Connect(uid, kubeconfigAt(t, target, proxy.URL()), kcp.Limits{})
	g.Expect(err).NotTo(HaveOccurred())
	suite.Eventually(t, func(g Gomega) { g.Expect(scrape(t, uid)).To(HaveKeyWithValue("up", 1.0)) })
	recorded := scrape(t, uid)
	g.Expect(recorded).To(And(HaveKeyWithValue("state Connected", 1.0), HaveKeyWithValue("connections_total", 1.0)))
	g.Expect(recorded["last_answer_timestamp_seconds"]).To(BeNumerically("~", time.Now().Unix(), suite.Timeout.Seconds()))

	problems, err := testutil.CollectAndLint(runningRegistries)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(problems).To(BeEmpty())

	registry.Disconnect(uid)
	g.Expect(scrape(t, uid)).To(BeEmpty())
	_, err = registry.Connect(uid, kubeconfigAt(t, target, "https://127.0.0.1:1"), kcp.Limits{})
	g.Expect(err).NotTo(HaveOccurred())
	suite.Eventually(t, func(g Gomega) {
		g.Expect(scrape(t, uid)).To(Equal(map[string]float64{"up": 0, "state TargetUnreachable": 1, "connections_total": 0}))
	})
	endLead()
	suite.Eventually(t, func(g Gomega) { g.Expect(scrape(t, uid)).To(BeEmpty(), "the registry has ended") })
}

// Only a token that expires has times, so that an alert can compare them.
func TestMetricsOfATokenThatExpires(t *testing.T) {
	for claims, want := range map[string]float64{
		`{"iat": 1000, "exp": 4600, "kubernetes.io": {"namespace": "synchub", "serviceaccount": {"name": "hub"}}}`: 5600,
		`{"iat": 1000, "kubernetes.io": {"namespace": "synchub", "serviceaccount": {"name": "hub"}}}`:              0,
	} {
		connection := &Connection{SyncTarget: "u", Token: BearerToken{token: "eyJhbGciOiJSUzI1NiJ9." + base64.RawURLEncoding.EncodeToString([]byte(claims)) + ".c2lnbmF0dXJl"}}
		metrics := make(chan prometheus.Metric, 5)
		connection.collectHealth(metrics)
		close(metrics)
		sum := 0.0
		for metric := range metrics {
			var written dto.Metric
			if err := metric.Write(&written); err != nil {
				t.Fatal(err)
			}
			// The other metrics are 0 or 1.
			if value := written.GetGauge().GetValue(); value > 1 {
				sum += value
			}
		}
		if sum != want {
			t.Errorf("%s: the times add up to %v, want %v", claims, sum, want)
		}
	}
}

// A running cache is counted: when all objects are gone, no byte is left.
func TestMetricsOfCaches(t *testing.T) {
	g := NewWithT(t)
	requestmetrics.RegisterResource(schema.GroupResource{Resource: "configmaps"})
	registry, uid := registryWithTarget(t.Context(), t)
	target := steady(t)
	connection, err := registry.Connect(uid, kubeconfigAt(t, target, target.Config.Host), kcp.Limits{})
	g.Expect(err).NotTo(HaveOccurred())
	suite.Eventually(t, func(g Gomega) { g.Expect(connection.Health.IsUp()).To(BeTrue()) })
	const selector = "metrics.example.org/held=true"
	box := func(name, data string) string {
		return fmt.Sprintf("{apiVersion: v1, kind: ConfigMap, metadata: {name: %s, namespace: default, labels: {metrics.example.org/held: 'true'}}, data: {a: %s}}", name, data)
	}
	holds := func(objects int, more ...any) (bytes float64) {
		t.Helper()
		suite.Eventually(t, func(g Gomega) {
			recorded := scrape(t, uid)
			g.Expect(recorded).To(HaveKeyWithValue("cache_objects configmaps", float64(objects)), fmt.Sprint(more...))
			bytes = recorded["cache_bytes configmaps"]
		})
		return bytes
	}
	g.Expect(framework.Apply(t.Context(), target.Config, box("metrics-first", "x"))).To(Succeed())
	recorded := &eventRecorder{}
	ctx, endCaches := context.WithCancel(t.Context())
	defer endCaches()
	for range 2 {
		cached := connection.Watches.NewCache(configMaps, CacheOptions{Selector: selector, Handler: recorded.handler()})
		runInTest(t, func(context.Context) { cached.Run(ctx) })
		waitForCacheSync(t, cached)
	}
	small := holds(2, "each cache counts")
	g.Expect(small).To(BeNumerically(">", 500))
	g.Expect(framework.Apply(t.Context(), target.Config, box("metrics-first", strings.Repeat("x", 5001)))).To(Succeed())
	suite.Eventually(t, func(g Gomega) { g.Expect(holds(2)).To(BeNumerically(">=", small+10_000)) })
	g.Expect(framework.Apply(t.Context(), target.Config, box("metrics-second", "x"))).To(Succeed())
	both := holds(4)
	g.Expect(framework.Delete(t.Context(), target.Config, configMaps, "default", "metrics-first")).To(Succeed())
	g.Expect(holds(2)).To(And(BeNumerically("<", both-10_000), Equal(small+2*float64(len("second")-len("first")))), "the size must be subtracted again")
	g.Expect(framework.Delete(t.Context(), target.Config, configMaps, "default", "metrics-second")).To(Succeed())
	g.Expect(holds(0)).To(BeZero())
	endCaches()
	suite.Eventually(t, func(g Gomega) { g.Expect(scrape(t, uid)).NotTo(HaveKey("cache_objects configmaps")) })
}

// The sizes of the caches of all resources can be summed up.
func TestAggregatedMetricsOfCaches(t *testing.T) {
	requestmetrics.RegisterResource(schema.GroupResource{Resource: "configmaps"})
	requestmetrics.RegisterResource(schema.GroupResource{Resource: "secrets"})
	for aggregate, want := range map[bool]map[string]float64{
		false: {"cache_objects configmaps": 5, "cache_bytes configmaps": 500, "cache_objects secrets": 4, "cache_bytes secrets": 400},
		true:  {"cache_objects": 9, "cache_bytes": 900},
	} {
		watches := &Watches{env: &environment{syncTarget: "aggregated"}, aggregateMetrics: aggregate, informers: informerSet{running: map[*informer]struct{}{}}}
		for objects, resource := range []string{2: "configmaps", 3: "configmaps", 4: "secrets"} {
			if resource != "" {
				one := &informer{store: newStore(nil, nil, nil), requestGate: &requestGate{resource: schema.GroupResource{Resource: resource}}}
				one.cached.Add(int64(objects), int64(100*objects))
				watches.informers.running[one] = struct{}{}
			}
		}
		collector := metrics.New(func(all []*Watches, to chan<- prometheus.Metric) { all[0].collectCacheSizes(to) }, cacheObjects, cacheBytes)
		collector.Add(watches)
		if got := framework.SeriesWithLabel(framework.Gather(t, collector), "sync_target", "aggregated", "synchub_target_"); !maps.Equal(got, want) {
			t.Errorf("with aggregate=%v: want %v, got %v", aggregate, want, got)
		}
	}
}
