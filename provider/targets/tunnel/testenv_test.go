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
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"github.com/synchub-dev/synchub/provider/targets/tunnel/program"
	"github.com/synchub-dev/synchub/provider/targets/tunnel/protocol"
)

const (
	florin = types.UID("florin")
	zloty  = types.UID("zloty")
	// patience is the timeout of all polls.
	patience = 30 * time.Second
)

// hub is one replica of the hub on a port of this machine.
type hub struct {
	*Server
	authority *Authority
	listener  net.Listener
	stop      context.CancelFunc
	ended     chan struct{}
	// refuse is why the next sessions are refused; nil admits them.
	refuse  atomic.Pointer[error]
	changes atomic.Int64
}

var testAuthority = sync.OnceValues(func() (*Authority, error) {
	stored, err := newAuthoritySecret()
	if err != nil {
		return nil, err
	}
	return parseAuthority(stored, "127.0.0.1", clock.RealClock{})
})

func startHub(t testing.TB, name string, replicas int) *hub {
	t.Helper()
	return startHubWith(t, name, replicas, clock.RealClock{})
}

func startHubWith(t testing.TB, name string, replicas int, clock clock.PassiveClock) *hub {
	t.Helper()
	g := NewWithT(t)
	h := &hub{ended: make(chan struct{})}
	var err error
	h.authority, err = testAuthority()
	g.Expect(err).NotTo(HaveOccurred())
	h.Server = NewServer(Options{
		Replica: name, Replicas: func() int { return replicas },
		Verify: func(context.Context, types.UID, http.RoundTripper) error {
			if refuse := h.refuse.Load(); refuse != nil {
				return *refuse
			}
			return nil
		},
		OnChange: func(types.UID) { h.changes.Add(1) }, Clock: clock, Log: logr.Discard(),
	})
	h.listener, err = (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	g.Expect(err).NotTo(HaveOccurred())
	ctx, cancel := context.WithCancel(context.Background())
	h.stop = cancel
	go func() {
		defer close(h.ended)
		if err := h.Serve(ctx, h.listener, h.authority.GetCertificate); err != nil {
			t.Error(err)
		}
	}()
	t.Cleanup(func() { cancel(); <-h.ended })
	return h
}

func (h *hub) address() string { return h.listener.Addr().String() }

// current returns the open session of florin; nil if there is none.
func (h *hub) current() *session {
	found := h.find(florin)
	found.lock.Lock()
	defer found.lock.Unlock()
	return found.current
}

// admit lets the SyncTarget connect, and returns its credential.
func (h *hub) admit(t testing.TB, syncTarget types.UID) Credential {
	t.Helper()
	credential, err := NewCredential()
	if err != nil {
		t.Fatal(err)
	}
	h.Admit(syncTarget, credential)
	return credential
}

// get sends a GET through the tunnel of florin.
func (h *hub) get(t testing.TB, path string) (string, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://cluster.tunnel"+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := h.Transport(florin).RoundTrip(request)
	if err != nil {
		return "", err
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	return fmt.Sprintf("%d %s", response.StatusCode, strings.TrimSpace(string(body))), err
}

// cluster is a fake API server, since this package must not depend on one: it answers what a request had. End-to-end tests use
// real ones.
type cluster struct {
	*httptest.Server
	served atomic.Int64
}

func startCluster(t testing.TB, handle http.HandlerFunc) *cluster {
	t.Helper()
	return startClusterWith(t, true, handle)
}

func startClusterWith(t testing.TB, http2 bool, handle http.HandlerFunc) *cluster {
	t.Helper()
	c := &cluster{}
	c.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		c.served.Add(1)
		handle(w, request)
	}))
	c.EnableHTTP2 = http2
	c.StartTLS()
	t.Cleanup(c.Close)
	return c
}

// echo answers with the path, the credentials and the impersonated user of a request.
func echo(w http.ResponseWriter, request *http.Request) {
	_, _ = fmt.Fprintf(w, "%s %s %s|%s|%s", request.Method, request.Host, request.RequestURI, request.Header.Get("Authorization"), request.Header.Get("Impersonate-User")) //nolint:gosec // no browser reads it
}

// clientFiles are the names of the files that a client reads.
type clientFiles struct{ token, authority, clusterToken string }

// writeFiles writes the token for the hub, and the certificate authority and the token of the cluster.
func writeFiles(t testing.TB, token string, to *cluster) clientFiles {
	t.Helper()
	directory := t.TempDir()
	files := clientFiles{filepath.Join(directory, "token"), filepath.Join(directory, "ca.crt"), filepath.Join(directory, "cluster-token")}
	for name, content := range map[string][]byte{
		files.token: []byte(token + "\n"), files.authority: pemOf(to.Certificate().Raw), files.clusterToken: []byte("of-the-cluster\n"),
	} {
		if err := os.WriteFile(name, content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return files
}

// client is a running client.
type client struct {
	*program.Client
	token string
	stop  func()
}

// startClient runs a client for florin in front of the cluster.
func startClient(t testing.TB, hubAddress, token string, to *cluster) *client {
	t.Helper()
	return startClientWith(t, hubAddress, token, to, func(*program.ClientOptions) {})
}

func startClientWith(t testing.TB, hubAddress, token string, to *cluster, change func(*program.ClientOptions)) *client {
	t.Helper()
	g := NewWithT(t)
	authority, err := testAuthority()
	g.Expect(err).NotTo(HaveOccurred())
	files := writeFiles(t, token, to)
	apiServer, err := program.NewAPIServer(to.URL, files.authority, files.clusterToken, clock.RealClock{})
	g.Expect(err).NotTo(HaveOccurred())
	p := &client{token: files.token}
	options := program.ClientOptions{
		Hub: "https://" + hubAddress, SyncTarget: string(florin), TokenFile: p.token, Authority: authority.PEM(), APIServer: apiServer,
		Clock: clock.RealClock{}, Log: slog.New(slog.DiscardHandler),
	}
	change(&options)
	p.Client, err = program.NewClient(options)
	g.Expect(err).NotTo(HaveOccurred())
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = p.Run(ctx)
	}()
	p.stop = sync.OnceFunc(func() { cancel(); <-ended })
	t.Cleanup(p.stop)
	return p
}

// relay forwards connections to addresses in turn, and can close them or drop their data.
type relay struct {
	listener net.Listener
	// accept reports whether a new connection is forwarded.
	accept func(net.Conn) bool
	to     []string
	next   atomic.Int64
	// swallow makes all connections drop all data, and stay open.
	swallow atomic.Bool
	// delay is the latency of all data.
	delay time.Duration

	lock  sync.Mutex
	conns []net.Conn
}

func startRelay(t testing.TB, to ...string) *relay {
	t.Helper()
	return startRelayWith(t, func(net.Conn) bool { return true }, to...)
}

func startRelayWith(t testing.TB, accept func(net.Conn) bool, to ...string) *relay {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r := &relay{listener: listener, accept: accept, to: to}
	go func() {
		for {
			accepted, err := listener.Accept()
			if err != nil {
				return
			}
			go r.forward(accepted)
		}
	}()
	t.Cleanup(func() { _ = listener.Close(); r.cut() })
	return r
}

func (r *relay) address() string { return r.listener.Addr().String() }

func (r *relay) forward(accepted net.Conn) {
	if !r.accept(accepted) {
		_ = accepted.Close()
		return
	}
	dialed, err := (&net.Dialer{}).DialContext(context.Background(), "tcp", r.to[int(r.next.Add(1)-1)%len(r.to)])
	if err != nil {
		_ = accepted.Close()
		return
	}
	r.lock.Lock()
	r.conns = append(r.conns, accepted, dialed)
	r.lock.Unlock()
	done := sync.OnceFunc(func() { _, _ = accepted.Close(), dialed.Close() })
	go func() { r.pump(accepted, dialed); done() }()
	r.pump(dialed, accepted)
	done()
}

func (r *relay) pump(from io.Reader, to io.Writer) {
	type chunk struct {
		content []byte
		due     time.Time
	}
	chunks := make(chan chunk, 1<<16)
	written := make(chan struct{})
	go func() {
		defer close(written)
		for one := range chunks {
			<-time.After(time.Until(one.due))
			if _, err := to.Write(one.content); err != nil {
				return
			}
		}
	}()
	for buffer := make([]byte, 32<<10); ; {
		count, err := from.Read(buffer)
		if !r.swallow.Load() && count > 0 {
			chunks <- chunk{slices.Clone(buffer[:count]), time.Now().Add(r.delay)}
		}
		if err != nil {
			close(chunks)
			<-written
			return
		}
	}
}

// cut closes all connections.
func (r *relay) cut() {
	r.lock.Lock()
	conns := r.conns
	r.conns = nil
	r.lock.Unlock()
	for _, one := range slices.Backward(conns) {
		_ = one.Close()
	}
}

// handshake sends a handshake by hand, and returns the connection with its response.
func handshake(t testing.TB, h *hub, syncTarget types.UID, token string, headers ...string) (*tls.Conn, string, error) {
	t.Helper()
	dialer := &tls.Dialer{Config: &tls.Config{InsecureSkipVerify: true, MinVersion: tls.VersionTLS13}} //nolint:gosec // the test is the hostile end
	dialed, err := dialer.DialContext(t.Context(), "tcp", h.address())
	if err != nil {
		return nil, "", err
	}
	connection := dialed.(*tls.Conn) //nolint:forcetypeassert // as documented
	t.Cleanup(func() { _ = connection.Close() })
	_ = connection.SetDeadline(time.Now().Add(patience))
	if _, err = fmt.Fprintf(connection, "GET %s%s HTTP/1.1\r\nHost: hub\r\nConnection: Upgrade\r\nUpgrade: %s\r\nAuthorization: Bearer %s\r\n%s: hostile\r\n%s\r\n",
		protocol.PathPrefix, syncTarget, protocol.Upgrade, token, protocol.HeaderInstance, strings.Join(headers, "")); err != nil {
		return nil, "", err
	}
	var response []byte
	for one := make([]byte, 1); !strings.HasSuffix(string(response), "\r\n\r\n"); {
		if _, err := connection.Read(one); err != nil {
			return nil, string(response), errors.Join(err, io.ErrUnexpectedEOF)
		}
		response = append(response, one[0])
	}
	return connection, string(response), nil
}
