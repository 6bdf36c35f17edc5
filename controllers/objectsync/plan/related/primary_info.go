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

// PrimaryInfo is what travels with an answer: what the copies' names and reports depend on besides the original.
type PrimaryInfo struct {
	// DestinationNamespace is the primary's namespace on the side of the copies.
	DestinationNamespace string
	// Configs are those that select the primary, and Suspended is true if all of them are suspended.
	Configs   []string
	Suspended bool
	// Object is the primary, where the names of copies are made of it (see [Relation.NamingUsesPrimary]). It must not be
	// changed.
	Object map[string]any
}

// Equal tells whether two say the same.
func (a PrimaryInfo) Equal(other PrimaryInfo) bool {
	return a.DestinationNamespace == other.DestinationNamespace && a.Suspended == other.Suspended && slices.Equal(a.Configs, other.Configs) && reflect.DeepEqual(a.Object, other.Object)
}

// NamingUsesPrimary tells whether the names of copies depend on the primary.
func (r *Relation) NamingUsesPrimary() bool { return r.Naming.Uses("Primary") }

// SelectsNamespaces tells whether it hangs on the labels of namespaces which objects are related.
func (r *Relation) SelectsNamespaces() bool {
	return r.namespaceFinder != nil && r.namespaceFinder.selector != nil
}
