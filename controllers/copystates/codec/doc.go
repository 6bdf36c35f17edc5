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

// Package codec encodes how far the copies of placements in one mailbox have come on the cluster of its SyncTarget. Whoever syncs the
// SyncTarget encodes the states, and the hub that decides about rollouts decodes them.
//
// A copy is eight bytes: a keyed hash of its name, UID and mark. The hashes are sorted, in groups of equal states, so that the states of
// 10,000 copies take about 80 KB. A copy that is not among the synced ones is simply not synced yet. The package has no I/O.
package codec
