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
	"slices"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
)

// Query says which objects one primary wants, on the side where the originals are: those that have one of the names, are
// selected by their labels, or have the owner. Lists are sorted. It is not changed once it is made. The zero Wanted is
// nothing.
//
// Objects that are in no namespace are wanted by their name, labels or owner alone, whatever is said about namespaces,
// because neither the primary nor its PublishedResource need know how the API is scoped.
type Query struct {
	// SourceNamespace is the primary's namespace on that side. Elsewhere only objects in namespaces that the mailbox's SyncerConfigs
	// select are related, see [Object].
	SourceNamespace string

	// PrimaryInfo is said besides; it does not change what is wanted.
	PrimaryInfo PrimaryInfo

	// Names are the names of objects.
	Names []types.NamespacedName
	// NamesInSelectedNamespaces are names that count in every namespace that NamespaceSelector selects.
	NamesInSelectedNamespaces []string
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
func (w Query) Equal(other Query) bool {
	if w.IsEmpty() && other.IsEmpty() {
		return true
	}
	return w.SourceNamespace == other.SourceNamespace && w.PrimaryInfo.Equal(other.PrimaryInfo) &&
		slices.Equal(w.Names, other.Names) &&
		slices.Equal(w.NamesInSelectedNamespaces, other.NamesInSelectedNamespaces) &&
		selectorKey(w.Selector) == selectorKey(other.Selector) &&
		w.Owner == other.Owner && w.ControllerOnly == other.ControllerOnly &&
		slices.Equal(w.Namespaces, other.Namespaces) &&
		selectorKey(w.NamespaceSelector) == selectorKey(other.NamespaceSelector)
}

// IsEmpty tells whether nothing is wanted, whatever there is.
func (w Query) IsEmpty() bool {
	return len(w.Names) == 0 && !w.usesNamespaceSelector() && (!w.searchesNamespaces() || len(w.Namespaces) == 0)
}

// searchesNamespaces tells whether whole namespaces are looked through.
func (w Query) searchesNamespaces() bool { return canSelect(w.Selector) || w.Owner != "" }

// usesNamespaceSelector tells whether what is wanted can be in namespaces that are not named.
func (w Query) usesNamespaceSelector() bool {
	return canSelect(w.NamespaceSelector) && (len(w.NamesInSelectedNamespaces) > 0 || w.searchesNamespaces())
}

// canSelect tells whether a selector can select something.
func canSelect(selector labels.Selector) bool {
	if selector == nil {
		return false
	}
	_, selectable := selector.Requirements()
	return selectable
}

// selectorKey is equal for selectors that say the same. The text of a selector itself does not tell all from nothing.
func selectorKey(selector labels.Selector) string {
	if !canSelect(selector) {
		return ""
	}
	return "=" + selector.String()
}
