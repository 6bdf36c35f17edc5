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

package rules

import (
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/controllers/plan/ownership"
	"github.com/synchub-dev/synchub/controllers/plan/selection"
	"github.com/synchub-dev/synchub/controllers/plan/tenancy"
)

// checkUpsync returns an error for a selector that mailboxes would refuse: the entries are written there.
func checkUpsync(entries []edgev2alpha1.PlacementUpsync) error {
	for i := range entries {
		if _, err := metav1.LabelSelectorAsSelector(entries[i].LabelSelector); err != nil {
			return fmt.Errorf("spec.upsync[%d].labelSelector: %w", i, err)
		}
	}
	return nil
}

// compileToWorkspace compiles the entries that bring objects into the workspace; nil if there are none.
func compileToWorkspace(entries []edgev2alpha1.PlacementUpsync) *selection.Matcher {
	config := &edgev2alpha1.SyncerConfig{}
	for i := range entries {
		if entries[i].To == edgev2alpha1.UpsyncToWorkspace {
			config.Spec.Upsync = append(config.Spec.Upsync, entries[i].UpsyncSet)
		}
	}
	if len(config.Spec.Upsync) == 0 {
		return nil
	}
	return selection.Compile([]*edgev2alpha1.SyncerConfig{config}, nil)
}

// UpsyncsToWorkspace reports whether the placement brings objects into the workspace.
func (p *Placement) UpsyncsToWorkspace() bool { return p.toWorkspace != nil }

// SelectsForWorkspace reports whether the placement brings an object into the workspace. The namespace is the one in the workspace.
func (p *Placement) SelectsForWorkspace(object selection.Object) bool {
	_, selected := p.toWorkspace.MatchUp(object)
	return selected
}

// SelectsResourceForWorkspace reports whether the placement can bring objects of a resource into the workspace.
func (p *Placement) SelectsResourceForWorkspace(resource schema.GroupResource, kind string) bool {
	return p.toWorkspace.SelectsUp(resource, kind)
}

// MayUpsync reports whether an entry with a destination applies to a cluster. isAllowed is true if a Location allows upsync. Nobody's
// permission is needed for a workspace's own namespaces.
func MayUpsync(to edgev2alpha1.UpsyncDestination, isAllowed bool, naming tenancy.Naming) bool {
	return isAllowed || to == edgev2alpha1.UpsyncToWorkspace && !naming.IsShared()
}

// MayUpsyncTo reports whether an entry with a destination applies to the cluster of the SyncTarget.
func (d *Destination) MayUpsyncTo(to edgev2alpha1.UpsyncDestination) bool {
	return MayUpsync(to, d.MayUpsync, d.Tenancy.Naming)
}

// UpsyncScope is what the entries of a workspace for upsync can select on a cluster.
type UpsyncScope struct {
	// Namespaces are the namespaces of the workspace that are on the cluster, with their names there.
	Namespaces map[string]string
	// Resources are the published namespaced resources.
	Resources []schema.GroupResource
	// Placements owns the copies that placements make in the mailbox.
	Placements ownership.Owner
}

// MailboxEntry returns the entry of a SyncerConfig for an entry of a placement; ok is false if it would select nothing. An entry for the
// workspace selects nothing outside the namespaces of the workspace. It leaves the copies of placements out, so that they go down although
// it selects their names.
func (s *UpsyncScope) MailboxEntry(entry *edgev2alpha1.PlacementUpsync) (set edgev2alpha1.UpsyncSet, ok bool) {
	set = *entry.UpsyncSet.DeepCopy()
	if entry.To != edgev2alpha1.UpsyncToWorkspace {
		return set, true
	}
	if set.LabelSelector == nil {
		set.LabelSelector = &metav1.LabelSelector{}
	}
	set.LabelSelector.MatchExpressions = append(set.LabelSelector.MatchExpressions, metav1.LabelSelectorRequirement{
		Key: ownership.OwnerLabel, Operator: metav1.LabelSelectorOpNotIn, Values: []string{s.Placements.LabelValue()},
	})
	set.Namespaces, set.Resources = nil, nil
	for namespace, onCluster := range s.Namespaces {
		if hasOrAll(entry.Namespaces, namespace) {
			set.Namespaces = append(set.Namespaces, onCluster)
		}
	}
	// An entry selects cluster-scoped objects by their names alone.
	for _, resource := range s.Resources {
		if resource.Group == entry.APIGroup && hasOrAll(entry.Resources, resource.Resource) {
			set.Resources = append(set.Resources, resource.Resource)
		}
	}
	slices.Sort(set.Namespaces)
	slices.Sort(set.Resources)
	return set, len(set.Namespaces) > 0 && len(set.Resources) > 0
}

func hasOrAll(names []string, name string) bool {
	return slices.Contains(names, name) || slices.Contains(names, edgev2alpha1.Wildcard)
}
