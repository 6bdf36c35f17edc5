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
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// execute runs the command line and returns what it printed and its error, which main prints after the program's name.
func execute(t *testing.T, args ...string) (string, error) {
	t.Helper()
	var output bytes.Buffer
	command := newCommand()
	command.SetOut(&output)
	command.SetErr(&output)
	command.SetArgs(args)
	err := command.ExecuteContext(t.Context())
	return output.String(), err
}

// kubeconfigFor writes a kubeconfig for a server.
func kubeconfigFor(t *testing.T, server string, ca []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "kubeconfig")
	config := clientcmdapi.NewConfig()
	config.Clusters["c"] = &clientcmdapi.Cluster{Server: server, CertificateAuthorityData: ca}
	config.AuthInfos["u"] = &clientcmdapi.AuthInfo{Token: "token"}
	config.Contexts["x"] = &clientcmdapi.Context{Cluster: "c", AuthInfo: "u"}
	config.CurrentContext = "x"
	if err := clientcmd.WriteToFile(*config, path); err != nil {
		t.Fatal(err)
	}
	return path
}

// Wrong or missing configuration ends at once, with one sentence that says what to do and no page of usage.
func TestWrongConfiguration(t *testing.T) {
	kcp := kubeconfigFor(t, "https://127.0.0.1:1", nil)
	broken := filepath.Join(t.TempDir(), "broken")
	if err := os.WriteFile(broken, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		args []string
		want string
	}{
		"run without kcp":            {[]string{"run"}, "set --kcp-kubeconfig"},
		"run without workspace":      {[]string{"run", "--kcp-kubeconfig", kcp, "--provider-workspace", ""}, "set --provider-workspace"},
		"no such file":               {[]string{"run", "--kcp-kubeconfig", "/does/not/exist"}, "cannot read the kcp kubeconfig"},
		"a broken file":              {[]string{"run", "--kcp-kubeconfig", broken}, "cannot use the kcp kubeconfig"},
		"a limit of nothing":         {[]string{"run", "--kcp-kubeconfig", kcp, "--target-qps", "0"}, "set --kcp-qps"},
		"an impossible lease":        {[]string{"run", "--kcp-kubeconfig", kcp, "--leader-election-lease-duration", "1s"}, "set --leader-election-retry-period below"},
		"an unknown log level":       {[]string{"run", "--kcp-kubeconfig", kcp, "--log-level", "loud"}, "set --log-level"},
		"an unknown log format":      {[]string{"run", "--kcp-kubeconfig", kcp, "--log-format", "xml"}, "set --log-format"},
		"not in a cluster":           {[]string{"run", "--kcp-kubeconfig", kcp}, "set --hosting-kubeconfig"},
		"no such hosting kubeconfig": {[]string{"run", "--kcp-kubeconfig", kcp, "--hosting-kubeconfig", "/does/not/exist"}, "cannot use the hosting kubeconfig"},
		"an unknown flag":            {[]string{"run", "--fast"}, "unknown flag"},
		"an unknown command":         {[]string{"walk"}, "unknown command"},
		"init without kcp":           {[]string{"init"}, "set --kcp-kubeconfig"},
		"init without user":          {[]string{"init", "--kcp-kubeconfig", kcp}, "set --hub-user"},
		"init without workspace":     {[]string{"init", "--kcp-kubeconfig", kcp, "--hub-user", "hub", "--provider-workspace", ""}, "set --provider-workspace"},
	} {
		t.Run(name, func(t *testing.T) {
			output, err := execute(t, test.args...)
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("want an error with %q, got %v", test.want, err)
			}
			if strings.Contains(output, "Usage:") {
				t.Errorf("a page of usage hides the error:\n%s", output)
			}
			if err != nil && strings.Contains(err.Error(), "\n") {
				t.Errorf("the error is more than a sentence: %v", err)
			}
		})
	}
}

// A hub whose provider workspace was not prepared says how to prepare it. The server is a fake: a hosting cluster that
// serves ConfigMaps, and a kcp that knows no workspace.
func TestProviderWorkspaceNotPrepared(t *testing.T) {
	answers := map[string]string{
		"/api":    `{"kind": "APIVersions", "versions": ["v1"]}`,
		"/apis":   `{"kind": "APIGroupList", "apiVersion": "v1", "groups": []}`,
		"/api/v1": `{"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": "v1", "resources": [{"name": "configmaps", "namespaced": true, "kind": "ConfigMap", "verbs": ["list"]}]}`,
	}
	server := httptest.NewTLSServer(http.HandlerFunc(func(response http.ResponseWriter, request *http.Request) {
		answer, ok := answers[request.URL.Path]
		if !ok {
			http.NotFound(response, request)
			return
		}
		response.Header().Set("Content-Type", "application/json")
		_, _ = response.Write([]byte(answer))
	}))
	t.Cleanup(server.Close)
	ca := pemOf(t, server)
	kubeconfig := kubeconfigFor(t, server.URL, ca)
	_, err := execute(t, "run", "--kcp-kubeconfig", kubeconfig, "--hosting-kubeconfig", kubeconfig,
		"--metrics-bind-address", "0", "--health-probe-bind-address", "0", "--leader-elect=false")
	if err == nil || !strings.Contains(err.Error(), "synchub init --provider-workspace root:synchub") {
		t.Errorf("want an error that names `synchub init`, got %v", err)
	}
}

func TestVersion(t *testing.T) {
	output, err := execute(t, "version")
	if err != nil || !strings.HasPrefix(output, "synchub "+version+" ") {
		t.Errorf("got %q, %v", output, err)
	}
}

func TestCompletion(t *testing.T) {
	for _, shell := range []string{"bash", "zsh", "fish", "powershell"} {
		output, err := execute(t, "completion", shell)
		if err != nil || !strings.Contains(output, "synchub") {
			t.Errorf("%s: got %d bytes, %v", shell, len(output), err)
		}
	}
}

// The defaults must not throttle a burst of thousands, and the help shows them.
func TestHelp(t *testing.T) {
	output, err := execute(t, "run", "--help")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"--kcp-kubeconfig", "--hosting-kubeconfig", "--namespace", "--leader-elect ", "--leader-election-namespace", "--log-level",
		`(default "root:synchub")`, `(default ":8080")`, `(default ":8081")`, "(default 2000)", "(default 4000)", "(default 1000)",
	} {
		if !strings.Contains(output, want) {
			t.Errorf("the help does not show %s:\n%s", want, output)
		}
	}
}

// The process that serves the tests is no Pod.
func TestNamespaceOutsideACluster(t *testing.T) {
	options := runOptions{kcpKubeconfig: "x", workspace: "x", leaseDuration: 3, renewDeadline: 2, retryPeriod: 1, logs: logOptions{"info", "json"}}
	options.kcpLimits.QPS, options.kcpLimits.Burst, options.targetLimits.QPS, options.targetLimits.Burst = 1, 1, 1, 1
	if err := options.validate(); err != nil {
		t.Fatal(err)
	}
	if options.namespace != "default" || options.leaseNamespace != "default" {
		t.Errorf("got %q and %q", options.namespace, options.leaseNamespace)
	}
}

// pemOf returns the certificate of a test server.
func pemOf(t *testing.T, server *httptest.Server) []byte {
	t.Helper()
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
}
