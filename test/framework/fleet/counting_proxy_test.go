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

package fleet_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/client-go/util/cert"

	"github.com/synchub-dev/synchub/test/framework/fleet"
	"github.com/synchub-dev/synchub/test/framework/servers"
)

// upstream answers at once, and ends a watch only when end is closed or the client leaves.
func upstream(t *testing.T, end <-chan struct{}) *httptest.Server {
	server := httptest.NewTLSServer(http.HandlerFunc(func(writer http.ResponseWriter, request *http.Request) {
		writer.WriteHeader(http.StatusOK)
		if request.URL.Query().Get("watch") != "true" {
			return
		}
		_ = http.NewResponseController(writer).Flush()
		select {
		case <-end:
		case <-request.Context().Done():
		}
	}))
	t.Cleanup(server.Close)
	return server
}

func newCountingProxy(t *testing.T, server *httptest.Server, idleRequests fleet.IdleRequests) (*fleet.CountingProxy, *http.Client) {
	t.Helper()
	g := NewWithT(t)
	bundle, key, err := cert.GenerateSelfSignedCertKey("127.0.0.1", []net.IP{net.IPv4(127, 0, 0, 1)}, nil)
	g.Expect(err).NotTo(HaveOccurred())
	certificate, err := tls.X509KeyPair(bundle, key)
	g.Expect(err).NotTo(HaveOccurred())
	port, err := servers.FreePort()
	g.Expect(err).NotTo(HaveOccurred())
	address, err := url.Parse(server.URL)
	g.Expect(err).NotTo(HaveOccurred())
	gate := fleet.NewCountingProxy(port, certificate, address, server.Client().Transport, idleRequests)
	g.Expect(gate.Open(t.Context())).To(Succeed())
	t.Cleanup(func() { _ = gate.Close() })
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(bundle)
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}, ForceAttemptHTTP2: true}
	t.Cleanup(transport.CloseIdleConnections)
	return gate, &http.Client{Transport: transport}
}

func ask(ctx context.Context, client *http.Client, url string) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	return client.Do(request)
}

func get(t *testing.T, client *http.Client, url string) {
	t.Helper()
	g := NewWithT(t)
	response, err := ask(t.Context(), client, url)
	g.Expect(err).NotTo(HaveOccurred())
	_, err = io.Copy(io.Discard, response.Body)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(response.Body.Close()).To(Succeed())
	g.Expect(response.StatusCode).To(Equal(http.StatusOK))
}

func TestCountingProxySeparatesIdleFromCausedRequests(t *testing.T) {
	g := NewWithT(t)
	gate, client := newCountingProxy(t, upstream(t, nil), fleet.IdleRequests{"version": 0, "reviews": time.Hour})
	for range 3 {
		get(t, client, gate.URL()+"/clusters/root:a/version")
		get(t, client, gate.URL()+"/clusters/root:a/apis/reviews")
	}
	before := gate.Counts()
	g.Expect(before).To(Equal(fleet.RequestCounts{
		Connections: 1,
		Idle:        map[string]int{"GET /version": 2},
		Caused:      map[string]int{"GET /version": 1, "GET /apis/reviews": 3},
	}), "the first of all is caused, as is what comes too soon")
	get(t, client, gate.URL()+"/clusters/root:a/version")
	g.Expect(gate.Counts().Since(before).HasActivity()).To(BeFalse())
	get(t, client, gate.URL()+"/clusters/root:a/api/v1/namespaces?limit=500")
	after := gate.Counts().Since(before)
	g.Expect(after.Caused).To(Equal(map[string]int{"GET /api/v1/namespaces": 1}))
	g.Expect(after.HasActivity()).To(BeTrue())
}

func TestCountingProxyCountsWatchesThatTheServerEnded(t *testing.T) {
	g := NewWithT(t)
	end := make(chan struct{})
	gate, client := newCountingProxy(t, upstream(t, end), nil)
	const watch = "/clusters/root:a/api/v1/namespaces?watch=true"
	counts := func() fleet.RequestCounts { return gate.Counts() }

	first, cancel := context.WithCancel(t.Context())
	response, err := ask(first, client, gate.URL()+watch)
	g.Expect(err).NotTo(HaveOccurred())
	end <- struct{}{}
	_, err = io.Copy(io.Discard, response.Body)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(response.Body.Close()).To(Succeed())
	cancel()

	second, cancel := context.WithCancel(t.Context())
	response, err = ask(second, client, gate.URL()+watch)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(counts()).To(Equal(fleet.RequestCounts{Connections: 1, Idle: map[string]int{"WATCH /api/v1/namespaces": 1}, Caused: map[string]int{"WATCH /api/v1/namespaces": 1}}))
	cancel()
	_ = response.Body.Close()

	response, err = ask(t.Context(), client, gate.URL()+watch)
	g.Expect(err).NotTo(HaveOccurred())
	defer response.Body.Close() //nolint:errcheck // the gate is shut after the test
	g.Expect(counts().Caused).To(Equal(map[string]int{"WATCH /api/v1/namespaces": 2}), "the client itself has ended the one before")
}

func TestCountingProxyClosesAndOpens(t *testing.T) {
	g := NewWithT(t)
	gate, client := newCountingProxy(t, upstream(t, nil), nil)
	response, err := ask(t.Context(), client, gate.URL()+"/api/v1/pods?watch=true")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(gate.Connections()).To(Equal(1))
	g.Expect(gate.Close()).To(Succeed())
	_, err = io.Copy(io.Discard, response.Body)
	g.Expect(err).To(HaveOccurred(), "a watch must break")
	_ = response.Body.Close()
	g.Eventually(gate.Connections).Should(BeZero())
	if response, err = ask(t.Context(), client, gate.URL()+"/version"); err == nil {
		_ = response.Body.Close()
	}
	g.Expect(err).To(HaveOccurred())

	g.Expect(gate.Open(t.Context())).To(Succeed())
	get(t, client, gate.URL()+"/version")
	g.Expect(gate.Counts().Connections).To(Equal(2))
}
