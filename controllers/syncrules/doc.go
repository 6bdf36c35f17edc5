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

// Package syncrules publishes the hub's sync rules to the users whose objects it syncs. It keeps one SyncRules
// in each mailbox and each workload workspace.
//
// The hub only writes SyncRules. It compares them with its own rules regularly to undo changes by other
// writers, and makes no decisions based on them.
package syncrules
