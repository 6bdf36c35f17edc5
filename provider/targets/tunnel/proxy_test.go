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

package tunnel

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"

	. "github.com/onsi/gomega"
)

// post sends a body through the tunnel of florin, and returns the response.
func (h *hub) post(ctx context.Context, path string, body io.Reader) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, "https://cluster.tunnel"+path, body)
	if err != nil {
		return nil, err
	}
	return h.Transport(florin).RoundTrip(request)
}

// connectTo starts a hub, and a client in front of the cluster, and waits for the tunnel.
func connectTo(t *testing.T, c *cluster) (*hub, context.Context) {
	t.Helper()
	h := startHub(t, "one", 1)
	startClient(t, h.address(), h.admit(t, florin).Token, c)
	NewWithT(t).Eventually(func() bool { return h.current() != nil }, patience).Should(BeTrue())
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	return h, ctx
}

// Bodies that are larger than all windows together pass in both directions at once.
func TestLargeBodies(t *testing.T) {
	for name, http2 := range map[string]bool{"HTTP/2": true, "HTTP/1.1": false} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			h, ctx := connectTo(t, startClusterWith(t, http2, func(w http.ResponseWriter, request *http.Request) {
				body, _ := io.ReadAll(request.Body)
				_, _ = w.Write(body)
			}))
			body := bytes.Repeat([]byte("0123456789abcdef"), 256<<10/16)
			var sending sync.WaitGroup
			results := make(chan error, 80)
			for range cap(results) {
				sending.Go(func() {
					response, err := h.post(ctx, "/echo", bytes.NewReader(body))
					if err != nil {
						results <- err
						return
					}
					defer func() { _ = response.Body.Close() }()
					received, err := io.ReadAll(response.Body)
					if err == nil && !bytes.Equal(received, body) {
						err = fmt.Errorf("another body of %d bytes came back", len(received))
					}
					results <- err
				})
			}
			sending.Wait()
			for range cap(results) {
				g.Expect(<-results).To(Succeed())
			}
		})
	}
}

// Windows that cancelled requests have used are given back: otherwise the connections would stall in the end.
func TestCancelledRequestsLeaveNothing(t *testing.T) {
	g := NewWithT(t)
	var running atomic.Int32
	h, _ := connectTo(t, startCluster(t, func(w http.ResponseWriter, request *http.Request) {
		running.Add(1)
		defer running.Add(-1)
		switch request.URL.Path {
		case "/endless":
			for request.Context().Err() == nil {
				_, _ = w.Write(make([]byte, 64<<10))
			}
		case "/unread":
			<-request.Context().Done()
		}
	}))
	g.Expect(h.get(t, "/small")).To(Equal("200 "))
	// Together they are more than the window of the connection to the hub, and many times the one of the API server.
	const rounds = 12
	for range rounds {
		for _, path := range []string{"/endless", "/unread"} {
			cancelled, cancel := context.WithCancel(t.Context())
			sent := make(chan struct{})
			go func() {
				defer close(sent)
				if response, err := h.post(cancelled, path, &notifyingReader{left: 900 << 10, onEnd: cancel}); err == nil {
					_, _ = io.CopyN(io.Discard, response.Body, 100<<10)
					_ = response.Body.Close()
				}
				cancel()
			}()
			<-sent
			g.Eventually(running.Load, patience).Should(BeZero())
		}
	}
	g.Expect(h.get(t, "/small")).To(Equal("200 "))
	g.Expect(h.current().conn.State().StreamsActive).To(BeZero())
}

// notifyingReader is a body of zeros, which calls onEnd when nearly all is read, and ends later.
type notifyingReader struct {
	left  int
	onEnd func()
}

func (r *notifyingReader) Read(p []byte) (int, error) {
	count := min(len(p), r.left)
	clear(p[:count])
	if r.left -= count; r.left == 0 {
		r.onEnd()
		return count, io.EOF
	}
	return count, nil
}

// An API server may respond before it has read the request, and may send trailers.
func TestEarlyResponsesAndTrailers(t *testing.T) {
	g := NewWithT(t)
	h, ctx := connectTo(t, startCluster(t, func(w http.ResponseWriter, request *http.Request) {
		w.Header().Set("Trailer", "X-Sum")
		if request.URL.Path == "/large" {
			w.WriteHeader(http.StatusRequestEntityTooLarge)
		}
		_, _ = io.WriteString(w, "early")
		w.Header().Set("X-Sum", "5")
	}))
	for path, want := range map[string]int{"/large": http.StatusRequestEntityTooLarge, "/x": http.StatusOK} {
		for range 20 {
			response, err := h.post(ctx, path, bytes.NewReader(make([]byte, 3<<20)))
			g.Expect(err).NotTo(HaveOccurred())
			body, err := io.ReadAll(response.Body)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(response.StatusCode).To(Equal(want))
			g.Expect(string(body)).To(Equal("early"))
			g.Expect(response.Trailer.Get("X-Sum")).To(Equal("5"))
			g.Expect(response.Body.Close()).To(Succeed())
		}
	}
	g.Eventually(func() int { return h.current().conn.State().StreamsActive }, patience).Should(BeZero())
}

// Requests work again after the API server has closed its connections, and the ones that it has begun end in order.
func TestAPIServerGoesAway(t *testing.T) {
	g := NewWithT(t)
	release := make(chan struct{})
	c := startCluster(t, func(w http.ResponseWriter, request *http.Request) {
		if request.URL.Path == "/slow" {
			_ = http.NewResponseController(w).Flush()
			<-release
		}
		_, _ = io.WriteString(w, "done")
	})
	h, ctx := connectTo(t, c)
	response, err := h.post(ctx, "/slow", http.NoBody)
	g.Expect(err).NotTo(HaveOccurred())
	defer func() { _ = response.Body.Close() }()
	// With keep-alives off, the server sends GOAWAY with the next response.
	c.Config.SetKeepAlivesEnabled(false)
	for range 5 {
		g.Eventually(func() (string, error) { return h.get(t, "/x") }, patience).Should(Equal("200 done"))
	}
	close(release)
	body, err := io.ReadAll(response.Body)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(string(body)).To(Equal("done"))
	c.CloseClientConnections()
	g.Eventually(func() (string, error) { return h.get(t, "/x") }, patience).Should(Equal("200 done"))
	g.Expect(h.current()).NotTo(BeNil())
}
