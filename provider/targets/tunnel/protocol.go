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
	"time"

	"golang.org/x/net/http2"
)

// The handshake is an HTTP/1.1 request with an upgrade, so that it passes ingresses and proxies: GET [PathPrefix] + UID of the
// SyncTarget, with the token as bearer token. After the response 101, the connection carries HTTP/2 with the hub as its client.
const (
	// PathPrefix is the path of handshakes, without the UID.
	PathPrefix = "/v1/tunnels/"
	// UpgradeProtocol is the value of the header Upgrade.
	UpgradeProtocol = "synchub-tunnel"
	// HeaderReplica is the name of the replica that responds to a handshake.
	HeaderReplica = "Synchub-Replica"
	// HeaderReplicas is the number of the hub's replicas. Responses to handshakes and all requests through a tunnel have it.
	HeaderReplicas = "Synchub-Replicas"
	// HeaderConnected lists the replicas with which the client has a session, separated by commas.
	HeaderConnected = "Synchub-Connected"
	// HeaderInstance identifies the process of the client.
	HeaderInstance = "Synchub-Instance"
)

const (
	// pingAfter is how long a connection may be silent before a ping, and pingTimeout how long the response may take. So an
	// end that vanished is noticed after their sum.
	pingAfter   = 10 * time.Second
	pingTimeout = 10 * time.Second
	// writeTimeout closes a connection on which no byte could be written for so long.
	writeTimeout = 20 * time.Second
	// handshakeTimeout bounds the TLS and the HTTP handshake together.
	handshakeTimeout = 10 * time.Second

	// maxStreams is how many requests of the hub a client serves at once.
	maxStreams = 4096
	// streamBuffer and connectionBuffer bound what either end receives before somebody reads it, in bytes. With 200 ms of latency,
	// one response arrives at five times streamBuffer per second.
	streamBuffer     = 1 << 20
	connectionBuffer = 16 << 20
	// maxHeaderBytes bounds the headers of a response through the tunnel, and maxHandshakeBytes those of a handshake.
	maxHeaderBytes    = 64 << 10
	maxHandshakeBytes = 8 << 10
)

// newHTTP2Transport returns the transport that makes HTTP/2 connections from the hub's end of tunnels.
func newHTTP2Transport() (*http2.Transport, error) {
	return http2.ConfigureTransports(&http.Transport{
		MaxResponseHeaderBytes: maxHeaderBytes,
		HTTP2: &http.HTTP2Config{
			// Requests beyond the client's limit wait.
			StrictMaxConcurrentRequests:   true,
			MaxReceiveBufferPerStream:     streamBuffer,
			MaxReceiveBufferPerConnection: connectionBuffer,
			SendPingTimeout:               pingAfter,
			PingTimeout:                   pingTimeout,
			WriteByteTimeout:              writeTimeout,
		},
	})
}

// newHTTP2Server returns the server for the client's end.
func newHTTP2Server() *http2.Server {
	return &http2.Server{
		MaxConcurrentStreams:         maxStreams,
		MaxUploadBufferPerStream:     streamBuffer,
		MaxUploadBufferPerConnection: connectionBuffer,
		ReadIdleTimeout:              pingAfter,
		PingTimeout:                  pingTimeout,
		WriteByteTimeout:             writeTimeout,
	}
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
