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

// Package discovery reads which APIs a server serves and how they are defined. [Client] sends all requests for API groups,
// versions, resources, OpenAPI documents and CRDs, to targets, kcp and the hosting cluster. Only a RESTMapper of client-go or
// controller-runtime does so elsewhere.
//
// [Client.CRDFor] returns the cluster's own CRD. For a built-in kind or one of an aggregated server, it builds a CRD from
// discovery and the OpenAPI v3 documents. A kind that the cluster lists but does not describe is refused. A CRD that the hub
// may not read counts as absent: the OpenAPI document has the same schema, without the printer columns. An annotation of the
// CRD contains a note about that.
package discovery
