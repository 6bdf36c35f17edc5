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

// UnboundReader reports what kcp has not bound, as [mailboxes.Mailboxes] does.
type UnboundReader interface {
	// UnboundSchemas returns those of the schemas, in their order, that kcp has not bound in workspaces with a naming conflict.
	UnboundSchemas(resources []apisv1alpha2.ResourceSchema) map[logicalcluster.Name][]schema.GroupResource
}

// bindingOrder decides in which order an export lists its schemas.
//
// kcp binds them in that order, and stops at the first one whose names a CRD in the workspace has (kcp v0.31.2,
// pkg/reconciler/apis/apibinding): none of the later ones arrives in that workspace. What is bound stays bound, whatever the order is
// afterwards. Therefore a schema that stops the binding somewhere goes to the end, until all others are bound there once.
type bindingOrder struct {
	// stopping are the schemas at which the binding of a workspace has stopped.
	stopping map[logicalcluster.Name]map[schema.GroupResource]bool
	// generation is that of the export for which next and pause hold. Nothing is decided before next.
	generation int64
	next       time.Time
	pause      time.Duration
}

// isDue reports whether kcp had the time to bind the given generation of the export, and after how long to ask again.
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

// observe takes note of the schemas that kcp has not bound, in the order of the export, and returns those that must go to the end. It serves
// as many workspaces at once as agree about that, and at least the first. A workspace that was served has all that kcp can bind there, or
// has shown another schema that stops it.
func (o *bindingOrder) observe(unbound map[logicalcluster.Name][]schema.GroupResource) (last map[schema.GroupResource]bool) {
	before := o.stopping
	o.stopping = map[logicalcluster.Name]map[schema.GroupResource]bool{}
	last, waiting := map[schema.GroupResource]bool{}, map[schema.GroupResource]bool{}
	for _, workspace := range slices.Sorted(maps.Keys(unbound)) {
		missing := unbound[workspace]
		if len(missing) == 0 {
			continue
		}
		stopping := map[schema.GroupResource]bool{missing[0]: true}
		for _, resource := range missing {
			if before[workspace][resource] {
				stopping[resource] = true
			}
		}
		o.stopping[workspace] = stopping
		isStopping := func(resource schema.GroupResource) bool { return stopping[resource] }
		held := slices.DeleteFunc(slices.Clone(missing), isStopping)
		contradicts := slices.ContainsFunc(held, func(resource schema.GroupResource) bool { return last[resource] }) ||
			slices.ContainsFunc(missing, func(resource schema.GroupResource) bool { return stopping[resource] && waiting[resource] })
		if len(held) == 0 || contradicts {
			continue
		}
		maps.Copy(last, stopping)
		for _, resource := range held {
			waiting[resource] = true
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

// reorderExports changes the order of the schemas in the exports if naming conflicts keep others from being bound. It returns when to check
// again; zero if nothing waits for kcp.
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

// reorder does so for one export, which it does not change in memory.
func (c *Controller) reorder(ctx context.Context, export *apisv1alpha2.APIExport, order *bindingOrder, workspaces UnboundReader) (requeueAfter time.Duration, err error) {
	isDue, requeueAfter := order.isDue(export.Generation, c.Clock.Now())
	if !isDue {
		return requeueAfter, nil
	}
	last := order.observe(workspaces.UnboundSchemas(export.Spec.Resources))
	changed := export.DeepCopy()
	changed.Spec.Resources = moveToEnd(export.Spec.Resources, last)
	if slices.EqualFunc(export.Spec.Resources, changed.Spec.Resources, func(a, b apisv1alpha2.ResourceSchema) bool { return a.Group == b.Group && a.Name == b.Name }) {
		return 0, nil
	}
	log.FromContext(ctx).Info("naming conflicts in some workspaces keep kcp from binding other APIs there, so it gets them in another order", "export", export.Name, "last", len(last))
	if err := c.Provider.GetClient().Patch(ctx, changed, client.MergeFromWithOptions(export, client.MergeFromWithOptimisticLock{})); err != nil {
		return 0, fmt.Errorf("cannot order the schemas of the APIExport %s: %w", export.Name, err)
	}
	order.moved()
	return max(order.pause, minReorderInterval), nil
}
