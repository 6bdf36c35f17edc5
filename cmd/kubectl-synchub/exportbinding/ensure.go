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
	"context"
	"fmt"
	"strings"

	apisv1alpha2 "github.com/kcp-dev/sdk/apis/apis/v1alpha2"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/synchub-dev/synchub/cmd/kubectl-synchub/registration"
)

// Ensure creates the APIBinding unless there is one, and accepts all claims of the export. It returns when kcp has
// bound the APIs and applied the claims, and reports whether the workspace serves the APIs. That can be false in a
// dry run only.
func (b *Binder) Ensure(ctx context.Context) (served bool, err error) {
	binding, err := b.Find(ctx)
	if err != nil {
		return false, err
	}
	result := registration.Unchanged
	if binding == nil {
		result = registration.Created
		if binding, err = b.createBinding(ctx); err != nil {
			return false, err
		}
		if b.DryRun {
			b.Report(registration.Change{Object: binding, Result: result})
			return false, nil
		}
	}
	waiting, cancel := context.WithTimeout(ctx, b.Timeout)
	defer cancel()
	if err := b.awaitBinding(ctx, waiting, binding, isBound); err != nil {
		return false, err
	}
	changed, err := b.acceptClaims(ctx, binding)
	if err != nil {
		return false, err
	}
	if changed && result == registration.Unchanged {
		result = registration.Changed
	}
	if !b.DryRun {
		if err := b.awaitBinding(ctx, waiting, binding, isApplied); err != nil {
			return false, err
		}
	}
	b.Report(registration.Change{Object: binding, Result: result})
	if limited := b.limitedClaims(binding); len(limited) > 0 {
		b.Info(fmt.Sprintf("The APIBinding %s rejects or limits claims on %s: %s. Change spec.permissionClaims with `kubectl edit apibinding %s`.",
			binding.Name, strings.Join(limited, ", "), b.Limited, binding.Name))
	}
	return true, b.awaitServed(ctx, waiting)
}

// createBinding creates the APIBinding without claims: kcp shows the claims of the export only to users who have bound it.
func (b *Binder) createBinding(ctx context.Context) (*apisv1alpha2.APIBinding, error) {
	binding := b.newBinding()
	err := b.Writer().Create(ctx, binding)
	switch {
	case apierrors.IsForbidden(err):
		return nil, fmt.Errorf("cannot bind the export %s of the provider workspace %s. If that is the provider workspace of the hub, let its administrator grant you the verb bind on this APIExport, for example with %s of `kubectl synchub init`; else choose another with --provider-workspace: %w", b.Name, b.ProviderPath, b.GroupFlag, err)
	case err != nil:
		return nil, fmt.Errorf("cannot create the APIBinding %s: %w", binding.Name, err)
	}
	return binding, nil
}

// acceptClaims accepts the claims of the export in the APIBinding, and reports whether that changed it. kcp writes the status
// of a new APIBinding at the same time, so conflicts are retried.
func (b *Binder) acceptClaims(ctx context.Context, binding *apisv1alpha2.APIBinding) (changed bool, err error) {
	err = retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		before := binding.DeepCopy()
		binding.Spec.PermissionClaims = b.withClaims(before.Spec.PermissionClaims, before.Status.ExportPermissionClaims)
		if changed = !apiequality.Semantic.DeepEqual(before.Spec, binding.Spec); !changed {
			return nil
		}
		err := b.Writer().Patch(ctx, binding, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
		if apierrors.IsConflict(err) {
			if err := b.Client.Get(ctx, client.ObjectKeyFromObject(binding), binding); err != nil {
				return err
			}
		}
		return err
	})
	if err != nil {
		return false, fmt.Errorf("cannot accept the claims of the export in the APIBinding %s: %w", binding.Name, err)
	}
	return changed, nil
}
