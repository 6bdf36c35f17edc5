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
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/synchub-dev/synchub/provider/kcp"
	"github.com/synchub-dev/synchub/provider/targets/kubeconfig"
	"github.com/synchub-dev/synchub/test/framework/suite"
)

func TestClusterMatches(t *testing.T) {
	for name, test := range map[string]struct {
		expected, observed Cluster
		want               bool
	}{
		"the first":                              {Cluster{}, Cluster{"a", "x"}, true},
		"the first, which hides its ID":          {Cluster{}, Cluster{"", "x"}, true},
		"the same":                               {Cluster{"a", "x"}, Cluster{"a", "x"}, true},
		"the same at another address":            {Cluster{"a", "x"}, Cluster{"a", "y"}, true},
		"another":                                {Cluster{"a", "x"}, Cluster{"b", "y"}, false},
		"another at the same address":            {Cluster{"a", "x"}, Cluster{"b", "x"}, false},
		"the ID is now hidden":                   {Cluster{"a", "x"}, Cluster{"", "x"}, true},
		"a hidden ID at another address":         {Cluster{"a", "x"}, Cluster{"", "y"}, false},
		"the ID is now known":                    {Cluster{"", "x"}, Cluster{"a", "x"}, true},
		"an ID at another server":                {Cluster{"", "x"}, Cluster{"a", "y"}, false},
		"both hide their IDs":                    {Cluster{"", "x"}, Cluster{"", "x"}, true},
		"both hide their IDs, at two addresses.": {Cluster{"", "x"}, Cluster{"", "y"}, false},
	} {
		if got := test.expected.matches(test.observed); got != test.want {
			t.Errorf("%s: want %v, got %v", name, test.want, got)
		}
	}
}

// Only a new certificate makes the hub request the ID again, for any number of connections.
func TestNewCertificatesInvalidateTheID(t *testing.T) {
	served := func(certificate string) *tls.ConnectionState {
		return &tls.ConnectionState{PeerCertificates: []*x509.Certificate{{Raw: []byte(certificate)}}}
	}
	a, b := served("a"), served("b")
	var identity clusterIdentity
	for step, test := range []struct {
		state *tls.ConnectionState
		want  bool
	}{{nil, false}, {&tls.ConnectionState{}, false}, {a, false}, {a, false}, {served("a"), false}, {b, true}, {a, false}, {b, false}, {served("c"), true}, {b, false}} {
		if got := identity.isNewCertificate(test.state); got != test.want {
			t.Errorf("step %d: want %v, got %v", step, test.want, got)
		}
	}
	for i := range 10 * maxCertificates {
		identity.isNewCertificate(served(fmt.Sprint(i)))
	}
	if len(identity.knownCertificates) > maxCertificates {
		t.Errorf("%d are remembered", len(identity.knownCertificates))
	}
}

// changingServer is a server that stands for the cluster one, and then for another, and may be down.
type changingServer struct {
	*httptest.Server
	id   atomic.Value
	away atomic.Bool
	// hidesID makes each connection end with its answer.
	hidesID    atomic.Bool
	idRequests atomic.Int64
}

func newChangingServer(t *testing.T) *changingServer {
	t.Helper()
	s := &changingServer{}
	s.id.Store("one")
	s.Server = suite.ServeTLS(t, http.HandlerFunc(func(writer http.ResponseWriter, request *http.Request) {
		writer.Header().Set("Content-Type", "application/json")
		if s.hidesID.Load() {
			writer.Header().Set("Connection", "close")
		}
		switch {
		case s.away.Load():
			writer.WriteHeader(http.StatusServiceUnavailable)
		case request.URL.Path == "/version":
			_, _ = fmt.Fprint(writer, `{"gitVersion": "v1.2.3"}`)
		case strings.HasSuffix(request.URL.Path, "/namespaces/kube-system"):
			s.idRequests.Add(1)
			_, _ = fmt.Fprintf(writer, `{"apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadata", "metadata": {"uid": %q}}`, s.id.Load())
		default:
			t.Errorf("unexpected request for %s", request.URL)
		}
	}))
	return s
}

// A connection is not up if it reaches another cluster than before, at any address, until that cluster is expected.
func TestAnotherClusterIsNotUp(t *testing.T) {
	g := NewWithT(t)
	target, now := newChangingServer(t), clocktesting.NewFakeClock(time.Unix(1_000_000, 0))
	registry := newRegistry(t.Context(), t, now)
	connection, err := registry.Connect(syncTarget, kubeconfigFor(t, target.Server), kcp.Limits{})
	g.Expect(err).NotTo(HaveOccurred())
	expect := func(up bool, reason string) {
		t.Helper()
		suite.Eventually(t, func(g Gomega) {
			now.Step(time.Second)
			g.Expect(connection.Health.Get()).To(And(HaveField("Up", up), HaveField("Reason", reason)))
		})
	}
	expect(true, ReasonConnected)
	one, known := connection.Cluster()
	g.Expect(known).To(BeTrue())
	g.Expect(one.ID).To(Equal("one"))

	// The target was down for one probe only, and came back as another cluster.
	target.id.Store("two")
	target.away.Store(true)
	connection.Health.ProbeNow()
	target.away.Store(false)
	now.Step(time.Minute)
	for range 20 {
		now.Step(identityInterval)
	}
	expect(false, ReasonClusterChanged)
	two := connection.Health.Get().OtherCluster
	g.Expect(two).To(Equal(Cluster{ID: "two", Server: one.Server}))
	g.Expect(connection.Health.Get().Message).To(And(ContainSubstring("ID two"), ContainSubstring("ID one")))

	registry.SetExpectedCluster(syncTarget, ExpectedCluster{Cluster: two})
	expect(true, ReasonConnected)
	g.Expect(connection.Health.Get().OtherCluster).To(Equal(Cluster{}))
	// Setting the same expected cluster changes nothing.
	before := target.idRequests.Load()
	registry.SetExpectedCluster(syncTarget, ExpectedCluster{Cluster: two})
	if again, known := connection.Cluster(); !known || again != two || target.idRequests.Load() != before {
		t.Errorf("got %v, %v", again, known)
	}
	registry.SetExpectedCluster(syncTarget, ExpectedCluster{Cluster: one})
	expect(false, ReasonClusterChanged)
}

// The ID of a server that replaces another with the same certificate is requested with the first request to it.
func TestReplacedConnectionRequestsTheID(t *testing.T) {
	for name, test := range map[string]struct{ then, reason string }{
		"to another cluster":  {"two", ReasonClusterChanged},
		"to the same cluster": {"one", ReasonConnected},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			target, now := newChangingServer(t), clocktesting.NewFakeClock(time.Unix(1_000_000, 0))
			connection, err := newRegistry(t.Context(), t, now).Connect(syncTarget, kubeconfigFor(t, target.Server), kcp.Limits{})
			g.Expect(err).NotTo(HaveOccurred())
			suite.Eventually(t, func(g Gomega) { g.Expect(connection.Health.IsUp()).To(BeTrue()) })
			before := target.idRequests.Load()

			target.id.Store(test.then)
			target.CloseClientConnections()
			connection.Discovery.RESTClient().Get().AbsPath("/version").MaxRetries(0).Do(t.Context())
			suite.Eventually(t, func(g Gomega) {
				g.Expect(target.idRequests.Load()).To(BeNumerically(">", before))
				g.Expect(connection.Health.Get().Reason).To(Equal(test.reason))
			})
			suite.Eventually(t, func(g Gomega) {
				_, known := connection.Cluster()
				g.Expect(known).To(Equal(test.reason == ReasonConnected))
			})
		})
	}
}

// The cluster of a server that ends each connection is known, and each probe requests its ID once.
func TestIDRequestsDoNotLoop(t *testing.T) {
	g := NewWithT(t)
	target, now := newChangingServer(t), clocktesting.NewFakeClock(time.Unix(1_000_000, 0))
	target.hidesID.Store(true)
	connection, err := newRegistry(t.Context(), t, now).Connect(syncTarget, kubeconfigFor(t, target.Server), kcp.Limits{})
	g.Expect(err).NotTo(HaveOccurred())
	suite.Eventually(t, func(g Gomega) { g.Expect(connection.Health.IsUp()).To(BeTrue()) })
	for probes := int64(1); probes < 5; probes++ {
		// The probe waits for the next interval now.
		suite.Eventually(t, func(g Gomega) { g.Expect(now.HasWaiters()).To(BeTrue()) })
		_, known := connection.Cluster()
		g.Expect(known).To(BeTrue())
		g.Expect(target.idRequests.Load()).To(Equal(probes))
		now.Step(2 * probeInterval)
		suite.Eventually(t, func(g Gomega) { g.Expect(target.idRequests.Load()).To(BeNumerically(">", probes)) })
	}
}

// With HTTP/2 one connection serves all requests; with HTTP/1.1 connections are opened and closed.
func TestReplacingConnections(t *testing.T) {
	for name, test := range map[string]struct {
		protocol string
		// steps are dials (d) and closes (h).
		steps string
		want  string
	}{
		"HTTP/2":   {"h2", "dhdddhh", "-.+++.."},
		"HTTP/1.1": {"http/1.1", "ddhdhhd", "--.-..+"},
	} {
		t.Run(name, func(t *testing.T) {
			var identity clusterIdentity
			for i, step := range test.steps {
				got := "."
				if step == 'h' {
					identity.connectionClosed()
				} else if got = "-"; identity.connectionOpened() {
					got = "+"
				}
				if got != test.want[i:i+1] {
					t.Errorf("step %d: want %q, got %q", i, test.want[i], got)
				}
				identity.isNewCertificate(&tls.ConnectionState{NegotiatedProtocol: test.protocol, PeerCertificates: []*x509.Certificate{{Raw: []byte("a")}}})
			}
		})
	}
}

// After a restart the same server is trusted for a while; the ID of another one is requested at once.
func TestTheSameServerIsTrusted(t *testing.T) {
	for name, test := range map[string]struct {
		server     string
		idRequests int64
	}{"the same server": {"", 0}, "another server": {"other", 1}} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			target, now := newChangingServer(t), clocktesting.NewFakeClock(time.Unix(1_000_000, 0))
			registry := newRegistry(t.Context(), t, now)
			content := kubeconfigFor(t, target.Server)
			config, err := kubeconfig.Parse(content)
			g.Expect(err).NotTo(HaveOccurred())
			expected := ExpectedCluster{Cluster: Cluster{ID: "one", Server: serverFingerprint(config) + test.server}, TrustedUntil: now.Now().Add(time.Minute)}
			registry.SetExpectedCluster(syncTarget, expected)
			connection, err := registry.Connect(syncTarget, content, kcp.Limits{})
			g.Expect(err).NotTo(HaveOccurred())
			suite.Eventually(t, func(g Gomega) { g.Expect(connection.Health.IsUp()).To(BeTrue()) })
			cluster, known := connection.Cluster()
			g.Expect(known).To(BeTrue())
			g.Expect(cluster.ID).To(Equal("one"))
			g.Expect(target.idRequests.Load()).To(Equal(test.idRequests))
			target.id.Store("two")
			suite.Eventually(t, func(g Gomega) {
				now.Step(identityInterval)
				g.Expect(connection.Health.Get().Reason).To(Equal(ReasonClusterChanged))
			})
		})
	}
}
