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

package departure

import (
	"cmp"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/controllers/sync/order"
)

// listed is how many objects that stay are named.
const listed = 100

// Reasons why an object that is to go is still there, beside those of the target's answers.
const (
	// ReasonTerminating: something on the target holds up its deletion.
	ReasonTerminating = "Terminating"
	// ReasonUnseen: the target does not show objects of the resource to the hub. The name is then "*".
	ReasonUnseen = "Forbidden"
)

// final are the reasons of what was let go. The target does not tell of it any more.
var final = []string{ReasonOrphaned, ReasonCreatedOnce, ReasonAdopted, ReasonNotCascading, ReasonEnsured, ReasonInstalled}

// report is what is known of a departure.
type report struct {
	mode Mode
	// remaining counts what is still to go, by wave. unseen is true if that cannot be told.
	remaining map[order.Wave]int
	unseen    bool
	removed   int32
	// released and more are what stays for good, which only grows; staying is what was seen to stay at the last look, and
	// failing what the target did not let the hub remove at the last try.
	released, staying, failing map[edgev2alpha1.LeftObject]string
	more                       int32
}

// newReport goes on with a report of former times.
func newReport(mode Mode, before *edgev2alpha1.DepartureStatus) *report {
	r := &report{
		mode: mode, remaining: map[order.Wave]int{},
		released: map[edgev2alpha1.LeftObject]string{}, staying: map[edgev2alpha1.LeftObject]string{},
	}
	if before == nil {
		return r
	}
	r.removed = before.Removed
	if mode == Drain {
		return r
	}
	r.more = before.LeftMore
	for _, left := range before.Left {
		if slices.Contains(final, left.Reason) {
			r.released[unexplained(left)] = left.Reason
		}
	}
	return r
}

func unexplained(left edgev2alpha1.LeftObject) edgev2alpha1.LeftObject {
	left.Reason = ""
	return left
}

func named(item item) edgev2alpha1.LeftObject {
	return edgev2alpha1.LeftObject{Group: item.Resource.Group, Resource: item.Resource.Resource, Namespace: item.Namespace, Name: item.Name}
}

// take takes over what was seen of everything.
func (r *report) take(all survey) {
	clear(r.staying)
	counts := map[order.Wave]int{}
	for _, item := range all.items {
		switch item.Action {
		case Release:
			counts[order.Of(item.Resource)]++
			r.released[named(item)] = item.Reason
		case Keep:
			r.staying[named(item)] = item.Reason
		case Await:
			counts[order.Of(item.Resource)]++
			r.staying[named(item)] = ReasonTerminating
		case Remove:
			counts[order.Of(item.Resource)]++
		case Ignore:
		}
	}
	r.unseen = len(all.unseen) > 0
	for _, at := range slices.Concat(all.unseen, all.abandoned) {
		r.staying[edgev2alpha1.LeftObject{Group: at.Group, Resource: at.Resource, Namespace: at.namespace, Name: "*"}] = ReasonUnseen
	}
	for wave, before := range r.remaining {
		r.removed += int32(max(before-counts[wave], 0)) //nolint:gosec // no target holds that many
	}
	r.remaining = counts
	if r.isDone() {
		r.failing = nil
	}
}

// update takes over what was seen of one wave. What is awaited there is named at once: it may hold up the others for long.
func (r *report) update(wave order.Wave, found survey) {
	maps.DeleteFunc(r.staying, func(object edgev2alpha1.LeftObject, reason string) bool {
		return reason == ReasonTerminating && order.Of(schema.GroupResource{Group: object.Group, Resource: object.Resource}) == wave
	})
	awaited := found.of(Await)
	for _, item := range awaited {
		r.staying[named(item)] = ReasonTerminating
	}
	count := len(found.of(Remove)) + len(awaited) + len(found.of(Release))
	r.removed += int32(max(r.remaining[wave]-count, 0)) //nolint:gosec // no target holds that many
	r.remaining[wave] = count
}

// letGo forgets the items that were let go: they are not to be counted as removed.
func (r *report) letGo(items []item) {
	for _, item := range items {
		r.remaining[order.Of(item.Resource)]--
	}
}

// fail notes which objects the target did not let the hub remove.
func (r *report) fail(failed *failures) {
	r.failing = map[edgev2alpha1.LeftObject]string{}
	for _, failure := range failed.items {
		r.failing[named(failure.item)] = failure.reason
	}
}

// isDone tells whether nothing is to be done any more.
func (r *report) isDone() bool { return !r.unseen && r.count() == 0 }

func (r *report) count() int {
	count := 0
	for _, some := range r.remaining {
		count += some
	}
	return count
}

// status returns the report as it stands in the SyncTarget.
func (r *report) status() edgev2alpha1.DepartureStatus {
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
	status := edgev2alpha1.DepartureStatus{Removed: r.removed, Left: left}
	if more := len(left) - listed; more > 0 {
		status.Left, status.LeftMore = left[:listed], int32(more) //nolint:gosec // no target holds that many
	}
	if r.mode != Drain {
		status.LeftMore = max(status.LeftMore, r.more)
	}
	if !r.unseen {
		status.Remaining = new(int32(r.count())) //nolint:gosec // no target holds that many
	}
	return status
}
