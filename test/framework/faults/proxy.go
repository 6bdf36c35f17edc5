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
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/cert"

	"github.com/synchub-dev/synchub/test/framework/servers"
)

const loopback = "127.0.0.1"

// Fault is a kind of failure of a server.
type Fault string

// Faults that a [Proxy] can have.
const (
	// None passes everything through.
	None Fault = "none"
	// Refused closes all connections, and accepts no more.
	Refused Fault = "refused"
	// BlackHole accepts connections and reads from them without ever answering, also on connections that are already open.
	BlackHole Fault = "black hole"
	// Slow starts each answer late, by [Delay].
	Slow Fault = "slow"
	// Trickle sends each answer in pieces of [Piece] bytes, one per [Pause].
	Trickle Fault = "trickle"
	// Failing answers every request with a 500.
	Failing Fault = "500s"
)

const (
	// Delay is shorter than the timeouts of clients, and long enough to be noticeable.
	Delay = 2 * time.Second
	// With Piece and Pause, the version of Kubernetes, of about 400 bytes, takes over 20 seconds.
	Piece = 16
	Pause = time.Second
)

// Proxy is a reverse proxy at its own address with its own certificate, which may have a fault.
type Proxy struct {
	upstream    *rest.Config
	address     string
	authority   []byte
	certificate tls.Certificate
	proxy       *httputil.ReverseProxy
	// fault is read by every connection; changing guards the other fields.
	fault    atomic.Value
	changing sync.Mutex
	server   *http.Server
}

// NewProxy returns a proxy for the server of a client config. It listens until [Proxy.Close].
func NewProxy(ctx context.Context, upstream *rest.Config) (*Proxy, error) {
	host, err := url.Parse(upstream.Host)
	if err != nil {
		return nil, fmt.Errorf("read the address of the server: %w", err)
	}
	trusted, err := rest.TLSConfigFor(upstream)
	if err != nil {
		return nil, fmt.Errorf("read whom to trust as the server: %w", err)
	}
	authority, key, err := cert.GenerateSelfSignedCertKey(loopback, []net.IP{net.ParseIP(loopback)}, nil)
	if err != nil {
		return nil, fmt.Errorf("make a serving certificate: %w", err)
	}
	certificate, err := tls.X509KeyPair(authority, key)
	if err != nil {
		return nil, fmt.Errorf("make a serving certificate: %w", err)
	}
	p := &Proxy{upstream: upstream, address: loopback + ":0", authority: authority, certificate: certificate, proxy: &httputil.ReverseProxy{
		Rewrite:       func(request *httputil.ProxyRequest) { request.SetURL(host) },
		Transport:     &http.Transport{TLSClientConfig: trusted, ForceAttemptHTTP2: true},
		FlushInterval: -1, // an event of a watch must not wait for the next
		ErrorLog:      discardLogger(),
	}}
	p.fault.Store(None)
	return p, p.open(ctx)
}

// discardLogger is for a server whose clients break connections on purpose.
func discardLogger() *log.Logger { return log.New(io.Discard, "", 0) }

// Kubeconfig returns a kubeconfig for the proxy, with the token of the upstream config.
func (p *Proxy) Kubeconfig() ([]byte, error) {
	return servers.Kubeconfig("proxy", "https://"+p.address, p.authority, "user", p.upstream.BearerToken)
}

// Set sets the fault, or removes it with None. Connections stay open unless the fault closes them.
func (p *Proxy) Set(ctx context.Context, fault Fault) error {
	p.changing.Lock()
	defer p.changing.Unlock()
	before := p.fault.Swap(fault)
	switch {
	case fault == Refused:
		return p.closeServer()
	case p.server == nil:
		return p.open(ctx)
	case before == BlackHole:
		// Requests that were swallowed are missing in every connection, so all are closed.
		return errors.Join(p.closeServer(), p.open(ctx))
	default:
		return nil
	}
}

// Close stops the proxy.
func (p *Proxy) Close() error {
	p.changing.Lock()
	defer p.changing.Unlock()
	return p.closeServer()
}

// open starts listening, at the same address each time.
func (p *Proxy) open(ctx context.Context) error {
	listening, err := new(net.ListenConfig).Listen(ctx, "tcp", p.address)
	if err != nil {
		return fmt.Errorf("listen at %s: %w", p.address, err)
	}
	p.address = listening.Addr().String()
	p.server = &http.Server{
		Handler: p, ReadHeaderTimeout: time.Minute, ErrorLog: discardLogger(),
		TLSConfig: &tls.Config{Certificates: []tls.Certificate{p.certificate}, MinVersion: tls.VersionTLS12},
	}
	go func(server *http.Server) { _ = server.ServeTLS(listener{listening, p}, "", "") }(p.server) // it ends by shut
	return nil
}

// closeServer closes the listener and all connections.
func (p *Proxy) closeServer() error {
	if p.server == nil {
		return nil
	}
	err := p.server.Close()
	p.server = nil
	if err != nil && !errors.Is(err, net.ErrClosed) {
		return fmt.Errorf("shut the proxy at %s: %w", p.address, err)
	}
	return nil
}

func (p *Proxy) has(fault Fault) bool { return p.fault.Load() == fault }

// ServeHTTP passes a request through as far as the fault allows.
func (p *Proxy) ServeHTTP(writer http.ResponseWriter, request *http.Request) {
	switch p.fault.Load() {
	case Failing:
		http.Error(writer, "the disk is on fire", http.StatusInternalServerError)
		return
	case Slow:
		if !sleep(request.Context(), Delay) {
			return
		}
	case Trickle:
		writer = &trickleWriter{ResponseWriter: writer, ctx: request.Context()}
	}
	p.proxy.ServeHTTP(writer, request)
}

// sleep reports whether the time has passed before ctx ended.
func sleep(ctx context.Context, length time.Duration) bool {
	timer := time.NewTimer(length)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}

// trickleWriter writes in small pieces.
type trickleWriter struct {
	http.ResponseWriter
	ctx context.Context
}

// Unwrap lets http.ResponseController flush the pieces.
func (t *trickleWriter) Unwrap() http.ResponseWriter { return t.ResponseWriter }

func (t *trickleWriter) Write(content []byte) (written int, err error) {
	for written < len(content) {
		if !sleep(t.ctx, Pause) {
			return written, t.ctx.Err()
		}
		piece, err := t.ResponseWriter.Write(content[written:min(written+Piece, len(content))])
		written += piece
		if err != nil {
			return written, err
		}
		if err := http.NewResponseController(t.ResponseWriter).Flush(); err != nil {
			return written, err
		}
	}
	return written, nil
}

// listener accepts connections that the proxy can turn into black holes.
type listener struct {
	net.Listener
	proxy *Proxy
}

func (l listener) Accept() (net.Conn, error) {
	accepted, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return connection{accepted, l.proxy}, nil
}

type connection struct {
	net.Conn
	proxy *Proxy
}

func (c connection) Read(into []byte) (int, error) {
	for {
		read, err := c.Conn.Read(into)
		if err != nil || !c.proxy.has(BlackHole) {
			return read, err
		}
	}
}

func (c connection) Write(content []byte) (int, error) {
	if c.proxy.has(BlackHole) {
		return len(content), nil
	}
	return c.Conn.Write(content)
}
