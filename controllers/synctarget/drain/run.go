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
	"fmt"
	"time"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/controllers/plan/cleanup"
	"github.com/synchub-dev/synchub/controllers/plan/ownership"
	"github.com/synchub-dev/synchub/controllers/plan/tenancy"
	"github.com/synchub-dev/synchub/controllers/plan/waves"
	"github.com/synchub-dev/synchub/provider/targets"
)

const (
	// workers is how many objects are deleted or released concurrently.
	workers = 8
	// maxDeletionWait limits how long a terminating object delays the next wave. The object may need objects of that wave to
	// terminate, but it may also wait for a finalizer that nobody removes.
	maxDeletionWait = time.Minute
	// reportInterval is the interval between progress reports.
	reportInterval = 5 * time.Second
	// Objects that are not gone yet are listed again after minPause. The pause doubles each time, up to maxPause.
	minPause = 250 * time.Millisecond
	maxPause = 30 * time.Second
)

// Target has the methods of a [targets.Connection] that a drain needs.
type Target interface {
	ListMetadata(ctx context.Context, resource schema.GroupVersionResource, namespace, selector, next string) (*metav1.PartialObjectMetadataList, error)
	ResolveResource(ctx context.Context, resource schema.GroupVersionResource) (kind string, namespaced bool, err error)
	Resolve(ctx context.Context, kind schema.GroupVersionKind) (resource schema.GroupVersionResource, namespaced bool, err error)
	Delete(ctx context.Context, resource schema.GroupVersionResource, key types.NamespacedName, uid types.UID) error
	RemoveMetadata(ctx context.Context, resource schema.GroupVersionResource, key types.NamespacedName, uid types.UID, labels, annotations []string) error
	IsNamespaceMissing(ctx context.Context, name string) bool
	IsAPIRemoved(ctx context.Context, resource schema.GroupResource) (bool, error)
	WaitUntilUp(ctx context.Context) error
	ProbeNow()
	ClockSkew() time.Duration
	StartQuarantine(what string)
}

// TargetOf returns the target of a connection.
func TargetOf(connection *targets.Connection) Target {
	return struct {
		*targets.Objects
		*targets.APIs
		*targets.HealthMonitor
		*targets.Quarantine
	}{&connection.Objects, &connection.APIs, &connection.Health, &connection.Quarantine}
}

// Options are the parameters of [Run].
type Options struct {
	Target Target
	Owner  ownership.Owner
	Mode   cleanup.Mode
	// Identities determine whom the hub impersonates for the objects of workload workspaces. HasTenants is true if the target may have
	// objects of package tenants.
	Identities tenancy.Identities
	HasTenants bool
	// Resources are the resources of the target in which the hub may have written objects.
	Resources []schema.GroupVersionResource
	// ServedResources are the Resources that the target has served to the hub. If it does not serve one now, it
	// may still have objects of the resource.
	ServedResources []schema.GroupResource
	// ReadableNamespaces are the only namespaces that the hub should read; none means the whole cluster.
	// WrittenNamespaces are the namespaces that the hub may have written in; the empty one means the whole
	// cluster. If the target forbids a list outside ReadableNamespaces, the drain reports the namespace and
	// continues, because the hub is not meant to get access to that namespace again.
	ReadableNamespaces, WrittenNamespaces []string
	// AllowsCascade reports whether a namespace or CRD that came from this mailbox resource may be deleted with its contents.
	AllowsCascade func(schema.GroupResource) bool
	// PreviousStatus is the report of an earlier drain, nil if there was none.
	PreviousStatus *edgev2alpha1.CleanupStatus
	// StoreStatus stores the report. The drain releases an object only after StoreStatus has stored a report that lists it.
	StoreStatus func(ctx context.Context, report edgev2alpha1.CleanupStatus) error
	// OnDeleted and OnReleased are called for each object that was deleted, or released; nil calls nothing.
	OnDeleted, OnReleased func(resource schema.GroupResource, object types.NamespacedName)
	Clock                 clock.Clock
	Log                   logr.Logger
}

// drainer is the state of one Run.
type drainer struct {
	Options
	report     *report
	lastStored time.Time
}

// Run drains the target. It returns nil when nothing is left to do, or ctx's error. Other errors are logged and retried.
func Run(ctx context.Context, options Options) error {
	r := &drainer{Options: options, report: newReport(options.Mode, options.PreviousStatus)}
	pause := minPause
	for {
		// A connection that now leads to another cluster does not count as up.
		if err := r.Target.WaitUntilUp(ctx); err != nil {
			return err
		}
		removedBefore := r.report.removed
		done, err := r.pass(ctx)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil:
			r.Log.Info("the drain of the target is blocked", "error", err.Error())
			r.Target.ProbeNow()
		case done:
			return nil
		}
		if r.report.removed > removedBefore {
			pause = minPause
		}
		if err := r.wait(ctx, pause); err != nil {
			return err
		}
		pause = min(2*pause, maxPause)
	}
}

// pass lists all objects, and deletes or releases every object that can be deleted or released now. It reports
// whether nothing was left to do.
func (r *drainer) pass(ctx context.Context) (done bool, err error) {
	all, err := r.listObjects(ctx, allResources)
	if err != nil {
		return false, err
	}
	r.report.recordAll(all)
	if err := r.storeReport(ctx); err != nil {
		return false, err
	}
	failed := newFailures()
	if r.report.isDone() {
		return r.removeTenants(ctx, failed)
	}
	released := all.withAction(cleanup.ActionRelease)
	r.releaseAll(ctx, released, failed)
	r.report.excludeReleased(failed.without(released))
	if err := errors.Join(ctx.Err(), failed.fatal()); err != nil {
		return false, err
	}
	for wave := waves.Webhooks; wave >= waves.Namespaces; wave-- {
		if err := r.deleteWave(ctx, wave, failed); err != nil {
			return false, err
		}
	}
	// Only the next pass, which lists everything, can find that nothing is left.
	r.report.setFailing(failed)
	return false, r.storeReportIfDue(ctx)
}

// deleteWave deletes the objects of one wave. It returns when none of them delays the next wave.
func (r *drainer) deleteWave(ctx context.Context, wave waves.Wave, failed *failures) error {
	pause := minPause
	for {
		found, err := r.listObjects(ctx, func(resource schema.GroupResource) bool { return waves.Of(resource) == wave })
		if err != nil {
			return err
		}
		r.report.recordWave(wave, found)
		toDelete := failed.without(found.withAction(cleanup.ActionDelete))
		r.deleteAll(ctx, toDelete, failed)
		if err := errors.Join(ctx.Err(), failed.fatal()); err != nil {
			return err
		}
		if len(toDelete) == 0 && !r.isDeletionPending(found) {
			return nil
		}
		if err := r.storeReportIfDue(ctx); err != nil {
			return err
		}
		if len(toDelete) > 0 {
			// Most objects are gone at once.
			pause = minPause
			continue
		}
		if err := r.wait(ctx, pause); err != nil {
			return err
		}
		pause = min(2*pause, maxPause)
	}
}

// isDeletionPending reports whether a terminating object may still need objects of the next wave.
func (r *drainer) isDeletionPending(found listing) bool {
	for _, item := range found.withAction(cleanup.ActionWait) {
		// The deletion timestamp is by the target's clock.
		if r.Clock.Since(item.DeletionTimestamp.Time)+r.Target.ClockSkew() < maxDeletionWait {
			return true
		}
	}
	return false
}

// storeReport stores the report.
func (r *drainer) storeReport(ctx context.Context) error {
	if err := r.StoreStatus(ctx, r.report.status()); err != nil {
		return fmt.Errorf("cannot store the report of the drain: %w", err)
	}
	r.lastStored = r.Clock.Now()
	return nil
}

// storeReportIfDue stores the report if the stored one is older than reportInterval.
func (r *drainer) storeReportIfDue(ctx context.Context) error {
	if r.Clock.Since(r.lastStored) < reportInterval {
		return nil
	}
	return r.storeReport(ctx)
}

func (r *drainer) wait(ctx context.Context, pause time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-r.Clock.After(pause):
		return nil
	}
}
