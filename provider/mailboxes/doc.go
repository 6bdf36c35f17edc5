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

// Package mailboxes is the hub's view of all mailbox workspaces at once.
//
// The mailbox export's virtual workspace has one endpoint per kcp shard; there may be none, and they come and go. Per
// endpoint and resource there is one wildcard list and watch, whatever the number of mailboxes, and one handler, which
// reads the logical cluster off each object and hands the event to that mailbox's subscribers by a look-up: the cost of
// an event does not grow with the fleet. Resources come and go too, as they are published ([Mailboxes.SetResources]).
//
// What a cache does not hold is not thereby gone: a rejected claim, a removed binding, an emptied endpoint list and a
// restarted kcp all look like deletions. So a look-up answers Present, Absent or Unknown, and Absent is only a
// suspicion until [Mailboxes.VerifyAbsence] has proven it. A mailbox that two endpoints show is Unknown until one lets it go.
//
// An endpoint that does not answer concerns its own mailboxes only: they stay as they were last seen, nothing is proven
// of them, and the others go on. The same holds for a resource that is not served (yet).
//
// How much is held of an object is for a [CachePolicy] to say: all of it if a config of its mailbox selects it, else its metadata,
// and beyond the limits of its mailbox only which object it is. What is held of an object is swapped in place, so that a
// watch's event and a change of configs cannot overtake each other. What becomes needed is fetched by a review of the
// mailbox. An object of which little is held is Present all the same: nothing is concluded from it.
//
// All mailboxes together take no more than a total. While they want more, none is held more of than a fair share, so that the
// largest are cut first; it is set every few seconds, not for each event. A mailbox of which even the identities are too much is
// closed: nothing of it is held, and all of it is Unknown.
//
// Trade-off: the endpoints are found anew for each look-up among the few there are instead of being kept in a map that
// would have to follow every binding.
package mailboxes
