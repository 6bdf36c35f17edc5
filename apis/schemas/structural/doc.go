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

// Package structural makes structural schemas, the kind that a CustomResourceDefinition or an APIResourceSchema must
// have. [Schema] converts the OpenAPI document of a cluster, for kinds that have no definition. [Sanitize] takes out of
// a schema what kcp would refuse it for, such as rules that are too expensive. Both say in [Note]s what they left out.
//
// The rule behind every choice is that a mailbox must accept what the cluster accepts, and keep it as it is. Where an
// OpenAPI document is stricter than its server, or says less than it means, the schema is the wider one: what it lets
// through the target still judges. For the types of a server written in Go that means:
//   - required says only that the server always writes the field. A missing one becomes the zero value, which may be
//     fine (endpoints of an EndpointSlice), so only the keys of lists stay required.
//   - default is what the server fills in itself. Only the keys of lists keep theirs, without which their items could
//     not be told apart.
//   - an enum gets the empty string, which for such a server is an absent value.
//   - null is the zero value, also in a list and as the value of a map. (As the value of a field it needs no saying: such
//     nulls are always dropped.)
//   - a quantity may be a number too: cpu: 0.5.
//   - base64 may contain line breaks, which the format byte does not know.
//   - status is what controllers report, and is taken as it comes: no enums, no unique keys.
//
// An OpenAPI document of a kind that has a definition, read where the definition itself cannot be, repeats its schema,
// and is kept to the letter. It is told by its having no references to other types.
//
// One thing is refused that a server lets pass with a warning: an item twice in a list whose items have keys, such as an
// environment variable. The list would have to become atomic for it, and whoever applies such an object, as the hub does
// on targets, is refused by the server too.
package structural
