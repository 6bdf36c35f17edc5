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

package fleet

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"

	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/cert"

	"github.com/synchub-dev/synchub/test/framework"
	"github.com/synchub-dev/synchub/test/framework/servers"
)

const (
	// maxConcurrentCreations is how many workspaces are created at a time.
	maxConcurrentCreations = 8

	// workspaceType binds only the APIs of a target, so that a workspace costs little.
	workspaceType = `
apiVersion: tenancy.kcp.io/v1alpha1
kind: WorkspaceType
metadata: {name: target}
spec: {}
`
)

// Fleet is a number of targets on one kcp.
type Fleet struct {
	// Members are the targets in the order of their creation.
	Members []*Member

	kcp          *servers.KCP
	parent       string
	idleRequests IdleRequests
	upstream     *url.URL
	transport    *http.Transport
	certificate  tls.Certificate
	ca           []byte
}

// Member is a target.
type Member struct {
	*CountingProxy
	Name string
	// Config is an administrator's client config that bypasses the proxy.
	Config *rest.Config
	// Kubeconfig uses the proxy, and DirectKubeconfig bypasses it.
	Kubeconfig, DirectKubeconfig []byte
}

// New returns a fleet without members. Their workspaces will be children of the workspace root:<name>.
func New(ctx context.Context, kcp *servers.KCP, name string, idleRequests IdleRequests) (*Fleet, error) {
	f := &Fleet{kcp: kcp, parent: "root:" + name, idleRequests: idleRequests}
	bundle, key, err := cert.GenerateSelfSignedCertKey("127.0.0.1", []net.IP{net.IPv4(127, 0, 0, 1)}, nil)
	if err != nil {
		return nil, fmt.Errorf("make a certificate for gates: %w", err)
	}
	f.ca = bundle
	if f.certificate, err = tls.X509KeyPair(bundle, key); err != nil {
		return nil, fmt.Errorf("make a certificate for gates: %w", err)
	}
	if f.upstream, err = url.Parse(kcp.Config.Host); err != nil {
		return nil, fmt.Errorf("read the address of kcp: %w", err)
	}
	settings, err := rest.TLSConfigFor(kcp.Config)
	if err != nil {
		return nil, fmt.Errorf("make a transport to kcp: %w", err)
	}
	f.transport = &http.Transport{TLSClientConfig: settings, ForceAttemptHTTP2: true}
	if _, err := framework.CreateWorkspace(ctx, kcp.Config, "root", name, "universal"); err != nil {
		return nil, err
	}
	return f, framework.Apply(ctx, kcp.Workspace(f.parent), workspaceType)
}

// Grow adds count members with open proxies.
func (f *Fleet) Grow(ctx context.Context, count int) ([]*Member, error) {
	made := make([]*Member, count)
	group, groupCtx := errgroup.WithContext(ctx)
	group.SetLimit(maxConcurrentCreations)
	for i := range made {
		name := fmt.Sprintf("target-%d", len(f.Members)+i)
		group.Go(func() (err error) {
			made[i], err = f.newMember(groupCtx, name)
			return err
		})
	}
	err := group.Wait()
	for _, member := range made {
		if member != nil {
			f.Members = append(f.Members, member)
		}
	}
	return made, err
}

func (f *Fleet) newMember(ctx context.Context, name string) (*Member, error) {
	if _, err := framework.CreateWorkspace(ctx, f.kcp.Config, f.parent, name, f.parent+":target"); err != nil {
		return nil, err
	}
	port, err := servers.FreePort()
	if err != nil {
		return nil, err
	}
	member := &Member{
		CountingProxy: NewCountingProxy(port, f.certificate, f.upstream, f.transport, f.idleRequests),
		Name:          name,
		Config:        f.kcp.Workspace(f.parent + ":" + name),
	}
	// Every cluster has this namespace; the hub uses it to find out how a target handles creates.
	if err := framework.Apply(ctx, member.Config, "{apiVersion: v1, kind: Namespace, metadata: {name: default}}"); err != nil {
		return nil, err
	}
	path := "/clusters/" + f.parent + ":" + name
	if member.Kubeconfig, err = f.kubeconfig(member.URL()+path, f.ca); err != nil {
		return nil, err
	}
	if member.DirectKubeconfig, err = f.kubeconfig(f.kcp.Config.Host+path, f.kcp.Config.CAData); err != nil {
		return nil, err
	}
	return member, member.Open(ctx)
}

func (f *Fleet) kubeconfig(server string, ca []byte) ([]byte, error) {
	return servers.Kubeconfig("target", server, ca, "admin", f.kcp.MasterToken())
}

// Close closes all proxies. The workspaces stay.
func (f *Fleet) Close() error {
	var errs []error
	for _, member := range f.Members {
		errs = append(errs, member.Close())
	}
	f.transport.CloseIdleConnections()
	return errors.Join(errs...)
}
