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
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/provider/rbac"
	"github.com/synchub-dev/synchub/provider/targets/tunnel"
)

const (
	// kubeconfigSuffix ends the name of the Secret with a kubeconfig in the inventory workspace, and tunnelSuffix the name of
	// the Secret with the token of a tunnel. tunnelField is the key of the token there.
	kubeconfigSuffix = "-kubeconfig"
	tunnelSuffix     = "-tunnel"
	tunnelField      = "tunnel"
	// tunnelPollInterval is the interval of the requests for the address of the hub.
	tunnelPollInterval = 500 * time.Millisecond
	// tunnelGracePeriod is how long the former token is accepted after a rotation, so that the new one can be brought to the cluster.
	tunnelGracePeriod = time.Hour
)

// Tunnel registers one cluster that dials the hub. The registration does not change the cluster: an operator applies the
// manifest there.
type Tunnel struct {
	// Registrar describes the SyncTarget. It needs no access to the target.
	Registrar
	// Namespace is the namespace of the tunnel in its cluster. Image is the image of synchub-tunnel.
	Namespace, Image string
	// URL is the address of the hub's port for tunnels, and CA its certificate authority. Without a URL, those that the hub reports in the
	// status of the SyncTarget are used.
	URL string
	CA  []byte
}

// Register creates or updates the SyncTarget and its Secret, and returns the manifest for the cluster. After an error, it can
// be called again: an existing token stays.
func (t *Tunnel) Register(ctx context.Context) ([]client.Object, error) {
	current, desired, err := t.desiredSyncTarget(ctx)
	if err != nil {
		return nil, err
	}
	before, err := t.Inventory.tunnelGrants(ctx, desired)
	if err != nil {
		return nil, err
	}
	chosen, added, err := t.resolveTunnelGrant(ctx, desired, before)
	if err != nil {
		return nil, err
	}
	if err := t.ensureConfirmed(ctx, current, desired, added); err != nil {
		return nil, err
	}
	credential, err := t.credential(ctx, desired)
	if err != nil {
		return nil, err
	}
	if err := t.store(ctx, desired, credential, grantAnnotations(chosen.Requested.Resources, rbac.Options{Namespaces: chosen.Namespaces, Tenancy: chosen.RBACOptions.Tenancy})); err != nil {
		return nil, err
	}
	if t.Inventory.DryRun {
		return chosen.Manifest(desired, nil)
	}
	if err := chosen.findHub(ctx, desired); err != nil {
		return nil, err
	}
	return chosen.Manifest(desired, &credential)
}

// Rotate replaces the token, and returns the Secret for the cluster. The former token is accepted for an hour, unless it is revoked.
func (t *Tunnel) Rotate(ctx context.Context, syncTarget *edgev2alpha1.SyncTarget, revoke bool) (client.Object, error) {
	if _, err := t.Inventory.checkExistingSecret(ctx, syncTarget); err != nil {
		return nil, err
	}
	next, err := tunnel.NewCredential()
	if !revoke {
		if next, err = t.credential(ctx, syncTarget); err == nil {
			next, err = next.Rotate(t.Clock.Now().Add(tunnelGracePeriod))
		}
	}
	if err != nil {
		return nil, err
	}
	if err := t.store(ctx, syncTarget, next, nil); err != nil || t.Inventory.DryRun {
		return nil, err
	}
	if err := t.findHub(ctx, syncTarget); err != nil {
		return nil, err
	}
	return t.secret(&next), nil
}

// credential returns the credential in the Secret of the SyncTarget, or a new one if there is none.
func (t *Tunnel) credential(ctx context.Context, syncTarget *edgev2alpha1.SyncTarget) (tunnel.Credential, error) {
	stored, err := t.Inventory.Kubeconfig(ctx, syncTarget)
	if err != nil {
		return tunnel.Credential{}, err
	}
	if credential, err := tunnel.ParseCredential(stored); err == nil {
		return credential, nil
	}
	return tunnel.NewCredential()
}

// store writes the credential to the Secret of the SyncTarget, with annotations.
func (t *Tunnel) store(ctx context.Context, syncTarget *edgev2alpha1.SyncTarget, credential tunnel.Credential, annotations map[string]string) error {
	content, err := credential.Marshal()
	if err != nil {
		return fmt.Errorf("cannot encode the token: %w", err)
	}
	return t.Inventory.EnsureSecret(ctx, syncTarget, content, annotations)
}

// findHub waits until the hub reports its address for tunnels in the status of the SyncTarget, unless the operator gave a
// URL.
func (t *Tunnel) findHub(ctx context.Context, syncTarget *edgev2alpha1.SyncTarget) error {
	if t.URL != "" {
		return nil
	}
	var last *edgev2alpha1.SyncTarget
	err := wait.PollUntilContextCancel(ctx, tunnelPollInterval, true, func(ctx context.Context) (bool, error) {
		current, err := t.Inventory.SyncTarget(ctx, syncTarget.Name)
		if err != nil || current == nil || current.Status.Tunnel == nil {
			last = current
			return false, err
		}
		t.URL, t.CA = current.Status.Tunnel.URL, []byte(current.Status.Tunnel.CertificateAuthority)
		return true, nil
	})
	if err != nil && ctx.Err() != nil {
		reason := "the hub has not reported where it takes tunnels"
		if last != nil && len(last.Status.Conditions) > 0 {
			reason = DescribeNotReady(last)
		}
		return fmt.Errorf("the SyncTarget %s is registered, but its manifest needs the address of the hub; repeat the command, or give --hub-url: %s", syncTarget.Name, reason)
	}
	return err
}

// resolveTunnelGrant returns the tunnel with the resources and namespaces to grant. added describes the resources and
// namespaces that were not granted before.
func (t *Tunnel) resolveTunnelGrant(ctx context.Context, desired *edgev2alpha1.SyncTarget, before *Grants) (chosen *Tunnel, added string, err error) {
	if desired.UID != "" && before == nil && len(t.Requested.Resources) == 0 {
		return nil, "", fmt.Errorf("the SyncTarget %s is there already, and its Secret does not contain the rights of its tunnel: name all its resources with --resources, and its namespaces with --namespaces if it is limited to some", t.Name)
	}
	if before != nil {
		t.restrictAsBefore(desired, before.Namespaces)
	}
	var namespaces []string
	if restrictions := desired.Spec.Namespaces; restrictions != nil {
		namespaces = slices.Sorted(slices.Values(restrictions.Only))
	}
	tenancy, err := t.resolveTenancy(ctx, before)
	if err != nil {
		return nil, "", err
	}
	granted, added, err := t.selectGrant(t.Requested, before, namespaces, tenancy)
	if err != nil {
		return nil, "", err
	}
	if before != nil {
		t.describeRemaining(before.Namespaces, namespaces)
	}
	resolved := *t
	resolved.Requested, resolved.Namespaces, resolved.RBACOptions.Tenancy = ResourceRequest{Resources: granted.resources}, namespaces, tenancy
	return &resolved, added, nil
}

// describeRemaining names the rights that applying the manifest does not remove.
func (t *Tunnel) describeRemaining(before, after []string) {
	for _, namespace := range before {
		if !slices.Contains(after, namespace) {
			t.info(fmt.Sprintf("The hub keeps its rights in the namespace %[1]s until you delete them: kubectl delete rolebinding,role --namespace %[1]s %[2]s", namespace, t.clusterName()))
		}
	}
}

// IsTunnel reports whether the cluster of a SyncTarget dials the hub. The SyncTarget may be nil.
func IsTunnel(syncTarget *edgev2alpha1.SyncTarget) bool {
	return syncTarget != nil && syncTarget.Spec.Connection == edgev2alpha1.ConnectionTunnel
}
