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

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/synchub-dev/synchub/controllers/sync"
	"github.com/synchub-dev/synchub/controllers/sync/boundary"
	"github.com/synchub-dev/synchub/controllers/sync/relation"
	"github.com/synchub-dev/synchub/provider/targets"
)

// forms are what objects of a resource of the mailbox can be on a target.
type forms struct {
	// targets begin with the resource itself; others are what conversions make of it, or have made.
	targets []sync.TargetResource
	// unresolved are kinds that conversions and relations speak of and the target does not serve, or that are refused.
	unresolved []sync.Unavailable
	// relations are those by which objects of the resource travel with others.
	relations []*relation.Relation
	// unknown is true if it cannot be found out now what more there is.
	unknown bool
}

func (f forms) has(group schema.GroupResource) bool {
	return slices.ContainsFunc(f.targets, func(target sync.TargetResource) bool { return target.GroupResource() == group })
}

func (f forms) equal(options sync.Options) bool {
	return slices.Equal(f.targets, options.Targets) && slices.Equal(f.unresolved, options.Unresolved) && slices.Equal(f.relations, options.Relations)
}

// formsOf returns the forms of a resource. Where they cannot be found out now, those of before hold on.
func (m *Manager) formsOf(managed *managed, resource sync.Resource, relations []*relation.Relation, published []sync.Resource) (forms, error) {
	result := forms{targets: []sync.TargetResource{resource.OnTarget()}, relations: relations}
	var errs []error
	var refused []sync.Unavailable
	for _, kind := range managed.matcher.Downstreams(schema.GroupKind{Group: resource.Group, Kind: resource.Kind}) {
		allows, err := resource.ConvertsTo(published, kind)
		if refusal, ok := errors.AsType[*boundary.RefusalError](err); ok {
			refused = append(refused, sync.Unavailable{Target: schema.GroupResource{Group: kind.Group}, Kind: kind.Kind, Reason: refusal.Reason, Message: refusal.Message})
			continue
		}
		if kind.Version == "" && kind.Group == resource.Group {
			kind.Version = versionOf(published, kind.GroupKind(), resource.Version)
		}
		served, err := resolve(managed.describe().Connection, kind)
		result, err = result.taking(sync.TargetResource{GroupVersionResource: served, Kind: kind.Kind, Allows: allows}, kind.GroupVersion().WithResource(""), err)
		errs = append(errs, err)
	}
	for _, related := range relations {
		if resource.HasTargetVersions() && result.has(related.OnTarget.GroupResource()) {
			// Whatever the relation names, it is written in one version.
			continue
		}
		kind, err := resolveResource(managed.describe().Connection, related.OnTarget)
		result, err = result.taking(sync.TargetResource{GroupVersionResource: related.OnTarget, Kind: kind, Allows: resource.Allows}, related.OnTarget, err)
		errs = append(errs, err)
	}
	if running, ok := managed.pairs[resource.GroupResource()]; ok && result.unknown {
		return forms{targets: running.controller.Targets, unresolved: running.controller.Unresolved, relations: relations}, errors.Join(errs...)
	}
	if len(result.unresolved) > 0 {
		managed.unresolved.Store(true)
	}
	result.unresolved = append(result.unresolved, refused...)
	result.targets = append(result.targets, managed.leftovers(resource, result)...)
	return result, errors.Join(errs...)
}

// versionOf returns the version in which objects of a kind of the target are written, if a PublishedResource has a choice; else
// the other one.
func versionOf(published []sync.Resource, kind schema.GroupKind, otherwise string) string {
	for _, resource := range published {
		target := resource.OnTarget()
		if resource.HasTargetVersions() && !resource.Leaving && target.GroupVersion().WithKind(target.Kind).GroupKind() == kind {
			return target.Version
		}
	}
	return otherwise
}

// taking returns the forms with one more that was asked for, or with why it cannot be added. The error is for the log.
func (f forms) taking(found sync.TargetResource, asked schema.GroupVersionResource, err error) (forms, error) {
	switch {
	case errors.Is(err, targets.ErrNotServed):
		missing := sync.Unavailable{Target: asked.GroupResource(), Kind: found.Kind, Reason: sync.ReasonNotServed, Message: err.Error()}
		if !slices.Contains(f.unresolved, missing) {
			f.unresolved = append(f.unresolved, missing)
		}
	case errors.Is(err, errAway), errors.Is(err, targets.ErrAsked):
		f.unknown = true
	case err != nil:
		f.unknown = true
		return f, fmt.Errorf("cannot find out what %s %s is on the target: %w", asked.GroupResource(), found.Kind, err)
	case !f.has(found.GroupResource()):
		f.targets = append(f.targets, found)
	}
	return f, nil
}

// errAway means that a target cannot be asked now; the manager is told when it can.
var errAway = errors.New("the target is away")

func resolve(connection *targets.Connection, kind schema.GroupVersionKind) (schema.GroupVersionResource, error) {
	if !connection.Up() {
		return schema.GroupVersionResource{}, errAway
	}
	return connection.ResolveSoon(kind)
}

func resolveResource(connection *targets.Connection, resource schema.GroupVersionResource) (kind string, err error) {
	if !connection.Up() {
		return "", errAway
	}
	return connection.ResolveResourceSoon(resource)
}

// leftovers returns what conversions of former times have made of a resource, as long as it is not known that nothing is
// left of it.
func (t *managed) leftovers(resource sync.Resource, current forms) []sync.TargetResource {
	var left []sync.TargetResource
	for group, record := range t.recorded {
		wasItself := record.Own && group == resource.GroupResource()
		if current.has(group) || !wasItself && !slices.Contains(record.ConvertedFrom, resource.GroupResource()) {
			continue
		}
		running, ok := t.pairs[resource.GroupResource()]
		if ok && running.controller.EmptyOf(group) {
			continue
		}
		kind := ""
		if ok {
			kind = running.controller.KindOf(group)
		}
		left = append(left, sync.TargetResource{GroupVersionResource: group.WithVersion(record.Version), Kind: kind})
	}
	slices.SortFunc(left, func(a, b sync.TargetResource) int { return compareResources(a.GroupResource(), b.GroupResource()) })
	return left
}
