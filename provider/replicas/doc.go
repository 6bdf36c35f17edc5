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

// Package replicas keeps track of the replicas of the hub that reach kcp. Each replica announces itself by its own Lease in the
// hosting cluster, as long as kcp answers the replica. A leader without answers from kcp ends when another replica announces
// itself, so that the other one leads. If no replica reaches kcp, nothing changes: kcp itself is down then, and a restart would
// not help.
//
// The Leases have the format of multicluster-runtime's peer registry.
package replicas
