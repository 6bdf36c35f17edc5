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
	"fmt"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/cmd/kubectl-synchub/registration"
)

// Bind binds the export, accepts its claims, and creates the EdgePlacement. It changes no existing EdgePlacement: if the
// existing one differs from the desired one, Bind returns an error before it writes anything. created is true if there was no
// EdgePlacement.
func (w *Workspace) Bind(ctx context.Context, placement Placement) (created bool, err error) {
	desired := placement.Object()
	existing, err := w.checkExisting(ctx, placement, desired.Name)
	if err != nil {
		return false, err
	}
	served, err := w.Ensure(ctx)
	if err != nil {
		return false, err
	}
	if existing != nil {
		w.Report(registration.Change{Object: existing, Result: registration.Unchanged})
		return false, nil
	}
	if !served {
		w.Info("The EdgePlacement was not sent, because the workspace does not serve EdgePlacements before it binds the export.")
		w.Report(registration.Change{Object: desired, Result: registration.Created})
		return true, nil
	}
	if err := w.Writer().Create(ctx, desired); err != nil {
		return false, fmt.Errorf("cannot create the EdgePlacement %s: %w", desired.Name, err)
	}
	w.Report(registration.Change{Object: desired, Result: registration.Created})
	return true, nil
}

// Objects returns the manifests of the APIBinding and the EdgePlacement as Bind leaves them. It sends no writes.
func (w *Workspace) Objects(ctx context.Context, placement Placement) ([]client.Object, error) {
	desired := placement.Object()
	if _, err := w.checkExisting(ctx, placement, desired.Name); err != nil {
		return nil, err
	}
	binding, err := w.Manifest(ctx)
	if err != nil {
		return nil, err
	}
	return []client.Object{binding, desired}, nil
}

// checkExisting returns the existing EdgePlacement, or nil. It returns an error if the EdgePlacement differs from the
// settings.
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
