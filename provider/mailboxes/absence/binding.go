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

package absence

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/kcp-dev/logicalcluster/v3"
	apisv1alpha2 "github.com/kcp-dev/sdk/apis/apis/v1alpha2"
	corev1alpha1 "github.com/kcp-dev/sdk/apis/core/v1alpha1"
	tenancyv1alpha1 "github.com/kcp-dev/sdk/apis/tenancy/v1alpha1"
	"github.com/kcp-dev/sdk/apis/third_party/conditions/util/conditions"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
)

var (
	bindingsResource        = apisv1alpha2.SchemeGroupVersion.WithResource("apibindings")
	logicalClustersResource = corev1alpha1.SchemeGroupVersion.WithResource("logicalclusters")
)

// boundMailbox is a mailbox that is ready, with its binding as the server returned it.
type boundMailbox struct {
	MailboxEndpoint
	binding *apisv1alpha2.APIBinding
}

var (
	errNoEndpoint = errors.New("no endpoint, or more than one, shows the mailbox")
	// errRebound is the error for a mailbox that was bound again. kcp deletes all objects of the export's own APIs, the
	// configs too, together with a binding, so no missing object counts as deleted.
	errRebound = errors.New("the mailbox was bound again, after kcp had deleted the objects of its former binding")
)

// readBoundMailbox gets the mailbox's binding. It fails unless the mailbox is bound and ready, and neither is being deleted.
func (v *Verifier) readBoundMailbox(ctx context.Context, mailbox logicalcluster.Name) (*boundMailbox, error) {
	endpoint, ok := v.cache.EndpointOf(mailbox)
	if !ok {
		return nil, errNoEndpoint
	}
	var binding apisv1alpha2.APIBinding
	if err := getInto(ctx, endpoint.Client, bindingsResource, endpoint.Binding, &binding); err != nil {
		return nil, err
	}
	var logicalCluster corev1alpha1.LogicalCluster
	if err := getInto(ctx, endpoint.Client, logicalClustersResource, corev1alpha1.LogicalClusterName, &logicalCluster); err != nil {
		return nil, err
	}
	switch {
	case binding.DeletionTimestamp != nil:
		return nil, fmt.Errorf("the binding %s is being deleted", binding.Name)
	case binding.Status.Phase != apisv1alpha2.APIBindingPhaseBound && !isIncomplete(&binding):
		return nil, fmt.Errorf("the binding %s is in phase %q", binding.Name, binding.Status.Phase)
	case logicalCluster.DeletionTimestamp != nil:
		return nil, fmt.Errorf("the mailbox is being deleted")
	case logicalCluster.Status.Phase != corev1alpha1.LogicalClusterPhaseReady:
		return nil, fmt.Errorf("the mailbox is in phase %q", logicalCluster.Status.Phase)
	case !endpoint.BindLater && isRebound(&binding, &logicalCluster):
		return nil, errRebound
	}
	return &boundMailbox{MailboxEndpoint: endpoint, binding: &binding}, nil
}

// isIncomplete reports whether kcp has bound all the APIs that it can bind of a new binding. kcp keeps the binding in phase
// Binding as long as the name of an API is taken in the mailbox, possibly forever. It serves the bound APIs as with any other
// binding.
func isIncomplete(binding *apisv1alpha2.APIBinding) bool {
	return binding.Status.Phase == apisv1alpha2.APIBindingPhaseBinding &&
		conditions.GetReason(binding, apisv1alpha2.BindingUpToDate) == apisv1alpha2.NamingConflictsReason
}

// isRebound reports whether the binding is not the one that the mailbox was created with: kcp binds the exports of a
// workspace's type before it marks the workspace as initialized.
func isRebound(binding *apisv1alpha2.APIBinding, logicalCluster *corev1alpha1.LogicalCluster) bool {
	initialized := conditions.Get(logicalCluster, tenancyv1alpha1.WorkspaceInitialized)
	return initialized != nil && initialized.Status == corev1.ConditionTrue && binding.CreationTimestamp.After(initialized.LastTransitionTime.Time)
}

// checkUnchanged fails if the mailbox's binding has changed, or another endpoint shows it now.
func (v *Verifier) checkUnchanged(ctx context.Context, mailbox logicalcluster.Name, before *boundMailbox) error {
	now, err := v.readBoundMailbox(ctx, mailbox)
	if err == nil && (now.Endpoint != before.Endpoint || now.binding.ResourceVersion != before.binding.ResourceVersion) {
		err = fmt.Errorf("the binding %s changed during the check", before.binding.Name)
	}
	return err
}

func getInto(ctx context.Context, client dynamic.Interface, resource schema.GroupVersionResource, name string, into any) error {
	found, err := client.Resource(resource).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("cannot get %s %s: %w", resource.Resource, name, err)
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(found.Object, into); err != nil {
		return fmt.Errorf("cannot read %s %s: %w", resource.Resource, name, err)
	}
	return nil
}

// servesResource reports whether a mailbox serves a resource to the hub: it is bound with the export, or its claim is accepted
// and applied.
func servesResource(binding *apisv1alpha2.APIBinding, resource schema.GroupResource) bool {
	if isBound(binding, resource) {
		return true
	}
	// The list of applied claims contains a claim again before all its objects are back. The condition becomes True only
	// afterwards (tried).
	if !conditions.IsTrue(binding, apisv1alpha2.PermissionClaimsApplied) || appliedClaim(binding, resource) == nil {
		return false
	}
	accepted := false
	for _, claim := range binding.Spec.PermissionClaims {
		if claim.Group == resource.Group && claim.Resource == resource.Resource {
			accepted = claim.State == apisv1alpha2.ClaimAccepted
		}
	}
	return accepted
}

// isBound reports whether a resource is one of the export's own.
func isBound(binding *apisv1alpha2.APIBinding, resource schema.GroupResource) bool {
	return slices.ContainsFunc(binding.Status.BoundResources, func(bound apisv1alpha2.BoundAPIResource) bool {
		return bound.Group == resource.Group && bound.Resource == resource.Resource
	})
}

// appliedClaim returns the applied claim of a resource; nil if there is none, or if the resource is bound with the export.
func appliedClaim(binding *apisv1alpha2.APIBinding, resource schema.GroupResource) *apisv1alpha2.ScopedPermissionClaim {
	if isBound(binding, resource) {
		return nil
	}
	for i := range binding.Status.AppliedPermissionClaims {
		claim := &binding.Status.AppliedPermissionClaims[i]
		if claim.Group == resource.Group && claim.Resource == resource.Resource {
			return claim
		}
	}
	return nil
}

// claimSelector returns the label selector of a claim; "" selects all objects.
func claimSelector(claim *apisv1alpha2.ScopedPermissionClaim) (string, error) {
	if claim.Selector.MatchAll {
		return "", nil
	}
	selector, err := metav1.LabelSelectorAsSelector(&claim.Selector.LabelSelector)
	if err != nil {
		return "", fmt.Errorf("cannot read the selector of the claim on %s: %w", claim.Resource, err)
	}
	return selector.String(), nil
}
