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

// Package watch has the predicates, handlers and sources of controllers that watch the SyncTargets and Locations of inventory
// workspaces. The hub writes a heartbeat into the status of each SyncTarget once a minute, and [IgnoreHeartbeats] keeps these
// updates from causing reconciles. [PlacementChanges] is for controllers that only place objects. A controller that reconciles
// whole workspaces uses [EnqueueInventory] and [Engagement], with the request that [InventoryRequest] returns.
package watch
