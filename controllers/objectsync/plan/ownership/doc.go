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

// Package ownership tells who owns an object that the hub may have written, from which object of the other side it came,
// and which of its fields are ours.
//
// Two things together make an object ours: the label that the target's watch selects by, and a mark (an annotation)
// whose self names this very object, on the side that the mark was written for. Controllers copy labels and annotations
// from a Deployment to its ReplicaSets and Pods, and users copy objects from one side to the other; such a copy carries
// the mark of another object and therefore counts for nothing.
//
// The package is pure: it does no I/O and knows no client.
package ownership
