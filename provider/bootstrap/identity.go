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
	"fmt"

	"github.com/kcp-dev/logicalcluster/v3"
	corev1alpha1 "github.com/kcp-dev/sdk/apis/core/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Identity identifies a hub, independent of the replica that runs.
type Identity struct {
	// HubUID is the UID of the provider workspace's LogicalCluster.
	HubUID types.UID
	// Cluster is the name of that LogicalCluster.
	Cluster logicalcluster.Name
	// HashKey is the key of the hashes in marks.
	HashKey []byte
}

// ReadIdentity reads the hub's identity from its provider workspace.
func ReadIdentity(ctx context.Context, config *rest.Config, workspace string) (Identity, error) {
	provider, err := client.New(config, client.Options{Scheme: Scheme()})
	if err != nil {
		return Identity{}, readError(workspace, err)
	}
	var logicalCluster corev1alpha1.LogicalCluster
	if err := provider.Get(ctx, types.NamespacedName{Name: corev1alpha1.LogicalClusterName}, &logicalCluster); err != nil {
		return Identity{}, readError(workspace, err)
	}
	var secret corev1.Secret
	if err := provider.Get(ctx, types.NamespacedName{Namespace: HashKeyNamespace, Name: HashKeySecret}, &secret); err != nil {
		return Identity{}, readError(workspace, err)
	}
	key := secret.Data[HashKey]
	if len(key) == 0 {
		return Identity{}, notPreparedError(workspace, fmt.Errorf("the Secret %s/%s has no key %q", HashKeyNamespace, HashKeySecret, HashKey))
	}
	return Identity{HubUID: logicalCluster.UID, Cluster: logicalcluster.From(&logicalCluster), HashKey: key}, nil
}

// readError distinguishes an unprepared workspace, which answers Forbidden or NotFound, from a kcp that cannot be reached.
func readError(workspace string, err error) error {
	switch {
	case apierrors.IsUnauthorized(err):
		return fmt.Errorf("kcp does not accept the credentials for the provider workspace %s: %w", workspace, err)
	case apierrors.IsForbidden(err) || apierrors.IsNotFound(err):
		return notPreparedError(workspace, err)
	default:
		return fmt.Errorf("cannot reach the provider workspace %s: %w", workspace, err)
	}
}

func notPreparedError(workspace string, err error) error {
	return fmt.Errorf("the provider workspace %s is not prepared for this user; run `synchub init --provider-workspace %s --hub-user <user>` as its administrator: %w", workspace, workspace, err)
}
