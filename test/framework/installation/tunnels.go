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
	"io"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"slices"
	"sync"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/provider/targets/tunnel"
	"github.com/synchub-dev/synchub/test/framework/servers"
)

// Balancer forwards connections to the replicas of the hub in turn, as a Service does, and can be cut.
type Balancer struct {
	listener net.Listener

	lock     sync.Mutex
	isCut    bool
	next     int
	backends []string
	conns    map[net.Conn]struct{}
	// loss is the share of connections that are closed at once.
	loss float64
}

func newBalancer() (*Balancer, error) {
	listener, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("cannot listen for tunnels: %w", err)
	}
	b := &Balancer{listener: listener, conns: map[net.Conn]struct{}{}}
	go func() {
		for {
			accepted, err := listener.Accept()
			if err != nil {
				return
			}
			go b.forward(accepted)
		}
	}()
	return b, nil
}

// URL returns the URL of the balancer.
func (b *Balancer) URL() string { return "https://" + b.listener.Addr().String() }

func (b *Balancer) add(backend string) {
	b.lock.Lock()
	defer b.lock.Unlock()
	b.backends = append(b.backends, backend)
}

// Cut closes all connections and refuses new ones, until it is called with false.
func (b *Balancer) Cut(isCut bool) {
	b.lock.Lock()
	b.isCut = isCut
	open := b.conns
	if isCut {
		b.conns = map[net.Conn]struct{}{}
	}
	b.lock.Unlock()
	if isCut {
		for one := range open {
			_ = one.Close()
		}
	}
}

// Lose makes the balancer close as large a share of connections at once.
func (b *Balancer) Lose(share float64) {
	b.lock.Lock()
	defer b.lock.Unlock()
	b.loss = share
}

// Drop closes all connections once.
func (b *Balancer) Drop() {
	b.Cut(true)
	b.Cut(false)
}

// dial connects to the next replica that listens.
func (b *Balancer) dial() net.Conn {
	b.lock.Lock()
	b.next++
	order := slices.Concat(b.backends, b.backends)
	if b.isCut || len(b.backends) == 0 || rand.Float64() < b.loss { //nolint:gosec // it needs no secrecy
		order = nil
	} else {
		from := b.next % len(b.backends)
		order = order[from : from+len(b.backends)]
	}
	b.lock.Unlock()
	for _, backend := range order {
		if dialed, err := (&net.Dialer{}).DialContext(context.Background(), "tcp", backend); err == nil {
			return dialed
		}
	}
	return nil
}

func (b *Balancer) forward(accepted net.Conn) {
	dialed := b.dial()
	if dialed == nil {
		_ = accepted.Close()
		return
	}
	b.lock.Lock()
	isCut := b.isCut
	b.conns[accepted], b.conns[dialed] = struct{}{}, struct{}{}
	b.lock.Unlock()
	end := sync.OnceFunc(func() {
		_, _ = accepted.Close(), dialed.Close()
		b.lock.Lock()
		delete(b.conns, accepted)
		delete(b.conns, dialed)
		b.lock.Unlock()
	})
	if isCut {
		end()
		return
	}
	go func() { defer end(); _, _ = io.Copy(accepted, dialed) }()
	defer end()
	_, _ = io.Copy(dialed, accepted)
}

// tunnelArguments returns the arguments of one more replica that takes tunnels.
func (i *Installation) tunnelArguments() ([]string, error) {
	port, err := servers.FreePort()
	if err != nil {
		return nil, err
	}
	address := fmt.Sprintf("127.0.0.1:%d", port)
	i.Balancer.add(address)
	return []string{"--tunnel-bind-address", address, "--tunnel-url", i.Balancer.URL()}, nil
}

// StartTunnel starts the tunnel of a cluster, with a kubeconfig of the cluster, for the SyncTarget with the UID. The hub must have
// written its certificate authority into the status of that SyncTarget.
func (i *Inventory) StartTunnel(syncTarget *edgev2alpha1.SyncTarget, kubeconfig []byte, token string) (*servers.Process, error) {
	install := i.installation
	install.tunnels++
	directory := filepath.Join(install.opts.Dir, fmt.Sprintf("tunnel-%d-%d", install.number, install.tunnels))
	if err := os.MkdirAll(directory, 0o700); err != nil {
		return nil, err
	}
	file := func(name string) string { return filepath.Join(directory, name) }
	for name, content := range map[string]string{"token": token, "ca.crt": syncTarget.Status.Tunnel.CertificateAuthority} {
		if err := os.WriteFile(file(name), []byte(content), 0o600); err != nil {
			return nil, err
		}
	}
	server, authority, serverToken, err := servers.SplitKubeconfig(directory, kubeconfig)
	if err != nil {
		return nil, err
	}
	process, err := servers.Start(install.opts, filepath.Base(directory), install.version.tunnel(), []string{
		"--hub", syncTarget.Status.Tunnel.URL, "--sync-target", string(syncTarget.UID), "--token-file", file("token"),
		"--hub-certificate-authority", file("ca.crt"), "--health-probe-bind-address", "0",
		"--server", server, "--server-certificate-authority", authority, "--server-token-file", serverToken, "--log-level", "debug", "--log-format", "console",
	}, nil)
	return process, err
}

// newCredential returns a credential for a tunnel, and its form in a Secret.
func newCredential() (token, stored string, err error) {
	credential, err := tunnel.NewCredential()
	if err != nil {
		return "", "", err
	}
	content, err := credential.Marshal()
	return credential.Token, string(content), err
}
