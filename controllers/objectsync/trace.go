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
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

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

// traceShownOnTarget tells the trace of a write that the cache of the target shows it.
func (c *Controller) traceShownOnTarget(target *targetResource, object *cachedCopy) {
	if c.Tracer != nil {
		c.states.targetExpectations.Observed(target.Ref(keyOf(object)), object)
	}
}

// traceShownInMailbox tells the trace of a write that the cache of the mailbox shows it.
func (c *Controller) traceShownInMailbox(key types.NamespacedName, object *unstructured.Unstructured) {
	if c.Tracer != nil {
		c.states.mailboxExpectations.Observed(key, object)
	}
}
