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

package main

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	. "github.com/onsi/gomega"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/util/cert"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/synchub-dev/synchub/test/framework/suite"
)

// metricsRights are the accounts of the test, with the rights that the chart gives to the hub and to readers of its metrics.
const metricsRights = `
apiVersion: v1
kind: ServiceAccount
metadata: {name: metrics-hub, namespace: default}
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: metrics-reader, namespace: default}
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: metrics-stranger, namespace: default}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: metrics-hub}
rules:
- {apiGroups: [authentication.k8s.io], resources: [tokenreviews], verbs: [create]}
- {apiGroups: [authorization.k8s.io], resources: [subjectaccessreviews], verbs: [create]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: metrics-reader}
rules:
- {nonResourceURLs: [/metrics], verbs: [get]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: metrics-hub}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: metrics-hub}
subjects:
- {kind: ServiceAccount, name: metrics-hub, namespace: default}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: metrics-reader}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: metrics-reader}
subjects:
- {kind: ServiceAccount, name: metrics-reader, namespace: default}
`

// accountConfig returns the client config of a ServiceAccount in the namespace default of the target.
func accountConfig(t *testing.T, name string) *rest.Config {
	t.Helper()
	kubeconfig, err := suite.Target(t).ServiceAccountKubeconfig(t.Context(), metav1.NamespaceDefault, name)
	if err != nil {
		t.Fatal(err)
	}
	config, err := clientcmd.RESTConfigFromKubeConfig(kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	return config
}

// waitForRight waits until the API server applies the bindings of an account. The hub caches a refusal.
func waitForRight(t *testing.T, config *rest.Config, spec authorizationv1.SelfSubjectAccessReviewSpec) {
	t.Helper()
	clientset, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	suite.Eventually(t, func(g Gomega) {
		answer, err := clientset.AuthorizationV1().SelfSubjectAccessReviews().Create(t.Context(), &authorizationv1.SelfSubjectAccessReview{Spec: spec}, metav1.CreateOptions{})
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(answer.Status.Allowed).To(BeTrue())
	})
}

// serveMetrics runs the metrics server of a hub with the given flags, and returns its address.
func serveMetrics(t *testing.T, config *rest.Config, flags ...string) string {
	t.Helper()
	options := completeRun(t, append([]string{"--metrics-bind-address", "127.0.0.1:0"}, flags...)...)
	httpClient, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(httpClient.CloseIdleConnections)
	server, err := metricsserver.NewServer(managerOptions(logr.Discard(), options.settings).Metrics, config, httpClient)
	if err != nil {
		t.Fatal(err)
	}
	suite.Run(server.Start)
	bound, ok := server.(interface{ GetBindAddr() string })
	if !ok {
		t.Fatalf("%T has no method for its address", server)
	}
	suite.WaitUntil(t, "the metrics server listens", func() bool { return bound.GetBindAddr() != "" })
	return bound.GetBindAddr()
}

// scrape reads /metrics and returns the status, the body, and the state of TLS. It verifies no certificate.
func scrape(t *testing.T, url, token string) (status int, body string, state *tls.ConnectionState) {
	t.Helper()
	transport := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, ForceAttemptHTTP2: true} //nolint:gosec // as a scrape of a self-signed certificate
	defer transport.CloseIdleConnections()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url+"/metrics", nil)
	if err != nil {
		t.Fatal(err)
	}
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	answer, err := (&http.Client{Transport: transport}).Do(request)
	if err != nil {
		t.Fatal(err)
	}
	content, err := io.ReadAll(answer.Body)
	if err := answer.Body.Close(); err != nil {
		t.Error(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	return answer.StatusCode, string(content), answer.TLS
}

func TestMetricsAreOpenByDefault(t *testing.T) {
	// Nothing answers at this address: the server sends no requests there.
	address := serveMetrics(t, &rest.Config{Host: "https://127.0.0.1:1"})
	if status, body, _ := scrape(t, "http://"+address, ""); status != http.StatusOK || !strings.Contains(body, "\ngo_goroutines ") {
		t.Errorf("got %d: %.200s", status, body)
	}
}

func TestSecureMetrics(t *testing.T) {
	suite.Apply(t, suite.Target(t).Config, metricsRights)
	hub, reader, stranger := accountConfig(t, "metrics-hub"), accountConfig(t, "metrics-reader"), accountConfig(t, "metrics-stranger")
	waitForRight(t, hub, authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &authorizationv1.ResourceAttributes{Group: "authorization.k8s.io", Resource: "subjectaccessreviews", Verb: "create"}})
	waitForRight(t, reader, authorizationv1.SelfSubjectAccessReviewSpec{NonResourceAttributes: &authorizationv1.NonResourceAttributes{Path: "/metrics", Verb: "get"}})
	address := serveMetrics(t, hub, "--metrics-secure")

	for name, tt := range map[string]struct {
		token string
		want  int
	}{
		"no token":                         {"", http.StatusUnauthorized},
		"a token that the cluster refuses": {"5ecret", http.StatusUnauthorized},
		"a token without the right":        {stranger.BearerToken, http.StatusForbidden},
		"a token with the right":           {reader.BearerToken, http.StatusOK},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			status, body, state := scrape(t, "https://"+address, tt.token)
			g.Expect(status).To(Equal(tt.want), body)
			g.Expect(strings.Contains(body, "\ngo_goroutines ")).To(Equal(tt.want == http.StatusOK), body)
			g.Expect(state.Version).To(BeEquivalentTo(tls.VersionTLS13))
			g.Expect(state.NegotiatedProtocol).NotTo(Equal("h2"))
		})
	}
	t.Run("plain HTTP", func(t *testing.T) {
		connection, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = connection.Close() }()
		if _, err := fmt.Fprintf(connection, "GET /metrics HTTP/1.0\r\nAuthorization: Bearer %s\r\n\r\n", reader.BearerToken); err != nil {
			t.Fatal(err)
		}
		// The server may close the connection before its answer is read.
		if content, _ := io.ReadAll(connection); len(content) > 0 && !bytes.HasPrefix(content, []byte("HTTP/1.0 400 ")) {
			t.Errorf("got %s", content)
		}
	})
	t.Run("TLS 1.2", func(t *testing.T) {
		dialer := tls.Dialer{Config: &tls.Config{InsecureSkipVerify: true, MaxVersion: tls.VersionTLS12}} //nolint:gosec // must be refused
		connection, err := dialer.DialContext(t.Context(), "tcp", address)
		if err == nil {
			_ = connection.Close()
			t.Error("the server accepted it")
		}
	})
}

// writeMetricsCertificate writes a new self-signed certificate and its key into a directory, and returns the certificate.
func writeMetricsCertificate(t *testing.T, dir string) *x509.Certificate {
	t.Helper()
	certificate, key, err := cert.GenerateSelfSignedCertKey("metrics.example.org", nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string][]byte{"tls.crt": certificate, "tls.key": key} {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	parsed, err := cert.ParseCertsPEM(certificate)
	if err != nil {
		t.Fatal(err)
	}
	return parsed[0]
}

func TestMetricsCertificateIsReadAgain(t *testing.T) {
	dir := t.TempDir()
	first := writeMetricsCertificate(t, dir)
	address := serveMetrics(t, &rest.Config{Host: "https://127.0.0.1:1"}, "--metrics-secure", "--metrics-cert-dir", dir)
	serves := func(want *x509.Certificate) bool {
		_, _, state := scrape(t, "https://"+address, "")
		return bytes.Equal(state.PeerCertificates[0].Raw, want.Raw)
	}
	if !serves(first) {
		t.Fatal("the server does not serve the certificate of the directory")
	}
	second := writeMetricsCertificate(t, dir)
	suite.WaitUntil(t, "the server serves the new certificate", func() bool { return serves(second) })
}
