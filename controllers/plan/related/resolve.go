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
	"cmp"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	synchubv1alpha1 "github.com/synchub-dev/synchub/apis/synchub/v1alpha1"
)

// maxNames is the maximum number of objects that one primary can name. Names multiply with namespaces, and each takes memory.
const maxNames = 1000

// Environment holds the template variables besides the primary.
type Environment struct {
	// Mailbox is the name of the mailbox's logical cluster, and SyncTarget is the name of its SyncTarget.
	Mailbox, SyncTarget string
}

// objectFinder finds the names, labels or owner of related objects in a primary. One of its fields is set.
type objectFinder struct {
	reference *reference
	selector  *selector
	template  *textTemplate
	owner     *synchubv1alpha1.RelatedOwner
}

// namespaceFinder finds the namespaces of related objects in a primary. One of its fields is set. A nil finder stands for the
// primary's own namespace.
type namespaceFinder struct {
	reference *reference
	selector  *selector
	template  *textTemplate
}

// primaryObject is a primary that is being resolved.
type primaryObject struct {
	sourceNamespace string
	uid             types.UID
	object          map[string]any
	variables       map[string]any
}

// LacksNamespace reports whether the relation gives a cluster-scoped primary no namespaces of the originals. Such a primary
// claims only cluster-scoped objects.
func (r *Relation) LacksNamespace() bool {
	byItself := r.objectFinder.owner != nil || r.objectFinder.reference != nil && r.objectFinder.reference.namespaceField != ""
	return r.namespaceFinder == nil && !byItself
}

// Resolve returns the query of a primary. The primary is the object on the side of the originals; Resolve does not change it.
// An error names the field of the relation and the mistake in the primary.
func (r *Relation) Resolve(primary *unstructured.Unstructured, environment Environment) (Query, error) {
	query, err := r.resolve(primaryObject{
		sourceNamespace: primary.GetNamespace(),
		uid:             primary.GetUID(),
		object:          primary.Object,
		variables: map[string]any{
			"Primary": primary.Object, "Mailbox": environment.Mailbox, "SyncTarget": environment.SyncTarget,
		},
	})
	switch {
	case err != nil:
		return Query{}, fmt.Errorf("related object %q: %w", r.Identifier, err)
	case query.IsEmpty():
		return Query{}, nil
	default:
		return query, nil
	}
}

func (r *Relation) resolve(primary primaryObject) (Query, error) {
	query := Query{SourceNamespace: primary.sourceNamespace}
	if reference := r.objectFinder.reference; reference != nil && reference.namespaceField != "" {
		var err error
		query.Names, err = reference.names(primary)
		return query, cmp.Or(err, checkCount(len(query.Names), "objects"))
	}
	namespaces, namespaceSelector, err := r.resolveNamespaces(primary)
	if err != nil {
		return Query{}, err
	}
	query.NamespaceSelector = namespaceSelector
	switch {
	case r.objectFinder.selector != nil:
		query.Namespaces = namespaces
		query.Selector, err = r.objectFinder.selector.resolve(primary)
	case r.objectFinder.owner != nil:
		query.Namespaces = namespaces
		query.Owner, query.ControllerOnly = primary.uid, r.objectFinder.owner.ControllerOnly
	default:
		err = r.addNames(&query, primary, namespaces)
	}
	return query, err
}

// addNames adds the names that a primary contains or renders, in each of the namespaces.
func (r *Relation) addNames(query *Query, primary primaryObject, namespaces []string) error {
	names, err := resolveTexts(r.objectFinder.reference, r.objectFinder.template, primary, validateName)
	if err != nil {
		return err
	}
	if err := checkCount(len(names)*len(namespaces), "objects"); err != nil {
		return err
	}
	if query.NamespaceSelector != nil {
		query.NamesInSelectedNamespaces = names
		return checkCount(len(names), "objects")
	}
	for _, namespace := range namespaces {
		for _, name := range names {
			query.Names = append(query.Names, types.NamespacedName{Namespace: namespace, Name: name})
		}
	}
	return nil
}

// resolveNamespaces returns the namespaces to search: their names, or a selector.
func (r *Relation) resolveNamespaces(primary primaryObject) ([]string, labels.Selector, error) {
	switch {
	case r.namespaceFinder == nil && r.objectFinder.owner != nil && primary.sourceNamespace == "":
		// A cluster-scoped owner may own objects in any namespace.
		return nil, labels.Everything(), nil
	case r.namespaceFinder == nil:
		return []string{primary.sourceNamespace}, nil, nil
	case r.namespaceFinder.selector != nil:
		selected, err := r.namespaceFinder.selector.resolve(primary)
		return nil, selected, err
	default:
		names, err := resolveTexts(r.namespaceFinder.reference, r.namespaceFinder.template, primary, validateNamespace)
		return names, nil, cmp.Or(err, checkCount(len(names), "namespaces"))
	}
}

// resolveTexts returns the texts of a reference or a template, sorted, without duplicates.
func resolveTexts(reference *reference, template *textTemplate, primary primaryObject, check func(string) error) ([]string, error) {
	var found []string
	var err error
	if reference != nil {
		found, err = reference.values(primary, check)
	} else {
		found, err = template.values(primary, check)
	}
	slices.Sort(found)
	return slices.Compact(found), err
}

// checkCount returns an error if a primary names too many objects.
func checkCount(count int, what string) error {
	if count > maxNames {
		return fmt.Errorf("the primary names %d %s, and may name %d", count, what, maxNames)
	}
	return nil
}

func compareNames(a, b types.NamespacedName) int {
	return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
}
