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

package objectsync

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/synchub-dev/synchub/controllers/objectsync/plan"
	"github.com/synchub-dev/synchub/provider/mailboxes"
	"github.com/synchub-dev/synchub/provider/metrics/requestmetrics"
)

// forbiddenRetryDelay is how soon something is tried again that the target did not permit: no watch tells when it does.
const forbiddenRetryDelay = 5 * time.Minute

// outcome is what became of one object.
type outcome struct {
	decision plan.Decision
	// up is true if the decision is about what comes up.
	up bool
	// requeueAfter is when to look at the object again though nothing happens; zero for never.
	requeueAfter time.Duration
	// stale is true if the write came too late: the cache is about to show what came between.
	stale bool
	// deferred are fields that are left to the target until the source changes, though they are not ignored any more.
	deferred []string
	// statusReturned is true if a status was written to the mailbox.
	statusReturned bool
}

// Reconcile brings one object in sync. While the target is away it does nothing; [Controller.Resume] makes up for it.
func (c *Controller) Reconcile(ctx context.Context, key types.NamespacedName) (reconcile.Result, error) {
	defer c.firstPass.processed(key)
	if !c.Connection.IsUp() && !c.Resource.Unpublishing {
		c.pendingChanges.waitForTarget(key)
		return reconcile.Result{}, nil
	}
	// Before the matcher is looked at: see Empty.
	c.activeReconciles.Add(1)
	defer c.activeReconciles.Add(-1)
	ctx = requestmetrics.WithClass(ctx, requestmetrics.Object)
	pending, waits := c.pendingChanges.take(key)
	started := c.Clock.Now()
	outcome, err := c.reconcile(ctx, key)
	ended := c.Clock.Now()
	c.metrics.observeReconcile(outcome, ended.Sub(started), err)
	if ctx.Err() != nil && !errors.Is(ctx.Err(), context.DeadlineExceeded) {
		// The controller is being stopped; the object has done nothing wrong.
		return reconcile.Result{}, nil
	}
	c.updateNameWaiter(key, err)
	c.recordState(key, outcome, err)
	if err == nil {
		c.recordLatency(key, outcome, pending, ended)
		if before, failed := c.failures.clear(key); failed {
			c.metrics.failureChanged(before.Reason, "")
			c.OnChange()
		}
		c.renameCompleted(key)
		return reconcile.Result{RequeueAfter: outcome.requeueAfter}, nil
	}
	failure := newFailure(c.redact(err))
	if failure.Reason == ReasonTargetUnreachable || apierrors.IsUnauthorized(err) {
		c.Connection.ProbeNow()
		if waits {
			c.pendingChanges.putBack(key, pending)
		}
	}
	if before, changed := c.failures.set(key, failure); changed {
		c.metrics.failureChanged(before.Reason, failure.Reason)
		c.OnChange()
		c.warn(ctx, key, failure)
	}
	if c.isRetriedByEvent(failure) {
		return reconcile.Result{}, nil
	}
	if after := retryAfter(failure, outcome); after > 0 {
		return reconcile.Result{RequeueAfter: after}, nil
	}
	return reconcile.Result{}, fmt.Errorf("%s %s: %w", c.Resource.Resource, key, c.redact(err))
}

// recordState notes what is to be said of an object beside whether it failed.
func (c *Controller) recordState(key types.NamespacedName, outcome outcome, err error) {
	c.failures.setFormer(key, err == nil && outcome.decision.Cause == plan.FormerMailbox)
	if c.failures.setDeferred(key, outcome.deferred) {
		c.OnChange()
	}
}

// isRetriedByEvent tells whether something tells when the cause of a failure has gone: [Controller.Uncordon], which knows of it by
// now, or the mailbox, when it has room for the object.
func (c *Controller) isRetriedByEvent(failure Failure) bool {
	return failure.Reason == ReasonTargetCordoned && c.isCordoned() || failure.Reason == ReasonMailboxLimitExceeded
}

// recordLatency is called when what was to be done about an object is done, or is put off until it is decided once more.
func (c *Controller) recordLatency(key types.NamespacedName, outcome outcome, pending pendingChange, now time.Time) {
	if outcome.stale || outcome.decision.Action == plan.VerifyAbsence {
		c.pendingChanges.decideLater(key, pending)
		return
	}
	c.metrics.observeLatency(outcome, pending, now)
}

// retryAfter returns when to try again what failed; zero leaves that to the queue, which tries less and less often.
func retryAfter(failure Failure, outcome outcome) time.Duration {
	switch failure.Reason {
	case ReasonContended:
		return outcome.requeueAfter
	case ReasonForbidden:
		return forbiddenRetryDelay + time.Duration(rand.Int64N(int64(forbiddenRetryDelay/10))) //nolint:gosec // jitter needs no secrecy
	default:
		return 0
	}
}

// reconcile makes one pass: it observes both sides of the key, plans, and executes the plan. The error is why the object fails.
func (c *Controller) reconcile(ctx context.Context, key types.NamespacedName) (outcome, error) {
	s := c.observe(key)
	switch {
	case !s.readable:
		return outcome{decision: plan.Decision{Action: plan.None, Cause: plan.Unknown}}, nil
	case c.Resource.Unpublishing:
		return requeueIfStale(outcome{decision: plan.Decision{Action: plan.None, Cause: plan.Suspended}}, c.removeFinalizer(ctx, key, s.source))
	}
	var result outcome
	if s.down != nil {
		var err error
		if result, err = c.executeDown(ctx, s, c.planDown(s.down, s)); err != nil || s.up == nil {
			return result, err
		}
	}
	if s.up.unconfirmed != nil {
		c.confirmMissingSource(ctx, s)
	}
	return c.executeUp(ctx, s, c.planUp(s.up, s))
}

// observe reads everything that one pass needs to know about a key.
func (c *Controller) observe(key types.NamespacedName) *snapshot {
	s := &snapshot{key: key, matcher: c.matcher.Load()}
	s.source, s.readable = c.mailboxObject(key)
	switch {
	case !s.readable, c.Resource.Unpublishing:
	case c.isUpsynced(s.source):
		s.up = c.observeUp(s)
	default:
		if len(c.upsyncIndex.refsOf(key)) > 0 {
			s.up = c.observeUp(s)
		}
		s.down = c.observeDown(s)
	}
	return s
}

// mailboxObject returns the object of the mailbox, nil if there is none; known is false if the mailbox cannot be read
// now. What was written a moment ago counts even if the cache does not show it yet.
func (c *Controller) mailboxObject(key types.NamespacedName) (object *unstructured.Unstructured, known bool) {
	cached, state := c.Mailboxes.Get(c.Resource.GroupVersionResource, c.Mailbox, key)
	if state == mailboxes.Unknown {
		return nil, false
	}
	object, deleted := c.mailboxExpectations.current(key, cached)
	if deleted {
		now := c.Clock.Now().UTC().Format(time.RFC3339)
		object = object.DeepCopy()
		_ = unstructured.SetNestedField(object.Object, now, "metadata", "deletionTimestamp")
	}
	return object, true
}

// warn writes an event about a failure on the object in the mailbox, if there is one. Where the mailbox has too much already,
// its config says so.
func (c *Controller) warn(ctx context.Context, key types.NamespacedName, failure Failure) {
	if failure.Reason == ReasonMailboxLimitExceeded {
		return
	}
	if object, known := c.mailboxObject(key); known && object != nil {
		c.events.warn(ctx, c.Resource, object, failure)
	}
}

// updateNameWaiter watches the name on the target that an object did not get, until it is tried with another result.
func (c *Controller) updateNameWaiter(key types.NamespacedName, err error) {
	var ref *targetRef
	if taken, ok := errors.AsType[*nameTakenError](err); ok {
		ref = &taken.ref
	}
	if left := c.nameWaiters.set(key, ref); left != nil {
		c.watchName(*left, false)
		// Somebody may have begun to wait for it meanwhile.
		if len(c.nameWaiters.waitingFor(*left)) > 0 {
			c.watchName(*left, true)
		}
	}
	if ref != nil {
		c.watchName(*ref, true)
	}
}

// watchName begins to watch a name on the target, or ceases to.
func (c *Controller) watchName(ref targetRef, wanted bool) {
	target := c.targetResourceFor(ref.resource)
	switch {
	case target == nil:
	case wanted:
		target.takenNames.Add(ref.key)
		c.runNameWatch(target)
	default:
		target.takenNames.Remove(ref.key)
	}
}

// renameCompleted has what came up under a former name looked at, now that it is there under this one.
func (c *Controller) renameCompleted(to types.NamespacedName) {
	if from, waits := c.pendingRenames.complete(to); waits {
		c.enqueue(changePriority, from)
	}
}
