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
	"fmt"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strconv"
	"sync"

	"github.com/go-logr/logr"
	"k8s.io/client-go/rest"
)

const (
	// responseBuffer is the size of the buffer with which a response is copied.
	responseBuffer = 32 << 10
	// watchBuffer is the size for a watch. A watch holds its buffer as long as it is open, and most events are small.
	watchBuffer = 2 << 10
)

// NewProxy returns a handler that forwards requests to the API server of a config, with its credentials, and to nothing else.
func NewProxy(config *rest.Config, log logr.Logger) (http.Handler, error) {
	server, _, err := rest.DefaultServerUrlFor(config)
	if err != nil {
		return nil, fmt.Errorf("cannot use the address of the API server: %w", err)
	}
	transport, err := rest.TransportFor(config)
	if err != nil {
		return nil, fmt.Errorf("cannot connect to the API server: %w", err)
	}
	proxy := httputil.ReverseProxy{
		BufferPool: newBuffers(responseBuffer),
		Rewrite:    func(request *httputil.ProxyRequest) { rewrite(request, server) },
		Transport:  transport,
		// Watches are streams.
		FlushInterval: -1,
		ErrorLog:      discardLog,
		ErrorHandler: func(w http.ResponseWriter, request *http.Request, err error) {
			if request.Context().Err() != nil {
				// The hub does not wait for a response any more.
				return
			}
			log.Error(err, "the API server of this cluster did not respond")
			// The cause has addresses of the cluster, which the hub would show to tenants.
			http.Error(w, "the tunnel is open, but its end in the cluster does not reach the API server", http.StatusBadGateway)
		},
	}
	watchProxy := proxy
	watchProxy.BufferPool = newBuffers(watchBuffer)
	return http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		switch {
		case request.Method == http.MethodConnect:
			http.Error(w, "the tunnel leads to the API server only", http.StatusMethodNotAllowed)
		case isWatch(request):
			watchProxy.ServeHTTP(w, request)
		default:
			proxy.ServeHTTP(w, request)
		}
	}), nil
}

// isWatch reports whether the response of a request is a stream of events.
func isWatch(request *http.Request) bool {
	isWatch, err := strconv.ParseBool(request.URL.Query().Get("watch"))
	return err == nil && isWatch
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

// rewrite sends a request to the API server without credentials of the hub. The transport adds those of the cluster.
func rewrite(request *httputil.ProxyRequest, server *url.URL) {
	request.SetURL(server)
	request.Out.Header.Del("Authorization")
	request.Out.Header.Del("Cookie")
}
