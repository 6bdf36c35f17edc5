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
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	testclock "k8s.io/utils/clock/testing"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/controllers/placement/fleet"
	"github.com/synchub-dev/synchub/controllers/placement/rules"
	"github.com/synchub-dev/synchub/controllers/plan/ownership"
	"github.com/synchub-dev/synchub/controllers/plan/tenancy"
)

var (
	configMapsResource   = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
	clusterRolesResource = schema.GroupVersionResource{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "clusterroles"}

	configMapsEntry   = rules.SelectedResource{GroupResource: edgev2alpha1.GroupResource{Resource: "configmaps"}, Namespaced: true}
	clusterRolesEntry = rules.SelectedResource{GroupResource: edgev2alpha1.GroupResource{Group: "rbac.authorization.k8s.io", Resource: "clusterroles"}, Namespaced: false}
	configOwner       = ownership.Owner{Hub: "h", SyncTarget: "placement/u"}
)

func pairOf(resource schema.GroupVersionResource, name string) pairKey {
	return pairAt(objectKey{resource, types.NamespacedName{Namespace: "shop", Name: name}}, "m")
}

func TestConfigsCountPairs(t *testing.T) {
	pairs := newTestShared(func(*Options) {}).inMailboxes
	for _, step := range []struct {
		pair  pairKey
		first bool
	}{{pairOf(configMapsResource, "a"), true}, {pairOf(configMapsResource, "b"), false}, {pairOf(clusterRolesResource, "c"), true}} {
		if first := pairs.change(step.pair, 1); first != step.first {
			t.Errorf("%v: got first %v", step.pair, first)
		}
	}
	if resources, crds := pairs.of("m"); len(resources) != 2 || len(crds) != 0 {
		t.Errorf("%v, %v", resources, crds)
	}
	if resources, _ := pairs.of("other"); len(resources) != 0 {
		t.Errorf("%v", resources)
	}
	for _, step := range []struct {
		pair pairKey
		last bool
	}{{pairOf(configMapsResource, "a"), false}, {pairOf(configMapsResource, "b"), true}, {pairOf(clusterRolesResource, "c"), true}} {
		if last := pairs.change(step.pair, -1); last != step.last {
			t.Errorf("%v: got last %v", step.pair, last)
		}
	}
	if len(pairs.counts) != 0 {
		t.Errorf("a mailbox without pairs still has counts: %v", pairs.counts)
	}
}

// configWith returns a config as the hub writes it, then changed.
func configWith(change func(*edgev2alpha1.SyncerConfigSpec), entries ...rules.SelectedResource) *edgev2alpha1.SyncerConfig {
	config := &edgev2alpha1.SyncerConfig{Spec: downsyncSpec(entries, nil, configOwner, nil)}
	change(&config.Spec)
	return config
}

func asWritten(*edgev2alpha1.SyncerConfigSpec) {}

// However a user edits a config, the hub restores the same spec, and does not write it again.
func TestDownsyncSpec(t *testing.T) {
	none := func(edgev2alpha1.GroupResource) bool { return false }
	desired := downsyncSpec([]rules.SelectedResource{clusterRolesEntry, configMapsEntry}, nil, configOwner, none)
	for name, change := range map[string]func(*edgev2alpha1.SyncerConfigSpec){
		"nothing":       asWritten,
		"an entry less": func(s *edgev2alpha1.SyncerConfigSpec) { s.ClusterScope = nil },
		"an entry more": func(s *edgev2alpha1.SyncerConfigSpec) {
			s.NamespaceScope.Resources = append(s.NamespaceScope.Resources, edgev2alpha1.NamespaceScopeDownsyncResource{GroupResource: edgev2alpha1.GroupResource{Resource: "secrets"}})
		},
		"no selector": func(s *edgev2alpha1.SyncerConfigSpec) { s.NamespaceScope.Resources[0].LabelSelector = nil },
		"suspended":   func(s *edgev2alpha1.SyncerConfigSpec) { s.Suspend = true },
		"upsync": func(s *edgev2alpha1.SyncerConfigSpec) {
			s.Upsync = []edgev2alpha1.UpsyncSet{{Resources: []string{"*"}}}
		},
		"no status is it": func(s *edgev2alpha1.SyncerConfigSpec) { s.StatusReturn = nil },
	} {
		existing := configWith(change, configMapsEntry, clusterRolesEntry)
		if again := downsyncSpec([]rules.SelectedResource{configMapsEntry, clusterRolesEntry}, existing, configOwner, none); !apiequality.Semantic.DeepEqual(again, desired) {
			t.Errorf("%s: %+v", name, again)
		}
		if isSame := apiequality.Semantic.DeepEqual(existing.Spec, desired); isSame != (name == "nothing") {
			t.Errorf("%s: the config is unchanged: %v", name, isSame)
		}
	}
	if got := desired.NamespaceScope.Resources[0].LabelSelector.MatchLabels[ownership.OwnerLabel]; got != configOwner.LabelValue() {
		t.Errorf("the config has the selector %q", got)
	}
}

// Copies must stay on the target before the hub knows its pairs, and after a resource is no longer published.
func TestEntriesStayWhileThereMayBeCopies(t *testing.T) {
	existing := configWith(func(s *edgev2alpha1.SyncerConfigSpec) {
		s.NamespaceScope.Resources[0].LabelSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"forged": "yes"}}
	}, configMapsEntry, clusterRolesEntry)
	for name, c := range map[string]struct {
		pairs     []rules.SelectedResource
		hasCopies []edgev2alpha1.GroupResource
		want      []rules.SelectedResource
	}{
		"a start":              {nil, []edgev2alpha1.GroupResource{configMapsEntry.GroupResource, clusterRolesEntry.GroupResource}, []rules.SelectedResource{configMapsEntry, clusterRolesEntry}},
		"copies of one":        {nil, []edgev2alpha1.GroupResource{configMapsEntry.GroupResource}, []rules.SelectedResource{configMapsEntry}},
		"pairs and no copies":  {[]rules.SelectedResource{clusterRolesEntry}, nil, []rules.SelectedResource{clusterRolesEntry}},
		"neither":              {nil, nil, nil},
		"pairs of one of them": {[]rules.SelectedResource{configMapsEntry}, []edgev2alpha1.GroupResource{configMapsEntry.GroupResource, clusterRolesEntry.GroupResource}, []rules.SelectedResource{configMapsEntry, clusterRolesEntry}},
	} {
		got := downsyncSpec(c.pairs, existing, configOwner, func(of edgev2alpha1.GroupResource) bool { return slices.Contains(c.hasCopies, of) })
		if want := configWith(asWritten, c.want...).Spec; !apiequality.Semantic.DeepEqual(got, want) {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

func TestRepairsOfAConfigWait(t *testing.T) {
	configs := newConfigs(newTestShared(func(o *Options) { o.Clock = testclock.NewFakeClock(time.Unix(1000, 0)) }))
	key := configKey{mailbox: "m"}
	one, other := configWith(asWritten, configMapsEntry).Spec, configWith(asWritten, clusterRolesEntry).Spec
	writes := 0
	for range 100 {
		if configs.countRepair(key, one) == 0 {
			writes++
		}
	}
	if writes == 0 || writes > 10 {
		t.Errorf("got %d writes after 100 edits at one time", writes)
	}
	if wait := configs.countRepair(key, other); wait != 0 {
		t.Errorf("a change of placements waits for %s", wait)
	}
}

func TestUpsyncNeedsThePermission(t *testing.T) {
	deployments := edgev2alpha1.UpsyncSet{APIGroup: "apps", Resources: []string{"deployments"}}
	ownNamespaces := rules.Destination{SyncTarget: fleet.SyncTarget{Tenancy: tenancy.Settings{Naming: "{hash}-{namespace}"}}}
	one := &resolvedPlacement{
		Placement: &rules.Placement{Upsync: []edgev2alpha1.PlacementUpsync{{UpsyncSet: deployments}}},
		mailboxes: map[logicalcluster.Name]rules.Destination{"allowed": {MayUpsync: true}, "denied": {}, "own namespaces": ownNamespaces},
	}
	none := &resolvedPlacement{Placement: &rules.Placement{}, mailboxes: map[logicalcluster.Name]rules.Destination{"other": {MayUpsync: true}}}
	active := &placements{all: []*resolvedPlacement{one, none}}
	for mailbox, want := range map[logicalcluster.Name]bool{"allowed": true, "denied": false, "other": false, "elsewhere": false, "own namespaces": false} {
		if got := active.upsyncs(mailbox); got != want {
			t.Errorf("%s: %v", mailbox, got)
		}
	}
	one.Upsync[0].To = edgev2alpha1.UpsyncToWorkspace
	for mailbox, want := range map[logicalcluster.Name]bool{"allowed": true, "denied": false, "own namespaces": true} {
		if got := active.upsyncs(mailbox); got != want {
			t.Errorf("%s, to the workspace: %v", mailbox, got)
		}
	}
	if entries := appendMissing([]edgev2alpha1.UpsyncSet{deployments}, []edgev2alpha1.UpsyncSet{deployments, {Resources: []string{"pods"}}}); len(entries) != 2 {
		t.Errorf("%v", entries)
	}
}

func TestNamesOfConfigs(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]configKey{ConfigName: {mailbox: "m"}, ConfigName + "-team": {"m", "team"}} {
		if got, ok := configKeyOf("m", name); !ok || got != want || got.name() != name {
			t.Errorf("%s: %+v", name, got)
		}
	}
	for _, name := range []string{"mine", "placements", "the-" + ConfigName} {
		if key, ok := configKeyOf("m", name); ok {
			t.Errorf("%s is the hub's: %+v", name, key)
		}
	}
}

// A workspace's config has the entries of the placements that may upsync from the cluster, each once.
func TestUpsyncOfACluster(t *testing.T) {
	t.Parallel()
	deployments, pods := edgev2alpha1.UpsyncSet{APIGroup: "apps", Resources: []string{"deployments"}}, edgev2alpha1.UpsyncSet{Resources: []string{"pods"}}
	upsyncing := func(mayUpsync bool, sets ...edgev2alpha1.UpsyncSet) *resolvedPlacement {
		var entries []edgev2alpha1.PlacementUpsync
		for _, set := range sets {
			entries = append(entries, edgev2alpha1.PlacementUpsync{UpsyncSet: set})
		}
		return &resolvedPlacement{Placement: &rules.Placement{Upsync: entries}, mailboxes: map[logicalcluster.Name]rules.Destination{"m": {MayUpsync: mayUpsync}}}
	}
	denied := upsyncing(false, pods)
	active := &placements{all: []*resolvedPlacement{upsyncing(true, deployments), upsyncing(true, deployments, pods), denied, upsyncing(false)}}
	entries, elsewhere := active.upsyncAt("m", &rules.UpsyncScope{})
	if !apiequality.Semantic.DeepEqual(entries, []edgev2alpha1.UpsyncSet{deployments, pods}) || !slices.Equal(elsewhere, []*resolvedPlacement{denied}) {
		t.Errorf("%v, and %d placements elsewhere", entries, len(elsewhere))
	}
	if entries, elsewhere := active.upsyncAt("other", &rules.UpsyncScope{}); len(entries) != 0 || len(elsewhere) != 3 {
		t.Errorf("%v, and %d placements elsewhere", entries, len(elsewhere))
	}
}
