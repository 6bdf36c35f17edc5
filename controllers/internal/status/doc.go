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

// Package status writes what users read: conditions, the status of objects, and events. Controllers call [SetConditionIf] for a
// condition that is either True or absent, and [Patch] for the status of an object that several controllers share. [PatchObject]
// is the same for metadata and spec. Every patch contains the resourceVersion, and a conflict requests a requeue.
//
// [RecordEvent] and [RecordConditionEvent] record events on PublishedResources in the hosting cluster with client-go's recorder.
// The recorder would need one broadcaster per workspace, with goroutines and a cache. Events in workspaces are therefore plain
// objects. [WarnSyncTarget] and [RecordSyncTarget] write each event once, whichever replica leads. All messages are cut by [Truncate].
//
// A [Journal] logs what the hub did to objects, and which objects fail. The hub may remove thousands of objects in a moment, so it
// gathers the objects of a moment into one line, with their number and the first names.
package status
