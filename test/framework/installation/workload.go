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

package installation

import (
	"context"
	"encoding/json"
	"fmt"

	apisv1alpha2 "github.com/kcp-dev/sdk/apis/apis/v1alpha2"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"

	synchubv1alpha1 "github.com/synchub-dev/synchub/apis/synchub/v1alpha1"
	"github.com/synchub-dev/synchub/test/framework"
)

// APIExports and APIBindings are the resources of kcp.
var (
	APIExports  = apisv1alpha2.SchemeGroupVersion.WithResource("apiexports")
	APIBindings = apisv1alpha2.SchemeGroupVersion.WithResource("apibindings")
)

// Workload is a workload workspace.
type Workload struct {
	installation *Installation
	// Path is the path of the workspace, and Config is an administrator's client config for it.
	Path   string
	Config *rest.Config
}

// NewWorkload creates a workspace below root that binds the workload export and accepts all claims that the export has now. It has the manifests
// before it binds.
func (i *Installation) NewWorkload(ctx context.Context, name string, before ...string) (*Workload, error) {
	if _, err := framework.CreateWorkspace(ctx, i.kcp.Config, "root", name, "inventory"); err != nil {
		return nil, err
	}
	workload := &Workload{installation: i, Path: "root:" + name, Config: i.InWorkspace("root:" + name)}
	for _, manifest := range before {
		if err := framework.Apply(ctx, workload.Config, manifest); err != nil {
			return nil, err
		}
	}
	return workload, workload.Bind(ctx)
}

// Bind binds the workload export, or accepts the claims that it has got since.
func (w *Workload) Bind(ctx context.Context) error {
	object, err := framework.Get(ctx, w.installation.InWorkspace(w.installation.Workspace), APIExports, "", synchubv1alpha1.WorkloadExport)
	if err != nil {
		return err
	}
	var export apisv1alpha2.APIExport
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &export); err != nil {
		return err
	}
	var claims []map[string]any
	for _, claim := range export.Spec.PermissionClaims {
		accepted := map[string]any{
			"group": claim.Group, "resource": claim.Resource, "verbs": claim.Verbs, "state": "Accepted", "selector": map[string]any{"matchAll": true},
		}
		if claim.IdentityHash != "" {
			accepted["identityHash"] = claim.IdentityHash
		}
		claims = append(claims, accepted)
	}
	binding, err := json.Marshal(map[string]any{
		"apiVersion": apisv1alpha2.SchemeGroupVersion.String(), "kind": "APIBinding",
		"metadata": map[string]any{"name": "workload"},
		"spec": map[string]any{
			"reference":        map[string]any{"export": map[string]any{"path": w.installation.Workspace, "name": synchubv1alpha1.WorkloadExport}},
			"permissionClaims": claims,
		},
	})
	if err != nil {
		return fmt.Errorf("cannot write an APIBinding: %w", err)
	}
	return framework.Apply(ctx, w.Config, string(binding))
}
