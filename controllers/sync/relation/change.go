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

// Concerns tells whether an object of this name may have another answer. For what is in no namespace the names count without
// their namespaces.
func (c Change) Concerns(key types.NamespacedName) bool {
	if key.Namespace == "" {
		return c.All || len(c.Namespaces) > 0 ||
			slices.ContainsFunc(c.Names, func(name types.NamespacedName) bool { return name.Name == key.Name })
	}
	return c.All || slices.Contains(c.Namespaces, key.Namespace) || slices.Contains(c.Names, key)
}

// subscription is somebody who wants to know of changes.
type subscription struct {
	changed func(Change)
}

// Subscribe lets changed be called after each change of the answers about an API, on the goroutine that caused it and
// without a lock held: the register can be asked and told from there. Calls may overlap, and one that has begun is not
// waited for by unsubscribe.
func (g *Register) Subscribe(side synchubv1alpha1.RelatedOrigin, resource schema.GroupResource, changed func(Change)) (unsubscribe func()) {
	added := &subscription{changed}
	g.lock.Lock()
	defer g.lock.Unlock()
	book := g.book(title{side, resource})
	book.subscriptions[added] = struct{}{}
	return func() {
		g.lock.Lock()
		defer g.lock.Unlock()
		delete(book.subscriptions, added)
	}
}

// edit is one change of the register. It remembers what was true of all that it touches, so that only what is different in
// the end is announced.
type edit struct {
	settled map[*book]bool
	first   map[*book]map[filing]*claim
}

// edit makes a change under the lock and announces it afterwards.
func (g *Register) edit(do func(*edit)) {
	made := &edit{settled: map[*book]bool{}, first: map[*book]map[filing]*claim{}}
	for _, call := range g.locked(made, do) {
		call()
	}
}

// locked returns the announcements that are to be made.
func (g *Register) locked(made *edit, do func(*edit)) []func() {
	g.lock.Lock()
	defer g.lock.Unlock()
	do(made)
	var calls []func()
	for book := range made.settled {
		if len(book.subscriptions) == 0 {
			continue
		}
		change, ok := made.changeOf(book)
		if !ok {
			continue
		}
		for subscription := range book.subscriptions {
			calls = append(calls, func() { subscription.changed(change) })
		}
	}
	return calls
}

// touch remembers what is true of a book, before it is changed for the first time.
func (e *edit) touch(book *book) {
	if _, ok := e.settled[book]; !ok {
		e.settled[book] = book.settled()
		e.first[book] = map[filing]*claim{}
	}
}

// fail notes whether a word's primary failed.
func (e *edit) fail(book *book, said *word, failed bool) {
	e.touch(book)
	if failed && !said.failed {
		book.failed++
	} else if !failed && said.failed {
		book.failed--
	}
	said.failed = failed
}

// claim puts a claim into force that a word has not had yet.
func (e *edit) claim(book *book, said *word, made *claim) {
	e.touch(book)
	said.claim = made
	book.places.count(made.wanted, 1)
	for filed := range made.wanted.filings() {
		e.remember(book, filed)
		book.file(filed, made)
	}
}

// withdraw takes a word's claim back, if it has one.
func (e *edit) withdraw(book *book, said *word) {
	if said.claim == nil {
		return
	}
	e.touch(book)
	book.places.count(said.claim.wanted, -1)
	for filed := range said.claim.wanted.filings() {
		e.remember(book, filed)
		book.unfile(filed, said.claim)
	}
	said.claim = nil
}

// drop forgets what a primary said.
func (e *edit) drop(speaker *contributor, primary types.NamespacedName, at topic) {
	said := speaker.words[primary][at]
	e.fail(at.book, said, false)
	e.withdraw(at.book, said)
	speaker.forget(primary, at)
}

func (e *edit) remember(book *book, filed filing) {
	if _, ok := e.first[book][filed]; !ok {
		e.first[book][filed] = book.first(filed)
	}
}

// changeOf returns what is different in a book; ok is false if nothing is.
func (e *edit) changeOf(book *book) (change Change, ok bool) {
	if !e.settled[book] && book.settled() {
		return Change{All: true}, true
	}
	names, namespaces := map[types.NamespacedName]struct{}{}, map[string]struct{}{}
	for filed, before := range e.first[book] {
		if sameAnswer(before, book.first(filed)) {
			continue
		}
		switch place, trait := filed.drawer.place, filed.drawer.trait; {
		case place.reach == anywhere:
			return Change{All: true}, true
		case place.reach == nowhere:
			// What comes first among all that ask the same comes first where it is filed besides, too.
		case trait.sort == byName:
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

// sameAnswer tells whether two claims, or none, make for the same answer.
func sameAnswer(a, b *claim) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.relation == b.relation && a.primary == b.primary && a.wanted.About.Equal(b.wanted.About)
}
