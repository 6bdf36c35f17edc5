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
	"context"
	"crypto/sha256"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/synchub-dev/synchub/provider/kcp"
	"github.com/synchub-dev/synchub/provider/targets/tunnel"
	"github.com/synchub-dev/synchub/test/framework"
	"github.com/synchub-dev/synchub/test/framework/suite"
	"github.com/synchub-dev/synchub/test/tier"
)

// scriptedServer is a fake target with answers that the test sets.
type scriptedServer struct {
	*httptest.Server
	// version is the answer to the probe. present and absent are the answers to the two dry runs of the create-by-apply
	// probe.
	version, present, absent atomic.Pointer[answer]
	probes, identityRequests atomic.Int64
	// hold delays the answers until it is closed.
	hold atomic.Pointer[chan struct{}]
}

// answer is a status code with a body. Code 0 ends the connection instead.
type answer struct {
	code int
	body string
}

var healthy = answer{http.StatusOK, `{"gitVersion":"v1.2.3"}`}

// status is an API server's refusal.
func status(code int, reason metav1.StatusReason) answer {
	return answer{code, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"` + string(reason) + `","message":"no"}`}
}

func created() answer {
	return answer{http.StatusCreated, `{"kind":"Namespace","apiVersion":"v1","metadata":{"name":"a"}}`}
}

func newScriptedServer(t *testing.T) *scriptedServer {
	t.Helper()
	s := &scriptedServer{}
	s.version.Store(&healthy)
	s.set(&s.present, status(http.StatusConflict, metav1.StatusReasonConflict))
	s.set(&s.absent, created())
	s.Server = suite.ServeTLS(t, http.HandlerFunc(func(writer http.ResponseWriter, request *http.Request) {
		if hold := s.hold.Load(); hold != nil {
			select {
			case <-*hold:
			case <-request.Context().Done():
			}
		}
		reply := s.version.Load()
		switch {
		case request.URL.Path == "/version":
			s.probes.Add(1)
			if reply.code > http.StatusOK {
				// A probe is one request even with this header.
				writer.Header().Set("Retry-After", "1")
			}
		case strings.HasSuffix(request.URL.Path, "/namespaces/default"):
			reply = s.present.Load()
			s.identityRequests.Add(1)
		default:
			reply = s.absent.Load()
		}
		if reply.code == 0 {
			panic(http.ErrAbortHandler)
		}
		writer.Header().Set("Content-Type", "application/json")
		writer.WriteHeader(reply.code)
		if _, err := writer.Write([]byte(reply.body)); err != nil {
			t.Error(err)
		}
	}))
	return s
}

func (s *scriptedServer) set(answers *atomic.Pointer[answer], to answer) { answers.Store(&to) }

func TestHealthFollowsTheProbes(t *testing.T) {
	g := NewWithT(t)
	target, now := newScriptedServer(t), clocktesting.NewFakeClock(time.Unix(1_000_000, 0))
	registry := newRegistry(t.Context(), t, now)
	connection, err := registry.Connect(syncTarget, kubeconfigFor(t, target.Server), kcp.Limits{})
	g.Expect(err).NotTo(HaveOccurred())

	probes := int64(0)
	// probed returns after the next probe.
	probed := func() {
		t.Helper()
		probes++
		suite.Eventually(t, func(g Gomega) {
			g.Expect(target.probes.Load()).To(Equal(probes))
			g.Expect(now.HasWaiters()).To(BeTrue())
		})
	}
	expect := func(want Health, changes int64) {
		t.Helper()
		got := connection.Health.Get()
		got.Message, want.Message = "", ""
		g.Expect(got).To(Equal(want))
		g.Expect(connection.Health.IsUp()).To(Equal(want.Up))
		g.Expect(registry.changes.Load()).To(Equal(changes))
	}

	probed()
	up := Health{Up: true, Reason: ReasonConnected, Version: "v1.2.3", LastSeen: now.Now()}
	expect(up, 1)

	// A target that answers is probed again after an interval.
	now.Step(probeInterval / 2)
	g.Expect(now.HasWaiters()).To(BeTrue())
	now.Step(probeInterval)
	probed()
	up.LastSeen = now.Now()
	expect(up, 1)

	// Three failures in a row make the target down, two do not.
	for _, broken := range []answer{{http.StatusInternalServerError, "broken"}, {http.StatusOK, "<html>"}, {http.StatusBadGateway, ""}} {
		target.set(&target.version, broken)
		now.Step(2 * probeInterval)
		probed()
		expect(up, 1)
		now.Step(uncertainProbeInterval)
		probed()
		expect(up, 1)
		target.set(&target.version, healthy)
		now.Step(uncertainProbeInterval)
		probed()
		up.LastSeen = now.Now()
		expect(up, 1)
	}
	target.set(&target.version, answer{http.StatusInternalServerError, "broken"})
	now.Step(2 * probeInterval)
	for range failuresUntilDown - 1 {
		probed()
		expect(up, 1)
		now.Step(uncertainProbeInterval)
	}
	probed()
	down := Health{Reason: ReasonUnreachable, Version: up.Version, LastSeen: up.LastSeen}
	expect(down, 2)

	// The reason may change while the target stays down.
	target.set(&target.version, status(http.StatusUnauthorized, metav1.StatusReasonUnauthorized))
	now.Step(2 * probeInterval)
	probed()
	down.Reason = ReasonUnauthorized
	expect(down, 3)
	expectNoSecret(t, connection.Health.Get().Message)
	g.Expect(registry.unauthorized.Load()).To(BeEquivalentTo(1))
	now.Step(2 * probeInterval)
	probed()
	expect(down, 3)
	g.Expect(registry.unauthorized.Load()).To(BeEquivalentTo(2), "once for each probe")

	// The target comes back with another version. So soon after the outage, one answer is not enough.
	target.set(&target.version, answer{http.StatusOK, `{"gitVersion":"v1.2.4"}`})
	now.Step(2 * probeInterval)
	probed()
	expect(down, 3)
	now.Step(uncertainProbeInterval)
	probed()
	up.Version, up.LastSeen = "v1.2.4", now.Now()
	expect(up, 4)
	g.Expect(target.identityRequests.Load()).To(BeZero(), "no object was created")
}

func TestWaitUntilUp(t *testing.T) {
	g := NewWithT(t)
	target, now := newScriptedServer(t), clocktesting.NewFakeClock(time.Unix(1_000_000, 0))
	target.set(&target.version, answer{http.StatusInternalServerError, "broken"})
	connection, err := newRegistry(t.Context(), t, now).Connect(syncTarget, kubeconfigFor(t, target.Server), kcp.Limits{})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(connection.Health.Get().Reason).To(BeElementOf(ReasonConnecting, ReasonUnreachable))
	suite.Eventually(t, func(g Gomega) { g.Expect(connection.Health.Get().Reason).To(Equal(ReasonUnreachable)) })

	g.Expect(connection.Health.WaitUntilUp(ended(t))).To(MatchError(context.Canceled))
	g.Expect(connection.Health.Epoch()).To(BeZero())
	waited, notified := make(chan error, 1), make(chan bool, 2)
	go func() { waited <- connection.Health.WaitUntilUp(t.Context()) }()
	defer connection.Watches.Subscribe(Listener{OnUp: func() { notified <- connection.Health.IsUp() }})()
	target.set(&target.version, healthy)
	connection.Health.ProbeNow()
	g.Eventually(waited).Should(Receive(BeNil()))
	g.Eventually(notified).Should(Receive(BeTrue()))
	g.Expect(connection.Health.IsUp()).To(BeTrue())
	g.Expect(connection.Health.Epoch()).To(BeEquivalentTo(1))
	g.Expect(connection.Health.WaitUntilUp(t.Context())).To(Succeed())
}

// ended returns a context that has ended.
func ended(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	return ctx
}

func TestProbeNow(t *testing.T) {
	g := NewWithT(t)
	target := newScriptedServer(t)
	// This clock stands still, so no probe is due.
	connection, err := newRegistry(t.Context(), t, clocktesting.NewFakeClock(time.Unix(1_000_000, 0))).Connect(syncTarget, kubeconfigFor(t, target.Server), kcp.Limits{})
	g.Expect(err).NotTo(HaveOccurred())
	suite.Eventually(t, func(g Gomega) { g.Expect(connection.Health.IsUp()).To(BeTrue()) })
	g.Expect(target.probes.Load()).To(BeEquivalentTo(1))
	for probes := range int64(5) {
		connection.Health.ProbeNow()
		connection.Health.ProbeNow()
		suite.Eventually(t, func(g Gomega) { g.Expect(target.probes.Load()).To(BeNumerically(">=", probes+2)) })
	}
}

// A target is up even if its user may do nothing.
func TestUserWithoutRights(t *testing.T) {
	g := NewWithT(t)
	target := steady(t)
	g.Expect(framework.Apply(t.Context(), target.Config, "{apiVersion: v1, kind: ServiceAccount, metadata: {name: nobody}}")).To(Succeed())
	kubeconfig, err := target.ServiceAccountKubeconfig(t.Context(), "default", "nobody")
	g.Expect(err).NotTo(HaveOccurred())
	connection := connectTo(t, kubeconfig)
	g.Expect(connection.Objects.supportsCreateByApply()).To(BeFalse())
	_, err = connection.Objects.Create(t.Context(), configMaps, kinds[0].object("default", "forbidden"))
	g.Expect(err).To(MatchError(ContainSubstring("forbidden")))
	g.Expect(err).NotTo(MatchError(ErrAlreadyExists))
}

func TestRefusedCredentials(t *testing.T) {
	g := NewWithT(t)
	target := steady(t)
	kubeconfig := strings.ReplaceAll(string(kubeconfigAt(t, target, target.Config.Host)), target.Config.BearerToken, secret)
	connection, err := newRegistry(t.Context(), t, clock.RealClock{}).Connect(syncTarget, []byte(kubeconfig), kcp.Limits{})
	g.Expect(err).NotTo(HaveOccurred())
	suite.Eventually(t, func(g Gomega) { g.Expect(connection.Health.Get().Reason).NotTo(Equal(ReasonConnecting)) })
	health := connection.Health.Get()
	g.Expect(health.Up).To(BeFalse())
	g.Expect(health.Reason).To(Equal(ReasonUnauthorized))
	expectNoSecret(t, health.Message)
}

// The cache makes the connection notice at once; without one the probe does.
func TestTargetRestarts(t *testing.T) {
	tier.Thorough(t)
	t.Parallel()
	g := NewWithT(t)
	target := frail(t)
	registry := newRegistry(t.Context(), t, clock.RealClock{})
	connection, err := registry.Connect(syncTarget, kubeconfigAt(t, target, target.Config.Host), kcp.Limits{})
	g.Expect(err).NotTo(HaveOccurred())
	suite.Eventually(t, func(g Gomega) { g.Expect(connection.Health.IsUp()).To(BeTrue()) })
	suite.Eventually(t, func(g Gomega) { g.Expect(registry.changes.Load()).To(BeEquivalentTo(1)) })
	cached, _ := startCache(t, connection, "")

	g.Expect(target.Kill9()).To(Succeed())
	suite.Eventually(t, func(g Gomega) { g.Expect(connection.Health.IsUp()).To(BeFalse()) })
	g.Expect(connection.Health.Get().Reason).To(Equal(ReasonUnreachable))
	suite.Eventually(t, func(g Gomega) { g.Expect(registry.changes.Load()).To(BeEquivalentTo(2)) })
	g.Expect(connection.Health.WaitUntilUp(ended(t))).To(MatchError(context.Canceled))
	waited := make(chan error, 1)
	go func() { waited <- connection.Health.WaitUntilUp(t.Context()) }()

	g.Expect(target.Start(t.Context())).To(Succeed())
	g.Expect(framework.Apply(t.Context(), target.Config, "{apiVersion: v1, kind: ConfigMap, metadata: {name: after-the-restart}}")).To(Succeed())
	g.Eventually(waited).Should(Receive(BeNil()))
	suite.Eventually(t, func(g Gomega) {
		g.Expect(connection.Health.IsUp()).To(BeTrue())
		g.Expect(registry.changes.Load()).To(BeEquivalentTo(3))
		g.Expect(namesIn(cached)).To(ContainElement("after-the-restart"))
	})
	g.Expect(connection.Objects.supportsCreateByApply()).To(BeTrue())
}

// A black hole keeps connections open and answers nothing.
func TestTargetIsABlackHole(t *testing.T) {
	tier.Thorough(t)
	t.Parallel()
	g := NewWithT(t)
	target := steady(t)
	proxy := newFlakyProxy(t, target)
	connection := connectTo(t, kubeconfigAt(t, target, proxy.URL()))
	proxy.Freeze()
	connection.Health.ProbeNow()
	suite.Eventually(t, func(g Gomega) { g.Expect(connection.Health.IsUp()).To(BeFalse()) })
	g.Expect(connection.Health.Get().Reason).To(Equal(ReasonUnreachable))
	proxy.Unfreeze()
	connection.Health.ProbeNow()
	suite.Eventually(t, func(g Gomega) { g.Expect(connection.Health.IsUp()).To(BeTrue()) })
}

// After a restart of the hub, a cluster needs a moment to open its tunnel again: until then its state is not known.
func TestFirstTunnelIsAwaited(t *testing.T) {
	for name, c := range map[string]struct {
		err    tunnel.ClosedError
		before string
	}{
		"no tunnel has been opened": {tunnel.ClosedError{}, ReasonConnecting},
		"a tunnel was lost":         {tunnel.ClosedError{Lost: true}, ReasonTunnelClosed},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			var probes atomic.Int64
			answers := roundTripperFunc(func(*http.Request) (*http.Response, error) {
				probes.Add(1)
				return nil, &c.err
			})
			now := clocktesting.NewFakeClock(time.Unix(1_000_000, 0))
			registry := newRegistry(t.Context(), t, now)
			connection, err := registry.connect(syncTarget, &rest.Config{Host: tunnelHost, Transport: answers}, [sha256.Size]byte{}, registry.options)
			g.Expect(err).NotTo(HaveOccurred())
			probed := func(count int64) {
				suite.Eventually(t, func(g Gomega) {
					g.Expect(probes.Load()).To(Equal(count))
					g.Expect(now.HasWaiters()).To(BeTrue())
				})
			}
			probed(1)
			g.Expect(connection.Health.Get().Reason).To(Equal(c.before))
			now.Step(tunnelPatience)
			probed(2)
			g.Expect(connection.Health.Get().Reason).To(Equal(ReasonTunnelClosed))
			g.Expect(registry.changes.Load()).To(BeEquivalentTo(1))
		})
	}
}
