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

package program

import (
	"crypto/tls"
	"io"
	stdlog "log"
	"log/slog"
	"net"
	"net/http"
	"net/http/httputil"

	"golang.org/x/net/http2"

	"github.com/synchub-dev/synchub/provider/targets/tunnel/protocol"
)

// maxIdleHTTP1 is how many unused connections with HTTP/1.1 stay open.
const maxIdleHTTP1 = 25

// pipe is one end of a connection within the process.
type pipe struct{ net.Conn }

// NetConn implements netConn.
func (p pipe) NetConn() net.Conn { return p.Conn }

// bridgeToHTTP1 returns a connection with HTTP/2 to a server that has HTTP/1.1 only, which is an option of API servers. Such requests
// cost a goroutine and a connection each.
func bridgeToHTTP1(config *tls.Config, log *slog.Logger) netConn {
	near, far := net.Pipe()
	transport := &http.Transport{
		TLSClientConfig: config, TLSHandshakeTimeout: protocol.HandshakeTimeout, MaxIdleConnsPerHost: maxIdleHTTP1, IdleConnTimeout: idleTimeout,
		MaxResponseHeaderBytes: protocol.MaxHeaderBytes, DisableCompression: true, Protocols: new(http.Protocols),
	}
	transport.Protocols.SetHTTP1(true)
	quiet := stdlog.New(io.Discard, "", 0)
	proxy := &httputil.ReverseProxy{
		Rewrite: func(request *httputil.ProxyRequest) {
			request.Out.URL.Scheme, request.Out.URL.Host, request.Out.Host = "https", request.In.Host, request.In.Host
		},
		Transport: transport,
		// Watches are streams.
		FlushInterval: -1,
		ErrorLog:      quiet,
		ErrorHandler: func(w http.ResponseWriter, request *http.Request, err error) {
			if request.Context().Err() == nil {
				log.Error("the API server of this cluster did not respond", "error", err)
				http.Error(w, unreachable, http.StatusBadGateway)
			}
		},
	}
	go func() {
		defer transport.CloseIdleConnections()
		server := &http2.Server{MaxConcurrentStreams: protocol.MaxStreams}
		server.ServeConn(far, &http2.ServeConnOpts{Handler: proxy, BaseConfig: &http.Server{ErrorLog: quiet, ReadHeaderTimeout: protocol.HandshakeTimeout}})
	}()
	return pipe{near}
}
