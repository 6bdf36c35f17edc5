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
// A workload workspace is any kcp workspace that binds the workload export. Its placements are compiled and resolved (package
// rules) against the view of all inventories (package fleet). The result is a set of pairs of an object and a mailbox. Each
// workspace has a queue of its own, so that no workspace delays another. One reconcile compares one pair with the caches, and
// makes at most one write to the mailbox, and creates a missing Namespace first. From there on the sync controllers treat the copy as
// if a user had put it there: one SyncerConfig in each mailbox selects all copies.
//
// A copy carries a sealed mark with its source. It is withdrawn only for a verified reason: the absence of its source, or of its
// selection, is verified in the workload workspace, or kcp itself shows that no Location selects the SyncTarget any more. A
// workspace or an inventory that is merely not visible keeps its copies.
package placement
