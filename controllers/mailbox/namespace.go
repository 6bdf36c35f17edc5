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

package mailbox

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	coreclient "k8s.io/client-go/kubernetes/typed/core/v1"
)

// ensureDefaultNamespace creates the namespace default, which users expect, in a new mailbox: kcp creates it only in
// universal workspaces. The ledger has the mailbox after that, so neither a start of the hub nor an older mailbox costs a
// request.
func (c *Controller) ensureDefaultNamespace(ctx context.Context, syncTarget types.UID, mailbox string) error {
	if c.ledger.Get(syncTarget).Mailbox == mailbox {
		return nil
	}
	client, err := coreclient.NewForConfig(c.dependencies.WorkspaceConfig(mailbox))
	if err != nil {
		return err
	}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: metav1.NamespaceDefault}}
	_, err = client.Namespaces().Create(ctx, namespace, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}
