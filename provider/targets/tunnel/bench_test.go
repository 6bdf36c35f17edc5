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
	"io"
	"net/http"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"
)

// benchCluster answers writes, watches with five events a second, and lists of 3 MB.
func benchCluster(b *testing.B) *cluster {
	b.Helper()
	list := bytes.Repeat([]byte("x"), 3<<20)
	return startCluster(b, func(w http.ResponseWriter, request *http.Request) {
		switch request.URL.Path {
		case "/list":
			_, _ = w.Write(list)
		case "/watch":
			ticker := time.NewTicker(200 * time.Millisecond)
			defer ticker.Stop()
			for {
				select {
				case <-request.Context().Done():
					return
				case <-ticker.C:
					_, _ = w.Write(list[:500])
					_ = http.NewResponseController(w).Flush()
				}
			}
		default:
			_, _ = io.Copy(w, request.Body)
		}
	})
}

// roundTrip sends a request with 2 KB, and reads the response.
func roundTrip(b *testing.B, through http.RoundTripper, url string) {
	b.Helper()
	request, err := http.NewRequestWithContext(b.Context(), http.MethodPatch, url, bytes.NewReader(make([]byte, 2<<10)))
	if err != nil {
		b.Fatal(err)
	}
	response, err := through.RoundTrip(request)
	if err != nil {
		b.Fatal(err)
	}
	_, _ = io.Copy(io.Discard, response.Body)
	_ = response.Body.Close()
}

// BenchmarkWrite compares a write to an API server with one through a tunnel, alone and beside other traffic.
func BenchmarkWrite(b *testing.B) {
	c := benchCluster(b)
	b.Run("direct", func(b *testing.B) {
		for b.Loop() {
			roundTrip(b, c.Client().Transport, c.URL+"/object")
		}
	})
	h := startHub(b, "one", 1)
	startClient(b, h.address(), h.admit(b, florin).Token, c)
	NewWithT(b).Eventually(func() bool { return h.current() != nil }, patience).Should(BeTrue())
	through := h.Transport(florin)
	write := func(b *testing.B) {
		for b.Loop() {
			roundTrip(b, through, "https://cluster.tunnel/object")
		}
	}
	b.Run("tunnel", write)
	beside := func(path string, count int) func(*testing.B) {
		return func(b *testing.B) {
			ctx, cancel := context.WithCancel(b.Context())
			var running sync.WaitGroup
			defer running.Wait()
			defer cancel()
			for range count {
				running.Go(func() {
					for ctx.Err() == nil {
						request, _ := http.NewRequestWithContext(ctx, http.MethodGet, "https://cluster.tunnel"+path, nil)
						if response, err := through.RoundTrip(request); err == nil {
							_, _ = io.Copy(io.Discard, response.Body)
							_ = response.Body.Close()
						}
					}
				})
			}
			write(b)
		}
	}
	b.Run("beside 1000 watches", beside("/watch", 1000))
	b.Run("beside lists of 3 MB", beside("/list", 1))
}

// BenchmarkListWithLatency lists 3 MB over a connection on which each direction takes 100 ms.
func BenchmarkListWithLatency(b *testing.B) {
	h, c := startHub(b, "one", 1), benchCluster(b)
	way := startRelay(b, h.address())
	way.delay = 100 * time.Millisecond
	startClient(b, way.address(), h.admit(b, florin).Token, c)
	NewWithT(b).Eventually(func() bool { return h.current() != nil }, patience).Should(BeTrue())
	for b.Loop() {
		roundTrip(b, h.Transport(florin), "https://cluster.tunnel/list")
	}
}
