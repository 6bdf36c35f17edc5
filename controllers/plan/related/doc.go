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

// Package related decides which objects are synced because a primary, an object of a published resource, claims them.
//
// [Compile] compiles the relations of a PublishedResource. [Relation.Resolve] returns the query of one primary: the
// names, labels or owner of the related objects, and their namespaces. It is a pure function.
//
// [Registry] collects the claims of all primaries of one SyncTarget, and reports for each object whether a primary claims it, and
// the relation of the claim. An object stays related until its last claim ends. A wrong "not related" would delete a copy. So an
// object is unrelated only when all primaries of all PublishedResources concerned were processed and none failed: see
// [Registry.IsUnrelated]. Claims are indexed by name, owner and label, so the cost of a look-up does not grow with the number of
// primaries.
//
// The package is pure.
package related
