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

// Package syncerconfig writes the status of the SyncerConfigs and EdgeSyncConfigs in mailboxes: the numbers of selected,
// synced and failed objects, and the first failures by name. The status also lists the entries that cannot work, with the
// reason, and the entries that another rule overrides.
//
// [New] returns the controller. The sync manager calls its Changed method for a mailbox. The
// controller then writes the status of all configs of that mailbox together, with a few seconds between two
// writes. [NextStatus] is the pure part: it computes a status from an [ObservedConfig]. The package makes no
// decisions about sync; packages selection and objectsync do.
package syncerconfig
