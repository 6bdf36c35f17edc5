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

package cli

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// WorkspacesResource is the resource of a workspace's children.
var WorkspacesResource = schema.GroupVersionResource{Group: "tenancy.kcp.io", Version: "v1alpha1", Resource: "workspaces"}

// ChildrenSuffix ends a path that names the children of a workspace.
const ChildrenSuffix = ":*"

// maxChildren is the number of children that a command reads for one path with a star.
const maxChildren = 20

// Children returns the paths of the first children of a workspace, and the number of further ones.
func (o *WorkspaceOptions) Children(ctx context.Context, parent string) (paths []string, more int, err error) {
	reader, err := o.ReaderIn(parent)
	if err != nil {
		return nil, 0, err
	}
	list, err := reader.Objects.Resource(WorkspacesResource).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, 0, err
	}
	for i := range list.Items {
		paths = append(paths, parent+":"+list.Items[i].GetName())
	}
	if more = len(paths) - maxChildren; more > 0 {
		return paths[:maxChildren], more, nil
	}
	return paths, 0, nil
}
