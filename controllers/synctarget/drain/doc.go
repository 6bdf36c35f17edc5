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

// Package drain brings a target to the end of what the hub did there: what the hub owns is removed, or let go, and
// what stays is listed.
//
// All state is on the target, in the marks of the objects, so a departure can be ended at any point and begun again. Only
// what was let go leaves no trace there; so it is reported before it is let go.
//
// [Plan] decides about one object and does no I/O. [Run] lists, asks it, and acts, in the reverse of the order in which
// things went to the target.
package drain
