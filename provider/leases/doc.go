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

// Package leases lets a leader election take a Lease over quickly without many requests. In client-go's election, every
// replica sends a request in each retry period: the leader renews the Lease, and the other replicas read it. A short period
// therefore costs requests all the time, and a long one delays every takeover.
//
// Elections with a [Lock] of this package have a short retry period. The Lock sends only the necessary requests: the leader's
// renewal once in the renew period, and no read while a [Watcher] shows that another replica holds the Lease.
package leases
