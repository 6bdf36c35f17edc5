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
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"runtime"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"github.com/synchub-dev/synchub/provider/targets/tunnel/protocol"
)

// hostileEnd is the cluster's end of a tunnel, which may send any frame.
type hostileEnd struct {
	*http2.Framer
	conn *tls.Conn
}

// openHostile opens a tunnel by hand, and reads the preface and the settings of the hub.
func openHostile(t *testing.T, h *hub) *hostileEnd {
	t.Helper()
	g := NewWithT(t)
	conn, response, err := handshake(t, h, florin, h.admit(t, florin).Token)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(response).To(HavePrefix("HTTP/1.1 101"))
	preface := make([]byte, len(http2.ClientPreface))
	_, err = conn.Read(preface)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(string(preface)).To(Equal(http2.ClientPreface))
	end := &hostileEnd{Framer: http2.NewFramer(conn, conn), conn: conn}
	g.Expect(end.WriteSettings()).To(Succeed())
	g.Eventually(func() bool { return h.current() != nil }, patience).Should(BeTrue())
	return end
}

// request makes the hub send a GET, and returns its stream and the result.
func (e *hostileEnd) request(t *testing.T, h *hub) (stream uint32, result <-chan error) {
	t.Helper()
	done := make(chan error, 1)
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		t.Cleanup(cancel)
		request, _ := http.NewRequestWithContext(ctx, http.MethodGet, "https://cluster.tunnel/x", nil)
		response, err := h.Transport(florin).RoundTrip(request)
		if err == nil {
			t.Cleanup(func() { _ = response.Body.Close() })
		}
		done <- err
	}()
	for {
		frame, err := e.ReadFrame()
		if err != nil {
			t.Fatal(err)
		}
		if headers, ok := frame.(*http2.HeadersFrame); ok {
			return headers.StreamID, done
		}
	}
}

func (e *hostileEnd) respond(t *testing.T, stream uint32) {
	t.Helper()
	var block writerBuffer
	encoder := hpack.NewEncoder(&block)
	_ = encoder.WriteField(hpack.HeaderField{Name: ":status", Value: "200"})
	if err := e.WriteHeaders(http2.HeadersFrameParam{StreamID: stream, BlockFragment: block, EndHeaders: true}); err != nil {
		t.Fatal(err)
	}
}

type writerBuffer []byte

func (b *writerBuffer) Write(p []byte) (int, error) { *b = append(*b, p...); return len(p), nil }

// expectClosed waits until the hub has closed the tunnel.
func (e *hostileEnd) expectClosed(t *testing.T, h *hub) {
	t.Helper()
	NewWithT(t).Eventually(func() bool { return h.current() == nil }, patience).Should(BeTrue())
}

// An end that ignores flow control is cut off before the hub holds more than its bound.
func TestEndThatIgnoresFlowControl(t *testing.T) {
	h := startHub(t, "one", 1)
	end := openHostile(t, h)
	stream, result := end.request(t, h)
	end.respond(t, stream)
	if err := <-result; err != nil {
		t.Fatal(err)
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	chunk := make([]byte, 16<<10)
	sent := 0
	for ; sent < 64<<20; sent += len(chunk) {
		if end.WriteData(stream, false, chunk) != nil {
			break
		}
	}
	end.expectClosed(t, h)
	runtime.ReadMemStats(&after)
	if after.HeapAlloc > before.HeapAlloc+protocol.ConnectionBuffer {
		t.Errorf("the hub uses %d bytes of heap, before %d", after.HeapAlloc, before.HeapAlloc)
	}
}

// An end cannot open streams by itself.
func TestEndThatOpensStreams(t *testing.T) {
	h := startHub(t, "one", 1)
	end := openHostile(t, h)
	for stream := uint32(2); stream < 20_000; stream += 2 {
		var block writerBuffer
		_ = hpack.NewEncoder(&block).WriteField(hpack.HeaderField{Name: ":method", Value: "GET"})
		if end.WritePushPromise(http2.PushPromiseParam{StreamID: 1, PromiseID: stream, BlockFragment: block, EndHeaders: true}) != nil {
			break
		}
	}
	end.expectClosed(t, h)
}

// Headers without an end are cut off.
func TestEndThatSendsEndlessHeaders(t *testing.T) {
	h := startHub(t, "one", 1)
	end := openHostile(t, h)
	stream, result := end.request(t, h)
	var block writerBuffer
	encoder := hpack.NewEncoder(&block)
	_ = encoder.WriteField(hpack.HeaderField{Name: ":status", Value: "200"})
	_ = end.WriteHeaders(http2.HeadersFrameParam{StreamID: stream, BlockFragment: block})
	for count := range 100_000 {
		block = nil
		_ = encoder.WriteField(hpack.HeaderField{Name: fmt.Sprintf("x-%d", count), Value: string(make([]byte, 1000))})
		if end.WriteContinuation(stream, false, block) != nil {
			break
		}
	}
	if err := <-result; err == nil {
		t.Error("the hub took the response")
	}
}

// If an end allows no requests, they fail by their own deadline, and do not delay other requests of the hub.
func TestEndThatAllowsNoStreams(t *testing.T) {
	g := NewWithT(t)
	h := startHub(t, "one", 1)
	end := openHostile(t, h)
	g.Expect(end.WriteSettings(http2.Setting{ID: http2.SettingMaxConcurrentStreams, Val: 0})).To(Succeed())
	g.Eventually(func() int { return int(h.current().conn.State().MaxConcurrentStreams) }, patience).Should(BeZero())
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://cluster.tunnel/x", nil)
	g.Expect(err).NotTo(HaveOccurred())
	response, err := h.Transport(florin).RoundTrip(request)
	if err == nil {
		_ = response.Body.Close()
	}
	g.Expect(err).To(MatchError(context.DeadlineExceeded))
}

// Unauthenticated connections are bounded, by address too, and time out.
func TestConnectionsWithoutAHandshake(t *testing.T) {
	g := NewWithT(t)
	h, c := startHub(t, "one", 1), startCluster(t, echo)
	var open []net.Conn
	for range maxPendingPerAddress + 50 {
		conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", h.address())
		g.Expect(err).NotTo(HaveOccurred())
		open = append(open, conn)
		t.Cleanup(func() { _ = conn.Close() })
	}
	isClosed := func(conn net.Conn) bool {
		_ = conn.SetReadDeadline(time.Now().Add(10 * time.Millisecond))
		_, err := conn.Read(make([]byte, 1))
		timeout, ok := err.(net.Error) //nolint:errorlint // as it comes from the connection
		return err != nil && (!ok || !timeout.Timeout())
	}
	g.Eventually(func() (closed int) {
		for _, conn := range open {
			if isClosed(conn) {
				closed++
			}
		}
		return closed
	}, patience).Should(BeNumerically(">=", 50))
	// All of them end after the timeout for handshakes, and a client connects then.
	startClient(t, h.address(), h.admit(t, florin).Token, c)
	g.Eventually(func() (string, error) { return h.get(t, "/version") }, patience).Should(HavePrefix("200"))
	g.Eventually(func() int { h.pending.lock.Lock(); defer h.pending.lock.Unlock(); return len(h.pending.addresses) }, patience).Should(BeZero())
}

// A client that connects repeatedly is rate limited.
func TestHandshakesAreLimited(t *testing.T) {
	h := startHub(t, "one", 1)
	token := h.admit(t, florin).Token
	results := map[string]int{}
	for range 3 * handshakeBurst {
		_, response, _ := handshake(t, h, florin, token)
		results[response[len("HTTP/1.1 "):len("HTTP/1.1 ")+3]]++
	}
	if results["429"] == 0 || results["101"] == 0 {
		t.Errorf("got %v", results)
	}
}
