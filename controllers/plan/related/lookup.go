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

// Object is an object whose relation is looked up. The origin and the resource that accompany it are those of the originals.
type Object struct {
	Key             types.NamespacedName
	Labels          map[string]string
	OwnerReferences []metav1.OwnerReference

	// NamespaceSelected is true if a SyncerConfig of the mailbox selects the object's namespace. Otherwise only primaries of
	// that same namespace can claim the object. It does not matter for cluster-scoped objects.
	NamespaceSelected bool
	// NamespaceLabels returns the labels of the object's namespace, if they are known; nil means that they are not. The
	// registry calls it at most once, without a lock held, and only where the answer depends on it. A namespace of unknown
	// labels counts as not selected, but [Registry.IsUnrelated] then returns false.
	NamespaceLabels func() (labels map[string]string, known bool)
}

// Match names the relation by which an object is related, and the primary and PublishedResource that claim it.
type Match struct {
	Relation          *Relation
	PublishedResource string
	Primary           types.NamespacedName
	// Query is the query of that primary.
	Query Query
}

// Find returns the relation by which an object is related. Among several, the one of the oldest PublishedResource counts, then
// the first PublishedResource and the first primary by name: a restarted hub chooses the same. An object that is not related
// may only lack claims so far: use [Registry.IsUnrelated] to be sure.
func (g *Registry) Find(origin synchubv1alpha1.RelatedOrigin, resource schema.GroupResource, object Object) (Match, bool) {
	found := g.lookup(bucketKey{origin, resource}, object).claim
	if found == nil {
		return Match{}, false
	}
	return Match{Relation: found.relation, PublishedResource: found.publishedResource, Primary: found.primary, Query: found.query}, true
}

// IsWantedBy reports whether a known primary of one PublishedResource claims the object, whatever others claim.
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

// IsUnrelated reports whether certainly no primary claims the object, so that its copy can be deleted. A caller could not
// combine Find and IsComplete, because the registry may change between the two calls.
func (g *Registry) IsUnrelated(origin synchubv1alpha1.RelatedOrigin, resource schema.GroupResource, object Object) bool {
	answer := g.lookup(bucketKey{origin, resource}, object)
	return answer.claim == nil && answer.complete && !answer.undetermined
}

// HasSuspended reports whether a primary of the PublishedResource that is selected only by suspended configs claims objects by
// this relation.
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

// IsComplete reports whether the absence of a claim means something: all PublishedResources with relations about the resource
// completed their initial sync, and none of their primaries failed.
func (g *Registry) IsComplete(origin synchubv1alpha1.RelatedOrigin, resource schema.GroupResource) bool {
	g.lock.RLock()
	defer g.lock.RUnlock()
	bucket := g.buckets[bucketKey{origin, resource}]
	return bucket == nil || bucket.isComplete()
}

// SourceScope returns where originals can be, in no order: under names, in namespaces that are searched, or anywhere. The
// lists may be cut: one that is longer than 8 stands for more. When there are more than 8 names, their namespaces are among
// the namespaces. For a cluster-scoped API a name counts without its namespace, and any namespace stands for all objects.
func (g *Registry) SourceScope(origin synchubv1alpha1.RelatedOrigin, resource schema.GroupResource) (names []types.NamespacedName, namespaces []string, all bool) {
	g.lock.RLock()
	defer g.lock.RUnlock()
	bucket := g.buckets[bucketKey{origin, resource}]
	if bucket == nil {
		return nil, nil, false
	}
	return bucket.scopes.list()
}

// lookupResult is the answer of a bucket about an object.
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
	// The function may take locks of its own, so it is called without ours. Then the whole look-up is repeated, because only
	// one look-up under the lock is consistent.
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
