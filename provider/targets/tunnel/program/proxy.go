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
	"io"
	stdlog "log"
	"log/slog"
	"net/http"
	"net/http/httputil"
	"strings"
	"sync"

	"github.com/synchub-dev/synchub/provider/targets/tunnel/protocol"
)

const (
	// responseBuffer is the size of the buffer with which a response is copied.
	responseBuffer = 32 << 10
	// watchBuffer is the size for a watch. A watch keeps its buffer as long as it is open, and most events are small.
	watchBuffer = 2 << 10
	// unreachable is the response if the API server does not respond. It does not contain the cause: that has addresses of the
	// cluster, and the hub shows the response to tenants.
	unreachable = "the tunnel is open, but its end in the cluster does not reach the API server"
)

var discardLog = stdlog.New(io.Discard, "", 0)

// newProxy returns a handler that forwards requests only to the API server, with the cluster's credentials.
func newProxy(apiServer *APIServer, log *slog.Logger) http.Handler {
	proxy := httputil.ReverseProxy{
		BufferPool: newBuffers(responseBuffer),
		Rewrite:    apiServer.rewrite,
		Transport:  apiServer.transport(),
		ErrorLog:   discardLog,
		ErrorHandler: func(w http.ResponseWriter, request *http.Request, err error) {
			if request.Context().Err() != nil {
				// The hub does not wait for a response any more.
				return
			}
			log.Error("the API server of this cluster did not respond", "error", err)
			http.Error(w, unreachable, http.StatusBadGateway)
		},
	}
	watchProxy := proxy
	watchProxy.BufferPool = newBuffers(watchBuffer)
	return http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		switch {
		case request.Method == http.MethodConnect:
			http.Error(w, "this tunnel only accepts requests to the API server", http.StatusMethodNotAllowed)
		case strings.Contains(request.URL.RawQuery, "watch="):
			watchProxy.ServeHTTP(w, request)
		default:
			proxy.ServeHTTP(w, request)
		}
	})
}

// rewrite sends a request to the API server, with the cluster's credentials in place of the hub's.
func (a *APIServer) rewrite(request *httputil.ProxyRequest) {
	request.SetURL(a.url)
	if request.Out.Body != nil {
		// ReverseProxy gives the transport a body whose Close does nothing. If an API server responds before it has read the body, the
		// transport would wait for the rest of it, which the hub does not send after an error.
		request.Out.Body = request.In.Body
	}
	request.Out.Header.Del("Cookie")
	request.Out.Header.Del("Authorization")
	request.Out.Header.Del(protocol.HeaderReplicas)
	if token, err := a.token.get(); err == nil {
		request.Out.Header.Set("Authorization", "Bearer "+token)
	}
}

// buffers is a pool of buffers of one size.
type buffers struct{ sync.Pool }

func newBuffers(size int) *buffers {
	return &buffers{sync.Pool{New: func() any { buffer := make([]byte, size); return &buffer }}}
}

// Get implements [httputil.BufferPool].
func (b *buffers) Get() []byte { return *b.Pool.Get().(*[]byte) }

// Put implements [httputil.BufferPool].
func (b *buffers) Put(buffer []byte) { b.Pool.Put(&buffer) }
