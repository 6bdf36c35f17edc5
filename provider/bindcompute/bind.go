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
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	apisv1alpha2 "github.com/kcp-dev/sdk/apis/apis/v1alpha2"
	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/provider/registration"
)

// servedInterval is the interval at which a bound API is requested until kcp serves it. There is no event for that.
const servedInterval = 200 * time.Millisecond

// errDeleted means that the object of a wait was deleted meanwhile.
var errDeleted = errors.New("it was deleted meanwhile")

// Bind binds the export, accepts its claims, and creates the EdgePlacement. It changes no existing EdgePlacement: if that
// differs from the desired one, Bind returns an error before it writes anything.
func (w *Workspace) Bind(ctx context.Context, placement Placement) error {
	desired := placement.Object()
	existing, err := w.checkExisting(ctx, placement, desired.Name)
	if err != nil {
		return err
	}
	served, err := w.bindExport(ctx)
	if err != nil {
		return err
	}
	if existing != nil {
		w.Report(registration.Change{Object: existing, Result: registration.Unchanged})
		return nil
	}
	if !served {
		w.Info("The EdgePlacement was not sent, because the workspace does not serve EdgePlacements before it binds the export.")
		w.Report(registration.Change{Object: desired, Result: registration.Created})
		return nil
	}
	if err := w.writer().Create(ctx, desired); err != nil {
		return fmt.Errorf("cannot create the EdgePlacement %s: %w", desired.Name, err)
	}
	setPlacementKind(desired)
	w.Report(registration.Change{Object: desired, Result: registration.Created})
	return nil
}

// Objects returns the manifests of the APIBinding and the EdgePlacement as Bind leaves them. It sends no writes.
func (w *Workspace) Objects(ctx context.Context, placement Placement) ([]client.Object, error) {
	desired := placement.Object()
	if _, err := w.checkExisting(ctx, placement, desired.Name); err != nil {
		return nil, err
	}
	existing, err := w.findBinding(ctx)
	if err != nil {
		return nil, err
	}
	binding := w.newBinding()
	if existing != nil {
		binding.Name = existing.Name
		binding.Spec.PermissionClaims = withClaims(existing.Spec.PermissionClaims, existing.Status.ExportPermissionClaims)
		return []client.Object{binding, desired}, nil
	}
	requested, err := w.requestedClaims(ctx)
	if err != nil {
		w.Info(fmt.Sprintf("The claims of the export %s are missing in the APIBinding, because they cannot be read before the workspace binds the export: %s", Export, err))
	}
	binding.Spec.PermissionClaims = withClaims(nil, requested)
	return []client.Object{binding, desired}, nil
}

// checkExisting returns the existing EdgePlacement, or nil. It returns an error if that differs from the settings.
func (w *Workspace) checkExisting(ctx context.Context, placement Placement, name string) (*edgev2alpha1.EdgePlacement, error) {
	existing, err := w.getPlacement(ctx, name)
	if err != nil || existing == nil {
		return nil, err
	}
	if existing.DeletionTimestamp != nil {
		return nil, fmt.Errorf("the EdgePlacement %s is being deleted: wait with `kubectl wait --for=delete edgeplacement/%s`, and run the command again", existing.Name, existing.Name)
	}
	if found := placement.differences(&existing.Spec); len(found) > 0 {
		return nil, fmt.Errorf("there is an EdgePlacement %s already, and nothing was changed: its %s. Choose another name with --name, or change it with `kubectl edit edgeplacement %s`",
			existing.Name, strings.Join(found, "; its "), existing.Name)
	}
	return existing, nil
}

// requestedClaims reads the claims of the export in the provider workspace.
func (w *Workspace) requestedClaims(ctx context.Context) ([]apisv1alpha2.PermissionClaim, error) {
	var export apisv1alpha2.APIExport
	if err := w.Provider.Get(ctx, types.NamespacedName{Name: Export}, &export); err != nil {
		return nil, err
	}
	return export.Spec.PermissionClaims, nil
}

func (w *Workspace) newBinding() *apisv1alpha2.APIBinding {
	binding := &apisv1alpha2.APIBinding{
		ObjectMeta: metav1.ObjectMeta{Name: Export},
		Spec: apisv1alpha2.APIBindingSpec{
			Reference: apisv1alpha2.BindingReference{Export: &apisv1alpha2.ExportBindingReference{Path: w.ProviderPath, Name: Export}},
		},
	}
	setBindingKind(binding)
	return binding
}

// bindExport creates the APIBinding unless there is one, and accepts all claims of the export. It returns when kcp has
// bound the APIs and applied the claims, and reports whether the workspace serves EdgePlacements. That can be false in a
// dry run only.
func (w *Workspace) bindExport(ctx context.Context) (served bool, err error) {
	binding, err := w.findBinding(ctx)
	if err != nil {
		return false, err
	}
	result := registration.Unchanged
	if binding == nil {
		result = registration.Created
		if binding, err = w.createBinding(ctx); err != nil {
			return false, err
		}
		if w.DryRun {
			w.Report(registration.Change{Object: binding, Result: result})
			return false, nil
		}
	}
	waiting, cancel := context.WithTimeout(ctx, w.Timeout)
	defer cancel()
	if err := w.awaitBinding(ctx, waiting, binding, isBound); err != nil {
		return false, err
	}
	changed, err := w.acceptClaims(ctx, binding)
	if err != nil {
		return false, err
	}
	if changed && result == registration.Unchanged {
		result = registration.Changed
	}
	if !w.DryRun {
		if err := w.awaitBinding(ctx, waiting, binding, isApplied); err != nil {
			return false, err
		}
	}
	w.Report(registration.Change{Object: binding, Result: result})
	if limited := limitedClaims(binding); len(limited) > 0 {
		w.Info(fmt.Sprintf("The APIBinding %s rejects or limits claims on %s: the hub places no objects that it may not read. Change spec.permissionClaims with `kubectl edit apibinding %s` to place them.",
			binding.Name, strings.Join(limited, ", "), binding.Name))
	}
	return true, w.awaitServed(ctx, waiting)
}

// createBinding creates the APIBinding without claims: kcp shows the claims of the export only to those who have bound it.
func (w *Workspace) createBinding(ctx context.Context) (*apisv1alpha2.APIBinding, error) {
	binding := w.newBinding()
	err := w.writer().Create(ctx, binding)
	switch {
	case apierrors.IsForbidden(err):
		return nil, fmt.Errorf("cannot bind the export %s of the provider workspace %s. If that is the provider workspace of the hub, let its administrator grant you the verb bind on this APIExport, for example with `synchub init --workload-group`; else choose another with --provider-workspace: %w", Export, w.ProviderPath, err)
	case err != nil:
		return nil, fmt.Errorf("cannot create the APIBinding %s: %w", binding.Name, err)
	}
	setBindingKind(binding)
	return binding, nil
}

// acceptClaims accepts the claims of the export in the APIBinding, and reports whether that changed it. kcp writes the
// status of a new APIBinding meanwhile, so conflicts are retried.
func (w *Workspace) acceptClaims(ctx context.Context, binding *apisv1alpha2.APIBinding) (changed bool, err error) {
	err = retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		before := binding.DeepCopy()
		binding.Spec.PermissionClaims = withClaims(before.Spec.PermissionClaims, before.Status.ExportPermissionClaims)
		if changed = !apiequality.Semantic.DeepEqual(before.Spec, binding.Spec); !changed {
			return nil
		}
		err := w.writer().Patch(ctx, binding, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
		if apierrors.IsConflict(err) {
			if err := w.Client.Get(ctx, client.ObjectKeyFromObject(binding), binding); err != nil {
				return err
			}
		}
		return err
	})
	setBindingKind(binding)
	if err != nil {
		return false, fmt.Errorf("cannot accept the claims of the export in the APIBinding %s: %w", binding.Name, err)
	}
	return changed, nil
}

// isBound returns "" if kcp has bound the APIs, or else the missing step.
func isBound(binding *apisv1alpha2.APIBinding) string {
	if binding.Status.Phase == apisv1alpha2.APIBindingPhaseBound {
		return ""
	}
	return "is not bound"
}

// isApplied returns "" if kcp has applied all accepted claims, or else the missing step.
func isApplied(binding *apisv1alpha2.APIBinding) string {
	if unapplied := unappliedClaims(binding); len(unapplied) > 0 {
		return "has unapplied claims on " + strings.Join(unapplied, ", ")
	}
	return ""
}

// awaitBinding waits until the missing step of the APIBinding is "", and sets binding to its last state. waiting ends with
// the timeout, and ctx when the user gives up.
func (w *Workspace) awaitBinding(ctx, waiting context.Context, binding *apisv1alpha2.APIBinding, missing func(*apisv1alpha2.APIBinding) string) error {
	err := registration.WatchObject(waiting, w.Client, binding, func() client.ObjectList { return &apisv1alpha2.APIBindingList{} }, func(current *apisv1alpha2.APIBinding) (bool, error) {
		if current == nil || current.UID != binding.UID {
			return false, errDeleted
		}
		current.DeepCopyInto(binding)
		return missing(binding) == "", nil
	})
	setBindingKind(binding)
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return ctx.Err()
	case waiting.Err() != nil:
		return fmt.Errorf("the APIBinding %s %s after %s:%s\nRun the command again when that is solved", binding.Name, missing(binding), w.Timeout, describeConditions(binding))
	default:
		return fmt.Errorf("cannot wait for the APIBinding %s: %w", binding.Name, err)
	}
}

// describeConditions returns a line for each condition that is not true.
func describeConditions(binding *apisv1alpha2.APIBinding) string {
	var lines strings.Builder
	for _, condition := range binding.Status.Conditions {
		if condition.Status != corev1.ConditionTrue {
			fmt.Fprintf(&lines, "\n%s is %s, %s: %s", condition.Type, condition.Status, condition.Reason, condition.Message)
		}
	}
	if lines.Len() == 0 {
		return " kcp has not said why"
	}
	return lines.String()
}

// awaitServed waits until the workspace serves EdgePlacements.
func (w *Workspace) awaitServed(ctx, waiting context.Context) error {
	var last error
	err := wait.PollUntilContextCancel(waiting, servedInterval, true, func(ctx context.Context) (bool, error) {
		last = w.Client.List(ctx, &edgev2alpha1.EdgePlacementList{}, client.Limit(1))
		if isNotServed(last) || apierrors.IsNotFound(last) || apierrors.IsServiceUnavailable(last) {
			return false, nil
		}
		return last == nil, last
	})
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return ctx.Err()
	case waiting.Err() != nil:
		return fmt.Errorf("the APIBinding is bound, but the workspace did not serve EdgePlacements after %s; run the command again: %w", w.Timeout, last)
	default:
		return fmt.Errorf("cannot list the EdgePlacements of the workspace: %w", err)
	}
}
