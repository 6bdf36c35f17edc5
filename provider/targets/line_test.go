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

// line is a way to a server that can be cut, and frozen, without the server's doing.
type line struct {
	address, server string
	carriers        sync.WaitGroup

	lock     sync.Mutex
	listener net.Listener
	// thawed is closed while data flows.
	thawed chan struct{}
	ends   map[net.Conn]struct{}
	opened int
}

// newLine opens a line to the target's API server, and closes it when the test ends.
func newLine(t *testing.T, target *servers.Target) *line {
	t.Helper()
	port, err := servers.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	l := &line{
		address: net.JoinHostPort("127.0.0.1", strconv.Itoa(port)),
		server:  strings.TrimPrefix(target.Config.Host, "https://"),
		thawed:  make(chan struct{}),
		ends:    map[net.Conn]struct{}{},
	}
	close(l.thawed)
	l.Mend(t)
	t.Cleanup(func() {
		l.Thaw()
		l.Cut()
		l.carriers.Wait()
	})
	return l
}

// URL is the server's, as seen through the line.
func (l *line) URL() string { return "https://" + l.address }

// Cut ends all connections, and refuses new ones.
func (l *line) Cut() {
	l.lock.Lock()
	defer l.lock.Unlock()
	if l.listener != nil {
		_ = l.listener.Close()
		l.listener = nil
	}
	for end := range l.ends {
		_ = end.Close()
	}
}

// Mend lets connections be made again.
func (l *line) Mend(t *testing.T) {
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
func (l *line) Freeze() {
	l.lock.Lock()
	defer l.lock.Unlock()
	l.thawed = make(chan struct{})
}

// Thaw lets data flow again.
func (l *line) Thaw() {
	l.lock.Lock()
	defer l.lock.Unlock()
	select {
	case <-l.thawed:
	default:
		close(l.thawed)
	}
}

// Open returns how many connections of clients are open.
func (l *line) Open() int {
	l.lock.Lock()
	defer l.lock.Unlock()
	return len(l.ends) / 2
}

// Opened returns how many were ever opened.
func (l *line) Opened() int {
	l.lock.Lock()
	defer l.lock.Unlock()
	return l.opened
}

func (l *line) accept(ctx context.Context, listener net.Listener) {
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
		l.ends[client], l.ends[server] = struct{}{}, struct{}{}
		if l.listener != listener {
			_, _ = client.Close(), server.Close()
		}
		l.lock.Unlock()
		var both sync.WaitGroup
		both.Go(func() { l.carry(client, server) })
		both.Go(func() { l.carry(server, client) })
		l.carriers.Go(func() {
			both.Wait()
			l.lock.Lock()
			defer l.lock.Unlock()
			delete(l.ends, client)
			delete(l.ends, server)
		})
	}
}

// carry copies until one of the two is closed, and closes the other.
func (l *line) carry(from, to net.Conn) {
	defer func() { _, _ = from.Close(), to.Close() }()
	buffer := make([]byte, 32<<10)
	for {
		count, err := from.Read(buffer)
		if err != nil {
			return
		}
		l.lock.Lock()
		thawed := l.thawed
		l.lock.Unlock()
		<-thawed
		if _, err := to.Write(buffer[:count]); err != nil {
			return
		}
	}
}
