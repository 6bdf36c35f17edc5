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
	"context"
	"slices"
	"time"

	"github.com/kcp-dev/logicalcluster/v3"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/controllers/objectsync"
	"github.com/synchub-dev/synchub/controllers/placement/rules"
	"github.com/synchub-dev/synchub/controllers/plan/ownership"
)

// desiredDownsync returns the spec of the config that selects all copies in a mailbox.
func (c *configs) desiredDownsync(mailbox logicalcluster.Name, existing *edgev2alpha1.SyncerConfig, owner ownership.Owner) edgev2alpha1.SyncerConfigSpec {
	var resources []rules.SelectedResource
	withPairs, crds := c.pairs.of(mailbox)
	installed, areAll := c.installedCRDs(crds)
	for _, of := range withPairs {
		if resource, ok := c.policy.placeable(of); ok && (of.GroupResource() != crdGroupResource || !areAll) {
			copied := c.policy.copyOf(of)
			resources = append(resources, rules.SelectedResource{
				GroupResource: edgev2alpha1.GroupResource{Group: copied.Group, Resource: copied.Resource}, Namespaced: resource.Namespaced,
			})
		}
	}
	spec := downsyncSpec(resources, existing, owner, func(of edgev2alpha1.GroupResource) bool {
		return c.mayHaveCopies(mailbox, of, owner.LabelValue())
	})
	if len(installed) > 0 {
		spec.ClusterScope = append(spec.ClusterScope, edgev2alpha1.ClusterScopeDownsyncResource{
			GroupResource: edgev2alpha1.GroupResource{Group: crdGroupResource.Group, Resource: crdGroupResource.Resource},
			Objects:       installed, LabelSelector: rules.OwnedBy(owner),
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

// mayHaveCopies reports whether a mailbox may have objects of a resource with an owner's label: copies without
// a pair, or copies that the hub has released.
func (c *configs) mayHaveCopies(mailbox logicalcluster.Name, of edgev2alpha1.GroupResource, label string) bool {
	for _, published := range c.policy.copies() {
		if published.Group != of.Group || published.Resource != of.Resource {
			continue
		}
		objects, known := c.mailboxes.List(published.GroupVersionResource, mailbox)
		return !known || slices.ContainsFunc(objects, func(object *unstructured.Unstructured) bool { return object.GetLabels()[ownership.OwnerLabel] == label })
	}
	// The resource is not published, or not yet, so its objects are not cached.
	return true
}

// downsyncSpec returns the spec of a config, with all defaults, that selects the owner's copies of resources.
// It drops an entry of the existing config only if the mailbox has no copies of the entry's resource: without
// the entry, the hub would remove them from the target.
func downsyncSpec(resources []rules.SelectedResource, existing *edgev2alpha1.SyncerConfig, owner ownership.Owner, mayHaveCopies func(edgev2alpha1.GroupResource) bool) edgev2alpha1.SyncerConfigSpec {
	for _, entry := range entriesOf(existing) {
		isListed := slices.ContainsFunc(resources, func(other rules.SelectedResource) bool { return other.GroupResource == entry.GroupResource })
		if !isListed && mayHaveCopies(entry.GroupResource) {
			resources = append(resources, entry)
		}
	}
	return rules.CopiesSpec(resources, owner)
}

// entriesOf returns the resources of a config's entries for downsync, each once; none without a config.
func entriesOf(config *edgev2alpha1.SyncerConfig) (entries []rules.SelectedResource) {
	if config == nil {
		return nil
	}
	add := func(resource edgev2alpha1.GroupResource, namespaced bool) {
		if entry := (rules.SelectedResource{GroupResource: resource, Namespaced: namespaced}); !slices.Contains(entries, entry) {
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
// from the mailbox. again is when to try to drop them without an event; zero for never.
func (c *configs) desiredUpsync(ctx context.Context, key configKey, existing *edgev2alpha1.SyncerConfig) (desired *edgev2alpha1.SyncerConfigSpec, again time.Duration, err error) {
	w := c.workspaces.find(key.workspace)
	if w == nil {
		return nil, 0, nil
	}
	state := w.active.read()
	active := state.placements
	if active == nil {
		return nil, 0, nil
	}
	syncTarget, _ := c.fleet.Snapshot().SyncTargetOf(key.mailbox)
	entries, elsewhere := active.upsyncAt(key.mailbox, &rules.UpsyncScope{
		Namespaces: w.pairs.namespacesAt(key.mailbox, syncTarget.Tenancy.Naming.IsShared()), Resources: c.policy.reflectable(existing), Placements: c.marks.ownerOf(syncTarget.UID),
	})
	spec := &edgev2alpha1.SyncerConfigSpec{StatusReturn: new(true), DeletionPolicy: edgev2alpha1.DeletionPolicyDelete, Upsync: entries}
	if existing == nil || len(appendMissing(slices.Clone(entries), existing.Spec.Upsync)) == len(entries) {
		return spec, 0, nil
	}
	mayWithdraw := !active.partial && !active.holds(syncTarget.UID, elsewhere)
	if active.upsyncsToWorkspace() && !state.allSelected {
		// Namespaces of the workspace may be unknown.
		mayWithdraw, again = false, startupPoll
	}
	if mayWithdraw && len(elsewhere) > 0 {
		if mayWithdraw, err = c.verifier.mayNotUpsync(ctx, key.mailbox, elsewhere); err != nil {
			return nil, 0, err
		}
	}
	if !mayWithdraw {
		spec.Upsync = appendMissing(spec.Upsync, existing.Spec.Upsync)
	}
	return spec, again, nil
}

// upsyncAt returns the entries for the upsync from the cluster of a mailbox, and the placements with entries that do not apply there.
func (p *placements) upsyncAt(mailbox logicalcluster.Name, scope *rules.UpsyncScope) (entries []edgev2alpha1.UpsyncSet, elsewhere []*resolvedPlacement) {
	for _, one := range p.all {
		destination, isDestination := one.mailboxes[mailbox]
		appliesAll := true
		for i := range one.Upsync {
			entry := &one.Upsync[i]
			if !isDestination || !destination.MayUpsyncTo(entry.To) {
				appliesAll = false
			} else if set, ok := scope.MailboxEntry(entry); ok {
				entries = appendMissing(entries, []edgev2alpha1.UpsyncSet{set})
			}
		}
		if !appliesAll {
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
		destination, ok := one.mailboxes[mailbox]
		return ok && slices.ContainsFunc(one.Upsync, func(entry edgev2alpha1.PlacementUpsync) bool { return destination.MayUpsyncTo(entry.To) })
	})
}
