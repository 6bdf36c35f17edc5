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

	"github.com/go-logr/logr"
	"k8s.io/client-go/rest"
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
	proxy := &httputil.ReverseProxy{
		Rewrite:   func(request *httputil.ProxyRequest) { rewrite(request, server) },
		Transport: transport,
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
	return http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		if request.Method == http.MethodConnect {
			http.Error(w, "the tunnel leads to the API server only", http.StatusMethodNotAllowed)
			return
		}
		proxy.ServeHTTP(w, request)
	}), nil
}

// rewrite sends a request to the API server without credentials of the hub. The transport adds those of the cluster.
func rewrite(request *httputil.ProxyRequest, server *url.URL) {
	request.SetURL(server)
	request.Out.Header.Del("Authorization")
	request.Out.Header.Del("Cookie")
}
