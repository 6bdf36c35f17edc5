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
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
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
	relay := startRelay(b, h.address())
	relay.delay = 100 * time.Millisecond
	startClient(b, relay.address(), h.admit(b, florin).Token, c)
	NewWithT(b).Eventually(func() bool { return h.current() != nil }, patience).Should(BeTrue())
	for b.Loop() {
		roundTrip(b, h.Transport(florin), "https://cluster.tunnel/list")
	}
}

var residentSet = regexp.MustCompile(`Rss(Anon|File):\s+(\d+) kB`)

// BenchmarkProgramMemory reports the memory of synchub-tunnel, anonymous and of its file, with 1,000 open watches, each with five events a second.
func BenchmarkProgramMemory(b *testing.B) {
	g := NewWithT(b)
	h, c := startHub(b, "one", 1), benchCluster(b)
	process := startProgram(b, h, c)
	g.Eventually(func() bool { return h.current() != nil }, patience).Should(BeTrue())
	ctx, cancel := context.WithCancel(b.Context())
	defer cancel()
	for range 1000 {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://cluster.tunnel/watch?watch=true", nil)
		g.Expect(err).NotTo(HaveOccurred())
		response, err := h.Transport(florin).RoundTrip(request) //nolint:bodyclose // the goroutine below closes it
		g.Expect(err).NotTo(HaveOccurred())
		go func() { defer func() { _ = response.Body.Close() }(); _, _ = io.Copy(io.Discard, response.Body) }()
	}
	for b.Loop() {
		time.Sleep(30 * time.Second)
	}
	reportMemory(b, process)
}

// reportMemory reports the anonymous and the file-backed resident memory of a process.
func reportMemory(b *testing.B, process int) {
	b.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", process))
	NewWithT(b).Expect(err).NotTo(HaveOccurred())
	for _, found := range residentSet.FindAllSubmatch(status, -1) {
		kilobytes, err := strconv.ParseFloat(string(found[2]), 64)
		NewWithT(b).Expect(err).NotTo(HaveOccurred())
		b.ReportMetric(kilobytes/1024, fmt.Sprintf("MiB-%s", found[1]))
	}
}

// startProgram builds and starts synchub-tunnel in front of the cluster, and returns the ID of the process.
func startProgram(b *testing.B, h *hub, c *cluster) int {
	b.Helper()
	g := NewWithT(b)
	files := writeFiles(b, h.admit(b, florin).Token, c)
	directory := b.TempDir()
	binary, authority := filepath.Join(directory, "synchub-tunnel"), filepath.Join(directory, "hub.crt")
	g.Expect(os.WriteFile(authority, h.authority.PEM(), 0o600)).To(Succeed())
	build := exec.CommandContext(b.Context(), "go", "build", "-buildvcs=false", "-ldflags=-s -w", "-o", binary, "../../../cmd/synchub-tunnel") //nolint:gosec // the name is this benchmark's
	output, err := build.CombinedOutput()
	g.Expect(err).NotTo(HaveOccurred(), string(output))
	command := exec.CommandContext(b.Context(), binary, "--hub", "https://"+h.address(), "--sync-target", string(florin), //nolint:gosec // the program was just built
		"--token-file", files.token, "--hub-certificate-authority", authority, "--health-probe-bind-address", "0",
		"--server", c.URL, "--server-certificate-authority", files.authority, "--server-token-file", files.clusterToken)
	g.Expect(command.Start()).To(Succeed())
	b.Cleanup(func() { _ = command.Wait() })
	return command.Process.Pid
}
