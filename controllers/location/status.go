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

package location

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	k8slabels "k8s.io/apimachinery/pkg/labels"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/controllers/location/selection"
	"github.com/synchub-dev/synchub/provider/inventories"
)

// Reasons of the condition Ready of a Location.
const (
	ReasonReady = "Ready"
	// ReasonTooLarge: the Location is larger than the hub reads.
	ReasonTooLarge = "TooLarge"
	// ReasonInvalidSelector: spec.instanceSelector is not a valid label selector.
	ReasonInvalidSelector = "InvalidSelector"
)

// UnusableReason returns the reason and the message why a Location of the inventory cache selects nothing; both are empty
// if the hub can use it.
func UnusableReason(location *edgev2alpha1.Location) (reason, message string) {
	if large := inventories.TooLarge(location); large != "" {
		return ReasonTooLarge, fmt.Sprintf("The hub does not read the Location, since %s. It selects no SyncTargets; shorten it.", large)
	}
	if _, err := selection.Selector(&location.Spec); err != nil {
		return ReasonInvalidSelector, fmt.Sprintf("The Location selects no SyncTargets: %v. Correct the selector.", err)
	}
	return "", ""
}

// applyStatus sets the status of a Location: its instances among the SyncTargets of its workspace, and the condition Ready.
// A Location that is unusable has no instances.
func applyStatus(location *edgev2alpha1.Location, syncTargets []edgev2alpha1.SyncTarget, now metav1.Time) {
	ready := metav1.Condition{
		Type: edgev2alpha1.ConditionReady, Status: metav1.ConditionTrue, Reason: ReasonReady, Message: "The hub uses the Location.",
		ObservedGeneration: location.Generation, LastTransitionTime: now,
	}
	selector := k8slabels.Nothing()
	if reason, message := UnusableReason(location); reason != "" {
		ready.Status, ready.Reason, ready.Message = metav1.ConditionFalse, reason, message
	} else if valid, err := selection.Selector(&location.Spec); err == nil {
		selector = valid
	}
	meta.SetStatusCondition(&location.Status.Conditions, ready)
	instances, available := countInstances(selector, syncTargets)
	location.Status.Instances, location.Status.AvailableInstances = &instances, &available
}

// countInstances returns how many SyncTargets a selector selects, and how many of these are available. A SyncTarget that is
// terminating, or too large for its labels to be known, does not count.
func countInstances(selector k8slabels.Selector, syncTargets []edgev2alpha1.SyncTarget) (instances, available int32) {
	for i := range syncTargets {
		syncTarget := &syncTargets[i]
		if syncTarget.DeletionTimestamp != nil || inventories.TooLarge(syncTarget) != "" || !selector.Matches(k8slabels.Set(syncTarget.Labels)) {
			continue
		}
		instances++
		if selection.IsAvailable(syncTarget) {
			available++
		}
	}
	return instances, available
}
