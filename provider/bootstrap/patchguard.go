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

package bootstrap

import (
	"context"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"

	"github.com/synchub-dev/synchub/provider/patchguard"
)

// ensurePatchGuard protects lists in all workspaces that bind an export of the provider workspace.
func (s *bootstrapper) ensurePatchGuard(ctx context.Context) error {
	policy, binding := patchguard.Policy(), patchguard.Binding()
	err := createOrUpdate(ctx, s, "ValidatingAdmissionPolicy", policy.DeepCopy(), func(current *admissionregistrationv1.ValidatingAdmissionPolicy) {
		current.Spec = policy.Spec
	})
	if err != nil {
		return err
	}
	return createOrUpdate(ctx, s, "ValidatingAdmissionPolicyBinding", binding.DeepCopy(), func(current *admissionregistrationv1.ValidatingAdmissionPolicyBinding) {
		current.Spec = binding.Spec
	})
}
