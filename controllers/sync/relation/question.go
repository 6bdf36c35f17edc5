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
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	synchubv1alpha1 "github.com/synchub-dev/synchub/apis/synchub/v1alpha1"
)

// Candidate is an object of which is asked whether it is related. A side and a resource that go with it always are those
// of the originals.
type Candidate struct {
	Key    types.NamespacedName
	Labels map[string]string
	Owners []metav1.OwnerReference

	// Selected says that a SyncerConfig of the mailbox selects the candidate's namespace. Without, only primaries of that
	// same namespace can be related to it. It says nothing about what is in no namespace.
	Selected bool
	// NamespaceLabels returns the labels of the candidate's namespace, if they are known. It is called at most once, and
	// only where the answer hangs on them, without a lock held. Absent means that they are not known. Where they are not,
	// the namespace counts as not selected by its labels, but [Register.Unrelated] is not sure of that.
	NamespaceLabels func() (labels map[string]string, known bool)
}

// Answer says by which relation an object is related, and to which primary of which contributor.
type Answer struct {
	Relation    *Relation
	Contributor string
	Primary     types.NamespacedName
	// Wanted is what that primary wants.
	Wanted Wanted
}

// Find returns by which relation a candidate is related. Of several the oldest contributor counts, then the first contributor
// and the first primary by name: the choice stays when the hub starts again. That it is not related may mean that nobody has
// said so yet: only [Register.Unrelated] tells.
func (g *Register) Find(side synchubv1alpha1.RelatedOrigin, resource schema.GroupResource, candidate Candidate) (Answer, bool) {
	found := g.ask(title{side, resource}, candidate).claim
	if found == nil {
		return Answer{}, false
	}
	return Answer{Relation: found.relation, Contributor: found.contributor, Primary: found.primary, Wanted: found.wanted}, true
}

// Wants tells whether a primary of one contributor is known to want a candidate, whoever else does.
func (g *Register) Wants(contributor string, side synchubv1alpha1.RelatedOrigin, resource schema.GroupResource, candidate Candidate) bool {
	seen := view{Candidate: candidate}
	if candidate.NamespaceLabels != nil {
		seen.namespaceLabels, seen.known = candidate.NamespaceLabels()
	}
	g.lock.RLock()
	defer g.lock.RUnlock()
	book := g.books[title{side, resource}]
	if book == nil {
		return false
	}
	for filed, first := range book.candidates(candidate) {
		met, _ := seen.meets(filed, first.wanted)
		if met && slices.ContainsFunc(book.drawers[filed.drawer][filed.test].claims, func(claim *claim) bool { return claim.contributor == contributor }) {
			return true
		}
	}
	return false
}

// Unrelated tells whether it is sure that no primary wants a candidate, so that a copy of it can go. Find and Settled
// cannot tell that together, because the register may change between one question and the other.
func (g *Register) Unrelated(side synchubv1alpha1.RelatedOrigin, resource schema.GroupResource, candidate Candidate) bool {
	answer := g.ask(title{side, resource}, candidate)
	return answer.claim == nil && answer.settled && !answer.open
}

// HasSuspended tells whether any primary of a contributor whose copies are to be left as they are wants something by a
// relation.
func (g *Register) HasSuspended(contributor, identifier string) bool {
	g.lock.RLock()
	defer g.lock.RUnlock()
	speaker := g.contributors[contributor]
	if speaker == nil {
		return false
	}
	for _, words := range speaker.words {
		for at, said := range words {
			if at.identifier == identifier && said.claim != nil && said.claim.wanted.About.Suspended {
				return true
			}
		}
	}
	return false
}

// Settled tells whether absence of a relation means something: all contributors that speak of the resource are complete,
// and none of their primaries failed.
func (g *Register) Settled(side synchubv1alpha1.RelatedOrigin, resource schema.GroupResource) bool {
	g.lock.RLock()
	defer g.lock.RUnlock()
	book := g.books[title{side, resource}]
	return book == nil || book.settled()
}

// Wanted returns where originals can be, in no order: under names, in namespaces that are looked through, or anywhere. The
// lists need not be whole: one that is longer than 8 stands for more. When there are more than 8 names, their namespaces are
// among the namespaces. For an API that is in no namespace, a name counts without its namespace, and any namespace stands
// for all objects.
func (g *Register) Wanted(side synchubv1alpha1.RelatedOrigin, resource schema.GroupResource) (names []types.NamespacedName, namespaces []string, all bool) {
	g.lock.RLock()
	defer g.lock.RUnlock()
	book := g.books[title{side, resource}]
	if book == nil {
		return nil, nil, false
	}
	return book.places.list()
}

// answer is what a book says of a candidate.
type answer struct {
	// claim is the one that counts, or nil.
	claim   *claim
	settled bool
	// open is true if a claim hangs on labels of the namespace that are not known.
	open bool
}

func (g *Register) ask(of title, candidate Candidate) answer {
	seen := view{Candidate: candidate}
	first := g.look(of, seen)
	if !first.open || candidate.NamespaceLabels == nil {
		return first
	}
	// The caller's function may need locks of its own, so it is called without ours. Then all is asked again, because only
	// an answer from one look is true of some moment.
	seen.namespaceLabels, seen.known = candidate.NamespaceLabels()
	return g.look(of, seen)
}

func (g *Register) look(of title, seen view) answer {
	g.lock.RLock()
	defer g.lock.RUnlock()
	book := g.books[of]
	if book == nil {
		return answer{settled: true}
	}
	result := answer{settled: book.settled()}
	for filed, first := range book.candidates(seen.Candidate) {
		met, open := seen.meets(filed, first.wanted)
		result.open = result.open || open
		if met && (result.claim == nil || inOrder(first, result.claim) < 0) {
			result.claim = first
		}
	}
	return result
}
