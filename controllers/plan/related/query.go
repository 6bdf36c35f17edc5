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
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
)

// Query selects the objects that one primary claims, on the side of the originals: objects with one of the names, with matching
// labels, or with the owner. Lists are sorted. A Query is immutable; the zero Query selects nothing.
//
// Cluster-scoped objects match by name, labels or owner alone, and the query's namespaces do not matter, because neither the
// primary nor its PublishedResource need know the scope of the API.
type Query struct {
	// SourceNamespace is the primary's namespace on that side. In other namespaces, the query matches only objects whose
	// namespace the mailbox's SyncerConfigs select, see [Object].
	SourceNamespace string

	// PrimaryInfo does not affect which objects match.
	PrimaryInfo PrimaryInfo

	// Names are the names of objects.
	Names []types.NamespacedName
	// NamesInSelectedNamespaces are names that count in every namespace that NamespaceSelector selects.
	NamesInSelectedNamespaces []string
	// Selector selects objects by their labels, in Namespaces and those that NamespaceSelector selects.
	Selector labels.Selector
	// Owner is the UID of an owner of objects, in Namespaces and those that NamespaceSelector selects.
	Owner types.UID
	// ControllerOnly counts the owner only if it is the controller.
	ControllerOnly bool

	// Namespaces are the namespaces that Selector and Owner search.
	Namespaces []string
	// NamespaceSelector selects more namespaces by their labels. A selector without requirements selects all.
	NamespaceSelector labels.Selector
}

// PrimaryInfo is a part of each result: the facts about the primary that the names and the status of copies depend on.
type PrimaryInfo struct {
	// DestinationNamespace is the primary's namespace on the side of the copies.
	DestinationNamespace string
	// Configs select the primary; Suspended is true if all of them are suspended.
	Configs   []string
	Suspended bool
	// Object is the primary if naming templates read it (see [Relation.NamingUsesPrimary]). Callers must not change it.
	Object map[string]any
}

// Equal reports whether two values are the same.
func (a PrimaryInfo) Equal(other PrimaryInfo) bool {
	return a.DestinationNamespace == other.DestinationNamespace && a.Suspended == other.Suspended && slices.Equal(a.Configs, other.Configs) && reflect.DeepEqual(a.Object, other.Object)
}

// Equal reports whether two queries match the same objects and have the same PrimaryInfo.
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

// IsEmpty reports whether the query can match no object at all.
func (w Query) IsEmpty() bool {
	return len(w.Names) == 0 && !w.usesNamespaceSelector() && (!w.searchesNamespaces() || len(w.Namespaces) == 0)
}

// searchesNamespaces reports whether the query searches whole namespaces.
func (w Query) searchesNamespaces() bool { return canSelect(w.Selector) || w.Owner != "" }

// usesNamespaceSelector reports whether matching objects can be in namespaces that the query does not name.
func (w Query) usesNamespaceSelector() bool {
	return canSelect(w.NamespaceSelector) && (len(w.NamesInSelectedNamespaces) > 0 || w.searchesNamespaces())
}

// canSelect reports whether a selector can select something.
func canSelect(selector labels.Selector) bool {
	if selector == nil {
		return false
	}
	_, selectable := selector.Requirements()
	return selectable
}

// selectorKey returns equal keys for equal selectors. The text of a selector does not distinguish "everything" from "nothing".
func selectorKey(selector labels.Selector) string {
	if !canSelect(selector) {
		return ""
	}
	return "=" + selector.String()
}
