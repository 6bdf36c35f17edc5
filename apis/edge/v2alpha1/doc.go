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

// Package v2alpha1 contains the kinds of the API group edge.kubestellar.io, version v2alpha1. Users, operators and
// placement engines write objects of these kinds.
//
// A SyncTarget, in an inventory workspace, registers a cluster with the hub. A SyncerConfig, or the older
// EdgeSyncConfig, lives in a mailbox workspace. It selects the objects that the hub syncs between this mailbox and
// its target.
//
// The kinds are field-compatible with KubeStellar 0.14: its YAML applies unchanged. All fields that synchub adds are
// optional. No field here may become required, and no validation may refuse an object that KubeStellar 0.14 accepted
// and acted upon.
//
// The package defines types, defaults and names of conditions only. The controllers under controllers/ act on them.
//
// +kubebuilder:object:generate=true
// +groupName=edge.kubestellar.io
package v2alpha1
