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

// Package schemacheck finds out, for each target, whether objects of mailboxes fit into what the target serves.
//
// A [Checker], shared by all targets, compares the schema that mailboxes have with that of the target and remembers the
// answer by both contents: a fleet of equal clusters is compared once. A [Controller] does so for one target, one resource at a
// time: when a resource is wanted, when its published schema changed, when the target tells of its definition, comes back or
// is connected anew, and once in a while for what changes without a sign. No object and no event costs anything.
//
// What mailboxes do not have from the hub is not compared. A kind that kcp serves by itself is the same Go type on both
// sides, whose validation is in no schema; and the schema of another export is not for the hub to read.
package schemacheck
