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
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/synchub-dev/synchub/controllers/plan/cleanup"
	"github.com/synchub-dev/synchub/controllers/plan/ownership"
	"github.com/synchub-dev/synchub/provider/targets"
)

// downTarget is a target that is not up, like one whose address leads to another cluster. Any request to it
// fails the test with a nil pointer dereference.
type downTarget struct{ Target }

func (downTarget) WaitUntilUp(context.Context) error { return context.DeadlineExceeded }

// A drain sends no request to a target before the target is up.
func TestRunWaitsForTheTarget(t *testing.T) {
	err := Run(t.Context(), Options{Target: downTarget{}, Resources: []schema.GroupVersionResource{{Version: "v1", Resource: "configmaps"}}, Clock: clock.RealClock{}, Log: logr.Discard()})
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v", err)
	}
}

// endlessTarget returns as many pages as the drain requests.
type endlessTarget struct {
	Target
	page             metav1.PartialObjectMetadataList
	pages            int
	quarantineReason string
}

func (e *endlessTarget) ResolveResource(context.Context, schema.GroupVersionResource) (string, bool, error) {
	return "ConfigMap", true, nil
}

func (e *endlessTarget) ListMetadata(context.Context, schema.GroupVersionResource, string, string, string) (*metav1.PartialObjectMetadataList, error) {
	e.pages++
	return e.page.DeepCopy(), nil
}

func (e *endlessTarget) StartQuarantine(what string) { e.quarantineReason = what }

// A target with endless pages, or with endless objects of the hub, is quarantined, and the listing ends.
func TestListsAreBounded(t *testing.T) {
	owner := ownership.Owner{Hub: "hub", SyncTarget: "target", Sealer: ownership.NewSealer([]byte("key"))}
	forged := metav1.ObjectMeta{Name: "a", Labels: map[string]string{ownership.OwnerLabel: owner.LabelValue()}, Annotations: map[string]string{
		ownership.MarkAnnotation: `{"v":99}`, "example.com/large": strings.Repeat("x", 1<<20), // a mark of this size takes the race detector long to parse
	}}
	for name, test := range map[string]struct {
		items []metav1.PartialObjectMetadata
		pages int
	}{
		"pages of nothing":        {nil, maxListPages + 1},
		"pages of forged objects": {[]metav1.PartialObjectMetadata{{ObjectMeta: forged}}, maxListBytes>>20 + 1},
	} {
		t.Run(name, func(t *testing.T) {
			target := &endlessTarget{page: metav1.PartialObjectMetadataList{ListMeta: metav1.ListMeta{Continue: "more"}, Items: test.items}}
			r := &drainer{Options: Options{Target: target, Owner: owner, Resources: []schema.GroupVersionResource{{Version: "v1", Resource: "configmaps"}}}}
			_, err := r.listObjects(t.Context(), allResources)
			if !errors.Is(err, errListTooLarge) || target.pages > test.pages || !strings.Contains(target.quarantineReason, "configmaps") {
				t.Errorf("got %v after %d pages, and left alone since %q", err, target.pages, target.quarantineReason)
			}
		})
	}
}

// skewedTarget is a target whose clock is ahead of the hub's.
type skewedTarget struct {
	Target
	ahead time.Duration
}

func (s skewedTarget) ClockSkew() time.Duration { return s.ahead }

// The age of a deletion is computed with the clock of the target, which set the deletion timestamp.
func TestDeletionWaitByTheTargetsClock(t *testing.T) {
	now := clocktesting.NewFakeClock(time.Now())
	for _, ahead := range []time.Duration{0, 3 * time.Hour, -3 * time.Hour} {
		for passed, want := range map[time.Duration]bool{maxDeletionWait - time.Second: true, maxDeletionWait + time.Second: false} {
			r := &drainer{Options: Options{Target: skewedTarget{ahead: ahead}, Clock: now}}
			begun := metav1.NewTime(now.Now().Add(ahead - passed))
			held := item{Object: cleanup.Object{PartialObjectMetadata: &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{DeletionTimestamp: &begun}}}, Decision: cleanup.Decision{Action: cleanup.ActionWait}}
			if got := r.isDeletionPending(listing{items: []item{held}}); got != want {
				t.Errorf("%s after it began, with a clock that is %s ahead: want %v, got %v", passed, ahead, want, got)
			}
		}
	}
}

// forbiddingTarget forbids lists of Secrets.
type forbiddingTarget struct {
	endlessTarget
	listed []string
}

func (f *forbiddingTarget) ListMetadata(_ context.Context, resource schema.GroupVersionResource, _, _, _ string) (*metav1.PartialObjectMetadataList, error) {
	f.listed = append(f.listed, resource.Resource)
	if resource.Resource == "secrets" {
		return nil, apierrors.NewForbidden(resource.GroupResource(), "", nil)
	}
	return &metav1.PartialObjectMetadataList{}, nil
}

// A drain lists the resources in the ledger, and reports the ones that it may not list.
func TestForbiddenListsAreReported(t *testing.T) {
	secrets := schema.GroupVersionResource{Version: "v1", Resource: "secrets"}
	for name, test := range map[string]struct {
		resources []schema.GroupVersionResource
		forbidden int
		listed    []string
	}{
		"nothing recorded": {nil, 0, []string{"namespaces", "customresourcedefinitions"}},
		"a forbidden one":  {[]schema.GroupVersionResource{secrets}, 1, []string{"secrets", "namespaces", "customresourcedefinitions"}},
	} {
		target := &forbiddingTarget{}
		r := &drainer{Options: Options{Target: target, Owner: ownership.Owner{Hub: "hub", SyncTarget: "target", Sealer: ownership.NewSealer([]byte("key"))}, Resources: test.resources}}
		found, err := r.listObjects(t.Context(), allResources)
		if err != nil || len(found.forbidden) != test.forbidden || !slices.Equal(target.listed, test.listed) {
			t.Errorf("%s: got %v, %v, %v", name, target.listed, found.forbidden, err)
		}
	}
}

// switchedOffTarget serves no API now.
type switchedOffTarget struct {
	Target
	removed bool
}

func (switchedOffTarget) ResolveResource(context.Context, schema.GroupVersionResource) (string, bool, error) {
	return "", false, targets.ErrNotServed
}

func (s switchedOffTarget) IsAPIRemoved(context.Context, schema.GroupResource) (bool, error) {
	return s.removed, nil
}

// A drain waits for an API that the target has served before, unless its objects went with it.
func TestAnAPIThatIsNotServedIsWaitedFor(t *testing.T) {
	jobs := schema.GroupVersionResource{Group: "batch", Version: "v1", Resource: "jobs"}
	for name, test := range map[string]struct{ served, removed, done bool }{
		"switched off":                {served: true},
		"removed with its objects":    {served: true, removed: true, done: true},
		"never served":                {done: true},
		"never served, nor removable": {removed: true, done: true},
	} {
		t.Run(name, func(t *testing.T) {
			options := Options{Target: switchedOffTarget{removed: test.removed}, Resources: []schema.GroupVersionResource{jobs}}
			if test.served {
				options.ServedResources = []schema.GroupResource{jobs.GroupResource()}
			}
			r := &drainer{Options: options, report: newReport(cleanup.ModeDelete, nil)}
			found, err := r.listObjects(t.Context(), allResources)
			if err != nil {
				t.Fatal(err)
			}
			r.report.recordAll(found)
			status := r.report.status()
			if r.report.isDone() != test.done || (status.Remaining != nil) != test.done {
				t.Errorf("done: %v, with %+v", r.report.isDone(), status)
			}
			if !test.done && (len(status.Left) != 1 || status.Left[0].Reason != ReasonNotServed || status.Left[0].Resource != "jobs" || status.Left[0].Name != "*") {
				t.Errorf("left: %+v", status.Left)
			}
		})
	}
}
