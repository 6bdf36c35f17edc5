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

// Package v1alpha1 contains the kinds of the API group synchub.dev, version v1alpha1, which the operators of a hub write. A
// PublishedResource, in the hosting cluster, gives every mailbox workspace one API, and defines how the hub changes the
// objects of this API between mailbox and target.
//
// Every field that decides the group, kind, resource or API source of objects in mailboxes or on targets is
// immutable. A change in place would make the hub take every synced object for an object whose original is deleted.
// To change such a field, delete the PublishedResource, which keeps the data, and create another.
//
// The package defines types and names of conditions only. The controllers under controllers/ act on them.
//
// +kubebuilder:object:generate=true
// +groupName=synchub.dev
package v1alpha1
