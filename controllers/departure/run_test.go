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
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/synchub-dev/synchub/controllers/sync/ownership"
)

// down is a double of a target that is not up, as one is behind which another cluster answers. Any request to it fails the test by
// a nil pointer.
type down struct{ Target }

func (down) WaitUp(context.Context) error { return context.DeadlineExceeded }

// A departure asks nothing of a target, and removes nothing there, before that is up.
func TestRunWaitsForTheTarget(t *testing.T) {
	err := Run(t.Context(), Options{Target: down{}, Resources: []schema.GroupVersionResource{{Version: "v1", Resource: "configmaps"}}, Clock: clock.RealClock{}, Log: logr.Discard()})
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v", err)
	}
}

// endless is a double of a target that has as many pages as anybody asks for.
type endless struct {
	Target
	page         metav1.PartialObjectMetadataList
	pages        int
	whyLeftAlone string
}

func (e *endless) ResolveResource(context.Context, schema.GroupVersionResource) (string, bool, error) {
	return "ConfigMap", true, nil
}

func (e *endless) Page(context.Context, schema.GroupVersionResource, string, string, string) (*metav1.PartialObjectMetadataList, error) {
	e.pages++
	return e.page.DeepCopy(), nil
}

func (e *endless) LeaveAlone(what string) { e.whyLeftAlone = what }

// A target whose pages have no end, or that says of endless objects that they are the hub's, is left alone, and the survey ends.
func TestSurveysEnd(t *testing.T) {
	owner := ownership.Owner{Hub: "hub", SyncTarget: "target", Sealer: ownership.NewSealer([]byte("key"))}
	forged := metav1.ObjectMeta{Name: "a", Labels: map[string]string{ownership.OwnerLabel: owner.LabelValue()}, Annotations: map[string]string{ownership.MarkAnnotation: `{"v":99,"x":"` + strings.Repeat("x", 1<<20) + `"}`}}
	for name, test := range map[string]struct {
		items []metav1.PartialObjectMetadata
		pages int
	}{
		"pages of nothing":        {nil, maxPages + 1},
		"pages of forged objects": {[]metav1.PartialObjectMetadata{{ObjectMeta: forged}}, maxSize>>20 + 1},
	} {
		t.Run(name, func(t *testing.T) {
			target := &endless{page: metav1.PartialObjectMetadataList{ListMeta: metav1.ListMeta{Continue: "more"}, Items: test.items}}
			r := &run{Options: Options{Target: target, Owner: owner, Resources: []schema.GroupVersionResource{{Version: "v1", Resource: "configmaps"}}}}
			_, err := r.survey(t.Context(), everything)
			if !errors.Is(err, errTooMuch) || target.pages > test.pages || !strings.Contains(target.whyLeftAlone, "configmaps") {
				t.Errorf("got %v after %d pages, and left alone since %q", err, target.pages, target.whyLeftAlone)
			}
		})
	}
}

// skewed is a double of a target whose clock is ahead of the hub's.
type skewed struct {
	Target
	ahead time.Duration
}

func (s skewed) Ahead() time.Duration { return s.ahead }

// How long an object has been held up is told by the clock of the target, which said when its deletion began.
func TestPatienceByTheTargetsClock(t *testing.T) {
	now := clocktesting.NewFakeClock(time.Now())
	for _, ahead := range []time.Duration{0, 3 * time.Hour, -3 * time.Hour} {
		for passed, want := range map[time.Duration]bool{patience - time.Second: true, patience + time.Second: false} {
			r := &run{Options: Options{Target: skewed{ahead: ahead}, Clock: now}}
			begun := metav1.NewTime(now.Now().Add(ahead - passed))
			held := item{Object: Object{PartialObjectMetadata: &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{DeletionTimestamp: &begun}}}, Decision: Decision{Action: Await}}
			if got := r.isHeldUp(survey{items: []item{held}}); got != want {
				t.Errorf("%s after it began, with a clock that is %s ahead: want %v, got %v", passed, ahead, want, got)
			}
		}
	}
}
