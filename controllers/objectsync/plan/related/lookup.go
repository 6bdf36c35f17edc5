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

// Object is an object of which is asked whether it is related. A side and a resource that go with it always are those
// of the originals.
type Object struct {
	Key             types.NamespacedName
	Labels          map[string]string
	OwnerReferences []metav1.OwnerReference

	// NamespaceSelected says that a SyncerConfig of the mailbox selects the candidate's namespace. Without, only primaries of that
	// same namespace can be related to it. It says nothing about what is in no namespace.
	NamespaceSelected bool
	// NamespaceLabels returns the labels of the candidate's namespace, if they are known. It is called at most once, and
	// only where the answer hangs on them, without a lock held. Absent means that they are not known. Where they are not,
	// the namespace counts as not selected by its labels, but [Register.IsUnrelated] is not sure of that.
	NamespaceLabels func() (labels map[string]string, known bool)
}

// Match says by which relation an object is related, and to which primary of which contributor.
type Match struct {
	Relation          *Relation
	PublishedResource string
	Primary           types.NamespacedName
	// Query is what that primary wants.
	Query Query
}

// Find returns by which relation a candidate is related. Of several the oldest contributor counts, then the first contributor
// and the first primary by name: the choice stays when the hub starts again. That it is not related may mean that nobody has
// said so yet: only [Register.IsUnrelated] tells.
func (g *Registry) Find(side synchubv1alpha1.RelatedOrigin, resource schema.GroupResource, object Object) (Match, bool) {
	found := g.lookup(bucketKey{side, resource}, object).claim
	if found == nil {
		return Match{}, false
	}
	return Match{Relation: found.relation, PublishedResource: found.publishedResource, Primary: found.primary, Query: found.query}, true
}

// IsWantedBy tells whether a primary of one contributor is known to want a candidate, whoever else does.
func (g *Registry) IsWantedBy(contributor string, side synchubv1alpha1.RelatedOrigin, resource schema.GroupResource, object Object) bool {
	seen := objectView{Object: object}
	if object.NamespaceLabels != nil {
		seen.namespaceLabels, seen.labelsKnown = object.NamespaceLabels()
	}
	g.lock.RLock()
	defer g.lock.RUnlock()
	bucket := g.buckets[bucketKey{side, resource}]
	if bucket == nil {
		return false
	}
	for key, first := range bucket.matchingGroups(object) {
		met, _ := seen.matches(key, first.query)
		if met && slices.ContainsFunc(bucket.groups[key.lookup][key.constraints].claims, func(claim *claim) bool { return claim.publishedResource == contributor }) {
			return true
		}
	}
	return false
}

// IsUnrelated tells whether it is sure that no primary wants a candidate, so that a copy of it can go. Find and Settled
// cannot tell that together, because the register may change between one question and the other.
func (g *Registry) IsUnrelated(side synchubv1alpha1.RelatedOrigin, resource schema.GroupResource, object Object) bool {
	answer := g.lookup(bucketKey{side, resource}, object)
	return answer.claim == nil && answer.complete && !answer.undetermined
}

// HasSuspended tells whether any primary of a contributor whose copies are to be left as they are wants something by a
// relation.
func (g *Registry) HasSuspended(contributor, identifier string) bool {
	g.lock.RLock()
	defer g.lock.RUnlock()
	resource := g.publishedResources[contributor]
	if resource == nil {
		return false
	}
	for _, words := range resource.claims {
		for at, said := range words {
			if at.identifier == identifier && said.claim != nil && said.claim.query.PrimaryInfo.Suspended {
				return true
			}
		}
	}
	return false
}

// IsComplete tells whether absence of a relation means something: all contributors that speak of the resource are complete,
// and none of their primaries failed.
func (g *Registry) IsComplete(side synchubv1alpha1.RelatedOrigin, resource schema.GroupResource) bool {
	g.lock.RLock()
	defer g.lock.RUnlock()
	bucket := g.buckets[bucketKey{side, resource}]
	return bucket == nil || bucket.isComplete()
}

// SourceScope returns where originals can be, in no order: under names, in namespaces that are looked through, or anywhere. The
// lists need not be whole: one that is longer than 8 stands for more. When there are more than 8 names, their namespaces are
// among the namespaces. For an API that is in no namespace, a name counts without its namespace, and any namespace stands
// for all objects.
func (g *Registry) SourceScope(side synchubv1alpha1.RelatedOrigin, resource schema.GroupResource) (names []types.NamespacedName, namespaces []string, all bool) {
	g.lock.RLock()
	defer g.lock.RUnlock()
	bucket := g.buckets[bucketKey{side, resource}]
	if bucket == nil {
		return nil, nil, false
	}
	return bucket.scopes.list()
}

// lookupResult is what a book says of a candidate.
type lookupResult struct {
	// claim is the one that counts, or nil.
	claim    *claim
	complete bool
	// undetermined is true if a claim hangs on labels of the namespace that are not known.
	undetermined bool
}

func (g *Registry) lookup(of bucketKey, object Object) lookupResult {
	seen := objectView{Object: object}
	first := g.lookupOnce(of, seen)
	if !first.undetermined || object.NamespaceLabels == nil {
		return first
	}
	// The caller's function may need locks of its own, so it is called without ours. Then all is asked again, because only
	// an answer from one look is true of some moment.
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
