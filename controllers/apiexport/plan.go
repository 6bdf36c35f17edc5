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
	"errors"
	"fmt"
	"slices"

	apisv1alpha1 "github.com/kcp-dev/sdk/apis/apis/v1alpha1"
	apisv1alpha2 "github.com/kcp-dev/sdk/apis/apis/v1alpha2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	synchubv1alpha1 "github.com/synchub-dev/synchub/apis/synchub/v1alpha1"
	"github.com/synchub-dev/synchub/controllers/published"
	"github.com/synchub-dev/synchub/controllers/sync"
	"github.com/synchub-dev/synchub/provider/mailboxes"
)

// namespaces are always watched in mailboxes: filters and relations ask for their labels.
var namespaces = schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}

// planner makes plans of PublishedResources. It asks, and changes nothing.
type planner struct {
	compiler *published.Compiler
	// schemaOf returns a schema of the provider workspace, nil if there is none of that name.
	schemaOf func(ctx context.Context, name string) (*apisv1alpha1.APIResourceSchema, error)
	// discover returns what mailboxes have of an API that another export provides. The error may be [mailboxes.ErrNotServed].
	discover func(ctx context.Context, resource schema.GroupVersionResource) (published.API, error)
	// before is what was in force by the plan that was carried out last.
	before map[types.UID]memory
}

// memory is what is remembered of a PublishedResource in force.
type memory struct {
	name  string
	group schema.GroupResource
	entry entry
	// api is what mailboxes had, synced how its objects were synced; nil for not at all.
	api    *published.API
	synced *sync.Resource
}

// plan is what is to be done, and to be said.
type plan struct {
	candidates []*candidate
	companions []*companion
	// waits is true if something is missing that may come without an event.
	waits bool
}

// make returns the plan for all PublishedResources and the export as it is, of which nothing is changed.
func (p *planner) make(ctx context.Context, resources []synchubv1alpha1.PublishedResource, export *apisv1alpha2.APIExportSpec) (*plan, error) {
	slices.SortFunc(resources, oldestFirst)
	made := &plan{}
	draft := export.DeepCopy()
	owners := map[schema.GroupResource]*candidate{}
	for i := range resources {
		if leaves(&resources[i]) {
			continue
		}
		candidate, err := p.look(ctx, &resources[i], draft)
		if err != nil {
			return nil, err
		}
		if candidate.isLeaving() {
			candidate.leave()
			made.waits = true
		}
		made.candidates = append(made.candidates, candidate)
		owner, taken := owners[candidate.group]
		switch {
		case !candidate.named():
		case taken:
			candidate.keepOut(ReasonDuplicate, "%s is published by the older PublishedResource %s.", candidate.group, owner.published.Name)
		default:
			owners[candidate.group] = candidate
			candidate.enter(draft)
		}
		made.waits = made.waits || candidate.flaw != nil && candidate.flaw.reason == ReasonNotServed
	}
	for _, candidate := range made.candidates {
		if candidate.inForce() {
			p.relate(ctx, made, candidate, owners, draft)
		}
	}
	return made, nil
}

// enter adds what the export must carry for the candidate.
func (c *candidate) enter(draft *apisv1alpha2.APIExportSpec) {
	if c.entry == nil {
		return
	}
	if why := conflict(draft, *c.entry); why != "" {
		c.keepOut(ReasonConflict, "%s", why)
		return
	}
	merge(draft, *c.entry)
}

// look finds out what becomes of one PublishedResource by itself.
func (p *planner) look(ctx context.Context, resource *synchubv1alpha1.PublishedResource, draft *apisv1alpha2.APIExportSpec) (*candidate, error) {
	c := newCandidate(resource)
	way, err := published.WayOf(&resource.Spec)
	switch {
	case err != nil:
		p.lookAtNonsense(c, err, draft)
	case way == published.NativeClaim:
		native, _ := published.NativeAPI(resource.Spec.Resource)
		c.api, c.entry = &native, &entry{GroupResource: native.GroupResource()}
	case way == published.ForeignClaim:
		p.lookAbroad(ctx, c)
	default:
		if err := p.lookAtSchema(ctx, c); err != nil {
			return nil, err
		}
	}
	if c.api != nil && c.absent == nil && c.flaw == nil {
		p.compile(c)
	}
	return c, nil
}

// lookAtNonsense leaves what mailboxes have of a PublishedResource that says nothing sensible.
func (p *planner) lookAtNonsense(c *candidate, err error, draft *apisv1alpha2.APIExportSpec) {
	before, ok := p.before[c.published.UID]
	switch {
	case ok:
		c.group, c.entry, c.api = before.group, &before.entry, before.api
		c.invalid(err)
	case c.named() && (exportedAs(draft, c.group) != nil || claimOn(draft, c.group) != nil):
		c.invalid(err)
	default:
		c.keepOut(ReasonInvalid, "%s.", inOneLine(err))
	}
}

// lookAbroad finds out about what another export provides.
func (p *planner) lookAbroad(ctx context.Context, c *candidate) {
	spec := &c.published.Spec
	named := published.ForeignAPI(spec)
	c.entry = &entry{GroupResource: named.GroupResource(), identity: spec.API.IdentityHash}
	api, err := p.discover(ctx, named)
	if before := p.before[c.published.UID]; err != nil && before.api != nil && before.api.GroupVersionResource == named {
		// What was there is not gone because it cannot be seen now.
		api, err = *before.api, nil
	}
	c.unknown = isUnknown(err)
	switch kind := published.InMailbox(spec).Kind; {
	case errors.Is(err, mailboxes.ErrNotServed):
		c.fault(ReasonNotServed, "Mailboxes do not serve %s in version %s, or not yet: they must bind the export with the identity spec.api.identityHash.", named.GroupResource(), named.Version)
	case err != nil:
		c.fault(ReasonNotServed, "It cannot be found out now whether mailboxes serve %s.", named.GroupResource())
	case kind != "" && kind != api.Kind:
		c.api = &api
		c.invalid(fmt.Errorf("spec.resource.kind: mailboxes have %s as %s", named.GroupResource(), api.Kind))
	default:
		c.api = &api
	}
}

// isUnknown tells whether discovery has failed, and not found that something is not served.
func isUnknown(err error) bool {
	return err != nil && (errors.Is(err, mailboxes.ErrNoEndpoint) || !errors.Is(err, mailboxes.ErrNotServed))
}

// lookAtSchema finds out about what the hub exports.
func (p *planner) lookAtSchema(ctx context.Context, c *candidate) error {
	name := c.published.Status.SchemaName
	if name == "" {
		c.keepOut(ReasonSchemaMissing, "There is no schema yet; see the condition SchemaReady.")
		return nil
	}
	exported, err := p.schemaOf(ctx, name)
	if err != nil {
		return err
	}
	if exported == nil {
		c.keepOut(ReasonSchemaMissing, "The schema %s is not in the provider workspace.", name)
		return nil
	}
	c.entry = &entry{GroupResource: schema.GroupResource{Group: exported.Spec.Group, Resource: exported.Spec.Names.Plural}, schema: name}
	c.group = c.entry.GroupResource
	api, err := published.SchemaAPI(&c.published.Spec, exported)
	switch before := p.before[c.published.UID]; {
	case err == nil:
		c.api = &api
	case c.schemaReady() == nil:
		c.fault(ReasonSchemaMissing, "The schema for the changed spec is being made.")
		c.api, c.synced = before.api, before.synced
	default:
		c.invalid(err)
		c.api = before.api
	}
	return nil
}

// compile makes of what mailboxes have what is to be synced.
func (p *planner) compile(c *candidate) {
	compiled, err := p.compiler.CompileObject(c.published, *c.api)
	if err != nil {
		c.invalid(err)
		return
	}
	c.synced = &compiled
	if ready := c.schemaReady(); c.entry.schema != "" && ready != nil && ready.Status != metav1.ConditionTrue && ready.Reason == ReasonInvalid {
		c.fault(ReasonInvalid, "%s", ready.Message)
	}
}
