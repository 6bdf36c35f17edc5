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

// Package waves says in which order resources go to a target when they go as a set: what others need comes first, what
// could refuse others comes last. It matters at a target's first sync, and in reverse when a target is emptied; at all
// other times each object is tried when it changes, and what lacks something is woken when that appears.
package waves
