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

package placement

import (
	"context"
	"slices"

	apiequality "k8s.io/apimachinery/pkg/api/equality"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
)

// maxUpsync bounds the entries for upsync of all placements of one workspace. A SyncerConfig may have ten times as many.
const maxUpsync = 1_000

// desiredUpsync returns the spec of the config for the upsync of a workspace in a mailbox. It returns nil if the config must stay as it
// is, because the placements of the workspace are unknown. Entries go only for a reason that is certain, as copies do: without its
// entry, the hub would remove an object from the mailbox.
func (c *Controller) desiredUpsync(ctx context.Context, key configKey, existing *edgev2alpha1.SyncerConfig) (*edgev2alpha1.SyncerConfigSpec, error) {
	w := c.findWorkspace(key.workspace)
	if w == nil {
		return nil, nil
	}
	w.lock.Lock()
	inForce := w.placements
	w.lock.Unlock()
	if inForce == nil {
		return nil, nil
	}
	spec := &edgev2alpha1.SyncerConfigSpec{StatusReturn: new(true), DeletionPolicy: edgev2alpha1.DeletionPolicyDelete}
	var elsewhere []*placementInForce
	for _, one := range inForce.all {
		if destination, ok := one.mailboxes[key.mailbox]; ok && destination.MayUpsync {
			spec.Upsync = appendMissing(spec.Upsync, one.Upsync)
		} else if len(one.Upsync) > 0 {
			elsewhere = append(elsewhere, one)
		}
	}
	if existing == nil || len(appendMissing(slices.Clone(spec.Upsync), existing.Spec.Upsync)) == len(spec.Upsync) {
		return spec, nil
	}
	mayWithdraw := !inForce.partial
	var err error
	if mayWithdraw && len(elsewhere) > 0 {
		if mayWithdraw, err = c.isUpsyncGone(ctx, key, elsewhere); err != nil {
			return nil, err
		}
	}
	if !mayWithdraw {
		spec.Upsync = appendMissing(spec.Upsync, existing.Spec.Upsync)
	}
	return spec, nil
}

// isUpsyncGone reports whether kcp itself shows that none of the placements may upsync from the cluster of a mailbox.
func (c *Controller) isUpsyncGone(ctx context.Context, key configKey, placements []*placementInForce) (bool, error) {
	syncTarget, inventory, err := c.verifiedSyncTarget(ctx, key.mailbox)
	if inventory == nil || err != nil {
		return false, err
	}
	return !slices.ContainsFunc(placements, func(one *placementInForce) bool {
		selected, mayUpsync := one.verifiedSelects(inventory, &syncTarget)
		return selected && mayUpsync
	}), nil
}

// appendMissing appends those entries to a list that it does not have.
func appendMissing(entries, more []edgev2alpha1.UpsyncSet) []edgev2alpha1.UpsyncSet {
	for _, entry := range more {
		if !slices.ContainsFunc(entries, func(other edgev2alpha1.UpsyncSet) bool { return apiequality.Semantic.DeepEqual(entry, other) }) {
			entries = append(entries, entry)
		}
	}
	return entries
}

// enqueueUpsync enqueues the configs for the upsync of a workspace in all mailboxes that have one, or are to have one.
func (w *workspace) enqueueUpsync(inForce *placements) {
	for mailbox := range w.Fleet.Snapshot().Mailboxes() {
		key := configKey{mailbox, w.cluster}
		existing, readable := w.readConfig(key)
		if existing != nil || !readable || inForce.upsyncs(key) {
			w.configRequests.Publish(key)
		}
	}
}

// upsyncs reports whether a placement has upsync from the cluster of a mailbox.
func (p *placements) upsyncs(key configKey) bool {
	return slices.ContainsFunc(p.all, func(one *placementInForce) bool {
		return len(one.Upsync) > 0 && one.mailboxes[key.mailbox].MayUpsync
	})
}
