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

package framework

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	corev1alpha1 "github.com/kcp-dev/sdk/apis/core/v1alpha1"
	tenancyv1alpha1 "github.com/kcp-dev/sdk/apis/tenancy/v1alpha1"
	kcpclient "github.com/kcp-dev/sdk/client/clientset/versioned"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
)

const (
	pollEvery      = 100 * time.Millisecond
	workspaceLimit = 2 * time.Minute
	// firstRetry is when to have kcp try again to initialize a workspace. kcp takes a second or two.
	firstRetry = 10 * time.Second
)

// InWorkspace returns a copy of config for one workspace, given by path or logical cluster name.
// The Host of config must have no workspace in it.
func InWorkspace(config *rest.Config, path string) *rest.Config {
	config = rest.CopyConfig(config)
	config.Host += "/clusters/" + path
	return config
}

// CreateWorkspace creates a workspace unless it exists, and returns it when it is Ready. The Host of config must have no
// workspace in it. workspaceType is a name ("universal") or a path with a name ("root:synchub:mailbox"). With an empty type
// kcp chooses.
func CreateWorkspace(ctx context.Context, config *rest.Config, parentPath, name, workspaceType string) (*tenancyv1alpha1.Workspace, error) {
	client, err := kcpclient.NewForConfig(InWorkspace(config, parentPath))
	if err != nil {
		return nil, fmt.Errorf("make a client for workspace %s: %w", parentPath, err)
	}
	workspaces := client.TenancyV1alpha1().Workspaces()
	workspace := &tenancyv1alpha1.Workspace{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       tenancyv1alpha1.WorkspaceSpec{Type: typeReference(workspaceType)},
	}
	// A parent that has just become Ready may not serve workspaces yet, and kcp may not have observed a type that was just created.
	err = wait.PollUntilContextTimeout(ctx, pollEvery, workspaceLimit, true, func(ctx context.Context) (bool, error) {
		_, err := workspaces.Create(ctx, workspace, metav1.CreateOptions{})
		if apierrors.IsNotFound(err) || isMissingType(err) {
			return false, nil
		}
		return true, err
	})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return nil, fmt.Errorf("create workspace %s:%s: %w", parentPath, name, err)
	}
	retry := newInitializationRetry()
	err = wait.PollUntilContextTimeout(ctx, pollEvery, workspaceLimit, true, func(ctx context.Context) (bool, error) {
		var err error
		workspace, err = workspaces.Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return false, err
		}
		retry.ifDue(ctx, config, workspace)
		return workspace.Status.Phase == corev1alpha1.LogicalClusterPhaseReady, nil
	})
	if err != nil {
		return nil, fmt.Errorf("wait for workspace %s:%s to be Ready: %w%s", parentPath, name, errors.Join(err, retry.err), explain(workspace))
	}
	return workspace, nil
}

// initializationRetry has kcp try again to initialize a workspace. After a conflict on a busy kcp, its initializer waits up to 1,000 seconds
// (see initializationRetries in controllers/mailbox, which does the same for mailboxes).
type initializationRetry struct {
	due   time.Time
	delay time.Duration
	// err is the error of the last attempt.
	err error
}

func newInitializationRetry() *initializationRetry {
	return &initializationRetry{due: time.Now().Add(firstRetry), delay: firstRetry}
}

// ifDue makes an attempt for a workspace that has been initialized for firstRetry, and then each time after twice the delay.
func (r *initializationRetry) ifDue(ctx context.Context, config *rest.Config, workspace *tenancyv1alpha1.Workspace) {
	if workspace.Status.Phase == corev1alpha1.LogicalClusterPhaseInitializing && workspace.Spec.Type != nil && !time.Now().Before(r.due) {
		r.delay *= 2
		r.due = time.Now().Add(r.delay)
		r.err = retryInitialization(ctx, config, workspace)
	}
}

// retryInitialization changes the type of a workspace or, without the right to do so, the APIBindings in it: kcp's initializer processes
// these events at once.
func retryInitialization(ctx context.Context, config *rest.Config, workspace *tenancyv1alpha1.Workspace) error {
	patch := fmt.Appendf(nil, `{"metadata": {"annotations": {"tests.synchub.dev/initialization-retried": %q}}}`, time.Now().Format(time.RFC3339Nano))
	typeClient, err := kcpclient.NewForConfig(InWorkspace(config, workspace.Spec.Type.Path))
	if err != nil {
		return err
	}
	name := strings.ToLower(string(workspace.Spec.Type.Name))
	if _, err = typeClient.TenancyV1alpha1().WorkspaceTypes().Patch(ctx, name, types.MergePatchType, patch, metav1.PatchOptions{}); !apierrors.IsForbidden(err) {
		return err
	}
	content, err := kcpclient.NewForConfig(InWorkspace(config, workspace.Spec.Cluster))
	if err != nil {
		return err
	}
	bindings := content.ApisV1alpha2().APIBindings()
	list, err := bindings.List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("list the APIBindings: %w", err)
	}
	for _, binding := range list.Items {
		if _, err := bindings.Patch(ctx, binding.Name, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
			return fmt.Errorf("change APIBinding %s: %w", binding.Name, err)
		}
	}
	return nil
}

// isMissingType reports whether kcp's admission refused a workspace because it does not know its type.
func isMissingType(err error) bool {
	return apierrors.IsForbidden(err) && strings.Contains(err.Error(), "workspacetypes.tenancy.kcp.io") && strings.HasSuffix(err.Error(), "not found")
}

func typeReference(workspaceType string) *tenancyv1alpha1.WorkspaceTypeReference {
	if workspaceType == "" {
		return nil
	}
	reference := &tenancyv1alpha1.WorkspaceTypeReference{Name: tenancyv1alpha1.WorkspaceTypeName(workspaceType), Path: "root"}
	if colon := strings.LastIndex(workspaceType, ":"); colon >= 0 {
		reference.Path = workspaceType[:colon]
		reference.Name = tenancyv1alpha1.WorkspaceTypeName(workspaceType[colon+1:])
	}
	return reference
}

// explain describes the phase of a workspace and the conditions that are not True.
func explain(workspace *tenancyv1alpha1.Workspace) string {
	if workspace == nil {
		return ""
	}
	text := []string{fmt.Sprintf("phase %q, initializers %v", workspace.Status.Phase, workspace.Status.Initializers)}
	for _, condition := range workspace.Status.Conditions {
		if condition.Status != corev1.ConditionTrue {
			text = append(text, fmt.Sprintf("%s: %s: %s", condition.Type, condition.Reason, condition.Message))
		}
	}
	return " (" + strings.Join(text, "; ") + ")"
}
