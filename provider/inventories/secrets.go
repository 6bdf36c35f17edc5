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

package inventories

import (
	"context"
	"fmt"
	"iter"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/cluster"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/provider/requestclass"
	"github.com/synchub-dev/synchub/provider/transport"
)

// secretsPageSize is the maximum number of Secrets in a page. A Secret has at most 1 MiB, and most have a few KiB.
const secretsPageSize = 50

// credentialSelector selects the Secrets that the hub may read.
const credentialSelector = edgev2alpha1.LabelCredential + "=" + edgev2alpha1.CredentialKubeconfig

// GetSecret reads a Secret of an inventory workspace from kcp, with its contents, which the cache lacks.
func GetSecret(ctx context.Context, inventory cluster.Cluster, key types.NamespacedName) (*corev1.Secret, error) {
	reader, err := corev1client.NewForConfigAndClient(inventory.GetConfig(), inventory.GetHTTPClient())
	if err != nil {
		return nil, err
	}
	return reader.Secrets(key.Namespace).Get(requestclass.With(ctx, requestclass.Background), key.Name, metav1.GetOptions{})
}

// CredentialSecrets yields the Secrets with kubeconfigs of an inventory workspace, with their contents, which it reads from
// kcp in pages. An error ends the sequence, which is then incomplete.
func CredentialSecrets(ctx context.Context, inventory cluster.Cluster) iter.Seq2[*corev1.Secret, error] {
	return func(yield func(*corev1.Secret, error) bool) {
		reader, err := corev1client.NewForConfigAndClient(inventory.GetConfig(), inventory.GetHTTPClient())
		if err != nil {
			yield(nil, err)
			return
		}
		ctx := requestclass.With(ctx, requestclass.Background)
		options := metav1.ListOptions{LabelSelector: credentialSelector, Limit: secretsPageSize}
		for page, err := range transport.Pages(ctx, options, reader.Secrets(metav1.NamespaceAll).List) {
			if err != nil {
				yield(nil, fmt.Errorf("cannot list the Secrets of the inventory workspace: %w", err))
				return
			}
			for i := range page.Items {
				if !yield(&page.Items[i], nil) {
					return
				}
			}
		}
	}
}
