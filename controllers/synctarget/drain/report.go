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
	"github.com/synchub-dev/synchub/controllers/plan/cleanup"
	"github.com/synchub-dev/synchub/controllers/plan/waves"
)

// maxListed is how many objects that stay the report names.
const maxListed = 100

// Reasons why an object that must be deleted still exists. The reasons of the target's responses may occur as
// well.
const (
	// ReasonTerminating: the object is terminating, and something on the target delays that.
	ReasonTerminating = "Terminating"
	// ReasonForbidden: the target does not let the hub list the resource. The name of the entry is then "*".
	ReasonForbidden = "Forbidden"
	// ReasonNotServed: the target does not serve the resource now, and may serve it later with all objects. The name of the entry is "*".
	ReasonNotServed = "NotServed"
)

// releasedReasons are the reasons of released objects. A listing does not find these objects again.
var releasedReasons = []string{cleanup.ReasonOrphaned, cleanup.ReasonCreatedOnce, cleanup.ReasonAdopted, cleanup.ReasonNotCascading, cleanup.ReasonEnsured, cleanup.ReasonInstalled}

// report is the progress of a drain. It is not safe for concurrent use.
type report struct {
	// remaining counts the objects still to be deleted or released, by wave. It is incomplete if unlisted is true.
	remaining map[waves.Wave]int
	unlisted  bool
	removed   int32
	// released are the objects that stay for good; it only grows. staying are the objects that stay according to the last listing.
	// failing are the objects that the target did not let the hub delete or release in the last pass.
	released, staying, failing map[edgev2alpha1.LeftObject]string
	// releasedMore is the LeftMore of the earlier report.
	releasedMore int32
}

// newReport returns a report that continues an earlier one. before may be nil.
func newReport(mode cleanup.Mode, before *edgev2alpha1.CleanupStatus) *report {
	r := &report{
		remaining: map[waves.Wave]int{},
		released:  map[edgev2alpha1.LeftObject]string{}, staying: map[edgev2alpha1.LeftObject]string{},
	}
	if before == nil {
		return r
	}
	r.removed = before.Removed
	if mode == cleanup.ModeDrain {
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

// recordAll updates the report with a listing of all objects.
func (r *report) recordAll(all listing) {
	clear(r.staying)
	counts := map[waves.Wave]int{}
	for _, item := range all.items {
		switch item.Action {
		case cleanup.ActionRelease:
			counts[waves.Of(item.Resource)]++
			r.released[leftObject(item)] = item.Reason
		case cleanup.ActionKeep:
			r.staying[leftObject(item)] = item.Reason
		case cleanup.ActionWait:
			counts[waves.Of(item.Resource)]++
			r.staying[leftObject(item)] = ReasonTerminating
		case cleanup.ActionDelete:
			counts[waves.Of(item.Resource)]++
		case cleanup.ActionIgnore:
		}
	}
	r.unlisted = len(all.forbidden)+len(all.notServed) > 0
	for _, at := range all.notServed {
		r.staying[edgev2alpha1.LeftObject{Group: at.Group, Resource: at.Resource, Name: "*"}] = ReasonNotServed
	}
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

// recordWave updates the report with a listing of one wave. It names terminating objects at once, because they may delay the next
// wave for long.
func (r *report) recordWave(wave waves.Wave, found listing) {
	maps.DeleteFunc(r.staying, func(object edgev2alpha1.LeftObject, reason string) bool {
		return reason == ReasonTerminating && waves.Of(schema.GroupResource{Group: object.Group, Resource: object.Resource}) == wave
	})
	terminating := found.withAction(cleanup.ActionWait)
	for _, item := range terminating {
		r.staying[leftObject(item)] = ReasonTerminating
	}
	count := len(found.withAction(cleanup.ActionDelete)) + len(terminating) + len(found.withAction(cleanup.ActionRelease))
	r.removed += int32(max(r.remaining[wave]-count, 0)) //nolint:gosec // no target holds that many
	r.remaining[wave] = count
}

// excludeReleased subtracts released items from remaining, so that they do not count as removed.
func (r *report) excludeReleased(items []item) {
	for _, item := range items {
		r.remaining[waves.Of(item.Resource)]--
	}
}

// setFailing replaces the objects that the target did not let the hub delete or release.
func (r *report) setFailing(failed *failures) {
	r.failing = map[edgev2alpha1.LeftObject]string{}
	for _, failure := range failed.items {
		r.failing[leftObject(failure.item)] = failure.reason
	}
}

// isDone reports whether nothing is left to delete or release.
func (r *report) isDone() bool { return !r.unlisted && r.remainingCount() == 0 }

func (r *report) remainingCount() int {
	count := 0
	for _, some := range r.remaining {
		count += some
	}
	return count
}

// status returns the report for status.cleanup.
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
	status.LeftMore = max(status.LeftMore, r.releasedMore)
	if !r.unlisted {
		status.Remaining = new(int32(r.remainingCount())) //nolint:gosec // no target holds that many
	}
	return status
}
