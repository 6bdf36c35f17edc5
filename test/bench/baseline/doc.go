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

// Package baseline is the syncer that the hub is compared with: the minimum that does the same work. It lists and watches
// mailboxes through the same virtual workspace, and targets by a label, as the hub does. On request it writes
// objects with the same server-side applies and status patches, with the same concurrency. It has no configs, marks,
// conflicts or retries, and makes no decisions.
//
// It runs as a separate process, so that its CPU time can be measured separately. [Start] starts the process, and [Serve]
// is its main loop.
package baseline
