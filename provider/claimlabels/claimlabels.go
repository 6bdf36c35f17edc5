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

package claimlabels

import (
	"strings"

	apisv1alpha2 "github.com/kcp-dev/sdk/apis/apis/v1alpha2"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// AreOutdated reports whether kcp refused a write because the accepted claims of the workspace changed during the write. kcp's admission
// sets the labels first and checks them later, each time with its current cache of APIBindings. So the same write succeeds a moment later.
// See pkg/admission/permissionclaims in kcp.
func AreOutdated(err error) bool {
	return apierrors.IsForbidden(err) && strings.Contains(err.Error(), apisv1alpha2.APIExportPermissionClaimLabelPrefix)
}
