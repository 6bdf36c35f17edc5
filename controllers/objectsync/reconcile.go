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
	"math/rand/v2"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/synchub-dev/synchub/controllers/plan"
	"github.com/synchub-dev/synchub/provider/requestclass"
	"github.com/synchub-dev/synchub/provider/tracing"
)

// forbiddenRetryDelay is the retry delay after the target denied a request. No watch reports new permissions.
const forbiddenRetryDelay = 5 * time.Minute

// outcome is the result of one pass.
type outcome struct {
	decision plan.Decision
	// up is true if the decision is about an upsync.
	up bool
	// requeueAfter is the delay until the next pass if no event comes; zero for none.
	requeueAfter time.Duration
	// outdated is true if an object had changed since the hub read it. The next pass plans again.
	outdated bool
	// deferred are fields that the hub no longer ignores, but leaves unchanged on the target until the source changes.
	deferred []string
	// drift is how the copy differs, if the hub only reports that; nil for other decisions.
	drift *driftReport
	// excluded is true if the object exists, and the configs' own rules keep it from being copied.
	excluded bool
	// statusReturned is true if the pass wrote a status to the mailbox.
	statusReturned bool
	// unreadable is true if the mailbox could not be read.
	unreadable bool
	syncStatus syncStatusOutcome
}

// direction returns the direction of the decision: down or up.
func (o outcome) direction() string {
	if o.up {
		return directionUp
	}
	return directionDown
}

// Reconcile makes one pass for a key, and reports its outcome. While the target is away it does nothing; [Controller.Resume] enqueues the key again.
func (c *Controller) Reconcile(ctx context.Context, key types.NamespacedName) (reconcile.Result, error) {
	if !c.Connection.Health.IsUp() && !c.Resource.Unpublishing {
		c.tried(key, true)
		c.enqueuer.changes.excludeFromLatency(key)
		return reconcile.Result{}, nil
	}
	// Count the pass before it loads the matcher: see [Controller.IsEmpty].
	c.activeReconciles.Add(1)
	defer c.activeReconciles.Add(-1)
	ctx, pass := c.reporter.begin(requestclass.With(ctx, requestclass.Object), key)
	defer c.enqueuer.changes.endPass(key)
	outcome, err := c.runPass(ctx, key)
	c.reporter.end(pass, outcome, err)
	defer c.tried(key, !outcome.unreadable)
	isStopping := ctx.Err() != nil && !errors.Is(ctx.Err(), context.DeadlineExceeded)
	if isStopping || outcome.unreadable {
		// The key keeps its state: [Controller.OnReset] enqueues it when the mailbox can be read.
		return reconcile.Result{}, nil
	}
	c.nameWatches.update(key, err)
	if err == nil {
		c.reporter.succeeded(pass, outcome)
		c.completeRename(key, outcome)
		after := c.checkPods(ctx, key)
		if outcome.requeueAfter > 0 && (after == 0 || outcome.requeueAfter < after) {
			after = outcome.requeueAfter
		}
		return reconcile.Result{RequeueAfter: after}, nil
	}
	failure, failedPasses := c.reporter.failed(ctx, pass, outcome, err)
	if failure.Reason == plan.ReasonTargetUnreachable || apierrors.IsUnauthorized(err) {
		c.Connection.Health.ProbeNow()
		c.reporter.restoreChanges(pass)
	}
	if c.isRetriedByEvent(failure) {
		return reconcile.Result{}, nil
	}
	// The failure is reported, so it is no error of the controller.
	return reconcile.Result{RequeueAfter: retryAfter(failure, outcome, failedPasses)}, nil
}

// completeRename enqueues the key under which the object was upsynced before, once the object exists under its new name.
func (c *Controller) completeRename(key types.NamespacedName, outcome outcome) {
	if outcome.decision.Action == plan.VerifyAbsence {
		return
	}
	if from, waits := c.enqueuer.states.completeRename(key); waits {
		c.enqueuer.enqueue(changePriority, from)
	}
}

// tried records for the first pass that a key was tried. When all were tried, the summaries of the configs may have changed.
func (c *Controller) tried(key types.NamespacedName, readable bool) {
	if c.firstPass.tried(key, readable) {
		c.OnChange()
	}
}

// isRetriedByEvent reports whether an event will enqueue the key when the cause of the failure is gone: [Controller.Uncordon] for
// a cordon, [Controller.Release] for a kcp that went back to an earlier state, [Controller.onAvailabilityChanged] for an API that the target
// does not serve, the mailbox cache for exceeded limits, and a watch of the target for an object that differs there.
func (c *Controller) isRetriedByEvent(failure Failure) bool {
	return failure.Reason == plan.ReasonTargetCordoned && c.executor.toTarget.isCordoned() || failure.Reason == plan.ReasonMailboxLimitExceeded ||
		failure.Reason == plan.ReasonNotServed && !c.Status.IsServed() || failure.Reason == plan.ReasonDrifted || failure.Reason == plan.ReasonAdoptionReported ||
		failure.Reason == plan.ReasonStoreWentBack && c.Held()
}

// retryAfter returns the delay until a failure is retried; zero if an event does that. It grows with the number of failed passes.
func retryAfter(failure Failure, outcome outcome, failedPasses int) time.Duration {
	switch failure.Reason {
	case plan.ReasonContended, plan.ReasonRemovedByCluster, plan.ReasonRemovedInMailbox:
		return outcome.requeueAfter
	case plan.ReasonForbidden, plan.ReasonCannotWithdraw:
		return forbiddenRetryDelay + time.Duration(rand.Int64N(int64(forbiddenRetryDelay/10))) //nolint:gosec // jitter needs no secrecy
	}
	return retryDelay(failedPasses)
}

// retryDelay returns the delay after a number of failed passes.
func retryDelay(failedPasses int) time.Duration {
	// With 16 doublings the delay already exceeds the maximum.
	return min(retryBaseDelay<<min(failedPasses-1, 16), retryMaxDelay)
}

// runPass makes one pass: it observes both sides of the key, plans, and executes the plan. It returns an error if the object
// cannot be synced.
func (c *Controller) runPass(ctx context.Context, key types.NamespacedName) (outcome, error) {
	trace := tracing.FromContext(ctx)
	planning := trace.Now()
	s := c.observer.observe(key)
	switch {
	case !s.Readable:
		return outcome{decision: plan.Decision{Action: plan.None, Cause: plan.Cause(plan.Unknown)}, unreadable: true}, nil
	case c.Resource.Unpublishing:
		return requeueIfOutdated(outcome{decision: plan.Decision{Action: plan.None, Cause: plan.Cause(plan.Suspended)}}, c.executor.toMailbox.removeFinalizer(ctx, key, s.InMailbox))
	}
	var down outcome
	if s.Down != nil {
		p := c.planner.PlanDown(s)
		trace.Planned(planning)
		var err error
		down, err = c.executor.executeDown(ctx, p)
		down.syncStatus = newSyncStatusOutcome(s, down, err)
		if err != nil || s.Up == nil {
			return down, err
		}
		planning = trace.Now()
	}
	p := c.planner.PlanUp(s)
	trace.Planned(planning)
	if p.Confirm {
		s.Up.Missing.Answer = c.executor.confirmMissing(ctx, key, s.Up.Missing.Ref, s.Matcher)
		p = c.planner.PlanUp(s)
	}
	up, err := c.executor.executeUp(ctx, p)
	up.syncStatus, up.excluded = down.syncStatus, up.excluded || down.excluded
	return up, err
}
