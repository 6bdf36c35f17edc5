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

package fleet

import (
	"context"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/synchub-dev/synchub/test/framework"
)

var (
	apiExports  = schema.GroupVersionResource{Group: "apis.kcp.io", Version: "v1alpha2", Resource: "apiexports"}
	apiSchemas  = schema.GroupVersionResource{Group: "apis.kcp.io", Version: "v1alpha1", Resource: "apiresourceschemas"}
	exportOfAll = "apis"
)

// Serve lets all members that are added from now on serve an API that an export of another workspace offers, such as Deployments, which
// kcp lacks.
func (f *Fleet) Serve(ctx context.Context, workspace, export, group, resource string) error {
	found, err := framework.Get(ctx, f.kcp.Workspace(workspace), apiExports, "", export)
	if err != nil {
		return err
	}
	offered, _, _ := unstructured.NestedSlice(found.Object, "spec", "resources")
	for _, item := range offered {
		of, _ := item.(map[string]any)
		if of["group"] != group || of["name"] != resource {
			continue
		}
		served, err := framework.Get(ctx, f.kcp.Workspace(workspace), apiSchemas, "", fmt.Sprint(of["schema"]))
		if err != nil {
			return err
		}
		return f.serve(ctx, served, group, resource)
	}
	return fmt.Errorf("the export %s of %s does not offer %s.%s", export, workspace, resource, group)
}

func (f *Fleet) serve(ctx context.Context, served *unstructured.Unstructured, group, resource string) error {
	name := "fleet." + resource + "." + group
	copied := map[string]any{
		"apiVersion": served.GetAPIVersion(), "kind": served.GetKind(), "metadata": map[string]any{"name": name}, "spec": served.Object["spec"],
	}
	export := map[string]any{
		"apiVersion": "apis.kcp.io/v1alpha2", "kind": "APIExport", "metadata": map[string]any{"name": exportOfAll},
		"spec": map[string]any{"resources": []any{map[string]any{"group": group, "name": resource, "schema": name, "storage": map[string]any{"crd": map[string]any{}}}}},
	}
	members := map[string]any{
		"apiVersion": "tenancy.kcp.io/v1alpha1", "kind": "WorkspaceType", "metadata": map[string]any{"name": "target"},
		"spec": map[string]any{"defaultAPIBindings": []any{map[string]any{"path": f.parent, "export": exportOfAll}}},
	}
	var manifests []string
	for _, object := range []map[string]any{copied, export, members} {
		manifest, err := yaml.Marshal(object)
		if err != nil {
			return err
		}
		manifests = append(manifests, string(manifest))
	}
	return framework.Apply(ctx, f.kcp.Workspace(f.parent), strings.Join(manifests, "\n---\n"))
}
