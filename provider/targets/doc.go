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

// Package targets connects the hub to target clusters.
//
// A [Registry] keeps one [Connection] for each SyncTarget. Package kubeconfig says which kubeconfigs are
// accepted. A connection offers three things. A [Cache] holds the hub's own objects. A
// [FilteredCache] holds whole objects to upsync. Writes are fenced, so that each can only change the object that was
// decided about. [Connection.Subscribe] and [NameWatch] report the events that end a failure: namespaces, CRDs, and
// names that become free.
//
// Credentials: a changed kubeconfig leads to a second connection, which replaces the first once the target has answered
// it. A connection never dials [kubeconfig.DeniedNetworks], whatever name resolves to them, and can renew its own [kubeconfig.Token].
//
// Isolation: each connection has its own dialer, HTTP client and rate limit. client-go would share one transport, and so
// one pool and one HTTP/2 connection, among all targets with equal TLS settings, and would use the proxy of the
// environment.
//
// Health: while a target is away, only the probe loop of its connection runs. Lists wait inside [Connection.WaitUntilUp]
// instead of failing and retrying, and writers check [Connection.IsUp] first. A dead target therefore costs one small
// request every few seconds, and one event resumes its work. Lists of an API that the target does not serve, or does not
// let the hub read, wait in the same way; [Availability] says why. The caches keep their content meanwhile.
//
// Trade-off: a target that answers probes and fails every write keeps its sync controllers retrying, with a backoff for
// each object. The probe asks only for the version, because that needs no permissions.
package targets
