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

package apiexport

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/kcp-dev/logicalcluster/v3"
	apisv1alpha2 "github.com/kcp-dev/sdk/apis/apis/v1alpha2"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

const (
	// minReorderInterval is how long kcp may take to bind a change of the export before the hub looks for APIs that it has not bound. After
	// each new order the hub waits twice as long, up to maxReorderInterval: kcp processes all bindings of the export each time.
	minReorderInterval = 5 * time.Second
	maxReorderInterval = 10 * time.Minute
)

// UnboundReader returns the schemas that kcp has not bound, as [mailboxes.Mailboxes] does.
type UnboundReader interface {
	// UnboundSchemas returns, for each workspace with a naming conflict, the schemas that kcp has not bound there, in the order of the argument.
	UnboundSchemas(resources []apisv1alpha2.ResourceSchema) map[logicalcluster.Name][]schema.GroupResource
}

// minTrials is how often a schema must have stopped the binding of a workspace before the hub assumes a
// conflict there. A schema that kcp has not established yet also stops the binding for a moment.
const minTrials = 2

// bindingOrder decides the order of the schemas in an export.
//
// kcp binds the schemas in that order, and stops at the first one with a name that a CRD in the workspace has
// (kcp v0.31.2, pkg/reconciler/apis/apibinding): it binds none of the later ones in that workspace. A bound
// schema stays bound in any later order. Therefore a schema that stops the binding of a workspace moves behind
// the schemas that have stopped it less often, until each unbound schema has stopped it minTrials times.
type bindingOrder struct {
	// unbound are the workspaces with unbound schemas.
	unbound map[logicalcluster.Name]*unboundWorkspace
	// generation is the generation of the export that next and pause apply to. Nothing is decided before next.
	generation int64
	next       time.Time
	pause      time.Duration
}

// unboundWorkspace is the state of a workspace with a naming conflict.
type unboundWorkspace struct {
	// missing are the unbound schemas in the order of the export. The first one stops the binding, or kcp will bind it next.
	missing []schema.GroupResource
	// since is when the current first schema became the first. isAttempted is true once kcp had time to bind it.
	since       time.Time
	isAttempted bool
	// trials counts how often a schema was tried as the first one.
	trials map[schema.GroupResource]int
}

// isDue reports whether kcp had time to bind the given generation of the export, and after which delay to call
// it again.
func (o *bindingOrder) isDue(generation int64, now time.Time) (isDue bool, requeueAfter time.Duration) {
	if o.generation != generation {
		if now.Sub(o.next) > maxReorderInterval {
			o.pause = 0
		}
		o.generation, o.next = generation, now.Add(max(o.pause, minReorderInterval))
	}
	wait := o.next.Sub(now)
	return wait <= 0, max(wait, 0)
}

// record records the schemas that kcp has not bound, in the order of the export. It returns the delay until
// kcp had time to bind the first schema of each workspace; zero if it had.
func (o *bindingOrder) record(unbound map[logicalcluster.Name][]schema.GroupResource, now time.Time) (wait time.Duration) {
	before := o.unbound
	o.unbound = map[logicalcluster.Name]*unboundWorkspace{}
	for name, missing := range unbound {
		if len(missing) == 0 {
			continue
		}
		workspace := before[name]
		if workspace == nil {
			workspace = &unboundWorkspace{trials: map[schema.GroupResource]int{}}
		}
		o.unbound[name] = workspace
		if remaining := workspace.record(missing, now); remaining > 0 && (wait == 0 || remaining < wait) {
			wait = remaining
		}
	}
	return wait
}

// record returns the delay until the first schema counts as attempted.
func (w *unboundWorkspace) record(missing []schema.GroupResource, now time.Time) (wait time.Duration) {
	if len(w.missing) == 0 || w.missing[0] != missing[0] {
		w.since, w.isAttempted = now, false
	}
	w.missing = missing
	wait = max(w.since.Add(minReorderInterval).Sub(now), 0)
	if wait == 0 && !w.isAttempted {
		w.isAttempted = true
		w.trials[missing[0]]++
	}
	return wait
}

// last returns the schemas of the workspace that must move behind its other unbound ones; none if the current order is right.
func (w *unboundWorkspace) last() map[schema.GroupResource]bool {
	fewest := minTrials
	for _, resource := range w.missing {
		fewest = min(fewest, w.trials[resource])
	}
	if !w.isAttempted || len(w.missing) == 1 || fewest == minTrials {
		return nil
	}
	last := map[schema.GroupResource]bool{w.missing[0]: true}
	for _, resource := range w.missing {
		if w.trials[resource] > fewest {
			last[resource] = true
		}
	}
	return last
}

// last returns the schemas that must move to the end of the export. It includes the first workspace, and all
// further workspaces that agree.
func (o *bindingOrder) last() map[schema.GroupResource]bool {
	last, ahead := map[schema.GroupResource]bool{}, map[schema.GroupResource]bool{}
	for _, name := range slices.Sorted(maps.Keys(o.unbound)) {
		workspace := o.unbound[name]
		behind := workspace.last()
		contradicts := slices.ContainsFunc(workspace.missing, func(resource schema.GroupResource) bool {
			return behind[resource] && ahead[resource] || !behind[resource] && last[resource]
		})
		if len(behind) == 0 || contradicts {
			continue
		}
		for _, resource := range workspace.missing {
			if behind[resource] {
				last[resource] = true
			} else {
				ahead[resource] = true
			}
		}
	}
	return last
}

// moved doubles the time until the next order.
func (o *bindingOrder) moved() {
	o.pause = min(max(2*o.pause, minReorderInterval), maxReorderInterval)
}

// moveToEnd returns the schemas with some of them at the end. The order is the same otherwise.
func moveToEnd(resources []apisv1alpha2.ResourceSchema, last map[schema.GroupResource]bool) []apisv1alpha2.ResourceSchema {
	isLast := func(resource apisv1alpha2.ResourceSchema) int {
		if last[schema.GroupResource{Group: resource.Group, Resource: resource.Name}] {
			return 1
		}
		return 0
	}
	ordered := slices.Clone(resources)
	slices.SortStableFunc(ordered, func(a, b apisv1alpha2.ResourceSchema) int { return isLast(a) - isLast(b) })
	return ordered
}

// reorderExports changes the order of the schemas in the exports if naming conflicts block other schemas. It
// returns when to check again; zero if nothing waits for kcp.
func (c *Controller) reorderExports(ctx context.Context, mailbox *apisv1alpha2.APIExport) (requeueAfter time.Duration, err error) {
	requeueAfter, err = c.reorder(ctx, mailbox, &c.order, c.Mailboxes)
	if err != nil || c.Workloads == nil {
		return requeueAfter, err
	}
	var workload apisv1alpha2.APIExport
	err = c.Provider.GetClient().Get(ctx, types.NamespacedName{Name: c.WorkloadExport}, &workload)
	if apierrors.IsNotFound(err) {
		return requeueAfter, nil
	}
	if err != nil {
		return 0, fmt.Errorf("cannot get the APIExport %s: %w", c.WorkloadExport, err)
	}
	recheck, err := c.reorder(ctx, &workload, &c.workloadOrder, c.Workloads)
	if recheck > 0 && (requeueAfter == 0 || recheck < requeueAfter) {
		requeueAfter = recheck
	}
	return requeueAfter, err
}

// reorder reorders one export, which it does not change in memory.
func (c *Controller) reorder(ctx context.Context, export *apisv1alpha2.APIExport, order *bindingOrder, workspaces UnboundReader) (requeueAfter time.Duration, err error) {
	now := c.Clock.Now()
	wait := order.record(workspaces.UnboundSchemas(export.Spec.Resources), now)
	if isDue, requeueAfter := order.isDue(export.Generation, now); !isDue {
		return requeueAfter, nil
	}
	last := order.last()
	changed := export.DeepCopy()
	changed.Spec.Resources = moveToEnd(export.Spec.Resources, last)
	if slices.EqualFunc(export.Spec.Resources, changed.Spec.Resources, func(a, b apisv1alpha2.ResourceSchema) bool { return a.Group == b.Group && a.Name == b.Name }) {
		return wait, nil
	}
	log.FromContext(ctx).Info("naming conflicts in some workspaces keep kcp from binding other APIs there, so it gets them in another order", "export", export.Name, "last", len(last))
	if err := c.Provider.GetClient().Patch(ctx, changed, client.MergeFromWithOptions(export, client.MergeFromWithOptimisticLock{})); err != nil {
		return 0, fmt.Errorf("cannot order the schemas of the APIExport %s: %w", export.Name, err)
	}
	order.moved()
	return max(order.pause, minReorderInterval), nil
}
