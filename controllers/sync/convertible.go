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

package sync

import (
	"cmp"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"

	synchubv1alpha1 "github.com/synchub-dev/synchub/apis/synchub/v1alpha1"
	"github.com/synchub-dev/synchub/controllers/sync/boundary"
)

// ConvertsTo returns what is allowed to objects of the resource that a conversion makes a kind of the target, of which the
// version may be open. Conversions are written by tenants: they make what an operator has published, and leave none of his
// rules. The error is a [*boundary.RefusalError].
func (r Resource) ConvertsTo(published []Resource, made schema.GroupVersionKind) (Allows, error) {
	if r.publishes(made) {
		return r.Allows, nil
	}
	var refusal error
	for _, other := range published {
		if !other.publishes(made) {
			continue
		}
		rule := r.bypasses(other)
		if rule == "" {
			return r.Allows.and(other.Allows), nil
		}
		refusal = &boundary.RefusalError{Reason: boundary.ReasonConversionBypassesRules, Message: fmt.Sprintf(
			"as %s objects would not keep to %s of the PublishedResources %s and %s, which differ: take the conversion out, or have both say the same",
			made.GroupKind(), rule, cmp.Or(r.PublishedResource, r.GroupResource().String()), other.PublishedResource)}
	}
	if refusal == nil {
		refusal = &boundary.RefusalError{Reason: boundary.ReasonConversionNotPublished, Message: fmt.Sprintf(
			"no PublishedResource publishes %s: have it published, or take the conversion out", inWords(made))}
	}
	return Allows{}, refusal
}

// inWords names a kind with its version, if that is known.
func inWords(kind schema.GroupVersionKind) string {
	if kind.Version == "" {
		return kind.GroupKind().String()
	}
	return fmt.Sprintf("%s in version %s", kind.GroupKind(), kind.Version)
}

// publishes tells whether a PublishedResource publishes a kind as it is on targets. The version may be open.
func (r Resource) publishes(kind schema.GroupVersionKind) bool {
	target := r.OnTarget()
	return !r.Companion && !r.Leaving && target.Group == kind.Group && target.Kind == kind.Kind &&
		(kind.Version == "" || slices.Contains(r.TargetVersions(), kind.Version))
}

// bypasses returns the first field of the PublishedResources that objects of the resource would not keep to as those of
// another one; empty if there is none.
func (r Resource) bypasses(other Resource) string {
	ours, theirs := r.rules().Written, other.rules().Written
	adopts := func(r Resource) bool { return r.Adoption != "" && r.Adoption != synchubv1alpha1.AdoptionNever }
	switch {
	case ours.Naming != theirs.Naming:
		return "spec.naming"
	case theirs.Filter != "" && theirs.Filter != ours.Filter:
		return "spec.filter"
	case theirs.Mutation != "" && theirs.Mutation != ours.Mutation:
		return "spec.mutation.down"
	case adopts(r) && r.Adoption != other.Adoption:
		return "spec.adoption"
	case r.Replace && !other.Replace:
		return "spec.replace"
	case r.Container != other.Container || other.Retain && !r.Retain:
		return "spec.deletion"
	default:
		return ""
	}
}

// RefusesUp returns a [*boundary.RefusalError] if nothing of a resource of the target comes up as this one.
func (r Resource) RefusesUp(from TargetResource) error {
	if from.Allows.PrivilegedUpsync {
		return nil
	}
	return boundary.CheckUpsync(from.GroupResource(), r.GroupResource())
}
