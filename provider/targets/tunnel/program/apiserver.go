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
	"crypto/x509"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"sync"
	"time"

	"golang.org/x/net/http2"
	"k8s.io/utils/clock"

	"github.com/synchub-dev/synchub/provider/targets/tunnel/protocol"
)

// tokenLifetime is how long the token of the ServiceAccount is used before its file is read again.
const tokenLifetime = time.Minute

const (
	// maxIdleConnections is used only for an API server without HTTP/2.
	maxIdleConnections = 25
	// idleTimeout is how long an unused connection to the API server stays open.
	idleTimeout = 90 * time.Second
)

// APIServer is the API server of the cluster, and the credentials for it.
type APIServer struct {
	url *url.URL
	// authorityFile has the certificate authority, and is read for each connection. If it is empty, the system's authorities are
	// used.
	authorityFile string
	token         tokenFile
}

// NewAPIServer validates the URL, and reads the files of the certificate authority and of the token once. It does not connect.
func NewAPIServer(address, authorityFile, token string, clock clock.PassiveClock) (*APIServer, error) {
	server, err := url.Parse(address)
	if err != nil || server.Scheme != "https" || server.Host == "" || server.User != nil || server.RawQuery != "" {
		return nil, fmt.Errorf("the URL of the API server must be like https://10.96.0.1:443, and is %q", address)
	}
	a := &APIServer{url: server, authorityFile: authorityFile, token: tokenFile{name: token, clock: clock}}
	if _, err := a.authorities(); err != nil {
		return nil, err
	}
	if _, err := a.token.get(); err != nil {
		return nil, err
	}
	return a, nil
}

func (a *APIServer) authorities() (*x509.CertPool, error) {
	if a.authorityFile == "" {
		return nil, nil
	}
	content, err := os.ReadFile(a.authorityFile)
	if err != nil {
		return nil, fmt.Errorf("cannot read the certificate authority of the API server: %w", err)
	}
	authorities := x509.NewCertPool()
	if !authorities.AppendCertsFromPEM(content) {
		return nil, fmt.Errorf("%s has no certificate in PEM form", a.authorityFile)
	}
	return authorities, nil
}

// transport returns a transport to the API server, with HTTP/2 if the server supports it.
func (a *APIServer) transport() *http.Transport {
	return &http.Transport{
		DialTLSContext: a.dial, ForceAttemptHTTP2: true, MaxIdleConnsPerHost: maxIdleConnections, IdleConnTimeout: idleTimeout,
		MaxResponseHeaderBytes: protocol.MaxHeaderBytes, DisableCompression: true,
		HTTP2: &http.HTTP2Config{SendPingTimeout: protocol.PingAfter, PingTimeout: protocol.PingTimeout, WriteByteTimeout: protocol.WriteTimeout},
	}
}

// dial connects to the API server. It reads the certificate authority again, which may have been replaced.
func (a *APIServer) dial(ctx context.Context, network, address string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, protocol.HandshakeTimeout)
	defer cancel()
	authorities, err := a.authorities()
	if err != nil {
		return nil, err
	}
	dialer := tls.Dialer{Config: &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: authorities, NextProtos: []string{http2.NextProtoTLS, "http/1.1"}}}
	return dialer.DialContext(ctx, network, address)
}

// tokenFile is a token in a file that is replaced from time to time.
type tokenFile struct {
	name  string
	clock clock.PassiveClock

	lock   sync.Mutex
	value  string
	readAt time.Time
}

// get returns the token; the last known token while the file cannot be read.
func (t *tokenFile) get() (string, error) {
	t.lock.Lock()
	defer t.lock.Unlock()
	now := t.clock.Now()
	if t.value != "" && now.Sub(t.readAt) < tokenLifetime {
		return t.value, nil
	}
	value, err := readToken(t.name)
	if err == nil && value == "" {
		err = fmt.Errorf("the file %s has no token", t.name)
	}
	if err != nil && t.value == "" {
		return "", err
	}
	if err == nil {
		t.value = value
	}
	t.readAt = now
	return t.value, nil
}

// readToken returns the token in a file.
func readToken(name string) (string, error) {
	content, err := os.ReadFile(name) //nolint:gosec // the name is an option
	if err != nil {
		return "", fmt.Errorf("cannot read the token: %w", err)
	}
	return strings.TrimSpace(string(content)), nil
}
