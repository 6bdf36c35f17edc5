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

// Package apiexport reconciles the mailbox APIExport with the PublishedResources: resource schemas and
// permission claims. The workload APIExport gets the same entries, so that users can place the kinds that
// mailboxes accept. From the same plan it sets the resources that the mailbox caches watch and the resources
// that the sync manager syncs. It also writes the conditions Exported and Ready, and the counts, into the
// status of each PublishedResource.
//
// [New] returns the controller, which has one request for the whole export. The planner computes one
// plan over all PublishedResources and only reads. The controller executes the plan. An invalid
// PublishedResource does not affect other ones: mailboxes keep its API, and the hub does not sync its objects
// until it is fixed.
//
// The controller never removes an entry from the mailbox export: the hub could no longer observe the objects of
// that API in any mailbox. Entries that other writers added stay too. Package apiresourceschema creates the
// schemas.
//
// The workload export is a mirror of the mailbox export, except for the kinds of the group edge.kubestellar.io,
// which differ. An entry that a user removes from the mailbox export is removed from the workload export at
// once. Conditions, discovery and retries of claims concern mailboxes: users accept the claims of workload
// workspaces themselves. If kcp refuses an API in the workload export only, mailboxes still have it, and the
// condition NotPlaceable reports the refusal.
package apiexport
