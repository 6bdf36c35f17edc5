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

// Package selection compiles the SyncerConfigs and EdgeSyncConfigs of one mailbox into an immutable [Matcher], which reports for
// each object of the mailbox or the target whether and how it is selected.
//
// The configs form a union: no config deselects an object that another config selects. If they disagree about the name of an
// object on the other side, the oldest config decides. The matcher looks up names, and scans only the wildcard rules of the
// object's resource, so its cost does not depend on the number of selected objects.
//
// The package is pure.
package selection
