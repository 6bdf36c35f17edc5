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

package reflection

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/synchub-dev/synchub/controllers/plan/transform"
)

// OwnerState is what a workspace has for an owner on the cluster.
type OwnerState int

const (
	// OwnerUnrelated: the workspace has nothing, and is not about to get it.
	OwnerUnrelated OwnerState = iota
	// OwnerPresent: the owner is the copy of an object of the workspace, or has a reflection there.
	OwnerPresent
	// OwnerPending: the owner is about to get a reflection.
	OwnerPending
	// OwnerUnknown: a cache does not show yet whether the workspace has something.
	OwnerUnknown
	// OwnerGone: somebody deletes, or has deleted, the object of the workspace whose copy is the owner.
	OwnerGone
)

// ObservedOwner is an owner on the cluster with what the workspace has for it.
type ObservedOwner struct {
	transform.OwnerRecord
	State OwnerState
	// Name and UID are set if the state is OwnerPresent: the object of the workspace.
	NameInWorkspace string
	UIDInWorkspace  types.UID
}

// OwnerReferences returns the ownerReferences of a reflection, and the first state of its owners that is neither OwnerPresent nor
// OwnerUnrelated; else OwnerPresent. No reference blocks the deletion of its owner, because the workspace does not wait for the cluster.
func OwnerReferences(owners []ObservedOwner) (references []metav1.OwnerReference, state OwnerState) {
	state = OwnerPresent
	for _, owner := range owners {
		switch owner.State {
		case OwnerPresent:
			reference := metav1.OwnerReference{APIVersion: owner.APIVersion, Kind: owner.Kind, Name: owner.NameInWorkspace, UID: owner.UIDInWorkspace}
			if owner.Controller {
				reference.Controller = new(true)
			}
			references = append(references, reference)
		case OwnerPending, OwnerUnknown, OwnerGone:
			state = max(state, owner.State)
		case OwnerUnrelated:
		}
	}
	return references, state
}
