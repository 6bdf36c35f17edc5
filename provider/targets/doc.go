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

// Package targets holds the hub's connections to target clusters.
//
// Usage: a [Registry] keeps one [Connection] per SyncTarget. A connection is made from a kubeconfig, which [ParseKubeconfig]
// treats as data: nothing in it is ever executed, opened or followed. Through a connection run [Cache]s of what the hub
// owns, [FilteredCache]s of whole objects that go up, and writes, each of them fenced so that it cannot touch an object other than
// the one that was decided about. What failed is woken by events: [Connection.Subscribe] tells of namespaces and
// definitions, a [NameWatch] of names that somebody else has taken.
//
// Credentials: a changed kubeconfig makes another connection, which takes over once the target has answered it. A
// connection does not lead into [DeniedNetworks] that are denied, whatever name leads there, and can renew its own [Token].
//
// Isolation: a connection has its own dialer, HTTP client and rate limit. client-go would otherwise share one transport,
// and so one pool and one HTTP/2 connection, among all targets with equal TLS settings, and follow the environment's proxy.
//
// Health: one probe loop per connection is the only thing that runs while a target is away. Lists wait inside
// [Connection.WaitUntilUp] instead of failing and retrying, and writers look at [Connection.IsUp] first, so a dead target costs
// one small request every few seconds and is resumed by one event. In the same way the list of a resource that the target
// does not serve, or does not let the hub read, waits for a cure; its [Availability] says so. What is held stays held.
//
// Trade-off: a target that answers the probe but fails every write keeps its sync controllers retrying, each object with
// its own back-off. The probe asks for the version only, since that needs no rights.
package targets
