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

// Package cachesize counts what caches hold: how many objects, and about how many bytes of the heap they take. Caches are
// not walked for that. Each is counted as it changes, by what its handler is told, so that to read the sum costs nothing
// however much there is.
//
// The bytes are an estimate: the sizes that Go gives to the maps, slices and strings of a decoded object. Strings that
// objects share count for each of them, and what a cache needs around its objects, such as indexes, does not count.
package cachesize
