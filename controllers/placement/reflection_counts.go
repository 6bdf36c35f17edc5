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

package placement

import (
	"cmp"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/controllers/placement/rules"
	"github.com/synchub-dev/synchub/provider/wording"
)

// reflectionCounts count the reflections of one placement.
type reflectionCounts struct {
	// present counts those that the workspace has as they are on the cluster, and failed those that it cannot have. beyondLimit is true if
	// some are beyond the limit.
	present, failed int64
	beyondLimit     bool
}

// addReflections counts the reflections of the workspace. isPending is true if a pass for one of them is still to come.
func (s *summary) addReflections(r *reflections) (isPending bool) {
	r.lock.Lock()
	defer r.lock.Unlock()
	for key, found := range r.all {
		isPending = isPending || !found.isPlanned
		for _, placement := range found.selectedBy {
			counted := s.counts[placement]
			if counted == nil {
				counted = &placementCounts{}
				s.counts[placement] = counted
			}
			counted.addReflection(key, found)
		}
	}
	return isPending
}

// addReflection counts one reflection.
func (t *placementCounts) addReflection(key copyKey, found *reflected) {
	switch {
	case found.failure != nil:
		t.reflections.failed++
		t.reflections.beyondLimit = t.reflections.beyondLimit || found.failure.Reason == rules.ReasonLimitExceeded
		added := edgev2alpha1.PlacementPair{ObjectFailure: objectKey{key.resource, found.name}.objectFailure(*found.failure), SyncTarget: found.syncTarget}
		if key.name.Namespace != found.name.Namespace {
			added.ClusterNamespace = key.name.Namespace
		}
		t.failures = insertFirst(t.failures, added, comparePairs)
	case found.isPresent:
		t.reflections.present++
	}
}

// comparePairs orders pairs by objects, and then by SyncTargets.
func comparePairs(a, b edgev2alpha1.PlacementPair) int {
	return cmp.Or(compareFailures(a.ObjectFailure, b.ObjectFailure), cmp.Compare(a.SyncTarget, b.SyncTarget))
}

// areListed reports whether the hub knows all objects that may have reflections, and a pass was made for each of them.
func (o *reflectionObserver) areListed() bool {
	active := o.active.get()
	if active == nil {
		return false
	}
	for mailbox := range active.wantingReflectionsFrom() {
		if !o.reflections.index.users.isComplete(mailbox) {
			return false
		}
		here, _ := active.reflectingFrom(mailbox)
		for of, resource := range o.sources.policy.published() {
			if isReflectable(resource) && selectsResource(here, of, resource.Kind) && !isListed(o.mailboxes, of, mailbox) {
				return false
			}
		}
		for key, inMailbox := range o.origins(here, mailbox) {
			namespace, _ := o.namespaceOf(key)
			resource := o.sources.policy.published()[key.resource]
			if len(selectingForWorkspace(here, resource, namespace, inMailbox)) > 0 && !o.reflections.get(key).isPlanned {
				return false
			}
		}
	}
	return true
}

// upsyncIncompleteCondition returns the condition UpsyncIncomplete of a placement; an empty Reason means that there is none.
func upsyncIncompleteCondition(counted *placementCounts) metav1.Condition {
	of := counted.reflections
	switch {
	case of.failed == 0:
		return metav1.Condition{Type: edgev2alpha1.ConditionUpsyncIncomplete}
	case of.beyondLimit:
		return condition(edgev2alpha1.ConditionUpsyncIncomplete, metav1.ConditionTrue, rules.ReasonLimitExceeded,
			"This workspace lacks %s that spec.upsync brings up, because it has as many as it may have: narrow spec.upsync, or ask the operator of the hub for a larger --max-upsynced-objects.",
			wording.Count(of.failed, "object", "objects"))
	default:
		return condition(edgev2alpha1.ConditionUpsyncIncomplete, metav1.ConditionTrue, rules.ReasonObjectsFailed,
			"This workspace lacks %s that spec.upsync brings up, or has them in another state; see status.failures.", wording.Count(of.failed, "object", "objects"))
	}
}
