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
	"cmp"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"encoding/hex"
	"fmt"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/connrotation"
	"k8s.io/utils/clock"

	"github.com/synchub-dev/synchub/provider/requestclass"
	"github.com/synchub-dev/synchub/provider/targets/clusterid"
)

const (
	// identityTimeout bounds the requests for a target's identity.
	identityTimeout = 5 * time.Second
	// identityInterval is how often the identity is requested without a cause; up to a fifth of it is added at random.
	identityInterval = 10 * time.Minute
	// maxCertificates bounds the remembered serving certificates of one target: a highly available target has several.
	maxCertificates = 32
)

// Cluster identifies a cluster.
type Cluster struct {
	// ID is the UID of the namespace kube-system, or of the LogicalCluster of a kcp workspace: the same at every address.
	// Empty if the cluster hides it.
	ID string
	// Server is the fingerprint of the kubeconfig's address, server name and certificate authorities.
	Server string
}

// ExpectedCluster is the cluster that a connection must lead to. The zero value accepts the first one that answers.
type ExpectedCluster struct {
	Cluster
	// TrustedUntil is the time until which the same server counts as the same cluster without a request.
	TrustedUntil time.Time
}

// matches reports whether the observed cluster can be the expected one. If both IDs are known, they decide. Otherwise the
// server must be the same.
func (c Cluster) matches(observed Cluster) bool {
	switch {
	case c == Cluster{}:
		return true
	case c.ID != "" && observed.ID != "":
		return c.ID == observed.ID
	default:
		return c.Server == observed.Server
	}
}

// ClusterMismatchError means that a target answers but is not the expected cluster, so it is not up.
type ClusterMismatchError struct{ Expected, Observed Cluster }

func (e *ClusterMismatchError) Error() string {
	leads := "the kubeconfig leads"
	if e.Observed.Server == tunnelServer {
		leads = "the tunnel leads"
	}
	return fmt.Sprintf("%s to another cluster (%s) than before (%s)", leads, e.Observed.describe(), e.Expected.describe())
}

// Redacted implements [transport.Redacted].
func (*ClusterMismatchError) Redacted() {}

func (c Cluster) describe() string {
	if c.ID != "" {
		return "ID " + c.ID
	}
	return "no ID, server " + c.Server
}

// ConfirmationID returns the value with which an operator confirms the cluster.
func (c Cluster) ConfirmationID() string {
	if c.ID != "" {
		return c.ID
	}
	return c.Server
}

// serverFingerprint returns a hash of the server's address, name and certificate authorities.
func serverFingerprint(config *rest.Config) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%q %q %q", config.Host, config.ServerName, config.CAData))
	return hex.EncodeToString(sum[:16])
}

// clusterIdentity tracks which cluster a connection leads to.
type clusterIdentity struct {
	clock  clock.PassiveClock
	health *HealthMonitor
	server string
	// lastTLSState is the state of the TLS connection used last. Responses on the same connection need no lock.
	lastTLSState atomic.Pointer[tls.ConnectionState]

	lock              sync.Mutex
	expected          ExpectedCluster
	knownCertificates map[[sha256.Size]byte]bool
	// verifiedUntil is the time until which id is valid; zero if the ID must be requested.
	verifiedUntil time.Time
	id            string
	// generation counts the invalidations, so that an answer to an earlier request does not count.
	generation int
	// hasConnected is true after the first network connection, and multiplexed if one serves all requests.
	hasConnected, multiplexed bool
	openConnections           int
}

// verify returns an error unless the connection leads to the expected cluster. It requests the ID unless that is still valid.
func (i *clusterIdentity) verify(ctx context.Context, client metadata.Interface) error {
	now := i.clock.Now()
	_, generation, known := i.get(now)
	if known {
		return nil
	}
	ctx, done := withTimeout(requestclass.With(ctx, requestclass.Background), identityTimeout)
	defer done()
	id, err := clusterid.Get(context.WithValue(ctx, identityContextKey{}, true), client)
	if err != nil {
		return fmt.Errorf("cannot find out which cluster answers: %w", err)
	}
	return i.setVerified(id, generation, now.Add(wait.Jitter(identityInterval, 0.2)))
}

// get returns the cluster and the generation; known is false unless the cluster is verified or trusted.
func (i *clusterIdentity) get(now time.Time) (cluster Cluster, generation int, known bool) {
	i.lock.Lock()
	defer i.lock.Unlock()
	switch {
	case now.Before(i.verifiedUntil):
		return Cluster{ID: cmp.Or(i.id, i.expected.ID), Server: i.server}, i.generation, true
	case now.Before(i.expected.TrustedUntil) && i.expected.Server == i.server && i.expected.ID != "":
		return i.expected.Cluster, i.generation, true
	default:
		return Cluster{}, i.generation, false
	}
}

// setVerified sets the ID from an answer, unless the ID was invalidated since the request. It fails if the cluster is not the
// expected one.
func (i *clusterIdentity) setVerified(id string, generation int, until time.Time) error {
	i.lock.Lock()
	defer i.lock.Unlock()
	observed := Cluster{ID: id, Server: i.server}
	if !i.expected.matches(observed) {
		return &ClusterMismatchError{Expected: i.expected.Cluster, Observed: observed}
	}
	if generation == i.generation {
		i.id, i.verifiedUntil = id, until
	}
	if i.expected.ID == "" {
		i.expected.Cluster = observed
	}
	return nil
}

// setExpected sets the expected cluster, and reports whether the ID must be requested again. The zero cluster changes nothing.
func (i *clusterIdentity) setExpected(expected ExpectedCluster) bool {
	i.lock.Lock()
	defer i.lock.Unlock()
	switch {
	case expected.Cluster == (Cluster{}), expected.Cluster == i.expected.Cluster:
		return false
	case expected.ID != "" && expected.ID == i.expected.ID:
		i.expected.Server = expected.Server
		return false
	}
	i.expected = expected
	i.invalidateLocked()
	return true
}

// expectedCluster returns the cluster that the connection must lead to.
func (i *clusterIdentity) expectedCluster() Cluster {
	i.lock.Lock()
	defer i.lock.Unlock()
	return i.expected.Cluster
}

// invalidate makes the next probe request the ID.
func (i *clusterIdentity) invalidate() {
	i.lock.Lock()
	defer i.lock.Unlock()
	i.invalidateLocked()
}

// invalidateLocked requires the lock.
func (i *clusterIdentity) invalidateLocked() {
	i.verifiedUntil, i.expected.TrustedUntil = time.Time{}, time.Time{}
	i.generation++
}

// probeContextKey and identityContextKey mark, for the dialer, the contexts of a probe and of the ID request in it.
type (
	probeContextKey    struct{}
	identityContextKey struct{}
)

// trackDials wraps a dial function, and requests the ID when a network connection replaces another one: behind a load balancer,
// another cluster may have the same certificate. A dial for a probe needs no further probe, and a dial for the ID request no
// further request.
func (i *clusterIdentity) trackDials(dial connrotation.DialFunc) connrotation.DialFunc {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		opened, err := dial(ctx, network, address)
		if err != nil {
			return nil, err
		}
		if i.connectionOpened() && ctx.Value(identityContextKey{}) == nil {
			i.invalidate()
			if ctx.Value(probeContextKey{}) == nil {
				i.health.ProbeNow()
			}
		}
		return &trackedConn{Conn: opened, onClose: sync.OnceFunc(i.connectionClosed)}, nil
	}
}

// trackedConn calls onClose when it is closed.
type trackedConn struct {
	net.Conn
	onClose func()
}

func (t *trackedConn) Close() error {
	t.onClose()
	return t.Conn.Close()
}

// connectionOpened counts a network connection, and reports whether it may replace another one. With HTTP/2 every connection
// after the first does, with HTTP/1.1 only a connection that is opened while no other is open.
func (i *clusterIdentity) connectionOpened() (isReplacement bool) {
	i.lock.Lock()
	defer i.lock.Unlock()
	isReplacement = i.hasConnected && (i.openConnections == 0 || i.multiplexed)
	i.hasConnected = true
	i.openConnections++
	return isReplacement
}

func (i *clusterIdentity) connectionClosed() {
	i.lock.Lock()
	defer i.lock.Unlock()
	i.openConnections--
}

// onResponse requests the ID when the target serves a new certificate: it may be another cluster at the same address.
func (i *clusterIdentity) onResponse(_ *http.Request, response *http.Response) {
	if i.isNewCertificate(response.TLS) {
		i.invalidate()
		i.health.ProbeNow()
	}
}

// isNewCertificate reports whether a response came with a new certificate. The first certificate is not new.
func (i *clusterIdentity) isNewCertificate(state *tls.ConnectionState) bool {
	if state == nil || len(state.PeerCertificates) == 0 || i.lastTLSState.Swap(state) == state {
		return false
	}
	sum := sha256.Sum256(state.PeerCertificates[0].Raw)
	i.lock.Lock()
	defer i.lock.Unlock()
	i.multiplexed = state.NegotiatedProtocol == "h2"
	if i.knownCertificates[sum] {
		return false
	}
	isFirst := i.knownCertificates == nil
	if isFirst || len(i.knownCertificates) >= maxCertificates {
		i.knownCertificates = map[[sha256.Size]byte]bool{}
	}
	i.knownCertificates[sum] = true
	return !isFirst
}
