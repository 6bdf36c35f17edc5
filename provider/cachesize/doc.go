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

// Package cachesize counts the objects in caches, and estimates their size on the heap in bytes. It never walks a cache: a
// [Counter] wraps the event handler of a cache and counts each change, so that reading the sums costs nothing. Counters can
// have a parent that sums up several caches.
//
// [SizeOf] adds up the sizes that Go uses for the maps, slices and strings of a decoded object. Strings that several
// objects share count for each of them. Memory of the cache around its objects, such as indexes, does not count.
package cachesize
