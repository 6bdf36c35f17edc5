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
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/synchub-dev/synchub/controllers/objectsync/plan"
	"github.com/synchub-dev/synchub/provider/metrics/requestmetrics"
	"github.com/synchub-dev/synchub/provider/metrics/targetlabels"
	"github.com/synchub-dev/synchub/provider/tracing"
)

// beginTrace returns the trace of a pass that covers the pending changes; nil if the hub records no traces.
func (c *Controller) beginTrace(key types.NamespacedName, pending pendingChange) *tracing.Pass {
	if c.Tracer == nil {
		return nil
	}
	changed, origin := pending.firstChange()
	return c.Tracer.Pass(tracing.Subject{
		SyncTarget: c.SyncTarget, Inventory: targetlabels.Inventory(c.Owner.SyncTarget), Resource: c.Resource.GroupResource().String(), Key: key,
	}, changed, origin)
}

// firstChange returns when the first change was observed, zero for never, and on which side.
func (p pendingChange) firstChange() (at time.Time, origin string) {
	at, origin = p.since, "other"
	if !p.mailbox.IsZero() && (at.IsZero() || !p.mailbox.After(at)) {
		at, origin = p.mailbox, string(requestmetrics.Mailbox)
	}
	if !p.target.IsZero() && (at.IsZero() || p.target.Before(at) || p.target.Equal(at) && origin == "other") {
		at, origin = p.target, string(requestmetrics.Target)
	}
	return at, origin
}

// endTrace ends the trace of a pass with its outcome.
func (c *Controller) endTrace(trace *tracing.Pass, outcome outcome, err error) {
	if trace == nil {
		return
	}
	result := tracing.Result{Direction: outcome.direction(), Action: string(outcome.decision.Action), Cause: string(outcome.decision.Cause)}
	if err != nil {
		result.Reason = newFailure(c.redact(err)).Reason
	}
	trace.End(result)
}

// recordTargetObject remembers the response to a write until the cache shows it.
func (c *Controller) recordTargetObject(ctx context.Context, ref plan.Ref, written *cachedCopy) {
	c.states.onTarget.Finished(ref, written)
	if shown := tracing.FromContext(ctx).Acknowledgement(string(requestmetrics.Target)); shown != nil {
		c.states.onTarget.OnShown(ref, shown)
		// The event may have come before the response.
		c.states.onTarget.Observed(ref, c.targetResourceFor(ref.Resource).cache.Get(ref.Key))
	}
}

// recordTargetDelete remembers an accepted delete until the cache shows it. A released object counts as deleted.
func (c *Controller) recordTargetDelete(ctx context.Context, ref plan.Ref, uid types.UID) {
	c.states.onTarget.DeleteAccepted(ref, uid)
	if shown := tracing.FromContext(ctx).Acknowledgement(string(requestmetrics.Target)); shown != nil {
		c.states.onTarget.OnShown(ref, shown)
	}
}

// recordMailboxObject remembers the response to a write until the cache shows it.
func (c *Controller) recordMailboxObject(ctx context.Context, key types.NamespacedName, written *unstructured.Unstructured) {
	c.states.inMailbox.Finished(key, written)
	if shown := tracing.FromContext(ctx).Acknowledgement(string(requestmetrics.Mailbox)); shown != nil {
		c.states.inMailbox.OnShown(key, shown)
		// The event may have come before the response.
		cached, _ := c.Mailboxes.Get(c.Resource.GroupVersionResource, c.Mailbox, key)
		c.states.inMailbox.Observed(key, cached)
	}
}

// recordMailboxDelete remembers an accepted delete until the cache shows it.
func (c *Controller) recordMailboxDelete(ctx context.Context, key types.NamespacedName, uid types.UID) {
	c.states.inMailbox.DeleteAccepted(key, uid)
	if shown := tracing.FromContext(ctx).Acknowledgement(string(requestmetrics.Mailbox)); shown != nil {
		c.states.inMailbox.OnShown(key, shown)
	}
}

// observedOnTarget ends the wait for a write that the cache of the target shows.
func (c *Controller) observedOnTarget(target *targetResource, object *cachedCopy) {
	if c.Tracer != nil {
		c.states.onTarget.Observed(target.Ref(keyOf(object)), object)
	}
}

// observedInMailbox ends the wait for a write that the cache of the mailbox shows.
func (c *Controller) observedInMailbox(key types.NamespacedName, object *unstructured.Unstructured) {
	if c.Tracer != nil {
		c.states.inMailbox.Observed(key, object)
	}
}
