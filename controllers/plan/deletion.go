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

package plan

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// PropagationOf returns the propagation policy of an object that is being deleted, or was deleted. An API server keeps the policy
// as a finalizer until the garbage collector has acted on it. The object in the last event has that finalizer too.
func PropagationOf(deleted *unstructured.Unstructured) metav1.DeletionPropagation {
	switch finalizers := deleted.GetFinalizers(); {
	case slices.Contains(finalizers, metav1.FinalizerOrphanDependents):
		return metav1.DeletePropagationOrphan
	case slices.Contains(finalizers, metav1.FinalizerDeleteDependents):
		return metav1.DeletePropagationForeground
	default:
		return metav1.DeletePropagationBackground
	}
}

// propagation returns the propagation policy for a copy's deletion: the source's policy if the copy is from the deleted object,
// and not from a predecessor of the same name.
func (d *DownSnapshot) propagation(existing Copy) metav1.DeletionPropagation {
	if d.Deletion != nil && d.State != Deselected && existing.Observed.Mark.Source.UID == d.Deletion.UID {
		return d.Deletion.Propagation
	}
	return metav1.DeletePropagationBackground
}
