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

// Package copystates carries how far copies of placements have come on the clusters, from whoever syncs a SyncTarget to the hub that
// decides about rollouts: from an agent to the hub, and from one replica of the hub to the leader.
//
// Whoever syncs runs a [Writer], which stores the states in a ConfigMap when they change. The leader has a [Store] with the last states
// of each SyncTarget. The hub reads those of an agent from its mailbox, and a [Watcher] those of other replicas from the provider
// workspace. [Reader] asks the sync manager of this process first.
package copystates
