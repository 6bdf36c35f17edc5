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

// Package mutation changes objects on their way, by the steps of a v1alpha1.Mutation that run one after the other.
//
// A step sees the object as the steps before it left it, and the object on the other side as it is, and the SyncTarget. All values of one
// step are computed before any of them is written, so that a path to several fields gives each the same view. A null
// result removes the field, or the item of a list; parents that were missing are then not created. Text is all that a
// regex step takes and a template step yields: nothing is turned into text or back on the way. Labels and annotations
// must come out as text.
//
// The package is pure: the result depends on the steps, the two objects and the SyncTarget only. The text of an error can quote values
// of the object, so that it must not be shown to who may not read it.
package mutation
