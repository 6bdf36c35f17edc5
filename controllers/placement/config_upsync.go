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

// desiredUpsync returns the spec of the config for the upsync of a workspace in a mailbox. It returns nil if
// the placements of the workspace are unknown: the config then stays as it is. It drops an entry only if kcp
// confirms that no placement has it any more, because without the entry the hub would remove upsynced objects
// from the mailbox.
func (c *Controller) desiredUpsync(ctx context.Context, key configKey, existing *edgev2alpha1.SyncerConfig) (*edgev2alpha1.SyncerConfigSpec, error) {
	w := c.findWorkspace(key.workspace)
	if w == nil {
		return nil, nil
	}
	w.lock.Lock()
	active := w.placements
	w.lock.Unlock()
	if active == nil {
		return nil, nil
	}
	spec := &edgev2alpha1.SyncerConfigSpec{StatusReturn: new(true), DeletionPolicy: edgev2alpha1.DeletionPolicyDelete}
	var elsewhere []*resolvedPlacement
	for _, one := range active.all {
		if destination, ok := one.mailboxes[key.mailbox]; ok && destination.MayUpsync {
			spec.Upsync = appendMissing(spec.Upsync, one.Upsync)
		} else if len(one.Upsync) > 0 {
			elsewhere = append(elsewhere, one)
		}
	}
	if existing == nil || len(appendMissing(slices.Clone(spec.Upsync), existing.Spec.Upsync)) == len(spec.Upsync) {
		return spec, nil
	}
	mayWithdraw := !active.partial
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

// isUpsyncGone reports whether kcp itself confirms that no placement may upsync from the cluster of a mailbox.
func (c *Controller) isUpsyncGone(ctx context.Context, key configKey, placements []*resolvedPlacement) (bool, error) {
	syncTarget, inventory, err := c.verifiedSyncTarget(ctx, key.mailbox)
	if inventory == nil || err != nil {
		return false, err
	}
	return !slices.ContainsFunc(placements, func(one *resolvedPlacement) bool {
		selected, mayUpsync := one.verifiedSelects(inventory, &syncTarget)
		return selected && mayUpsync
	}), nil
}

// appendMissing appends the entries of more that a list does not contain.
func appendMissing(entries, more []edgev2alpha1.UpsyncSet) []edgev2alpha1.UpsyncSet {
	for _, entry := range more {
		if !slices.ContainsFunc(entries, func(other edgev2alpha1.UpsyncSet) bool { return apiequality.Semantic.DeepEqual(entry, other) }) {
			entries = append(entries, entry)
		}
	}
	return entries
}

// enqueueUpsync enqueues the workspace's configs for upsync in all mailboxes that have one or need one.
func (w *workspace) enqueueUpsync(active *placements) {
	for mailbox := range w.Fleet.Snapshot().Mailboxes() {
		key := configKey{mailbox, w.cluster}
		existing, readable := w.readConfig(key)
		if existing != nil || !readable || active.upsyncs(key) {
			w.configRequests.Publish(key)
		}
	}
}

// upsyncs reports whether a placement may upsync from the cluster of a mailbox.
func (p *placements) upsyncs(key configKey) bool {
	return slices.ContainsFunc(p.all, func(one *resolvedPlacement) bool {
		return len(one.Upsync) > 0 && one.mailboxes[key.mailbox].MayUpsync
	})
}
