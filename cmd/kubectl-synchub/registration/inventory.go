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
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/provider/rbac"
	"github.com/synchub-dev/synchub/provider/targets/kubeconfig"
)

// Inventory is a workspace with SyncTargets.
type Inventory struct {
	// Client has the operator's credentials. DryRun is true if the client only sends dry runs.
	Client client.Client
	DryRun bool
	// Namespace is the namespace of new Secrets.
	Namespace string
	// Report is called for each object with the effect on it. It may be nil.
	Report func(Change)
}

// SyncTarget returns a SyncTarget, or nil if it does not exist.
func (i *Inventory) SyncTarget(ctx context.Context, name string) (*edgev2alpha1.SyncTarget, error) {
	var syncTarget edgev2alpha1.SyncTarget
	err := i.Client.Get(ctx, types.NamespacedName{Name: name}, &syncTarget)
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil //nolint:nilnil // a missing SyncTarget is no error
	case err != nil:
		return nil, i.describeError(err)
	}
	syncTarget.SetGroupVersionKind(edgev2alpha1.GroupVersion.WithKind("SyncTarget"))
	return &syncTarget, nil
}

// DesiredSyncTarget returns the manifest of a new SyncTarget.
func (i *Inventory) DesiredSyncTarget(name string, labels map[string]string) *edgev2alpha1.SyncTarget {
	return &edgev2alpha1.SyncTarget{
		TypeMeta:   metav1.TypeMeta{APIVersion: edgev2alpha1.GroupVersion.String(), Kind: "SyncTarget"},
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: maps.Clone(labels)},
		Spec: edgev2alpha1.SyncTargetSpec{KubeconfigSecretRef: &edgev2alpha1.SecretReference{
			Namespace: i.Namespace, Name: name + "-kubeconfig", Key: edgev2alpha1.DefaultCredentialKey,
		}},
	}
}

// EnsureSyncTarget creates the SyncTarget, or sets the labels, adoption and namespaces of the existing one. It sets the
// reference to the Secret only if there is none or the cluster is connected in another way now, and changes nothing else.
func (i *Inventory) EnsureSyncTarget(ctx context.Context, desired *edgev2alpha1.SyncTarget) (*edgev2alpha1.SyncTarget, error) {
	always := func(client.Object) bool { return true }
	change, err := createOrPatch(ctx, i.Client, desired, always, func(_, to client.Object) {
		spec := &to.(*edgev2alpha1.SyncTarget).Spec
		existing := edgev2alpha1.SyncTarget{Spec: *spec}
		if spec.KubeconfigSecretRef == nil || IsTunnel(&existing) != IsTunnel(desired) {
			spec.KubeconfigSecretRef = desired.Spec.KubeconfigSecretRef
		}
		spec.Connection = desired.Spec.Connection
		spec.Adoption, spec.Namespaces = desired.Spec.Adoption, desired.Spec.Namespaces
	})
	if err != nil {
		return nil, i.describeError(err)
	}
	i.report(change)
	return change.Object.(*edgev2alpha1.SyncTarget), nil
}

func (i *Inventory) report(change Change) {
	if i.Report != nil {
		i.Report(change)
	}
}

// Kubeconfig returns the kubeconfig in the Secret of the SyncTarget, or nil if there is none.
func (i *Inventory) Kubeconfig(ctx context.Context, syncTarget *edgev2alpha1.SyncTarget) ([]byte, error) {
	_, field := secretKeyOf(syncTarget)
	data, err := i.secretData(ctx, syncTarget)
	return data[field], err
}

// secretData returns the data of the SyncTarget's Secret, or nil if there is none.
func (i *Inventory) secretData(ctx context.Context, syncTarget *edgev2alpha1.SyncTarget) (map[string][]byte, error) {
	key, _ := secretKeyOf(syncTarget)
	var secret corev1.Secret
	if err := i.Client.Get(ctx, key, &secret); err != nil {
		return nil, i.describeError(client.IgnoreNotFound(err))
	}
	return secret.Data, nil
}

// tunnelGrants returns the permissions that the last registration gave a tunnel, or nil if none is recorded. The record is on
// the SyncTarget's Secret, because the plugin cannot read the tunnel's cluster.
func (i *Inventory) tunnelGrants(ctx context.Context, desired *edgev2alpha1.SyncTarget) (*Grants, error) {
	key, _ := secretKeyOf(desired)
	var secret corev1.Secret
	if err := i.Client.Get(ctx, key, &secret); err != nil {
		return nil, i.describeError(client.IgnoreNotFound(err))
	}
	text, ok := secret.Annotations[resourcesAnnotation]
	if !ok {
		return nil, nil //nolint:nilnil // no record is no error
	}
	resources, err := rbac.ParseResources(strings.Split(text, ","))
	if err != nil {
		return nil, fmt.Errorf("the annotation %s of the Secret %s: %w", resourcesAnnotation, key, err)
	}
	var namespaces []string
	if text := secret.Annotations[namespacesAnnotation]; text != "" {
		namespaces = strings.Split(text, ",")
	}
	return newGrants(resources, namespaces), nil
}

// recordTunnelGrant records the permissions of a tunnel on the SyncTarget's Secret, for the next registration.
func (i *Inventory) recordTunnelGrant(ctx context.Context, syncTarget *edgev2alpha1.SyncTarget, resources []rbac.Resource, namespaces []string) error {
	desired, _ := NewSecret(syncTarget)
	desired.Annotations = map[string]string{resourcesAnnotation: formatResources(resources), namespacesAnnotation: strings.Join(namespaces, ",")}
	isOurs := func(object client.Object) bool { return isSecretFor(object.(*corev1.Secret), syncTarget.Name) }
	_, err := createOrPatch(ctx, i.Client, desired, isOurs, func(_, _ client.Object) {})
	return i.describeError(err)
}

// checkExistingSecret returns questions that the operator must confirm before an existing SyncTarget gets the cluster. It
// returns none if the Secret allows the SyncTarget. Otherwise another user may have created the SyncTarget and granted
// themselves access to the mailbox. It returns an error if the Secret is not for the SyncTarget.
func (i *Inventory) checkExistingSecret(ctx context.Context, desired *edgev2alpha1.SyncTarget) (questions []string, err error) {
	key, _ := secretKeyOf(desired)
	var secret corev1.Secret
	err = i.Client.Get(ctx, key, &secret)
	switch {
	case client.IgnoreNotFound(err) != nil:
		return nil, i.describeError(err)
	case err == nil && !isSecretFor(&secret, desired.Name):
		return nil, &notAllowedError{secret: &secret, syncTarget: desired}
	}
	if desired.UID == "" || kubeconfig.Allows(&secret, desired.Name, desired.UID) {
		return nil, nil
	}
	return confirmationQuestions(desired), nil
}

// confirmationQuestions returns a question for each setting of an existing SyncTarget that gives other users access to the
// cluster.
func confirmationQuestions(existing *edgev2alpha1.SyncTarget) (questions []string) {
	ask := func(format string, args ...any) {
		questions = append(questions, fmt.Sprintf("The SyncTarget %s is there already, and would "+format+".", append([]any{existing.Name}, args...)...))
	}
	spec := existing.Spec
	for _, access := range spec.MailboxAccess {
		for _, subject := range access.Subjects {
			ask("give %s %s the role %s in the cluster's mailbox", subject.Kind, subject.Name, access.ClusterRole)
		}
	}
	if spec.Namespaces != nil && len(spec.Namespaces.AllowProtected) > 0 {
		ask("let objects go to and come from the protected namespaces %s", strings.Join(spec.Namespaces.AllowProtected, ", "))
	}
	if spec.AllowSharedCluster {
		ask("be synced although another SyncTarget may stand for the cluster already")
	}
	if spec.Adoption != "" {
		ask("take over objects that are on the cluster already (spec.adoption: %s)", spec.Adoption)
	}
	return questions
}

// notAllowedError is returned for a Secret that a SyncTarget refers to and that does not allow the SyncTarget.
type notAllowedError struct {
	secret     *corev1.Secret
	syncTarget *edgev2alpha1.SyncTarget
}

func (e *notAllowedError) Error() string {
	return fmt.Sprintf("the Secret %s/%s, which spec.kubeconfigSecretRef of the SyncTarget %s names, does not say that it is this SyncTarget's, and is left as it is: name another one there, or allow it with %s",
		e.secret.Namespace, e.secret.Name, e.syncTarget.Name, kubeconfig.AllowCommand(e.secret, e.syncTarget.Name, e.syncTarget.UID))
}

// isSecretFor reports whether a Secret is for the SyncTarget with the name. An older registration did not set the annotation
// for that; then the owner of the Secret decides.
func isSecretFor(secret *corev1.Secret, name string) bool {
	if kubeconfig.HasEntryFor(secret, name) {
		return true
	}
	_, isAnnotated := secret.Annotations[edgev2alpha1.AnnotationAllowedSyncTargets]
	return !isAnnotated && secret.Labels[managedByLabel] == managerName && slices.ContainsFunc(secret.OwnerReferences, func(owner metav1.OwnerReference) bool {
		return owner.Kind == "SyncTarget" && owner.Name == name
	})
}

// EnsureSecret writes the kubeconfig to the Secret of the SyncTarget.
func (i *Inventory) EnsureSecret(ctx context.Context, syncTarget *edgev2alpha1.SyncTarget, content []byte) error {
	_, field := secretKeyOf(syncTarget)
	return i.ensureSecretData(ctx, syncTarget, map[string][]byte{field: content})
}

// ensureSecretData writes data to the Secret of the SyncTarget, and keeps all other data there.
func (i *Inventory) ensureSecretData(ctx context.Context, syncTarget *edgev2alpha1.SyncTarget, data map[string][]byte) error {
	desired, _ := NewSecret(syncTarget)
	// kubeconfig.Allow below adds to the annotation of an existing Secret.
	desired.Annotations = nil
	isOurs := func(object client.Object) bool { return isSecretFor(object.(*corev1.Secret), syncTarget.Name) }
	change, err := createOrPatch(ctx, i.Client, desired, isOurs, func(_, to client.Object) {
		secret := to.(*corev1.Secret)
		kubeconfig.Allow(secret, syncTarget.Name, syncTarget.UID)
		if secret.Data == nil {
			secret.Data = map[string][]byte{}
		}
		maps.Copy(secret.Data, data)
		if secret.ResourceVersion == "" {
			secret.Labels[managedByLabel] = managerName
		}
		if secret.Labels[managedByLabel] == managerName {
			// The SyncTarget may have been deleted and created again, with another UID.
			secret.OwnerReferences = []metav1.OwnerReference{{
				APIVersion: edgev2alpha1.GroupVersion.String(), Kind: "SyncTarget", Name: syncTarget.Name, UID: syncTarget.UID,
			}}
		}
	})
	if apierrors.IsNotFound(err) {
		return fmt.Errorf("cannot write the Secret %s: create the namespace %s first, or choose another with --namespace: %w", desired.Name, desired.Namespace, err)
	}
	if notOwned, ok := errors.AsType[*NotOwnedError](err); ok {
		return &notAllowedError{secret: notOwned.Object.(*corev1.Secret), syncTarget: syncTarget}
	}
	if err != nil {
		return i.describeError(err)
	}
	// The plugin may print the reported object.
	change.Object.(*corev1.Secret).Data = nil
	i.report(change)
	return nil
}

// DeleteSecret deletes the Secret of a deleted SyncTarget, if a registration created the Secret and it allows no other
// SyncTarget.
func (i *Inventory) DeleteSecret(ctx context.Context, syncTarget *edgev2alpha1.SyncTarget) error {
	secret, _ := NewSecret(syncTarget)
	kind := secret.GroupVersionKind()
	if err := i.Client.Get(ctx, client.ObjectKeyFromObject(secret), secret); err != nil {
		return i.describeError(client.IgnoreNotFound(err))
	}
	if secret.Labels[managedByLabel] != managerName || !isSecretFor(secret, syncTarget.Name) || kubeconfig.HasEntriesForOthers(secret, syncTarget.Name) {
		return nil
	}
	if err := i.Client.Delete(ctx, secret, client.Preconditions{UID: &secret.UID}); err != nil {
		return i.describeError(client.IgnoreNotFound(err))
	}
	secret.Data = nil
	secret.SetGroupVersionKind(kind)
	i.report(Change{Object: secret, Result: Deleted})
	return nil
}

// NewSecret returns the manifest of the Secret of a SyncTarget without data, and the key of the kubeconfig in the data.
func NewSecret(syncTarget *edgev2alpha1.SyncTarget) (*corev1.Secret, string) {
	key, field := secretKeyOf(syncTarget)
	secret := &corev1.Secret{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"},
		ObjectMeta: metav1.ObjectMeta{
			Namespace: key.Namespace, Name: key.Name,
			Labels: map[string]string{edgev2alpha1.LabelCredential: edgev2alpha1.CredentialKubeconfig},
		},
	}
	kubeconfig.Allow(secret, syncTarget.Name, syncTarget.UID)
	return secret, field
}

func secretKeyOf(syncTarget *edgev2alpha1.SyncTarget) (key types.NamespacedName, field string) {
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

// describeError wraps an error of the inventory workspace, and adds advice if the workspace is no inventory.
func (i *Inventory) describeError(err error) error {
	if err == nil {
		return nil
	}
	if meta.IsNoMatchError(err) {
		return fmt.Errorf("the current context leads to no inventory workspace: it serves no SyncTargets. Choose another with --context, or bind the APIExport %s there: %w", edgev2alpha1.GroupName, err)
	}
	return fmt.Errorf("in the inventory workspace: %w", err)
}
