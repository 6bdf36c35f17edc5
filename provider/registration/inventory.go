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

package registration

import (
	"context"
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
)

// Inventory is a workspace with SyncTargets.
type Inventory struct {
	// Client is the operator's. One that only makes dry runs is told so by DryRun.
	Client client.Client
	DryRun bool
	// Namespace is where new Secrets are put.
	Namespace string
	// Report is told of every object that was made sure of. It may be nil.
	Report func(Change)
}

// SyncTarget returns a SyncTarget, nil if there is none.
func (i *Inventory) SyncTarget(ctx context.Context, name string) (*edgev2alpha1.SyncTarget, error) {
	var syncTarget edgev2alpha1.SyncTarget
	err := i.Client.Get(ctx, types.NamespacedName{Name: name}, &syncTarget)
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil //nolint:nilnil // that there is none is an answer
	case err != nil:
		return nil, i.explained(err)
	}
	syncTarget.SetGroupVersionKind(edgev2alpha1.GroupVersion.WithKind("SyncTarget"))
	return &syncTarget, nil
}

// Wanted returns the SyncTarget that a registration asks for, as a manifest.
func (i *Inventory) Wanted(name string, labels map[string]string) *edgev2alpha1.SyncTarget {
	return &edgev2alpha1.SyncTarget{
		TypeMeta:   metav1.TypeMeta{APIVersion: edgev2alpha1.GroupVersion.String(), Kind: "SyncTarget"},
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: maps.Clone(labels)},
		Spec: edgev2alpha1.SyncTargetSpec{KubeconfigSecretRef: &edgev2alpha1.SecretReference{
			Namespace: i.Namespace, Name: name + "-kubeconfig", Key: edgev2alpha1.DefaultCredentialKey,
		}},
	}
}

// Ensure makes the SyncTarget exist with the labels and a reference to a Secret. Nothing else of it is changed.
func (i *Inventory) Ensure(ctx context.Context, name string, labels map[string]string) (*edgev2alpha1.SyncTarget, error) {
	wanted := i.Wanted(name, labels)
	anybodys := func(client.Object) bool { return true }
	change, err := ensure(ctx, i.Client, wanted, anybodys, func(_, to client.Object) {
		spec := &to.(*edgev2alpha1.SyncTarget).Spec
		if spec.KubeconfigSecretRef == nil {
			spec.KubeconfigSecretRef = wanted.Spec.KubeconfigSecretRef
		}
	})
	if err != nil {
		return nil, i.explained(err)
	}
	syncTarget := change.Object.(*edgev2alpha1.SyncTarget)
	if syncTarget.DeletionTimestamp != nil {
		return nil, fmt.Errorf("the SyncTarget %s is being deleted: wait until it is gone, or let it go with `kubectl synchub unregister %s --force`", name, name)
	}
	i.report(change)
	return syncTarget, nil
}

func (i *Inventory) report(change Change) {
	if i.Report != nil {
		i.Report(change)
	}
}

// Credentials returns the kubeconfig that the hub has of the SyncTarget, nil if there is none.
func (i *Inventory) Credentials(ctx context.Context, syncTarget *edgev2alpha1.SyncTarget) ([]byte, error) {
	key, field := secretOf(syncTarget)
	var secret corev1.Secret
	if err := i.Client.Get(ctx, key, &secret); err != nil {
		return nil, i.explained(client.IgnoreNotFound(err))
	}
	return secret.Data[field], nil
}

// SetCredentials gives the hub a kubeconfig of the SyncTarget.
func (i *Inventory) SetCredentials(ctx context.Context, syncTarget *edgev2alpha1.SyncTarget, kubeconfig []byte) error {
	wanted, field := Secret(syncTarget)
	change, err := ensure(ctx, i.Client, wanted, holdsCredentials, func(_, to client.Object) {
		secret := to.(*corev1.Secret)
		if secret.Data == nil {
			secret.Data = map[string][]byte{}
		}
		secret.Data[field] = kubeconfig
		if secret.ResourceVersion == "" {
			secret.Labels[managedBy] = manager
		}
		if secret.Labels[managedBy] == manager {
			// It goes with the SyncTarget that there is now, which may have been made anew.
			secret.OwnerReferences = []metav1.OwnerReference{{
				APIVersion: edgev2alpha1.GroupVersion.String(), Kind: "SyncTarget", Name: syncTarget.Name, UID: syncTarget.UID,
			}}
		}
	})
	if i.DryRun && apierrors.IsNotFound(err) {
		change, err = Change{Object: wanted, Result: Created}, nil
	}
	if apierrors.IsNotFound(err) {
		return fmt.Errorf("cannot write the Secret %s: create the namespace %s first, or choose another with --namespace: %w", wanted.Name, wanted.Namespace, err)
	}
	if err != nil {
		return i.explained(err)
	}
	// What is reported may be printed.
	change.Object.(*corev1.Secret).Data = nil
	i.report(change)
	return nil
}

// RemoveCredentials deletes the Secret of a SyncTarget that is gone, if a registration made it. Whoever made another keeps it.
func (i *Inventory) RemoveCredentials(ctx context.Context, syncTarget *edgev2alpha1.SyncTarget) error {
	secret, _ := Secret(syncTarget)
	kind := secret.GroupVersionKind()
	if err := i.Client.Get(ctx, client.ObjectKeyFromObject(secret), secret); err != nil {
		return i.explained(client.IgnoreNotFound(err))
	}
	if secret.Labels[managedBy] != manager {
		return nil
	}
	if err := i.Client.Delete(ctx, secret, client.Preconditions{UID: &secret.UID}); err != nil {
		return i.explained(client.IgnoreNotFound(err))
	}
	secret.Data = nil
	secret.SetGroupVersionKind(kind)
	i.report(Change{Object: secret, Result: Deleted})
	return nil
}

// Secret returns the Secret of a SyncTarget as a manifest without its content, and the key of that.
func Secret(syncTarget *edgev2alpha1.SyncTarget) (*corev1.Secret, string) {
	key, field := secretOf(syncTarget)
	return &corev1.Secret{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"},
		ObjectMeta: metav1.ObjectMeta{
			Namespace: key.Namespace, Name: key.Name,
			Labels: map[string]string{edgev2alpha1.LabelCredential: edgev2alpha1.CredentialKubeconfig},
		},
	}, field
}

func holdsCredentials(object client.Object) bool {
	return object.GetLabels()[edgev2alpha1.LabelCredential] == edgev2alpha1.CredentialKubeconfig
}

func secretOf(syncTarget *edgev2alpha1.SyncTarget) (key types.NamespacedName, field string) {
	key = types.NamespacedName{Namespace: edgev2alpha1.DefaultCredentialNamespace, Name: syncTarget.Name + "-kubeconfig"}
	field = edgev2alpha1.DefaultCredentialKey
	if reference := syncTarget.Spec.KubeconfigSecretRef; reference != nil {
		key.Name = reference.Name
		if reference.Namespace != "" {
			key.Namespace = reference.Namespace
		}
		if reference.Key != "" {
			field = reference.Key
		}
	}
	return key, field
}

// explained says what to do where the workspace cannot be an inventory.
func (i *Inventory) explained(err error) error {
	if err == nil {
		return nil
	}
	if meta.IsNoMatchError(err) {
		return fmt.Errorf("the current context leads to no inventory workspace: it serves no SyncTargets. Choose another with --context, or bind the APIExport %s there: %w", edgev2alpha1.GroupName, err)
	}
	return fmt.Errorf("in the inventory workspace: %w", err)
}
