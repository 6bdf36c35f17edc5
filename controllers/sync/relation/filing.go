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
	"iter"
	"slices"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/apimachinery/pkg/types"
)

// filing is where a claim is found in a book, and what must be true besides of an object that is looked up there.
type filing struct {
	drawer drawer
	test   test
}

// drawer is what an object is looked up by: something it has, and a place.
type drawer struct {
	trait trait
	place place
}

// trait is a name, a label or an owner. It is an object's own, so a look-up goes to few drawers.
type trait struct {
	sort       sort
	key, value string
}

type sort int

const (
	byName sort = iota
	// byLabel is a label that the claim's selector asks for, or none if there is no such label.
	byLabel
	byOwner
)

// place is where a claim reaches.
type place struct {
	reach     reach
	namespace string
}

type reach int

const (
	// home: the primary's own namespace.
	home reach = iota
	// named: another namespace, which the claim names.
	named
	// anywhere: all namespaces that the claim's selector selects.
	anywhere
	// nowhere: what is in no namespace. Every claim is filed there too.
	nowhere
)

// test is what must be true besides, as text, so that equal claims share a group.
type test struct {
	namespaces, labels string
	controllerOnly     bool
}

// filings yields all filings of what is wanted. Some may come twice.
func (w Wanted) filings() iter.Seq[filing] {
	return func(yield func(filing) bool) {
		for _, name := range w.Names {
			if !w.at(trait{sort: byName, value: name.Name}, test{}, name.Namespace, yield) {
				return
			}
		}
		for _, name := range w.SpreadNames {
			if !w.around(trait{sort: byName, value: name}, test{}, yield) {
				return
			}
		}
		for trait, test := range w.searched() {
			for _, namespace := range w.Namespaces {
				if !w.at(trait, test, namespace, yield) {
					return
				}
			}
			if !w.around(trait, test, yield) {
				return
			}
		}
	}
}

// searched yields what is looked for in whole namespaces.
func (w Wanted) searched() iter.Seq2[trait, test] {
	return func(yield func(trait, test) bool) {
		if selects(w.Selector) && !yield(anchor(w.Selector), test{labels: textOf(w.Selector)}) {
			return
		}
		if w.Owner != "" {
			yield(trait{sort: byOwner, value: string(w.Owner)}, test{controllerOnly: w.ControllerOnly})
		}
	}
}

// at yields the filings of what is wanted in one namespace.
func (w Wanted) at(trait trait, test test, namespace string, yield func(filing) bool) bool {
	reach := named
	if namespace == w.Home {
		reach = home
	}
	return yield(filing{drawer{trait, place{reach, namespace}}, test}) &&
		yield(filing{drawer{trait, place{reach: nowhere}}, test})
}

// around yields the filings of what is wanted in the namespaces that are selected.
func (w Wanted) around(trait trait, test test, yield func(filing) bool) bool {
	if !selects(w.NamespaceSelector) {
		return true
	}
	test.namespaces = textOf(w.NamespaceSelector)
	return yield(filing{drawer{trait, place{reach: anywhere}}, test}) &&
		(w.Home == "" || yield(filing{drawer{trait, place{home, w.Home}}, test})) &&
		yield(filing{drawer{trait, place{reach: nowhere}}, test})
}

// demanding are the operators by which an object must have one of the values.
var demanding = []selection.Operator{selection.Equals, selection.DoubleEquals, selection.In}

// anchor returns a label that every object has which the selector selects, or the trait without key if there is none.
func anchor(selector labels.Selector) trait {
	requirements, _ := selector.Requirements()
	for _, requirement := range requirements {
		values := requirement.ValuesUnsorted()
		if slices.Contains(demanding, requirement.Operator()) && len(values) == 1 {
			return trait{byLabel, requirement.Key(), values[0]}
		}
	}
	return trait{sort: byLabel}
}

// drawers yields all drawers with claims that the candidate may meet.
func (c Candidate) drawers() iter.Seq[drawer] {
	return func(yield func(drawer) bool) {
		for _, place := range c.places() {
			for trait := range c.traits() {
				if !yield(drawer{trait, place}) {
					return
				}
			}
		}
	}
}

func (c Candidate) places() []place {
	switch {
	case c.Key.Namespace == "":
		return []place{{reach: nowhere}}
	case c.Selected:
		return []place{{home, c.Key.Namespace}, {named, c.Key.Namespace}, {reach: anywhere}}
	default:
		return []place{{home, c.Key.Namespace}}
	}
}

func (c Candidate) traits() iter.Seq[trait] {
	return func(yield func(trait) bool) {
		if !yield(trait{sort: byName, value: c.Key.Name}) || !yield(trait{sort: byLabel}) {
			return
		}
		for key, value := range c.Labels {
			if !yield(trait{byLabel, key, value}) {
				return
			}
		}
		for _, owner := range c.Owners {
			if !yield(trait{sort: byOwner, value: string(owner.UID)}) {
				return
			}
		}
	}
}

// view is a candidate whose namespace's labels may have been looked up.
type view struct {
	Candidate
	namespaceLabels labels.Set
	known           bool
}

// meets tells whether the candidate is what a claim asks for that was found by a filing. It is open if that hangs on labels
// of the namespace that are not known.
func (v view) meets(filed filing, wanted Wanted) (met, open bool) {
	switch {
	case filed.drawer.trait.sort == byLabel && !wanted.Selector.Matches(labels.Set(v.Labels)),
		filed.test.controllerOnly && !v.isControlledBy(wanted.Owner):
		return false, false
	case filed.test.namespaces == "" || v.Key.Namespace == "" || wanted.NamespaceSelector.Empty():
		return true, false
	case !v.known:
		return false, true
	default:
		return wanted.NamespaceSelector.Matches(v.namespaceLabels), false
	}
}

func (c Candidate) isControlledBy(uid types.UID) bool {
	for _, owner := range c.Owners {
		if owner.UID == uid && owner.Controller != nil && *owner.Controller {
			return true
		}
	}
	return false
}
