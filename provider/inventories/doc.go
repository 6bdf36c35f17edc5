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

// Package inventories caches the inventory workspaces, their SyncTargets and Locations, and the metadata of their
// labelled Secrets.
//
// multicluster-provider finds the workspaces by their APIBindings. Its own caches would hold every object whole, and the
// users of an inventory workspace decide how large their objects are. So this package caches the objects itself, and
// keeps only the fields that the hub reads: of a Secret its metadata, of a SyncTarget or a Location the labels and the
// fields that are addressed to the hub. An object that is larger than any sensible one is cached as a name, and [TooLarge]
// reports it. Lists are read in pages, which are trimmed as they arrive.
//
// The cached objects lack fields that the API server has. Write them by patches, which leave other fields alone, and
// never by an update.
//
// The package does not bound the number of objects: a ResourceQuota of kcp can do that for each workspace. Metrics
// report the numbers.
package inventories
