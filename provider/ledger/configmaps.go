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
	"k8s.io/apimachinery/pkg/types"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/synchub-dev/synchub/provider/requestclass"
)

// configMaps sends the requests for the ConfigMaps of the ledger.
type configMaps struct {
	client corev1client.ConfigMapInterface
}

// get reads a ConfigMap.
func (c configMaps) get(ctx context.Context, name string) (stored *corev1.ConfigMap, err error) {
	err = withTimeout(ctx, func(ctx context.Context) error {
		stored, err = c.client.Get(ctx, name, metav1.GetOptions{})
		return err
	})
	return stored, err
}

// listPage reads a page of the entries.
func (c configMaps) listPage(ctx context.Context, next string) (page *corev1.ConfigMapList, err error) {
	err = withTimeout(ctx, func(ctx context.Context) error {
		page, err = c.client.List(ctx, metav1.ListOptions{LabelSelector: ledgerLabel + "=" + labelSyncTarget, Limit: pageSize, Continue: next})
		return err
	})
	return page, err
}

// writeEntry stores an encoded entry and returns the new resourceVersion. version is the expected resourceVersion, or ""
// to create the ConfigMap.
func (c configMaps) writeEntry(ctx context.Context, syncTarget types.UID, entry, version string) (string, error) {
	return c.write(ctx, &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: Namespace, Name: string(syncTarget), Labels: map[string]string{ledgerLabel: labelSyncTarget}, ResourceVersion: version},
		Data:       map[string]string{entryKey: entry},
	})
}

// write creates a ConfigMap without a resourceVersion, and updates one with it. It returns the new resourceVersion.
func (c configMaps) write(ctx context.Context, desired *corev1.ConfigMap) (version string, err error) {
	err = withTimeout(ctx, func(ctx context.Context) error {
		var written *corev1.ConfigMap
		var err error
		if desired.ResourceVersion == "" {
			written, err = c.client.Create(ctx, desired, metav1.CreateOptions{})
		} else {
			written, err = c.client.Update(ctx, desired, metav1.UpdateOptions{})
		}
		if err == nil {
			version = written.ResourceVersion
		}
		return err
	})
	return version, err
}

// delete deletes a ConfigMap, if there is one.
func (c configMaps) delete(ctx context.Context, name string) error {
	return withTimeout(ctx, func(ctx context.Context) error {
		return client.IgnoreNotFound(c.client.Delete(ctx, name, metav1.DeleteOptions{}))
	})
}

func withTimeout(ctx context.Context, request func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(requestclass.With(ctx, requestclass.Background), requestTimeout)
	defer cancel()
	return request(ctx)
}

// readError adds advice for the operator to an error of reading the ledger.
func readError(err error) error {
	if apierrors.IsForbidden(err) || apierrors.IsNotFound(err) {
		return fmt.Errorf("the hub may not read its ledger in the namespace %s of the provider workspace; run `synchub init` again as its administrator: %w", Namespace, err)
	}
	return fmt.Errorf("cannot read the hub's ledger in the provider workspace: %w", err)
}
