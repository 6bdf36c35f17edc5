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

package syncerconfig

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	gosync "sync"
	"time"

	jsonpatch "github.com/evanphx/json-patch/v5"
	"github.com/go-logr/logr"
	"github.com/kcp-dev/logicalcluster/v3"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/controllers/internal/queue"
	"github.com/synchub-dev/synchub/controllers/plan/selection"
	"github.com/synchub-dev/synchub/controllers/syncmanager"
	"github.com/synchub-dev/synchub/controllers/syncmanager/schemacheck"
	"github.com/synchub-dev/synchub/provider/mailboxes"
	"github.com/synchub-dev/synchub/provider/metrics/targetlabels"
	"github.com/synchub-dev/synchub/provider/requestclass"
	"github.com/synchub-dev/synchub/provider/topic"
)

const (
	// writeInterval is the minimum time between two writes to the configs of one mailbox (rule 1 of the design).
	writeInterval = 5 * time.Second
	// busyWriteInterval is the same while many objects of the mailbox wait. Counting all of them and writing the result
	// takes time of the servers and the hub that these objects need. It also applies while objects that existed at the
	// start have not been tried yet.
	busyWriteInterval = 15 * time.Second
	// initialSyncLimit is how long the counts from before a start stay, while objects that existed at the start have not
	// been tried yet: they are closer to the truth than a partial count. A hub with 20,000 objects on a busy machine takes
	// a minute.
	initialSyncLimit = 2 * time.Minute
	// busyThreshold is how many objects of a mailbox must wait for busyWriteInterval to apply.
	busyThreshold = 10
	// busyWriteSpacing is the time between such writes over all busy mailboxes, including the first write of each.
	// maxBusyWriteInterval limits the interval that results from busyWriteInterval and the spacing. In a burst over a
	// hundred mailboxes, these writes took kcp as long as a third of the objects did.
	busyWriteSpacing     = 500 * time.Millisecond
	maxBusyWriteInterval = 2 * time.Minute
	// changeDelay is how long the first change waits for further changes. After a quiet time the status is thus
	// almost immediate.
	changeDelay  = 200 * time.Millisecond
	writeTimeout = 30 * time.Second
	workers      = 4
)

// Controller writes the status of the configs of all mailboxes.
type Controller struct {
	mailboxes *mailboxes.Mailboxes
	manager   *syncmanager.Manager
	clock     clock.Clock
	log       logr.Logger
	// leaderOnly is true if no other replica owns SyncTargets.
	leaderOnly bool

	lock          gosync.Mutex
	schedules     map[types.UID]writeSchedule // by UID of the SyncTarget
	busyMailboxes int                         // number of busy entries in schedules
}

// writeSchedule holds the time of the last write, or of the first attempt, and the earliest time of the next one.
type writeSchedule struct {
	lastWrite, nextWrite time.Time
	// busy is true if many objects of the mailbox waited at the last check. due is when the mailbox may write,
	// in its turn among the busy mailboxes. It is after lastWrite while the mailbox waits for its turn.
	busy bool
	due  time.Time
	// initialSyncSince is when the initial sync was first seen to be incomplete. It is zero once it is complete.
	initialSyncSince time.Time
}

// Options are the dependencies of a [Controller].
type Options struct {
	Mailboxes *mailboxes.Mailboxes
	// Sync is the manager whose sync controllers are reported.
	Sync *syncmanager.Manager
	// LeaderOnly is true if no other replica owns SyncTargets.
	LeaderOnly bool
	Clock      clock.Clock
	Log        logr.Logger
}

// New returns a controller that reports the state of sync controllers.
func New(options Options) *Controller {
	return &Controller{mailboxes: options.Mailboxes, manager: options.Sync, leaderOnly: options.LeaderOnly, clock: options.Clock, log: options.Log, schedules: map[types.UID]writeSchedule{}}
}

// Register adds the controller to the manager of the hosting cluster.
func (c *Controller) Register(hosting manager.Manager) error {
	// A mailbox may have thousands of configs, and each needs a request.
	slow := queue.LanePerKey[types.UID](c, writeTimeout, c.clock)
	worker, err := controller.NewTyped("syncerconfig", hosting, controller.TypedOptions[types.UID]{
		MaxConcurrentReconciles: workers,
		Reconciler:              slow,
		NeedLeaderElection:      &c.leaderOnly,
		RateLimiter:             workqueue.NewTypedItemExponentialFailureRateLimiter[types.UID](writeInterval, 5*time.Minute),
		LogConstructor:          targetlabels.LogConstructor(c.log),
	})
	if err != nil {
		return err
	}
	changed := topic.Source(&c.manager.ObjectsChanged, c.enqueue, func(queue workqueue.TypedRateLimitingInterface[types.UID]) {
		for _, syncTarget := range c.manager.SyncTargets() {
			c.enqueue(queue, syncTarget)
		}
	})
	return errors.Join(hosting.Add(slow), worker.Watch(slow.Source()), worker.Watch(changed))
}

// enqueue enqueues a SyncTarget for the time when the status of its configs may be written again.
func (c *Controller) enqueue(queue workqueue.TypedRateLimitingInterface[types.UID], syncTarget types.UID) {
	c.lock.Lock()
	delay := max(changeDelay, c.schedules[syncTarget].nextWrite.Sub(c.clock.Now()))
	c.lock.Unlock()
	queue.AddAfter(syncTarget, delay)
}

// Reconcile writes the status of the configs of one mailbox where it differs.
func (c *Controller) Reconcile(ctx context.Context, syncTarget types.UID) (reconcile.Result, error) {
	ctx = c.manager.Role.Context(ctx, syncTarget)
	if halt := c.manager.NotSynced(syncTarget); halt.Reason != "" {
		return c.reportNotSynced(ctx, syncTarget, halt)
	}
	view, ok := c.manager.View(syncTarget)
	if !ok {
		if !c.manager.IsSynced(syncTarget) {
			c.forget(syncTarget)
		}
		return reconcile.Result{}, nil
	}
	if requeueAfter := c.scheduleWrite(syncTarget, view); requeueAfter > 0 {
		return reconcile.Result{RequeueAfter: requeueAfter}, nil
	}
	report := newReport(view, c.isWithinInitialSync(syncTarget))
	if limits := c.mailboxes.Limits.MailboxLimitError(view.Mailbox); limits.Evicted {
		report.evictedReason = limits.Error()
	}
	var errs []error
	for _, resource := range syncmanager.ConfigResources {
		configs, _ := c.mailboxes.List(resource, view.Mailbox)
		for _, config := range configs {
			// A terminating config selects nothing.
			if config.GetDeletionTimestamp() == nil && ctx.Err() == nil {
				errs = append(errs, c.reconcileConfig(ctx, report, resource, config))
			}
		}
	}
	if err := errors.Join(errs...); err != nil || !report.availability.isIncomplete() {
		return reconcile.Result{}, err
	}
	// No event reports that an unchanged object has been tried, or that objects are visible again.
	return reconcile.Result{RequeueAfter: busyWriteInterval}, nil
}

// reportNotSynced sets the condition Ready of the configs of a mailbox: the hub syncs nothing. The other parts
// of the status keep their last values.
func (c *Controller) reportNotSynced(ctx context.Context, syncTarget types.UID, halt syncmanager.NotSynced) (reconcile.Result, error) {
	if requeueAfter := c.scheduleWriteWith(syncTarget, false, true); requeueAfter > 0 {
		return reconcile.Result{RequeueAfter: requeueAfter}, nil
	}
	var errs []error
	for _, resource := range syncmanager.ConfigResources {
		configs, _ := c.mailboxes.List(resource, halt.Mailbox)
		for _, config := range configs {
			if config.GetDeletionTimestamp() != nil || mailboxes.ProjectionOf(config) != mailboxes.FullObject || ctx.Err() != nil {
				continue
			}
			current, err := decodeStatus(config)
			if err == nil {
				err = c.updateStatus(ctx, halt.Mailbox, resource, config, current, notSyncedStatus(halt, config.GetGeneration(), current))
			}
			errs = append(errs, err)
		}
	}
	return reconcile.Result{}, errors.Join(errs...)
}

// decodeStatus returns the status of a config of either kind: both have the same status type.
func decodeStatus(config *unstructured.Unstructured) (edgev2alpha1.SyncerConfigStatus, error) {
	var read struct {
		Status edgev2alpha1.SyncerConfigStatus `json:"status"`
	}
	err := runtime.DefaultUnstructuredConverter.FromUnstructured(map[string]any{"status": config.Object["status"]}, &read)
	return read.Status, err
}

// scheduleWrite returns zero if the configs of a mailbox may be written now, and records the write. Otherwise
// it returns the delay after which to call it again.
func (c *Controller) scheduleWrite(syncTarget types.UID, view syncmanager.View) (requeueAfter time.Duration) {
	waiting, known := 0, true
	for _, controller := range view.Controllers {
		waiting += controller.QueueLength()
		known = known && controller.HasCompletedFirstPass()
	}
	for _, state := range view.Incompatible {
		known = known && state.Reason != schemacheck.ReasonPending
	}
	return c.scheduleWriteWith(syncTarget, waiting >= busyThreshold, known)
}

// scheduleWriteWith is scheduleWrite with the state of the mailbox: busy if many objects wait, known if the initial sync is
// complete.
func (c *Controller) scheduleWriteWith(syncTarget types.UID, busy, initialSyncDone bool) (requeueAfter time.Duration) {
	c.lock.Lock()
	defer c.lock.Unlock()
	now, schedule := c.clock.Now(), c.schedules[syncTarget]
	if schedule.lastWrite.IsZero() && !initialSyncDone {
		schedule.lastWrite = now
	}
	if initialSyncDone {
		schedule.initialSyncSince = time.Time{}
	} else if schedule.initialSyncSince.IsZero() {
		schedule.initialSyncSince = now
	}
	c.addBusy(schedule.busy, -1)
	switch spacing := totalBusySpacing(c.busyMailboxes); {
	case busy && !schedule.due.After(schedule.lastWrite):
		schedule.due = now.Add(max(busyWriteInterval-now.Sub(schedule.lastWrite), min(spacing, maxBusyWriteInterval)))
	case schedule.busy && !busy:
		schedule.due = now.Add(min(schedule.due.Sub(now), spacing, writeInterval))
	}
	schedule.busy = busy
	c.addBusy(schedule.busy, 1)
	if requeueAfter = delayUntilDue(now, schedule, initialSyncDone); requeueAfter > 0 {
		schedule.nextWrite = now.Add(requeueAfter)
	} else {
		schedule.lastWrite, schedule.nextWrite, schedule.due = now, now.Add(writeInterval), now
		if busy {
			schedule.due = now.Add(min(max(busyWriteInterval, totalBusySpacing(c.busyMailboxes)), maxBusyWriteInterval))
		}
	}
	c.schedules[syncTarget] = schedule
	return requeueAfter
}

// isWithinInitialSync reports whether the initial sync of the mailbox is incomplete, but has not been for too long.
func (c *Controller) isWithinInitialSync(syncTarget types.UID) bool {
	c.lock.Lock()
	defer c.lock.Unlock()
	since := c.schedules[syncTarget].initialSyncSince
	return !since.IsZero() && c.clock.Since(since) < initialSyncLimit
}

// totalBusySpacing returns how long so many busy mailboxes take for one write each.
func totalBusySpacing(mailboxes int) time.Duration {
	return time.Duration(mailboxes) * busyWriteSpacing
}

func (c *Controller) forget(syncTarget types.UID) {
	c.lock.Lock()
	defer c.lock.Unlock()
	c.addBusy(c.schedules[syncTarget].busy, -1)
	delete(c.schedules, syncTarget)
}

// addBusy changes the number of busy mailboxes. The caller holds the lock.
func (c *Controller) addBusy(busy bool, more int) {
	if busy {
		c.busyMailboxes += more
	}
}

// delayUntilDue returns how long to wait for the turn of the mailbox or, within busyWriteInterval, for the end
// of its initial sync. A single delay is short, so that the caller soon observes the end of either wait.
func delayUntilDue(now time.Time, seen writeSchedule, known bool) time.Duration {
	if !known {
		return max(0, min(changeDelay, busyWriteInterval-now.Sub(seen.lastWrite)))
	}
	return max(0, min(writeInterval, seen.due.Sub(now)))
}

func (c *Controller) reconcileConfig(ctx context.Context, report report, resource schema.GroupVersionResource, object *unstructured.Unstructured) error {
	id := selection.EdgeSyncConfigID(object.GetName())
	if object.GetKind() == "SyncerConfig" {
		id = selection.SyncerConfigID(object.GetName())
	}
	// Both kinds have these fields; an EdgeSyncConfig cannot be suspended.
	var config struct {
		Spec struct {
			Conversions []edgev2alpha1.Conversion `json:"conversions"`
			Suspend     bool                      `json:"suspend"`
		} `json:"spec"`
		Status edgev2alpha1.SyncerConfigStatus `json:"status"`
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &config); err != nil {
		return err
	}
	observed, current := report.observedConfig(id, config.Spec.Conversions), config.Status
	observed.Suspended = config.Spec.Suspend
	switch active := report.Matcher.HasConfig(id); {
	case !active && report.Matcher.IsPartial():
		observed = ObservedConfig{BeyondLimits: true, MissingAPIs: observed.MissingAPIs}
	case mailboxes.ProjectionOf(object) != mailboxes.FullObject:
		// The configs change: the config will soon take effect, or stop taking effect.
		return nil
	}
	observed.Generation, observed.EvictedReason = object.GetGeneration(), report.evictedReason
	observed.Held = report.Held
	return c.updateStatus(ctx, report.Mailbox, resource, object, current, NextStatus(observed, current))
}

// updateStatus writes the status of a config if it changed.
func (c *Controller) updateStatus(ctx context.Context, mailbox logicalcluster.Name, resource schema.GroupVersionResource, object *unstructured.Unstructured, current, next edgev2alpha1.SyncerConfigStatus) error {
	client, ok := c.mailboxes.Client(mailbox)
	if !ok || apiequality.Semantic.DeepEqual(current, next) {
		return nil
	}
	before, err := json.Marshal(map[string]any{"status": object.Object["status"]})
	if err != nil {
		return err
	}
	after, err := json.Marshal(map[string]any{"status": next, "metadata": map[string]any{"uid": object.GetUID()}})
	if err != nil {
		return err
	}
	patch, err := jsonpatch.CreateMergePatch(before, after)
	if err != nil {
		return err
	}
	_, err = client.Resource(resource).Patch(requestclass.With(ctx, requestclass.Extra), object.GetName(), types.MergePatchType, patch, metav1.PatchOptions{FieldManager: "synchub"}, "status")
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("cannot write the status of %s %s: %w", object.GetKind(), object.GetName(), err)
	}
	return nil
}
