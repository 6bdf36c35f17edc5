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

package objectsync

import (
	"cmp"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"

	synchubv1alpha1 "github.com/synchub-dev/synchub/apis/synchub/v1alpha1"
	"github.com/synchub-dev/synchub/controllers/objectsync/plan/conversion"
	"github.com/synchub-dev/synchub/controllers/objectsync/plan/filter"
	"github.com/synchub-dev/synchub/controllers/objectsync/plan/mutation"
	"github.com/synchub-dev/synchub/controllers/objectsync/plan/naming"
	"github.com/synchub-dev/synchub/controllers/objectsync/plan/ownership"
	"github.com/synchub-dev/synchub/controllers/objectsync/plan/related"
	"github.com/synchub-dev/synchub/controllers/objectsync/plan/transform"
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
	Projected TargetAPI
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
	// SelectAll is true if every object of a mailbox travels, whether or not a config selects it.
	SelectAll bool
	// RelatedOnly is true if objects travel only because they are related to others; configs do not select them.
	RelatedOnly bool
	// Orphan is true if objects are to be left on the target, without marks, when their source goes.
	Orphan bool
	// Container is true if removing an object takes others with it: namespaces and CRDs.
	Container bool
	// Retain is true if objects of a container are to be kept rather than removed with all they hold.
	Retain bool
	// WaitForTarget is true if an object stays in the mailbox until it is gone from the target.
	WaitForTarget bool
	// Unpublishing is true if the resource is about to be unpublished: objects of mailboxes need not wait any more, and nothing
	// else is done.
	Unpublishing bool
	// Replace is true if an object may be deleted and created again when the target refuses to change a field of it.
	Replace bool
	// Adoption says which objects that are there already may be taken over; empty stands for none.
	Adoption synchubv1alpha1.AdoptionPolicy
	// Allowed is what the PublishedResource allows in so many words.
	Allowed Allowed
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
	Down, Up      *mutation.Program
	IgnoredFields []transform.IgnoredField
	Related       []*related.Relation
	// Texts is how those rules are written that confine what goes down.
	Texts RuleTexts
}

// RuleTexts is how rules are written that confine what goes down. Empty texts confine nothing, and equal ones alike.
type RuleTexts struct {
	Naming, Filter, Mutation string
}

// Allowed is what is refused by default and a PublishedResource can allow.
type Allowed struct {
	// ProtectedNamespaces lets objects travel to and from protected namespaces.
	ProtectedNamespaces bool
	// PrivilegedUpsync lets objects come up that act inside kcp.
	PrivilegedUpsync bool
}

// intersect returns what both allow.
func (a Allowed) intersect(b Allowed) Allowed {
	return Allowed{ProtectedNamespaces: a.ProtectedNamespaces && b.ProtectedNamespaces, PrivilegedUpsync: a.PrivilegedUpsync && b.PrivilegedUpsync}
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
func (r Resource) Related() []*related.Relation { return r.rules().Related }

// TargetAPI returns what the API is on targets.
func (r Resource) TargetAPI() TargetAPI {
	target := TargetAPI{GroupVersionResource: r.GroupVersionResource, Kind: r.Kind}
	if r.Projected != (TargetAPI{}) {
		target = r.Projected
	}
	target.Version = cmp.Or(r.TargetVersion, target.Version)
	target.Allowed = r.Allowed
	return target
}

// WithTargetVersion returns the resource as it is with a target to which objects are written in one of [Resource.TargetVersions].
func (r Resource) WithTargetVersion(version string) Resource {
	r.TargetVersion = ""
	if version != r.TargetAPI().Version {
		r.TargetVersion = version
	}
	return r
}

// TargetVersions are those in which objects can be written to targets, the preferred one first. They must not be changed.
//
// kcp converts nothing between the versions of a mailbox, so an object is the same in all of them but for its name: it is
// written to a target under any.
func (r Resource) TargetVersions() []string {
	preferred, published := r.WithTargetVersion("").TargetAPI().Version, r.rules().Versions
	switch {
	case preferred != r.Version || len(published) < 2:
		return []string{preferred}
	case published[0] == preferred:
		return published
	default:
		return append([]string{preferred}, slices.DeleteFunc(slices.Clone(published), func(version string) bool { return version == preferred })...)
	}
}

// HasMultipleTargetVersions tells whether there is more than one.
func (r Resource) HasMultipleTargetVersions() bool {
	return len(r.rules().Versions) > 1 && len(r.TargetVersions()) > 1
}

// DownSpec returns what an object of the resource is to be on a target that goes down for its own sake.
func (r Resource) DownSpec(policy ownership.Policy, names *conversion.Conversion) transform.SyncSpec {
	rules, target := r.rules(), r.TargetAPI()
	wish := transform.SyncSpec{
		Policy:        policy,
		Conversion:    names,
		Kind:          target.GroupVersion().WithKind(target.Kind),
		Naming:        rules.Naming,
		Mutation:      rules.Down,
		IgnoredFields: rules.IgnoredFields,
	}
	if r.Orphan {
		wish.Policy = ownership.PolicyOrphan
	}
	return wish
}

// ServesVersion tells whether mailboxes serve a version of the resource. All versions show the same objects.
func (r Resource) ServesVersion(version string) bool {
	return version == r.Version || slices.Contains(r.rules().Versions, version)
}

// TargetAPI is what objects of a [Resource] are on a target: what the PublishedResource says, or what a conversion
// or a relation makes of them.
type TargetAPI struct {
	schema.GroupVersionResource
	Kind string
	// Allowed is what all PublishedResources allow that are concerned.
	Allowed Allowed
}
