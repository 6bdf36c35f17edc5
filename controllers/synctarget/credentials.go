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

package synctarget

import (
	"context"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/log"
	mcreconcile "sigs.k8s.io/multicluster-runtime/pkg/reconcile"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/provider/inventories"
	"github.com/synchub-dev/synchub/provider/ledger"
	"github.com/synchub-dev/synchub/provider/targets"
	"github.com/synchub-dev/synchub/provider/targets/kubeconfig"
)

// blocker is why the hub cannot work with the target. Conditions contain its reason and message.
type blocker struct{ reason, message string }

// connect returns the connection for the credentials of the SyncTarget, or why there is none. If the
// credentials are missing or refused, it closes the existing connection, which uses former credentials.
func (c *Controller) connect(ctx context.Context, inventory cluster.Cluster, syncTarget *edgev2alpha1.SyncTarget, state *syncTargetState) (*targets.Connection, *blocker, error) {
	content, problem, err := c.kubeconfig(ctx, inventory, syncTarget, state)
	if err != nil {
		return nil, nil, err
	}
	if problem != nil {
		c.Registry.Disconnect(syncTarget.UID)
		c.Registry.RemoveTunnel(syncTarget.UID)
		return nil, problem, nil
	}
	var connection *targets.Connection
	if hasTunnel(syncTarget) {
		connection, err = c.Registry.ConnectTunnel(syncTarget.UID, content, limitsOf(syncTarget), namespacesOf(syncTarget)...)
	} else {
		c.Registry.RemoveTunnel(syncTarget.UID)
		connection, err = c.Registry.Connect(syncTarget.UID, content, limitsOf(syncTarget), namespacesOf(syncTarget)...)
	}
	var refused *kubeconfig.InvalidError
	switch {
	case errors.Is(err, targets.ErrNotRunning):
		return nil, nil, err
	case errors.Is(err, targets.ErrNoTunnels):
		return nil, &blocker{ReasonTunnelsDisabled, "The cluster connects by a tunnel, and " + targets.ErrNoTunnels.Error() + "."}, nil
	case hasTunnel(syncTarget) && err != nil:
		return nil, &blocker{ReasonCredentialsRefused, fmt.Sprintf("The Secret has no token for a tunnel: %v.", err)}, nil
	case errors.As(err, &refused):
		return nil, &blocker{ReasonCredentialsRefused, refused.Error() + "."}, nil
	case err != nil:
		return nil, &blocker{ReasonCredentialsRefused, "No connection can be made from the kubeconfig."}, nil //nolint:nilerr // the blocker reports it
	}
	return connection, nil, nil
}

// admitTunnel lets the cluster of a SyncTarget open a tunnel to this replica, while another replica owns the
// SyncTarget. So this replica has a tunnel when it becomes the owner. Without valid credentials no tunnel is
// admitted.
func (c *Controller) admitTunnel(ctx context.Context, request mcreconcile.Request, inventory cluster.Cluster, syncTarget *edgev2alpha1.SyncTarget) error {
	if !hasTunnel(syncTarget) || syncTarget.DeletionTimestamp != nil {
		c.Registry.RemoveTunnel(syncTarget.UID)
		return nil
	}
	c.store.indexSecret(request, syncTarget)
	content, problem, err := c.kubeconfig(ctx, inventory, syncTarget, c.store.stateOf(syncTarget.UID))
	if err != nil {
		return err
	}
	if problem != nil {
		c.Registry.RemoveTunnel(syncTarget.UID)
		return nil
	}
	if known := c.Ledger.Get(syncTarget.UID).Cluster; known != (ledger.Cluster{}) {
		c.Registry.SetExpectedCluster(syncTarget.UID, targets.ExpectedCluster{Cluster: targets.Cluster(known)})
	}
	if err := c.Registry.AdmitTunnel(syncTarget.UID, content); err != nil {
		// The replica that works for the SyncTarget reports it.
		log.FromContext(ctx).V(1).Info("no tunnel is admitted", "syncTarget", syncTarget.Name, "error", err.Error())
	}
	return nil
}

// hasTunnel reports whether the cluster of a SyncTarget dials the hub.
func hasTunnel(syncTarget *edgev2alpha1.SyncTarget) bool {
	return syncTarget.Spec.Connection == edgev2alpha1.ConnectionTunnel
}

func (c *Controller) kubeconfig(ctx context.Context, inventory cluster.Cluster, syncTarget *edgev2alpha1.SyncTarget, state *syncTargetState) ([]byte, *blocker, error) {
	reference := secretReferenceOf(syncTarget)
	if reference == nil {
		return nil, &blocker{ReasonCredentialsMissing, "Set spec.kubeconfigSecretRef to a Secret of this workspace that holds the cluster's kubeconfig."}, nil
	}
	secret, err := c.getSecret(ctx, inventory, syncTarget, reference, state)
	switch {
	case apierrors.IsNotFound(err):
		return nil, &blocker{ReasonCredentialsMissing, fmt.Sprintf("The Secret %s/%s is not there, or the hub does not see it: it needs the label %s=%s, "+
			"and this workspace's APIBinding must accept the claim on secrets.", reference.Namespace, reference.Name, edgev2alpha1.LabelCredential, edgev2alpha1.CredentialKubeconfig)}, nil
	case err != nil:
		return nil, nil, err
	}
	if !kubeconfig.Allows(secret, syncTarget.Name, syncTarget.UID) {
		return nil, &blocker{ReasonCredentialsNotAllowed, notAllowedMessage(secret, syncTarget)}, nil
	}
	kubeconfig := secret.Data[reference.Key]
	if kubeconfig == nil {
		return nil, &blocker{ReasonCredentialsMissing, fmt.Sprintf("The Secret %s has no key %q.", types.NamespacedName{Namespace: secret.Namespace, Name: secret.Name}, reference.Key)}, nil
	}
	return kubeconfig, nil, nil
}

// notAllowedMessage contains the command that allows the SyncTarget to use the Secret, for editors of the
// Secret.
func notAllowedMessage(secret *corev1.Secret, syncTarget *edgev2alpha1.SyncTarget) string {
	return fmt.Sprintf("The Secret %s/%s does not allow this SyncTarget to use it. A user who may change the Secret can allow it with %s.",
		secret.Namespace, secret.Name, kubeconfig.AllowCommand(secret, syncTarget.Name, syncTarget.UID))
}

// getSecret returns the trimmed Secret that reference names. The cache holds Secrets without their content. So
// getSecret reads from kcp when the cache shows another version, and once after each refusal of the credentials by the target. After a
// start it takes the version that the cache shows from a list of all, if there is one.
func (c *Controller) getSecret(ctx context.Context, inventory cluster.Cluster, syncTarget *edgev2alpha1.SyncTarget, reference *edgev2alpha1.SecretReference, state *syncTargetState) (*corev1.Secret, error) {
	key := types.NamespacedName{Namespace: reference.Namespace, Name: reference.Name}
	cached := inventories.SecretMetadata()
	if err := inventory.GetClient().Get(ctx, key, cached); err != nil {
		if apierrors.IsNotFound(err) {
			state.secret = nil
		}
		return nil, err
	}
	if state.secret == nil && c.store.isSecretUnread(syncTarget.UID) {
		state.secret = c.prefetch.take(ctx, inventory, syncTarget)
	}
	known := state.cachedSecret(cached, reference.Key)
	if isRefused := c.store.beginSecretRead(state); known != nil && !isRefused {
		return known, nil
	}
	stored, err := c.readSecret(ctx, inventory, key)
	switch {
	case apierrors.IsNotFound(err):
		state.secret = nil
		return nil, err
	case err != nil && known != nil:
		log.FromContext(ctx).V(1).Info("cannot read the Secret from kcp, the hub uses the version that it read before", "error", err.Error())
		return known, nil
	case err != nil:
		return nil, fmt.Errorf("cannot read the Secret %s: %w", key, err)
	}
	state.secret, state.supersededVersion = trimSecret(stored, reference.Key), cached.ResourceVersion
	return state.secret, nil
}

// cachedSecret returns the Secret as the hub read it from kcp; nil if the cache has a later version.
func (s *syncTargetState) cachedSecret(cached *metav1.PartialObjectMetadata, key string) *corev1.Secret {
	if s.secret == nil || s.secret.UID != cached.UID {
		return nil
	}
	if _, isRead := s.secret.Data[key]; !isRead {
		return nil
	}
	if cached.ResourceVersion == s.secret.ResourceVersion {
		s.supersededVersion = cached.ResourceVersion
	}
	if cached.ResourceVersion != s.supersededVersion {
		return nil
	}
	return s.secret
}

// trimSecret returns the parts of a Secret that the hub needs: the annotation with the allowed SyncTargets, and the value of the
// key, nil if the key is missing. It cuts an oversized value to one byte more than [kubeconfig.MaxSize], which
// suffices to recognize it as too large.
func trimSecret(secret *corev1.Secret, key string) *corev1.Secret {
	kept := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{
		Namespace: secret.Namespace, Name: secret.Name, UID: secret.UID, ResourceVersion: secret.ResourceVersion,
	}}
	if allowed, ok := secret.Annotations[edgev2alpha1.AnnotationAllowedSyncTargets]; ok {
		kept.Annotations = map[string]string{edgev2alpha1.AnnotationAllowedSyncTargets: allowed}
	}
	content := secret.Data[key]
	kept.Data = map[string][]byte{key: slices.Clone(content[:min(len(content), kubeconfig.MaxSize+1)])}
	return kept
}
