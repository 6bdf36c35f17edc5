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

// Package apiresourceschema makes, for every PublishedResource that is not a claim, the APIResourceSchema in the provider
// workspace by which mailboxes get its API. Schemas are immutable and named by their content: a changed one is a new one,
// and none is ever removed.
//
// The definition behind a schema comes from the hosting cluster, from the target of a SyncTarget or from a ConfigMap. What
// tells of a change is watched; built-in kinds change unannounced, so clusters are asked again every few minutes. A
// definition that cannot be read takes nothing away: the schema that mailboxes have stays, and the condition SchemaReady
// says why it may be out of date.
package apiresourceschema
