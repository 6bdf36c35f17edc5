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

package mailboxes

import (
	"slices"

	apisv1alpha2 "github.com/kcp-dev/sdk/apis/apis/v1alpha2"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// CountPendingClaims returns the number of mailboxes whose binding lists one of the claims neither as accepted nor as
// rejected.
func (m *Mailboxes) CountPendingClaims(claims []apisv1alpha2.PermissionClaim) (count int) {
	m.lock.RLock()
	defer m.lock.RUnlock()
	for _, endpoint := range m.endpoints {
		for _, mailbox := range endpoint.mailboxes() {
			if binding := endpoint.binding(mailbox); binding != nil && !listsClaims(binding, claims) {
				count++
			}
		}
	}
	return count
}

// listsClaims reports whether a binding's spec lists all the claims.
func listsClaims(binding *unstructured.Unstructured, claims []apisv1alpha2.PermissionClaim) bool {
	listed := nestedMaps(binding, "spec", "permissionClaims")
	for _, claim := range claims {
		isListed := func(item map[string]any) bool {
			group, _ := item["group"].(string)
			identity, _ := item["identityHash"].(string)
			return group == claim.Group && item["resource"] == claim.Resource && identity == claim.IdentityHash
		}
		if !slices.ContainsFunc(listed, isListed) {
			return false
		}
	}
	return true
}
