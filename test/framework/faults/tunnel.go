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

package faults

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"

	"k8s.io/client-go/tools/clientcmd"
)

// Tunnel is an HTTP proxy for CONNECT requests, as a kubeconfig names one with proxy-url. It reaches servers with many addresses, and
// their certificates stay as they are. When it is cut, no data arrives and no connection is closed, as in a network partition.
type Tunnel struct {
	listener net.Listener

	lock  sync.Mutex
	isCut bool
	// connections are the open connections of clients and to servers.
	connections map[net.Conn]struct{}
	// upstreams are the connections to servers.
	upstreams map[net.Conn]struct{}
	running   sync.WaitGroup
}

// NewTunnel returns a tunnel that listens until [Tunnel.Close].
func NewTunnel(ctx context.Context) (*Tunnel, error) {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", loopback+":0")
	if err != nil {
		return nil, fmt.Errorf("listen for clients of the tunnel: %w", err)
	}
	t := &Tunnel{listener: listener, connections: map[net.Conn]struct{}{}, upstreams: map[net.Conn]struct{}{}}
	t.running.Go(t.serve)
	return t, nil
}

// URL is the proxy-url of a kubeconfig.
func (t *Tunnel) URL() string { return "http://" + t.listener.Addr().String() }

// Reroute writes the kubeconfig of one file to another, with this tunnel to its servers.
func (t *Tunnel) Reroute(from, to string) error {
	config, err := clientcmd.LoadFromFile(from)
	if err != nil {
		return fmt.Errorf("read the kubeconfig to reroute: %w", err)
	}
	for _, cluster := range config.Clusters {
		cluster.ProxyURL = t.URL()
	}
	return clientcmd.WriteToFile(*config, to)
}

// Cut lets nothing through any more. Clients wait.
func (t *Tunnel) Cut() {
	t.lock.Lock()
	defer t.lock.Unlock()
	t.isCut = true
	for upstream := range t.upstreams {
		_ = upstream.Close()
	}
}

// Close ends all connections, and returns when nothing runs any more.
func (t *Tunnel) Close() error {
	err := t.listener.Close()
	t.lock.Lock()
	for connection := range t.connections {
		_ = connection.Close()
	}
	t.lock.Unlock()
	t.running.Wait()
	return err
}

func (t *Tunnel) serve() {
	for {
		client, err := t.listener.Accept()
		if err != nil {
			return
		}
		t.running.Go(func() { t.connect(client) })
	}
}

// connect serves one client until it goes, or, when the tunnel is cut, until the tunnel is closed.
func (t *Tunnel) connect(client net.Conn) {
	defer t.track(client)()
	reader := bufio.NewReader(client)
	request, err := http.ReadRequest(reader)
	if err != nil || request.Method != http.MethodConnect {
		return
	}
	if upstream := t.dial(request.Host); upstream != nil {
		forget := t.track(upstream)
		t.running.Go(func() {
			_, _ = io.Copy(client, upstream)
			if !t.cut() {
				_ = client.Close()
			}
		})
		if _, err := io.WriteString(client, "HTTP/1.1 200 Connection established\r\n\r\n"); err == nil {
			_, _ = io.Copy(upstream, reader)
		}
		forget()
	}
	if t.cut() {
		// Discard the client's data until it closes the connection.
		_, _ = io.Copy(io.Discard, reader)
	}
}

// dial returns a connection to a server; nil when the tunnel is cut, or the server is away.
func (t *Tunnel) dial(address string) net.Conn {
	if t.cut() {
		return nil
	}
	upstream, err := net.Dial("tcp", address) //nolint:noctx // it ends with the tunnel
	if err != nil {
		return nil
	}
	t.lock.Lock()
	defer t.lock.Unlock()
	if t.isCut {
		_ = upstream.Close()
		return nil
	}
	t.upstreams[upstream] = struct{}{}
	return upstream
}

func (t *Tunnel) cut() bool {
	t.lock.Lock()
	defer t.lock.Unlock()
	return t.isCut
}

// track has Close close a connection. The returned function closes it now.
func (t *Tunnel) track(connection net.Conn) (forget func()) {
	t.lock.Lock()
	defer t.lock.Unlock()
	t.connections[connection] = struct{}{}
	return func() {
		_ = connection.Close()
		t.lock.Lock()
		defer t.lock.Unlock()
		delete(t.connections, connection)
		delete(t.upstreams, connection)
	}
}
