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

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
)

// Wanted says which objects one primary wants, on the side where the originals are: those that have one of the names, are
// selected by their labels, or have the owner. Lists are sorted. It is not changed once it is made. The zero Wanted is
// nothing.
//
// Objects that are in no namespace are wanted by their name, labels or owner alone, whatever is said about namespaces,
// because neither the primary nor its PublishedResource need know how the API is scoped.
type Wanted struct {
	// Home is the primary's namespace on that side. Elsewhere only objects in namespaces that the mailbox's SyncerConfigs
	// select are related, see [Candidate].
	Home string

	// About is said besides; it does not change what is wanted.
	About About

	// Names are the names of objects.
	Names []types.NamespacedName
	// SpreadNames are names that count in every namespace that NamespaceSelector selects.
	SpreadNames []string
	// Selector selects objects by their labels, in Namespaces and those that NamespaceSelector selects.
	Selector labels.Selector
	// Owner is the UID of an owner of objects, in Namespaces and those that NamespaceSelector selects.
	Owner types.UID
	// ControllerOnly counts the owner only where it is the controller.
	ControllerOnly bool

	// Namespaces are the namespaces where Selector and Owner look.
	Namespaces []string
	// NamespaceSelector selects more namespaces by their labels. One without requirements selects all.
	NamespaceSelector labels.Selector
}

// Equal tells whether two primaries want the same.
func (w Wanted) Equal(other Wanted) bool {
	if w.IsEmpty() && other.IsEmpty() {
		return true
	}
	return w.Home == other.Home && w.About.Equal(other.About) &&
		slices.Equal(w.Names, other.Names) &&
		slices.Equal(w.SpreadNames, other.SpreadNames) &&
		textOf(w.Selector) == textOf(other.Selector) &&
		w.Owner == other.Owner && w.ControllerOnly == other.ControllerOnly &&
		slices.Equal(w.Namespaces, other.Namespaces) &&
		textOf(w.NamespaceSelector) == textOf(other.NamespaceSelector)
}

// IsEmpty tells whether nothing is wanted, whatever there is.
func (w Wanted) IsEmpty() bool {
	return len(w.Names) == 0 && !w.anywhere() && (!w.searches() || len(w.Namespaces) == 0)
}

// searches tells whether whole namespaces are looked through.
func (w Wanted) searches() bool { return selects(w.Selector) || w.Owner != "" }

// anywhere tells whether what is wanted can be in namespaces that are not named.
func (w Wanted) anywhere() bool {
	return selects(w.NamespaceSelector) && (len(w.SpreadNames) > 0 || w.searches())
}

// selects tells whether a selector can select something.
func selects(selector labels.Selector) bool {
	if selector == nil {
		return false
	}
	_, selectable := selector.Requirements()
	return selectable
}

// textOf is equal for selectors that say the same. The text of a selector itself does not tell all from nothing.
func textOf(selector labels.Selector) string {
	if !selects(selector) {
		return ""
	}
	return "=" + selector.String()
}
