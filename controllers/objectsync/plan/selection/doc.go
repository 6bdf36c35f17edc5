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

// Package selection compiles the SyncerConfigs and EdgeSyncConfigs of one mailbox into one immutable [Matcher], which
// says of any object, in the mailbox or on the target, whether it is selected to go to the other side, and how.
//
// All configs together are a union: no config takes away what another gives. Where they disagree on what an object is
// called on the other side, the oldest config decides. The matcher answers by look-up where names are given and by a walk
// over the wildcard rules of the object's resource otherwise, so its cost does not depend on how many objects are selected.
//
// The package is pure: it does no I/O and knows no client.
package selection
