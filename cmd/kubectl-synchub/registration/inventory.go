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
	"strings"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/provider/claimlabels"
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
		return nil, DescribeInventoryError(err)
	}
	return &syncTarget, nil
}

// EnsureSyncTarget creates the desired SyncTarget, or patches the current one, which is nil if there is none. It sets desired
// to the result.
func (i *Inventory) EnsureSyncTarget(ctx context.Context, current, desired *edgev2alpha1.SyncTarget) (err error) {
	result := Unchanged
	switch {
	case current == nil:
		result, err = Created, i.Client.Create(ctx, desired)
	case !apiequality.Semantic.DeepEqual(current, desired):
		before := current.DeepCopy()
		// So the patch contains the UID, and the server refuses another SyncTarget that has taken the name.
		before.UID = ""
		result, err = Changed, i.Client.Patch(ctx, desired, client.MergeFrom(before))
	}
	if err != nil {
		return DescribeInventoryError(err)
	}
	if i.DryRun && current == nil {
		// The server has made a UID up. A manifest names the SyncTarget without it.
		desired.UID = ""
	}
	i.report(Change{Object: desired, Result: result})
	return nil
}

func (i *Inventory) report(change Change) {
	if i.Report != nil {
		i.Report(change)
	}
}

// secret returns the Secret of the SyncTarget, or nil if there is none.
func (i *Inventory) secret(ctx context.Context, syncTarget *edgev2alpha1.SyncTarget) (*corev1.Secret, error) {
	key, _ := secretKeyOf(syncTarget)
	secret := &corev1.Secret{}
	err := i.Client.Get(ctx, key, secret)
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil //nolint:nilnil // a missing Secret is no error
	case err != nil:
		return nil, DescribeInventoryError(err)
	}
	return secret, nil
}

// Kubeconfig returns the kubeconfig in the Secret of the SyncTarget, or nil if there is none.
func (i *Inventory) Kubeconfig(ctx context.Context, syncTarget *edgev2alpha1.SyncTarget) ([]byte, error) {
	secret, err := i.secret(ctx, syncTarget)
	if secret == nil {
		return nil, err
	}
	_, field := secretKeyOf(syncTarget)
	return secret.Data[field], nil
}

// tunnelGrants returns the permissions that the last registration gave a tunnel, or nil if none is recorded. The record is on
// the SyncTarget's Secret, because the plugin cannot read the tunnel's cluster.
func (i *Inventory) tunnelGrants(ctx context.Context, syncTarget *edgev2alpha1.SyncTarget) (*Grants, error) {
	secret, err := i.secret(ctx, syncTarget)
	if secret == nil || !metav1.HasAnnotation(secret.ObjectMeta, resourcesAnnotation) {
		return nil, err
	}
	resources, options, err := parseGrant(secret)
	return newGrants(resources, options), err
}

// checkExistingSecret returns questions that the operator must confirm before an existing SyncTarget gets the cluster. It
// returns none if the Secret allows the SyncTarget. Otherwise another user may have created the SyncTarget and granted
// themselves access to the mailbox. It returns an error if the Secret is not for the SyncTarget.
func (i *Inventory) checkExistingSecret(ctx context.Context, desired *edgev2alpha1.SyncTarget) (questions []string, err error) {
	secret, err := i.secret(ctx, desired)
	switch {
	case err != nil:
		return nil, err
	case secret != nil && !kubeconfig.HasEntryFor(secret, desired.Name):
		return nil, notAllowed(secret, desired)
	case desired.UID == "", secret != nil && kubeconfig.Allows(secret, desired.Name, desired.UID):
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

// notAllowed returns the error for a Secret that a SyncTarget refers to and that does not allow the SyncTarget.
func notAllowed(secret *corev1.Secret, syncTarget *edgev2alpha1.SyncTarget) error {
	return fmt.Errorf("the Secret %s/%s, which spec.kubeconfigSecretRef of the SyncTarget %s names, does not allow this SyncTarget, and is left as it is: name another Secret there, or allow it with %s",
		secret.Namespace, secret.Name, syncTarget.Name, kubeconfig.AllowCommand(secret, syncTarget.Name, syncTarget.UID))
}

// EnsureSecret writes the credential to the Secret of the SyncTarget, with annotations, and keeps all other data and
// annotations there. Server-side apply cannot do that: it would remove the annotations that a call omits, and the entries of
// other SyncTargets are in one value.
func (i *Inventory) EnsureSecret(ctx context.Context, syncTarget *edgev2alpha1.SyncTarget, credential []byte, annotations map[string]string) error {
	key, field := secretKeyOf(syncTarget)
	var secret *corev1.Secret
	mutate := func() error {
		switch {
		case secret.ResourceVersion == "":
			metav1.SetMetaDataLabel(&secret.ObjectMeta, managedByLabel, managerName)
		case !kubeconfig.HasEntryFor(secret, syncTarget.Name):
			return notAllowed(secret, syncTarget)
		}
		if secret.Labels[managedByLabel] == managerName && syncTarget.UID != "" {
			// The SyncTarget may have been deleted and created again, with another UID.
			secret.OwnerReferences = []metav1.OwnerReference{{
				APIVersion: edgev2alpha1.GroupVersion.String(), Kind: "SyncTarget", Name: syncTarget.Name, UID: syncTarget.UID,
			}}
		}
		metav1.SetMetaDataLabel(&secret.ObjectMeta, edgev2alpha1.LabelCredential, edgev2alpha1.CredentialKubeconfig)
		kubeconfig.Allow(secret, syncTarget.Name, syncTarget.UID)
		for name, value := range annotations {
			metav1.SetMetaDataAnnotation(&secret.ObjectMeta, name, value)
		}
		if secret.Data == nil {
			secret.Data = map[string][]byte{}
		}
		secret.Data[field] = credential
		return nil
	}
	var done controllerutil.OperationResult
	// The workspace may have been bound a moment ago.
	err := retry.OnError(retry.DefaultBackoff, claimlabels.AreOutdated, func() (err error) {
		secret = &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}}
		done, err = controllerutil.CreateOrPatch(ctx, i.Client, secret, mutate)
		return err
	})
	if apierrors.IsNotFound(err) {
		return fmt.Errorf("cannot write the Secret %s: create the namespace %s first, or choose another with --namespace: %w", key.Name, key.Namespace, err)
	}
	if err != nil {
		return DescribeInventoryError(err)
	}
	result := Result(done)
	if done == controllerutil.OperationResultUpdated {
		result = Changed
	}
	i.reportSecret(secret, result)
	return nil
}

// reportSecret reports a Secret without its data, because the plugin may print the reported object.
func (i *Inventory) reportSecret(secret *corev1.Secret, result Result) {
	secret.Data = nil
	i.report(Change{Object: secret, Result: result})
}

// DeleteSecret deletes the Secret of a deleted SyncTarget, if a registration created the Secret and it allows no other
// SyncTarget.
func (i *Inventory) DeleteSecret(ctx context.Context, syncTarget *edgev2alpha1.SyncTarget) error {
	secret, err := i.secret(ctx, syncTarget)
	if secret == nil || secret.Labels[managedByLabel] != managerName || !kubeconfig.HasEntryFor(secret, syncTarget.Name) || kubeconfig.HasEntriesForOthers(secret, syncTarget.Name) {
		return err
	}
	if err := i.Client.Delete(ctx, secret, client.Preconditions{UID: &secret.UID}); err != nil {
		return DescribeInventoryError(client.IgnoreNotFound(err))
	}
	i.reportSecret(secret, Deleted)
	return nil
}

// secretKeyOf returns the name of the Secret of a SyncTarget, and the key of the credential in its data.
func secretKeyOf(syncTarget *edgev2alpha1.SyncTarget) (key types.NamespacedName, field string) {
	key = types.NamespacedName{Namespace: edgev2alpha1.DefaultCredentialNamespace, Name: syncTarget.Name + kubeconfigSuffix}
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

// DescribeInventoryError wraps an error of the inventory workspace, and adds advice if the workspace is no inventory.
func DescribeInventoryError(err error) error {
	if err == nil {
		return nil
	}
	if meta.IsNoMatchError(err) {
		return fmt.Errorf("the current context leads to no inventory workspace: it serves no SyncTargets. Choose another with --context, or bind the APIExport %s there: %w", edgev2alpha1.GroupName, err)
	}
	return fmt.Errorf("in the inventory workspace: %w", err)
}
