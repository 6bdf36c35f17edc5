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

package placement

import (
	"slices"
	"testing"
	"time"

	"github.com/kcp-dev/logicalcluster/v3"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	testclock "k8s.io/utils/clock/testing"

	"github.com/synchub-dev/synchub/controllers/objectsync"
	"github.com/synchub-dev/synchub/controllers/plan"
	"github.com/synchub-dev/synchub/controllers/plan/health"
)

func crdKey(name string) objectKey {
	return objectKey{objectsync.CRDResource, types.NamespacedName{Name: name}}
}

// installing returns a policy that publishes widgets and, under another group in workspaces, gadgets with
// installCRD, and rugs without.
func installing() *CachePolicy {
	policy := &CachePolicy{}
	of := func(group, resource string) schema.GroupVersionResource {
		return schema.GroupVersionResource{Group: group, Version: "v1", Resource: resource}
	}
	policy.publish([]plan.Resource{
		{GroupVersionResource: of("shop.io", "widgets"), InstallsCRD: true},
		{GroupVersionResource: of("inert.io", "gadgets"), Projected: plan.TargetAPI{GroupVersionResource: of("shop.io", "gadgets")}, InstallsCRD: true},
		{GroupVersionResource: of("shop.io", "rugs")},
		{GroupVersionResource: objectsync.CRDResource},
	})
	return policy
}

func TestInstallsCRD(t *testing.T) {
	policy := installing()
	for name, want := range map[string]bool{"widgets.shop.io": true, "gadgets.shop.io": true, "gadgets.inert.io": false, "rugs.shop.io": false, "lamps.shop.io": false} {
		if got := policy.installsCRD(crdKey(name)); got != want {
			t.Errorf("%s: %v", name, got)
		}
	}
	if policy.installsCRD(objectKey{configMapsResource, types.NamespacedName{Name: "widgets.shop.io"}}) {
		t.Error("a ConfigMap with the name of an installed CRD counts as installed")
	}
}

// The hub's config names the CRDs to install, and selects copies only if there are other CRDs. An entry that
// names CRDs does not keep an entry for copies.
func TestConfigNamesInstalledCRDs(t *testing.T) {
	w := newTestWorkspace()
	w.CachePolicy = installing()
	add := func(name string) { w.configs.addPair(pairKey{crdKey(name), "m"}) }
	add("widgets.shop.io")
	if names, areAll := w.installedCRDs("m"); !areAll || !slices.Equal(names, []string{"widgets.shop.io"}) {
		t.Errorf("%v, all: %v", names, areAll)
	}
	add("gadgets.shop.io")
	add("rugs.shop.io")
	names, areAll := w.installedCRDs("m")
	if areAll || !slices.Equal(names, []string{"gadgets.shop.io", "widgets.shop.io"}) {
		t.Errorf("%v, all: %v", names, areAll)
	}
	if w.configs.removePair(pairKey{crdKey("widgets.shop.io"), "m"}); len(w.configs.crdNames("m")) != 2 {
		t.Errorf("%v", w.configs.crdNames("m"))
	}
}

// Workloads wait for the CRDs of their workspace at a destination, but not for ever.
func TestWorkloadsWaitForCRDs(t *testing.T) {
	const mailbox = logicalcluster.Name("m")
	w := newTestWorkspace()
	clock := testclock.NewFakeClock(time.Unix(1000, 0))
	w.Clock = clock
	addPair := func(key objectKey) (*pair, pairKey) {
		w.lock.Lock()
		defer w.lock.Unlock()
		found := &pair{desired: true}
		w.ensureObject(key).pairs[mailbox] = found
		return found, pairKey{key, mailbox}
	}
	create := plan.UpPlan{Decision: plan.Decision{Action: plan.Create}}
	_, workload := addPair(objectKey{schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}, types.NamespacedName{Namespace: "shop", Name: "operator"}})
	if wait := w.crdWait(workload, create); wait != 0 {
		t.Errorf("without CRDs: %s", wait)
	}
	crd, _ := addPair(crdKey("widgets.shop.io"))
	if wait := w.crdWait(workload, create); wait != maxCRDWait {
		t.Errorf("before the CRD is there: %s", wait)
	}
	if wait := w.crdWait(workload, plan.UpPlan{Decision: plan.Decision{Action: plan.Update}}); wait != 0 {
		t.Errorf("a workload that is there: %s", wait)
	}
	_, config := addPair(objectKey{configMapsResource, types.NamespacedName{Namespace: "shop", Name: "prices"}})
	if wait := w.crdWait(config, create); wait != 0 {
		t.Errorf("a ConfigMap: %s", wait)
	}
	for name, state := range map[string]objectsync.ObjectState{
		"installed": {Synced: true, Health: health.Health{Status: health.Current}}, "failed": {Failure: &objectsync.Failure{Reason: "Forbidden"}},
	} {
		crd.syncStatus = newSyncStatus(state)
		if wait := w.crdWait(workload, create); wait != 0 {
			t.Errorf("%s: %s", name, wait)
		}
	}
	crd.syncStatus = nil
	if clock.Step(2 * maxCRDWait); w.crdWait(workload, create) != 0 {
		t.Error("it waits for ever")
	}
}
