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

package tunnel

import (
	"bufio"
	"fmt"
	"maps"
	"net"
	"net/http"
	"strconv"
	"sync"
	"time"

	"golang.org/x/net/http2"

	"github.com/synchub-dev/synchub/provider/targets/tunnel/protocol"
)

// handoverPeriod is how long a session that was replaced stays open for the requests that use it.
const handoverPeriod = 5 * time.Second

// upgrade hijacks the connection of a handshake, and writes the response 101.
func upgrade(w http.ResponseWriter) (net.Conn, error) {
	connection, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return nil, fmt.Errorf("cannot take the connection over: %w", err)
	}
	_, err = fmt.Fprintf(buffered, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: %s\r\n%s: %s\r\n%s: %s\r\n\r\n",
		protocol.Upgrade, protocol.HeaderReplica, w.Header().Get(protocol.HeaderReplica), protocol.HeaderReplicas, w.Header().Get(protocol.HeaderReplicas))
	if err == nil {
		err = buffered.Flush()
	}
	if err == nil {
		err = connection.SetDeadline(time.Time{})
	}
	if err != nil {
		_ = connection.Close()
		return nil, fmt.Errorf("cannot respond to a handshake: %w", err)
	}
	if buffered.Reader.Buffered() > 0 {
		return &bufferedConn{Conn: connection, reader: buffered.Reader}, nil
	}
	return connection, nil
}

// bufferedConn is a connection whose first bytes may be in the buffer of a reader.
type bufferedConn struct {
	net.Conn
	reader *bufio.Reader
}

func (c *bufferedConn) Read(p []byte) (int, error) { return c.reader.Read(p) }

// session is one open tunnel, with the hub as client.
type session struct {
	instance string
	token    tokenHash
	server   *Server
	conn     *http2.ClientConn
	ended    chan struct{}
}

// newSession starts HTTP/2 on a connection. It closes the connection after an error.
func (s *Server) newSession(connection net.Conn, hello hello) (*session, error) {
	opened := &session{instance: hello.instance, token: hello.token, server: s, ended: make(chan struct{})}
	openSessions.Inc()
	onClose := sync.OnceFunc(func() {
		openSessions.Dec()
		close(opened.ended)
		if hello.peer.drop(opened) {
			s.OnChange(hello.peer.syncTarget)
		}
	})
	tracked := &closeNotifyConn{Conn: connection, onClose: onClose}
	var err error
	if opened.conn, err = s.http2.NewClientConn(tracked); err != nil {
		_ = tracked.Close()
		return nil, fmt.Errorf("cannot start HTTP/2: %w", err)
	}
	return opened, nil
}

// closeNotifyConn calls onClose when it is closed. HTTP/2 closes the connection when it detects its end.
type closeNotifyConn struct {
	net.Conn
	onClose func()
}

func (c *closeNotifyConn) Close() error {
	err := c.Conn.Close()
	c.onClose()
	return err
}

// RoundTrip sends a request through the tunnel.
func (s *session) RoundTrip(request *http.Request) (*http.Response, error) {
	// A transport must not change a request, and only the headers change here.
	outgoing := *request
	outgoing.Header = maps.Clone(request.Header)
	outgoing.Header.Set(protocol.HeaderReplicas, strconv.Itoa(s.server.Replicas()))
	response, err := s.conn.RoundTrip(&outgoing)
	if err != nil && s.hasEnded() {
		return nil, &ClosedError{Lost: true}
	}
	return response, err
}

func (s *session) hasEnded() bool {
	select {
	case <-s.ended:
		return true
	default:
		return false
	}
}

func (s *session) close() { _ = s.conn.Close() }

// closeLater closes a session that was replaced, after its requests had time to finish.
func (s *session) closeLater() {
	s.conn.SetDoNotReuse()
	time.AfterFunc(handoverPeriod, s.close)
}
