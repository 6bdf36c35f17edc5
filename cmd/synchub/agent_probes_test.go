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
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/synchub-dev/synchub/test/framework/servers"
)

// An agent without a connection to kcp waits. It is alive, so that nobody restarts it, and not ready.
func TestAgentAnswersProbesFromTheStart(t *testing.T) {
	port, err := servers.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	address := fmt.Sprintf("127.0.0.1:%d", port)
	probes, err := startAgentProbes(t.Context(), address)
	if err != nil {
		t.Fatal(err)
	}
	expect := func(path string, want int) {
		t.Helper()
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+address+path, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		_ = response.Body.Close()
		if response.StatusCode != want {
			t.Errorf("%s: got %s", path, response.Status)
		}
	}
	expect("/healthz", http.StatusOK)
	expect("/readyz", http.StatusServiceUnavailable)
	probes.ready.Store(true)
	expect("/healthz", http.StatusOK)
	expect("/readyz", http.StatusOK)
	if _, err := startAgentProbes(t.Context(), address); err == nil || !strings.Contains(err.Error(), "--health-probe-bind-address") {
		t.Errorf("an address in use: got %v", err)
	}
	if _, err := startAgentProbes(t.Context(), "0"); err != nil {
		t.Error(err)
	}
}
