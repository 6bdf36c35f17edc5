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

package plan

import (
	"cmp"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"

	synchubv1alpha1 "github.com/synchub-dev/synchub/apis/synchub/v1alpha1"
	"github.com/synchub-dev/synchub/controllers/plan/policy"
)

// CheckConversion returns the permissions of objects that a tenant's conversion turns into a kind of the target. The version may
// be empty. A conversion may only produce kinds that an operator published, and may not evade the rules of either
// PublishedResource. The error is a [*policy.DeniedError].
func (r Resource) CheckConversion(published []Resource, made schema.GroupVersionKind) (Allowed, error) {
	if r.publishes(made) {
		return r.Allowed, nil
	}
	var refusal error
	for _, other := range published {
		if !other.publishes(made) {
			continue
		}
		rule := r.bypassedRule(other)
		if rule == "" {
			return r.Allowed.intersect(other.Allowed), nil
		}
		refusal = &policy.DeniedError{Reason: policy.ReasonConversionBypassesRules, Message: fmt.Sprintf(
			"as %s objects would not keep to %s of the PublishedResources %s and %s, which differ: remove the conversion, or make both equal",
			made.GroupKind(), rule, cmp.Or(r.PublishedResource, r.GroupResource().String()), other.PublishedResource)}
	}
	if refusal == nil {
		refusal = &policy.DeniedError{Reason: policy.ReasonConversionNotPublished, Message: fmt.Sprintf(
			"no PublishedResource publishes %s: have it published, or remove the conversion", describeKind(made))}
	}
	return Allowed{}, refusal
}

// describeKind names a kind with its version, if that is known.
func describeKind(kind schema.GroupVersionKind) string {
	if kind.Version == "" {
		return kind.GroupKind().String()
	}
	return fmt.Sprintf("%s in version %s", kind.GroupKind(), kind.Version)
}

// publishes reports whether a PublishedResource publishes a kind under its name on targets. The version may be empty.
func (r Resource) publishes(kind schema.GroupVersionKind) bool {
	target := r.TargetAPI()
	return !r.RelatedOnly && !r.Unpublishing && target.Group == kind.Group && target.Kind == kind.Kind &&
		(kind.Version == "" || slices.Contains(r.TargetVersions(), kind.Version))
}

// bypassedRule returns the first field of the PublishedResource "other" whose rule the objects would evade; empty if there is
// none.
func (r Resource) bypassedRule(other Resource) string {
	ours, theirs := r.GetRules().Texts, other.GetRules().Texts
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
	case r.DeletesContents != other.DeletesContents || other.Retain && !r.Retain:
		return "spec.deletion"
	default:
		return ""
	}
}

// CheckUpsync returns a [*policy.DeniedError] if objects of a target API are never upsynced as this resource.
func (r Resource) CheckUpsync(from TargetAPI) error {
	if from.Allowed.PrivilegedUpsync {
		return nil
	}
	return policy.CheckUpsync(from.GroupResource(), r.GroupResource())
}
