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
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"golang.org/x/net/http2"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"github.com/synchub-dev/synchub/provider/metrics/targetlabels"
	"github.com/synchub-dev/synchub/provider/targets/tunnel/protocol"
)

const (
	// verifyTimeout bounds how long a new session may take to prove its cluster.
	verifyTimeout = 10 * time.Second
	// maxInstance bounds the length of [protocol.HeaderInstance] and of the names in [protocol.HeaderConnected].
	maxInstance = 64
)

// Options configure a [Server].
type Options struct {
	// Replica is the name of this replica of the hub, and Replicas returns how many there are; zero if that is not known yet.
	Replica  string
	Replicas func() int
	// Verify returns an error unless the cluster behind a new session is the cluster of the SyncTarget.
	Verify func(ctx context.Context, syncTarget types.UID, session http.RoundTripper) error
	// OnChange is called when a SyncTarget has got or lost a session, or one was refused. It must not block.
	OnChange func(syncTarget types.UID)
	Clock    clock.PassiveClock
	Log      logr.Logger
}

// Server accepts the tunnels of clusters on one replica of the hub.
type Server struct {
	Options
	http2   *http2.Transport
	pending pendingConnections

	lock sync.Mutex
	// peers hold the SyncTargets whose clients may connect.
	peers map[types.UID]*peer
}

// NewServer returns a server that accepts no clients yet.
func NewServer(options Options) *Server {
	return &Server{Options: options, peers: map[types.UID]*peer{}}
}

// Serve accepts tunnels from the listener until ctx ends, and closes all sessions then. getCertificate returns the certificate of each
// TLS connection. Serve is called once.
func (s *Server) Serve(ctx context.Context, listener net.Listener, getCertificate func(*tls.ClientHelloInfo) (*tls.Certificate, error)) error {
	var err error
	if s.http2, err = newHTTP2Transport(); err != nil {
		return fmt.Errorf("cannot set up HTTP/2 for tunnels: %w", err)
	}
	server := &http.Server{
		Handler: http.HandlerFunc(s.serveHTTP),
		TLSConfig: &tls.Config{
			MinVersion: tls.VersionTLS13, GetCertificate: getCertificate,
			// The handshake needs an upgrade, which HTTP/2 does not have.
			NextProtos: []string{"http/1.1"},
		},
		ReadTimeout: protocol.HandshakeTimeout, WriteTimeout: protocol.HandshakeTimeout, MaxHeaderBytes: protocol.MaxHandshakeBytes,
		ConnState: s.pending.onState,
		ErrorLog:  discardLog,
	}
	server.SetKeepAlivesEnabled(false)
	stop := context.AfterFunc(ctx, func() { _ = server.Close() })
	defer stop()
	defer s.closeAll()
	if err = server.ServeTLS(listener, "", ""); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("the listener for tunnels ended: %w", err)
	}
	return nil
}

func (s *Server) closeAll() {
	s.lock.Lock()
	peers := s.peers
	s.peers = map[types.UID]*peer{}
	s.lock.Unlock()
	for _, one := range peers {
		one.close()
	}
}

// Admit lets clients of a SyncTarget connect with the tokens of a credential, and closes sessions whose token is no longer valid.
func (s *Server) Admit(syncTarget types.UID, credential Credential) {
	s.peer(syncTarget).setTokens(credential.accepted(), s.Clock.Now())
}

// Remove closes the sessions of a SyncTarget, and admits no new ones.
func (s *Server) Remove(syncTarget types.UID) {
	s.lock.Lock()
	removed := s.peers[syncTarget]
	delete(s.peers, syncTarget)
	s.lock.Unlock()
	if removed != nil {
		removed.close()
	}
}

// Reconsider clears the refusal of a SyncTarget's last session, after its expected cluster changed.
func (s *Server) Reconsider(syncTarget types.UID) {
	if found := s.find(syncTarget); found != nil {
		found.clearRefusal()
	}
}

// Refusal returns why the last tunnel of a SyncTarget was refused; nil if it was not, or that was long ago.
func (s *Server) Refusal(syncTarget types.UID) error {
	found := s.find(syncTarget)
	if found == nil {
		return nil
	}
	return found.lastRefusal(s.Clock.Now())
}

// Transport returns the transport for requests to the cluster of a SyncTarget. It uses the session that is open at each request.
func (s *Server) Transport(syncTarget types.UID) *Transport {
	return &Transport{server: s, syncTarget: syncTarget}
}

// peer returns the state of a SyncTarget, and adds it if there is none.
func (s *Server) peer(syncTarget types.UID) *peer {
	s.lock.Lock()
	defer s.lock.Unlock()
	found := s.peers[syncTarget]
	if found == nil {
		found = newPeer(syncTarget)
		s.peers[syncTarget] = found
	}
	return found
}

// find returns the state of a SyncTarget, nil if there is none.
func (s *Server) find(syncTarget types.UID) *peer {
	s.lock.Lock()
	defer s.lock.Unlock()
	return s.peers[syncTarget]
}

// handshakeError is why a handshake is refused.
type handshakeError struct {
	status int
	// result is the label of the metric, and message the text for the client's log.
	result, message string
}

var (
	errBadRequest   = &handshakeError{http.StatusBadRequest, "bad_request", "this port only accepts tunnels of clusters"}
	errUnauthorized = &handshakeError{http.StatusUnauthorized, "unauthorized", "this replica of the hub does not accept this token for the SyncTarget; if the error lasts for more than a minute, apply the manifest of `kubectl synchub register NAME --tunnel -o yaml` again"}
	errTooMany      = &handshakeError{http.StatusTooManyRequests, "too_many", "the tunnel was opened too often in a short time"}
	errConnected    = &handshakeError{http.StatusConflict, "connected", "there is a session with this replica already"}
	// errRefused does not name the expected cluster, because a client could then pretend to be that cluster.
	errRefused  = &handshakeError{http.StatusForbidden, "refused", "the SyncTarget belongs to another cluster, or the hub could not verify this one; see the condition TunnelRefused or Ready of the SyncTarget"}
	errReplaced = &handshakeError{http.StatusConflict, "replaced", "another client of the same cluster has the session"}
)

// serveHTTP handles one handshake.
func (s *Server) serveHTTP(w http.ResponseWriter, request *http.Request) {
	w.Header().Set(protocol.HeaderReplica, s.Replica)
	w.Header().Set(protocol.HeaderReplicas, strconv.Itoa(s.Replicas()))
	hello, refused := s.authenticate(request)
	if refused == nil {
		refused = hello.peer.reserve(hello, s.Clock.Now())
	}
	if refused != nil {
		handshakes.WithLabelValues(refused.result).Inc()
		http.Error(w, refused.message, refused.status)
		return
	}
	defer hello.peer.unreserve()
	s.open(w, hello)
}

// hello is an authenticated handshake.
type hello struct {
	peer     *peer
	token    tokenHash
	instance string
	// connected is true if the client reported a session with this replica.
	connected bool
}

// authenticate returns the handshake of a request. An unknown SyncTarget and a wrong token get the same response.
func (s *Server) authenticate(request *http.Request) (hello, *handshakeError) {
	syncTarget, found := strings.CutPrefix(request.URL.Path, protocol.PathPrefix)
	if !found || request.Method != http.MethodGet || request.Header.Get("Upgrade") != protocol.Upgrade {
		return hello{}, errBadRequest
	}
	token, _ := strings.CutPrefix(request.Header.Get("Authorization"), "Bearer ")
	presented := hashToken(token)
	peer := s.find(types.UID(syncTarget))
	if peer == nil || !peer.accepts(presented, s.Clock.Now()) {
		return hello{}, errUnauthorized
	}
	instance := request.Header.Get(protocol.HeaderInstance)
	if instance == "" || len(instance) > maxInstance {
		return hello{}, errBadRequest
	}
	found = false
	for name := range strings.SplitSeq(request.Header.Get(protocol.HeaderConnected), ",") {
		found = found || name == s.Replica
	}
	return hello{peer, presented, instance, found}, nil
}

// open upgrades the connection of a handshake to a session with the hub as client. The session is used once its cluster is
// verified.
func (s *Server) open(w http.ResponseWriter, hello hello) {
	log := s.Log.WithValues(targetlabels.LogValues(hello.peer.syncTarget)...)
	connection, err := upgrade(w)
	if err != nil {
		handshakes.WithLabelValues("failed").Inc()
		log.V(1).Info("a handshake for a tunnel failed", "error", err.Error())
		return
	}
	opened, err := s.newSession(connection, hello)
	if err != nil {
		handshakes.WithLabelValues("failed").Inc()
		log.V(1).Info("a tunnel was lost at once", "error", err.Error())
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), verifyTimeout)
	defer cancel()
	if err := s.Verify(ctx, hello.peer.syncTarget, opened); err != nil {
		handshakes.WithLabelValues("refused").Inc()
		log.Info("refused a tunnel", "instance", hello.instance, "remote", connection.RemoteAddr().String(), "error", err.Error())
		opened.close()
		hello.peer.refuse(hello.instance, err, s.Clock.Now())
		s.OnChange(hello.peer.syncTarget)
		return
	}
	handshakes.WithLabelValues("opened").Inc()
	log.Info("a tunnel is open", "instance", hello.instance, "remote", connection.RemoteAddr().String())
	hello.peer.use(opened)
	s.OnChange(hello.peer.syncTarget)
}
