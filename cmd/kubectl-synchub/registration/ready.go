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

package registration

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
)

// ReadyConditions are the conditions that Ready depends on, in the order in which they become true.
var ReadyConditions = []string{
	edgev2alpha1.ConditionMailboxReady, edgev2alpha1.ConditionHeartbeatHealthy,
	edgev2alpha1.ConditionSyncerAuthorized, edgev2alpha1.ConditionSyncerReady,
}

// ErrReplaced is returned if the SyncTarget was deleted and another one with its name was created.
var ErrReplaced = errors.New("the SyncTarget was replaced by another one")

// WatchSyncTarget calls done with each state of a SyncTarget, or with nil after its deletion, until done returns true or
// ctx ends. It returns the last state. The error may be [ErrReplaced].
func WatchSyncTarget(ctx context.Context, inventory client.WithWatch, syncTarget *edgev2alpha1.SyncTarget, done func(*edgev2alpha1.SyncTarget) bool) (*edgev2alpha1.SyncTarget, error) {
	last := syncTarget
	err := WatchObject(ctx, inventory, syncTarget, func(current *edgev2alpha1.SyncTarget) (bool, error) {
		if current != nil && current.UID != syncTarget.UID {
			return false, ErrReplaced
		}
		last = current
		return done(current), nil
	})
	return last, err
}

// ReadySteps returns a text for each of [ReadyConditions] that is true.
func ReadySteps(syncTarget *edgev2alpha1.SyncTarget) (steps []string) {
	for _, step := range ReadyConditions {
		if condition := meta.FindStatusCondition(syncTarget.Status.Conditions, step); condition != nil && condition.Status == metav1.ConditionTrue {
			steps = append(steps, step+": "+condition.Message)
		}
	}
	return steps
}

// DescribeNotReady returns a text with one line for each condition that is not true.
func DescribeNotReady(syncTarget *edgev2alpha1.SyncTarget) string {
	var lines []string
	for _, step := range append(ReadyConditions, edgev2alpha1.ConditionReady) {
		condition := meta.FindStatusCondition(syncTarget.Status.Conditions, step)
		switch {
		case condition == nil:
			lines = append(lines, step+": the hub has not reported anything yet")
		case condition.Status != metav1.ConditionTrue:
			lines = append(lines, fmt.Sprintf("%s is %s, %s: %s", step, condition.Status, condition.Reason, condition.Message))
		}
	}
	if len(lines) > len(ReadyConditions) {
		lines = append(lines, "Is a hub running, and does this workspace bind its export? See `kubectl get apibindings`.")
	}
	return strings.Join(lines, "\n")
}

// IsReady reports whether the SyncTarget is ready and the hub has all permissions. The hub reports Ready without some of
// them.
func IsReady(syncTarget *edgev2alpha1.SyncTarget) bool {
	if syncTarget == nil || !meta.IsStatusConditionTrue(syncTarget.Status.Conditions, edgev2alpha1.ConditionReady) {
		return false
	}
	authorized := meta.FindStatusCondition(syncTarget.Status.Conditions, edgev2alpha1.ConditionSyncerAuthorized)
	return authorized == nil || authorized.Status == metav1.ConditionTrue
}
