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

// Package inventories is the hub's view of the inventory workspaces: which there are, their SyncTargets, and which labelled
// Secrets they have.
//
// multicluster-provider finds the workspaces by their bindings. Its caches would hold all else whole, too, and whoever may
// create objects in an inventory workspace decides how large they are. So the SyncTargets and Secrets of each endpoint of the
// export are in a cache of this package, which holds no more of an object than the hub reads: of a Secret the metadata, and of a
// SyncTarget what it says to the hub. What is larger than any use of it is held as a name, and [TooLarge] tells. Lists are read in
// pages, of which no more is kept than the cache will hold.
//
// The objects of the cache lack fields that the API server has. Write them by patches, which leave alone what they do not
// name, and never by an update.
//
// How many objects there are is not bounded here: kcp can do that for each workspace, by a ResourceQuota. The metrics tell how
// many there are.
package inventories
