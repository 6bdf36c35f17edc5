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

// Package schemacheck checks, for each target, whether mailbox objects fit into the APIs that the target
// serves.
//
// All targets share a [Checker], which compares the schema of mailboxes with the target's schema. It caches the
// result by both contents, so a fleet of equal clusters is compared once. A [Controller] compares the resources
// of one target, one at a time. It compares a resource that is newly desired, whose published schema changed,
// or whose CRD on the target changed. It compares all resources when the target comes up or has a new
// connection. For changes without an event it also compares periodically. Objects and their events cause no
// comparison.
//
// The package compares only schemas that the hub publishes. A kind that kcp serves itself is the same Go type
// on both sides, and its validation is in no schema. The hub cannot read the schemas of other exports. Package
// syncmanager runs the Controllers, and acts on their [State]s.
package schemacheck
