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

// Package writes has what all writers of the hub share.
//
// [Expectations] store the hub's own writes until a cache shows them, as the controller of ReplicaSets stores the Pods that it
// has created. Without them, a reconcile between a write and its watch event would write again.
//
// [WorkspaceWriter] writes objects to mailboxes and workload workspaces: each write that upsync, status return and placement
// make is one of its methods. The callers decide which writes to make. The hub never applies to a mailbox: kcp's virtual
// workspace evaluates an apply itself and stores the result as an update.
//
// [DriftBackoff] limits how often the hub repairs an object that another writer keeps changing (rule 4 of the design): at once
// the first times, then at growing intervals, so that two writers never fight at full speed.
package writes
