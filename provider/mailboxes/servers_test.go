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

package mailboxes_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/kcp-dev/logicalcluster/v3"
	apisv1alpha1 "github.com/kcp-dev/sdk/apis/apis/v1alpha1"
	apisv1alpha2 "github.com/kcp-dev/sdk/apis/apis/v1alpha2"
	tenancyv1alpha1 "github.com/kcp-dev/sdk/apis/tenancy/v1alpha1"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	synchubv1alpha1 "github.com/synchub-dev/synchub/apis/synchub/v1alpha1"
	"github.com/synchub-dev/synchub/provider/bootstrap"
	"github.com/synchub-dev/synchub/provider/kcp"
	"github.com/synchub-dev/synchub/provider/mailboxes"
	"github.com/synchub-dev/synchub/provider/mailboxes/absence"
	"github.com/synchub-dev/synchub/test/framework"
	"github.com/synchub-dev/synchub/test/framework/connections"
	"github.com/synchub-dev/synchub/test/framework/servers"
	"github.com/synchub-dev/synchub/test/framework/suite"
)

const (
	providerWorkspace = "root:synchub"
	exportName        = synchubv1alpha1.MailboxExport

	// twin is a mailbox of the same name on both shards.
	twin logicalcluster.Name = "twinofthetwoshards"
)

var (
	configMaps = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
	secrets    = schema.GroupVersionResource{Version: "v1", Resource: "secrets"}
)

// kcpShard is a kcp with a provider workspace, an export and two mailboxes.
type kcpShard struct {
	*servers.KCP
	// url is its virtual workspace for the export.
	url string
	// own is a mailbox that only this shard has. The other mailbox is the twin.
	own logicalcluster.Name
}

func TestMain(m *testing.M) { suite.Main(m) }

// startedShards returns the two shards of this package.
var startedShards = suite.Shared(func(t testing.TB) [2]*kcpShard {
	all := suite.Start(t, func(ctx context.Context, options servers.Options) (servers.KCPs, error) {
		return servers.StartKCPs(ctx, options, "first", "second")
	})
	var shards [2]*kcpShard
	var group errgroup.Group
	for i := range all {
		shards[i] = &kcpShard{KCP: all[i]}
		group.Go(func() error { return shards[i].prepare(t.Context()) })
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
	return shards
})

// prepare creates the objects that `synchub init` creates, publishes config maps, and creates the mailboxes.
func (s *kcpShard) prepare(ctx context.Context) error {
	err := bootstrap.Run(ctx, bootstrap.Options{
		Config:    func(workspace string) *rest.Config { return s.Workspace(workspace) },
		Workspace: providerWorkspace,
		HubUser:   servers.HubUser,
		Report:    func(string, string) {},
	})
	if err != nil {
		return err
	}
	if err := s.claim(ctx, configMaps.GroupResource(), ""); err != nil {
		return err
	}
	own, err := framework.CreateWorkspace(ctx, s.Config, providerWorkspace, "own", providerWorkspace+":"+synchubv1alpha1.WorkspaceType)
	if err != nil {
		return err
	}
	s.own = logicalcluster.Name(own.Spec.Cluster)
	if err := s.createMailbox(ctx, "twin", twin); err != nil {
		return err
	}
	if err := s.furnish(ctx, s.own); err != nil {
		return err
	}
	return s.readURL(ctx)
}

// furnish makes the namespace that the hub makes in each new mailbox.
func (s *kcpShard) furnish(ctx context.Context, mailbox logicalcluster.Name) error {
	direct, err := s.client(mailbox.String())
	if err != nil {
		return err
	}
	return client.IgnoreAlreadyExists(direct.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: metav1.NamespaceDefault}}))
}

// claim makes the export claim one more resource.
func (s *kcpShard) claim(ctx context.Context, resource schema.GroupResource, identityHash string) error {
	return s.changeExport(ctx, func(export *apisv1alpha2.APIExport) {
		export.Spec.PermissionClaims = append(export.Spec.PermissionClaims, apisv1alpha2.PermissionClaim{
			GroupResource: apisv1alpha2.GroupResource{Group: resource.Group, Resource: resource.Resource}, Verbs: []string{"*"}, IdentityHash: identityHash,
		})
	})
}

func (s *kcpShard) changeExport(ctx context.Context, change func(*apisv1alpha2.APIExport)) error {
	provider, err := s.client(providerWorkspace)
	if err != nil {
		return err
	}
	var export apisv1alpha2.APIExport
	if err := provider.Get(ctx, types.NamespacedName{Name: exportName}, &export); err != nil {
		return err
	}
	before := export.DeepCopy()
	change(&export)
	return provider.Patch(ctx, &export, client.MergeFrom(before))
}

// createMailbox makes a mailbox whose logical cluster has the given name, which both shards may have.
func (s *kcpShard) createMailbox(ctx context.Context, name string, cluster logicalcluster.Name) error {
	provider, err := s.client(providerWorkspace)
	if err != nil {
		return err
	}
	workspace := &tenancyv1alpha1.Workspace{
		ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{"internal.tenancy.kcp.io/cluster": cluster.String()}},
		Spec:       tenancyv1alpha1.WorkspaceSpec{Type: &tenancyv1alpha1.WorkspaceTypeReference{Path: providerWorkspace, Name: synchubv1alpha1.WorkspaceType}},
	}
	if err := provider.Create(ctx, workspace); err != nil {
		return err
	}
	workspace, err = framework.CreateWorkspace(ctx, s.Config, providerWorkspace, name, providerWorkspace+":"+synchubv1alpha1.WorkspaceType)
	if err != nil {
		return err
	}
	if workspace.Spec.Cluster != cluster.String() {
		return fmt.Errorf("the logical cluster of the workspace %s is called %s", name, workspace.Spec.Cluster)
	}
	return s.furnish(ctx, cluster)
}

// deleteMailbox deletes a mailbox, unless it does not exist.
func (s *kcpShard) deleteMailbox(ctx context.Context, name string) error {
	provider, err := s.client(providerWorkspace)
	if err != nil {
		return err
	}
	return client.IgnoreNotFound(provider.Delete(ctx, &tenancyv1alpha1.Workspace{ObjectMeta: metav1.ObjectMeta{Name: name}}))
}

// readURL waits until kcp lists the shard, which it does when it has a mailbox.
func (s *kcpShard) readURL(ctx context.Context) error {
	provider, err := s.client(providerWorkspace)
	if err != nil {
		return err
	}
	return wait.PollUntilContextCancel(ctx, 50*time.Millisecond, true, func(ctx context.Context) (bool, error) {
		var slice apisv1alpha1.APIExportEndpointSlice
		if err := provider.Get(ctx, types.NamespacedName{Name: exportName}, &slice); err != nil || len(slice.Status.APIExportEndpoints) == 0 {
			return false, err
		}
		s.url = slice.Status.APIExportEndpoints[0].URL
		return true, nil
	})
}

// client returns the administrator's client for a workspace or mailbox.
func (s *kcpShard) client(workspace string) (client.Client, error) {
	return client.New(s.Workspace(workspace), client.Options{Scheme: bootstrap.Scheme()})
}

// startMailboxes runs mailboxes until the test ends, with the rights of the hub's user, against the shards that the double lists.
func startMailboxes(t *testing.T, slice *sliceDouble, policy mailboxes.CachePolicy, always []schema.GroupVersionResource, shards ...*kcpShard) *mailboxes.Mailboxes {
	t.Helper()
	made := mailboxes.New(mailboxes.Options{
		Access: kcpConfigFor(t, slice, shards), Workspace: providerWorkspace, Export: exportName, Resources: always, Policy: policy,
		AbsenceDelays: absence.Delays{BindingSettle: 2 * time.Second, MassDeletion: 2 * time.Second},
		Clock:         clock.RealClock{}, Log: logr.Discard(),
	})
	framework.RunInTest(t, made.Start)
	return made
}

// kcpConfigFor returns the hub's access, with one bundle of certificates for all servers.
func kcpConfigFor(t *testing.T, slice *sliceDouble, shards []*kcpShard) *kcp.ConfigProvider {
	t.Helper()
	bundle := suite.CertificateOf(slice.server)
	for _, shard := range shards {
		bundle = append(bundle, shard.HubConfig.CAData...)
	}
	return connections.KCP(t, suite.Kubeconfig(t, slice.server.URL, bundle, shards[0].HubConfig.BearerToken))
}
