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

// Package compatibility decides whether the target's schema accepts and keeps every object that the mailbox's schema accepts.
// [Compare] returns a finding for each field where the target may refuse or change an object, and for each field where
// Compare cannot decide that. A keyword that Compare does not understand is a finding, never a pass. The controller
// schemacheck calls Compare for each resource of each target.
//
// The comparison follows API servers, which prune, then default, then validate. Therefore some differences are no
// findings: a field that is required on the target and has a default there, or a null in a field that is not
// nullable, which servers drop. Patterns, rules and alternatives cannot be proven keyword by keyword, so they must be
// equal on both sides.
package compatibility
