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

// Registry knows, for one SyncTarget, which objects are related to which primaries. It is safe for concurrent use.
//
// A contributor is a PublishedResource, by its name. It begins with its relations, says for each of its primaries and each
// relation what is wanted, and is complete when it has said so for all there are. Every contributor must have begun before
// the first question is asked, because the register cannot miss one that it never heard of. What a contributor says about
// a relation that it did not begin with is a late word of its former self, and not heard.
type Registry struct {
	lock               sync.RWMutex
	publishedResources map[string]*publishedResource
	buckets            map[bucketKey]*bucket
}

// bucketKey is what a book is about: one API on the side where the originals are.
type bucketKey struct {
	origin   synchubv1alpha1.RelatedOrigin
	resource schema.GroupResource
}

// publishedResource is what one PublishedResource has said.
type publishedResource struct {
	name string
	// relations are those it began with.
	relations map[*Relation]struct{}
	// epoch counts how often it has begun.
	epoch int
	// buckets are those that it has said something in, or may.
	buckets map[*bucket]struct{}
	claims  map[types.NamespacedName]map[subject]*claimState
}

// subject is what a primary can say one thing about.
type subject struct {
	bucket     *bucket
	identifier string
}

// claimState is the last that a primary has said about a topic, and in which round.
type claimState struct {
	// claim is what it wants; nil if nothing is known of that.
	claim *claim
	epoch int
	// unresolved is true if what it wants now cannot be told.
	unresolved bool
}

// NewRegistry returns an empty register.
func NewRegistry() *Registry {
	return &Registry{publishedResources: map[string]*publishedResource{}, buckets: map[bucketKey]*bucket{}}
}

// BeginInitialSync starts a contributor, or starts it again. What it said before stays in force until it is complete.
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

// SetClaim says what a primary wants by a relation, instead of what it wanted before. The primary's name is that in the mailbox.
func (g *Registry) SetClaim(name string, primary types.NamespacedName, relation *Relation, query Query) {
	g.withRelation(name, relation, func(tx *transaction, resource *publishedResource, at subject) {
		said := resource.claims[primary][at]
		if said == nil {
			if query.IsEmpty() {
				return
			}
			said = &claimState{}
			resource.setClaim(primary, at, said)
		}
		said.epoch = resource.epoch
		tx.setUnresolved(at.bucket, said, false)
		if claim := said.claim; claim != nil && claim.relation == relation && claim.query.Equal(query) {
			return
		}
		tx.removeClaim(at.bucket, said)
		if query.IsEmpty() {
			resource.deleteClaim(primary, at)
			return
		}
		tx.addClaim(at.bucket, said, &claim{publishedResource: name, primary: primary, relation: relation, query: query})
	})
}

// MarkUnresolved says that what a primary wants by a relation cannot be told now. What it said before stays in force, and until it
// says more nothing can be concluded from absence.
func (g *Registry) MarkUnresolved(name string, primary types.NamespacedName, relation *Relation) {
	g.withRelation(name, relation, func(tx *transaction, resource *publishedResource, at subject) {
		said := resource.claims[primary][at]
		if said == nil {
			said = &claimState{}
			resource.setClaim(primary, at, said)
		}
		said.epoch = resource.epoch
		tx.setUnresolved(at.bucket, said, true)
	})
}

// withRelation lets a contributor that has not ended speak about one of its relations.
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

// RemovePrimary says that a primary is gone: it wants nothing any more.
func (g *Registry) RemovePrimary(name string, primary types.NamespacedName) {
	g.update(func(tx *transaction) {
		if resource := g.publishedResources[name]; resource != nil {
			for at := range resource.claims[primary] {
				tx.removeClaimState(resource, primary, at)
			}
		}
	})
}

// CompleteInitialSync notes that every primary has published all its claims since Begin. Claims that were not renewed are dropped.
func (g *Registry) CompleteInitialSync(name string) {
	g.update(func(tx *transaction) {
		resource := g.publishedResources[name]
		if resource == nil {
			return
		}
		resource.markComplete(tx)
		for primary, words := range resource.claims {
			for at, said := range words {
				if said.epoch != resource.epoch {
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

// RemovePublishedResource says that a contributor is gone: what it said is dropped.
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

// markIncomplete marks all that the contributor speaks about as not fully known.
func (c *publishedResource) markIncomplete(tx *transaction) {
	for bucket := range c.buckets {
		tx.snapshot(bucket)
		bucket.incomplete[c.name] = struct{}{}
	}
}

// markComplete takes that mark off.
func (c *publishedResource) markComplete(tx *transaction) {
	for bucket := range c.buckets {
		tx.snapshot(bucket)
		delete(bucket.incomplete, c.name)
	}
}

func (c *publishedResource) setClaim(primary types.NamespacedName, at subject, said *claimState) {
	words := c.claims[primary]
	if words == nil {
		words = map[subject]*claimState{}
		c.claims[primary] = words
	}
	words[at] = said
}

func (c *publishedResource) deleteClaim(primary types.NamespacedName, at subject) {
	delete(c.claims[primary], at)
	if len(c.claims[primary]) == 0 {
		delete(c.claims, primary)
	}
}

// bucket returns the book about an API.
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
