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
	"encoding/json"
	"fmt"
	"time"

	"github.com/kcp-dev/logicalcluster/v3"
	apisv1alpha2 "github.com/kcp-dev/sdk/apis/apis/v1alpha2"
	conditionsv1alpha1 "github.com/kcp-dev/sdk/apis/third_party/conditions/apis/conditions/v1alpha1"
	"github.com/kcp-dev/sdk/apis/third_party/conditions/util/conditions"
	kcpapisclient "github.com/kcp-dev/sdk/client/clientset/versioned/cluster/typed/apis/v1alpha2"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/synchub-dev/synchub/provider/redact"
)

const (
	// AnnotationInitializationRetried is the time at which the hub had kcp try again to initialize a mailbox, on the APIBinding in the
	// mailbox, or on the APIExport if there is no APIBinding.
	AnnotationInitializationRetried = "synchub.dev/initialization-retried"
	// maxBindings bounds how many APIBindings of a mailbox the hub reads. A new mailbox has one, and a few of the type universal.
	maxBindings = 100
)

// RetryInitialization has kcp try again to initialize a mailbox: by an event of the APIBinding of the export in it or, if kcp has not
// created that, of the APIExport, after which kcp creates it (lifecycle Maintain of the workspace type). The client has the hub's own rights:
// the hub's user owns the mailbox, and kcp serves it to its owner while it initializes it. missing is kcp's message about what the APIBinding
// lacks; empty if kcp has none.
func RetryInitialization(ctx context.Context, client kcpapisclient.ApisV1alpha2ClusterScoper, mailbox logicalcluster.Name, export apisv1alpha2.ExportBindingReference, now time.Time) (missing string, err error) {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": map[string]string{
		AnnotationInitializationRetried: now.UTC().Format(time.RFC3339),
	}}})
	if err != nil {
		return "", err
	}
	bindings := client.Cluster(mailbox.Path()).APIBindings()
	list, err := bindings.List(ctx, metav1.ListOptions{Limit: maxBindings})
	if err != nil {
		return "", fmt.Errorf("cannot list the APIBindings of the mailbox: %w", err)
	}
	for _, binding := range list.Items {
		if reference := binding.Spec.Reference.Export; reference != nil && *reference == export {
			_, err := bindings.Patch(ctx, binding.Name, types.MergePatchType, patch, metav1.PatchOptions{})
			return missingForBinding(&binding), err
		}
	}
	_, err = client.Cluster(logicalcluster.NewPath(export.Path)).APIExports().Patch(ctx, export.Name, types.MergePatchType, patch, metav1.PatchOptions{})
	return "", err
}

// missingForBinding returns kcp's message about why it does not count an APIBinding as bound, in one line; empty if there is none.
func missingForBinding(binding *apisv1alpha2.APIBinding) string {
	for _, name := range []conditionsv1alpha1.ConditionType{apisv1alpha2.InitialBindingCompleted, apisv1alpha2.PermissionClaimsApplied} {
		if condition := conditions.Get(binding, name); condition != nil && condition.Status != corev1.ConditionTrue {
			return redact.Text(condition.Message)
		}
	}
	return ""
}
