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
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	mathrand "math/rand/v2"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"time"

	"golang.org/x/net/http2"
	"k8s.io/utils/clock"

	"github.com/synchub-dev/synchub/provider/targets/tunnel/protocol"
)

const (
	// minBackoff and maxBackoff bound the time between two handshakes. A failed one doubles it.
	minBackoff, maxBackoff = 250 * time.Millisecond, 5 * time.Second
	// searchBackoff bounds that time while the client looks for more replicas, but only reaches replicas that it has a session
	// with.
	searchBackoff = 30 * time.Second
	// tokenInterval is how often the file with the token is read. Not all systems have an event when Kubernetes replaces the
	// file.
	tokenInterval = 10 * time.Second
	// minLifetime is the minimum lifetime of a session after which the client dials again without a backoff.
	minLifetime = 5 * time.Second
)

// ClientOptions configure a [Client].
type ClientOptions struct {
	// Hub is the URL of the hub's port for tunnels, and SyncTarget the UID of the SyncTarget.
	Hub, SyncTarget string
	// TokenFile has the token. It is read again when it changes.
	TokenFile string
	// Authority is the certificate authority of the hub, in PEM form. If it is empty, the system's authorities are used.
	Authority []byte
	// Proxy returns the proxy for connections to the hub, as Proxy of [http.Transport]. It may be nil.
	Proxy func(*http.Request) (*url.URL, error)
	// APIServer receives the requests of the hub.
	APIServer *APIServer
	Clock     clock.WithTicker
	Log       *slog.Logger
}

// errShortLived is the result of a session that ended before minLifetime.
var errShortLived = errors.New("the tunnel was closed soon")

// Client keeps a tunnel open to each replica of the hub.
type Client struct {
	ClientOptions
	dialer dialer
	proxy  http.Handler
	http2  *http2.Server
	// wake has an entry when Run may have work.
	wake chan struct{}

	lock sync.Mutex
	// sessions are the open tunnels by replica, with the token that opened each.
	sessions map[string]*clientSession
	// replicas is the number of replicas that the hub reported.
	replicas int
}

type clientSession struct {
	token string
	close func()
}

// NewClient validates the options. It does not connect.
func NewClient(options ClientOptions) (*Client, error) {
	hub, err := url.Parse(options.Hub)
	if err != nil || hub.Scheme != "https" || hub.Host == "" || hub.User != nil || hub.RawQuery != "" {
		return nil, fmt.Errorf("the URL of the hub must be like https://synchub.example.com:8443, and is %q", options.Hub)
	}
	if options.SyncTarget == "" {
		return nil, errors.New("the UID of the SyncTarget is missing")
	}
	var authorities *x509.CertPool
	if len(options.Authority) > 0 {
		authorities = x509.NewCertPool()
		if !authorities.AppendCertsFromPEM(options.Authority) {
			return nil, errors.New("the certificate authority of the hub has no certificate in PEM form")
		}
	}
	return &Client{
		ClientOptions: options,
		dialer: dialer{
			url: hub.JoinPath(protocol.PathPrefix, options.SyncTarget).String(), instance: rand.Text(),
			tls: &tls.Config{MinVersion: tls.VersionTLS13, RootCAs: authorities, NextProtos: []string{"http/1.1"}}, proxy: options.Proxy,
		},
		proxy: newProxy(options.APIServer, options.Log),
		http2: &http2.Server{
			MaxConcurrentStreams: protocol.MaxStreams, MaxUploadBufferPerStream: protocol.StreamBuffer, MaxUploadBufferPerConnection: protocol.ConnectionBuffer,
			ReadIdleTimeout: protocol.PingAfter, PingTimeout: protocol.PingTimeout, WriteByteTimeout: protocol.WriteTimeout,
		},
		wake: make(chan struct{}, 1), sessions: map[string]*clientSession{},
	}, nil
}

// Sessions returns the number of open tunnels.
func (c *Client) Sessions() int {
	c.lock.Lock()
	defer c.lock.Unlock()
	return len(c.sessions)
}

// Run keeps tunnels open until ctx ends, and closes them then.
func (c *Client) Run(ctx context.Context) error {
	var serving sync.WaitGroup
	defer serving.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	ticker := c.Clock.NewTicker(tokenInterval)
	defer ticker.Stop()
	backoff := backoff{}
	var last string
	for {
		token, err := readToken(c.TokenFile)
		if err == nil && c.needsSession(token) {
			err = c.connect(ctx, &serving, token)
			c.logChange(&last, err)
			if !backoff.wait(ctx, c.Clock, err) {
				return nil
			}
			continue
		}
		c.logChange(&last, err)
		select {
		case <-ctx.Done():
			return nil
		case <-c.wake:
			backoff.reset()
		case <-ticker.C():
		}
	}
}

// logChange logs an error unless the last one was of the same kind, so that an unreachable hub is logged once.
func (c *Client) logChange(last *string, err error) {
	kind := ""
	if refused, ok := errors.AsType[*RefusedError](err); ok {
		if refused.isConnected() {
			return
		}
		kind = refused.Error()
	} else if err != nil {
		kind = "unreachable"
	}
	if kind != "" && kind != *last {
		c.Log.Error("cannot open a tunnel, will retry", "hub", c.Hub, "error", err)
	}
	*last = kind
}

// needsSession reports whether a replica has no session, or one that another token opened.
func (c *Client) needsSession(token string) bool {
	c.lock.Lock()
	defer c.lock.Unlock()
	return len(c.connectedLocked(token)) < max(c.replicas, 1)
}

// connectedLocked returns the replicas with a session that the token opened, sorted.
func (c *Client) connectedLocked(token string) (replicas []string) {
	for _, name := range slices.Sorted(maps.Keys(c.sessions)) {
		if c.sessions[name].token == token {
			replicas = append(replicas, name)
		}
	}
	return replicas
}

// connect opens one tunnel and serves it in the background.
func (c *Client) connect(ctx context.Context, serving *sync.WaitGroup, token string) error {
	c.lock.Lock()
	connected := c.connectedLocked(token)
	c.lock.Unlock()
	opened, err := c.dialer.dial(ctx, token, connected)
	if err != nil {
		return err
	}
	c.setReplicas(opened.replicas)
	session := &clientSession{token: token, close: func() { _ = opened.Close() }}
	c.lock.Lock()
	c.sessions[opened.replica] = session
	c.lock.Unlock()
	c.Log.Info("a tunnel is open", "replica", opened.replica, "replicas", opened.replicas)
	began := c.Clock.Now()
	serving.Go(func() {
		stop := context.AfterFunc(ctx, session.close)
		defer stop()
		c.http2.ServeConn(opened, &http2.ServeConnOpts{Context: ctx, Handler: http.HandlerFunc(c.serve), BaseConfig: &http.Server{ErrorLog: discardLog, ReadHeaderTimeout: protocol.HandshakeTimeout}})
		session.close()
		if c.Clock.Since(began) < minLifetime {
			_ = (&backoff{next: minBackoff}).wait(ctx, c.Clock, errShortLived)
		}
		c.lost(opened.replica, session)
	})
	return nil
}

// serve handles a request of the hub.
func (c *Client) serve(w http.ResponseWriter, request *http.Request) {
	c.setReplicas(protocol.Replicas(request.Header.Get(protocol.HeaderReplicas)))
	c.proxy.ServeHTTP(w, request)
}

// lost removes a session that has ended.
func (c *Client) lost(replica string, session *clientSession) {
	c.lock.Lock()
	isPresent := c.sessions[replica] == session
	if isPresent {
		delete(c.sessions, replica)
	}
	c.lock.Unlock()
	if isPresent {
		c.Log.Info("a tunnel was closed", "replica", replica)
		c.notify()
	}
}

// setReplicas sets the number of replicas; zero changes nothing.
func (c *Client) setReplicas(count int) {
	c.lock.Lock()
	changed := count > 0 && count != c.replicas
	if changed {
		c.replicas = count
	}
	c.lock.Unlock()
	if changed {
		c.notify()
	}
}

func (c *Client) notify() {
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// backoff is the time between handshakes.
type backoff struct{ next time.Duration }

func (b *backoff) reset() { b.next = 0 }

// wait waits after a handshake, and reports whether ctx is alive. After a success it does not wait.
func (b *backoff) wait(ctx context.Context, clock clock.Clock, result error) bool {
	limit := maxBackoff
	if refused, ok := errors.AsType[*RefusedError](result); ok && refused.isConnected() {
		limit = searchBackoff
	}
	if result == nil {
		b.reset()
		return ctx.Err() == nil
	}
	b.next = min(max(2*b.next, minBackoff), limit)
	select {
	case <-ctx.Done():
		return false
	case <-clock.After(b.next/2 + mathrand.N(b.next)): //nolint:gosec // jitter needs no secrecy
		return true
	}
}
