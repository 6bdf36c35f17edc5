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

package plan

import (
	"cmp"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	synchubv1alpha1 "github.com/synchub-dev/synchub/apis/synchub/v1alpha1"
	"github.com/synchub-dev/synchub/controllers/plan/aggregation"
	"github.com/synchub-dev/synchub/controllers/plan/conversion"
	"github.com/synchub-dev/synchub/controllers/plan/filter"
	"github.com/synchub-dev/synchub/controllers/plan/health"
	"github.com/synchub-dev/synchub/controllers/plan/mutation"
	"github.com/synchub-dev/synchub/controllers/plan/naming"
	"github.com/synchub-dev/synchub/controllers/plan/ownership"
	"github.com/synchub-dev/synchub/controllers/plan/policy"
	"github.com/synchub-dev/synchub/controllers/plan/related"
	"github.com/synchub-dev/synchub/controllers/plan/tenancy"
	"github.com/synchub-dev/synchub/controllers/plan/transform"
)

// Resource is a published API: how mailboxes and targets serve it, and the rules of its PublishedResource. Equal values are
// synced in the same way.
type Resource struct {
	// PublishedResource is the name of the PublishedResource; empty for an API whose objects are only synced with primaries.
	PublishedResource string
	// UID is the PublishedResource's UID while the API is being unpublished; otherwise empty.
	UID types.UID
	// GroupVersionResource and Kind are the API in the mailbox.
	schema.GroupVersionResource
	Kind string
	// Projected is the API on targets if it has another name there; otherwise zero.
	Projected TargetAPI
	// TargetVersion is the version, of [Resource.TargetVersions], in which the hub writes to the target; empty for the first.
	TargetVersion string
	// Namespaced is false for cluster-scoped resources.
	Namespaced bool
	// StatusSubresource is true if the mailbox serves the status as a subresource.
	StatusSubresource bool
	// StatusReturn is true if the hub writes the target's status to the mailbox object.
	StatusReturn bool
	// Native is true if kcp serves the API itself. kcp owns the status of such objects, so the hub does not write it.
	Native bool
	// Exported is true if the hub's APIExport provides the API. Only then the hub may put a finalizer on mailbox objects.
	Exported bool
	// SelectAll is true if every mailbox object is downsynced, whether or not a config selects it.
	SelectAll bool
	// RelatedOnly is true if objects are synced only with primaries; configs do not select them.
	RelatedOnly bool
	// Orphan is true if copies stay on the target, without marks, when their source is deleted.
	Orphan bool
	// DeletesContents is true if deleting an object also deletes other objects: namespaces and CRDs.
	DeletesContents bool
	// Retain is true if objects of a container are released instead of deleted.
	Retain bool
	// InstallsCRD is true if the hub installs the CustomResourceDefinition of the API on targets.
	InstallsCRD bool
	// WaitForTarget is true if a deleted mailbox object stays until its copies are gone from the target.
	WaitForTarget bool
	// Unpublishing is true while the API is being unpublished: the hub removes its finalizers from mailbox objects and does
	// nothing else.
	Unpublishing bool
	// Replace is true if the hub may delete and recreate a copy when the target refuses to change one of its fields.
	Replace bool
	// Adoption is the policy for existing objects that the hub may take over; empty for none.
	Adoption synchubv1alpha1.AdoptionPolicy
	// ReportsDrift is true if the hub reports changes of other clients on the target, and does not undo them, unless an entry of a config
	// or the object has another setting.
	ReportsDrift bool
	// Allowed lists the explicit permissions of the PublishedResource.
	Allowed Allowed
	// Rules are the rules of the PublishedResource. Nil means none.
	Rules *Rules
}

// Rules decide which objects of a resource are synced, and how they are transformed. They are immutable.
type Rules struct {
	// Versions are all versions that mailboxes serve, the preferred one first.
	Versions []string
	Filter   *filter.Filter
	Naming   *naming.Namer
	// Down and Up mutate objects for downsync and upsync.
	Down, Up      *mutation.Program
	IgnoredFields []transform.IgnoredField
	// NamespaceReferences are the fields that name namespaces.
	NamespaceReferences tenancy.References
	Related             []*related.Relation
	// Health computes the health of target objects.
	Health *health.Rules
	// Aggregation combines the statuses that an object has on several targets.
	Aggregation *aggregation.Aggregator
	// Texts are the sources of the rules that restrict tenants.
	Texts RuleTexts
}

// RuleTexts are the sources of rules that restrict what tenants can downsync. An empty text restricts nothing. Equal texts have
// equal effects.
type RuleTexts struct {
	Naming, Filter, Mutation string
}

// Allowed lists permissions that the hub denies unless a PublishedResource grants them.
type Allowed struct {
	// ProtectedNamespaces allows objects in protected namespaces.
	ProtectedNamespaces bool
	// PrivilegedUpsync allows the upsync of objects that act inside kcp, such as RBAC and webhooks.
	PrivilegedUpsync bool
}

// intersect returns the permissions that both have.
func (a Allowed) intersect(b Allowed) Allowed {
	return Allowed{ProtectedNamespaces: a.ProtectedNamespaces && b.ProtectedNamespaces, PrivilegedUpsync: a.PrivilegedUpsync && b.PrivilegedUpsync}
}

// noRules are rules without an effect.
var noRules = &Rules{}

// GetRules returns the rules of the resource; never nil.
func (r Resource) GetRules() *Rules {
	if r.Rules == nil {
		return noRules
	}
	return r.Rules
}

// Related returns the relations of primaries of this resource.
func (r Resource) Related() []*related.Relation { return r.GetRules().Related }

// TargetAPI returns the API on targets.
func (r Resource) TargetAPI() TargetAPI {
	target := TargetAPI{GroupVersionResource: r.GroupVersionResource, Kind: r.Kind}
	if r.Projected != (TargetAPI{}) {
		target = r.Projected
	}
	target.Version = cmp.Or(r.TargetVersion, target.Version)
	target.Allowed = r.Allowed
	return target
}

// InWorkload returns the resource as workload workspaces have it: the original of a twin, and any other resource as it is.
func (r Resource) InWorkload() Resource {
	original, isTwin := policy.OriginalOf(r.GroupResource())
	if !isTwin {
		return r
	}
	r.Group, r.Projected = original.Group, TargetAPI{}
	r.Native = policy.IsServedByKCP(original)
	r.Exported = !r.Native
	return r
}

// CRDName returns the name of the CustomResourceDefinition of the API on targets.
func (r Resource) CRDName() string { return r.TargetAPI().GroupResource().String() }

// WithTargetVersion returns the resource for a target to which the hub writes in one of [Resource.TargetVersions].
func (r Resource) WithTargetVersion(version string) Resource {
	r.TargetVersion = ""
	if version != r.TargetAPI().Version {
		r.TargetVersion = version
	}
	return r
}

// TargetVersions are the versions in which the hub can write objects to targets, the preferred one first. The caller must not
// change them.
//
// kcp converts no fields between the versions of a mailbox API, so an object differs between versions only in its apiVersion. The
// hub can therefore write an object to a target in any of them.
func (r Resource) TargetVersions() []string {
	preferred, published := r.WithTargetVersion("").TargetAPI().Version, r.GetRules().Versions
	switch {
	case preferred != r.Version || len(published) < 2:
		return []string{preferred}
	case published[0] == preferred:
		return published
	default:
		return append([]string{preferred}, slices.DeleteFunc(slices.Clone(published), func(version string) bool { return version == preferred })...)
	}
}

// HasMultipleTargetVersions reports whether the hub can write to targets in more than one version.
func (r Resource) HasMultipleTargetVersions() bool {
	return len(r.GetRules().Versions) > 1 && len(r.TargetVersions()) > 1
}

// DownSpec returns the spec that transforms a mailbox object, selected by a config, for the target.
func (r Resource) DownSpec(policy ownership.Policy, names *conversion.Conversion) transform.SyncSpec {
	rules, target := r.GetRules(), r.TargetAPI()
	spec := transform.SyncSpec{
		Policy:        policy,
		Conversion:    names,
		Kind:          target.GroupVersion().WithKind(target.Kind),
		Naming:        rules.Naming,
		Mutation:      rules.Down,
		IgnoredFields: rules.IgnoredFields,
		ReportsDrift:  r.ReportsDrift,
	}
	if r.Orphan {
		spec.Policy = ownership.PolicyOrphan
	}
	return spec
}

// UpSpec returns the spec that transforms a target object, selected by a config, for the mailbox.
func (r Resource) UpSpec(policy ownership.Policy, names *conversion.Conversion) transform.SyncSpec {
	spec := transform.SyncSpec{Policy: policy, Conversion: names, Mutation: r.GetRules().Up}
	if r.Orphan {
		spec.Policy = ownership.PolicyOrphan
	}
	return spec
}

// ServesVersion reports whether mailboxes serve a version of the resource. All versions have the same objects.
func (r Resource) ServesVersion(version string) bool {
	return version == r.Version || slices.Contains(r.GetRules().Versions, version)
}

// TargetAPI is an API that copies of a [Resource] can have on a target: by its PublishedResource, a conversion or a relation.
type TargetAPI struct {
	schema.GroupVersionResource
	Kind string
	// Allowed lists the permissions that all PublishedResources concerned grant.
	Allowed Allowed
}

// Ref returns the name of an object of the API on the target.
func (t TargetAPI) Ref(key types.NamespacedName) Ref {
	return Ref{Resource: t.GroupResource(), Key: key}
}
