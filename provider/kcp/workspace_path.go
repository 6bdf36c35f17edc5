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

package kcp

import (
	"context"
	"errors"
	"fmt"

	"github.com/kcp-dev/logicalcluster/v3"
	tenancyv1alpha1 "github.com/kcp-dev/sdk/apis/tenancy/v1alpha1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
)

// ErrNoWorkspace means that there is no workspace of a path, or that it is not ready yet.
var ErrNoWorkspace = errors.New("there is no such workspace")

var workspaces = tenancyv1alpha1.SchemeGroupVersion.WithResource("workspaces")

// LogicalClusterOf returns the logical cluster of a workspace path, as the Workspace in the parent workspace names it. The
// annotation kcp.io/path and spec.owner of a LogicalCluster prove nothing: an administrator of the workspace may write both (tried
// with kcp v0.31.2). In `root` every user may get Workspaces; elsewhere the hub's user needs that right. The error is
// [ErrNoWorkspace] if there is no such workspace.
func (a *ConfigProvider) LogicalClusterOf(ctx context.Context, path logicalcluster.Path) (logicalcluster.Name, error) {
	parent, name := path.Split()
	if parent.Empty() {
		// A path without a parent is the name of a logical cluster.
		return logicalcluster.Name(name), nil
	}
	client, err := dynamic.NewForConfig(a.WorkspaceConfig(parent.String()))
	if err != nil {
		return "", fmt.Errorf("cannot make a client for the workspace %s: %w", parent, err)
	}
	workspace, err := client.Resource(workspaces).Get(ctx, name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return "", fmt.Errorf("%s: %w", path, ErrNoWorkspace)
	case apierrors.IsForbidden(err):
		return "", fmt.Errorf("the hub's user may not get the Workspace %s in the workspace %s, so the path %s proves nothing; grant that, or give the name of the logical cluster: %w", name, parent, path, err)
	case err != nil:
		return "", fmt.Errorf("cannot get the Workspace %s in the workspace %s: %w", name, parent, err)
	}
	spec, _ := workspace.Object["spec"].(map[string]any)
	cluster, _ := spec["cluster"].(string)
	if cluster == "" {
		return "", fmt.Errorf("%s: %w", path, ErrNoWorkspace)
	}
	return logicalcluster.Name(cluster), nil
}
