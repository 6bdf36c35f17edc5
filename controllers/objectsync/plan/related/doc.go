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

// Package related knows which objects travel because a primary object, one of a published resource, relates to them.
//
// [Compile] reads what a PublishedResource says about related objects. [Relation.Resolve] tells of one primary which
// objects it wants: names, labels or an owner, and the namespaces that count. It is a function of its arguments.
//
// [Registry] collects what all primaries of one SyncTarget want, from every PublishedResource that relates to something
// (a contributor), and answers for any object whether it is related, and by which relation. What several primaries or
// several contributors want is wanted until the last lets go. Because a wrong "not related" would delete a copy, absence
// means something only when every contributor has been processed for all of its primaries and none of these failed:
// see [Register.IsUnrelated]. Answers are found by name, owner or label, so they do not cost more with more primaries.
//
// The package is pure: it does no I/O and knows no client.
package related
