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

package ledger

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/synchub-dev/synchub/provider/requestclass"
)

// configMaps sends the requests for the ConfigMaps of the ledger.
type configMaps struct {
	client corev1client.ConfigMapInterface
}

// get reads a ConfigMap.
func (c configMaps) get(ctx context.Context, name string) (*corev1.ConfigMap, error) {
	ctx, cancel := requestContext(ctx)
	defer cancel()
	return c.client.Get(ctx, name, metav1.GetOptions{})
}

// list reads a list, or a page of it.
func (c configMaps) list(ctx context.Context, options metav1.ListOptions) (*corev1.ConfigMapList, error) {
	ctx, cancel := requestContext(ctx)
	defer cancel()
	return c.client.List(ctx, options)
}

// write creates a ConfigMap without a resourceVersion, and updates one with it. It returns the new resourceVersion.
func (c configMaps) write(ctx context.Context, label string, desired *corev1.ConfigMap) (version string, err error) {
	ctx, cancel := requestContext(ctx)
	defer cancel()
	desired.Namespace, desired.Labels = Namespace, map[string]string{ledgerLabel: label}
	if desired.ResourceVersion == "" {
		desired, err = c.client.Create(ctx, desired, metav1.CreateOptions{})
	} else {
		desired, err = c.client.Update(ctx, desired, metav1.UpdateOptions{})
	}
	if err != nil {
		return "", err
	}
	return desired.ResourceVersion, nil
}

// delete deletes a ConfigMap, if there is one.
func (c configMaps) delete(ctx context.Context, name string) error {
	ctx, cancel := requestContext(ctx)
	defer cancel()
	return client.IgnoreNotFound(c.client.Delete(ctx, name, metav1.DeleteOptions{}))
}

// requestContext returns the context of one request.
func requestContext(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(requestclass.With(ctx, requestclass.Background), requestTimeout)
}

// readError adds advice for the operator to an error of reading the ledger.
func readError(err error) error {
	if apierrors.IsForbidden(err) || apierrors.IsNotFound(err) {
		return fmt.Errorf("the hub may not read its ledger in the namespace %s of the provider workspace; run `synchub init` again as its administrator: %w", Namespace, err)
	}
	return fmt.Errorf("cannot read the hub's ledger in the provider workspace: %w", err)
}
