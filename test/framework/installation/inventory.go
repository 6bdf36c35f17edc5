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

package installation

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	synchubv1alpha1 "github.com/synchub-dev/synchub/apis/synchub/v1alpha1"
	"github.com/synchub-dev/synchub/test/framework"
	"github.com/synchub-dev/synchub/test/framework/servers"
)

// SyncTargets is the resource of SyncTargets.
var SyncTargets = edgev2alpha1.GroupVersion.WithResource("synctargets")

// inventoryContent is the manifest of an inventory workspace: the namespace for its Secrets, the namespace by whose UID
// kubectl synchub identifies a cluster, and the binding to the hub's export. The binding shows the hub only Secrets with
// the credential label.
const inventoryContent = `
apiVersion: v1
kind: Namespace
metadata: {name: default}
---
apiVersion: v1
kind: Namespace
metadata: {name: kube-system}
---
apiVersion: apis.kcp.io/v1alpha2
kind: APIBinding
metadata:
  name: synchub
spec:
  reference:
    export: {path: %s, name: %s}
  permissionClaims:
  - {group: "", resource: secrets, verbs: ["*"], state: Accepted, selector: {matchLabels: {%s: %s}}}
  - {group: "", resource: events, verbs: ["*"], state: Accepted, selector: {matchAll: true}}
  - {group: core.kcp.io, resource: logicalclusters, verbs: ["*"], state: Accepted, selector: {matchAll: true}}
`

// inventoryType is the type of inventory workspaces. By default kcp would choose a type with APIs that no inventory needs,
// which costs hundreds of requests.
const inventoryType = `
apiVersion: tenancy.kcp.io/v1alpha1
kind: WorkspaceType
metadata: {name: inventory}
spec: {}
`

// Inventory is an inventory workspace.
type Inventory struct {
	installation *Installation
	// Path is the path of the workspace, and Config is an administrator's client config for it.
	Path   string
	Config *rest.Config
}

// NewInventory creates an inventory workspace below root.
func (i *Installation) NewInventory(ctx context.Context, name string) (*Inventory, error) {
	if _, err := framework.CreateWorkspace(ctx, i.kcp.Config, "root", name, "inventory"); err != nil {
		return nil, err
	}
	inventory := &Inventory{installation: i, Path: "root:" + name, Config: i.InWorkspace("root:" + name)}
	manifest := fmt.Sprintf(inventoryContent, i.Workspace, synchubv1alpha1.InventoryExport, edgev2alpha1.LabelCredential, edgev2alpha1.CredentialKubeconfig)
	return inventory, framework.Apply(ctx, inventory.Config, manifest)
}

// Register creates a SyncTarget for the cluster of the kubeconfig. Other SyncTargets may use the same cluster, since specs
// share a few clusters.
func (i *Inventory) Register(ctx context.Context, name string, kubeconfig []byte, labels map[string]string) error {
	return i.register(ctx, name, kubeconfig, labels, true)
}

// RegisterExclusive creates a SyncTarget for a cluster that no other SyncTarget may use.
func (i *Inventory) RegisterExclusive(ctx context.Context, name string, kubeconfig []byte) error {
	return i.register(ctx, name, kubeconfig, nil, false)
}

func (i *Inventory) register(ctx context.Context, name string, kubeconfig []byte, labels map[string]string, shared bool) error {
	if i.installation.Connection == edgev2alpha1.ConnectionTunnel {
		_, err := i.RegisterTunnel(ctx, name, kubeconfig, labels, shared)
		return err
	}
	return i.apply(ctx, name, registration{labels: labels, shared: shared, connection: edgev2alpha1.ConnectionDirect, key: edgev2alpha1.DefaultCredentialKey, credential: string(kubeconfig)})
}

// RegisterTunnel creates a SyncTarget for the cluster of the kubeconfig, and starts the tunnel of the cluster.
func (i *Inventory) RegisterTunnel(ctx context.Context, name string, kubeconfig []byte, labels map[string]string, shared bool) (*Tunnel, error) {
	tunnel, err := i.AdmitTunnel(ctx, name, labels, shared)
	if err != nil {
		return nil, err
	}
	tunnel.Process, err = i.StartTunnel(tunnel.SyncTarget, kubeconfig, tunnel.Token)
	return tunnel, err
}

// AdmitTunnel creates a SyncTarget whose cluster may open a tunnel, and starts none.
func (i *Inventory) AdmitTunnel(ctx context.Context, name string, labels map[string]string, shared bool) (*Tunnel, error) {
	token, stored, err := newCredential()
	if err != nil {
		return nil, err
	}
	if err := i.apply(ctx, name, registration{labels: labels, shared: shared, connection: edgev2alpha1.ConnectionTunnel, key: "tunnel", credential: stored}); err != nil {
		return nil, err
	}
	var syncTarget *edgev2alpha1.SyncTarget
	err = wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, stepTimeout, true, func(ctx context.Context) (bool, error) {
		syncTarget, err = i.SyncTarget(ctx, name)
		return err == nil && syncTarget.Status.Tunnel != nil, err
	})
	if err != nil {
		return nil, fmt.Errorf("the hub does not report where it takes tunnels: %w", err)
	}
	return &Tunnel{SyncTarget: syncTarget, Token: token}, nil
}

// Tunnel is the tunnel of a cluster. Process is nil unless it runs.
type Tunnel struct {
	*servers.Process
	// SyncTarget is as it was when the tunnel was started.
	SyncTarget *edgev2alpha1.SyncTarget
	Token      string
}

// registration is what a SyncTarget and its Secret have.
type registration struct {
	labels     map[string]string
	shared     bool
	connection edgev2alpha1.ConnectionType
	// key and credential are the data of the Secret.
	key, credential string
}

func (i *Inventory) apply(ctx context.Context, name string, with registration) error {
	secret := map[string]any{
		"apiVersion": "v1", "kind": "Secret",
		"metadata": map[string]any{"name": name + "-kubeconfig", "namespace": "default",
			"labels":      map[string]any{edgev2alpha1.LabelCredential: edgev2alpha1.CredentialKubeconfig},
			"annotations": map[string]any{edgev2alpha1.AnnotationAllowedSyncTargets: name}},
		"stringData": map[string]any{with.key: with.credential},
	}
	syncTarget := map[string]any{
		"apiVersion": edgev2alpha1.GroupVersion.String(), "kind": "SyncTarget",
		"metadata": map[string]any{"name": name, "labels": with.labels},
		"spec": map[string]any{
			"connection": with.connection, "allowSharedCluster": with.shared,
			"kubeconfigSecretRef": map[string]any{"name": name + "-kubeconfig", "key": with.key},
		},
	}
	for _, object := range []map[string]any{secret, syncTarget} {
		manifest, err := yaml.Marshal(object)
		if err != nil {
			return err
		}
		if err := framework.Apply(ctx, i.Config, string(manifest)); err != nil {
			return err
		}
	}
	return nil
}

// SyncTarget returns a SyncTarget.
func (i *Inventory) SyncTarget(ctx context.Context, name string) (*edgev2alpha1.SyncTarget, error) {
	object, err := framework.Get(ctx, i.Config, SyncTargets, "", name)
	if err != nil {
		return nil, err
	}
	syncTarget := &edgev2alpha1.SyncTarget{}
	return syncTarget, runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, syncTarget)
}

// Mailbox returns a client config for the mailbox of a SyncTarget, or an error until the SyncTarget is ready.
func (i *Inventory) Mailbox(ctx context.Context, name string) (*rest.Config, error) {
	syncTarget, err := i.SyncTarget(ctx, name)
	if err != nil {
		return nil, err
	}
	ready := meta.FindStatusCondition(syncTarget.Status.Conditions, edgev2alpha1.ConditionReady)
	if ready == nil || ready.Status != metav1.ConditionTrue || syncTarget.Status.Mailbox == nil {
		return nil, fmt.Errorf("the SyncTarget %s is not ready: %v", name, syncTarget.Status.Conditions)
	}
	return i.installation.InWorkspace(syncTarget.Status.Mailbox.Workspace), nil
}
