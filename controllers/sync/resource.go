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

package sync

import (
	"cmp"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"

	synchubv1alpha1 "github.com/synchub-dev/synchub/apis/synchub/v1alpha1"
	"github.com/synchub-dev/synchub/controllers/sync/conversion"
	"github.com/synchub-dev/synchub/controllers/sync/filter"
	"github.com/synchub-dev/synchub/controllers/sync/mutation"
	"github.com/synchub-dev/synchub/controllers/sync/naming"
	"github.com/synchub-dev/synchub/controllers/sync/ownership"
	"github.com/synchub-dev/synchub/controllers/sync/relation"
	"github.com/synchub-dev/synchub/controllers/sync/transform"
)

// Resource is an API that mailboxes have and targets are given, as its PublishedResource says. Two of equal value are
// synced in the same way.
type Resource struct {
	// PublishedResource is the name of the PublishedResource; empty for a resource that only travels with others.
	PublishedResource string
	// GroupVersionResource and Kind are those in mailboxes.
	schema.GroupVersionResource
	Kind string
	// Projected is what the API is on targets, where it has another name there. Zero means the same.
	Projected TargetResource
	// TargetVersion is the one of [Resource.TargetVersions] in which objects are written to the target, if that is not the
	// first.
	TargetVersion string
	// Namespaced is false for cluster-scoped resources.
	Namespaced bool
	// StatusSubresource is true if the mailbox serves the status as a subresource.
	StatusSubresource bool
	// StatusReturn is true if the status is brought back to the mailbox.
	StatusReturn bool
	// Native is true if kcp serves the API by itself: it keeps the status of such objects, so the hub leaves it alone.
	Native bool
	// Exported is true if the hub provides the API. Only then it may put a finalizer on objects of the mailbox.
	Exported bool
	// All is true if every object of a mailbox travels, whether or not a config selects it.
	All bool
	// Companion is true if objects travel only because they are related to others; configs do not select them.
	Companion bool
	// Orphan is true if objects are to be left on the target, without marks, when their source goes.
	Orphan bool
	// Container is true if removing an object takes others with it: namespaces and CRDs.
	Container bool
	// Retain is true if objects of a container are to be kept rather than removed with all they hold.
	Retain bool
	// Wait is true if an object stays in the mailbox until it is gone from the target.
	Wait bool
	// Leaving is true if the resource is about to be unpublished: objects of mailboxes need not wait any more, and nothing
	// else is done.
	Leaving bool
	// Replace is true if an object may be deleted and created again when the target refuses to change a field of it.
	Replace bool
	// Adoption says which objects that are there already may be taken over; empty stands for none.
	Adoption synchubv1alpha1.AdoptionPolicy
	// Allows is what the PublishedResource allows in so many words.
	Allows Allows
	// Rules say how objects change on their way. Nil means not at all.
	Rules *Rules
}

// Rules say which objects of a resource travel and how they change on their way. They never change.
type Rules struct {
	// Versions are all that mailboxes serve, the preferred one first.
	Versions []string
	Filter   *filter.Filter
	Naming   *naming.Namer
	// Down and Up change what goes down and what comes up.
	Down, Up *mutation.Program
	Ignored  []transform.Ignored
	Related  []*relation.Relation
	// Written is how those rules are written that confine what goes down.
	Written Confinement
}

// Confinement is how rules are written that confine what goes down. Empty texts confine nothing, and equal ones alike.
type Confinement struct {
	Naming, Filter, Mutation string
}

// Allows is what is refused by default and a PublishedResource can allow.
type Allows struct {
	// ProtectedNamespaces lets objects travel to and from protected namespaces.
	ProtectedNamespaces bool
	// PrivilegedUpsync lets objects come up that act inside kcp.
	PrivilegedUpsync bool
}

// and returns what both allow.
func (a Allows) and(b Allows) Allows {
	return Allows{ProtectedNamespaces: a.ProtectedNamespaces && b.ProtectedNamespaces, PrivilegedUpsync: a.PrivilegedUpsync && b.PrivilegedUpsync}
}

// noRules change nothing.
var noRules = &Rules{}

// rules returns the rules of a resource, which are never nil.
func (r Resource) rules() *Rules {
	if r.Rules == nil {
		return noRules
	}
	return r.Rules
}

// Related returns what travels with objects of the resource.
func (r Resource) Related() []*relation.Relation { return r.rules().Related }

// OnTarget returns what the API is on targets.
func (r Resource) OnTarget() TargetResource {
	target := TargetResource{GroupVersionResource: r.GroupVersionResource, Kind: r.Kind}
	if r.Projected != (TargetResource{}) {
		target = r.Projected
	}
	target.Version = cmp.Or(r.TargetVersion, target.Version)
	target.Allows = r.Allows
	return target
}

// In returns the resource as it is with a target to which objects are written in one of [Resource.TargetVersions].
func (r Resource) In(version string) Resource {
	r.TargetVersion = ""
	if version != r.OnTarget().Version {
		r.TargetVersion = version
	}
	return r
}

// TargetVersions are those in which objects can be written to targets, the preferred one first. They must not be changed.
//
// kcp converts nothing between the versions of a mailbox, so an object is the same in all of them but for its name: it is
// written to a target under any.
func (r Resource) TargetVersions() []string {
	preferred, published := r.In("").OnTarget().Version, r.rules().Versions
	switch {
	case preferred != r.Version || len(published) < 2:
		return []string{preferred}
	case published[0] == preferred:
		return published
	default:
		return append([]string{preferred}, slices.DeleteFunc(slices.Clone(published), func(version string) bool { return version == preferred })...)
	}
}

// HasTargetVersions tells whether there is more than one.
func (r Resource) HasTargetVersions() bool {
	return len(r.rules().Versions) > 1 && len(r.TargetVersions()) > 1
}

// WishDown returns what an object of the resource is to be on a target that goes down for its own sake.
func (r Resource) WishDown(policy ownership.Policy, names *conversion.Conversion) transform.Wish {
	rules, target := r.rules(), r.OnTarget()
	wish := transform.Wish{
		Policy:     policy,
		Conversion: names,
		Kind:       target.GroupVersion().WithKind(target.Kind),
		Naming:     rules.Naming,
		Mutation:   rules.Down,
		Ignored:    rules.Ignored,
	}
	if r.Orphan {
		wish.Policy = ownership.PolicyOrphan
	}
	return wish
}

// Serves tells whether mailboxes serve a version of the resource. All versions show the same objects.
func (r Resource) Serves(version string) bool {
	return version == r.Version || slices.Contains(r.rules().Versions, version)
}

// TargetResource is what objects of a [Resource] are on a target: what the PublishedResource says, or what a conversion
// or a relation makes of them.
type TargetResource struct {
	schema.GroupVersionResource
	Kind string
	// Allows is what all PublishedResources allow that are concerned.
	Allows Allows
}
