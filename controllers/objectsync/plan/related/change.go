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
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	synchubv1alpha1 "github.com/synchub-dev/synchub/apis/synchub/v1alpha1"
)

// Change says for which objects another answer may be given than before. All includes that absence means something again,
// which it did not before.
type Change struct {
	Names      []types.NamespacedName
	Namespaces []string
	All        bool
}

// Affects tells whether an object of this name may have another answer. For what is in no namespace the names count without
// their namespaces.
func (c Change) Affects(key types.NamespacedName) bool {
	if key.Namespace == "" {
		return c.All || len(c.Namespaces) > 0 ||
			slices.ContainsFunc(c.Names, func(name types.NamespacedName) bool { return name.Name == key.Name })
	}
	return c.All || slices.Contains(c.Namespaces, key.Namespace) || slices.Contains(c.Names, key)
}

// subscription is somebody who wants to know of changes.
type subscription struct {
	onChange func(Change)
}

// Subscribe lets changed be called after each change of the answers about an API, on the goroutine that caused it and
// without a lock held: the register can be asked and told from there. Calls may overlap, and one that has begun is not
// waited for by unsubscribe.
func (g *Registry) Subscribe(side synchubv1alpha1.RelatedOrigin, resource schema.GroupResource, changed func(Change)) (unsubscribe func()) {
	added := &subscription{changed}
	g.lock.Lock()
	defer g.lock.Unlock()
	bucket := g.bucket(bucketKey{side, resource})
	bucket.subscriptions[added] = struct{}{}
	return func() {
		g.lock.Lock()
		defer g.lock.Unlock()
		delete(bucket.subscriptions, added)
	}
}

// transaction is one change of the register. It remembers what was true of all that it touches, so that only what is different in
// the end is announced.
type transaction struct {
	wasComplete map[*bucket]bool
	firstClaims map[*bucket]map[indexKey]*claim
}

// update makes a change under the lock and announces it afterwards.
func (g *Registry) update(do func(*transaction)) {
	made := &transaction{wasComplete: map[*bucket]bool{}, firstClaims: map[*bucket]map[indexKey]*claim{}}
	for _, call := range g.applyLocked(made, do) {
		call()
	}
}

// applyLocked returns the announcements that are to be made.
func (g *Registry) applyLocked(made *transaction, do func(*transaction)) []func() {
	g.lock.Lock()
	defer g.lock.Unlock()
	do(made)
	var calls []func()
	for bucket := range made.wasComplete {
		if len(bucket.subscriptions) == 0 {
			continue
		}
		change, ok := made.diff(bucket)
		if !ok {
			continue
		}
		for subscription := range bucket.subscriptions {
			calls = append(calls, func() { subscription.onChange(change) })
		}
	}
	return calls
}

// snapshot remembers what is true of a book, before it is changed for the first time.
func (e *transaction) snapshot(book *bucket) {
	if _, ok := e.wasComplete[book]; !ok {
		e.wasComplete[book] = book.isComplete()
		e.firstClaims[book] = map[indexKey]*claim{}
	}
}

// setUnresolved notes whether a word's primary failed.
func (e *transaction) setUnresolved(book *bucket, said *claimState, failed bool) {
	e.snapshot(book)
	if failed && !said.unresolved {
		book.unresolved++
	} else if !failed && said.unresolved {
		book.unresolved--
	}
	said.unresolved = failed
}

// addClaim puts a claim into force that a word has not had yet.
func (e *transaction) addClaim(book *bucket, said *claimState, made *claim) {
	e.snapshot(book)
	said.claim = made
	book.scopes.add(made.query, 1)
	for key := range made.query.indexKeys() {
		e.snapshotFirst(book, key)
		book.insert(key, made)
	}
}

// removeClaim takes a word's claim back, if it has one.
func (e *transaction) removeClaim(book *bucket, said *claimState) {
	if said.claim == nil {
		return
	}
	e.snapshot(book)
	book.scopes.add(said.claim.query, -1)
	for key := range said.claim.query.indexKeys() {
		e.snapshotFirst(book, key)
		book.remove(key, said.claim)
	}
	said.claim = nil
}

// removeClaimState forgets what a primary said.
func (e *transaction) removeClaimState(resource *publishedResource, primary types.NamespacedName, at subject) {
	said := resource.claims[primary][at]
	e.setUnresolved(at.bucket, said, false)
	e.removeClaim(at.bucket, said)
	resource.deleteClaim(primary, at)
}

func (e *transaction) snapshotFirst(book *bucket, key indexKey) {
	if _, ok := e.firstClaims[book][key]; !ok {
		e.firstClaims[book][key] = book.firstClaim(key)
	}
}

// diff returns what is different in a book; ok is false if nothing is.
func (e *transaction) diff(book *bucket) (change Change, ok bool) {
	if !e.wasComplete[book] && book.isComplete() {
		return Change{All: true}, true
	}
	names, namespaces := map[types.NamespacedName]struct{}{}, map[string]struct{}{}
	for key, before := range e.firstClaims[book] {
		if sameMatch(before, book.firstClaim(key)) {
			continue
		}
		switch place, trait := key.lookup.scope, key.lookup.attribute; {
		case place.kind == selectedNamespaces:
			return Change{All: true}, true
		case place.kind == clusterScope:
			// What comes first among all that ask the same comes first where it is filed besides, too.
		case trait.kind == byName:
			names[types.NamespacedName{Namespace: place.namespace, Name: trait.value}] = struct{}{}
		default:
			namespaces[place.namespace] = struct{}{}
		}
	}
	maps.DeleteFunc(names, func(name types.NamespacedName, _ struct{}) bool {
		_, whole := namespaces[name.Namespace]
		return whole
	})
	change = Change{
		Names: slices.SortedFunc(maps.Keys(names), func(a, b types.NamespacedName) int {
			return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
		}),
		Namespaces: slices.Sorted(maps.Keys(namespaces)),
	}
	return change, len(names)+len(namespaces) > 0
}

// sameMatch tells whether two claims, or none, make for the same answer.
func sameMatch(a, b *claim) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.relation == b.relation && a.primary == b.primary && a.query.PrimaryInfo.Equal(b.query.PrimaryInfo)
}
