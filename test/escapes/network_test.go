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

package escapes

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/binary"

	"io"
	"net"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/synchub-dev/synchub/test/framework/suite"
)

// frame returns a frame of HTTP/2.
func frame(kind, flags byte, stream uint32, payload string) string {
	header := binary.BigEndian.AppendUint32(nil, uint32(len(payload))<<8|uint32(kind)) //nolint:gosec // it is short
	header = append(header, flags)
	return string(binary.BigEndian.AppendUint32(header, stream)) + payload
}

// Types of HTTP/2 frames, by their numbers in RFC 9113.
const (
	data, headers, settings, ping, goAway, windowUpdate, continuation = 0, 1, 4, 6, 7, 8, 9
	endHeaders, ack                                                   = 4, 1
)

// wires are behaviours of a server on a connection after the TLS handshake; the first breaks the handshake itself.
var wires = map[string]struct {
	http2 bool
	serve func(io.ReadWriter)
}{
	"a handshake without an end":      {false, nil},
	"no word":                         {false, func(io.ReadWriter) {}},
	"a byte now and then":             {false, slowly("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n")},
	"headers without an end":          {false, forever("HTTP/1.1 200 OK\r\n", "X-A: b\r\n")},
	"one header without an end":       {false, forever("HTTP/1.1 200 OK\r\nX-A: ", "b")},
	"a lie of how long it is":         {false, once("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 9223372036854775807\r\n\r\n{}")},
	"two lengths":                     {false, once("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\n{}")},
	"a length below nothing":          {false, once("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: -1\r\n\r\n{}")},
	"chunks without an end":           {false, forever("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n", "1\r\n{\r\n")},
	"long names of chunks":            {false, forever("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n1;", "a")},
	"trailers without an end":         {false, forever("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\nTrailer: X-A\r\n\r\n2\r\n{}\r\n0\r\n", "X-A: b\r\n")},
	"another protocol":                {false, once("HTTP/1.1 101 Switching Protocols\r\nUpgrade: h2c\r\nConnection: Upgrade\r\n\r\n")},
	"gzip in gzip":                    {false, once("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Encoding: gzip, gzip\r\nConnection: close\r\n\r\n" + string(packed(packed([]byte(object+"}}")))))},
	"brotli":                          {false, once("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Encoding: br\r\nConnection: close\r\n\r\n\x0b\x02\x80{}\x03")},
	"a status of nonsense":            {false, once("HTTP/1.1 999999 \x1b[2J" + token + "\r\n\r\n")},
	"an answer that nobody asked for": {false, forever("", "HTTP/1.1 204 No Content\r\n\r\n")},
	"pings":                           {true, forever(frame(settings, 0, 0, ""), frame(ping, 0, 0, "12345678"))},
	"settings":                        {true, forever("", frame(settings, 0, 0, "\x00\x03\x00\x00\x00\x00"))},
	"no streams":                      {true, once(frame(settings, 0, 0, "\x00\x03\x00\x00\x00\x00"))},
	"a window of nothing":             {true, once(frame(settings, 0, 0, "\x00\x04\x00\x00\x00\x00"))},
	"a window beyond all":             {true, forever(frame(settings, 0, 0, ""), frame(windowUpdate, 0, 0, "\x7f\xff\xff\xff"))},
	"it goes away at once":            {true, once(frame(settings, 0, 0, "") + frame(goAway, 0, 0, "\x00\x00\x00\x00\x00\x00\x00\x00"+token))},
	"endless headers":                 {true, forever(frame(settings, 0, 0, "")+frame(headers, 0, 1, "\x88"), frame(continuation, 0, 1, strings.Repeat("\x00\x01a\x7f\x00", 100)))},
	"endless trailers":                {true, forever(frame(settings, 0, 0, "")+frame(headers, endHeaders, 1, "\x88")+frame(data, 0, 1, "{")+frame(headers, 0, 1, ""), frame(continuation, 0, 1, strings.Repeat("\x00\x01a\x7f\x00", 100)))},
	"data of nobody":                  {true, forever(frame(settings, 0, 0, ""), frame(data, 0, 9, "x"))},
	"empty data":                      {true, forever(frame(settings, ack, 0, "")+frame(headers, endHeaders, 1, "\x88"), frame(data, 0, 1, ""))},
	"a frame of 16 MB":                {true, once("\xff\xff\xff\x00\x00\x00\x00\x00\x01")},
}

func once(text string) func(io.ReadWriter) {
	return func(connection io.ReadWriter) { _, _ = io.WriteString(connection, text) }
}

func forever(begin, part string) func(io.ReadWriter) {
	return func(connection io.ReadWriter) {
		_, err := io.WriteString(connection, begin)
		for many := strings.Repeat(part, 1+4096/len(part)); err == nil; {
			_, err = io.WriteString(connection, many)
		}
	}
}

func slowly(begin string) func(io.ReadWriter) {
	return func(connection io.ReadWriter) {
		_, err := io.WriteString(connection, begin)
		ticker := time.NewTicker(100 * time.Millisecond)
		defer ticker.Stop()
		for err == nil {
			<-ticker.C
			_, err = io.WriteString(connection, " ")
		}
	}
}

// Regardless of what the network sends, a request ends at its deadline, takes little memory, and connections do not accumulate.
func TestHostileNetworks(t *testing.T) {
	pair := newCertificate(t)
	for name, test := range wires {
		t.Run(name, func(t *testing.T) {
			var opened, open atomic.Int64
			listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			ctx, stop := context.WithCancel(t.Context())
			defer stop()
			context.AfterFunc(ctx, func() { _ = listener.Close() })
			go func() {
				for {
					accepted, err := listener.Accept()
					if err != nil {
						return
					}
					opened.Add(1)
					open.Add(1)
					context.AfterFunc(ctx, func() { _ = accepted.Close() })
					go func() {
						defer open.Add(-1)
						defer func() { _ = accepted.Close() }()
						hold(accepted, pair.pair, test.http2, test.serve)
					}()
				}
			}()
			server := &httptest.Server{URL: "https://" + listener.Addr().String()}
			connection := connect(t, suite.Kubeconfig(t, server.URL, []byte(pair.authority), token))
			before := allocated()
			for range 3 {
				asking, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
				err = get(asking, connection)
				cancel()
				if err == nil && name != "gzip in gzip" {
					t.Error("it was taken for an answer")
				}
				if err != nil {
					expectHarmless(t, connection.RedactError(err))
				}
			}
			expectHarmless(t, connection.Health.Get().Message)
			if spent := allocated() - before; spent > mostAllocated {
				t.Errorf("it took %d MiB", spent/mib)
			}
			const most = 120
			if count := opened.Load(); count > most || open.Load() > most {
				t.Errorf("%d connections were opened, %d are open", count, open.Load())
			}
		})
	}
}

// hold performs the TLS handshake, reads the client's first bytes, and then runs serve until the client closes the
// connection.
func hold(accepted net.Conn, pair tls.Certificate, http2 bool, serve func(io.ReadWriter)) {
	if serve == nil {
		_, _ = io.Copy(io.Discard, accepted)
		return
	}
	protocol := "http/1.1"
	if http2 {
		protocol = "h2"
	}
	secure := tls.Server(accepted, &tls.Config{Certificates: []tls.Certificate{pair}, NextProtos: []string{protocol}, MinVersion: tls.VersionTLS12})
	read := bufio.NewReader(secure)
	if _, err := read.Peek(1); err != nil {
		return
	}
	go func() { _, _ = io.Copy(io.Discard, read) }()
	serve(secure)
	_, _ = io.Copy(io.Discard, accepted)
}
