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

// Package absence verifies that objects which the cache of a mailbox lacks were deleted.
//
// A rejected claim, a removed binding, a partial list and an emptied list of endpoints look like deletions to a watch. Before the
// hub deletes a copy, the [Verifier] must therefore verify the absence. The verifier takes all candidates of a mailbox together
// in one pass: it reads the APIBinding and the LogicalCluster, and compares the candidates with the cache or with a new list.
// Many candidates at once must pass twice.
//
// The verifier deletes nothing. It keeps each verified candidate until [Verifier.TakeVerified] takes it, or until
// [Verifier.Clear] drops it because the object is visible again.
package absence
