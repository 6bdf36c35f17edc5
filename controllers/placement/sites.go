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
	"github.com/kcp-dev/logicalcluster/v3"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/synchub-dev/synchub/controllers/placement/fleet"
	"github.com/synchub-dev/synchub/controllers/plan/tenancy"
)

// site is where a copy is: a mailbox, and the copy's namespace there; for a Namespace, the name of the copy. The cluster of the
// mailbox has the same names.
type site struct {
	mailbox   logicalcluster.Name
	inMailbox string
}

// siteOf returns the site of an object of a resource in a mailbox.
func siteOf(resource schema.GroupVersionResource, mailbox logicalcluster.Name, name types.NamespacedName) site {
	return site{mailbox, objectKey{resource, name}.namespace()}
}

// siteAt returns the site of an object's copy in the mailbox of a destination.
func (p *resolvedPlacement) siteAt(key objectKey, destination *fleet.SyncTarget) site {
	return site{destination.Mailbox, destination.Tenancy.Naming.Namespace(p.workspace.Cluster, key.namespace())}
}

// wants reports whether the site of a pair is the one at a destination of the placement.
func (p *resolvedPlacement) wants(key pairKey) bool {
	destination, ok := p.mailboxes[key.mailbox]
	return ok && p.siteAt(key.objectKey, &destination.SyncTarget) == key.site
}

// hasOwnNamespaces reports whether each workspace has namespaces of its own on the cluster of a destination.
func (p *resolvedPlacement) hasOwnNamespaces(mailbox logicalcluster.Name) bool {
	return !p.mailboxes[mailbox].Tenancy.Naming.IsShared()
}

// hasOwnNamespacesAnywhere reports whether each workspace has namespaces of its own on some destination's cluster.
func (p *resolvedPlacement) hasOwnNamespacesAnywhere() bool {
	for mailbox := range p.mailboxes {
		if p.hasOwnNamespaces(mailbox) {
			return true
		}
	}
	return false
}

// tenancyAt returns how workspaces share the cluster of a pair, as the placement that wants the copy at its site was resolved with. The
// inventory may have changed since: the pair is at a former site then, and keeps its content until it is withdrawn.
func (r selectionResult) tenancyAt(key pairKey) (settings tenancy.Settings, isWanted bool) {
	for _, one := range r.all() {
		if one.wants(key) {
			return one.mailboxes[key.mailbox].Tenancy, true
		}
	}
	return tenancy.Settings{}, false
}

// sitesOf returns the sites of an object's copies at the destinations of the placements that select the object, or an object in it.
func (o *object) sitesOf(key objectKey) map[site]struct{} {
	wanted := map[site]struct{}{}
	for _, placement := range o.selectedBy {
		for _, destination := range placement.mailboxes {
			wanted[placement.siteAt(key, &destination.SyncTarget)] = struct{}{}
		}
	}
	for _, placement := range o.containerFor {
		for mailbox, destination := range placement.mailboxes {
			if placement.hasOwnNamespaces(mailbox) {
				wanted[placement.siteAt(key, &destination.SyncTarget)] = struct{}{}
			}
		}
	}
	return wanted
}

// mailboxesWithOtherTenancy returns the mailboxes of the next placements whose clusters are shared in another way than before, or
// whose Namespaces have another path of the workspace. p may be nil.
func (p *placements) mailboxesWithOtherTenancy(next *placements) (changed map[logicalcluster.Name]struct{}) {
	if p == nil {
		return nil
	}
	changed = map[logicalcluster.Name]struct{}{}
	before := map[logicalcluster.Name]tenancy.Settings{}
	for _, one := range p.all {
		for mailbox, destination := range one.mailboxes {
			before[mailbox] = destination.Tenancy
		}
	}
	for _, one := range next.all {
		for mailbox, destination := range one.mailboxes {
			old, known := before[mailbox]
			if known && (!apiequality.Semantic.DeepEqual(old, destination.Tenancy) || p.path != next.path && !old.Naming.IsShared()) {
				changed[mailbox] = struct{}{}
			}
		}
	}
	return changed
}
