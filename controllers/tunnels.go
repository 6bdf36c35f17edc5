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

package controllers

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/util/cert"
	"sigs.k8s.io/controller-runtime/pkg/certwatcher"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	configv1alpha1 "github.com/synchub-dev/synchub/apis/config/v1alpha1"
	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/provider/targets"
	"github.com/synchub-dev/synchub/provider/targets/tunnel"
)

// tunnelsOff is the address of a hub that accepts no tunnels.
const tunnelsOff = "0"

// tunnelOptions returns the options of the registry for tunnels; nil if the hub accepts none.
func tunnelOptions(r *replica) *targets.TunnelOptions {
	if address := r.settings.Tunnel.BindAddress; address == "" || address == tunnelsOff {
		return nil
	}
	return &targets.TunnelOptions{Replica: r.Replica, Replicas: func() int {
		if r.LiveReplicas == nil {
			return 1
		}
		return len(r.LiveReplicas())
	}}
}

// tunnelListener accepts tunnels at the port of this replica, whether it leads or not. It is nil if the hub
// accepts none.
type tunnelListener struct {
	server   *tunnel.Server
	settings configv1alpha1.TunnelConfiguration
	// authority is the certificate authority of the port in PEM form; empty for a public one.
	authority      []byte
	getCertificate func(*tls.ClientHelloInfo) (*tls.Certificate, error)
	// watcher reloads the certificate; nil if the hub creates the certificate.
	watcher *certwatcher.CertWatcher
	log     logr.Logger
}

// newTunnelListener loads the certificate of the port, or the authority that signs it.
func newTunnelListener(ctx context.Context, r *replica, server *tunnel.Server) (*tunnelListener, error) {
	if server == nil {
		return nil, nil //nolint:nilnil // no listener is a valid one
	}
	listener := &tunnelListener{server: server, settings: r.settings.Tunnel, log: r.Log.WithName("tunnel")}
	if listener.settings.CertDir != "" {
		return listener, listener.watchCertificate()
	}
	hub, err := url.Parse(listener.settings.URL)
	if err != nil {
		return nil, fmt.Errorf("cannot read the URL for tunnels: %w", err)
	}
	secrets, err := corev1client.NewForConfigAndClient(r.hosting.GetConfig(), r.hosting.GetHTTPClient())
	if err != nil {
		return nil, fmt.Errorf("cannot make a client for the certificate authority of tunnels: %w", err)
	}
	authority, err := tunnel.LoadAuthority(ctx, secrets.Secrets(r.settings.Namespace), hub.Hostname(), r.clock)
	if err != nil {
		return nil, err
	}
	listener.authority, listener.getCertificate = authority.PEM(), authority.GetCertificate
	return listener, nil
}

// watchCertificate uses the certificate in the directory, and reloads it when it changes. It reads the
// authority once. Before a certificate of another authority is used, the file must contain both authorities.
func (l *tunnelListener) watchCertificate() (err error) {
	file := func(name string) string { return filepath.Join(l.settings.CertDir, name) }
	if l.watcher, err = certwatcher.New(file(corev1.TLSCertKey), file(corev1.TLSPrivateKeyKey)); err != nil {
		return fmt.Errorf("cannot load the certificate for tunnels from %s: %w", l.settings.CertDir, err)
	}
	l.getCertificate = l.watcher.GetCertificate
	l.authority, err = os.ReadFile(file(corev1.ServiceAccountRootCAKey))
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err == nil {
		_, err = cert.ParseCertsPEM(l.authority)
	}
	if err != nil {
		return fmt.Errorf("cannot load the certificate authority for tunnels from %s: %w", l.settings.CertDir, err)
	}
	return nil
}

// status returns where clusters open their tunnels; nil if the hub accepts none.
func (l *tunnelListener) status() *edgev2alpha1.TunnelStatus {
	if l == nil {
		return nil
	}
	return &edgev2alpha1.TunnelStatus{URL: l.settings.URL, CertificateAuthority: string(l.authority)}
}

// Register adds the listener to the manager of the hosting cluster.
func (l *tunnelListener) Register(hosting manager.Manager) error {
	if l == nil {
		return nil
	}
	if l.watcher != nil {
		return errors.Join(hosting.Add(l), hosting.Add(l.watcher))
	}
	return hosting.Add(l)
}

// NeedLeaderElection implements [manager.LeaderElectionRunnable].
func (l *tunnelListener) NeedLeaderElection() bool { return false }

// Start implements [manager.Runnable].
func (l *tunnelListener) Start(ctx context.Context) error {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", l.settings.BindAddress)
	if err != nil {
		return fmt.Errorf("set --tunnel-bind-address to an address that is free: %w", err)
	}
	l.log.Info("takes tunnels of clusters", "address", listener.Addr().String(), "url", l.settings.URL)
	return l.server.Serve(ctx, listener, l.getCertificate)
}
