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

// Package tunnel carries requests of the hub to clusters that the hub cannot dial.
//
// The cluster runs a client of package program. It dials a [Server] of the hub over TLS, and proves by a token which SyncTarget
// it is for. Then the roles are reversed: the client serves HTTP/2 on it, the hub sends requests, and the client forwards each
// one to the API server of its own cluster, with the credentials of its ServiceAccount. So the hub holds no credential of the
// cluster, and the cluster gets no access to kcp.
//
// In the hub, [Server.Transport] is an [http.RoundTripper] beneath a connection of package targets. To the hub, the client is a
// target like any other: nothing that it sends is trusted, and everything is bounded.
//
// One client has a session with each replica of the hub, so that a standby can take over without a new connection. The hub
// reports the number of its replicas in [protocol.HeaderReplicas], and the client dials until it has a session with each.
package tunnel
