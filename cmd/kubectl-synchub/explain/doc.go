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

// Package explain tells why an object is on a target or is not: step by step, from the SyncTarget over what selects the object to
// what the target holds.
//
// It is pure: all that was read is given to it, with the reason where something could not be read. What the hub makes of an
// object is decided by the hub's own code.
package explain
