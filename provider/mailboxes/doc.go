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

// Package mailboxes caches the objects of all mailbox workspaces.
//
// The virtual workspace of the mailbox export has one endpoint for each kcp shard. Endpoints come and go; there may be none.
// For each endpoint and resource the package keeps one wildcard list and watch, independent of the number of mailboxes. One
// handler reads the logical cluster of each object and looks up that mailbox's subscribers, so the cost of an event does not
// grow with the fleet. [Mailboxes.SetResources] follows the published resources.
//
// An object that a cache lacks need not be deleted: a rejected claim, a removed binding, an emptied endpoint list and a
// restarted kcp look the same. A look-up therefore returns Present, Absent or Unknown. An Absent object is a candidate for
// [Absences.VerifyAbsence], which package absence decides. A mailbox that two endpoints show is Unknown until only one does.
//
// An endpoint that does not answer concerns its own mailboxes only: their objects stay cached, and no absence is
// verified there. The same holds for a resource that is not served yet.
//
// A [CachePolicy] decides how much of an object is cached: everything if a config selects the object, else its metadata, and
// only its identity beyond the limits of the mailbox. The cache replaces the object in place, so that a watch event and a
// change of configs cannot overtake each other. A review of the mailbox fetches objects that become needed. An object that is
// cached in part is still Present.
//
// All mailboxes together stay within a memory limit. While they want more, none gets more than a fair share, so the largest
// are cut first. The fair share is computed every few seconds, not for each event. A mailbox whose identities alone take too
// much memory is evicted: none of its objects is cached, and all of them are Unknown.
//
// A replica that syncs only some SyncTargets needs the objects of their mailboxes only ([Options].Owns). The objects of all
// other mailboxes are dropped before they are decoded, and Unknown. A mailbox that is acquired is listed by itself, and its
// objects are backfilled into the watch; many acquired mailboxes are listed by one list of all mailboxes.
//
// Trade-off: a look-up checks the few endpoints in turn, instead of a map that would have to follow every binding.
package mailboxes
