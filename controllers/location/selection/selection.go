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

// Package selection decides which SyncTargets a Location selects, and which workspaces may use it. It is pure.
package selection

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	k8slabels "k8s.io/apimachinery/pkg/labels"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
)

// childrenSuffix ends a path in spec.availableTo that names all children of a workspace.
const childrenSuffix = ":*"

// Selector returns the compiled selector of a Location's instances. An absent or empty instanceSelector selects
// all SyncTargets. It returns an error for an invalid instanceSelector; the Location then selects nothing.
func Selector(spec *edgev2alpha1.LocationSpec) (k8slabels.Selector, error) {
	if spec.InstanceSelector == nil {
		return k8slabels.Everything(), nil
	}
	selector, err := metav1.LabelSelectorAsSelector(spec.InstanceSelector)
	if err != nil {
		return k8slabels.Nothing(), fmt.Errorf("spec.instanceSelector is invalid: %w", err)
	}
	return selector, nil
}

// Selects reports whether a Location selects a SyncTarget with these labels. See [Selector] for the error. To match
// many SyncTargets, call Selector once.
func Selects(spec *edgev2alpha1.LocationSpec, labels map[string]string) (bool, error) {
	selector, err := Selector(spec)
	return err == nil && selector.Matches(k8slabels.Set(labels)), err
}

// IsAvailable reports whether a SyncTarget is Ready and may get new objects.
func IsAvailable(syncTarget *edgev2alpha1.SyncTarget) bool {
	return syncTarget.DeletionTimestamp == nil && !IsUnschedulable(&syncTarget.Spec) && !syncTarget.Spec.Suspend &&
		meta.IsStatusConditionTrue(syncTarget.Status.Conditions, edgev2alpha1.ConditionReady)
}

// IsUnschedulable reports whether an operator requests no new objects on a SyncTarget.
func IsUnschedulable(spec *edgev2alpha1.SyncTargetSpec) bool { return spec.Unschedulable || spec.Drain }

// IsAvailableTo reports whether spec.availableTo of a Location names a workspace, given by its path. The caller
// must have verified that the path belongs to the workspace. For an empty path it returns false. The Location's
// own workspace needs no entry, which the caller checks.
func IsAvailableTo(availableTo *edgev2alpha1.AvailableTo, workspacePath string) bool {
	return workspacePath != "" && slices.ContainsFunc(availableTo.Workspaces, func(entry string) bool {
		parent, isPattern := strings.CutSuffix(entry, childrenSuffix)
		if !isPattern {
			return entry == workspacePath
		}
		child, isBelow := strings.CutPrefix(workspacePath, parent+":")
		return parent != "" && isBelow && child != "" && !strings.Contains(child, ":")
	})
}
