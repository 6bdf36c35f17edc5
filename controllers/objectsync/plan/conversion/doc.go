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

// Package conversion says what an object is called on the other side, where a config gives it another group, version,
// kind or name on the target than in the mailbox.
//
// Each [Conversion] is one-to-one: what goes down under a name comes up as what it was. Where only one side says
// something, both sides have it, and what neither says stays as it is. Namespaces never change.
//
// The package is pure: it knows names, not objects. What else of an object depends on its name is for package transform.
package conversion
