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

// Package placement copies objects of workload workspaces into the mailboxes of the clusters that EdgePlacements select.
//
// A workload workspace is any kcp workspace that binds the workload export. Its placements are compiled and
// resolved (package rules) with the view of all inventories (package fleet). The result is a set of pairs of an
// object and a mailbox. Each workspace has a queue of its own, so that no workspace delays another. One
// reconcile compares one pair with the caches, creates a missing Namespace first, and makes at most one write
// to the mailbox. One SyncerConfig in each mailbox selects all copies. The sync controllers then treat a copy
// like an object that a user created there.
//
// A copy carries a sealed mark with its source. It is withdrawn only for a verified reason. Either the workload
// workspace confirms that the source is absent, or no longer selected, or kcp itself confirms that no Location
// selects the SyncTarget any more. The hub keeps the copies of a workspace or an inventory that is merely not
// visible.
package placement
