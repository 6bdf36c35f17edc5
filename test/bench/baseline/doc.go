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

// Package baseline is what the hub is compared with: the least that does the same work. It lists and watches the mailboxes
// through the same virtual workspace and the targets by a label, as the hub does, and writes what it is told to by the same
// server-side applies and status patches, with as many requests in flight. It knows no configs, no marks, no conflicts and
// no failures, and decides nothing.
//
// It is a process of its own, so that its processor time can be told from the rest; [Start] starts it and [Serve] is what
// it does.
package baseline
