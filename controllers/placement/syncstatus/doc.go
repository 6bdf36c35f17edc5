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

// Package syncstatus carries the sync status of the copies of placements from each replica of the hub to the
// leader, which decides about rollouts.
//
// Each replica runs a [Writer], which stores the states in a ConfigMap of the provider workspace when they
// change. The leader has a [Store] with the last states of each SyncTarget that another replica syncs, and a
// [Watcher] that reads them. [Reader] returns the state from this process's sync manager, if that has it, and
// else from the Store.
package syncstatus
