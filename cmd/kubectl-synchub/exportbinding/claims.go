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

package exportbinding

import (
	"fmt"
	"slices"
	"strings"

	apisv1alpha2 "github.com/kcp-dev/sdk/apis/apis/v1alpha2"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// withClaims returns the claims of a binding, with each requested claim accepted, for the objects that the export needs. Decisions of
// the user about a requested claim stay, also to reject or narrow it. Claims that the export does not request stay too, unless
// the export now requests the resource of another identity: it can use only one.
func (e *Export) withClaims(decided []apisv1alpha2.AcceptablePermissionClaim, requested []apisv1alpha2.PermissionClaim) []apisv1alpha2.AcceptablePermissionClaim {
	claims := slices.Clone(decided)
	for _, claim := range requested {
		if slices.ContainsFunc(claims, isDecisionOn(claim)) {
			continue
		}
		claims = slices.DeleteFunc(claims, func(other apisv1alpha2.AcceptablePermissionClaim) bool {
			return other.GroupResource == claim.GroupResource
		})
		claims = append(claims, apisv1alpha2.AcceptablePermissionClaim{
			ScopedPermissionClaim: apisv1alpha2.ScopedPermissionClaim{
				PermissionClaim: apisv1alpha2.PermissionClaim{GroupResource: claim.GroupResource, Verbs: slices.Clone(claim.Verbs), IdentityHash: claim.IdentityHash},
				Selector:        e.selector(claim),
			},
			State: apisv1alpha2.ClaimAccepted,
		})
	}
	return claims
}

func isDecisionOn(claim apisv1alpha2.PermissionClaim) func(apisv1alpha2.AcceptablePermissionClaim) bool {
	return func(decided apisv1alpha2.AcceptablePermissionClaim) bool {
		return isSame(decided.PermissionClaim, claim)
	}
}

// isSame reports whether two claims are about the same resource of the same identity.
func isSame(one, other apisv1alpha2.PermissionClaim) bool {
	return one.GroupResource == other.GroupResource && one.IdentityHash == other.IdentityHash
}

// selector returns the objects of a claim that the export needs.
func (e *Export) selector(claim apisv1alpha2.PermissionClaim) apisv1alpha2.PermissionClaimSelector {
	if labels := e.Labels[claim.GroupResource]; labels != nil {
		return apisv1alpha2.PermissionClaimSelector{LabelSelector: metav1.LabelSelector{MatchLabels: labels}}
	}
	return apisv1alpha2.PermissionClaimSelector{MatchAll: true}
}

// limitedClaims returns the resources whose requested claims the user has rejected, or accepted for fewer objects or verbs than the
// export needs.
func (e *Export) limitedClaims(binding *apisv1alpha2.APIBinding) (resources []string) {
	for _, claim := range binding.Status.ExportPermissionClaims {
		i := slices.IndexFunc(binding.Spec.PermissionClaims, isDecisionOn(claim))
		if i < 0 {
			continue
		}
		decided := binding.Spec.PermissionClaims[i]
		isEnough := decided.Selector.MatchAll || apiequality.Semantic.DeepEqual(decided.Selector, e.selector(claim))
		if decided.State != apisv1alpha2.ClaimAccepted || !isEnough || !slices.Equal(decided.Verbs, claim.Verbs) {
			resources = append(resources, schema.GroupResource(claim.GroupResource).String())
		}
	}
	return resources
}

// Problems returns what keeps the hub from using an APIBinding of the export, one sentence each.
func (e *Export) Problems(binding *apisv1alpha2.APIBinding) (problems []string) {
	if missing := isBound(binding); missing != "" {
		problems = append(problems, missing+":"+describeConditions(binding))
	}
	if undecided := undecidedClaims(binding); len(undecided) > 0 {
		problems = append(problems, fmt.Sprintf("does not accept the claims on %s: run `%s` again", strings.Join(undecided, ", "), e.Command))
	}
	if limited := e.limitedClaims(binding); len(limited) > 0 {
		problems = append(problems, fmt.Sprintf("rejects or limits claims on %s: %s", strings.Join(limited, ", "), e.Limited))
	}
	if missing := isApplied(binding); missing != "" {
		problems = append(problems, missing)
	}
	return problems
}

// undecidedClaims returns the resources whose requested claims the user has neither accepted nor rejected.
func undecidedClaims(binding *apisv1alpha2.APIBinding) (resources []string) {
	for _, claim := range binding.Status.ExportPermissionClaims {
		if !slices.ContainsFunc(binding.Spec.PermissionClaims, isDecisionOn(claim)) {
			resources = append(resources, schema.GroupResource(claim.GroupResource).String())
		}
	}
	return resources
}

// unappliedClaims returns the resources whose requested and accepted claims kcp has not applied yet.
func unappliedClaims(binding *apisv1alpha2.APIBinding) (resources []string) {
	for _, claim := range binding.Status.ExportPermissionClaims {
		isApplied := func(applied apisv1alpha2.ScopedPermissionClaim) bool { return isSame(applied.PermissionClaim, claim) }
		i := slices.IndexFunc(binding.Spec.PermissionClaims, isDecisionOn(claim))
		if i >= 0 && binding.Spec.PermissionClaims[i].State == apisv1alpha2.ClaimAccepted && !slices.ContainsFunc(binding.Status.AppliedPermissionClaims, isApplied) {
			resources = append(resources, schema.GroupResource(claim.GroupResource).String())
		}
	}
	return resources
}
