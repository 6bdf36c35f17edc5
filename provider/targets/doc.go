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
// A [Registry] keeps one [Connection] for each SyncTarget. A [Cache] of the connection holds the hub's own objects, and a
// [FilteredCache] whole objects to upsync. Every write carries the UID of its object as a
// precondition: it changes that object or nothing. [Watches.Subscribe] and [NameWatch] report events that may end a failure:
// of namespaces, CustomResourceDefinitions, and names that become free.
//
// Credentials: package kubeconfig decides which kubeconfigs are accepted. A changed kubeconfig leads to a second connection,
// which replaces the first once the target has answered it. A connection never dials [kubeconfig.DeniedNetworks], and can
// renew its own [kubeconfig.Token].
//
// Isolation: each connection has its own dialer, HTTP client and rate limit. client-go would share one transport, and so
// one pool and one HTTP/2 connection, among all targets with equal TLS settings, and would use the proxy of the
// environment.
//
// Health: while a target is down, only the probe loop of its connection runs. Lists wait in [HealthMonitor.WaitUntilUp] instead
// of failing, and writers check [HealthMonitor.IsUp] first. A dead target therefore costs one small request every few seconds,
// and one event resumes its work. Lists of an API that the target does not serve, or forbids to the hub, wait in the same
// way; [Availability] contains the reason. The caches keep their objects during that time.
//
// The caches are part of this package because connection and caches need each other. A cache waits for the health of the
// connection and for a watch of CustomResourceDefinitions, which is an informer itself. The size of all caches of a target,
// and an invalid list, quarantine its connection.
//
// Trade-off: a target that answers probes and fails every write keeps its sync controllers retrying, with a backoff for
// each object. The probe gets only the version, because that needs no permissions.
package targets
