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

package related

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	synchubv1alpha1 "github.com/synchub-dev/synchub/apis/synchub/v1alpha1"
)

// Object is an object whose relation is looked up. The functions take it together with the origin and the resource of the
// originals.
type Object struct {
	Key             types.NamespacedName
	Labels          map[string]string
	OwnerReferences []metav1.OwnerReference

	// NamespaceSelected is true if a SyncerConfig of the mailbox selects the object's namespace. Otherwise only primaries of
	// that same namespace can claim the object. It does not matter for cluster-scoped objects.
	NamespaceSelected bool
	// NamespaceLabels returns the labels of the object's namespace, if they are known; nil means that they are not. The registry
	// calls it at most once, without holding a lock, and only if the result depends on the labels. A namespace with unknown
	// labels counts as not selected, but [Registry.IsUnrelated] then returns false.
	NamespaceLabels func() (labels map[string]string, known bool)
}

// Match is the relation of an object, with the primary and the PublishedResource that claim the object.
type Match struct {
	Relation          *Relation
	PublishedResource string
	Primary           types.NamespacedName
	// Query is the query of that primary.
	Query Query
}

// Find returns the relation of an object. Among several, it chooses the relation of the oldest PublishedResource, then of the
// first PublishedResource and the first primary by name, so that a restarted hub chooses the same one. A claim on an object that
// is not found may still be missing: use [Registry.IsUnrelated] to be certain.
func (g *Registry) Find(origin synchubv1alpha1.RelatedOrigin, resource schema.GroupResource, object Object) (Match, bool) {
	found := g.lookup(bucketKey{origin, resource}, object).claim
	if found == nil {
		return Match{}, false
	}
	return Match{Relation: found.relation, PublishedResource: found.publishedResource, Primary: found.primary, Query: found.query}, true
}

// IsWantedBy reports whether a known primary of one PublishedResource claims the object, even if other claims take precedence.
func (g *Registry) IsWantedBy(publishedResource string, origin synchubv1alpha1.RelatedOrigin, resource schema.GroupResource, object Object) bool {
	seen := objectView{Object: object}
	if object.NamespaceLabels != nil {
		seen.namespaceLabels, seen.labelsKnown = object.NamespaceLabels()
	}
	g.lock.RLock()
	defer g.lock.RUnlock()
	bucket := g.buckets[bucketKey{origin, resource}]
	if bucket == nil {
		return false
	}
	for key, first := range bucket.matchingGroups(object) {
		met, _ := seen.matches(key, first.query)
		if met && slices.ContainsFunc(bucket.groups[key.lookup][key.constraints].claims, func(claim *claim) bool { return claim.publishedResource == publishedResource }) {
			return true
		}
	}
	return false
}

// IsUnrelated reports whether it is certain that no primary claims the object, so that its copy can be deleted. A caller cannot
// combine Find and IsComplete, because the registry may change between the two calls.
func (g *Registry) IsUnrelated(origin synchubv1alpha1.RelatedOrigin, resource schema.GroupResource, object Object) bool {
	answer := g.lookup(bucketKey{origin, resource}, object)
	return answer.claim == nil && answer.complete && !answer.undetermined
}

// HasSuspended reports whether a suspended primary of the PublishedResource claims objects by this relation. A primary is
// suspended if all configs that select it are.
func (g *Registry) HasSuspended(publishedResource, identifier string) bool {
	g.lock.RLock()
	defer g.lock.RUnlock()
	resource := g.publishedResources[publishedResource]
	if resource == nil {
		return false
	}
	for _, words := range resource.claims {
		for at, state := range words {
			if at.identifier == identifier && state.claim != nil && state.claim.query.PrimaryInfo.Suspended {
				return true
			}
		}
	}
	return false
}

// IsComplete reports whether all claims on the resource are known: all PublishedResources with relations to the resource have
// completed their initial sync, and none of their primaries failed.
func (g *Registry) IsComplete(origin synchubv1alpha1.RelatedOrigin, resource schema.GroupResource) bool {
	g.lock.RLock()
	defer g.lock.RUnlock()
	bucket := g.buckets[bucketKey{origin, resource}]
	return bucket == nil || bucket.isComplete()
}

// SourceScope returns where originals can be, in no order: the claimed names, the searched namespaces, or everywhere. The lists
// may be truncated: a list with more than 8 items may be incomplete. If there are more than 8 names, the namespaces include
// theirs. For a cluster-scoped API, a name counts without its namespace, and any namespace stands for all objects.
func (g *Registry) SourceScope(origin synchubv1alpha1.RelatedOrigin, resource schema.GroupResource) (names []types.NamespacedName, namespaces []string, all bool) {
	g.lock.RLock()
	defer g.lock.RUnlock()
	bucket := g.buckets[bucketKey{origin, resource}]
	if bucket == nil {
		return nil, nil, false
	}
	return bucket.scopes.list()
}

// lookupResult is a bucket's result for an object.
type lookupResult struct {
	// claim is the claim of highest precedence, or nil.
	claim    *claim
	complete bool
	// undetermined is true if a claim depends on labels of the namespace that are not known.
	undetermined bool
}

func (g *Registry) lookup(of bucketKey, object Object) lookupResult {
	seen := objectView{Object: object}
	first := g.lookupOnce(of, seen)
	if !first.undetermined || object.NamespaceLabels == nil {
		return first
	}
	// NamespaceLabels may take other locks, so it is called without the registry's lock. Then the whole look-up is repeated,
	// because only a look-up under one lock is consistent.
	seen.namespaceLabels, seen.labelsKnown = object.NamespaceLabels()
	return g.lookupOnce(of, seen)
}

func (g *Registry) lookupOnce(of bucketKey, seen objectView) lookupResult {
	g.lock.RLock()
	defer g.lock.RUnlock()
	bucket := g.buckets[of]
	if bucket == nil {
		return lookupResult{complete: true}
	}
	result := lookupResult{complete: bucket.isComplete()}
	for key, first := range bucket.matchingGroups(seen.Object) {
		met, open := seen.matches(key, first.query)
		result.undetermined = result.undetermined || open
		if met && (result.claim == nil || compareClaims(first, result.claim) < 0) {
			result.claim = first
		}
	}
	return result
}
