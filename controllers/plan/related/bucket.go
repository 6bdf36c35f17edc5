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
	"cmp"
	"iter"
	"slices"

	"k8s.io/apimachinery/pkg/types"
)

// bucket indexes the claims of all PublishedResources about one API by the attributes that an object is looked up by.
type bucket struct {
	key    bucketKey
	groups map[lookupKey]map[matchConstraints]*claimGroup
	scopes scopeCounter
	// incomplete holds the PublishedResources whose initial sync is not complete; unresolved counts the claims that could not
	// be resolved.
	incomplete map[string]struct{}
	unresolved int

	subscriptions map[*subscription]struct{}
}

// claim is the query of one primary by one relation. It is immutable.
type claim struct {
	publishedResource string
	primary           types.NamespacedName
	relation          *Relation
	query             Query
}

// claimGroup holds the claims with one index key in order of precedence.
type claimGroup struct {
	claims []*claim
}

func newBucket(of bucketKey) *bucket {
	return &bucket{
		key:           of,
		groups:        map[lookupKey]map[matchConstraints]*claimGroup{},
		scopes:        newScopeCounter(),
		incomplete:    map[string]struct{}{},
		subscriptions: map[*subscription]struct{}{},
	}
}

// isComplete reports whether all claims about the API are known.
func (b *bucket) isComplete() bool { return len(b.incomplete) == 0 && b.unresolved == 0 }

// firstClaim returns the claim of highest precedence under an index key, or nil.
func (b *bucket) firstClaim(key indexKey) *claim {
	if group := b.groups[key.lookup][key.constraints]; group != nil {
		return group.claims[0]
	}
	return nil
}

// matchingGroups yields the first claim of each group that can match the object.
func (b *bucket) matchingGroups(object Object) iter.Seq2[indexKey, *claim] {
	return func(yield func(indexKey, *claim) bool) {
		for claims := range object.lookupKeys() {
			for test, group := range b.groups[claims] {
				if !yield(indexKey{claims, test}, group.claims[0]) {
					return
				}
			}
		}
	}
}

func (b *bucket) insert(key indexKey, claim *claim) {
	groups := b.groups[key.lookup]
	if groups == nil {
		groups = map[matchConstraints]*claimGroup{}
		b.groups[key.lookup] = groups
	}
	found := groups[key.constraints]
	if found == nil {
		found = &claimGroup{}
		groups[key.constraints] = found
	}
	if index, already := slices.BinarySearchFunc(found.claims, claim, compareClaims); !already {
		found.claims = slices.Insert(found.claims, index, claim)
	}
}

func (b *bucket) remove(key indexKey, claim *claim) {
	groups := b.groups[key.lookup]
	found := groups[key.constraints]
	if found == nil {
		return
	}
	if index, ok := slices.BinarySearchFunc(found.claims, claim, compareClaims); ok {
		found.claims = slices.Delete(found.claims, index, index+1)
	}
	if len(found.claims) == 0 {
		delete(groups, key.constraints)
	}
	if len(groups) == 0 {
		delete(b.groups, key.lookup)
	}
}

// compareClaims orders claims by precedence. No two claims of a bucket are equal.
func compareClaims(a, b *claim) int {
	return cmp.Or(
		a.relation.Created.Compare(b.relation.Created),
		cmp.Compare(a.publishedResource, b.publishedResource),
		cmp.Compare(a.primary.Namespace, b.primary.Namespace),
		cmp.Compare(a.primary.Name, b.primary.Name),
		cmp.Compare(a.relation.Identifier, b.relation.Identifier),
	)
}
