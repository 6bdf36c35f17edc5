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

// Package mutation changes objects between the two sides, by the steps of a v1alpha1.Mutation, which run one after the other.
//
// A step reads the object as changed by the steps before it, the object on the other side, and the SyncTarget. All values of one
// step are computed before any of them is written, so a path to several fields computes each from the same object. A null result
// removes the field, or the item of a list; missing parents are then not created. A regex step takes only text, and a template
// step returns only text: no other value is converted. Labels and annotations must be text after each step.
//
// The package is pure: the result depends only on the steps, the two objects and the SyncTarget. Errors can quote values of the
// object, so they must not be shown to users who may not read the object.
package mutation
