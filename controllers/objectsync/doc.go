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

// Package objectsync keeps one published resource of one mailbox in sync with one target, in both directions.
//
// A [Controller] owns the names of the mailbox objects of its resource. One pass per name (a key) decides about everything:
// downsync, drift, status return, upsync and deletion. Two loops can therefore never fight over an object. A pass goes one
// direction: the observer reads the caches into a [plan.Snapshot], a [plan.Planner] decides, the executor makes the requests, and
// the reporter records the outcome. The caches lag behind the hub's own writes, so [mailboxView] and [targetView] return each
// write until the cache contains it.
//
// The decisions are in the pure packages below plan: selection (which objects, and how), transform (the desired object),
// ownership (which hub owns an object, by its mark), related (objects that are synced with a primary), and plan itself (the
// action for each difference).
package objectsync
