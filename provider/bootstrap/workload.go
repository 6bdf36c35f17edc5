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
	"fmt"

	apisv1alpha2 "github.com/kcp-dev/sdk/apis/apis/v1alpha2"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// WorkloadClaims returns the resources that the workload export claims before anything is published. Run adds the claims, and
// the hub keeps them.
func WorkloadClaims() []schema.GroupResource {
	return []schema.GroupResource{namespaces, events, logicalClusters}
}

// HasWorkloadExport reports whether the provider workspace, which the reader reads, has the workload export. Without the
// export there are no workload workspaces, so nothing can be placed; [NoWorkloadExportMessage] says what to do. The error may
// be that the user lacks the rights.
func HasWorkloadExport(ctx context.Context, provider client.Reader) (bool, error) {
	err := provider.Get(ctx, types.NamespacedName{Name: WorkloadExport}, &apisv1alpha2.APIExport{})
	switch {
	case apierrors.IsNotFound(err):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("cannot get the APIExport %s: %w", WorkloadExport, err)
	default:
		return true, nil
	}
}

// NoWorkloadExportMessage says that placement is not available in the provider workspace, and what an operator must do.
func NoWorkloadExportMessage(workspace string) string {
	return fmt.Sprintf("placement is not available: the provider workspace %s has no APIExport %s, since an older release prepared it; "+
		"run `synchub init --provider-workspace %s --hub-user <user>` again as its administrator", workspace, WorkloadExport, workspace)
}
