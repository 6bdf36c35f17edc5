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
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/controllers/objectsync/plan/selection"
	"github.com/synchub-dev/synchub/controllers/schemacheck"
	"github.com/synchub-dev/synchub/controllers/syncmanager"
	"github.com/synchub-dev/synchub/provider/mailboxes"
	"github.com/synchub-dev/synchub/provider/metrics/requestmetrics"
)

const (
	// writeInterval is how often the configs of one mailbox are written at most (rule 1 of the design).
	writeInterval = 5 * time.Second
	// busyWriteInterval is the same while many objects wait, for to count all of them again and again, and to write that, takes the
	// servers and the hub time that these need; and while not all has been looked at that was there at the start, for what was
	// written before is nearer to the truth than what is half known.
	busyWriteInterval = 15 * time.Second
	// busyThreshold is how many objects of a mailbox must wait for that.
	busyThreshold = 10
	// busyWriteSpacing is how far apart these writes are over all mailboxes in which many wait, the first of each included, and
	// longestInterval the limit of what that makes of busyInterval: in a burst over a hundred mailboxes, kcp took as long for them
	// as for a third of the objects.
	busyWriteSpacing     = 500 * time.Millisecond
	maxBusyWriteInterval = 2 * time.Minute
	// changeDelay is how long the first change waits for others. The status after a quiet time is thus nearly immediate.
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

	lock          gosync.Mutex
	queue         priorityqueue.PriorityQueue[types.UID]
	schedules     map[types.UID]writeSchedule // by SyncTarget
	busyMailboxes int                         // of looks
}

// writeSchedule is when the configs of a mailbox were last looked at, or first to be, and when they are again at the soonest.
type writeSchedule struct {
	lastWrite, nextWrite time.Time
	// busy tells that many of the mailbox's objects waited, and due when it is its turn among those where many do, or just did:
	// after last, if it waits for one.
	busy bool
	due  time.Time
}

var _ syncmanager.Observer = &Controller{}

// NewController returns a controller that reports what the manager's sync controllers do.
func NewController(mailboxes *mailboxes.Mailboxes, manager *syncmanager.Manager, clock clock.Clock, log logr.Logger) *Controller {
	return &Controller{mailboxes: mailboxes, manager: manager, clock: clock, log: log, schedules: map[types.UID]writeSchedule{}}
}

// NeedLeaderElection makes the manager run the controller on the leader only.
func (c *Controller) NeedLeaderElection() bool { return true }

// Start works until ctx ends.
func (c *Controller) Start(ctx context.Context) error {
	worker, err := controller.NewTypedUnmanaged("syncerconfig", controller.TypedOptions[types.UID]{
		SkipNameValidation:      new(true),
		MaxConcurrentReconciles: workers,
		ReconciliationTimeout:   writeTimeout,
		Reconciler:              c,
		RateLimiter:             workqueue.NewTypedItemExponentialFailureRateLimiter[types.UID](writeInterval, 5*time.Minute),
		LogConstructor: func(syncTarget *types.UID) logr.Logger {
			if syncTarget == nil {
				return c.log.V(2)
			}
			return c.log.WithValues("syncTargetUID", *syncTarget)
		},
	})
	if err != nil {
		return err
	}
	if err := worker.Watch(source.TypedFunc[types.UID](func(_ context.Context, queue workqueue.TypedRateLimitingInterface[types.UID]) error {
		c.lock.Lock()
		defer c.lock.Unlock()
		c.queue = queue.(priorityqueue.PriorityQueue[types.UID])
		return nil
	})); err != nil {
		return err
	}
	return worker.Start(ctx)
}

// Changed implements [syncmanager.Observer].
func (c *Controller) Changed(syncTarget types.UID) {
	c.lock.Lock()
	defer c.lock.Unlock()
	if c.queue == nil {
		return
	}
	delay := max(changeDelay, c.schedules[syncTarget].nextWrite.Sub(c.clock.Now()))
	c.queue.AddWithOpts(priorityqueue.AddOpts{After: delay}, syncTarget)
}

// Reconcile writes the status of the configs of one mailbox where it differs.
func (c *Controller) Reconcile(ctx context.Context, syncTarget types.UID) (reconcile.Result, error) {
	if halt := c.manager.NotSynced(syncTarget); halt.Reason != "" {
		return c.reportNotSynced(ctx, syncTarget, halt)
	}
	view, ok := c.manager.View(syncTarget)
	if !ok {
		c.forget(syncTarget)
		return reconcile.Result{}, nil
	}
	if requeueAfter := c.scheduleWrite(syncTarget, view); requeueAfter > 0 {
		return reconcile.Result{RequeueAfter: requeueAfter}, nil
	}
	report := newReport(view)
	if limits := c.mailboxes.MailboxLimitError(view.Mailbox); limits.Evicted {
		report.evictedReason = limits.Error()
	}
	var errs []error
	for _, resource := range syncmanager.ConfigResources {
		configs, _ := c.mailboxes.List(resource, view.Mailbox)
		for _, config := range configs {
			// One that is being deleted selects nothing any more.
			if config.GetDeletionTimestamp() == nil && ctx.Err() == nil {
				errs = append(errs, c.reconcileConfig(ctx, report, resource, config))
			}
		}
	}
	if err := errors.Join(errs...); err != nil || !report.availability.isIncomplete() {
		return reconcile.Result{}, err
	}
	// Nothing tells of it when what needs no change has been tried, or is seen again.
	return reconcile.Result{RequeueAfter: busyWriteInterval}, nil
}

// reportNotSynced says in the configs of a mailbox that nothing is synced. What they say of objects stays: it was observed before.
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

// decodeStatus reads the status of a config, of whichever kind: both share it.
func decodeStatus(config *unstructured.Unstructured) (edgev2alpha1.SyncerConfigStatus, error) {
	var read struct {
		Status edgev2alpha1.SyncerConfigStatus `json:"status"`
	}
	err := runtime.DefaultUnstructuredConverter.FromUnstructured(map[string]any{"status": config.Object["status"]}, &read)
	return read.Status, err
}

// scheduleWrite notes that a mailbox's configs are being looked at, unless it returns how much later that is to be.
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

// scheduleWriteWith is begin for a mailbox of which that is known.
func (c *Controller) scheduleWriteWith(syncTarget types.UID, busy, known bool) (requeueAfter time.Duration) {
	c.lock.Lock()
	defer c.lock.Unlock()
	now, seen := c.clock.Now(), c.schedules[syncTarget]
	if seen.lastWrite.IsZero() && !known {
		seen.lastWrite = now
	}
	c.addBusy(seen.busy, -1)
	switch others := totalBusySpacing(c.busyMailboxes); {
	case busy && !seen.due.After(seen.lastWrite):
		seen.due = now.Add(max(busyWriteInterval-now.Sub(seen.lastWrite), min(others, maxBusyWriteInterval)))
	case seen.busy && !busy:
		seen.due = earlier(seen.due, now.Add(min(others, writeInterval)))
	}
	seen.busy = busy
	c.addBusy(seen.busy, 1)
	if requeueAfter = delayUntilDue(now, seen, known); requeueAfter > 0 {
		seen.nextWrite = now.Add(requeueAfter)
	} else {
		seen.lastWrite, seen.nextWrite, seen.due = now, now.Add(writeInterval), now
		if busy {
			seen.due = now.Add(min(max(busyWriteInterval, totalBusySpacing(c.busyMailboxes)), maxBusyWriteInterval))
		}
	}
	c.schedules[syncTarget] = seen
	return requeueAfter
}

func earlier(one, other time.Time) time.Time {
	if one.Before(other) {
		return one
	}
	return other
}

// totalBusySpacing is how long the configs of so many mailboxes take in turn.
func totalBusySpacing(mailboxes int) time.Duration {
	return time.Duration(mailboxes) * busyWriteSpacing
}

func (c *Controller) forget(syncTarget types.UID) {
	c.lock.Lock()
	defer c.lock.Unlock()
	c.addBusy(c.schedules[syncTarget].busy, -1)
	delete(c.schedules, syncTarget)
}

// addBusy wants the lock.
func (c *Controller) addBusy(busy bool, more int) {
	if busy {
		c.busyMailboxes += more
	}
}

// delayUntilDue returns how long to wait before the configs of a mailbox are looked at, until it is its turn, and while not all that was
// there at the start is known. It is short enough not to miss for long that this is over.
func delayUntilDue(now time.Time, seen writeSchedule, known bool) time.Duration {
	if !known {
		return max(0, min(changeDelay, busyWriteInterval-now.Sub(seen.lastWrite)))
	}
	return max(0, min(writeInterval, seen.due.Sub(now)))
}

func (c *Controller) reconcileConfig(ctx context.Context, report report, resource schema.GroupVersionResource, object *unstructured.Unstructured) error {
	var findings ObservedConfig
	var current edgev2alpha1.SyncerConfigStatus // both kinds share it
	id := selection.SyncerConfigID(object.GetName())
	switch object.GetKind() {
	case "SyncerConfig":
		var config edgev2alpha1.SyncerConfig
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &config); err != nil {
			return err
		}
		findings, current = report.observedConfig(id, config.Spec.Conversions), config.Status
		findings.Suspended = config.Spec.Suspend
	default:
		id = selection.EdgeSyncConfigID(object.GetName())
		var config edgev2alpha1.EdgeSyncConfig
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &config); err != nil {
			return err
		}
		findings, current = report.observedConfig(id, config.Spec.Conversions), config.Status
	}
	switch inForce := report.Matcher.HasConfig(id); {
	case !inForce && report.Matcher.IsPartial():
		findings = ObservedConfig{BeyondLimits: true, MissingAPIs: findings.MissingAPIs}
	case mailboxes.ProjectionOf(object) != mailboxes.FullObject:
		// It is about to be in force, or not to be any more.
		return nil
	}
	findings.Generation, findings.EvictedReason = object.GetGeneration(), report.evictedReason
	return c.updateStatus(ctx, report.Mailbox, resource, object, current, NextStatus(findings, current))
}

// updateStatus writes the status of a config if it is another one.
func (c *Controller) updateStatus(ctx context.Context, mailbox logicalcluster.Name, resource schema.GroupVersionResource, object *unstructured.Unstructured, current, next edgev2alpha1.SyncerConfigStatus) error {
	if apiequality.Semantic.DeepEqual(current, next) {
		return nil
	}
	return c.patchStatus(ctx, mailbox, resource, object, next)
}

func (c *Controller) patchStatus(ctx context.Context, mailbox logicalcluster.Name, resource schema.GroupVersionResource, object *unstructured.Unstructured, next edgev2alpha1.SyncerConfigStatus) error {
	client, ok := c.mailboxes.Client(mailbox)
	if !ok {
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
	_, err = client.Resource(resource).Patch(requestmetrics.WithClass(ctx, requestmetrics.Extra), object.GetName(), types.MergePatchType, patch, metav1.PatchOptions{FieldManager: "synchub"}, "status")
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("cannot write the status of %s %s: %w", object.GetKind(), object.GetName(), err)
	}
	return nil
}
