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

package targets

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"

	"github.com/synchub-dev/synchub/provider/kcp"
	"github.com/synchub-dev/synchub/provider/requestclass"
	"github.com/synchub-dev/synchub/provider/targets/clusterid"
	"github.com/synchub-dev/synchub/provider/targets/tunnel"
	"github.com/synchub-dev/synchub/provider/transport"
)

const (
	// tunnelHost is the host in the URLs of requests through a tunnel. The client of the tunnel replaces it.
	tunnelHost = "https://cluster.tunnel"
	// tunnelServer is the fingerprint of the server of all clusters with a tunnel: only their IDs distinguish them.
	tunnelServer = "tunnel"
)

// ErrNoTunnels means that the hub is not configured to accept tunnels.
var ErrNoTunnels = errors.New("the hub accepts no tunnels: set tunnel.enabled of its chart, or --tunnel-bind-address")

// TunnelOptions configure the tunnels that a [Registry] accepts.
type TunnelOptions struct {
	// Replica is the name of this replica of the hub, and Replicas returns how many there are; zero if that is not known yet.
	Replica  string
	Replicas func() int
}

func (r *Registry) newTunnels(options TunnelOptions) *tunnel.Server {
	return tunnel.NewServer(tunnel.Options{
		Replica: options.Replica, Replicas: options.Replicas, Verify: r.verifyTunnel, OnChange: r.onTunnelChange,
		Clock: r.options.Clock, Log: r.options.Log.WithName("tunnel"),
	})
}

// Tunnels returns the server of tunnels; nil if the hub accepts none.
func (r *Registry) Tunnels() *tunnel.Server { return r.tunnels }

// ConnectTunnel is Connect for a SyncTarget whose cluster opens a tunnel to the hub. content is the value that [tunnel.ParseCredential]
// reads. The connection is up while a tunnel is open.
func (r *Registry) ConnectTunnel(syncTarget types.UID, content []byte, limits kcp.Limits, namespaces ...string) (*Connection, error) {
	if err := r.AdmitTunnel(syncTarget, content); err != nil {
		r.Disconnect(syncTarget)
		return nil, err
	}
	// The token is not part of the fingerprint: a new token needs no new connection.
	options, fingerprint := r.optionsFor(limits, namespaces, []byte(tunnelServer))
	if current, ok := r.currentConnection(syncTarget, fingerprint); ok {
		return current, nil
	}
	return r.connect(syncTarget, r.tunnelConfig(syncTarget), fingerprint, options)
}

// AdmitTunnel lets the cluster of a SyncTarget open tunnels to this replica, although the replica may not use them. A replica
// that takes over the SyncTarget then has a tunnel.
func (r *Registry) AdmitTunnel(syncTarget types.UID, content []byte) error {
	if r.tunnels == nil {
		return ErrNoTunnels
	}
	credential, err := tunnel.ParseCredential(content)
	if err != nil {
		r.tunnels.Remove(syncTarget)
		return err
	}
	r.tunnels.Admit(syncTarget, credential)
	return nil
}

// RemoveTunnel closes the tunnels of a SyncTarget, and admits no new ones.
func (r *Registry) RemoveTunnel(syncTarget types.UID) {
	if r.tunnels != nil {
		r.tunnels.Remove(syncTarget)
	}
}

// TunnelRefusal returns why the last tunnel of a SyncTarget was refused; nil if it was not refused, or if that was long ago.
func (r *Registry) TunnelRefusal(syncTarget types.UID) error {
	if r.tunnels == nil {
		return nil
	}
	return r.tunnels.Refusal(syncTarget)
}

func (r *Registry) tunnelConfig(syncTarget types.UID) *rest.Config {
	return &rest.Config{Host: tunnelHost, Transport: r.tunnels.Transport(syncTarget)}
}

// onTunnelChange probes the connection of a SyncTarget after a tunnel was opened, closed or refused.
func (r *Registry) onTunnelChange(syncTarget types.UID) {
	if connection, ok := r.Get(syncTarget); ok {
		connection.Health.ProbeNow()
	}
	r.Changed.Publish(syncTarget)
}

// verifyTunnel returns an error unless the cluster at the end of a new tunnel is the expected one. A cluster that hides its
// ID is not the expected one if the ID was known before.
func (r *Registry) verifyTunnel(ctx context.Context, syncTarget types.UID, session http.RoundTripper) error {
	limited := transport.LimitResponses(transport.Options{Limits: transport.TargetLimits()})(session)
	client, err := metadata.NewForConfig(&rest.Config{Host: tunnelHost, Transport: limited, QPS: -1, WarningHandlerWithContext: rest.NoWarnings{}})
	if err != nil {
		return fmt.Errorf("cannot make a client: %w", err)
	}
	id, err := clusterid.Get(requestclass.With(ctx, requestclass.Background), client)
	if err != nil {
		return fmt.Errorf("cannot find out which cluster the tunnel leads to: %w", err)
	}
	expected, observed := r.expectedCluster(syncTarget), Cluster{ID: id, Server: tunnelServer}
	if isHidden := expected.ID != "" && id == ""; isHidden || !expected.matches(observed) {
		return &ClusterMismatchError{Expected: expected, Observed: observed}
	}
	return nil
}

// expectedCluster returns the cluster that a tunnel must lead to; the zero value accepts any.
func (r *Registry) expectedCluster(syncTarget types.UID) Cluster {
	r.lock.RLock()
	expected, connection := r.expectedClusters[syncTarget].Cluster, r.connections[syncTarget]
	r.lock.RUnlock()
	if expected == (Cluster{}) && connection != nil {
		return connection.identity.expectedCluster()
	}
	return expected
}

// abortingTransport ends requests, and reads of their responses, when ctx ends.
type abortingTransport struct {
	ctx  context.Context //nolint:containedctx // the owner of all requests
	next http.RoundTripper
}

// RoundTrip implements [http.RoundTripper].
func (t *abortingTransport) RoundTrip(request *http.Request) (*http.Response, error) {
	if t.ctx.Err() != nil {
		return nil, errClosed
	}
	ctx, cancel := context.WithCancelCause(request.Context())
	stop := context.AfterFunc(t.ctx, func() { cancel(errClosed) })
	release := func() { stop(); cancel(nil) }
	response, err := t.next.RoundTrip(request.WithContext(ctx))
	if err != nil {
		release()
		if t.ctx.Err() != nil {
			err = errClosed
		}
		return nil, err
	}
	response.Body = &releasingBody{response.Body, release}
	return response, nil
}

// releasingBody calls release when it is closed.
type releasingBody struct {
	io.ReadCloser
	release func()
}

func (b *releasingBody) Close() error {
	err := b.ReadCloser.Close()
	b.release()
	return err
}
