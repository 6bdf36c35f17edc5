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

// Package protocol contains the headers and limits that both ends of a tunnel share.
package protocol

import (
	"strconv"
	"time"
)

// The handshake is an HTTP/1.1 request with an upgrade, so that it passes ingresses and proxies: GET [PathPrefix] + UID of the
// SyncTarget, with the token as bearer token. After the response 101, the connection carries HTTP/2 with the hub as its client.
const (
	// PathPrefix is the path of handshakes, without the UID.
	PathPrefix = "/v1/tunnels/"
	// Upgrade is the value of the header Upgrade.
	Upgrade = "synchub-tunnel"
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
	// PingAfter is how long a connection may be silent before a ping, and PingTimeout how long the response may take. So a lost
	// end is detected after the sum of both.
	PingAfter   = 10 * time.Second
	PingTimeout = 10 * time.Second
	// WriteTimeout closes a connection on which no byte could be written for this time.
	WriteTimeout = 20 * time.Second
	// HandshakeTimeout bounds the TLS and the HTTP handshake together.
	HandshakeTimeout = 10 * time.Second

	// MaxStreams is how many requests of the hub a client serves at once.
	MaxStreams = 4096
	// StreamBuffer and ConnectionBuffer bound the unread bytes that either end buffers. With 200 ms of latency,
	// one response arrives at five times StreamBuffer per second. The hub decodes few large responses at a time, while the rest wait
	// with full buffers: together they must not fill the buffer of the connection, or the first ones would wait for the rest.
	StreamBuffer     = 256 << 10
	ConnectionBuffer = 64 << 20
	// MaxHeaderBytes bounds the headers of a request or response through the tunnel, and MaxHandshakeBytes the headers of a
	// handshake.
	MaxHeaderBytes    = 64 << 10
	MaxHandshakeBytes = 8 << 10

	// maxReplicas bounds the sessions of one client.
	maxReplicas = 64
)

// Replicas returns the number of replicas in a header; zero if it has none.
func Replicas(header string) int {
	count, err := strconv.Atoi(header)
	if err != nil || count < 0 {
		return 0
	}
	return min(count, maxReplicas)
}
