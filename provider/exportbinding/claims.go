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

package bindcompute

import (
	"slices"

	apisv1alpha2 "github.com/kcp-dev/sdk/apis/apis/v1alpha2"
)

// withClaims returns the claims of a binding, with each requested claim accepted for all objects. Decisions of the user
// about a requested claim stay, also to reject or narrow it. Claims that the export does not request stay too, unless
// the export now requests the resource of another identity: it can use only one.
func withClaims(decided []apisv1alpha2.AcceptablePermissionClaim, requested []apisv1alpha2.PermissionClaim) []apisv1alpha2.AcceptablePermissionClaim {
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
				Selector:        apisv1alpha2.PermissionClaimSelector{MatchAll: true},
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

// limitedClaims returns the resources whose requested claims the user has rejected, or accepted for fewer objects or verbs.
func limitedClaims(binding *apisv1alpha2.APIBinding) (resources []string) {
	for _, claim := range binding.Status.ExportPermissionClaims {
		i := slices.IndexFunc(binding.Spec.PermissionClaims, isDecisionOn(claim))
		if i < 0 {
			continue
		}
		decided := binding.Spec.PermissionClaims[i]
		if decided.State != apisv1alpha2.ClaimAccepted || !decided.Selector.MatchAll || !slices.Equal(decided.Verbs, claim.Verbs) {
			resources = append(resources, resourceName(claim.GroupResource))
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
			resources = append(resources, resourceName(claim.GroupResource))
		}
	}
	return resources
}

// resourceName returns a resource as kubectl accepts it, such as deployments.apps.
func resourceName(resource apisv1alpha2.GroupResource) string {
	if resource.Group == "" {
		return resource.Resource
	}
	return resource.Resource + "." + resource.Group
}
