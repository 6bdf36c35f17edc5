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

package suite

import (
	"encoding/pem"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"testing"

	"github.com/onsi/gomega"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/synchub-dev/synchub/test/framework"
	"github.com/synchub-dev/synchub/test/framework/servers"
)

// Eventually fails the test unless the assertions hold in the end. Its timeout does not depend on Main.
func Eventually(t testing.TB, assert func(g gomega.Gomega)) {
	t.Helper()
	gomega.NewWithT(t).Eventually(assert).WithContext(t.Context()).WithTimeout(Timeout).WithPolling(pollInterval).Should(gomega.Succeed())
}

// WaitUntil fails the test unless the condition holds in the end.
func WaitUntil(t testing.TB, what string, condition func() bool) {
	t.Helper()
	gomega.NewWithT(t).Eventually(condition).WithContext(t.Context()).WithTimeout(Timeout).WithPolling(pollInterval).Should(gomega.BeTrue(), what)
}

// Apply applies a manifest, see framework.Apply.
func Apply(t testing.TB, config *rest.Config, manifest string) {
	t.Helper()
	if err := framework.Apply(t.Context(), config, manifest); err != nil {
		t.Fatal(err)
	}
}

// Dynamic returns a dynamic client.
func Dynamic(t testing.TB, config *rest.Config) dynamic.Interface {
	t.Helper()
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// Discovery returns a discovery client. Its RESTClient is one for all paths of the server.
func Discovery(t testing.TB, config *rest.Config) *discovery.DiscoveryClient {
	t.Helper()
	client, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// Observe returns a config whose clients call a function before each request.
func Observe(config *rest.Config, observe func(*http.Request)) *rest.Config {
	config = rest.CopyConfig(config)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(request *http.Request) (*http.Response, error) {
			observe(request)
			return next.RoundTrip(request)
		})
	})
	return config
}

type roundTripper func(*http.Request) (*http.Response, error)

func (r roundTripper) RoundTrip(request *http.Request) (*http.Response, error) { return r(request) }

// Kubeconfig returns a kubeconfig for a server. Without ca the client does not trust the server.
func Kubeconfig(t testing.TB, host string, ca []byte, token string) []byte {
	t.Helper()
	content, err := servers.Kubeconfig("cluster", host, ca, "user", token)
	if err != nil {
		t.Fatal(err)
	}
	return content
}

// ServeTLS starts a server that ends with the test. Clients that go away are not logged.
func ServeTLS(t testing.TB, handler http.Handler) *httptest.Server {
	t.Helper()
	server := httptest.NewUnstartedServer(handler)
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.StartTLS()
	t.Cleanup(server.Close)
	return server
}

// CertificateOf returns the certificate of a TLS server.
func CertificateOf(server *httptest.Server) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
}

// ReadFile returns the content of a file.
func ReadFile(t testing.TB, path string) []byte {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return content
}

// Forward returns a proxy to a server, which changes nothing in requests. Clients that go away are not logged.
func Forward(t testing.TB, config *rest.Config) *httputil.ReverseProxy {
	t.Helper()
	host, err := url.Parse(config.Host)
	if err != nil {
		t.Fatal(err)
	}
	trusted, err := rest.TLSConfigFor(config)
	if err != nil {
		t.Fatal(err)
	}
	transport := &http.Transport{TLSClientConfig: trusted, ForceAttemptHTTP2: true}
	t.Cleanup(transport.CloseIdleConnections)
	return &httputil.ReverseProxy{
		Rewrite:       func(request *httputil.ProxyRequest) { request.SetURL(host) },
		Transport:     transport,
		FlushInterval: -1, // an event of a watch must not wait for the next
		ErrorLog:      log.New(io.Discard, "", 0),
	}
}
