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

// Package structural produces structural schemas, which CustomResourceDefinitions and APIResourceSchemas must have.
// [Schema] converts the OpenAPI document of a cluster, for kinds that have no CRD. [Sanitize] removes the parts of a
// schema that make kcp refuse it, such as too expensive rules. Both report removed parts as [Note]s.
// [CheckDefinition], [CheckSchema] and [CheckJSON] refuse input that would take too long to process.
//
// A mailbox must accept every object that the cluster accepts, and keep it unchanged. Where an OpenAPI document is stricter
// than its server, or describes less than the server accepts, the resulting schema is the wider one. The target still
// validates every object that such a schema lets through. For Go types of a server this means:
//   - required only means that the server always writes the field. A missing field becomes the zero value, which
//     may be valid (endpoints of an EndpointSlice). Only the keys of lists stay required.
//   - default is set by the server itself. Only the keys of lists keep their defaults, because list items without
//     keys could not be distinguished.
//   - an enum gets the empty string, which is an absent value for such a server.
//   - null is the zero value, also in a list and as the value of a map. The schema does not allow it for values of
//     fields, because servers always drop such nulls.
//   - a quantity may also be a number: cpu: 0.5.
//   - base64 may contain line breaks, which the format byte does not allow.
//   - status is reported by controllers and accepted without restriction: no enums, no unique keys.
//
// Sometimes the hub can only read the OpenAPI document of a kind, although a CRD defines the kind. The document then repeats
// the schema of the CRD, and Schema keeps it unchanged. Schema recognises such a document because it has no references to
// other types.
//
// One input that servers accept with a warning is refused: an item that occurs twice in a list whose items have keys,
// such as an environment variable. To accept it the list would have to be atomic. The server refuses such an object
// too when a client applies it, as the hub does on targets.
package structural
