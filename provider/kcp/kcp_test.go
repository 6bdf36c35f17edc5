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
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/go-logr/logr/funcr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"

	"github.com/synchub-dev/synchub/provider/requests"
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

// fakeKCP answers every request and remembers what was asked last.
type fakeKCP struct {
	*httptest.Server
	token, path, agent atomic.Value
}

func newFakeKCP(t *testing.T) *fakeKCP {
	fake := &fakeKCP{}
	fake.Server = httptest.NewTLSServer(http.HandlerFunc(func(writer http.ResponseWriter, request *http.Request) {
		fake.token.Store(strings.TrimPrefix(request.Header.Get("Authorization"), "Bearer "))
		fake.path.Store(request.URL.Path)
		fake.agent.Store(request.UserAgent())
		writer.Header().Set("Content-Type", "application/json")
		if _, err := io.WriteString(writer, `{"apiVersion":"v1","kind":"NamespaceList","items":[]}`); err != nil {
			t.Error(err)
		}
	}))
	t.Cleanup(fake.Close)
	return fake
}

func (f *fakeKCP) ca() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: f.Certificate().Raw})
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

func load(t *testing.T, content []byte) (*Access, error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "kubeconfig")
	write(t, path, content)
	return Load(path, limits)
}

func mustLoad(t *testing.T, content []byte) *Access {
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
		access.Workspace("root:org:a").Host:                      {fake.URL + "/clusters/root:org:a", "/clusters/root:org:a/api/v1/namespaces"},
		access.At(fake.URL+"/services/x", requests.Mailbox).Host: {fake.URL + "/services/x", "/services/x/api/v1/namespaces"},
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
	if config := access.Workspace("root"); config.QPS != limits.QPS || config.Burst != limits.Burst {
		t.Errorf("want the limits %+v, got %v and %d", limits, config.QPS, config.Burst)
	}
}

func listNamespaces(ctx context.Context, access *Access, host string) error {
	client, err := kubernetes.NewForConfig(access.At(host, requests.Control))
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

// logs collects what is logged.
type logs struct {
	lines atomic.Pointer[string]
}

func (l *logs) add(prefix, args string) {
	all := prefix + args + "\n"
	if before := l.lines.Load(); before != nil {
		all = *before + all
	}
	l.lines.Store(&all)
}

func (l *logs) text() string {
	if lines := l.lines.Load(); lines != nil {
		return *lines
	}
	return ""
}

func TestReload(t *testing.T) {
	fake := newFakeKCP(t)
	access := mustLoad(t, fake.kubeconfig(t, "first"))
	client, err := kubernetes.NewForConfig(access.Workspace("root"))
	if err != nil {
		t.Fatal(err)
	}
	logs := &logs{}
	log := funcr.New(logs.add, funcr.Options{})
	// wantToken fails unless the client, made once, now sends that token.
	wantToken := func(want string) {
		t.Helper()
		if _, err := client.CoreV1().Namespaces().List(t.Context(), metav1.ListOptions{}); err != nil {
			t.Fatal(err)
		}
		if got := fake.token.Load(); got != want {
			t.Errorf("want the token %s, got %s", want, got)
		}
	}
	wantToken("first")

	for _, step := range []struct {
		name, token string
		content     []byte
	}{
		{"the same content", "first", fake.kubeconfig(t, "first")},
		{"a new token", "second", fake.kubeconfig(t, "second")},
		{"a broken file", "second", []byte("{")},
		{"half a file", "second", fake.kubeconfig(t, "third")[:200]},
		{"an empty file", "second", nil},
		{"a CA that cannot be read", "second", kubeconfig(t, fake.URL, []byte("x"), api.AuthInfo{Token: "third"})},
		{"http", "second", kubeconfig(t, strings.Replace(fake.URL, "https", "http", 1), nil, api.AuthInfo{Token: "third"})},
		{"repaired", "third", fake.kubeconfig(t, "third")},
		{"another workspace of the same server", "fourth", kubeconfig(t, fake.URL+"/clusters/root:other", fake.ca(), api.AuthInfo{Token: "fourth"})},
		{"back to what it was", "first", fake.kubeconfig(t, "first")},
	} {
		t.Run(step.name, func(t *testing.T) {
			write(t, access.path, step.content)
			before := logs.text()
			if err := access.reload(log); err != nil {
				t.Fatalf("gave up: %v", err)
			}
			wantToken(step.token)
			if changed := logs.text() != before; changed == (step.name == "the same content") {
				t.Errorf("logged: %v", strings.TrimPrefix(logs.text(), before))
			}
		})
	}

	if err := os.Remove(access.path); err != nil {
		t.Fatal(err)
	}
	if err := access.reload(log); err != nil {
		t.Errorf("gave up when the file was away: %v", err)
	}
	wantToken("first")

	other := newFakeKCP(t)
	write(t, access.path, other.kubeconfig(t, "fifth"))
	err = access.reload(log)
	if err == nil || !strings.Contains(err.Error(), other.URL) || !strings.Contains(err.Error(), fake.URL) {
		t.Errorf("want an error that names both servers, got %v", err)
	}
	wantToken("first")
	if other.token.Load() != nil {
		t.Error("asked the other server")
	}
	for _, token := range []string{"first", "second", "third", "fourth", "fifth"} {
		if all := logs.text() + fmt.Sprint(err); strings.Contains(all, token) {
			t.Errorf("the token %s was logged: %s", token, all)
		}
	}
}

func TestWatchEndsWithItsContext(t *testing.T) {
	access := mustLoad(t, newFakeKCP(t).kubeconfig(t, "first"))
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- access.Watch(ctx, funcr.New(func(string, string) {}, funcr.Options{})) }()
	cancel()
	if err := <-ended; err != nil {
		t.Errorf("an ended watch is no failure: %v", err)
	}
}

// Requests go on while the credentials change: none may fail or race.
func TestReloadUnderRequests(t *testing.T) {
	fake := newFakeKCP(t)
	access := mustLoad(t, fake.kubeconfig(t, "token-0"))
	log := funcr.New(func(string, string) {}, funcr.Options{})
	stop, done := make(chan struct{}), make(chan error, 1)
	go func() {
		for {
			if err := listNamespaces(t.Context(), access, access.Workspace("root").Host); err != nil {
				done <- err
				return
			}
			select {
			case <-stop:
				done <- nil
				return
			default:
			}
		}
	}()
	for number := range 50 {
		write(t, access.path, fake.kubeconfig(t, fmt.Sprint("token-", number%2)))
		if err := access.reload(log); err != nil {
			t.Error(err)
		}
	}
	close(stop)
	if err := <-done; err != nil {
		t.Error(err)
	}
}
