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

package ui

import (
	"bufio"
	"context"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// openStream opens a live page, and returns its events.
func openStream(t *testing.T, server *httptest.Server, page string) (*answer, *bufio.Scanner) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, server.URL+"/live?"+url.Values{"page": {page}, "version": {"0"}}.Encode(), nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := server.Client().Do(request)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = response.Body.Close() })
	return &answer{response.StatusCode, response.Status, response.Header, nil}, bufio.NewScanner(response.Body)
}

// A live page gets its content after a change, without the parts around it.
func TestLive(t *testing.T) {
	changed := newChanges()
	server := httptest.NewServer(newServer(nil, changed))
	t.Cleanup(server.Close)
	response, events := openStream(t, server, "/placements?q=a")
	if response.StatusCode != http.StatusOK || response.Header.Get("Content-Type") != "text/event-stream" {
		t.Fatalf("got %s, %v", response.Status, response.Header)
	}
	changed.add()
	var lines []string
	for events.Scan() && events.Text() != "" {
		lines = append(lines, events.Text())
	}
	if len(lines) < 3 || lines[0] != "event: main" || lines[1] != `data: <main id="main" tabindex="-1" data-version="1">` || lines[len(lines)-1] != "data: </main>" {
		t.Errorf("got\n%s", strings.Join(lines, "\n"))
	}
	for _, line := range lines[1:] {
		if !strings.HasPrefix(line, "data: ") {
			t.Errorf("%q would end the event", line)
		}
	}
}

func TestLiveRefuses(t *testing.T) {
	server := httptest.NewServer(newServer(nil, newChanges()))
	t.Cleanup(server.Close)
	for _, page := range []string{"http://example.com/", "//example.com/", "%zz", comparePath + "?name=web"} {
		if response, _ := openStream(t, server, page); response.StatusCode != http.StatusBadRequest {
			t.Errorf("%s: %s", page, response.Status)
		}
	}
	for range maxStreams {
		if response, _ := openStream(t, server, "/"); response.StatusCode != http.StatusOK {
			t.Fatal(response.Status)
		}
	}
	if response, _ := openStream(t, server, "/"); response.StatusCode != http.StatusServiceUnavailable {
		t.Errorf("one more page: %s", response.Status)
	}
}

// countingWriter counts the contents that a live page gets.
type countingWriter struct {
	mu     sync.Mutex
	events int
}

func (*countingWriter) Header() http.Header { return http.Header{} }

func (*countingWriter) WriteHeader(int) {}

func (*countingWriter) Flush() {}

func (w *countingWriter) Write(content []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.events += strings.Count(string(content), "event: main\n")
	return len(content), nil
}

func (w *countingWriter) count() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.events
}

// Many changes at once make few contents, and none makes only new ages.
func TestLiveIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		changed := newChanges()
		server := newServer(nil, changed)
		ctx, cancel := context.WithCancel(t.Context())
		writer := &countingWriter{}
		go server.ServeHTTP(writer, httptest.NewRequestWithContext(ctx, http.MethodGet, "/live?page=/&version=0", nil))
		expect := func(want int, after time.Duration) {
			t.Helper()
			<-time.After(after)
			synctest.Wait()
			if got := writer.count(); got != want {
				t.Errorf("%d contents, want %d", got, want)
			}
		}
		expect(0, agesEvery/2)
		for range 100 {
			changed.add()
		}
		expect(1, 0)
		changed.add()
		expect(1, refreshEvery/2)
		expect(2, refreshEvery)
		expect(2, refreshEvery)
		expect(3, agesEvery)
		cancel()
	})
}
