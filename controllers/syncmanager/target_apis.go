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

package syncmanager

import (
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/synchub-dev/synchub/controllers/objectsync"
	"github.com/synchub-dev/synchub/controllers/plan"
	"github.com/synchub-dev/synchub/controllers/plan/policy"
	"github.com/synchub-dev/synchub/controllers/plan/related"
	"github.com/synchub-dev/synchub/provider/targets"
)

// resolvedAPIs are the APIs of the target that the hub may write objects of one mailbox resource to.
type resolvedAPIs struct {
	// apis begins with the resource itself. The following ones result from conversions, including earlier ones.
	apis []plan.TargetAPI
	// unresolved are the kinds that conversions and relations name but the target does not serve, or the hub refuses.
	unresolved []objectsync.UnavailableResource
	// relations are the relations that make objects of the resource related objects.
	relations []*related.Relation
	// unknown is true if the target does not respond to requests for further APIs now.
	unknown bool
}

func (r resolvedAPIs) has(groupResource schema.GroupResource) bool {
	return slices.ContainsFunc(r.apis, func(target plan.TargetAPI) bool { return target.GroupResource() == groupResource })
}

func (r resolvedAPIs) equal(options objectsync.Options) bool {
	return slices.Equal(r.apis, options.TargetAPIs) && slices.Equal(r.unresolved, options.UnresolvedKinds) && slices.Equal(r.relations, options.Relations)
}

// resolveTargetAPIsOf returns the APIs of a resource. If they cannot be determined now, it returns the running controller's.
func (p *pass) resolveTargetAPIsOf(resource plan.Resource, relations []*related.Relation) (resolvedAPIs, error) {
	result, isUp := resolvedAPIs{apis: []plan.TargetAPI{resource.TargetAPI()}, relations: relations}, p.target.Connection.Health.IsUp()
	var errs []error
	var denied []objectsync.UnavailableResource
	for _, kind := range p.state.matcher.DownstreamKinds(schema.GroupKind{Group: resource.Group, Kind: resource.Kind}) {
		allows, err := resource.CheckConversion(p.published, kind)
		if refusal, ok := errors.AsType[*policy.DeniedError](err); ok {
			denied = append(denied, objectsync.UnavailableResource{GroupResource: schema.GroupResource{Group: kind.Group}, Kind: kind.Kind, Reason: refusal.Reason, Message: refusal.Message})
			continue
		}
		if kind.Version == "" && kind.Group == resource.Group {
			kind.Version = writtenVersion(p.published, kind.GroupKind(), resource.Version)
		}
		served, err := schema.GroupVersionResource{}, errTargetDown
		if isUp {
			served, err = p.target.Connection.APIs.ResolveAsync(kind)
		}
		result, err = result.with(plan.TargetAPI{GroupVersionResource: served, Kind: kind.Kind, Allowed: allows}, kind.GroupVersion().WithResource(""), err)
		errs = append(errs, err)
	}
	for _, related := range relations {
		if resource.HasMultipleTargetVersions() && result.has(related.OnTarget.GroupResource()) {
			// A resource with several target versions is written in one of them, whichever version the relation names.
			continue
		}
		kind, err := "", errTargetDown
		if isUp {
			kind, err = p.target.Connection.APIs.ResolveResourceAsync(related.OnTarget)
		}
		result, err = result.with(plan.TargetAPI{GroupVersionResource: related.OnTarget, Kind: kind, Allowed: resource.Allowed}, related.OnTarget, err)
		errs = append(errs, err)
	}
	if running, ok := p.state.syncControllers[resource.GroupResource()]; ok && result.unknown {
		return resolvedAPIs{apis: running.controller.TargetAPIs, unresolved: running.controller.UnresolvedKinds, relations: relations}, errors.Join(errs...)
	}
	if len(result.unresolved) > 0 {
		p.state.apiEvents.hasUnresolved.Store(true)
	}
	result.unresolved = append(result.unresolved, denied...)
	result.apis = append(result.apis, p.formerTargets(resource, result)...)
	return result, errors.Join(errs...)
}

// writtenVersion returns the version that objects of a target kind are written in if a PublishedResource has
// several, else otherwise.
func writtenVersion(published []plan.Resource, kind schema.GroupKind, otherwise string) string {
	for _, resource := range published {
		target := resource.TargetAPI()
		if resource.HasMultipleTargetVersions() && !resource.Unpublishing && target.GroupVersion().WithKind(target.Kind).GroupKind() == kind {
			return target.Version
		}
	}
	return otherwise
}

// with returns the APIs with one more API, or with the reason why it cannot be added. The error is only for the log.
func (r resolvedAPIs) with(found plan.TargetAPI, asked schema.GroupVersionResource, err error) (resolvedAPIs, error) {
	switch {
	case errors.Is(err, targets.ErrNotServed):
		missing := objectsync.UnavailableResource{GroupResource: asked.GroupResource(), Kind: found.Kind, Reason: plan.ReasonNotServed, Message: err.Error()}
		if !slices.Contains(r.unresolved, missing) {
			r.unresolved = append(r.unresolved, missing)
		}
	case errors.Is(err, errTargetDown), errors.Is(err, targets.ErrPending):
		r.unknown = true
	case err != nil:
		r.unknown = true
		return r, fmt.Errorf("cannot find out what %s %s is on the target: %w", asked.GroupResource(), found.Kind, err)
	case !r.has(found.GroupResource()):
		r.apis = append(r.apis, found)
	}
	return r, nil
}

// errTargetDown means that the target is down. The manager is enqueued when it is up.
var errTargetDown = errors.New("the target is down")

// formerTargets returns the APIs that earlier conversions of a resource wrote, until they are known to be empty.
func (p *pass) formerTargets(resource plan.Resource, current resolvedAPIs) []plan.TargetAPI {
	var former []plan.TargetAPI
	for groupResource, record := range p.state.writtenResources {
		wasItself := record.Direct && groupResource == resource.GroupResource()
		if current.has(groupResource) || !wasItself && !slices.Contains(record.ConvertedFrom, resource.GroupResource()) {
			continue
		}
		running, ok := p.state.syncControllers[resource.GroupResource()]
		if ok && running.controller.IsEmptyFor(groupResource) {
			continue
		}
		kind := ""
		if ok {
			kind = running.controller.Status.TargetKind(groupResource)
		}
		former = append(former, plan.TargetAPI{GroupVersionResource: groupResource.WithVersion(record.Version), Kind: kind})
	}
	slices.SortFunc(former, func(a, b plan.TargetAPI) int { return compareResources(a.GroupResource(), b.GroupResource()) })
	return former
}

// crdEventTimeout is how long after an event of a CRD the manager polls for its kind.
const crdEventTimeout = 10 * time.Second

// apiEvents decides which changes of the APIs of a target need a reconcile.
type apiEvents struct {
	// hasUnresolved is true if a conversion names a kind that the target does not serve. lastCRDEvent is the time of the
	// target's last event of a CRD.
	hasUnresolved atomic.Bool
	lastCRDEvent  atomic.Pointer[time.Time]
	// multiVersion are the resources of the target that are published in several versions. lastVersionEvent is the time of the
	// last event of one of their CRDs.
	multiVersion     atomic.Pointer[map[schema.GroupResource]bool]
	lastVersionEvent atomic.Pointer[time.Time]
}

// onCRD records an event of the CRD of a resource, and reports whether the event needs a reconcile.
func (e *apiEvents) onCRD(defined schema.GroupResource, now time.Time) (needsReconcile bool) {
	e.lastCRDEvent.Store(&now)
	if e.isMultiVersion(defined) {
		e.lastVersionEvent.Store(&now)
		return true
	}
	return e.hasUnresolved.Load()
}

// concernAny reports whether a reconcile depends on the APIs that the target serves.
func (e *apiEvents) concernAny() bool {
	multiVersion := e.multiVersion.Load()
	return e.hasUnresolved.Load() || multiVersion != nil && len(*multiVersion) > 0
}

// isMultiVersion reports whether a change of the resource's CRD may lead to another version.
func (e *apiEvents) isMultiVersion(target schema.GroupResource) bool {
	multiVersion := e.multiVersion.Load()
	return multiVersion != nil && (*multiVersion)[target]
}

// awaitsCRD reports whether a missing kind, or another version, may be served soon: the event of a CRD precedes discovery by a
// moment.
func (e *apiEvents) awaitsCRD(now time.Time) bool {
	isRecent := func(event *time.Time) bool { return event != nil && now.Sub(*event) < crdEventTimeout }
	return e.hasUnresolved.Load() && isRecent(e.lastCRDEvent.Load()) || isRecent(e.lastVersionEvent.Load())
}
