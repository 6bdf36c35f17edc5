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

package fleet

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log"
	"maps"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"path"
	"strings"
	"sync"
	"time"
)

// IdleRequests maps the last part of the path of a request to the minimum time between two such requests of an idle hub.
type IdleRequests map[string]time.Duration

// RequestCounts counts connections and requests of a proxy.
type RequestCounts struct {
	// Connections is the number of connections that clients opened.
	Connections int
	// Idle counts the idle requests, and the watches that replace one that the server has ended.
	Idle map[string]int
	// Caused counts all other requests: they must have a cause.
	Caused map[string]int
}

// Since returns the difference to earlier counts.
func (t RequestCounts) Since(before RequestCounts) RequestCounts {
	return RequestCounts{
		Connections: t.Connections - before.Connections,
		Idle:        difference(before.Idle, t.Idle),
		Caused:      difference(before.Caused, t.Caused),
	}
}

// HasActivity reports whether there were new connections or requests with a cause.
func (t RequestCounts) HasActivity() bool { return t.Connections > 0 || len(t.Caused) > 0 }

func difference(before, after map[string]int) map[string]int {
	changed := map[string]int{}
	for what, count := range after {
		if count != before[what] {
			changed[what] = count - before[what]
		}
	}
	return changed
}

// CountingProxy is a counting reverse proxy. It listens on the loopback address with TLS. It is safe for concurrent use.
type CountingProxy struct {
	address      string
	certificate  tls.Certificate
	idleRequests IdleRequests
	proxy        *httputil.ReverseProxy

	lock   sync.Mutex
	server *http.Server
	counts RequestCounts
	// open is the number of present connections, and watching the number of present watches.
	open, watching int
	// last is the time of the last idle request, by the last part of its path.
	last map[string]time.Time
	// ended counts the watches per path that the server has ended. Clients may start a new watch after each.
	ended map[string]int
}

// NewCountingProxy returns a closed proxy for a port. It passes requests to upstream.
func NewCountingProxy(port int, certificate tls.Certificate, upstream *url.URL, transport http.RoundTripper, idleRequests IdleRequests) *CountingProxy {
	return &CountingProxy{
		address:      net.JoinHostPort("127.0.0.1", fmt.Sprint(port)),
		certificate:  certificate,
		idleRequests: idleRequests,
		proxy: &httputil.ReverseProxy{
			Rewrite:       func(request *httputil.ProxyRequest) { request.SetURL(upstream) },
			Transport:     transport,
			FlushInterval: -1, // an event of a watch must not wait for the next
			ErrorLog:      discardLogger(),
		},
		counts: RequestCounts{Idle: map[string]int{}, Caused: map[string]int{}},
		last:   map[string]time.Time{},
		ended:  map[string]int{},
	}
}

// discardLogger is for servers whose clients may break connections.
func discardLogger() *log.Logger { return log.New(io.Discard, "", 0) }

// URL returns the address of the proxy while it is open.
func (g *CountingProxy) URL() string { return "https://" + g.address }

// Open starts listening, at the same address each time.
func (g *CountingProxy) Open(ctx context.Context) error {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", g.address)
	if err != nil {
		return fmt.Errorf("open the gate at %s: %w", g.address, err)
	}
	server := &http.Server{
		Handler:           g,
		ReadHeaderTimeout: time.Minute,
		ConnState:         g.trackConnection,
		ErrorLog:          discardLogger(),
		TLSConfig:         &tls.Config{Certificates: []tls.Certificate{g.certificate}, MinVersion: tls.VersionTLS12},
	}
	g.lock.Lock()
	defer g.lock.Unlock()
	g.server = server
	go func() { _ = server.ServeTLS(listener, "", "") }() // it ends by Shut
	return nil
}

// Close closes all connections, and refuses new ones until Open is called.
func (g *CountingProxy) Close() error {
	g.lock.Lock()
	server := g.server
	g.server = nil
	g.lock.Unlock()
	if server == nil {
		return nil
	}
	if err := server.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
		return fmt.Errorf("shut the gate at %s: %w", g.address, err)
	}
	return nil
}

// Counts returns the counts so far.
func (g *CountingProxy) Counts() RequestCounts {
	g.lock.Lock()
	defer g.lock.Unlock()
	return RequestCounts{Connections: g.counts.Connections, Idle: maps.Clone(g.counts.Idle), Caused: maps.Clone(g.counts.Caused)}
}

// Connections returns the number of present connections.
func (g *CountingProxy) Connections() int {
	g.lock.Lock()
	defer g.lock.Unlock()
	return g.open
}

// Watches returns the number of present watches.
func (g *CountingProxy) Watches() int {
	g.lock.Lock()
	defer g.lock.Unlock()
	return g.watching
}

func (g *CountingProxy) trackConnection(_ net.Conn, state http.ConnState) {
	g.lock.Lock()
	defer g.lock.Unlock()
	switch state {
	case http.StateNew:
		g.counts.Connections++
		g.open++
	case http.StateClosed, http.StateHijacked:
		g.open--
	case http.StateActive, http.StateIdle:
	}
}

// ServeHTTP counts a request and passes it on.
func (g *CountingProxy) ServeHTTP(writer http.ResponseWriter, request *http.Request) {
	isWatch := request.URL.Query().Get("watch") == "true"
	what := describe(request, isWatch)
	g.countRequest(what, path.Base(request.URL.Path), isWatch, time.Now())
	if isWatch {
		g.watchStarted()
		// Also if the proxy panics because a client closed its connection.
		defer func() { g.watchEnded(what, request.Context().Err() == nil) }()
	}
	g.proxy.ServeHTTP(writer, request)
}

func (g *CountingProxy) watchStarted() {
	g.lock.Lock()
	defer g.lock.Unlock()
	g.watching++
}

func (g *CountingProxy) watchEnded(what string, byServer bool) {
	g.lock.Lock()
	defer g.lock.Unlock()
	g.watching--
	if byServer {
		g.ended[what]++
	}
}

func (g *CountingProxy) countRequest(what, kind string, isWatch bool, now time.Time) {
	g.lock.Lock()
	defer g.lock.Unlock()
	least, isPeriodic := g.idleRequests[kind]
	last, before := g.last[kind]
	switch {
	case isWatch && g.ended[what] > 0:
		g.ended[what]--
		g.counts.Idle[what]++
	case isPeriodic && before && now.Sub(last) >= least:
		g.counts.Idle[what]++
	default:
		g.counts.Caused[what]++
	}
	if isPeriodic {
		g.last[kind] = now
	}
}

// describe returns the method and the path of a request, without the workspace.
func describe(request *http.Request, isWatch bool) string {
	method, where := request.Method, request.URL.Path
	if isWatch {
		method = "WATCH"
	}
	if rest, ok := strings.CutPrefix(where, "/clusters/"); ok {
		if slash := strings.Index(rest, "/"); slash >= 0 {
			where = rest[slash:]
		}
	}
	return method + " " + where
}
