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

// Package mailbox reconciles the mailbox workspace of every SyncTarget: it creates the workspace and its
// default namespace, grants users access to the mailbox, and deletes the workspace with the SyncTarget.
// [New] returns the controller. [Locator] returns the mailbox of a SyncTarget to other packages, and
// [Quota] limits the mailboxes of one inventory workspace. Package syncmanager syncs the objects in mailboxes.
//
// The controller deletes a mailbox only for a SyncTarget that it observes terminating with the hub's finalizer, never because a
// SyncTarget is missing from a cache. If the inventory workspace or its binding is terminating too, it keeps the mailbox: no user
// requested the end of that target's workload.
package mailbox
