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
	"github.com/synchub-dev/synchub/controllers/published"
	"github.com/synchub-dev/synchub/controllers/sync"
	"github.com/synchub-dev/synchub/controllers/sync/relation"
)

// companion is an API that nobody publishes and that travels with others.
type companion struct {
	entry entry
	// resource is how it is synced, nil while it is not known what mailboxes have.
	resource *sync.Resource
	// unknown is true if nobody can tell now.
	unknown bool
	// seekers are who needs it.
	seekers []seeker
}

// seeker is an entry under related of a PublishedResource.
type seeker struct {
	*candidate
	field    string
	relation *relation.Relation
}

// relate has what is related to a candidate's objects claimed and synced, and says what cannot be.
func (p *planner) relate(ctx context.Context, made *plan, c *candidate, owners map[schema.GroupResource]*candidate, draft *apisv1alpha2.APIExportSpec) {
	for i, related := range c.synced.Related() {
		asks := seeker{c, fmt.Sprintf("spec.related[%d]", i), related}
		if owner, ok := owners[related.InMailbox.GroupResource()]; ok {
			asks.relyOn(owner)
		} else {
			p.accompany(ctx, made, asks, draft)
		}
	}
}

// relyOn says what is wrong with relying on another PublishedResource.
func (s seeker) relyOn(owner *candidate) {
	if owner.inForce() {
		s.check(owner.synced)
		return
	}
	s.unknown = s.unknown || owner.unknown
	s.fault(ReasonRelatedNotPublished, "%s.resource: the PublishedResource %s, which publishes %s, is not in force; see its condition Ready.",
		s.field, owner.published.Name, owner.group)
}

// check says what is wrong with a relation to objects that are synced like this.
func (s seeker) check(resource *sync.Resource) {
	if resource.Namespaced && !s.synced.Namespaced && s.relation.NeedsNamespace() {
		s.fault(ReasonRelatedInvalid, "%s.namespace: required, because objects of %s are in namespaces and those of %s are not.",
			s.field, resource.GroupResource(), s.group)
	}
}

// accompany adds the companion for a relation to the plan, or says why there can be none.
func (p *planner) accompany(ctx context.Context, made *plan, asks seeker, draft *apisv1alpha2.APIExportSpec) {
	there := asks.relation.InMailbox
	claim := entry{GroupResource: there.GroupResource(), identity: asks.relation.IdentityHash}
	native, isNative := published.NativeAPI(synchubv1alpha1.ResourceDescriptor{Group: there.Group, Resource: there.Resource})
	why := conflict(draft, claim)
	switch {
	case claim.identity == "" && !isNative:
		asks.fault(ReasonRelatedNotPublished, "%s.resource: mailboxes do not have %s: publish it by a PublishedResource of its own, or name the export that provides it by identityHash.", asks.field, claim.GroupResource)
		return
	case claim.identity == "" && there.Version != native.Version:
		asks.fault(ReasonRelatedInvalid, "%s.resource.version: kcp serves %s in version %s only.", asks.field, claim.GroupResource, native.Version)
		return
	case why != "":
		asks.fault(ReasonRelatedInvalid, "%s.resource: %s", asks.field, why)
		return
	}
	merge(draft, claim)
	found := made.companion(claim, func() (*sync.Resource, error) {
		api, err := native, error(nil)
		if claim.identity != "" {
			api, err = p.discover(ctx, there)
		}
		if err != nil {
			made.waits = true
			return nil, err
		}
		return new(published.Companion(api)), nil
	})
	found.seekers = append(found.seekers, asks)
	if found.resource == nil {
		asks.unknown = asks.unknown || found.unknown
		asks.fault(ReasonRelatedNotPublished, "%s.resource: mailboxes do not serve %s, or not yet: they must bind the export with the identity named there.", asks.field, claim.GroupResource)
		return
	}
	asks.check(found.resource)
}

// companion returns the companion for a claim; a new one is synced as found says.
func (p *plan) companion(claim entry, found func() (*sync.Resource, error)) *companion {
	known := slices.IndexFunc(p.companions, func(other *companion) bool { return other.entry == claim })
	if known >= 0 {
		return p.companions[known]
	}
	resource, err := found()
	added := &companion{entry: claim, resource: resource, unknown: isUnknown(err)}
	p.companions = append(p.companions, added)
	return added
}
