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

package sync

import (
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Resource is an API that mailboxes have and targets are given, as its PublishedResource says.
type Resource struct {
	schema.GroupVersionResource
	Kind string
	// Namespaced is false for cluster-scoped resources.
	Namespaced bool
	// StatusSubresource is true if the mailbox serves the status as a subresource.
	StatusSubresource bool
	// StatusReturn is true if the status is brought back to the mailbox.
	StatusReturn bool
	// Orphan is true if objects are to be left on the target, without marks, when their source goes.
	Orphan bool
	// Retain is true if removing an object takes others with it and that is not wanted: namespaces and CRDs.
	Retain bool
}
