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

package transform

import (
	"github.com/kcp-dev/logicalcluster/v3"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/controllers/plan/ownership"
	"github.com/synchub-dev/synchub/controllers/plan/tenancy"
)

// WorkspaceMark names the workload workspace that a Namespace belongs to, on clusters where each workspace has namespaces of its
// own. Users cannot set it: no label or annotation of the hub's domain is synced from their objects.
type WorkspaceMark struct {
	// Hash is the result of [tenancy.WorkspaceHash]; empty for no workspace.
	Hash string
	// Path is the path of the workspace; empty if it is unknown.
	Path string
}

// setOn adds the label and the annotation to a Namespace.
func (m WorkspaceMark) setOn(content map[string]any) {
	if m.Hash == "" {
		return
	}
	setMetadataEntry(content, "labels", edgev2alpha1.LabelWorkspace, m.Hash)
	if m.Path != "" {
		setMetadataEntry(content, "annotations", edgev2alpha1.AnnotationWorkspacePath, m.Path)
	}
}

// workspaceMarkOf returns the mark of a Namespace in a mailbox, if a placement made the Namespace; else zero. A user of the
// mailbox who adds the label to another Namespace has no effect.
func workspaceMarkOf(namespace *unstructured.Unstructured, identity ownership.Identity) WorkspaceMark {
	if namespace.GroupVersionKind() != corev1.SchemeGroupVersion.WithKind("Namespace") || identity.Workspace == "" {
		return WorkspaceMark{}
	}
	hash := tenancy.WorkspaceHash(logicalcluster.Name(identity.Workspace))
	if namespace.GetLabels()[edgev2alpha1.LabelWorkspace] != hash {
		return WorkspaceMark{}
	}
	return WorkspaceMark{hash, namespace.GetAnnotations()[edgev2alpha1.AnnotationWorkspacePath]}
}
