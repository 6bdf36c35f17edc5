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
)

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

// NamingUsesPrimary reports whether the names of copies depend on the primary.
func (r *Relation) NamingUsesPrimary() bool { return r.Naming.Uses("Primary") }

// SelectsNamespaces reports whether the labels of namespaces decide which objects are related.
func (r *Relation) SelectsNamespaces() bool {
	return r.namespaceFinder != nil && r.namespaceFinder.selector != nil
}
