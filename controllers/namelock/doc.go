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

// Package namelock frees names of APIs that kcp keeps in a mailbox.
//
// kcp notes in an annotation of each LogicalCluster whether a name belongs to an APIBinding or to a CustomResourceDefinition. An
// API whose name belongs to a definition is not bound, and the name stays with the definition after that is gone. kcp itself
// takes it back only if the note has an expiry that has passed and the definition is not there: so that is what a [Clearer]
// writes. Whether the definition is gone is still for kcp to decide.
//
// Where no name is kept kcp tries to bind again by itself, after up to a quarter of an hour, or at once when the APIBinding
// changes: so an annotation is put on that.
//
// Both are done with the hub's own rights in the workspace, which it has since it made that. A definition is never deleted,
// since its objects would go with it.
package namelock
