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

package main

import (
	"fmt"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/performance"
	"github.com/chromedp/chromedp"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	synchubv1alpha1 "github.com/synchub-dev/synchub/apis/synchub/v1alpha1"
	"github.com/synchub-dev/synchub/test/framework"
	"github.com/synchub-dev/synchub/test/framework/suite"
	"github.com/synchub-dev/synchub/test/tier"
)

const (
	largeTargets = 300
	largeObjects = 100
	// maxNodes bounds the DOM nodes of a page. The pages of tables bound it, not the size of the fleet.
	maxNodes = 15000
)

// largeWorld adds two workspaces to the world: one with many SyncTargets, and one with an EdgePlacement of many objects.
func largeWorld(t *testing.T) *uiWorld {
	t.Helper()
	w := &uiWorld{kcp: newUIWorld(t).kcp}
	w.inventory, w.inventoryCluster = w.create(t, "root", "ui-large-inventory", bindingOf(uiProvider, synchubv1alpha1.InventoryExport))
	w.workload, _ = w.create(t, "root", "ui-large", bindingOf(uiProvider, synchubv1alpha1.WorkloadExport, "configmaps", "namespaces"))
	suite.Eventually(t, func(g Gomega) {
		g.Expect(w.inventory.List(t.Context(), &edgev2alpha1.SyncTargetList{})).To(Succeed())
		g.Expect(w.workload.List(t.Context(), &edgev2alpha1.EdgePlacementList{})).To(Succeed())
	})
	slice := &edgev2alpha1.SinglePlacementSlice{ObjectMeta: metav1.ObjectMeta{Name: "large"}}
	for i := range largeTargets {
		made := w.makeTarget(t, uiTarget(fmt.Sprintf("cluster-%03d", i), "True", "Ready", "", largeObjects))
		slice.Destinations = append(slice.Destinations, edgev2alpha1.SinglePlacement{Cluster: w.inventoryCluster, LocationName: "all", SyncTargetName: made.Name, SyncTargetUID: made.UID})
	}
	placement := &edgev2alpha1.EdgePlacement{ObjectMeta: metav1.ObjectMeta{Name: "large"}}
	placement.Spec.LocationSelectors = []metav1.LabelSelector{{}}
	placement.Spec.Downsync = []edgev2alpha1.DownsyncObjectTest{{Namespaces: []string{"large"}}}
	objects := []client.Object{slice, placement, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "large"}}}
	for i := range largeObjects {
		objects = append(objects, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "large", Name: fmt.Sprintf("settings-%03d", i)}})
	}
	for _, object := range objects {
		if err := w.workload.Create(t.Context(), object); err != nil {
			t.Fatal(err)
		}
	}
	placement.Status = edgev2alpha1.EdgePlacementStatus{SpecGeneration: 1, Destinations: largeTargets, Selected: largeObjects, Placed: largeTargets * largeObjects, Synced: largeTargets * largeObjects, Healthy: largeTargets * largeObjects}
	if err := w.workload.Status().Update(t.Context(), placement); err != nil {
		t.Fatal(err)
	}
	return w
}

// TestUISize measures pages about many clusters and objects. docs/ui.md has the result.
func TestUISize(t *testing.T) {
	tier.Thorough(t)
	w := largeWorld(t)
	useConfig(t, framework.InWorkspace(w.kcp.HubConfig, "root:ui-large"))
	b := openBrowser(t, servePage(t, "--workspace", "root:ui-large-inventory", "--workspace", "root:ui-large"))
	call(t, b, performance.Enable, performance.EnableParams{})
	g := NewWithT(t)
	for path, rows := range map[string]int{"/": 100, "/placements/root:ui-large/large": 50} {
		b.open(t, path)
		g.Expect(b.texts(t, "table:first-of-type > tbody > tr")).To(HaveLen(rows), path)
		loaded := time.Duration(evaluate[float64](t, b, "performance.getEntriesByType('navigation')[0].loadEventEnd") * float64(time.Millisecond))
		memory, err := chromedp.Run(b.ctx, chromedp.Evaluate[float64]("performance.measureUserAgentSpecificMemory().then(measured => measured.bytes)", chromedp.EvalAwaitPromise))
		if err != nil {
			t.Fatal(err)
		}
		metrics := map[string]float64{}
		for _, metric := range call(t, b, performance.GetMetrics, cdp.Empty{}).Metrics {
			metrics[metric.Name] = metric.Value
		}
		t.Logf("%s: loaded after %s, %.1f MB of script and DOM, %.1f MB of these are the heap, %.0f nodes", path, loaded.Round(time.Millisecond), memory/1e6, metrics["JSHeapUsedSize"]/1e6, metrics["Nodes"])
		g.Expect(metrics["Nodes"]).To(BeNumerically("<", maxNodes), path)
	}
	b.verifyNoProblems(t)
}
