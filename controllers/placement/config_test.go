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
	"testing"

	"github.com/kcp-dev/logicalcluster/v3"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/controllers/internal/topic"
	"github.com/synchub-dev/synchub/controllers/objectsync/plan"
	"github.com/synchub-dev/synchub/controllers/objectsync/plan/ownership"
	"github.com/synchub-dev/synchub/controllers/placement/rules"
)

var (
	configMapsResource   = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
	clusterRolesResource = schema.GroupVersionResource{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "clusterroles"}
)

func pairOf(resource schema.GroupVersionResource, name string) pairKey {
	return pairKey{objectKey{resource, types.NamespacedName{Namespace: "shop", Name: name}}, "m"}
}

func TestConfigsFollowThePairs(t *testing.T) {
	configs := &mailboxConfigs{mailboxes: map[logicalcluster.Name]*mailboxUse{}}
	requests := &topic.Topic[logicalcluster.Name]{}
	configs.addPair(pairOf(configMapsResource, "a"), requests)
	configs.addPair(pairOf(configMapsResource, "b"), requests)
	configs.addPair(pairOf(clusterRolesResource, "c"), requests)
	upsync := []edgev2alpha1.UpsyncSet{{APIGroup: "apps", Resources: []string{"deployments"}}}
	allowed := rules.Destination{MayUpsync: true}
	inForce := func(mailboxes map[logicalcluster.Name]rules.Destination) *placements {
		return &placements{all: []*placementInForce{{Placement: &rules.Placement{Upsync: upsync}, mailboxes: mailboxes}}}
	}
	configs.setUpsync("w", inForce(map[logicalcluster.Name]rules.Destination{"m": allowed, "denied": {}}), requests)

	resources, up := configs.of("m")
	if len(resources) != 2 || resources[0] != configMapsResource || resources[1] != clusterRolesResource || len(up) != 1 {
		t.Errorf("%v, %v", resources, up)
	}
	if _, up := configs.of("denied"); len(up) != 0 {
		t.Errorf("upsync without a permission: %v", up)
	}

	configs.removePair(pairOf(configMapsResource, "a"), requests)
	if resources, _ := configs.of("m"); len(resources) != 2 {
		t.Errorf("a resource went before its last pair: %v", resources)
	}
	configs.removePair(pairOf(configMapsResource, "b"), requests)
	configs.setUpsync("w", inForce(nil), requests)
	if resources, up := configs.of("m"); len(resources) != 1 || len(up) != 0 {
		t.Errorf("%v, %v", resources, up)
	}
	configs.removePair(pairOf(clusterRolesResource, "c"), requests)
	if resources, up := configs.of("m"); len(resources) != 0 || len(up) != 0 || len(configs.mailboxes) != 0 {
		t.Errorf("%v, %v, %v", resources, up, configs.mailboxes)
	}
}

// A config that the hub has written is not written again, and one that somebody changed is.
func TestConfigSpec(t *testing.T) {
	c := &Controller{}
	c.published.Store(&publishedResources{
		configMapsResource:   plan.Resource{GroupVersionResource: configMapsResource, Namespaced: true},
		clusterRolesResource: plan.Resource{GroupVersionResource: clusterRolesResource},
	})
	owner := ownership.Owner{Hub: "h", SyncTarget: "placement/u"}
	desired := c.configSpec([]schema.GroupVersionResource{configMapsResource, clusterRolesResource}, nil, owner)
	write := func(change func(*edgev2alpha1.SyncerConfigSpec)) *unstructured.Unstructured {
		config := &edgev2alpha1.SyncerConfig{ObjectMeta: metav1.ObjectMeta{Name: ConfigName}, Spec: *desired.DeepCopy()}
		change(&config.Spec)
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(config)
		if err != nil {
			t.Fatal(err)
		}
		return &unstructured.Unstructured{Object: content}
	}
	if !specOf(write(func(*edgev2alpha1.SyncerConfigSpec) {}), desired) {
		t.Error("the hub would write its own config again")
	}
	for name, change := range map[string]func(*edgev2alpha1.SyncerConfigSpec){
		"an entry less": func(s *edgev2alpha1.SyncerConfigSpec) { s.ClusterScope = nil },
		"no selector":   func(s *edgev2alpha1.SyncerConfigSpec) { s.NamespaceScope.Resources[0].LabelSelector = nil },
		"suspended":     func(s *edgev2alpha1.SyncerConfigSpec) { s.Suspend = true },
		"another upsync": func(s *edgev2alpha1.SyncerConfigSpec) {
			s.Upsync = []edgev2alpha1.UpsyncSet{{Resources: []string{"*"}}}
		},
		"no status is it": func(s *edgev2alpha1.SyncerConfigSpec) { s.StatusReturn = nil },
	} {
		changed := write(change)
		if specOf(changed, desired) {
			t.Errorf("%s: the config stays as it is", name)
		}
	}
	for resource, want := range map[schema.GroupResource]bool{configMapsResource.GroupResource(): true, clusterRolesResource.GroupResource(): true, {Resource: "secrets"}: false} {
		if got := selectsResource(write(func(*edgev2alpha1.SyncerConfigSpec) {}), resource); got != want {
			t.Errorf("%s: %v", resource, got)
		}
	}
	if got := desired.NamespaceScope.Resources[0].LabelSelector.MatchLabels[ownership.OwnerLabel]; got != owner.LabelValue() {
		t.Errorf("the config selects by %q", got)
	}
}
