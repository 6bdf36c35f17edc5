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

// Package objectsync keeps one resource of one mailbox in sync with one target.
//
// A [Controller] owns one key space, the names of the mailbox's objects, and everything that concerns a key (going down,
// drift, status coming back, pruning) is decided by one reconcile, so no two loops can fight over an object. It reads
// from caches only; what it has just written is remembered until the caches show it ([expectations]), so that a slow watch
// never causes a second write.
//
// What to do is decided by the pure packages below this one; this package looks, asks them, and acts:
//
//	selection  which objects are selected, and how
//	transform  what the target must hold for one of them
//	ownership  whose an object is, by its marks
//	decide     what to do about the difference
package objectsync
