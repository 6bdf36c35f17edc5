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

package kcp

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/kcp-dev/logicalcluster/v3"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"

	"github.com/synchub-dev/synchub/provider/metrics/requestmetrics"
	"github.com/synchub-dev/synchub/test/framework/suite"
)

var limits = Limits{QPS: 123, Burst: 45}

// kubeconfig returns a kubeconfig for one user of one server.
func kubeconfig(t *testing.T, server string, ca []byte, user api.AuthInfo) []byte {
	t.Helper()
	config := api.NewConfig()
	config.Clusters["kcp"] = &api.Cluster{Server: server, CertificateAuthorityData: ca}
	config.AuthInfos["hub"] = &user
	config.Contexts["kcp"] = &api.Context{Cluster: "kcp", AuthInfo: "hub"}
	config.CurrentContext = "kcp"
	content, err := clientcmd.Write(*config)
	if err != nil {
		t.Fatal(err)
	}
	return content
}

// fakeKCP answers every request and records the last one.
type fakeKCP struct {
	*httptest.Server
	token, path, agent atomic.Value
}

func newFakeKCP(t *testing.T) *fakeKCP {
	fake := &fakeKCP{}
	fake.Server = suite.ServeTLS(t, http.HandlerFunc(func(writer http.ResponseWriter, request *http.Request) {
		fake.token.Store(strings.TrimPrefix(request.Header.Get("Authorization"), "Bearer "))
		fake.path.Store(request.URL.Path)
		fake.agent.Store(request.UserAgent())
		writer.Header().Set("Content-Type", "application/json")
		if _, err := io.WriteString(writer, `{"apiVersion":"v1","kind":"NamespaceList","items":[]}`); err != nil {
			t.Error(err)
		}
	}))
	return fake
}

func (f *fakeKCP) ca() []byte {
	return suite.CertificateOf(f.Server)
}

func (f *fakeKCP) kubeconfig(t *testing.T, token string) []byte {
	t.Helper()
	return kubeconfig(t, f.URL+"/clusters/root", f.ca(), api.AuthInfo{Token: token})
}

func write(t *testing.T, path string, content []byte) {
	t.Helper()
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
}

func load(t *testing.T, content []byte) (*ConfigProvider, error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "kubeconfig")
	write(t, path, content)
	return Load(path, limits)
}

func mustLoad(t *testing.T, content []byte) *ConfigProvider {
	t.Helper()
	access, err := load(t, content)
	if err != nil {
		t.Fatal(err)
	}
	return access
}

func TestLoadReadsTheServer(t *testing.T) {
	for server, want := range map[string]string{
		"https://kcp.example.com":                              "https://kcp.example.com",
		"https://kcp.example.com/":                             "https://kcp.example.com",
		"https://kcp.example.com:6443":                         "https://kcp.example.com:6443",
		"https://kcp.example.com:6443/clusters/root":           "https://kcp.example.com:6443",
		"https://kcp.example.com:6443/clusters/root:org:a":     "https://kcp.example.com:6443",
		"https://127.0.0.1:6443/clusters/2f5wd0xyz":            "https://127.0.0.1:6443",
		"https://[::1]:6443/clusters/root":                     "https://[::1]:6443",
		"https://kcp.example.com:6443/services/x":              "",
		"https://kcp.example.com:6443/clusters":                "",
		"https://kcp.example.com:6443/clusters/root/api":       "",
		"https://kcp.example.com:6443/clusters/a/clusters/b":   "",
		"https://kcp.example.com:6443/clusters/root/api/v1/ns": "",
		"http://kcp.example.com:6443/clusters/root":            "",
		"http://127.0.0.1":                                     "",
		"kcp.example.com:6443":                                 "",
		"https://":                                             "",
		"":                                                     "",
		"https://kcp example.com":                              "",
		"ftp://kcp.example.com":                                "",
	} {
		t.Run(server, func(t *testing.T) {
			access, err := load(t, kubeconfig(t, server, nil, api.AuthInfo{Token: "secret-token"}))
			switch {
			case want == "" && err == nil:
				t.Errorf("accepted, as %s", access.Host())
			case want != "" && err != nil:
				t.Errorf("refused: %v", err)
			case want != "" && access.Host() != want:
				t.Errorf("want %s, got %s", want, access.Host())
			case err != nil && strings.Contains(err.Error(), "secret-token"):
				t.Errorf("the error shows the token: %v", err)
			}
		})
	}
}

func TestLoadRefuses(t *testing.T) {
	good := kubeconfig(t, "https://127.0.0.1:6443", nil, api.AuthInfo{Token: "x"})
	for name, content := range map[string][]byte{
		"nothing":                 {},
		"no YAML":                 []byte("{"),
		"another kind":            []byte("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n"),
		"no such context":         []byte(strings.Replace(string(good), "current-context: kcp", "current-context: other", 1)),
		"no CA but text":          kubeconfig(t, "https://127.0.0.1:6443", []byte("no certificate"), api.AuthInfo{Token: "x"}),
		"a certificate, no key":   kubeconfig(t, "https://127.0.0.1:6443", nil, api.AuthInfo{ClientCertificateData: []byte("x")}),
		"a certificate of text":   kubeconfig(t, "https://127.0.0.1:6443", nil, api.AuthInfo{ClientCertificateData: []byte("x"), ClientKeyData: []byte("y")}),
		"a file that is not here": kubeconfig(t, "https://127.0.0.1:6443", nil, api.AuthInfo{ClientCertificate: "/nowhere/x", ClientKey: "/nowhere/y"}),
	} {
		t.Run(name, func(t *testing.T) {
			if access, err := load(t, content); err == nil {
				t.Errorf("accepted, as %s", access.Host())
			}
		})
	}
	missing := filepath.Join(t.TempDir(), "missing")
	if _, err := Load(missing, limits); err == nil || !strings.Contains(err.Error(), missing) {
		t.Errorf("want an error that names %s, got %v", missing, err)
	}
}

func TestConfigsForWorkspaces(t *testing.T) {
	fake := newFakeKCP(t)
	access := mustLoad(t, fake.kubeconfig(t, "first"))
	if access.Host() != fake.URL {
		t.Errorf("want the host %s, got %s", fake.URL, access.Host())
	}
	for host, config := range map[string]struct{ host, path string }{
		access.WorkspaceConfig("root:org:a").Host:                             {fake.URL + "/clusters/root:org:a", "/clusters/root:org:a/api/v1/namespaces"},
		access.ConfigFor(fake.URL+"/services/x", requestmetrics.Mailbox).Host: {fake.URL + "/services/x", "/services/x/api/v1/namespaces"},
	} {
		if host != config.host {
			t.Errorf("want the host %s, got %s", config.host, host)
		}
		if err := listNamespaces(t.Context(), access, host); err != nil {
			t.Fatal(err)
		}
		if got := fake.path.Load(); got != config.path {
			t.Errorf("want a request to %s, got %s", config.path, got)
		}
		if got := fake.token.Load(); got != "first" {
			t.Errorf("want the kubeconfig's token, got %q", got)
		}
		if got := fake.agent.Load(); got != "synchub" {
			t.Errorf("want the hub's user agent, got %q", got)
		}
	}
	if config := access.WorkspaceConfig("root"); config.QPS != limits.QPS || config.Burst != limits.Burst {
		t.Errorf("want the limits %+v, got %v and %d", limits, config.QPS, config.Burst)
	}
}

func listNamespaces(ctx context.Context, access *ConfigProvider, host string) error {
	client, err := kubernetes.NewForConfig(access.ConfigFor(host, requestmetrics.Control))
	if err != nil {
		return err
	}
	_, err = client.CoreV1().Namespaces().List(ctx, metav1.ListOptions{})
	return err
}

func TestTrustsOnlyTheKubeconfigsCA(t *testing.T) {
	fake := newFakeKCP(t)
	access := mustLoad(t, kubeconfig(t, fake.URL, nil, api.AuthInfo{Token: "x"}))
	if err := listNamespaces(t.Context(), access, fake.URL); err == nil {
		t.Error("trusted a server that no CA of the kubeconfig vouches for")
	}
	if fake.token.Load() != nil {
		t.Error("the token was sent to it")
	}
}

// The clients of all workspaces are within the bounds of the hub's own requests.
func TestWorkspaceClients(t *testing.T) {
	fake := newFakeKCP(t)
	clients, err := mustLoad(t, fake.kubeconfig(t, "first")).WorkspaceClients(time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	for _, workspace := range []string{"root:org:a", "2f5wd0xyz"} {
		if _, err := clients.Core.Cluster(logicalcluster.NewPath(workspace)).Namespaces().List(t.Context(), metav1.ListOptions{}); err != nil {
			t.Fatal(err)
		}
		if got := fake.path.Load(); got != "/clusters/"+workspace+"/api/v1/namespaces" {
			t.Errorf("the request for %s was sent to %s", workspace, got)
		}
		_, _ = clients.RBAC.Cluster(logicalcluster.NewPath(workspace)).RoleBindings("shop").List(t.Context(), metav1.ListOptions{})
		if got := fake.path.Load(); got != "/clusters/"+workspace+"/apis/rbac.authorization.k8s.io/v1/namespaces/shop/rolebindings" {
			t.Errorf("the request for %s was sent to %s", workspace, got)
		}
	}
	if fake.token.Load() != "first" || fake.agent.Load() != "synchub" {
		t.Errorf("requests have the token %v and the agent %v", fake.token.Load(), fake.agent.Load())
	}
}
