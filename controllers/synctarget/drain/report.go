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

package drain

import (
	"cmp"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/controllers/objectsync/plan/waves"
)

// maxListed is how many objects that stay are named.
const maxListed = 100

// Reasons why an object that is to go is still there, beside those of the target's answers.
const (
	// ReasonTerminating: something on the target holds up its deletion.
	ReasonTerminating = "Terminating"
	// ReasonForbidden: the target does not show objects of the resource to the hub. The name is then "*".
	ReasonForbidden = "Forbidden"
)

// releasedReasons are the reasons of what was let go. The target does not tell of it any more.
var releasedReasons = []string{ReasonOrphaned, ReasonCreatedOnce, ReasonAdopted, ReasonNotCascading, ReasonEnsured, ReasonInstalled}

// report is what is known of a departure.
type report struct {
	mode Mode
	// remaining counts what is still to go, by wave. unseen is true if that cannot be told.
	remaining map[waves.Wave]int
	forbidden bool
	removed   int32
	// released and more are what stays for good, which only grows; staying is what was seen to stay at the last look, and
	// failing what the target did not let the hub remove at the last try.
	released, staying, failing map[edgev2alpha1.LeftObject]string
	releasedMore               int32
}

// newReport goes on with a report of former times.
func newReport(mode Mode, before *edgev2alpha1.CleanupStatus) *report {
	r := &report{
		mode: mode, remaining: map[waves.Wave]int{},
		released: map[edgev2alpha1.LeftObject]string{}, staying: map[edgev2alpha1.LeftObject]string{},
	}
	if before == nil {
		return r
	}
	r.removed = before.Removed
	if mode == ModeDrain {
		return r
	}
	r.releasedMore = before.LeftMore
	for _, left := range before.Left {
		if slices.Contains(releasedReasons, left.Reason) {
			r.released[withoutReason(left)] = left.Reason
		}
	}
	return r
}

func withoutReason(left edgev2alpha1.LeftObject) edgev2alpha1.LeftObject {
	left.Reason = ""
	return left
}

func leftObject(item item) edgev2alpha1.LeftObject {
	return edgev2alpha1.LeftObject{Group: item.Resource.Group, Resource: item.Resource.Resource, Namespace: item.Namespace, Name: item.Name}
}

// observeAll takes over what was seen of everything.
func (r *report) observeAll(all listing) {
	clear(r.staying)
	counts := map[waves.Wave]int{}
	for _, item := range all.items {
		switch item.Action {
		case ActionRelease:
			counts[waves.Of(item.Resource)]++
			r.released[leftObject(item)] = item.Reason
		case ActionKeep:
			r.staying[leftObject(item)] = item.Reason
		case ActionWait:
			counts[waves.Of(item.Resource)]++
			r.staying[leftObject(item)] = ReasonTerminating
		case ActionDelete:
			counts[waves.Of(item.Resource)]++
		case ActionIgnore:
		}
	}
	r.forbidden = len(all.forbidden) > 0
	for _, at := range slices.Concat(all.forbidden, all.outOfScope) {
		r.staying[edgev2alpha1.LeftObject{Group: at.Group, Resource: at.Resource, Namespace: at.namespace, Name: "*"}] = ReasonForbidden
	}
	for wave, before := range r.remaining {
		r.removed += int32(max(before-counts[wave], 0)) //nolint:gosec // no target holds that many
	}
	r.remaining = counts
	if r.isDone() {
		r.failing = nil
	}
}

// observeWave takes over what was seen of one wave. What is awaited there is named at once: it may hold up the others for long.
func (r *report) observeWave(wave waves.Wave, found listing) {
	maps.DeleteFunc(r.staying, func(object edgev2alpha1.LeftObject, reason string) bool {
		return reason == ReasonTerminating && waves.Of(schema.GroupResource{Group: object.Group, Resource: object.Resource}) == wave
	})
	awaited := found.withAction(ActionWait)
	for _, item := range awaited {
		r.staying[leftObject(item)] = ReasonTerminating
	}
	count := len(found.withAction(ActionDelete)) + len(awaited) + len(found.withAction(ActionRelease))
	r.removed += int32(max(r.remaining[wave]-count, 0)) //nolint:gosec // no target holds that many
	r.remaining[wave] = count
}

// excludeReleased forgets the items that were let go: they are not to be counted as removed.
func (r *report) excludeReleased(items []item) {
	for _, item := range items {
		r.remaining[waves.Of(item.Resource)]--
	}
}

// setFailing notes which objects the target did not let the hub remove.
func (r *report) setFailing(failed *failures) {
	r.failing = map[edgev2alpha1.LeftObject]string{}
	for _, failure := range failed.items {
		r.failing[leftObject(failure.item)] = failure.reason
	}
}

// isDone tells whether nothing is to be done any more.
func (r *report) isDone() bool { return !r.forbidden && r.remainingCount() == 0 }

func (r *report) remainingCount() int {
	count := 0
	for _, some := range r.remaining {
		count += some
	}
	return count
}

// status returns the report as it stands in the SyncTarget.
func (r *report) status() edgev2alpha1.CleanupStatus {
	all := maps.Clone(r.released)
	maps.Copy(all, r.staying)
	maps.Copy(all, r.failing)
	left := make([]edgev2alpha1.LeftObject, 0, len(all))
	for object, reason := range all {
		object.Reason = reason
		left = append(left, object)
	}
	slices.SortFunc(left, func(a, b edgev2alpha1.LeftObject) int {
		return cmp.Or(cmp.Compare(a.Group, b.Group), cmp.Compare(a.Resource, b.Resource), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	status := edgev2alpha1.CleanupStatus{Removed: r.removed, Left: left}
	if more := len(left) - maxListed; more > 0 {
		status.Left, status.LeftMore = left[:maxListed], int32(more) //nolint:gosec // no target holds that many
	}
	if r.mode != ModeDrain {
		status.LeftMore = max(status.LeftMore, r.releasedMore)
	}
	if !r.forbidden {
		status.Remaining = new(int32(r.remainingCount())) //nolint:gosec // no target holds that many
	}
	return status
}
