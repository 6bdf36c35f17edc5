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

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/log"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/provider/credentials"
	"github.com/synchub-dev/synchub/provider/requests"
	"github.com/synchub-dev/synchub/provider/targets"
)

// credentialsError is why there are no credentials to connect with; its reason is for a condition.
type credentialsError struct{ reason, message string }

func (p *credentialsError) Error() string { return p.message }

// connect returns the connection for the SyncTarget's credentials, or why there is none. Credentials that are missing or
// refused end the connection that there was: its own are not the SyncTarget's any more.
func (c *Controller) connect(ctx context.Context, inventory cluster.Cluster, syncTarget *edgev2alpha1.SyncTarget, memory *memory) (*targets.Connection, *credentialsError, error) {
	kubeconfig, problem := c.credentials(ctx, inventory, syncTarget, memory)
	if problem != nil {
		c.registry.Disconnect(syncTarget.UID)
		return nil, problem, nil
	}
	connection, err := c.registry.Connect(syncTarget.UID, kubeconfig, limitsOf(syncTarget), namespacesOf(syncTarget)...)
	var refused *targets.RefusedError
	switch {
	case errors.Is(err, targets.ErrNotLeading):
		return nil, nil, err
	case errors.As(err, &refused):
		return nil, &credentialsError{ReasonCredentialsRefused, refused.Error() + "."}, nil
	case err != nil:
		return nil, &credentialsError{ReasonCredentialsRefused, "No connection can be made from the kubeconfig."}, nil
	}
	return connection, nil, nil
}

func (c *Controller) credentials(ctx context.Context, inventory cluster.Cluster, syncTarget *edgev2alpha1.SyncTarget, memory *memory) ([]byte, *credentialsError) {
	reference := credentialsOf(syncTarget)
	if reference == nil {
		return nil, &credentialsError{ReasonCredentialsMissing, "Set spec.kubeconfigSecretRef to a Secret of this workspace that holds the cluster's kubeconfig."}
	}
	key := types.NamespacedName{Namespace: reference.Namespace, Name: reference.Name}
	secret, err := c.secret(ctx, inventory, key, memory)
	if err != nil {
		return nil, &credentialsError{ReasonCredentialsMissing, fmt.Sprintf("The Secret %s is not there, or the hub does not see it: it needs the label %s=%s, "+
			"and this workspace's APIBinding must accept the claim on secrets.", key, edgev2alpha1.LabelCredential, edgev2alpha1.CredentialKubeconfig)}
	}
	if !credentials.Allows(secret, syncTarget.Name, syncTarget.UID) {
		return nil, &credentialsError{ReasonCredentialsNotAllowed, notAllowed(secret, syncTarget)}
	}
	kubeconfig, ok := secret.Data[reference.Key]
	if !ok {
		return nil, &credentialsError{ReasonCredentialsMissing, fmt.Sprintf("The Secret %s has no key %q.", key, reference.Key)}
	}
	return kubeconfig, nil
}

// notAllowed says how somebody who may change the Secret lets the SyncTarget use it.
func notAllowed(secret *corev1.Secret, syncTarget *edgev2alpha1.SyncTarget) string {
	return fmt.Sprintf("The Secret %s/%s does not say that this SyncTarget may use it. Whoever may change the Secret, and means to, says so with %s.",
		secret.Namespace, secret.Name, credentials.Command(secret, syncTarget.Name, syncTarget.UID))
}

// secret returns a Secret from the cache or, once after each time that its content was refused by the target, from kcp.
func (c *Controller) secret(ctx context.Context, inventory cluster.Cluster, key types.NamespacedName, memory *memory) (*corev1.Secret, error) {
	cached := &corev1.Secret{}
	if err := inventory.GetClient().Get(ctx, key, cached); err != nil {
		memory.reread = nil
		return nil, err
	}
	if c.takeDoubt(memory) {
		memory.reread, memory.passed = nil, cached.ResourceVersion
		stored, err := c.readSecret(ctx, inventory, key)
		switch {
		case apierrors.IsNotFound(err):
			return nil, err
		case err != nil:
			log.FromContext(ctx).V(1).Info("cannot read the Secret from kcp, what the cache has is used", "error", err.Error())
		default:
			memory.reread = stored
		}
	}
	if stored := memory.reread; stored != nil && stored.UID == cached.UID && memory.passed == cached.ResourceVersion {
		return stored, nil
	}
	memory.reread = nil
	return cached, nil
}

// readSecret reads from kcp: what a cluster calls its API reader is its cache.
func readSecret(ctx context.Context, inventory cluster.Cluster, key types.NamespacedName) (*corev1.Secret, error) {
	reader, err := client.New(inventory.GetConfig(), client.Options{HTTPClient: inventory.GetHTTPClient(), Scheme: inventory.GetScheme(), Mapper: inventory.GetRESTMapper()})
	if err != nil {
		return nil, err
	}
	secret := &corev1.Secret{}
	return secret, reader.Get(requests.As(ctx, requests.Background), key, secret)
}
