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
	"errors"
	"net/http"

	"golang.org/x/net/http2"

	"github.com/synchub-dev/synchub/provider/targets/tunnel/protocol"
)

// newHTTP2Transport returns the transport that makes HTTP/2 connections from the hub's end of tunnels.
func newHTTP2Transport() (*http2.Transport, error) {
	return http2.ConfigureTransports(&http.Transport{
		MaxResponseHeaderBytes: protocol.MaxHeaderBytes,
		HTTP2: &http.HTTP2Config{
			// Requests beyond the client's limit wait.
			StrictMaxConcurrentRequests:   true,
			MaxReceiveBufferPerStream:     protocol.StreamBuffer,
			MaxReceiveBufferPerConnection: protocol.ConnectionBuffer,
			SendPingTimeout:               protocol.PingAfter,
			PingTimeout:                   protocol.PingTimeout,
			WriteByteTimeout:              protocol.WriteTimeout,
		},
	})
}

// ClosedError is returned for a request when no tunnel is connected, or when the tunnel was lost before the response.
type ClosedError struct {
	// Lost is true if a tunnel was connected before.
	Lost bool
}

func (e *ClosedError) Error() string {
	if e.Lost {
		return "the tunnel to the cluster is closed; check that the Deployment synchub-tunnel runs there and reaches the hub"
	}
	return "no tunnel to the cluster has been opened yet; apply the manifest of `kubectl synchub register NAME --tunnel -o yaml` to the cluster, and look at the log of its Deployment synchub-tunnel"
}

// Redacted marks the text as free of secrets, see package transport.
func (*ClosedError) Redacted() {}

// IsClosed reports whether a request failed because no tunnel is connected.
func IsClosed(err error) bool {
	_, ok := errors.AsType[*ClosedError](err)
	return ok
}

// IsAwaited reports whether a request failed because no tunnel has been opened yet.
func IsAwaited(err error) bool {
	closed, ok := errors.AsType[*ClosedError](err)
	return ok && !closed.Lost
}
