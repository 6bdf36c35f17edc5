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

// Package observe computes the facts about an object that follow from both sides and the rules: whether and how the object is
// selected, its place on the other side, and how rules change it. The results are parts of a [plan.Snapshot].
//
// An [Observer] reads both sides through two small interfaces. The hub implements them with its caches, and adds its own state.
// `kubectl synchub explain` implements them with the objects that its user may read. So both run the same code.
package observe
