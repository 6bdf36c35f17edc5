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
	"slices"

	"github.com/kcp-dev/logicalcluster/v3"
	corev1alpha1 "github.com/kcp-dev/sdk/apis/core/v1alpha1"
	tenancyv1alpha1 "github.com/kcp-dev/sdk/apis/tenancy/v1alpha1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	synchubv1alpha1 "github.com/synchub-dev/synchub/apis/synchub/v1alpha1"
)

// universalType is kcp's workspace type for users: it binds kcp's tenancy and topology APIs, and allows any children.
var universalType = tenancyv1alpha1.WorkspaceTypeReference{Name: "universal", Path: "root"}

// ensureWorkspaceType creates the workspace type that makes every mailbox bind the mailbox export and accept all claims, now
// and later. A mailbox of a type that extends universal costs kcp some 40 % more. The type therefore extends universal only
// if the provider workspace restricts the types of its children. No mailbox can have child workspaces, regardless of the APIs
// that its users bind; this includes mailboxes from a time when the type allowed children.
func (s *bootstrapper) ensureWorkspaceType(ctx context.Context) error {
	extends, err := s.restrictsChildTypes(ctx)
	if err != nil {
		return err
	}
	workspaceType := &tenancyv1alpha1.WorkspaceType{ObjectMeta: metav1.ObjectMeta{Name: synchubv1alpha1.WorkspaceType}}
	return createOrUpdate(ctx, s, "WorkspaceType", workspaceType, func(workspaceType *tenancyv1alpha1.WorkspaceType) {
		maintain := tenancyv1alpha1.APIBindingLifecycleModeMaintain
		spec := &workspaceType.Spec
		if extends {
			spec.Extend.With = appendIfMissing(spec.Extend.With, universalType)
		} else {
			spec.Extend.With = slices.DeleteFunc(spec.Extend.With, func(base tenancyv1alpha1.WorkspaceTypeReference) bool { return base == universalType })
		}
		spec.LimitAllowedChildren = &tenancyv1alpha1.WorkspaceTypeSelector{None: true}
		spec.DefaultAPIBindings = appendIfMissing(spec.DefaultAPIBindings, tenancyv1alpha1.APIExportReference{Path: s.Workspace, Export: synchubv1alpha1.MailboxExport})
		spec.DefaultAPIBindingLifecycle = &maintain
	})
}

// restrictsChildTypes reports whether the type of the provider workspace restricts the types of children, as kcp's type
// organization does. A type that this user cannot read counts as such a type.
func (s *bootstrapper) restrictsChildTypes(ctx context.Context) (bool, error) {
	if s.isMissing {
		return false, nil // it would be a universal one
	}
	var self corev1alpha1.LogicalCluster
	if err := s.client.Get(ctx, types.NamespacedName{Name: corev1alpha1.LogicalClusterName}, &self); err != nil {
		return false, describeError(err, "get", "the LogicalCluster of", s.Workspace)
	}
	open, seen := []string{self.Annotations[tenancyv1alpha1.LogicalClusterTypeAnnotationKey]}, map[string]bool{}
	for len(open) > 0 {
		next := open[0]
		open = open[1:]
		if seen[next] {
			continue
		}
		seen[next] = true
		parent, err := s.getWorkspaceType(ctx, next)
		if apierrors.IsForbidden(err) {
			return true, nil
		}
		if err != nil {
			return false, describeError(err, "get", "the synchubv1alpha1.WorkspaceType "+next+", which is the type of", s.Workspace)
		}
		if limit := parent.Spec.LimitAllowedChildren; limit != nil && len(limit.Types) > 0 {
			return true, nil
		}
		for _, base := range parent.Spec.Extend.With {
			open = append(open, base.Path+":"+string(base.Name))
		}
	}
	return false, nil
}

// getWorkspaceType reads a type, given as the path of its workspace and its name.
func (s *bootstrapper) getWorkspaceType(ctx context.Context, pathAndName string) (*tenancyv1alpha1.WorkspaceType, error) {
	workspace, name := logicalcluster.NewPath(pathAndName).Split()
	reader, err := client.New(s.Config(workspace.String()), client.Options{Scheme: Scheme()})
	if err != nil {
		return nil, err
	}
	var workspaceType tenancyv1alpha1.WorkspaceType
	return &workspaceType, reader.Get(ctx, types.NamespacedName{Name: name}, &workspaceType)
}
