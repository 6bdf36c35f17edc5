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

package rules_test

import (
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/controllers/placement/rules"
	"github.com/synchub-dev/synchub/controllers/plan/ownership"
	"github.com/synchub-dev/synchub/controllers/plan/selection"
)

// An entry for the workspace selects no object outside the workspace's namespaces, and no cluster-scoped one.
func TestMailboxEntry(t *testing.T) {
	t.Parallel()
	owner := ownership.Owner{Hub: "hub", SyncTarget: "uid"}.ForPlacements()
	scope := rules.UpsyncScope{
		Namespaces: map[string]string{"shop": "shop-1", "web": "web-1"}, Resources: []schema.GroupResource{{Resource: "pods"}, {Resource: "configmaps"}, {Group: "apps", Resource: "replicasets"}},
		Placements: owner,
	}
	for name, c := range map[string]struct {
		to                              edgev2alpha1.UpsyncDestination
		resources, namespaces           []string
		wantResources, wantedNamespaces []string
	}{
		"to the mailbox":       {edgev2alpha1.UpsyncToMailbox, []string{"*"}, []string{"*"}, []string{"*"}, []string{"*"}},
		"everything":           {edgev2alpha1.UpsyncToWorkspace, []string{"*"}, []string{"*"}, []string{"configmaps", "pods"}, []string{"shop-1", "web-1"}},
		"one of each":          {edgev2alpha1.UpsyncToWorkspace, []string{"pods"}, []string{"shop"}, []string{"pods"}, []string{"shop-1"}},
		"a name there":         {edgev2alpha1.UpsyncToWorkspace, []string{"pods"}, []string{"shop-1"}, nil, nil},
		"another's namespace":  {edgev2alpha1.UpsyncToWorkspace, []string{"pods"}, []string{"other"}, nil, nil},
		"a cluster-scoped one": {edgev2alpha1.UpsyncToWorkspace, []string{"nodes"}, []string{"*"}, nil, nil},
	} {
		entry := edgev2alpha1.PlacementUpsync{UpsyncSet: edgev2alpha1.UpsyncSet{Resources: c.resources, Namespaces: c.namespaces, Names: []string{"*"}}, To: c.to}
		set, ok := scope.MailboxEntry(&entry)
		if ok != (c.wantResources != nil) {
			t.Errorf("%s: selects something: %v", name, ok)
		}
		if ok && (!slices.Equal(set.Resources, c.wantResources) || !slices.Equal(set.Namespaces, c.wantedNamespaces)) {
			t.Errorf("%s: %+v", name, set)
		}
		if !ok || c.to == edgev2alpha1.UpsyncToMailbox {
			continue
		}
		matcher := selection.Compile([]*edgev2alpha1.SyncerConfig{{Spec: edgev2alpha1.SyncerConfigSpec{Upsync: []edgev2alpha1.UpsyncSet{set}}}}, nil)
		for label, want := range map[string]bool{"": true, "other": true, owner.LabelValue(): false} {
			object := selection.Object{
				Resource: schema.GroupVersionResource{Version: "v1", Resource: "pods"}, Kind: "Pod", Namespace: "shop-1", Name: "web", Labels: selection.MetadataMap{ownership.OwnerLabel: label},
			}
			if _, got := matcher.MatchUp(object); got != want {
				t.Errorf("%s: an object with the owner %q is selected: %v", name, label, got)
			}
		}
	}
}
