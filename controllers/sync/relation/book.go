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

package relation

import (
	"cmp"
	"iter"
	"slices"

	"k8s.io/apimachinery/pkg/types"
)

// book is what all contributors together say about one API: an index of their claims, by what an object is found by.
type book struct {
	title   title
	drawers map[drawer]map[test]*group
	places  places
	// open holds the contributors that are not complete, failed counts the words of primaries that failed.
	open   map[string]struct{}
	failed int

	subscriptions map[*subscription]struct{}
}

// claim is what one primary wants by one relation. It does not change.
type claim struct {
	contributor string
	primary     types.NamespacedName
	relation    *Relation
	wanted      Wanted
}

// group holds the claims of a drawer that ask the same of an object, in the order in which they count.
type group struct {
	claims []*claim
}

func newBook(of title) *book {
	return &book{
		title:         of,
		drawers:       map[drawer]map[test]*group{},
		places:        newPlaces(),
		open:          map[string]struct{}{},
		subscriptions: map[*subscription]struct{}{},
	}
}

// settled tells whether all is known that is wanted.
func (b *book) settled() bool { return len(b.open) == 0 && b.failed == 0 }

// first returns the claim that counts among those that are filed alike, or nil.
func (b *book) first(filed filing) *claim {
	if group := b.drawers[filed.drawer][filed.test]; group != nil {
		return group.claims[0]
	}
	return nil
}

// candidates yields the first claim of each group that the candidate may meet.
func (b *book) candidates(candidate Candidate) iter.Seq2[filing, *claim] {
	return func(yield func(filing, *claim) bool) {
		for drawer := range candidate.drawers() {
			for test, group := range b.drawers[drawer] {
				if !yield(filing{drawer, test}, group.claims[0]) {
					return
				}
			}
		}
	}
}

func (b *book) file(filed filing, claim *claim) {
	groups := b.drawers[filed.drawer]
	if groups == nil {
		groups = map[test]*group{}
		b.drawers[filed.drawer] = groups
	}
	found := groups[filed.test]
	if found == nil {
		found = &group{}
		groups[filed.test] = found
	}
	if index, already := slices.BinarySearchFunc(found.claims, claim, inOrder); !already {
		found.claims = slices.Insert(found.claims, index, claim)
	}
}

func (b *book) unfile(filed filing, claim *claim) {
	groups := b.drawers[filed.drawer]
	found := groups[filed.test]
	if found == nil {
		return
	}
	if index, ok := slices.BinarySearchFunc(found.claims, claim, inOrder); ok {
		found.claims = slices.Delete(found.claims, index, index+1)
	}
	if len(found.claims) == 0 {
		delete(groups, filed.test)
	}
	if len(groups) == 0 {
		delete(b.drawers, filed.drawer)
	}
}

// inOrder puts the claim first that counts. No two claims in a book are equal in this.
func inOrder(a, b *claim) int {
	return cmp.Or(
		a.relation.Created.Compare(b.relation.Created),
		cmp.Compare(a.contributor, b.contributor),
		cmp.Compare(a.primary.Namespace, b.primary.Namespace),
		cmp.Compare(a.primary.Name, b.primary.Name),
		cmp.Compare(a.relation.Identifier, b.relation.Identifier),
	)
}
