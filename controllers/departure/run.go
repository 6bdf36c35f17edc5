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
	"fmt"
	"time"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/controllers/sync/order"
	"github.com/synchub-dev/synchub/controllers/sync/ownership"
	"github.com/synchub-dev/synchub/provider/targets"
)

const (
	// workers is how many objects are written to at once.
	workers = 8
	// patience is for how long an object that is being deleted holds up those that go after it: it may need them, but it
	// may also wait for somebody who never comes.
	patience = time.Minute
	// reportInterval is how often progress is reported.
	reportInterval = 5 * time.Second
	// What is not gone yet is looked at again after firstPause, then each time twice as late, up to lastPause.
	firstPause = 250 * time.Millisecond
	lastPause  = 30 * time.Second
)

// Target is what a departure needs of a [targets.Connection].
type Target interface {
	Page(ctx context.Context, resource schema.GroupVersionResource, namespace, selector, next string) (*metav1.PartialObjectMetadataList, error)
	ResolveResource(ctx context.Context, resource schema.GroupVersionResource) (kind string, namespaced bool, err error)
	Resolve(ctx context.Context, kind schema.GroupVersionKind) (resource schema.GroupVersionResource, namespaced bool, err error)
	Delete(ctx context.Context, resource schema.GroupVersionResource, key types.NamespacedName, uid types.UID) error
	Strip(ctx context.Context, resource schema.GroupVersionResource, key types.NamespacedName, uid types.UID, labels, annotations []string) error
	LacksNamespace(ctx context.Context, name string) bool
	WaitUp(ctx context.Context) error
	Doubt()
	Ahead() time.Duration
	LeaveAlone(what string)
}

var _ Target = &targets.Connection{}

// Options are what a departure needs.
type Options struct {
	Target Target
	Owner  ownership.Owner
	Mode   Mode
	// Resources are those of the target that the hub may have written objects of.
	Resources []schema.GroupVersionResource
	// Readable are the only namespaces in which the hub is meant to read; none stands for the whole cluster. Placed are those in
	// which it may have written, the empty one for the whole cluster. Where it may not read beyond the readable ones, what may be
	// left is listed, and holds nothing up: nobody means to let the hub there again.
	Readable, Placed []string
	// Cascades tells whether objects that came from a resource of the mailbox may be removed with all they hold.
	Cascades func(schema.GroupResource) bool
	// Before is the report of an earlier run, nil if there was none.
	Before *edgev2alpha1.DepartureStatus
	// Record stores the report. What is let go is let go only after a report that lists it was stored.
	Record func(ctx context.Context, report edgev2alpha1.DepartureStatus) error
	Clock  clock.Clock
	Log    logr.Logger
}

// run is a departure under way.
type run struct {
	Options
	report   *report
	recorded time.Time
}

// Run works until nothing is left to do, or ctx ends: then it returns ctx's error.
func Run(ctx context.Context, options Options) error {
	r := &run{Options: options, report: newReport(options.Mode, options.Before)}
	pause := firstPause
	for {
		// A connection that leads to another cluster by now is not up.
		if err := r.Target.WaitUp(ctx); err != nil {
			return err
		}
		before := r.report.removed
		done, err := r.pass(ctx)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil:
			r.Log.Info("the departure from the target is held up", "error", err.Error())
			r.Target.Doubt()
		case done:
			return nil
		}
		if r.report.removed > before {
			pause = firstPause
		}
		if err := r.wait(ctx, pause); err != nil {
			return err
		}
		pause = min(2*pause, lastPause)
	}
}

// pass looks at all that is left, and does what can be done about it now.
func (r *run) pass(ctx context.Context) (done bool, err error) {
	all, err := r.survey(ctx, everything)
	if err != nil {
		return false, err
	}
	r.report.take(all)
	if err := r.record(ctx); err != nil {
		return false, err
	}
	if r.report.isDone() {
		return true, nil
	}
	failed := newFailures()
	released := all.of(Release)
	r.releaseAll(ctx, released, failed)
	r.report.letGo(failed.without(released))
	if err := errors.Join(ctx.Err(), failed.fatal()); err != nil {
		return false, err
	}
	for wave := order.Webhooks; wave >= order.Namespaces; wave-- {
		if err := r.empty(ctx, wave, failed); err != nil {
			return false, err
		}
	}
	// Whether nothing is left is for the next pass to say, which looks at everything.
	r.report.fail(failed)
	return false, r.progress(ctx)
}

// empty removes what is to be removed of one wave. It returns when nothing of it holds up the next one.
func (r *run) empty(ctx context.Context, wave order.Wave, failed *failures) error {
	pause := firstPause
	for {
		found, err := r.survey(ctx, func(resource schema.GroupResource) bool { return order.Of(resource) == wave })
		if err != nil {
			return err
		}
		r.report.update(wave, found)
		doomed := failed.without(found.of(Remove))
		r.removeAll(ctx, doomed, failed)
		if err := errors.Join(ctx.Err(), failed.fatal()); err != nil {
			return err
		}
		if len(doomed) == 0 && !r.isHeldUp(found) {
			return nil
		}
		if err := r.progress(ctx); err != nil {
			return err
		}
		if len(doomed) > 0 {
			// Most are gone at once.
			pause = firstPause
			continue
		}
		if err := r.wait(ctx, pause); err != nil {
			return err
		}
		pause = min(2*pause, lastPause)
	}
}

// isHeldUp tells whether something that is being deleted may still need what goes after it.
func (r *run) isHeldUp(found survey) bool {
	for _, item := range found.of(Await) {
		// The target has set that time.
		if r.Clock.Since(item.DeletionTimestamp.Time)+r.Target.Ahead() < patience {
			return true
		}
	}
	return false
}

// record stores the report.
func (r *run) record(ctx context.Context) error {
	if err := r.Record(ctx, r.report.status()); err != nil {
		return fmt.Errorf("cannot store the report of the departure: %w", err)
	}
	r.recorded = r.Clock.Now()
	return nil
}

// progress stores the report if the last one is old.
func (r *run) progress(ctx context.Context) error {
	if r.Clock.Since(r.recorded) < reportInterval {
		return nil
	}
	return r.record(ctx)
}

func (r *run) wait(ctx context.Context, pause time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-r.Clock.After(pause):
		return nil
	}
}
