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

// Package diff has the command `kubectl synchub diff`: what each cluster would hold after a change, before anybody makes the change.
//
// The hub's own code decides which clusters get an object, and how it looks there. It runs on what the user may read: the workspace
// or mailbox, the inventory, the rules in SyncRules. Each cluster then shows, in a dry run of the hub's write, what its defaults and
// its admission make of the object. Nothing is written anywhere.
//
// A change is a list of items: an object of a mailbox before and after the change, with the rules before and after. So all questions
// of the command are asked in one way; they differ only in how they find the items.
package diff
