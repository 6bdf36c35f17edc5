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
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	. "github.com/onsi/gomega"
)

const (
	listRequest    = "/api/v1/configmaps?resourceVersion=5"
	watchRequest   = "/api/v1/configmaps?watch=true&resourceVersion=7"
	initialRequest = "/api/v1/configmaps?watch=true&resourceVersion=7&sendInitialEvents=true&resourceVersionMatch=NotOlderThan"
)

// watchServer answers lists at once, and keeps watches open until their clients end them.
func watchServer(t *testing.T) *httptest.Server {
	server := httptest.NewServer(http.HandlerFunc(func(response http.ResponseWriter, request *http.Request) {
		response.WriteHeader(http.StatusOK)
		if request.URL.Query().Get("watch") != "true" {
			return
		}
		response.(http.Flusher).Flush()
		<-request.Context().Done()
	}))
	t.Cleanup(server.Close)
	return server
}

// send sends a request and returns its status code. The watch that it may have opened is still running.
func send(t *testing.T, transport http.RoundTripper, url string) (status int, body io.ReadCloser) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := transport.RoundTrip(request)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = response.Body.Close() })
	return response.StatusCode, response.Body
}

func TestAWatchContinuesFromAListSinceTheRestart(t *testing.T) {
	for name, test := range map[string]struct {
		before, after []string
		wanted        int // of the watch at last
	}{
		"no list":                          {nil, []string{watchRequest}, http.StatusGone},
		"a list before the restart":        {[]string{listRequest}, []string{watchRequest}, http.StatusGone},
		"a list after the restart":         {nil, []string{watchRequest, listRequest, watchRequest}, http.StatusOK},
		"initial events after the restart": {nil, []string{initialRequest, watchRequest}, http.StatusOK},
		"another collection's list":        {nil, []string{watchRequest, "/api/v1/secrets", watchRequest}, http.StatusGone},
		"another selector's list":          {nil, []string{watchRequest, listRequest + "&labelSelector=a", watchRequest}, http.StatusGone},
		"a later page":                     {nil, []string{watchRequest, listRequest + "&continue=a", watchRequest}, http.StatusGone},
		"a watch from now":                 {nil, []string{"/api/v1/configmaps?watch=true"}, http.StatusOK},
		"a watch from any version":         {nil, []string{"/api/v1/configmaps?watch=true&resourceVersion=0"}, http.StatusOK},
	} {
		t.Run(name, func(t *testing.T) {
			server, watches := watchServer(t), &Watches{}
			transport := watches.Wrap(server.Client().Transport)
			for _, request := range test.before {
				send(t, transport, server.URL+request)
			}
			watches.Restart()
			var status int
			for _, request := range test.after {
				status, _ = send(t, transport, server.URL+request)
			}
			if status != test.wanted {
				t.Errorf("the watch got %d, wanted %d", status, test.wanted)
			}
		})
	}
}

func TestEachRestartNeedsAnotherList(t *testing.T) {
	server, watches := watchServer(t), &Watches{}
	transport := watches.Wrap(server.Client().Transport)
	for range 3 {
		watches.Restart()
		for _, step := range []struct {
			request string
			wanted  int
		}{{watchRequest, http.StatusGone}, {listRequest, http.StatusOK}, {watchRequest, http.StatusOK}} {
			if status, _ := send(t, transport, server.URL+step.request); status != step.wanted {
				t.Errorf("%s got %d, wanted %d", step.request, status, step.wanted)
			}
		}
	}
}

func TestRestartEndsRunningWatches(t *testing.T) {
	g := NewWithT(t)
	server, watches := watchServer(t), &Watches{}
	transport := watches.Wrap(server.Client().Transport)
	_, first := send(t, transport, server.URL+watchRequest)
	_, second := send(t, transport, server.URL+initialRequest)
	g.Expect(second.Close()).To(Succeed())
	g.Expect(watches.running).To(HaveLen(1), "a watch that its client ended still runs")
	watches.Restart()
	_, err := io.ReadAll(first)
	g.Expect(err).To(HaveOccurred())
	g.Expect(first.Close()).To(Succeed())
	g.Expect(watches.running).To(BeEmpty())
}
