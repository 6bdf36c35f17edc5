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
	"cmp"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	synchubv1alpha1 "github.com/synchub-dev/synchub/apis/synchub/v1alpha1"
)

// maxNames is how many objects one primary can name. Names in namespaces multiply, and each is kept in memory.
const maxNames = 1000

// Environment is what templates see besides the primary.
type Environment struct {
	// Mailbox is the name of the mailbox's logical cluster, SyncTarget that of its SyncTarget.
	Mailbox, SyncTarget string
}

// finder is how a primary says which objects it wants. One of its fields is set.
type finder struct {
	reference *reference
	selector  *selector
	template  *text
	owner     *synchubv1alpha1.RelatedOwner
}

// locator is how a primary says in which namespaces they are. One of its fields is set. The nil locator stands for the
// primary's own namespace.
type locator struct {
	reference *reference
	selector  *selector
	template  *text
}

// subject is a primary that is asked what it wants.
type subject struct {
	home      string
	uid       types.UID
	object    map[string]any
	variables map[string]any
}

// NeedsNamespace tells whether a cluster-scoped primary does not say in which namespaces the originals are. It wants only
// what is in no namespace then.
func (r *Relation) NeedsNamespace() bool {
	byItself := r.object.owner != nil || r.object.reference != nil && r.object.reference.namespaceField != ""
	return r.places == nil && !byItself
}

// Resolve returns what a primary wants. The primary is that on the side of the originals, and is not changed. An error names
// the field of the relation, and says what is wrong in the primary.
func (r *Relation) Resolve(primary *unstructured.Unstructured, environment Environment) (Wanted, error) {
	wanted, err := r.resolve(subject{
		home:   primary.GetNamespace(),
		uid:    primary.GetUID(),
		object: primary.Object,
		variables: map[string]any{
			"Primary": primary.Object, "Mailbox": environment.Mailbox, "SyncTarget": environment.SyncTarget,
		},
	})
	switch {
	case err != nil:
		return Wanted{}, fmt.Errorf("related object %q: %w", r.Identifier, err)
	case wanted.IsEmpty():
		return Wanted{}, nil
	default:
		return wanted, nil
	}
}

func (r *Relation) resolve(primary subject) (Wanted, error) {
	wanted := Wanted{Home: primary.home}
	if reference := r.object.reference; reference != nil && reference.namespaceField != "" {
		var err error
		wanted.Names, err = reference.names(primary)
		return wanted, cmp.Or(err, checkCount(len(wanted.Names), "objects"))
	}
	namespaces, namespaceSelector, err := r.namespaces(primary)
	if err != nil {
		return Wanted{}, err
	}
	wanted.NamespaceSelector = namespaceSelector
	switch {
	case r.object.selector != nil:
		wanted.Namespaces = namespaces
		wanted.Selector, err = r.object.selector.resolve(primary)
	case r.object.owner != nil:
		wanted.Namespaces = namespaces
		wanted.Owner, wanted.ControllerOnly = primary.uid, r.object.owner.ControllerOnly
	default:
		err = r.addNames(&wanted, primary, namespaces)
	}
	return wanted, err
}

// addNames adds the names that a primary reads or renders, in each of the namespaces.
func (r *Relation) addNames(wanted *Wanted, primary subject, namespaces []string) error {
	names, err := texts(r.object.reference, r.object.template, primary, isName)
	if err != nil {
		return err
	}
	if err := checkCount(len(names)*len(namespaces), "objects"); err != nil {
		return err
	}
	if wanted.NamespaceSelector != nil {
		wanted.SpreadNames = names
		return checkCount(len(names), "objects")
	}
	for _, namespace := range namespaces {
		for _, name := range names {
			wanted.Names = append(wanted.Names, types.NamespacedName{Namespace: namespace, Name: name})
		}
	}
	return nil
}

// namespaces returns where to look: the names of namespaces, or how they are selected.
func (r *Relation) namespaces(primary subject) ([]string, labels.Selector, error) {
	switch {
	case r.places == nil && r.object.owner != nil && primary.home == "":
		// An owner that is in no namespace may own objects in any.
		return nil, labels.Everything(), nil
	case r.places == nil:
		return []string{primary.home}, nil, nil
	case r.places.selector != nil:
		selected, err := r.places.selector.resolve(primary)
		return nil, selected, err
	default:
		names, err := texts(r.places.reference, r.places.template, primary, isNamespace)
		return names, nil, cmp.Or(err, checkCount(len(names), "namespaces"))
	}
}

// texts returns what a reference leads to or a template yields, sorted and each once.
func texts(reference *reference, template *text, primary subject, check func(string) error) ([]string, error) {
	var found []string
	var err error
	if reference != nil {
		found, err = reference.texts(primary, check)
	} else {
		found, err = template.texts(primary, check)
	}
	slices.Sort(found)
	return slices.Compact(found), err
}

// checkCount refuses more than a primary may name.
func checkCount(count int, what string) error {
	if count > maxNames {
		return fmt.Errorf("the primary names %d %s, of which it may name %d", count, what, maxNames)
	}
	return nil
}

func compareNames(a, b types.NamespacedName) int {
	return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
}
