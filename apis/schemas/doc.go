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

// Package schemas holds the schemas of the project's own kinds in the two forms that servers take them:
// CustomResourceDefinitions for clusters, and APIResourceSchemas for kcp. Both are generated from the Go types by
// "go run ./hack/generate" and embedded here. For other kinds, Project makes of a CustomResourceDefinition the one that
// mailboxes have, and FromCRD turns any definition into an APIResourceSchema.
package schemas
