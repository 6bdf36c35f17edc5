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
	"io"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/utils/clock"

	"github.com/synchub-dev/synchub/provider/targets/tunnel/program"
)

func TestFlagsThatDoNotWork(t *testing.T) {
	token := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(token, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	complete := []string{
		"--hub", "https://synchub.example.com:8443", "--sync-target", "uid", "--token-file", token,
		"--server", "https://127.0.0.1:1", "--server-certificate-authority", "", "--server-token-file", token,
	}
	for name, test := range map[string]struct {
		args []string
		want string
	}{
		"nothing":                    {[]string{}, "is needed; the manifest of `kubectl synchub register NAME --tunnel -o yaml` has it"},
		"an unknown flag":            {[]string{"--kubeconfig", "x"}, "see `synchub-tunnel --help`"},
		"an unknown level":           {[]string{"--log-level", "loud"}, "--log-level is error, info or debug"},
		"no cluster":                 {complete[:6], "set --server, since this does not run in a cluster"},
		"a hub without TLS":          {append(complete, "--hub", "http://synchub.example.com"), "the URL of the hub must be like"},
		"an API server without TLS":  {append(complete, "--server", "http://127.0.0.1:1"), "the URL of the API server must be like"},
		"no token for the cluster":   {append(complete, "--server-token-file", "nowhere"), "cannot read the token: open nowhere"},
		"no authority of the hub":    {append(complete, "--hub-certificate-authority", "nowhere"), "--hub-certificate-authority: the file nowhere does not exist"},
		"an address that cannot be":  {append(complete, "--health-probe-bind-address", "nowhere"), "set --health-probe-bind-address to an address that is free"},
		"an authority with no PEM":   {append(complete, "--hub-certificate-authority", token), "has no certificate in PEM form"},
		"an API server's is no PEM":  {append(complete, "--server-certificate-authority", token), "has no certificate in PEM form"},
		"arguments that are no flag": {[]string{"tunnel"}, "unknown command"},
	} {
		t.Run(name, func(t *testing.T) {
			command := newCommand()
			command.SetArgs(test.args)
			command.SetOut(io.Discard)
			if err := command.ExecuteContext(t.Context()); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("want %q, got %v", test.want, err)
			}
		})
	}
}

func TestProbesAndMetrics(t *testing.T) {
	client, err := program.NewClient(program.ClientOptions{Hub: "https://synchub.example.com", SyncTarget: "uid", Clock: clock.RealClock{}})
	if err != nil {
		t.Fatal(err)
	}
	get := func(path string) (int, string) {
		response := httptest.NewRecorder()
		handler := probesOf(client)
		if path == "/metrics" {
			handler = metricsOf(client)
		}
		handler.ServeHTTP(response, httptest.NewRequestWithContext(t.Context(), "GET", path, nil))
		return response.Code, response.Body.String()
	}
	for path, want := range map[string]int{"/healthz": 200, "/readyz": 503, "/metrics": 200} {
		code, body := get(path)
		if code != want {
			t.Errorf("%s: want %d, got %d", path, want, code)
		}
		if path == "/metrics" && !strings.Contains(body, "\nsynchub_tunnel_open 0\n") {
			t.Errorf("got %s", body)
		}
	}
}
