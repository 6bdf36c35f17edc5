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

// Package apiresourceschema creates the APIResourceSchema in the provider workspace for every PublishedResource
// that is not a permission claim. Package apiexport then adds the schema to the mailbox export. Schemas are
// immutable and named by their content: a changed CRD causes a new schema, and the controller never deletes
// one.
//
// [New] returns the controller. It reads the CRD from the hosting cluster, from the target of a
// SyncTarget, or from a ConfigMap. It watches CRDs, ConfigMaps and targets. Built-in kinds change without an
// event, so the controller also reads the source every few minutes. If the CRD cannot be read, mailboxes keep
// their schema, and the condition SchemaReady reports why the schema may be outdated. For PublishedResources
// with spec.installCRD, it also passes the CRD on to be installed on targets.
//
// If SyncTargets are sharded among replicas, the controller runs on all of them. A replica that is not the
// leader only finds the CRDs to install. It uses its own connection to a SyncTarget that a CRD is read from.
package apiresourceschema
