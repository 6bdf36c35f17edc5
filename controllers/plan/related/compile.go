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
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/schema"

	synchubv1alpha1 "github.com/synchub-dev/synchub/apis/synchub/v1alpha1"
	"github.com/synchub-dev/synchub/controllers/plan/mutation"
	"github.com/synchub-dev/synchub/controllers/plan/naming"
)

// Compile compiles the relations of a PublishedResource. Its error names the field of each mistake, as in
// related[1].object.reference.path.
func Compile(spec []synchubv1alpha1.RelatedResource) ([]*Relation, error) {
	var relations []*Relation
	var errs []error
	taken := map[string]int{}
	for index, entry := range spec {
		relation, err := compile(entry)
		if other, ok := taken[entry.Identifier]; ok {
			err = errors.Join(err, fmt.Errorf("identifier: %q is already used by related[%d]", entry.Identifier, other))
		}
		taken[entry.Identifier] = index
		errs = append(errs, prefixErrors(fmt.Sprintf("related[%d].", index), err))
		relations = append(relations, relation)
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return relations, nil
}

// prefixErrors puts the name of a field before each of the joined errors.
func prefixErrors(field string, err error) error {
	if err == nil {
		return nil
	}
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return fmt.Errorf("%s%w", field, err)
	}
	var errs []error
	for _, each := range joined.Unwrap() {
		errs = append(errs, prefixErrors(field, each))
	}
	return errors.Join(errs...)
}

// compile compiles one entry. Its errors, and the errors of the functions that it calls, begin with the path of a field.
func compile(entry synchubv1alpha1.RelatedResource) (*Relation, error) {
	relation := &Relation{
		Identifier:   entry.Identifier,
		Origin:       entry.Origin,
		IdentityHash: entry.Resource.IdentityHash,
		StatusReturn: entry.Origin == synchubv1alpha1.RelatedOriginMailbox && (entry.StatusReturn == nil || *entry.StatusReturn),
		Orphan:       entry.DeletionPolicy == synchubv1alpha1.DeletionPolicyOrphan,
	}
	return relation, errors.Join(
		validateEntry(entry), relation.compileResource(entry), relation.compileObject(entry), relation.compileNamespace(entry), relation.compileTransforms(entry),
	)
}

// validateEntry repeats the validation of the API server, because a PublishedResource may be older than those rules, or come
// from a file.
func validateEntry(entry synchubv1alpha1.RelatedResource) error {
	up := entry.Origin == synchubv1alpha1.RelatedOriginTarget
	switch {
	case entry.Identifier == "":
		return errors.New("identifier: it is required")
	case !up && entry.Origin != synchubv1alpha1.RelatedOriginMailbox:
		return fmt.Errorf("origin: %q is neither Mailbox nor Target", entry.Origin)
	case up && entry.Mutation != nil && len(entry.Mutation.Down) > 0:
		return errors.New("mutation.down: what comes from the target does not go down")
	case up && entry.StatusReturn != nil:
		return errors.New("statusReturn: what comes from the target brings its status along")
	case entry.Resource.Version == "":
		return errors.New("resource.version: it is required")
	case entry.Resource.Resource == "":
		return errors.New("resource.resource: it is required")
	default:
		return nil
	}
}

func (r *Relation) compileResource(entry synchubv1alpha1.RelatedResource) error {
	r.OnTarget = schema.GroupVersionResource{Group: entry.Resource.Group, Version: entry.Resource.Version, Resource: entry.Resource.Resource}
	r.InMailbox = r.OnTarget
	projection := entry.Projection
	if projection == nil {
		return nil
	}
	if projection.Resource != "" && projection.Kind == "" {
		return errors.New("projection.kind: it is required when projection.resource is set")
	}
	if projection.Group != nil {
		r.InMailbox.Group = *projection.Group
	}
	if projection.Version != "" {
		r.InMailbox.Version = projection.Version
	}
	if projection.Resource != "" {
		r.InMailbox.Resource = projection.Resource
	}
	r.MailboxKind = projection.Kind
	return nil
}

func (r *Relation) compileTransforms(entry synchubv1alpha1.RelatedResource) error {
	var namingErr, downErr, upErr error
	r.Naming, namingErr = naming.Compile(entry.Naming, "Object", "Primary", "Mailbox", "SyncTarget")
	if entry.Mutation != nil {
		r.Down, downErr = mutation.Compile(entry.Mutation.Down)
		r.Up, upErr = mutation.Compile(entry.Mutation.Up)
	}
	return errors.Join(prefixErrors("naming.", namingErr), prefixErrors("mutation.down", downErr), prefixErrors("mutation.up", upErr))
}

func (r *Relation) compileObject(entry synchubv1alpha1.RelatedResource) (err error) {
	spec := entry.Object
	if countTrue(spec.Reference != nil, spec.Selector != nil, spec.Template != "", spec.Owner != nil) != 1 {
		return errors.New("object: exactly one of reference, selector, template and owner is required")
	}
	switch {
	case spec.Reference != nil:
		if spec.Reference.NamespaceField != "" && spec.Reference.NameField == "" {
			return errors.New("object.reference.nameField: it is required when namespaceField is set")
		}
		r.objectFinder.reference, err = newReference("object.reference", spec.Reference.Path, spec.Reference.Regex)
		if err == nil {
			r.objectFinder.reference.nameField, r.objectFinder.reference.namespaceField = spec.Reference.NameField, spec.Reference.NamespaceField
		}
	case spec.Selector != nil:
		r.objectFinder.selector, err = newSelector("object.selector", *spec.Selector)
	case spec.Template != "":
		r.objectFinder.template, err = newTextTemplate("object.template", spec.Template)
	default:
		r.objectFinder.owner = spec.Owner
	}
	return err
}

func (r *Relation) compileNamespace(entry synchubv1alpha1.RelatedResource) (err error) {
	spec := entry.Namespace
	if spec == nil {
		return nil
	}
	if reference := r.objectFinder.reference; reference != nil && reference.namespaceField != "" {
		return errors.New("namespace: it excludes object.reference.namespaceField")
	}
	if countTrue(spec.Reference != nil, spec.Selector != nil, spec.Template != "") != 1 {
		return errors.New("namespace: exactly one of reference, selector and template is required")
	}
	r.namespaceFinder = &namespaceFinder{}
	switch {
	case spec.Reference != nil:
		r.namespaceFinder.reference, err = newReference("namespace.reference", spec.Reference.Path, spec.Reference.Regex)
	case spec.Selector != nil:
		r.namespaceFinder.selector, err = newSelector("namespace.selector", *spec.Selector)
	default:
		r.namespaceFinder.template, err = newTextTemplate("namespace.template", spec.Template)
	}
	return err
}

func countTrue(conditions ...bool) (met int) {
	for _, condition := range conditions {
		if condition {
			met++
		}
	}
	return met
}
