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
	shared := newTestShared(func(o *Options) { o.CachePolicy = installing() })
	configs := newConfigs(shared)
	change := func(name string, by int) { shared.inMailboxes.change(pairAt(crdKey(name), "m"), by) }
	installed := func() ([]string, bool) {
		_, crds := shared.inMailboxes.of("m")
		return configs.installedCRDs(crds)
	}
	change("widgets.shop.io", 1)
	if names, areAll := installed(); !areAll || !slices.Equal(names, []string{"widgets.shop.io"}) {
		t.Errorf("%v, all: %v", names, areAll)
	}
	change("gadgets.shop.io", 1)
	change("rugs.shop.io", 1)
	names, areAll := installed()
	if areAll || !slices.Equal(names, []string{"gadgets.shop.io", "widgets.shop.io"}) {
		t.Errorf("%v, all: %v", names, areAll)
	}
	change("widgets.shop.io", -1)
	if _, crds := shared.inMailboxes.of("m"); len(crds) != 2 {
		t.Errorf("%v", crds)
	}
}

// Workloads wait for the CRDs of their workspace at a destination, but not for ever.
func TestWorkloadsWaitForCRDs(t *testing.T) {
	const mailbox = logicalcluster.Name("m")
	w := newTestWorkspace()
	clock := testclock.NewFakeClock(time.Unix(1000, 0))
	w.passes.clock = clock
	addPair := func(key objectKey) (*pair, pairKey) {
		w.pairs.lock.Lock()
		defer w.pairs.lock.Unlock()
		found := &pair{desired: true}
		w.pairs.ensureObject(key).pairs[pairAt(key, mailbox).site] = found
		return found, pairAt(key, mailbox)
	}
	crdWait := func(key pairKey, action plan.Action) time.Duration {
		if !mayNeedCRDs(key, plan.Decision{Action: action}) {
			return 0
		}
		return w.passes.crdWait(key)
	}
	_, workload := addPair(objectKey{schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}, types.NamespacedName{Namespace: "shop", Name: "operator"}})
	if wait := crdWait(workload, plan.Create); wait != 0 {
		t.Errorf("without CRDs: %s", wait)
	}
	crd, _ := addPair(crdKey("widgets.shop.io"))
	if wait := crdWait(workload, plan.Create); wait != maxCRDWait {
		t.Errorf("before the CRD is there: %s", wait)
	}
	if wait := crdWait(workload, plan.Update); wait != 0 {
		t.Errorf("a workload that is there: %s", wait)
	}
	_, config := addPair(objectKey{configMapsResource, types.NamespacedName{Namespace: "shop", Name: "prices"}})
	if wait := crdWait(config, plan.Create); wait != 0 {
		t.Errorf("a ConfigMap: %s", wait)
	}
	for name, state := range map[string]objectsync.SyncStatus{
		"installed": {Synced: true, Health: health.Health{Status: health.Current}}, "failed": {Failure: &objectsync.Failure{Reason: "Forbidden"}},
	} {
		crd.syncStatus = newSyncStatus(state)
		if wait := crdWait(workload, plan.Create); wait != 0 {
			t.Errorf("%s: %s", name, wait)
		}
	}
	crd.syncStatus = nil
	if clock.Step(2 * maxCRDWait); crdWait(workload, plan.Create) != 0 {
		t.Error("it waits for ever")
	}
}
