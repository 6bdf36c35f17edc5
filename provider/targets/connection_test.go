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
	"encoding/base64"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"github.com/synchub-dev/synchub/provider/kcp"
	"github.com/synchub-dev/synchub/test/framework/servers"
	"github.com/synchub-dev/synchub/test/framework/suite"
)

const (
	fieldManager = "synchub-test"
	// syncTarget is the UID of the SyncTarget whose connection a test makes.
	syncTarget types.UID = "sync-target"
	// secret stands in place of a credential; no error and no log line may show it.
	secret      = "5ecret-value"
	goodCluster = "server: https://cluster.example.org:6443"
	goodUser    = "token: " + secret
)

var secretData = base64.StdEncoding.EncodeToString([]byte(secret))

// expectNoSecret fails if the text shows the secret, or part of it.
func expectNoSecret(t *testing.T, text string) {
	t.Helper()
	for _, part := range []string{secret, secretData, secret[:4]} {
		if strings.Contains(text, part) {
			t.Errorf("shows a secret: %s", text)
		}
	}
}

// testRegistry is a registry that counts what it publishes about its only SyncTarget.
type testRegistry struct {
	*Registry
	syncTarget            types.UID
	changes, unauthorized atomic.Int64
}

// newRegistry starts a registry, which ends with ctx, and with the test.
func newRegistry(ctx context.Context, t *testing.T, clock clock.WithTicker) *testRegistry {
	t.Helper()
	f := &testRegistry{syncTarget: syncTarget}
	f.Registry = NewRegistry(Options{
		FieldManager: fieldManager,
		Limits:       kcp.Limits{QPS: 1000, Burst: 2000},
		Clock:        clock,
		Log:          funcr.New(func(prefix, args string) { expectNoSecret(t, prefix+args) }, funcr.Options{Verbosity: 10}),
	})
	f.Changed.Subscribe(t.Context(), func(changed types.UID) {
		if changed != f.syncTarget {
			t.Errorf("got a change of %s", changed)
		}
		f.changes.Add(1)
	})
	f.Unauthorized.Subscribe(t.Context(), func(types.UID) { f.unauthorized.Add(1) })
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- f.Start(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	NewWithT(t).Eventually(func() bool {
		f.lock.RLock()
		defer f.lock.RUnlock()
		return f.ctx != nil
	}).WithPolling(time.Millisecond).Should(BeTrue())
	return f
}

// connect returns the administrator's connection to a target, which is up.
func connect(t *testing.T, target *servers.Target) *Connection {
	t.Helper()
	return connectTo(t, kubeconfigAt(t, target, target.Config.Host))
}

// connectTo returns a connection, which is up.
func connectTo(t *testing.T, kubeconfig []byte) *Connection {
	t.Helper()
	connection, err := newRegistry(t.Context(), t, clock.RealClock{}).Connect(syncTarget, kubeconfig, kcp.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	suite.Eventually(t, func(g Gomega) { g.Expect(connection.Health.Get().Up).To(BeTrue(), "%+v", connection.Health.Get()) })
	return connection
}

// kubeconfigFor returns a kubeconfig for a server of httptest.
func kubeconfigFor(t *testing.T, server *httptest.Server) []byte {
	t.Helper()
	return suite.Kubeconfig(t, server.URL, suite.CertificateOf(server), secret)
}

// newProxy returns a kubeconfig for a proxy of the target. The proxy calls before for each request, and then forwards it.
func newProxy(t *testing.T, target *servers.Target, before func(*http.Request)) []byte {
	t.Helper()
	forward := suite.Forward(t, target.Config)
	proxy := suite.ServeTLS(t, http.HandlerFunc(func(writer http.ResponseWriter, request *http.Request) {
		request.Header.Set("Authorization", "Bearer "+target.Config.BearerToken)
		before(request)
		forward.ServeHTTP(writer, request)
	}))
	return kubeconfigFor(t, proxy)
}

// The environment names a proxy that is dead, as TestMain has set it.
func TestIgnoresTheEnvironmentsProxy(t *testing.T) {
	g := NewWithT(t)
	target := steady(t)
	// net/http never uses a proxy for a loopback address. It does not recognize this spelling of its name.
	server := strings.Replace(target.Config.Host, "127.0.0.1", "LOCALHOST", 1)
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server, nil)
	g.Expect(err).NotTo(HaveOccurred())
	proxy, err := http.ProxyFromEnvironment(request)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(proxy).To(HaveField("String()", deadProxy), "otherwise this test proves nothing")

	kubeconfig := strings.Replace(string(kubeconfigAt(t, target, server)), "server:", "tls-server-name: localhost\n    server:", 1)
	connectTo(t, []byte(kubeconfig))
}

// A server that is not the one of the kubeconfig must see neither the hub's requests nor its credentials.
func TestRedirectsAreNotFollowed(t *testing.T) {
	for name, code := range map[string]int{"found": http.StatusFound, "temporary": http.StatusTemporaryRedirect, "permanent": http.StatusPermanentRedirect} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			var led atomic.Int64
			elsewhere := suite.ServeTLS(t, http.HandlerFunc(func(http.ResponseWriter, *http.Request) { led.Add(1) }))
			redirects := suite.ServeTLS(t, http.HandlerFunc(func(writer http.ResponseWriter, request *http.Request) {
				writer.Header().Set("Location", elsewhere.URL+request.URL.Path)
				writer.WriteHeader(code)
			}))
			connection, err := newRegistry(t.Context(), t, clock.RealClock{}).Connect(syncTarget, kubeconfigFor(t, redirects), kcp.Limits{})
			g.Expect(err).NotTo(HaveOccurred())
			suite.Eventually(t, func(g Gomega) { g.Expect(connection.Health.Get().Reason).To(Equal(ReasonUnreachable)) })

			ctx := t.Context()
			object := kinds[0].object("default", "a")
			for _, byApply := range []bool{true, false} {
				setCreateByApply(connection, byApply)
				_, err = connection.Objects.Create(ctx, configMaps, object)
				g.Expect(err).To(HaveOccurred())
			}
			_, err = connection.Objects.Apply(ctx, configMaps, object, "uid")
			g.Expect(err).To(HaveOccurred())
			_, err = connection.Objects.Get(ctx, configMaps, keyOf(object))
			g.Expect(err).To(HaveOccurred())
			_, err = connection.Objects.HasNoObjects(ctx, configMaps, "")
			g.Expect(err).To(HaveOccurred())
			g.Expect(connection.Objects.Delete(ctx, configMaps, keyOf(object), "uid")).NotTo(Succeed())
			g.Expect(connection.Objects.RemoveMetadata(ctx, configMaps, keyOf(object), "uid", nil, nil)).NotTo(Succeed())
			_, err = connection.Objects.EnsureNamespace(ctx, "a", nil, nil)
			g.Expect(err).To(HaveOccurred())
			g.Expect(led.Load()).To(BeZero())
		})
	}
}

// The hub refuses a server whose certificate the kubeconfig's CA has not issued.
func TestTrustsOnlyTheKubeconfigsCA(t *testing.T) {
	g := NewWithT(t)
	var key atomic.Int64
	server := suite.ServeTLS(t, http.HandlerFunc(func(http.ResponseWriter, *http.Request) { key.Add(1) }))
	content, err := os.ReadFile(steady(t).Kubeconfig)
	g.Expect(err).NotTo(HaveOccurred())
	kubeconfig := strings.Replace(string(content), steady(t).Config.Host, server.URL, 1)
	connection, err := newRegistry(t.Context(), t, clock.RealClock{}).Connect(syncTarget, []byte(kubeconfig), kcp.Limits{})
	g.Expect(err).NotTo(HaveOccurred())
	suite.Eventually(t, func(g Gomega) { g.Expect(connection.Health.Get().Message).To(ContainSubstring("certificate")) })
	g.Expect(connection.Health.Get().Reason).To(Equal(ReasonUnreachable))
	g.Expect(key.Load()).To(BeZero())
}
