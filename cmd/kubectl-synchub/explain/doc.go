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

// Package explain has the command explain: why an object is on a target or is not. [Explain] checks the sync of one object step by step:
// from the SyncTarget, over the PublishedResource and the configs, to the copy on the target.
//
// The package is pure. Callers pass everything they have read as [Facts], with an error for everything they could not
// read. The hub's own code decides how the copy must look. The command "kubectl synchub explain" reads the facts and
// prints the result.
package explain
