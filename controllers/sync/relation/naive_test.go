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

package relation_test

import (
	"cmp"
	"slices"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	synchubv1alpha1 "github.com/synchub-dev/synchub/apis/synchub/v1alpha1"
	"github.com/synchub-dev/synchub/controllers/sync/relation"
)

// naive is a register that goes through all it was ever told.
type naive struct {
	contributors map[string]*spoken
	words        []said
}

// spoken is what is known of a contributor.
type spoken struct {
	relations []*relation.Relation
	// abouts are what it has spoken of since it was complete.
	abouts   []about
	round    int
	complete bool
}

// said is what a primary has said, or that it failed after it.
type said struct {
	contributor string
	primary     types.NamespacedName
	about       about
	identifier  string
	round       int
	failed      bool
	// relation is nil if nothing is known of what it wants.
	relation *relation.Relation
	wanted   relation.Wanted
}

type about struct {
	side     synchubv1alpha1.RelatedOrigin
	resource schema.GroupResource
}

func aboutOf(of *relation.Relation) about {
	return about{of.Origin, of.Original().GroupResource()}
}

func aboutsOf(relations []*relation.Relation) []about {
	var abouts []about
	for _, each := range relations {
		abouts = append(abouts, aboutOf(each))
	}
	return abouts
}

func (n *naive) begin(name string, relations []*relation.Relation) {
	starting := &spoken{relations: relations, round: 1}
	if former := n.contributors[name]; former != nil {
		starting.abouts, starting.round = former.abouts, former.round+1
	}
	starting.abouts = slices.Concat(starting.abouts, aboutsOf(relations))
	n.contributors[name] = starting
}

// hears tells whether a contributor may speak about a relation.
func (n *naive) hears(name string, of *relation.Relation) bool {
	speaker := n.contributors[name]
	return speaker != nil && slices.Contains(speaker.relations, of)
}

// take removes and returns what was said about the same.
func (n *naive) take(name string, primary types.NamespacedName, of *relation.Relation) said {
	former := said{contributor: name, primary: primary, about: aboutOf(of), identifier: of.Identifier}
	n.words = slices.DeleteFunc(n.words, func(word said) bool {
		same := word.contributor == name && word.primary == primary && word.about == former.about && word.identifier == of.Identifier
		if same {
			former = word
		}
		return same
	})
	former.round = n.contributors[name].round
	return former
}

func (n *naive) set(name string, primary types.NamespacedName, of *relation.Relation, wanted relation.Wanted) {
	if n.hears(name, of) {
		word := n.take(name, primary, of)
		word.failed, word.relation, word.wanted = false, of, wanted
		n.words = append(n.words, word)
	}
}

func (n *naive) fail(name string, primary types.NamespacedName, of *relation.Relation) {
	if n.hears(name, of) {
		word := n.take(name, primary, of)
		word.failed = true
		n.words = append(n.words, word)
	}
}

func (n *naive) remove(name string, primary types.NamespacedName) {
	if speaker := n.contributors[name]; speaker != nil {
		n.words = slices.DeleteFunc(n.words, func(word said) bool { return word.contributor == name && word.primary == primary })
	}
}

func (n *naive) complete(name string) {
	if speaker := n.contributors[name]; speaker != nil {
		speaker.complete, speaker.abouts = true, aboutsOf(speaker.relations)
		n.words = slices.DeleteFunc(n.words, func(word said) bool { return word.contributor == name && word.round != speaker.round })
	}
}

func (n *naive) end(name string) {
	delete(n.contributors, name)
	n.words = slices.DeleteFunc(n.words, func(word said) bool { return word.contributor == name })
}

func (n *naive) settled(of about) bool {
	for _, speaker := range n.contributors {
		if !speaker.complete && slices.Contains(speaker.abouts, of) {
			return false
		}
	}
	return !slices.ContainsFunc(n.words, func(word said) bool { return word.about == of && word.failed })
}

// related returns the word that counts for a candidate, or nil. open is true if a word hangs on what is not known.
func (n *naive) related(of about, candidate relation.Candidate) (first *said, open bool) {
	for index, word := range n.words {
		if word.about != of || word.relation == nil {
			continue
		}
		is, unknown := wants(word.wanted, candidate)
		open = open || unknown
		if is && (first == nil || before(word, *first)) {
			first = &n.words[index]
		}
	}
	return first, open
}

func before(a, b said) bool {
	return cmp.Or(
		a.relation.Created.Compare(b.relation.Created),
		cmp.Compare(a.contributor, b.contributor),
		cmp.Compare(a.primary.Namespace, b.primary.Namespace),
		cmp.Compare(a.primary.Name, b.primary.Name),
		cmp.Compare(a.identifier, b.identifier),
	) < 0
}

// wants says of one object whether a primary wants it, in so many words.
func wants(wanted relation.Wanted, candidate relation.Candidate) (is, open bool) {
	key, none := candidate.Key, candidate.Key.Namespace == ""
	if !none && key.Namespace != wanted.Home && !candidate.Selected {
		return false, false
	}
	if slices.ContainsFunc(wanted.Names, func(name types.NamespacedName) bool {
		return name.Name == key.Name && (none || name.Namespace == key.Namespace)
	}) {
		return true, false
	}
	selected, unknown := isSelected(wanted.NamespaceSelector, candidate)
	listed := slices.ContainsFunc(wanted.Namespaces, func(namespace string) bool { return none || namespace == key.Namespace })
	found := isFound(wanted, candidate)
	spread := slices.Contains(wanted.SpreadNames, key.Name)
	return spread && selected || found && (listed || selected), (spread || found) && unknown
}

// isSelected tells whether a selector of namespaces selects that of a candidate.
func isSelected(selector labels.Selector, candidate relation.Candidate) (is, unknown bool) {
	if selector == nil || selectsNothing(selector) {
		return false, false
	}
	if candidate.Key.Namespace == "" || selector.Empty() {
		return true, false
	}
	namespaceLabels, known := candidate.NamespaceLabels()
	return known && selector.Matches(labels.Set(namespaceLabels)), !known
}

// isFound tells whether a candidate has the labels or the owner.
func isFound(wanted relation.Wanted, candidate relation.Candidate) bool {
	for _, owner := range candidate.Owners {
		if owner.UID == wanted.Owner && (!wanted.ControllerOnly || owner.Controller != nil && *owner.Controller) {
			return true
		}
	}
	return wanted.Selector != nil && wanted.Selector.Matches(labels.Set(candidate.Labels))
}

func selectsNothing(selector labels.Selector) bool {
	_, selectable := selector.Requirements()
	return !selectable
}
