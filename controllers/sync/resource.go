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

	synchubv1alpha1 "github.com/synchub-dev/synchub/apis/synchub/v1alpha1"
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
	// Native is true if kcp serves the API by itself: it keeps the status of such objects, so the hub leaves it alone.
	Native bool
	// Orphan is true if objects are to be left on the target, without marks, when their source goes.
	Orphan bool
	// Container is true if removing an object takes others with it: namespaces and CRDs.
	Container bool
	// Retain is true if objects of a container are to be kept rather than removed with all they hold.
	Retain bool
	// Replace is true if an object may be deleted and created again when the target refuses to change a field of it.
	Replace bool
	// Adoption says which objects that are there already may be taken over; empty stands for none.
	Adoption synchubv1alpha1.AdoptionPolicy
}

// TargetResource is what objects of a [Resource] are on a target: the same, or what a conversion makes of them.
type TargetResource struct {
	schema.GroupVersionResource
	Kind string
}
