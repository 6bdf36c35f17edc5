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
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// TestAnErrorIsOneLine runs the plugin as a process, since the logs of libraries go to the process's standard error.
func TestAnErrorIsOneLine(t *testing.T) {
	useServer(t, "http://127.0.0.1:1")
	for _, command := range []string{"get targets", "explain ducat configmaps bakery/settings"} {
		lines := strings.Split(standardErrorOf(t, strings.Fields(command)...), "\n")
		if len(lines) != 2 || !strings.HasPrefix(lines[0], "error: ") || !strings.Contains(lines[0], "connection refused") || lines[1] != "" {
			t.Errorf("%s prints %q", command, lines)
		}
	}
}

// The server, a fake, sends a warning that API servers do not send by themselves.
func TestWarningsOfServersArePrintedOnce(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Warning", "299 - \"this is \u202eold\"")
		http.Error(w, "no", http.StatusNotFound)
	}))
	t.Cleanup(server.Close)
	useServer(t, server.URL)
	if got := standardErrorOf(t, "explain", "ducat", "configmaps", "bakery/settings"); strings.Count(got, "Warning: this is \\u202eold\n") != 1 {
		t.Errorf("got %q", got)
	}
}

// standardErrorOf runs the plugin, which must fail, and returns what it prints to standard error.
func standardErrorOf(t *testing.T, args ...string) string {
	t.Helper()
	command := pluginProcess(t.Context(), args...)
	var output bytes.Buffer
	command.Stderr = &output
	if err := command.Run(); err == nil {
		t.Errorf("%q succeeds", args)
	}
	return output.String()
}
