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
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	synchubv1alpha1 "github.com/synchub-dev/synchub/apis/synchub/v1alpha1"
)

// Register knows, for one SyncTarget, which objects are related to which primaries. It is safe for concurrent use.
//
// A contributor is a PublishedResource, by its name. It begins with its relations, says for each of its primaries and each
// relation what is wanted, and is complete when it has said so for all there are. Every contributor must have begun before
// the first question is asked, because the register cannot miss one that it never heard of. What a contributor says about
// a relation that it did not begin with is a late word of its former self, and not heard.
type Register struct {
	lock         sync.RWMutex
	contributors map[string]*contributor
	books        map[title]*book
}

// title is what a book is about: one API on the side where the originals are.
type title struct {
	side     synchubv1alpha1.RelatedOrigin
	resource schema.GroupResource
}

// contributor is what one PublishedResource has said.
type contributor struct {
	name string
	// relations are those it began with.
	relations map[*Relation]struct{}
	// round counts how often it has begun.
	round int
	// books are those that it has said something in, or may.
	books map[*book]struct{}
	words map[types.NamespacedName]map[topic]*word
}

// topic is what a primary can say one thing about.
type topic struct {
	book       *book
	identifier string
}

// word is the last that a primary has said about a topic, and in which round.
type word struct {
	// claim is what it wants; nil if nothing is known of that.
	claim *claim
	round int
	// failed is true if what it wants now cannot be told.
	failed bool
}

// NewRegister returns an empty register.
func NewRegister() *Register {
	return &Register{contributors: map[string]*contributor{}, books: map[title]*book{}}
}

// Begin starts a contributor, or starts it again. What it said before stays in force until it is complete.
func (g *Register) Begin(name string, relations []*Relation) {
	g.edit(func(edit *edit) {
		starting := g.contributors[name]
		if starting == nil {
			starting = &contributor{name: name, books: map[*book]struct{}{}, words: map[types.NamespacedName]map[topic]*word{}}
			g.contributors[name] = starting
		}
		starting.round++
		starting.relations = map[*Relation]struct{}{}
		for _, relation := range relations {
			starting.relations[relation] = struct{}{}
			starting.books[g.book(titleOf(relation))] = struct{}{}
		}
		starting.open(edit)
	})
}

// Set says what a primary wants by a relation, instead of what it wanted before. The primary's name is that in the mailbox.
func (g *Register) Set(name string, primary types.NamespacedName, relation *Relation, wanted Wanted) {
	g.say(name, relation, func(edit *edit, speaker *contributor, at topic) {
		said := speaker.words[primary][at]
		if said == nil {
			if wanted.IsEmpty() {
				return
			}
			said = &word{}
			speaker.put(primary, at, said)
		}
		said.round = speaker.round
		edit.fail(at.book, said, false)
		if claim := said.claim; claim != nil && claim.relation == relation && claim.wanted.Equal(wanted) {
			return
		}
		edit.withdraw(at.book, said)
		if wanted.IsEmpty() {
			speaker.forget(primary, at)
			return
		}
		edit.claim(at.book, said, &claim{contributor: name, primary: primary, relation: relation, wanted: wanted})
	})
}

// Fail says that what a primary wants by a relation cannot be told now. What it said before stays in force, and until it
// says more nothing can be concluded from absence.
func (g *Register) Fail(name string, primary types.NamespacedName, relation *Relation) {
	g.say(name, relation, func(edit *edit, speaker *contributor, at topic) {
		said := speaker.words[primary][at]
		if said == nil {
			said = &word{}
			speaker.put(primary, at, said)
		}
		said.round = speaker.round
		edit.fail(at.book, said, true)
	})
}

// say lets a contributor that has not ended speak about one of its relations.
func (g *Register) say(name string, relation *Relation, do func(edit *edit, speaker *contributor, at topic)) {
	g.edit(func(edit *edit) {
		speaker := g.contributors[name]
		if speaker == nil {
			return
		}
		if _, ok := speaker.relations[relation]; ok {
			do(edit, speaker, topic{g.book(titleOf(relation)), relation.Identifier})
		}
	})
}

// Remove says that a primary is gone: it wants nothing any more.
func (g *Register) Remove(name string, primary types.NamespacedName) {
	g.edit(func(edit *edit) {
		if speaker := g.contributors[name]; speaker != nil {
			for at := range speaker.words[primary] {
				edit.drop(speaker, primary, at)
			}
		}
	})
}

// Complete says that every primary there is has spoken since Begin, about each relation: what was not said again is dropped.
func (g *Register) Complete(name string) {
	g.edit(func(edit *edit) {
		speaker := g.contributors[name]
		if speaker == nil {
			return
		}
		speaker.close(edit)
		for primary, words := range speaker.words {
			for at, said := range words {
				if said.round != speaker.round {
					edit.drop(speaker, primary, at)
				}
			}
		}
		speaker.books = map[*book]struct{}{}
		for relation := range speaker.relations {
			speaker.books[g.book(titleOf(relation))] = struct{}{}
		}
	})
}

// End says that a contributor is gone: what it said is dropped.
func (g *Register) End(name string) {
	g.edit(func(edit *edit) {
		ending := g.contributors[name]
		if ending == nil {
			return
		}
		ending.close(edit)
		for primary, words := range ending.words {
			for at := range words {
				edit.drop(ending, primary, at)
			}
		}
		delete(g.contributors, name)
	})
}

// open marks all that the contributor speaks about as not fully known.
func (c *contributor) open(edit *edit) {
	for book := range c.books {
		edit.touch(book)
		book.open[c.name] = struct{}{}
	}
}

// close takes that mark off.
func (c *contributor) close(edit *edit) {
	for book := range c.books {
		edit.touch(book)
		delete(book.open, c.name)
	}
}

func (c *contributor) put(primary types.NamespacedName, at topic, said *word) {
	words := c.words[primary]
	if words == nil {
		words = map[topic]*word{}
		c.words[primary] = words
	}
	words[at] = said
}

func (c *contributor) forget(primary types.NamespacedName, at topic) {
	delete(c.words[primary], at)
	if len(c.words[primary]) == 0 {
		delete(c.words, primary)
	}
}

// book returns the book about an API.
func (g *Register) book(of title) *book {
	found := g.books[of]
	if found == nil {
		found = newBook(of)
		g.books[of] = found
	}
	return found
}

func titleOf(relation *Relation) title {
	return title{relation.Origin, relation.Original().GroupResource()}
}
