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

// Package compatibility tells whether every object that one structural schema, the mailbox's, accepts is accepted and kept
// by another one, the target's. [Compare] names each field where that is not so, or where it cannot be proven: what it does
// not understand is a finding, never a pass.
//
// It judges as API servers do, which prune, default and then validate, so some differences are none: a field that is
// required below and has a default there, a null in a field that may not be null, which is dropped. What cannot be proven
// by looking at one keyword, such as patterns, rules and alternatives, must be the same on both sides.
package compatibility
