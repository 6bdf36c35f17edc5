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
	"github.com/synchub-dev/synchub/controllers/plan"
	"github.com/synchub-dev/synchub/controllers/publishedresource"
	"github.com/synchub-dev/synchub/provider/mailboxes"
)

// namespaces are always watched in mailboxes: filters and relations read the labels of namespaces.
var namespaces = schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}

// planner computes plans from PublishedResources. It only reads.
type planner struct {
	compiler *publishedresource.Compiler
	// getSchema returns a schema of the provider workspace, or nil if there is none of that name.
	getSchema func(ctx context.Context, name string) (*apisv1alpha1.APIResourceSchema, error)
	// discover returns the API that another export provides to mailboxes. The error may be [mailboxes.ErrNotServed].
	discover func(ctx context.Context, resource schema.GroupVersionResource) (publishedresource.API, error)
	// previous holds the published states of the last plan that the controller executed, by the UID of the
	// PublishedResource.
	previous map[types.UID]publishedState
}

// publishedState is the part of a resourcePlan that the next plan needs.
type publishedState struct {
	name          string
	groupResource schema.GroupResource
	entry         exportEntry
	// api is the API that mailboxes had. synced is nil if the objects were not synced.
	api    *publishedresource.API
	synced *plan.Resource
	// compiledFrom is the PublishedResource that synced was compiled from.
	compiledFrom *synchubv1alpha1.PublishedResource
}

// exportPlan holds the entries of the export and the resources to sync, and the problems to report.
type exportPlan struct {
	resources   []*resourcePlan
	relatedAPIs []*relatedAPI
	// needsPolling is true if something is missing whose arrival may cause no event.
	needsPolling bool
}

// newPlan returns the plan for all PublishedResources on top of the export's current spec, which it does not change.
func (p *planner) newPlan(ctx context.Context, resources []synchubv1alpha1.PublishedResource, export *apisv1alpha2.APIExportSpec) (*exportPlan, error) {
	slices.SortFunc(resources, publishedresource.OldestFirst)
	plan := &exportPlan{}
	draft := export.DeepCopy()
	owners := map[schema.GroupResource]*resourcePlan{}
	for i := range resources {
		if isUnpublished(&resources[i]) {
			continue
		}
		resource, err := p.planResource(ctx, &resources[i], draft)
		if err != nil {
			return nil, err
		}
		if resource.isUnpublishing() {
			resource.setUnpublishing()
			plan.needsPolling = true
		}
		plan.resources = append(plan.resources, resource)
		owner, isDuplicate := owners[resource.groupResource]
		switch {
		case !resource.isNamed():
		case isDuplicate:
			resource.setNotExported(ReasonDuplicate, "%s is published by the older PublishedResource %s.", resource.groupResource, owner.published.Name)
		default:
			owners[resource.groupResource] = resource
			resource.addToExport(draft)
		}
		plan.needsPolling = plan.needsPolling || resource.problem != nil && resource.problem.reason == ReasonNotServed
	}
	for _, resource := range plan.resources {
		if resource.isActive() {
			p.planRelated(ctx, plan, resource, owners, draft)
		}
	}
	return plan, nil
}

// addToExport adds the entry of the PublishedResource to the draft, or records a conflict.
func (c *resourcePlan) addToExport(draft *apisv1alpha2.APIExportSpec) {
	if c.entry == nil {
		return
	}
	if conflict := conflictMessage(draft, *c.entry); conflict != "" {
		c.setNotExported(ReasonConflict, "%s", conflict)
		return
	}
	addEntry(draft, *c.entry)
}

// planResource plans one PublishedResource independently of the other ones.
func (p *planner) planResource(ctx context.Context, resource *synchubv1alpha1.PublishedResource, draft *apisv1alpha2.APIExportSpec) (*resourcePlan, error) {
	c := newResourcePlan(resource)
	source, err := publishedresource.APISourceOf(&resource.Spec)
	switch {
	case err != nil:
		p.planInvalid(c, err, draft)
	case source == publishedresource.NativeClaim:
		native, _ := publishedresource.NativeAPI(resource.Spec.Resource)
		c.api, c.entry = &native, &exportEntry{GroupResource: native.GroupResource()}
	case source == publishedresource.ForeignClaim:
		p.planForeignClaim(ctx, c)
	default:
		if err := p.planOwnSchema(ctx, c); err != nil {
			return nil, err
		}
	}
	if c.api != nil && c.notExported == nil && c.problem == nil {
		p.compile(c)
	}
	return c, nil
}

// planInvalid keeps the API that mailboxes already have from a PublishedResource with an invalid spec.
func (p *planner) planInvalid(c *resourcePlan, err error, draft *apisv1alpha2.APIExportSpec) {
	previous, ok := p.previous[c.published.UID]
	switch {
	case ok:
		c.groupResource, c.entry, c.api = previous.groupResource, &previous.entry, previous.api
		c.setInvalid(err)
	case c.isNamed() && (findResourceSchema(draft, c.groupResource) != nil || findClaim(draft, c.groupResource) != nil):
		c.setInvalid(err)
	default:
		c.setNotExported(ReasonInvalid, "%s.", inOneLine(err))
	}
}

// planForeignClaim plans the claim on an API that another export provides.
func (p *planner) planForeignClaim(ctx context.Context, c *resourcePlan) {
	spec := &c.published.Spec
	named := publishedresource.ForeignAPI(spec)
	c.entry = &exportEntry{GroupResource: named.GroupResource(), identity: spec.API.IdentityHash}
	api, err := p.discover(ctx, named)
	if previous := p.previous[c.published.UID]; err != nil && previous.api != nil && previous.api.GroupVersionResource == named {
		// A failed discovery does not mean that the API was removed.
		api, err = *previous.api, nil
	}
	c.discoveryFailed = isDiscoveryFailure(err)
	switch kind := publishedresource.InMailbox(spec).Kind; {
	case errors.Is(err, mailboxes.ErrNotServed):
		c.setProblem(ReasonNotServed, "Mailboxes do not serve %s in version %s, or not yet: they must bind the export with the identity spec.api.identityHash.", named.GroupResource(), named.Version)
	case err != nil:
		c.setProblem(ReasonNotServed, "The hub cannot determine now whether mailboxes serve %s.", named.GroupResource())
	case kind != "" && kind != api.Kind:
		c.api = &api
		c.setInvalid(fmt.Errorf("spec.resource.kind: mailboxes have %s as %s", named.GroupResource(), api.Kind))
	default:
		c.api = &api
	}
}

// isDiscoveryFailure reports whether discovery failed, as opposed to a mailbox that answered without the API.
func isDiscoveryFailure(err error) bool {
	return err != nil && (errors.Is(err, mailboxes.ErrNoEndpoint) || !errors.Is(err, mailboxes.ErrNotServed))
}

// planOwnSchema plans an API that the hub exports with its own schema.
func (p *planner) planOwnSchema(ctx context.Context, c *resourcePlan) error {
	name := c.published.Status.SchemaName
	if name == "" {
		c.setNotExported(ReasonSchemaMissing, "There is no schema yet; see the condition SchemaReady.")
		return nil
	}
	exported, err := p.getSchema(ctx, name)
	if err != nil {
		return err
	}
	if exported == nil {
		c.setNotExported(ReasonSchemaMissing, "The schema %s is not in the provider workspace.", name)
		return nil
	}
	c.entry = &exportEntry{GroupResource: schema.GroupResource{Group: exported.Spec.Group, Resource: exported.Spec.Names.Plural}, schema: name}
	c.groupResource = c.entry.GroupResource
	api, err := publishedresource.APIFromSchema(&c.published.Spec, exported)
	switch previous := p.previous[c.published.UID]; {
	case err == nil:
		c.api = &api
	case c.schemaReadyCondition() == nil:
		c.setProblem(ReasonSchemaMissing, "The schema for the changed spec is being made.")
		c.api, c.synced, c.compiledFrom = previous.api, previous.synced, previous.compiledFrom
	default:
		c.setInvalid(err)
		c.api = previous.api
	}
	return nil
}

// compile compiles the spec against the mailbox API and sets synced, or records the spec as invalid.
func (p *planner) compile(c *resourcePlan) {
	compiled, err := p.compiler.Compile(c.published, *c.api)
	if err != nil {
		c.setInvalid(err)
		return
	}
	c.synced, c.compiledFrom = &compiled, c.published
	if ready := c.schemaReadyCondition(); c.entry.schema != "" && ready != nil && ready.Status != metav1.ConditionTrue && ready.Reason == ReasonInvalid {
		c.setProblem(ReasonInvalid, "%s", ready.Message)
	}
}
