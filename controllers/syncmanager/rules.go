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

package syncmanager

import (
	"maps"
	"sync/atomic"

	synchubv1alpha1 "github.com/synchub-dev/synchub/apis/synchub/v1alpha1"
	"github.com/synchub-dev/synchub/controllers/plan/mutation"
	"github.com/synchub-dev/synchub/controllers/plan/policy"
)

// rules are the fields of a SyncTarget that its sync controllers read for each object.
type rules struct {
	// cordoned is true if the hub must not create objects on the target.
	cordoned atomic.Bool
	// held is true if the SyncTarget was held, because kcp went back, when it was last reconciled.
	held atomic.Bool
	// adoption is the [synchubv1alpha1.AdoptionPolicy] of the SyncTarget.
	adoption atomic.Value
	// mutationInput contains the fields of the SyncTarget that mutations read.
	mutationInput atomic.Pointer[mutationInput]
	// namespaces decides which namespaces of the target the hub may use.
	namespaces atomic.Pointer[policy.NamespacePolicy]
}

// mutationInput contains the fields of a SyncTarget that mutations read, and the labels and annotations that
// they were made from.
type mutationInput struct {
	labels, annotations map[string]string
	value               map[string]any
}

// setMutationInput stores the fields of the SyncTarget that mutations read, and reports whether they changed.
func (r *rules) setMutationInput(target Target) (changed bool) {
	before := r.mutationInput.Load()
	if before != nil && maps.Equal(before.labels, target.Labels) && maps.Equal(before.annotations, target.Annotations) {
		return false
	}
	r.mutationInput.Store(&mutationInput{target.Labels, target.Annotations, mutation.SyncTarget(target.Name, target.Labels, target.Annotations)})
	return before != nil
}

// setNamespaces sets which namespaces of the target the hub may use, and reports whether they changed.
func (r *rules) setNamespaces(target Target, protected policy.NamespacePatterns) (changed bool) {
	next := &policy.NamespacePolicy{Protected: protected}
	if bounds := target.Namespaces; bounds != nil {
		next.Only, next.Allowed = bounds.Only, policy.NamespacePatterns(bounds.AllowProtected)
	}
	before := r.namespaces.Swap(next)
	return before != nil && !before.Equal(next)
}

func (r *rules) adoptionPolicy() synchubv1alpha1.AdoptionPolicy {
	return r.adoption.Load().(synchubv1alpha1.AdoptionPolicy)
}
