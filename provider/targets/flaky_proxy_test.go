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
	"net"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/synchub-dev/synchub/test/framework/servers"
)

// flakyProxy is a proxy of a server whose connections a test can cut and freeze.
type flakyProxy struct {
	address, server string
	carriers        sync.WaitGroup

	lock     sync.Mutex
	listener net.Listener
	// unfrozen is closed while data flows.
	unfrozen    chan struct{}
	connections map[net.Conn]struct{}
	opened      int
}

// newFlakyProxy starts a proxy of the target's API server, and stops it when the test ends.
func newFlakyProxy(t *testing.T, target *servers.Target) *flakyProxy {
	t.Helper()
	port, err := servers.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	l := &flakyProxy{
		address:     net.JoinHostPort("127.0.0.1", strconv.Itoa(port)),
		server:      strings.TrimPrefix(target.Config.Host, "https://"),
		unfrozen:    make(chan struct{}),
		connections: map[net.Conn]struct{}{},
	}
	close(l.unfrozen)
	l.Reconnect(t)
	t.Cleanup(func() {
		l.Unfreeze()
		l.Disconnect()
		l.carriers.Wait()
	})
	return l
}

// URL returns the URL of the server through the proxy.
func (l *flakyProxy) URL() string { return "https://" + l.address }

// Disconnect ends all connections, and refuses new ones.
func (l *flakyProxy) Disconnect() {
	l.lock.Lock()
	defer l.lock.Unlock()
	if l.listener != nil {
		_ = l.listener.Close()
		l.listener = nil
	}
	for end := range l.connections {
		_ = end.Close()
	}
}

// Reconnect lets connections be made again.
func (l *flakyProxy) Reconnect(t *testing.T) {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", l.address)
	if err != nil {
		t.Fatal(err)
	}
	l.lock.Lock()
	defer l.lock.Unlock()
	l.listener = listener
	l.carriers.Go(func() { l.accept(t.Context(), listener) })
}

// Freeze keeps all connections and lets nothing through.
func (l *flakyProxy) Freeze() {
	l.lock.Lock()
	defer l.lock.Unlock()
	l.unfrozen = make(chan struct{})
}

// Unfreeze lets data flow again.
func (l *flakyProxy) Unfreeze() {
	l.lock.Lock()
	defer l.lock.Unlock()
	select {
	case <-l.unfrozen:
	default:
		close(l.unfrozen)
	}
}

// Open returns how many connections of clients are open.
func (l *flakyProxy) Open() int {
	l.lock.Lock()
	defer l.lock.Unlock()
	return len(l.connections) / 2
}

// Opened returns how many connections were ever opened.
func (l *flakyProxy) Opened() int {
	l.lock.Lock()
	defer l.lock.Unlock()
	return l.opened
}

func (l *flakyProxy) accept(ctx context.Context, listener net.Listener) {
	for {
		client, err := listener.Accept()
		if err != nil {
			return
		}
		server, err := new(net.Dialer).DialContext(ctx, "tcp", l.server)
		if err != nil {
			_ = client.Close()
			continue
		}
		l.lock.Lock()
		l.opened++
		l.connections[client], l.connections[server] = struct{}{}, struct{}{}
		if l.listener != listener {
			_, _ = client.Close(), server.Close()
		}
		l.lock.Unlock()
		var both sync.WaitGroup
		both.Go(func() { l.forward(client, server) })
		both.Go(func() { l.forward(server, client) })
		l.carriers.Go(func() {
			both.Wait()
			l.lock.Lock()
			defer l.lock.Unlock()
			delete(l.connections, client)
			delete(l.connections, server)
		})
	}
}

// forward copies until one of the two is closed, and closes the other.
func (l *flakyProxy) forward(from, to net.Conn) {
	defer func() { _, _ = from.Close(), to.Close() }()
	buffer := make([]byte, 32<<10)
	for {
		count, err := from.Read(buffer)
		if err != nil {
			return
		}
		l.lock.Lock()
		resumed := l.unfrozen
		l.lock.Unlock()
		<-resumed
		if _, err := to.Write(buffer[:count]); err != nil {
			return
		}
	}
}
