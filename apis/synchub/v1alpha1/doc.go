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

// Package v1alpha1 holds the kinds of the API group synchub.dev, which the operators of a hub write. PublishedResource,
// in the hosting cluster, decides which APIs mailbox workspaces have and how objects change on their way.
//
// A field that decides what the objects in mailboxes and on targets are called in the API is immutable: changing it in
// place would turn every object that was synced into one whose source is gone. Delete the PublishedResource, which
// keeps the data, and create another.
//
// +kubebuilder:object:generate=true
// +groupName=synchub.dev
package v1alpha1
