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

package explain

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	synchubv1alpha1 "github.com/synchub-dev/synchub/apis/synchub/v1alpha1"
	"github.com/synchub-dev/synchub/cmd/kubectl-synchub/cli"
	"github.com/synchub-dev/synchub/controllers/plan/related"
	"github.com/synchub-dev/synchub/provider/wording"
)

// Related describes the objects that an entry of spec.related selects for the object. The hub syncs them together with it.
type Related struct {
	// By is the entry, as "<PublishedResource>/<identifier>".
	By string `json:"by"`
	// Origin is the side of the originals: Mailbox or Target.
	Origin   string `json:"origin"`
	Group    string `json:"group,omitempty"`
	Resource string `json:"resource"`
	// Objects are the names of the originals, if the object contains names. They need not exist.
	Objects []types.NamespacedName `json:"objects,omitempty"`
	// Text describes the selection to people.
	Text string `json:"text"`
}

// related returns what each entry of spec.related selects for the object, as far as the primary could be read.
func (o *observation) related() (all []Related) {
	if o.published == nil {
		return nil
	}
	relations, _ := related.Compile(o.published.Spec.Related)
	for _, relation := range relations {
		primary := o.Object.Value
		if relation != nil && relation.Origin == synchubv1alpha1.RelatedOriginTarget {
			primary = o.ownedCopy()
		}
		if relation == nil || primary == nil {
			continue
		}
		source := relation.SourceResource()
		one := Related{By: o.published.Name + "/" + relation.Identifier, Origin: string(relation.Origin), Group: source.Group, Resource: source.Resource}
		query, err := relation.Resolve(primary, related.Environment{Mailbox: string(o.mailbox()), SyncTarget: o.SyncTarget.Name})
		if err != nil {
			one.Text = inOneLine(err)
		} else {
			one.Objects, one.Text = query.Names, queryText(query)
		}
		all = append(all, one)
	}
	return all
}

// ownedCopy returns the target's object, or nil if the hub does not own it.
func (o *observation) ownedCopy() *unstructured.Unstructured {
	if o.copied == nil {
		return nil
	}
	return o.Target.Value
}

// queryText describes the objects that a query matches.
func queryText(query related.Query) string {
	var names []string
	for _, name := range query.Names {
		names = append(names, strings.TrimPrefix(name.String(), "/"))
	}
	where := "in selected namespaces"
	if query.NamespaceSelector == nil {
		where = "in " + wording.First(maxListed, query.Namespaces)
	}
	switch {
	case query.IsEmpty():
		return "none"
	case len(names) > 0:
		return wording.First(maxListed, names)
	case len(query.NamesInSelectedNamespaces) > 0:
		return wording.First(maxListed, query.NamesInSelectedNamespaces) + " " + where
	case query.Owner != "":
		return "objects that it owns, " + where
	default:
		return fmt.Sprintf("objects with the labels %s, %s", query.Selector, where)
	}
}

// printRelated prints the related objects as a table, if there are any.
func (e Explanation) printRelated(columns cli.Columns) {
	if len(e.Related) == 0 {
		return
	}
	columns.Line("")
	columns.Line("RELATED\tFROM\tOBJECTS")
	for _, one := range e.Related {
		columns.Line("%s\t%s\t%s", schema.GroupResource{Group: one.Group, Resource: one.Resource}, one.Origin, one.Text)
	}
}
