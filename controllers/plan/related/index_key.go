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
	"iter"
	"slices"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/apimachinery/pkg/types"
)

// indexKey is the position of a claim in a bucket, and the further constraints that a matching object must meet.
type indexKey struct {
	lookup      lookupKey
	constraints matchConstraints
}

// lookupKey is a key to look up an object: one of its attributes, and a scope.
type lookupKey struct {
	attribute attribute
	scope     namespaceScope
}

// attribute is a name, a label or an owner. An object has few of them, so a look-up visits few groups.
type attribute struct {
	kind       attributeKind
	key, value string
}

type attributeKind int

const (
	byName attributeKind = iota
	// byLabel is a label that the claim's selector requires, or empty if it requires none.
	byLabel
	byOwner
)

// namespaceScope is the set of namespaces that a claim covers.
type namespaceScope struct {
	kind      scopeKind
	namespace string
}

type scopeKind int

const (
	// primaryNamespace: the primary's own namespace.
	primaryNamespace scopeKind = iota
	// namedNamespace: another namespace, which the claim names.
	namedNamespace
	// selectedNamespaces: all namespaces that the claim's selector selects.
	selectedNamespaces
	// clusterScope: cluster-scoped objects. Every claim has a key of this scope too.
	clusterScope
)

// matchConstraints are the further constraints as text, so that equal claims share a group.
type matchConstraints struct {
	namespaces, labels string
	controllerOnly     bool
}

// indexKeys yields all keys under which a query is indexed. A key may come twice.
func (w Query) indexKeys() iter.Seq[indexKey] {
	return func(yield func(indexKey) bool) {
		for _, name := range w.Names {
			if !w.keysInNamespace(attribute{kind: byName, value: name.Name}, matchConstraints{}, name.Namespace, yield) {
				return
			}
		}
		for _, name := range w.NamesInSelectedNamespaces {
			if !w.keysInSelectedNamespaces(attribute{kind: byName, value: name}, matchConstraints{}, yield) {
				return
			}
		}
		for trait, test := range w.namespaceSearches() {
			for _, namespace := range w.Namespaces {
				if !w.keysInNamespace(trait, test, namespace, yield) {
					return
				}
			}
			if !w.keysInSelectedNamespaces(trait, test, yield) {
				return
			}
		}
	}
}

// namespaceSearches yields the parts of a query that search whole namespaces.
func (w Query) namespaceSearches() iter.Seq2[attribute, matchConstraints] {
	return func(yield func(attribute, matchConstraints) bool) {
		if canSelect(w.Selector) && !yield(requiredLabel(w.Selector), matchConstraints{labels: selectorKey(w.Selector)}) {
			return
		}
		if w.Owner != "" {
			yield(attribute{kind: byOwner, value: string(w.Owner)}, matchConstraints{controllerOnly: w.ControllerOnly})
		}
	}
}

// keysInNamespace yields the keys of a query for one namespace.
func (w Query) keysInNamespace(trait attribute, test matchConstraints, namespace string, yield func(indexKey) bool) bool {
	reach := namedNamespace
	if namespace == w.SourceNamespace {
		reach = primaryNamespace
	}
	return yield(indexKey{lookupKey{trait, namespaceScope{reach, namespace}}, test}) &&
		yield(indexKey{lookupKey{trait, namespaceScope{kind: clusterScope}}, test})
}

// keysInSelectedNamespaces yields the keys of a query for the namespaces that its selector selects.
func (w Query) keysInSelectedNamespaces(trait attribute, test matchConstraints, yield func(indexKey) bool) bool {
	if !canSelect(w.NamespaceSelector) {
		return true
	}
	test.namespaces = selectorKey(w.NamespaceSelector)
	return yield(indexKey{lookupKey{trait, namespaceScope{kind: selectedNamespaces}}, test}) &&
		(w.SourceNamespace == "" || yield(indexKey{lookupKey{trait, namespaceScope{primaryNamespace, w.SourceNamespace}}, test})) &&
		yield(indexKey{lookupKey{trait, namespaceScope{kind: clusterScope}}, test})
}

// equalityOperators are the operators that require one of the values.
var equalityOperators = []selection.Operator{selection.Equals, selection.DoubleEquals, selection.In}

// requiredLabel returns a label that all selected objects have, or an attribute without a key if there is none.
func requiredLabel(selector labels.Selector) attribute {
	requirements, _ := selector.Requirements()
	for _, requirement := range requirements {
		values := requirement.ValuesUnsorted()
		if slices.Contains(equalityOperators, requirement.Operator()) && len(values) == 1 {
			return attribute{byLabel, requirement.Key(), values[0]}
		}
	}
	return attribute{kind: byLabel}
}

// lookupKeys yields all keys under which claims on the object may be indexed.
func (c Object) lookupKeys() iter.Seq[lookupKey] {
	return func(yield func(lookupKey) bool) {
		for _, place := range c.scopes() {
			for trait := range c.attributes() {
				if !yield(lookupKey{trait, place}) {
					return
				}
			}
		}
	}
}

func (c Object) scopes() []namespaceScope {
	switch {
	case c.Key.Namespace == "":
		return []namespaceScope{{kind: clusterScope}}
	case c.NamespaceSelected:
		return []namespaceScope{{primaryNamespace, c.Key.Namespace}, {namedNamespace, c.Key.Namespace}, {kind: selectedNamespaces}}
	default:
		return []namespaceScope{{primaryNamespace, c.Key.Namespace}}
	}
}

func (c Object) attributes() iter.Seq[attribute] {
	return func(yield func(attribute) bool) {
		if !yield(attribute{kind: byName, value: c.Key.Name}) || !yield(attribute{kind: byLabel}) {
			return
		}
		for key, value := range c.Labels {
			if !yield(attribute{byLabel, key, value}) {
				return
			}
		}
		for _, owner := range c.OwnerReferences {
			if !yield(attribute{kind: byOwner, value: string(owner.UID)}) {
				return
			}
		}
	}
}

// objectView is an object with the labels of its namespace, once they were looked up.
type objectView struct {
	Object
	namespaceLabels labels.Set
	labelsKnown     bool
}

// matches reports whether the object meets a query that was found by an index key. open is true if that depends on labels of the
// namespace that are not known.
func (v objectView) matches(key indexKey, query Query) (met, open bool) {
	switch {
	case key.lookup.attribute.kind == byLabel && !query.Selector.Matches(labels.Set(v.Labels)),
		key.constraints.controllerOnly && !v.isControlledBy(query.Owner):
		return false, false
	case key.constraints.namespaces == "" || v.Key.Namespace == "" || query.NamespaceSelector.Empty():
		return true, false
	case !v.labelsKnown:
		return false, true
	default:
		return query.NamespaceSelector.Matches(v.namespaceLabels), false
	}
}

func (c Object) isControlledBy(uid types.UID) bool {
	for _, owner := range c.OwnerReferences {
		if owner.UID == uid && owner.Controller != nil && *owner.Controller {
			return true
		}
	}
	return false
}
