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
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	synchubv1alpha1 "github.com/synchub-dev/synchub/apis/synchub/v1alpha1"
)

// Registry holds, for one SyncTarget, the claims of all primaries on related objects. It is safe for concurrent use.
//
// Each PublishedResource begins its initial sync with its relations, sets one claim for each of its primaries and relations, and
// then completes the initial sync. Every PublishedResource must begin before the first look-up, because the registry cannot wait
// for one that it does not know. The registry ignores claims by relations that the PublishedResource did not begin with: they are
// late calls of its previous controller.
type Registry struct {
	lock               sync.RWMutex
	publishedResources map[string]*publishedResource
	buckets            map[bucketKey]*bucket
}

// bucketKey is the API of a bucket, on the side of the originals.
type bucketKey struct {
	origin   synchubv1alpha1.RelatedOrigin
	resource schema.GroupResource
}

// publishedResource is the state of one PublishedResource.
type publishedResource struct {
	name string
	// relations are the relations that it began with.
	relations map[*Relation]struct{}
	// epoch counts how often it has begun.
	epoch int
	// buckets are the buckets of its relations, and of its former claims.
	buckets map[*bucket]struct{}
	claims  map[types.NamespacedName]map[subject]*claimState
}

// subject identifies one claim of a primary.
type subject struct {
	bucket     *bucket
	identifier string
}

// claimState is the last claim of a primary about a subject, and the epoch in which it was set.
type claimState struct {
	// claim is nil if the query of the primary is not known.
	claim *claim
	epoch int
	// unresolved is true if the current query of the primary cannot be resolved.
	unresolved bool
}

// NewRegistry returns an empty registry.
func NewRegistry() *Registry {
	return &Registry{publishedResources: map[string]*publishedResource{}, buckets: map[bucketKey]*bucket{}}
}

// BeginInitialSync starts a PublishedResource, or starts it again. Its former claims stay until the initial sync is complete.
func (g *Registry) BeginInitialSync(name string, relations []*Relation) {
	g.update(func(tx *transaction) {
		resource := g.publishedResources[name]
		if resource == nil {
			resource = &publishedResource{name: name, buckets: map[*bucket]struct{}{}, claims: map[types.NamespacedName]map[subject]*claimState{}}
			g.publishedResources[name] = resource
		}
		resource.epoch++
		resource.relations = map[*Relation]struct{}{}
		for _, relation := range relations {
			resource.relations[relation] = struct{}{}
			resource.buckets[g.bucket(bucketKeyOf(relation))] = struct{}{}
		}
		resource.markIncomplete(tx)
	})
}

// SetClaim replaces the claim of a primary by a relation. primary is the primary's name in the mailbox.
func (g *Registry) SetClaim(name string, primary types.NamespacedName, relation *Relation, query Query) {
	g.withRelation(name, relation, func(tx *transaction, resource *publishedResource, at subject) {
		state := resource.claims[primary][at]
		if state == nil {
			if query.IsEmpty() {
				return
			}
			state = &claimState{}
			resource.setClaim(primary, at, state)
		}
		state.epoch = resource.epoch
		tx.setUnresolved(at.bucket, state, false)
		if claim := state.claim; claim != nil && claim.relation == relation && claim.query.Equal(query) {
			return
		}
		tx.removeClaim(at.bucket, state)
		if query.IsEmpty() {
			resource.deleteClaim(primary, at)
			return
		}
		tx.addClaim(at.bucket, state, &claim{publishedResource: name, primary: primary, relation: relation, query: query})
	})
}

// MarkUnresolved records that the query of a primary cannot be resolved now. Its former claim stays, and no object of the
// relation's API counts as unrelated until the primary sets another claim.
func (g *Registry) MarkUnresolved(name string, primary types.NamespacedName, relation *Relation) {
	g.withRelation(name, relation, func(tx *transaction, resource *publishedResource, at subject) {
		state := resource.claims[primary][at]
		if state == nil {
			state = &claimState{}
			resource.setClaim(primary, at, state)
		}
		state.epoch = resource.epoch
		tx.setUnresolved(at.bucket, state, true)
	})
}

// withRelation calls do if the PublishedResource exists and the relation is one of its own.
func (g *Registry) withRelation(name string, relation *Relation, do func(tx *transaction, resource *publishedResource, at subject)) {
	g.update(func(tx *transaction) {
		resource := g.publishedResources[name]
		if resource == nil {
			return
		}
		if _, ok := resource.relations[relation]; ok {
			do(tx, resource, subject{g.bucket(bucketKeyOf(relation)), relation.Identifier})
		}
	})
}

// RemovePrimary removes all claims of a deleted primary.
func (g *Registry) RemovePrimary(name string, primary types.NamespacedName) {
	g.update(func(tx *transaction) {
		if resource := g.publishedResources[name]; resource != nil {
			for at := range resource.claims[primary] {
				tx.removeClaimState(resource, primary, at)
			}
		}
	})
}

// CompleteInitialSync records that every primary has set all its claims since BeginInitialSync. Claims that were not renewed
// are dropped.
func (g *Registry) CompleteInitialSync(name string) {
	g.update(func(tx *transaction) {
		resource := g.publishedResources[name]
		if resource == nil {
			return
		}
		resource.markComplete(tx)
		for primary, words := range resource.claims {
			for at, state := range words {
				if state.epoch != resource.epoch {
					tx.removeClaimState(resource, primary, at)
				}
			}
		}
		resource.buckets = map[*bucket]struct{}{}
		for relation := range resource.relations {
			resource.buckets[g.bucket(bucketKeyOf(relation))] = struct{}{}
		}
	})
}

// RemovePublishedResource removes a PublishedResource and all its claims.
func (g *Registry) RemovePublishedResource(name string) {
	g.update(func(tx *transaction) {
		resource := g.publishedResources[name]
		if resource == nil {
			return
		}
		resource.markComplete(tx)
		for primary, words := range resource.claims {
			for at := range words {
				tx.removeClaimState(resource, primary, at)
			}
		}
		delete(g.publishedResources, name)
	})
}

// markIncomplete marks all buckets of the PublishedResource as incomplete.
func (c *publishedResource) markIncomplete(tx *transaction) {
	for bucket := range c.buckets {
		tx.snapshot(bucket)
		bucket.incomplete[c.name] = struct{}{}
	}
}

// markComplete reverts markIncomplete.
func (c *publishedResource) markComplete(tx *transaction) {
	for bucket := range c.buckets {
		tx.snapshot(bucket)
		delete(bucket.incomplete, c.name)
	}
}

func (c *publishedResource) setClaim(primary types.NamespacedName, at subject, state *claimState) {
	words := c.claims[primary]
	if words == nil {
		words = map[subject]*claimState{}
		c.claims[primary] = words
	}
	words[at] = state
}

func (c *publishedResource) deleteClaim(primary types.NamespacedName, at subject) {
	delete(c.claims[primary], at)
	if len(c.claims[primary]) == 0 {
		delete(c.claims, primary)
	}
}

// bucket returns the bucket of an API, and creates it if necessary.
func (g *Registry) bucket(of bucketKey) *bucket {
	found := g.buckets[of]
	if found == nil {
		found = newBucket(of)
		g.buckets[of] = found
	}
	return found
}

func bucketKeyOf(relation *Relation) bucketKey {
	return bucketKey{relation.Origin, relation.SourceResource().GroupResource()}
}
