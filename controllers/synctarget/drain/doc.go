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

// Package drain removes the hub's objects from a target, or releases them, and lists the objects that stay.
//
// [Run] is the entry point: it lists the objects that the hub may own, calls [cleanup.Plan] for each, and executes the
// action. It deletes in the reverse of the order in which the hub creates objects on a target.
//
// All state is on the target, in the marks of the objects, so a drain can be cancelled at any point and started
// again. Only a released object has no mark any more, so the drain reports an object before it releases the
// object.
//
// Package synctarget calls Run when spec.drain is set or a SyncTarget is being deleted. It also starts and
// cancels drains. This package has no goroutine that outlives Run.
package drain
