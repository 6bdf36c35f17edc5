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

package transport

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	testclock "k8s.io/utils/clock/testing"
)

// endlessTransport answers each request with an endless body, and counts the bytes that were read.
type endlessTransport struct{ read atomic.Int64 }

func (e *endlessTransport) RoundTrip(*http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"application/json"}}, ContentLength: -1, Body: io.NopCloser(e)}, nil
}

func (e *endlessTransport) Read(into []byte) (int, error) {
	copied := copy(into, bytes.Repeat([]byte("{} "), len(into)/3+1))
	e.read.Add(int64(copied))
	return copied, nil
}

// The hub reads all endless lists and watches of a server together at the limited rate. Other requests do not wait, and a
// canceled request stops waiting.
func TestReadLimiter(t *testing.T) {
	const perSecond, burst, part = 10_000, 100_000, 1000
	now := testclock.NewFakeClock(time.Unix(1000, 0))
	server := &endlessTransport{}
	client := LimitResponses(Options{Limits: TargetLimits(), ReadLimiter: NewReadLimiter(now, perSecond, burst)})(server)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	open := func(path string) io.ReadCloser {
		t.Helper()
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://127.0.0.1"+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		response, err := client.RoundTrip(request)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = response.Body.Close() })
		return response.Body
	}
	const readers = 3
	ended := make(chan error, readers)
	for _, path := range []string{"/api/v1/pods?watch=true", "/apis/apps/v1/deployments?watch=1", "/api/v1/secrets"} {
		body := open(path)
		go func() {
			for {
				if _, err := body.Read(make([]byte, part)); err != nil {
					ended <- err
					return
				}
			}
		}()
	}
	// Each reader has read one more part, for which it waits.
	expect := func(want int64) {
		t.Helper()
		for deadline := time.Now().Add(10 * time.Second); server.read.Load() != want || now.Waiters() < readers; {
			if time.Now().After(deadline) {
				t.Fatalf("want %d bytes, got %d, and %d wait", want, server.read.Load(), now.Waiters())
			}
		}
	}
	expect(burst + readers*part)
	now.Step(time.Second)
	expect(burst + readers*part + perSecond)

	if _, err := io.ReadFull(open("/version"), make([]byte, 100)); err != nil {
		t.Error(err)
	}
	if _, err := io.ReadFull(open("/api/v1/namespaces/a/pods/b"), make([]byte, part)); err != nil {
		t.Error(err)
	}
	cancel()
	for range readers {
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
	}
}
