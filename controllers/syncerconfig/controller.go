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
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/controllers/sync/selection"
	"github.com/synchub-dev/synchub/controllers/syncmanager"
	"github.com/synchub-dev/synchub/provider/mailboxes"
	"github.com/synchub-dev/synchub/provider/requests"
)

const (
	// interval is how often the configs of one mailbox are written at most (rule 1 of the design).
	interval = 5 * time.Second
	// soon is how long the first change waits for others. The status after a quiet time is thus nearly immediate.
	soon         = 200 * time.Millisecond
	writeTimeout = 30 * time.Second
	workers      = 4
)

// Controller writes the status of the configs of all mailboxes.
type Controller struct {
	mailboxes *mailboxes.Mailboxes
	manager   *syncmanager.Manager
	log       logr.Logger

	lock  gosync.Mutex
	queue priorityqueue.PriorityQueue[types.UID]
	// written is when the configs of a SyncTarget's mailbox were last looked at.
	written map[types.UID]time.Time
}

var _ syncmanager.Observer = &Controller{}

// NewController returns a controller that reports what the manager's sync controllers do.
func NewController(mailboxes *mailboxes.Mailboxes, manager *syncmanager.Manager, log logr.Logger) *Controller {
	return &Controller{mailboxes: mailboxes, manager: manager, log: log, written: map[types.UID]time.Time{}}
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
		RateLimiter:             workqueue.NewTypedItemExponentialFailureRateLimiter[types.UID](interval, 5*time.Minute),
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
	delay := max(soon, interval-time.Since(c.written[syncTarget]))
	c.queue.AddWithOpts(priorityqueue.AddOpts{After: delay}, syncTarget)
}

// Reconcile writes the status of the configs of one mailbox where it differs.
func (c *Controller) Reconcile(ctx context.Context, syncTarget types.UID) (reconcile.Result, error) {
	view, ok := c.manager.View(syncTarget)
	c.lock.Lock()
	if ok {
		c.written[syncTarget] = time.Now()
	} else {
		delete(c.written, syncTarget)
	}
	c.lock.Unlock()
	if !ok {
		return reconcile.Result{}, nil
	}
	report := newReport(view)
	var errs []error
	for _, resource := range syncmanager.ConfigResources {
		configs, _ := c.mailboxes.List(resource, view.Mailbox)
		for _, config := range configs {
			// One that is being deleted selects nothing any more.
			if config.GetDeletionTimestamp() == nil {
				errs = append(errs, c.write(ctx, report, resource, config))
			}
		}
	}
	return reconcile.Result{}, errors.Join(errs...)
}

func (c *Controller) write(ctx context.Context, report report, resource schema.GroupVersionResource, object *unstructured.Unstructured) error {
	var findings Findings
	var current edgev2alpha1.SyncerConfigStatus // both kinds share it
	switch object.GetKind() {
	case "SyncerConfig":
		var config edgev2alpha1.SyncerConfig
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &config); err != nil {
			return err
		}
		findings, current = report.findings(selection.SyncerConfigID(config.Name), config.Spec.Conversions), config.Status
		findings.Suspended = config.Spec.Suspend
	default:
		var config edgev2alpha1.EdgeSyncConfig
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &config); err != nil {
			return err
		}
		findings, current = report.findings(selection.EdgeSyncConfigID(config.Name), config.Spec.Conversions), config.Status
	}
	findings.Generation = object.GetGeneration()
	next := Status(findings, current)
	if apiequality.Semantic.DeepEqual(current, next) {
		return nil
	}
	return c.patch(ctx, report.Mailbox, resource, object, next)
}

func (c *Controller) patch(ctx context.Context, mailbox logicalcluster.Name, resource schema.GroupVersionResource, object *unstructured.Unstructured, next edgev2alpha1.SyncerConfigStatus) error {
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
	_, err = client.Resource(resource).Patch(requests.As(ctx, requests.Extra), object.GetName(), types.MergePatchType, patch, metav1.PatchOptions{FieldManager: "synchub"}, "status")
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("cannot write the status of %s %s: %w", object.GetKind(), object.GetName(), err)
	}
	return nil
}
