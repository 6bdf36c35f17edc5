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

// Package storehistory detects that the store of kcp went back to an earlier state, as after a restore from a backup.
//
// An object that was made after the backup looks deleted then, and an object that was changed since looks changed. A hub that
// acts on this removes objects from clusters, or overwrites them with older content. The resourceVersions that the hub has
// observed are the only trace of the lost history: no later read may return older ones. Three places hold them: the caches of
// a running hub, the Lease of the hub in the hosting cluster, and the marks on the clusters.
//
// A reader that finds such a contradiction calls [Guard.Report]. From then on [Guard.Holds] is true for every SyncTarget that
// existed at that time, until an operator confirms the restore for it. docs/design/0033-restored-kcp.md has the reasons and
// the limits.
package storehistory
