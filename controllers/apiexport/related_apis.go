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
	"slices"

	apisv1alpha2 "github.com/kcp-dev/sdk/apis/apis/v1alpha2"
	"k8s.io/apimachinery/pkg/runtime/schema"

	synchubv1alpha1 "github.com/synchub-dev/synchub/apis/synchub/v1alpha1"
	"github.com/synchub-dev/synchub/controllers/plan"
	"github.com/synchub-dev/synchub/controllers/plan/related"
	"github.com/synchub-dev/synchub/controllers/publishedresource"
)

// relatedAPI is an API that no PublishedResource publishes and that the hub syncs for related objects.
type relatedAPI struct {
	entry exportEntry
	// resource is nil while it is not known which API mailboxes serve.
	resource *plan.Resource
	// api is that API.
	api publishedresource.API
	// discoveryFailed is true if discovery failed, so that it is unknown whether mailboxes serve the API.
	discoveryFailed bool
	// refs are the entries of PublishedResources that need the API.
	refs []relatedRef
}

// relatedRef is an entry of spec.related of a PublishedResource.
type relatedRef struct {
	*resourcePlan
	field    string
	relation *related.Relation
}

// planRelated adds the APIs of the related objects of a PublishedResource to the plan, or records why that is not possible.
func (p *planner) planRelated(ctx context.Context, plan *exportPlan, c *resourcePlan, owners map[schema.GroupResource]*resourcePlan, draft *apisv1alpha2.APIExportSpec) {
	for i, related := range c.synced.Related() {
		ref := relatedRef{c, fmt.Sprintf("spec.related[%d]", i), related}
		if owner, ok := owners[related.InMailbox.GroupResource()]; ok {
			ref.checkPublisher(owner)
		} else {
			p.addRelatedAPI(ctx, plan, ref, draft)
		}
	}
}

// checkPublisher records a problem if the PublishedResource that publishes the related API does not work.
func (s relatedRef) checkPublisher(owner *resourcePlan) {
	if owner.isActive() {
		s.checkNamespace(owner.synced)
		return
	}
	s.discoveryFailed = s.discoveryFailed || owner.discoveryFailed
	s.setProblem(ReasonRelatedNotPublished, "%s.resource: the PublishedResource %s, which publishes %s, is not in force; see its condition Ready.",
		s.field, owner.published.Name, owner.groupResource)
}

// checkNamespace records a problem if the relation needs a namespace to find objects of the resource and has none.
func (s relatedRef) checkNamespace(resource *plan.Resource) {
	if resource.Namespaced && !s.synced.Namespaced && s.relation.LacksNamespace() {
		s.setProblem(ReasonRelatedInvalid, "%s.namespace: required, because %s is namespaced and %s is not.",
			s.field, resource.GroupResource(), s.groupResource)
	}
}

// addRelatedAPI adds the related API to the plan, or records why mailboxes cannot have it.
func (p *planner) addRelatedAPI(ctx context.Context, made *exportPlan, ref relatedRef, draft *apisv1alpha2.APIExportSpec) {
	mailboxResource := ref.relation.InMailbox
	claim := exportEntry{GroupResource: mailboxResource.GroupResource(), identity: ref.relation.IdentityHash}
	native, isNative := publishedresource.NativeAPI(synchubv1alpha1.ResourceDescriptor{Group: mailboxResource.Group, Resource: mailboxResource.Resource})
	conflict := conflictMessage(draft, claim)
	switch {
	case claim.identity == "" && !isNative:
		ref.setProblem(ReasonRelatedNotPublished, "%s.resource: mailboxes do not have %s: publish it by a PublishedResource of its own, or name the export that provides it by identityHash.", ref.field, claim.GroupResource)
		return
	case claim.identity == "" && mailboxResource.Version != native.Version:
		ref.setProblem(ReasonRelatedInvalid, "%s.resource.version: kcp serves %s in version %s only.", ref.field, claim.GroupResource, native.Version)
		return
	case conflict != "":
		ref.setProblem(ReasonRelatedInvalid, "%s.resource: %s", ref.field, conflict)
		return
	}
	addEntry(draft, claim)
	found := made.relatedAPIFor(claim, func() (*publishedresource.API, error) {
		api, err := native, error(nil)
		if claim.identity != "" {
			api, err = p.discover(ctx, mailboxResource)
		}
		if err != nil {
			made.needsPolling = true
			return nil, err
		}
		return &api, nil
	})
	found.refs = append(found.refs, ref)
	if found.resource == nil {
		ref.discoveryFailed = ref.discoveryFailed || found.discoveryFailed
		ref.setProblem(ReasonRelatedNotPublished, "%s.resource: mailboxes do not serve %s, or not yet: they must bind the export with the identity named there.", ref.field, claim.GroupResource)
		return
	}
	ref.checkNamespace(found.resource)
}

// relatedAPIFor returns the plan's related API for a claim. For a new claim it calls found to get the API.
func (p *exportPlan) relatedAPIFor(claim exportEntry, found func() (*publishedresource.API, error)) *relatedAPI {
	known := slices.IndexFunc(p.relatedAPIs, func(other *relatedAPI) bool { return other.entry == claim })
	if known >= 0 {
		return p.relatedAPIs[known]
	}
	api, err := found()
	added := &relatedAPI{entry: claim, discoveryFailed: isDiscoveryFailure(err)}
	if api != nil {
		added.resource, added.api = new(publishedresource.RelatedAPI(*api)), *api
	}
	p.relatedAPIs = append(p.relatedAPIs, added)
	return added
}
