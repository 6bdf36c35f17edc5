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

// Package bootstrap prepares the provider workspace for a hub. It creates the three exports with the schemas of our own
// kinds, and the workspace type of mailboxes. It also creates the RBAC of the hub's user, and the key of the hashes in
// marks. `synchub init` calls [Run]. The hub calls [ReadIdentity] at its start.
//
// Run is idempotent. It adds to existing objects and removes nothing: the hub itself later adds the published resources to
// the mailbox export and to the workload export.
package bootstrap
