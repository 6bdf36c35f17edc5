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

// Package conversion computes the name of an object on the other side, where a config gives it another group, version,
// kind or name on the target than in the mailbox.
//
// Each [Conversion] is one-to-one: an object that is downsynced under another name is upsynced under its own. A part that only
// one side of a conversion names is the same on both sides. A part that neither side names does not change. Namespaces never
// change.
//
// The package is pure and knows names only. Package transform changes the fields that depend on the name.
package conversion
