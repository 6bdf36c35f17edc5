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

package faults

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"github.com/synchub-dev/synchub/provider/targets/tunnel/protocol"
)

// reopenAfter is the time between two tunnels of a hostile cluster.
const reopenAfter = time.Second

// Hostilities are what a hostile cluster does to requests of the hub, once the hub has taken its tunnel.
var Hostilities = map[string]func(*Attack){
	"endless bodies": func(a *Attack) {
		for a.request.Context().Err() == nil {
			_, _ = a.Write(bytes.Repeat([]byte(`{"items":[`), 6<<10))
		}
	},
	"no responses": func(a *Attack) { <-a.request.Context().Done() },
	"anything": func(a *Attack) {
		a.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(a, `{"kind":"Nonsense","apiVersion":"v0","metadata":{"resourceVersion":"`+strings.Repeat("9", 1000)+`"},"items":[null,7,{}]}`)
	},
	"wrong frames": func(a *Attack) { _, _ = a.raw.Write(bytes.Repeat([]byte{0xff}, 1<<16)) },
	"10,000 streams": func(a *Attack) {
		var block bytes.Buffer
		_ = hpack.NewEncoder(&block).WriteField(hpack.HeaderField{Name: ":method", Value: "GET"})
		framer := http2.NewFramer(a.raw, nil)
		for stream := uint32(2); stream < 20_000; stream += 2 {
			if framer.WritePushPromise(http2.PushPromiseParam{StreamID: 1, PromiseID: stream, BlockFragment: block.Bytes(), EndHeaders: true}) != nil {
				return
			}
		}
	},
	"no reading": func(a *Attack) { a.raw.stopped.Store(true); <-a.request.Context().Done() },
}

// Attack is one request of the hub, to which the cluster is hostile.
type Attack struct {
	http.ResponseWriter
	request *http.Request
	raw     *rawConn
}

// rawConn is a connection that can stop to read.
type rawConn struct {
	net.Conn
	stopped atomic.Bool
	end     <-chan struct{}
}

func (c *rawConn) Read(p []byte) (int, error) {
	if c.stopped.Load() {
		<-c.end
		return 0, net.ErrClosed
	}
	return c.Conn.Read(p)
}

// HostileTunnel is the hostile end of tunnels in a cluster. It has the right token, and shows the hub the identity of a cluster.
type HostileTunnel struct {
	hub, syncTarget, token string
	authorities            *x509.CertPool
	attack                 func(*Attack)
	attacks                atomic.Int64
	cancel                 context.CancelFunc
	running                sync.WaitGroup
}

// OpenHostileTunnel opens a tunnel to the hub, and another one whenever it ends, until [HostileTunnel.Close].
func OpenHostileTunnel(ctx context.Context, hub string, authority []byte, syncTarget, token string, attack func(*Attack)) (*HostileTunnel, error) {
	address, err := url.Parse(hub)
	if err != nil {
		return nil, fmt.Errorf("read the URL of the hub: %w", err)
	}
	h := &HostileTunnel{hub: address.Host, syncTarget: syncTarget, token: token, authorities: x509.NewCertPool(), attack: attack}
	if !h.authorities.AppendCertsFromPEM(authority) {
		return nil, errors.New("the hub has no certificate authority")
	}
	ctx, h.cancel = context.WithCancel(context.WithoutCancel(ctx))
	h.running.Go(func() {
		for ctx.Err() == nil {
			h.open(ctx)
			select {
			case <-ctx.Done():
			case <-time.After(reopenAfter):
			}
		}
	})
	return h, nil
}

// Attacks returns how many requests of the hub were attacked.
func (h *HostileTunnel) Attacks() int64 { return h.attacks.Load() }

// Close ends the tunnel, and returns when nothing runs any more.
func (h *HostileTunnel) Close() {
	h.cancel()
	h.running.Wait()
}

// open serves one tunnel until it ends.
func (h *HostileTunnel) open(ctx context.Context) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	dialer := tls.Dialer{Config: &tls.Config{RootCAs: h.authorities, MinVersion: tls.VersionTLS13, NextProtos: []string{"http/1.1"}}}
	dialed, err := dialer.DialContext(ctx, "tcp", h.hub)
	if err != nil {
		return
	}
	context.AfterFunc(ctx, func() { _ = dialed.Close() })
	_, _ = fmt.Fprintf(dialed, "GET %s%s HTTP/1.1\r\nHost: hub\r\nConnection: Upgrade\r\nUpgrade: %s\r\nAuthorization: Bearer %s\r\n%s: hostile\r\n\r\n",
		protocol.PathPrefix, h.syncTarget, protocol.Upgrade, h.token, protocol.HeaderInstance)
	// The hub sends nothing more before it has got settings, except its own preface: a byte at a time leaves that alone.
	response, err := http.ReadResponse(bufio.NewReaderSize(oneByOne{dialed}, 16), nil)
	if err != nil {
		return
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusSwitchingProtocols {
		return
	}
	raw := &rawConn{Conn: dialed, end: ctx.Done()}
	(&http2.Server{}).ServeConn(raw, &http2.ServeConnOpts{Context: ctx, Handler: http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		if strings.HasPrefix(request.URL.Path, "/api/v1/namespaces/kube-system") {
			w.Header().Set("Content-Type", "application/json")
			_, _ = fmt.Fprintf(w, `{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1","metadata":{"name":"kube-system","uid":"hostile-%s"}}`, h.syncTarget)
			return
		}
		h.attacks.Add(1)
		h.attack(&Attack{ResponseWriter: w, request: request, raw: raw})
	})})
}

// oneByOne reads one byte at a time, so that a reader takes nothing that follows what it wants.
type oneByOne struct{ io.Reader }

func (r oneByOne) Read(p []byte) (int, error) { return r.Reader.Read(p[:1]) }
