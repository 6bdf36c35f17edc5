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
	"cmp"
	"context"
	"slices"

	"github.com/kcp-dev/logicalcluster/v3"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/controllers/objectsync"
	"github.com/synchub-dev/synchub/controllers/plan/ownership"
)

// selectedResource is a resource whose copies a config selects.
type selectedResource struct {
	edgev2alpha1.GroupResource
	namespaced bool
}

// desiredDownsync returns the spec of the config that selects all copies in a mailbox.
func (c *configs) desiredDownsync(mailbox logicalcluster.Name, existing *edgev2alpha1.SyncerConfig, owner ownership.Owner) edgev2alpha1.SyncerConfigSpec {
	var resources []selectedResource
	withPairs, crds := c.pairs.of(mailbox)
	installed, areAll := c.installedCRDs(crds)
	for _, of := range withPairs {
		if resource, ok := c.policy.placeable(of); ok && (of.GroupResource() != crdGroupResource || !areAll) {
			resources = append(resources, selectedResource{edgev2alpha1.GroupResource{Group: of.Group, Resource: of.Resource}, resource.Namespaced})
		}
	}
	spec := downsyncSpec(resources, existing, owner, func(of edgev2alpha1.GroupResource) bool {
		return c.mayHaveCopies(mailbox, of, owner.LabelValue())
	})
	if len(installed) > 0 {
		spec.ClusterScope = append(spec.ClusterScope, edgev2alpha1.ClusterScopeDownsyncResource{
			GroupResource: edgev2alpha1.GroupResource{Group: crdGroupResource.Group, Resource: crdGroupResource.Resource},
			Objects:       installed, LabelSelector: ownedBy(owner),
		})
	}
	return spec
}

// installedCRDs returns the CRDs that the hub installs on targets, among the CRDs with a pair in a mailbox. areAll is true
// if the mailbox needs no copies of other CRDs.
func (c *configs) installedCRDs(crds []string) (installed []string, areAll bool) {
	for _, name := range crds {
		if c.policy.installsCRD(objectKey{objectsync.CRDResource, types.NamespacedName{Name: name}}) {
			installed = append(installed, name)
		}
	}
	return installed, len(installed) == len(crds)
}

// ownedBy returns the selector of an owner's copies.
func ownedBy(owner ownership.Owner) *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchLabels: map[string]string{ownership.OwnerLabel: owner.LabelValue()}}
}

// mayHaveCopies reports whether a mailbox may have objects of a resource with an owner's label: copies without
// a pair, or copies that the hub has released.
func (c *configs) mayHaveCopies(mailbox logicalcluster.Name, of edgev2alpha1.GroupResource, label string) bool {
	for published := range c.policy.published() {
		if published.Group != of.Group || published.Resource != of.Resource {
			continue
		}
		objects, known := c.mailboxes.List(published, mailbox)
		return !known || slices.ContainsFunc(objects, func(object *unstructured.Unstructured) bool { return object.GetLabels()[ownership.OwnerLabel] == label })
	}
	// The resource is not published, or not yet, so its objects are not cached.
	return true
}

// downsyncSpec returns the spec of a config, with all defaults, that selects the owner's copies of resources.
// It drops an entry of the existing config only if the mailbox has no copies of the entry's resource: without
// the entry, the hub would remove them from the target.
func downsyncSpec(resources []selectedResource, existing *edgev2alpha1.SyncerConfig, owner ownership.Owner, mayHaveCopies func(edgev2alpha1.GroupResource) bool) edgev2alpha1.SyncerConfigSpec {
	for _, entry := range entriesOf(existing) {
		isListed := slices.ContainsFunc(resources, func(other selectedResource) bool { return other.GroupResource == entry.GroupResource })
		if !isListed && mayHaveCopies(entry.GroupResource) {
			resources = append(resources, entry)
		}
	}
	slices.SortFunc(resources, func(a, b selectedResource) int {
		return cmp.Or(cmp.Compare(a.Group, b.Group), cmp.Compare(a.Resource, b.Resource))
	})
	selector := ownedBy(owner)
	spec := edgev2alpha1.SyncerConfigSpec{StatusReturn: new(true), DeletionPolicy: edgev2alpha1.DeletionPolicyDelete}
	for _, one := range resources {
		if one.namespaced {
			spec.NamespaceScope.Namespaces = []string{edgev2alpha1.Wildcard}
			spec.NamespaceScope.Resources = append(spec.NamespaceScope.Resources, edgev2alpha1.NamespaceScopeDownsyncResource{GroupResource: one.GroupResource, LabelSelector: selector})
			continue
		}
		spec.ClusterScope = append(spec.ClusterScope, edgev2alpha1.ClusterScopeDownsyncResource{
			GroupResource: one.GroupResource, Objects: []string{edgev2alpha1.Wildcard}, LabelSelector: selector,
		})
	}
	return spec
}

// entriesOf returns the resources of a config's entries for downsync, each once; none without a config.
func entriesOf(config *edgev2alpha1.SyncerConfig) (entries []selectedResource) {
	if config == nil {
		return nil
	}
	add := func(resource edgev2alpha1.GroupResource, namespaced bool) {
		if entry := (selectedResource{resource, namespaced}); !slices.Contains(entries, entry) {
			entries = append(entries, entry)
		}
	}
	for _, one := range config.Spec.NamespaceScope.Resources {
		add(one.GroupResource, true)
	}
	for _, one := range config.Spec.ClusterScope {
		if !slices.Contains(one.Objects, edgev2alpha1.Wildcard) {
			// This entry names the CRDs to install.
			continue
		}
		add(one.GroupResource, false)
	}
	return entries
}

// maxUpsync bounds the entries for upsync of all placements of one workspace. A SyncerConfig may have ten times as many.
const maxUpsync = 1_000

// desiredUpsync returns the spec of the config for the upsync of a workspace in a mailbox. It returns nil if
// the placements of the workspace are unknown: the config then stays as it is. It drops an entry only if kcp
// confirms that no placement has it any more, because without the entry the hub would remove upsynced objects
// from the mailbox.
func (c *configs) desiredUpsync(ctx context.Context, key configKey, existing *edgev2alpha1.SyncerConfig) (*edgev2alpha1.SyncerConfigSpec, error) {
	w := c.workspaces.find(key.workspace)
	if w == nil {
		return nil, nil
	}
	active := w.active.get()
	if active == nil {
		return nil, nil
	}
	entries, elsewhere := active.upsyncAt(key.mailbox)
	spec := &edgev2alpha1.SyncerConfigSpec{StatusReturn: new(true), DeletionPolicy: edgev2alpha1.DeletionPolicyDelete, Upsync: entries}
	if existing == nil || len(appendMissing(slices.Clone(entries), existing.Spec.Upsync)) == len(entries) {
		return spec, nil
	}
	syncTarget, _ := c.fleet.Snapshot().SyncTargetOf(key.mailbox)
	mayWithdraw := !active.partial && !active.holds(syncTarget.UID, elsewhere)
	var err error
	if mayWithdraw && len(elsewhere) > 0 {
		if mayWithdraw, err = c.verifier.mayNotUpsync(ctx, key.mailbox, elsewhere); err != nil {
			return nil, err
		}
	}
	if !mayWithdraw {
		spec.Upsync = appendMissing(spec.Upsync, existing.Spec.Upsync)
	}
	return spec, nil
}

// upsyncAt returns the entries for the upsync from the cluster of a mailbox, and the placements with upsync whose entries are not
// among them.
func (p *placements) upsyncAt(mailbox logicalcluster.Name) (entries []edgev2alpha1.UpsyncSet, elsewhere []*resolvedPlacement) {
	for _, one := range p.all {
		if destination, ok := one.mailboxes[mailbox]; ok && destination.MayUpsync {
			entries = appendMissing(entries, one.Upsync)
		} else if len(one.Upsync) > 0 {
			elsewhere = append(elsewhere, one)
		}
	}
	return entries, elsewhere
}

// appendMissing appends the entries of more that a list does not contain.
func appendMissing(entries, more []edgev2alpha1.UpsyncSet) []edgev2alpha1.UpsyncSet {
	for _, entry := range more {
		if !slices.ContainsFunc(entries, func(other edgev2alpha1.UpsyncSet) bool { return apiequality.Semantic.DeepEqual(entry, other) }) {
			entries = append(entries, entry)
		}
	}
	return entries
}

// enqueueUpsync enqueues a workspace's configs for upsync in all mailboxes that have one or need one.
func (c *configs) enqueueUpsync(workspace logicalcluster.Name, active *placements) {
	for mailbox := range c.fleet.Snapshot().Mailboxes() {
		key := configKey{mailbox, workspace}
		existing, readable := c.read(key)
		if existing != nil || !readable || active.upsyncs(mailbox) {
			c.requests.Publish(key)
		}
	}
}

// upsyncs reports whether a placement may upsync from the cluster of a mailbox.
func (p *placements) upsyncs(mailbox logicalcluster.Name) bool {
	return slices.ContainsFunc(p.all, func(one *resolvedPlacement) bool {
		return len(one.Upsync) > 0 && one.mailboxes[mailbox].MayUpsync
	})
}
