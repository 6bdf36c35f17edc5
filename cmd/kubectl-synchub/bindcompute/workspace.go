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

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	synchubv1alpha1 "github.com/synchub-dev/synchub/apis/synchub/v1alpha1"
	"github.com/synchub-dev/synchub/cmd/kubectl-synchub/exportbinding"
)

// Export is the APIExport that workload workspaces bind, and the name of a new APIBinding.
const Export = synchubv1alpha1.WorkloadExport

// Workspace is a workspace that is, or becomes, a workload workspace.
type Workspace struct{ exportbinding.Binder }

// NewWorkspace returns a workspace. The Export of the binder is set here.
func NewWorkspace(binder exportbinding.Binder) *Workspace {
	binder.Export = exportbinding.Workload()
	return &Workspace{binder}
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
	return placement, nil
}

// isNotServed reports whether the server does not serve the API of a list or a new object.
func isNotServed(err error) bool {
	return meta.IsNoMatchError(err)
}
