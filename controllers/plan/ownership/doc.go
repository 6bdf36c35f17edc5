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

// Package ownership decides whether the hub owns an object, which object of the other side it is a copy of, and which of
// its fields the hub owns.
//
// The hub owns an object with the label that the target's watch selects, and a mark (an annotation) whose self names this same
// object on this side. Controllers copy labels and annotations from a Deployment to its ReplicaSets and Pods, and users copy
// objects from one side to the other. Such a copy carries another object's mark, which the hub ignores.
//
// The package is pure.
package ownership
