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
	"time"

	apisv1alpha2 "github.com/kcp-dev/sdk/apis/apis/v1alpha2"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/provider/bootstrap"
	"github.com/synchub-dev/synchub/provider/registration"
)

// Export is the APIExport that workload workspaces bind, and the name of a new APIBinding.
const Export = bootstrap.WorkloadExport

// Workspace is a workspace that is, or becomes, a workload workspace.
type Workspace struct {
	// Client has the user's credentials. DryRun is true if the server must store nothing.
	Client client.WithWatch
	DryRun bool
	// ProviderPath is the path of the workspace with the export. Provider reads there. The user may lack that right.
	ProviderPath string
	Provider     client.Reader
	// Timeout bounds each wait for kcp or the hub.
	Timeout time.Duration
	// Report is called for each object with the effect on it, and Info for each message.
	Report func(registration.Change)
	Info   func(string)
}

// writer returns the client for writes. In a dry run the server stores nothing.
func (w *Workspace) writer() client.Client {
	if w.DryRun {
		return client.NewDryRunClient(w.Client)
	}
	return w.Client
}

// findBinding returns the APIBinding of the export, or nil if there is none. It returns an error if the workspace binds
// the export of another provider workspace, or if an APIBinding of another export has the name.
func (w *Workspace) findBinding(ctx context.Context) (*apisv1alpha2.APIBinding, error) {
	var list apisv1alpha2.APIBindingList
	if err := w.Client.List(ctx, &list); err != nil {
		if meta.IsNoMatchError(err) {
			return nil, fmt.Errorf("the current context leads to no workspace of kcp: it serves no APIBindings. Choose another with --context or --workspace: %w", err)
		}
		return nil, fmt.Errorf("cannot list the APIBindings of the workspace: %w", err)
	}
	var conflict *apisv1alpha2.APIBinding
	for i := range list.Items {
		binding := &list.Items[i]
		export := binding.Spec.Reference.Export
		switch {
		case export != nil && export.Name == Export && export.Path == w.ProviderPath:
			if binding.DeletionTimestamp != nil {
				return nil, fmt.Errorf("the APIBinding %s is being deleted: wait with `kubectl wait --for=delete apibinding/%s`, and run the command again", binding.Name, binding.Name)
			}
			return binding, nil
		case binding.Name == Export || export != nil && export.Name == Export:
			conflict = binding
		}
	}
	if conflict == nil {
		return nil, nil //nolint:nilnil // a missing APIBinding is no error
	}
	return nil, w.describeConflict(conflict)
}

func (w *Workspace) describeConflict(binding *apisv1alpha2.APIBinding) error {
	export := binding.Spec.Reference.Export
	if export == nil {
		export = &apisv1alpha2.ExportBindingReference{}
	}
	if export.Name == Export {
		return fmt.Errorf("the APIBinding %s binds the export of the provider workspace %s, not of %s: choose it with --provider-workspace %s", binding.Name, export.Path, w.ProviderPath, export.Path)
	}
	return fmt.Errorf("the APIBinding %s binds the export %s of %s, and its name is needed for the export of %s: delete it, and run the command again", binding.Name, export.Name, export.Path, w.ProviderPath)
}

// getPlacement returns an EdgePlacement, or nil if it does not exist or the workspace serves no EdgePlacements.
func (w *Workspace) getPlacement(ctx context.Context, name string) (*edgev2alpha1.EdgePlacement, error) {
	placement := &edgev2alpha1.EdgePlacement{}
	err := w.Client.Get(ctx, types.NamespacedName{Name: name}, placement)
	switch {
	case isNotServed(err) || apierrors.IsNotFound(err):
		return nil, nil //nolint:nilnil // a missing EdgePlacement is no error
	case err != nil:
		return nil, fmt.Errorf("cannot get the EdgePlacement %s: %w", name, err)
	}
	setPlacementKind(placement)
	return placement, nil
}

// isNotServed reports whether the server does not serve the API of a list or a new object.
func isNotServed(err error) bool {
	return meta.IsNoMatchError(err)
}

// Decoding into a typed object clears its kind, which printers need.
func setPlacementKind(placement *edgev2alpha1.EdgePlacement) {
	placement.SetGroupVersionKind(edgev2alpha1.GroupVersion.WithKind("EdgePlacement"))
}

func setBindingKind(binding *apisv1alpha2.APIBinding) {
	binding.SetGroupVersionKind(apisv1alpha2.SchemeGroupVersion.WithKind("APIBinding"))
}
