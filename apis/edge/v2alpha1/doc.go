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

// Package v2alpha1 holds the kinds of the API group edge.kubestellar.io that users and placement engines write:
// SyncTarget registers a cluster in an inventory workspace; SyncerConfig and the older EdgeSyncConfig say, in a
// mailbox workspace, which objects travel between that mailbox and its target.
//
// The kinds are field-compatible with KubeStellar 0.14: its YAML applies as it is. What synchub adds is optional, so
// nothing here may become required, and no limit may refuse what that release accepted and could act upon.
//
// +kubebuilder:object:generate=true
// +groupName=edge.kubestellar.io
package v2alpha1
