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

// Package schemacheck finds out, for each target, whether mailbox objects fit into the APIs that the target serves.
//
// A [Checker], shared by all targets, compares the schema that mailboxes have with that of the target. It caches the result by both
// contents, so a fleet of equal clusters is compared once. A [Controller] does so for one target, one resource at a time.
// It compares a resource that is newly desired, whose published schema changed, or whose CRD on the target changed. It compares all
// when the target comes up or has a new connection. For changes without an event it also compares periodically. Objects and their
// events cost nothing here.
//
// The package compares only schemas that the hub publishes. A kind that kcp serves itself is the same Go type on both sides, and its
// validation is in no schema. The hub cannot read the schemas of other exports. Package syncmanager runs the Controllers, and acts on
// their [State]s.
package schemacheck
