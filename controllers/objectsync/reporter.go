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
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/synchub-dev/synchub/controllers/internal/status"
	"github.com/synchub-dev/synchub/controllers/plan"
	"github.com/synchub-dev/synchub/controllers/plan/mutation"
	"github.com/synchub-dev/synchub/controllers/plan/transform"
	"github.com/synchub-dev/synchub/provider/metrics/targetlabels"
	"github.com/synchub-dev/synchub/provider/tracing"
)

// reporter reports the outcomes of passes: as failures, events, metrics and traces.
type reporter struct {
	resource *plan.Resource
	// syncTarget is the name of the SyncTarget.
	syncTarget string
	mailbox    *mailboxView
	target     *targetView
	states     *keyStates
	changes    *pendingChanges
	placed     *syncStatuses
	dropped    *droppedFields
	metrics    *controllerMetrics
	journal    *status.Journal
	// tracer is nil if the hub records no traces.
	tracer *tracing.Tracer
	// onChange is called when a summary may have changed.
	onChange func()
	clock    clock.PassiveClock
}

func newReporter(o *Options, mailbox *mailboxView, target *targetView, states *keyStates, changes *pendingChanges, placed *syncStatuses, dropped *droppedFields) *reporter {
	return &reporter{
		resource: &o.Resource, syncTarget: o.SyncTarget, mailbox: mailbox, target: target, states: states, changes: changes, placed: placed, dropped: dropped,
		metrics: newMetrics(o.Owner.SyncTarget, o.Resource, o.AggregateMetrics), tracer: o.Tracer, journal: o.Journal, onChange: o.OnChange, clock: o.Clock,
	}
}

// pass is the reporter's record of one pass.
type pass struct {
	key types.NamespacedName
	// pending are the changes that the pass covers, if hasPending is true.
	pending    pendingChange
	hasPending bool
	started    time.Time
	trace      *tracing.Pass
}

// begin takes the changes that a pass covers, and begins its trace.
func (r *reporter) begin(ctx context.Context, key types.NamespacedName) (context.Context, pass) {
	p := pass{key: key}
	p.pending, p.hasPending = r.changes.take(key)
	if r.tracer != nil {
		changed, origin := p.pending.firstChange()
		p.trace = r.tracer.Pass(tracing.Subject{
			SyncTarget: r.syncTarget, Inventory: targetlabels.Inventory(r.mailbox.owner.SyncTarget), Resource: r.resource.GroupResource().String(), Key: key,
		}, changed, origin)
	}
	p.started = r.clock.Now()
	return tracing.NewContext(ctx, p.trace), p
}

// end records the metrics of a pass, and ends its trace.
func (r *reporter) end(p pass, outcome outcome, err error) {
	r.metrics.observeReconcile(outcome, r.clock.Now().Sub(p.started), err)
	if p.trace == nil {
		return
	}
	result := tracing.Result{Direction: outcome.direction(), Action: string(outcome.decision.Action), Cause: string(outcome.decision.Cause)}
	if err != nil {
		result.Reason = newFailure(r.redact(err)).Reason
	}
	p.trace.End(result)
}

// succeeded records a pass without an error.
func (r *reporter) succeeded(p pass, outcome outcome) {
	r.recordState(p.key, outcome, nil)
	verifies := outcome.decision.Action == plan.VerifyAbsence
	if outcome.outdated || verifies {
		// The key is planned again, and its latency is measured then.
		r.changes.keepTimes(p.key, p.pending)
	} else {
		r.metrics.observeLatency(outcome, p.pending, r.clock.Now())
	}
	if verifies {
		// The failure stays: the deletion, which may fail again, follows when the absence is verified.
		r.placed.record(p.key, outcome.syncStatus, false)
		return
	}
	before, failed := r.states.clearFailure(p.key)
	if failed {
		r.metrics.failureChanged(before.Reason, "")
		r.onChange()
	}
	r.placed.record(p.key, outcome.syncStatus, failed)
}

// failed records a pass with an error. It returns the failure, and the number of consecutive failed passes.
func (r *reporter) failed(ctx context.Context, p pass, outcome outcome, err error) (failure Failure, failedPasses int) {
	r.recordState(p.key, outcome, err)
	failure = newFailure(r.redact(err))
	before, changed, failedPasses := r.states.setFailure(p.key, failure)
	if changed {
		r.metrics.failureChanged(before.Reason, failure.Reason)
		r.onChange()
		message := status.JournalFailing
		if failure.Differences != nil {
			message = status.JournalDiffering
		}
		r.log(message, failure.Reason, r.resource.GroupResource(), p.key, failure.Message)
		r.warn(ctx, p.key, failure)
	}
	if !changed && failure.Differences != nil && !before.Equal(failure) {
		// The fields are a part of the report, and have no event of their own.
		changed = true
		r.onChange()
	}
	r.placed.record(p.key, outcome.syncStatus, changed)
	return failure, failedPasses
}

// removed records that an object was removed from the target or from the mailbox, or released there. message is a message of package
// journal.
func (r *reporter) removed(message string, cause plan.Cause, resource schema.GroupResource, key types.NamespacedName) {
	r.log(message, string(cause), resource, key, "")
}

// log records an object in the log.
func (r *reporter) log(message, reason string, resource schema.GroupResource, key types.NamespacedName, detail string) {
	r.journal.Record(status.JournalEntry{
		Message: message, SyncTarget: r.syncTarget, Inventory: targetlabels.Inventory(r.mailbox.owner.SyncTarget), Resource: resource, Reason: reason,
	}, key, detail)
}

// restoreChanges makes the changes of a failed pass pending again, because the target is away.
func (r *reporter) restoreChanges(p pass) {
	if p.hasPending {
		r.changes.restore(p.key, p.pending)
	}
}

// recordState records the results of a pass that are reported beside the failure.
func (r *reporter) recordState(key types.NamespacedName, outcome outcome, err error) {
	found := findings{deferred: outcome.deferred, drift: outcome.drift}
	if err == nil {
		found.excluded, found.finished, found.former = outcome.excluded, outcome.decision.Cause == plan.Finished, outcome.decision.IsKept()
	}
	if r.states.setFindings(key, found) {
		r.onChange()
	}
}

// recordPrunedPaths records fields that the mailbox drops, and reports new ones.
func (r *reporter) recordPrunedPaths(configs, paths []string) {
	if len(paths) > 0 && r.dropped.add(configs, paths) {
		r.onChange()
	}
}

// warn writes an event about a failure on the mailbox object. The caller makes sure that there is one event per object and
// reason. Exceeded limits are reported in the config's status instead: an event per object would add to the load.
func (r *reporter) warn(ctx context.Context, key types.NamespacedName, failure Failure) {
	if failure.Reason == plan.ReasonMailboxLimitExceeded {
		return
	}
	object, known := r.mailbox.get(key)
	if known && object == nil && failure.Reason == plan.ReasonRemovedInMailbox {
		// The event refers to the object's name, because its user looks for the object under that name.
		object = &unstructured.Unstructured{}
		object.SetGroupVersionKind(r.resource.GroupVersion().WithKind(r.resource.Kind))
		object.SetNamespace(key.Namespace)
		object.SetName(key.Name)
	}
	if !known || object == nil {
		return
	}
	client, ok := r.mailbox.mailboxes.Client(r.mailbox.name)
	if !ok {
		return
	}
	if err := status.WarnObject(ctx, client, object, failure.Reason, failure.Message, r.clock.Now()); err != nil {
		// The status of the SyncerConfig reports the failure too.
		log.FromContext(ctx).Info("cannot write an event to the mailbox", "resource", r.resource.Resource, "reason", failure.Reason, "error", err.Error())
	}
}

// redact returns an error without the content of Secrets: errors of expressions and templates quote values.
func (r *reporter) redact(err error) error {
	secrets := schema.GroupResource{Resource: "secrets"}
	if r.resource.GroupResource() != secrets && r.target.resourceFor(secrets) == nil {
		return err
	}
	const withheld = "; the hub withholds the details, which could quote the Secret"
	if mutated, ok := errors.AsType[*mutation.Error](err); ok {
		return &mutation.Error{Step: mutated.Step, Path: mutated.Path, Err: errors.New("it fails" + withheld)}
	}
	if rule, ok := errors.AsType[*plan.RuleError](err); ok {
		return &plan.RuleError{Field: rule.Field, Err: errors.New("it fails" + withheld)}
	}
	if refused, ok := errors.AsType[*transform.InvalidObjectError](err); ok && strings.HasPrefix(refused.Field, "spec.") {
		return &transform.InvalidObjectError{Field: refused.Field, Message: "it yields no legal name" + withheld}
	}
	return err
}
