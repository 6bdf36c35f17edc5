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

// Package bootstrap sets up the provider workspace: the two exports with the schemas of our own kinds, the workspace type
// of mailboxes, the rights of the hub's user, and the key of the hashes in marks. It is what `synchub init` runs.
//
// It is idempotent, and it adds to what others put there but takes nothing away: the hub itself adds the published
// resources to the mailbox export later.
package bootstrap
