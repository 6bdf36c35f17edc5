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
	"bufio"
	"context"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	testclock "k8s.io/utils/clock/testing"

	"github.com/synchub-dev/synchub/provider/targets/tunnel/program"
)

// oneWayProxy only allows outgoing connections, like a corporate proxy: on request of a client, it dials the hub. It loses some
// connections.
type oneWayProxy struct {
	*relay

	lock sync.Mutex
	// loss is the share of connections that are lost, at different times.
	loss   float64
	random *rand.Rand
}

func startOneWayProxy(t testing.TB, hubAddress string) *oneWayProxy {
	t.Helper()
	p := &oneWayProxy{random: rand.New(rand.NewPCG(1, 2))} //nolint:gosec // the same connections are lost in each run
	p.relay = startRelayWith(t, p.accept, hubAddress)
	return p
}

// accept answers a request CONNECT, and reports whether the connection stays open. A lost connection ends before the answer,
// after it, or after some bytes.
func (p *oneWayProxy) accept(connection net.Conn) bool {
	lost := p.nextLoss()
	if lost == 1 {
		return false
	}
	request, err := http.ReadRequest(bufio.NewReaderSize(connection, 1))
	if err != nil || request.Method != http.MethodConnect {
		return false
	}
	if _, err := io.WriteString(connection, "HTTP/1.1 200 Connection established\r\n\r\n"); err != nil || lost == 2 {
		return false
	}
	if lost == 3 {
		_, _ = io.CopyN(io.Discard, connection, 100)
		return false
	}
	return true
}

// nextLoss returns when the next connection is lost: 0 is never.
func (p *oneWayProxy) nextLoss() int {
	p.lock.Lock()
	defer p.lock.Unlock()
	if p.random.Float64() >= p.loss {
		return 0
	}
	return 1 + p.random.IntN(3)
}

func (p *oneWayProxy) lose(share float64) {
	p.lock.Lock()
	defer p.lock.Unlock()
	p.loss = share
}

// writes counts the requests that a cluster got, by their path.
type writes struct {
	lock sync.Mutex
	got  map[string]int
}

func (w *writes) serve(response http.ResponseWriter, request *http.Request) {
	w.lock.Lock()
	defer w.lock.Unlock()
	w.got[request.URL.Path]++
	_, _ = io.WriteString(response, "written")
}

func (w *writes) count(path string) int {
	w.lock.Lock()
	defer w.lock.Unlock()
	return w.got[path]
}

// descriptors returns the number of open files and connections of this process.
func descriptors() int {
	open, _ := os.ReadDir("/proc/self/fd")
	return len(open)
}

// A day of cuts behind a proxy that lets only connections out and loses three of ten: the tunnel is back after each one, no request
// reaches the cluster twice, and nothing is left of the sessions.
func TestDayOfCutsBehindAProxy(t *testing.T) {
	g := NewWithT(t)
	const cuts, outage = 30, 48 * time.Minute
	clock := testclock.NewFakeClock(time.Now())
	h, written := startHubWith(t, "one", 1, clock), &writes{got: map[string]int{}}
	proxy := startOneWayProxy(t, h.address())
	proxy.lose(0.3)
	startClientWith(t, "127.0.0.1:1", h.admit(t, florin).Token, startCluster(t, written.serve), func(options *program.ClientOptions) {
		options.Clock = clock
		options.Proxy = func(*http.Request) (*url.URL, error) { return &url.URL{Scheme: "http", Host: proxy.address()}, nil }
	})
	// The time between two handshakes passes at once.
	isOpen := func() bool { clock.Step(time.Second); return h.current() != nil }
	open := func() { g.Eventually(isOpen, patience, "20ms").Should(BeTrue()) }
	open()
	acknowledged := 0
	write := func(path string) {
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		if response, err := h.post(ctx, path, strings.NewReader("content")); err == nil {
			if body, err := io.ReadAll(response.Body); err == nil && response.StatusCode == http.StatusOK && string(body) == "written" {
				acknowledged++
				g.Expect(written.count(path)).To(Equal(1))
			}
			_ = response.Body.Close()
		}
		g.Expect(written.count(path)).To(BeNumerically("<=", 1))
	}
	write("/first")
	goroutines, files := runtime.NumGoroutine(), descriptors()
	for round := range cuts {
		var writing sync.WaitGroup
		writing.Go(func() { write("/cut/" + strconv.Itoa(round)) })
		proxy.lose(1)
		proxy.cut()
		writing.Wait()
		// Until the hub has noticed the cut, it would count the former session as open again.
		g.Eventually(h.current, patience).Should(BeNil())
		clock.Step(outage)
		proxy.lose(0.3)
		open()
		write("/back/" + strconv.Itoa(round))
	}
	g.Expect(acknowledged).To(BeNumerically(">", cuts))
	proxy.lose(0)
	g.Eventually(func() (string, error) { clock.Step(time.Second); return h.get(t, "/last") }, patience).Should(Equal("200 written"))
	g.Eventually(runtime.NumGoroutine, patience).Should(BeNumerically("<=", goroutines))
	g.Eventually(descriptors, patience).Should(BeNumerically("<=", files))
}
