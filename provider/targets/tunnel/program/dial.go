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

package program

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"strconv"
	"strings"

	"github.com/synchub-dev/synchub/provider/targets/tunnel/protocol"
)

// maxRefusalBytes bounds the text of a refused handshake.
const maxRefusalBytes = 1 << 10

// RefusedError is the response of the hub to a handshake that it refused.
type RefusedError struct {
	Status int
	// Replica is the replica that responded.
	Replica string
	Message string
}

func (e *RefusedError) Error() string {
	return fmt.Sprintf("the hub refused the tunnel (%d %s): %s", e.Status, http.StatusText(e.Status), e.Message)
}

// isConnected reports whether the client has a session with this replica already.
func (e *RefusedError) isConnected() bool { return e.Status == http.StatusConflict }

// dialer opens tunnels to the hub.
type dialer struct {
	// url is the address of the handshake.
	url      string
	instance string
	tls      *tls.Config
	proxy    func(*http.Request) (*url.URL, error)
}

// dialed is a connection after a successful handshake.
type dialed struct {
	*upgradedConn
	replica  string
	replicas int
}

// dial opens one tunnel. connected are the replicas with which the client has a session. ctx bounds the handshake only.
func (d *dialer) dial(ctx context.Context, token string, connected []string) (*dialed, error) {
	ctx, cancel := context.WithTimeout(ctx, protocol.HandshakeTimeout)
	defer cancel()
	var network *tls.Conn
	traced := httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: func(got httptrace.GotConnInfo) { network, _ = got.Conn.(*tls.Conn) }})
	request, err := http.NewRequestWithContext(traced, http.MethodGet, d.url, nil)
	if err != nil {
		return nil, fmt.Errorf("cannot use the hub's URL: %w", err)
	}
	request.Header.Set("Connection", "Upgrade")
	request.Header.Set("Upgrade", protocol.Upgrade)
	request.Header.Set("Authorization", "Bearer "+token)
	request.Header.Set(protocol.HeaderInstance, d.instance)
	request.Header.Set(protocol.HeaderConnected, strings.Join(connected, ","))
	// Each tunnel has a transport of its own, which lives as long as its connection.
	transport := &http.Transport{
		Proxy: d.proxy, TLSClientConfig: d.tls, MaxResponseHeaderBytes: protocol.MaxHandshakeBytes, DisableCompression: true,
		DialContext: (&net.Dialer{Timeout: protocol.HandshakeTimeout, KeepAlive: protocol.PingAfter}).DialContext,
	}
	response, err := transport.RoundTrip(request)
	if err != nil {
		return nil, fmt.Errorf("cannot reach the hub: %w", err)
	}
	replica := response.Header.Get(protocol.HeaderReplica)
	if response.StatusCode != http.StatusSwitchingProtocols {
		defer transport.CloseIdleConnections()
		defer func() { _ = response.Body.Close() }()
		text, _ := io.ReadAll(io.LimitReader(response.Body, maxRefusalBytes))
		return nil, &RefusedError{Status: response.StatusCode, Replica: replica, Message: printable(string(text))}
	}
	body, ok := response.Body.(io.ReadWriteCloser)
	if !ok || network == nil {
		_ = response.Body.Close()
		return nil, errors.New("the connection to the hub cannot be taken over")
	}
	return &dialed{upgradedConn: &upgradedConn{Conn: network, body: body}, replica: replica, replicas: protocol.Replicas(response.Header.Get(protocol.HeaderReplicas))}, nil
}

// printable returns a text of the hub in one line.
func printable(text string) string {
	return strings.Join(strings.FieldsFunc(text, func(r rune) bool { return !strconv.IsPrint(r) }), " ")
}

// upgradedConn is the connection of an upgraded request. It is read and written through the body of the response, because the
// body may have buffered data already.
type upgradedConn struct {
	*tls.Conn
	body io.ReadWriteCloser
}

func (c *upgradedConn) Read(p []byte) (int, error)  { return c.body.Read(p) }
func (c *upgradedConn) Write(p []byte) (int, error) { return c.body.Write(p) }

// Close implements [net.Conn].
func (c *upgradedConn) Close() error { return errors.Join(c.Conn.Close(), c.body.Close()) }
