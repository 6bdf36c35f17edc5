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

// Package syncerconfig tells in the status of SyncerConfigs and EdgeSyncConfigs what became of what they select: how many
// objects are selected, in sync and failing, the first failures by name, which entries cannot work and why, and where
// something else decided than the entry that selects an object.
//
// A mailbox's configs are reported together, at most once in a few seconds however much changes.
package syncerconfig
