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

// Package syncmanager decides which pairs of SyncTarget and resource must be synced now, and runs a sync controller for
// each.
//
// A pair runs while its mailbox's configs select the resource, and after that for as long as it may have left something
// on the target. What may have been left must survive a crash, so a pair is recorded in the SyncTarget's
// status.syncedResources before its first write, and the record goes only after a list on that target came back empty.
// A hub that starts after the last config vanished thus still finds what that config had placed.
package syncmanager
