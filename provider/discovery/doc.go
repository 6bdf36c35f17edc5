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

// Package discovery reads the schema of an API from a cluster as a CustomResourceDefinition. That is the cluster's own
// CRD or, for a built-in kind or one of an aggregated server, a CRD made from discovery and the OpenAPI v3 document.
//
// Discovery alone is not enough: a kind that the cluster lists but does not describe is refused. A CRD that the hub may
// not read counts as absent, because the OpenAPI document has the same schema; only the printer columns are lost, and a
// note says so.
package discovery
