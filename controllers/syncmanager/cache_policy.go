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
	gosync "sync"
	"sync/atomic"

	"github.com/go-logr/logr"
	"github.com/kcp-dev/logicalcluster/v3"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	synchubv1alpha1 "github.com/synchub-dev/synchub/apis/synchub/v1alpha1"
	"github.com/synchub-dev/synchub/controllers/plan"
	"github.com/synchub-dev/synchub/controllers/plan/ownership"
	"github.com/synchub-dev/synchub/controllers/plan/related"
	"github.com/synchub-dev/synchub/controllers/plan/selection"
	"github.com/synchub-dev/synchub/provider/mailboxes"
)

// CachePolicy decides which objects of mailboxes are cached whole. It implements [mailboxes.CachePolicy]. The
// [Manager] sets the objects that configs select.
type CachePolicy struct {
	log logr.Logger
	// limits are the hub's. A SyncTarget can only lower them.
	limits mailboxes.Limits
	// published are the resources that mailboxes have, nil before the first Publish.
	published atomic.Pointer[[]plan.Resource]
	// mailboxes holds a *mailboxSelection by the logical cluster of the mailbox.
	mailboxes gosync.Map
}

var _ mailboxes.CachePolicy = &CachePolicy{}

// NewCachePolicy returns the policy within the hub's limits for one mailbox.
func NewCachePolicy(limits mailboxes.Limits, log logr.Logger) *CachePolicy {
	return &CachePolicy{limits: limits, log: log}
}

// mailboxSelection contains which objects the configs of one mailbox select. It is immutable.
type mailboxSelection struct {
	matcher *selection.Matcher
	limits  mailboxes.Limits
	// published is the value that resources was computed from. resources contains the published resources by
	// their GVR.
	published *[]plan.Resource
	resources map[schema.GroupVersionResource]selectableResource
}

type selectableResource struct {
	plan.Resource
	// allObjects is true if objects that no config selects may be synced too, because they are related to selected objects.
	allObjects bool
}

// RetainedAnnotations implements [mailboxes.CachePolicy].
func (p *CachePolicy) RetainedAnnotations() []string {
	return []string{ownership.MarkAnnotation, ownership.EnsuredAnnotation}
}

// Limits implements [mailboxes.CachePolicy].
func (p *CachePolicy) Limits(mailbox logicalcluster.Name) mailboxes.Limits {
	if found, ok := p.mailboxes.Load(mailbox); ok {
		return found.(*mailboxSelection).limits
	}
	return p.limits
}

// ConfigLimits implements [mailboxes.CachePolicy].
func (p *CachePolicy) ConfigLimits() mailboxes.Limits { return ConfigLimits }

// Selects implements [mailboxes.CachePolicy]. It ignores the filter of a PublishedResource, which may need the whole object.
func (p *CachePolicy) Selects(all *mailboxes.Mailboxes, mailbox logicalcluster.Name, resource schema.GroupVersionResource, object *unstructured.Unstructured) (isSelected, known bool) {
	found := p.selectionOf(all, mailbox)
	if found == nil {
		return true, false
	}
	if plan.IsMarked(object) {
		// The object was upsynced, and the hub compares it with the target object.
		return true, true
	}
	one, ok := found.resources[resource]
	if !ok {
		return false, true
	}
	if one.allObjects {
		return true, true
	}
	_, isSelected = one.Selects(found.matcher, object)
	return isSelected, true
}

// selectionOf returns which objects the configs of a mailbox select, nil while that is unknown. If the mailbox is not synced yet,
// selectionOf reads the configs itself. At the start of the hub a mailbox is listed before its SyncTarget is reconciled, and must
// not be listed twice.
func (p *CachePolicy) selectionOf(all *mailboxes.Mailboxes, mailbox logicalcluster.Name) *mailboxSelection {
	published := p.published.Load()
	if published == nil {
		return nil
	}
	found, ok := p.mailboxes.Load(mailbox)
	if !ok {
		configs, known := configs{}.observe(all, mailbox, false)
		if !known {
			return nil
		}
		found, _ = p.mailboxes.LoadOrStore(mailbox, &mailboxSelection{matcher: matcherOf(p.log, configs), limits: p.limits})
	}
	current := found.(*mailboxSelection)
	if current.published == published {
		return current
	}
	next := current.withPublished(published)
	p.mailboxes.CompareAndSwap(mailbox, current, next)
	return next
}

// withPublished returns the selection of the same configs for other published resources.
func (s *mailboxSelection) withPublished(published *[]plan.Resource) *mailboxSelection {
	next := &mailboxSelection{matcher: s.matcher, limits: s.limits, published: published, resources: map[schema.GroupVersionResource]selectableResource{}}
	var related []*related.Relation
	for _, resource := range *published {
		if isSelected(s.matcher, resource, []plan.TargetAPI{resource.TargetAPI()}) {
			for _, one := range resource.Related() {
				if one.Origin == synchubv1alpha1.RelatedOriginMailbox {
					related = append(related, one)
				}
			}
		}
	}
	for _, resource := range *published {
		one := selectableResource{Resource: resource}
		for _, relation := range related {
			one.allObjects = one.allObjects || relation.InMailbox.GroupResource() == resource.GroupResource()
		}
		next.resources[resource.GroupVersionResource] = one
	}
	return next
}

// set stores the matcher and the limits of a mailbox. The cached objects must be reviewed then.
func (p *CachePolicy) set(mailbox logicalcluster.Name, matcher *selection.Matcher, limits mailboxes.Limits) {
	next := &mailboxSelection{matcher: matcher, limits: p.limits.Min(limits)}
	if published := p.published.Load(); published != nil {
		next = next.withPublished(published)
	}
	p.mailboxes.Store(mailbox, next)
}

// forget removes a mailbox that is no longer synced.
func (p *CachePolicy) forget(mailbox logicalcluster.Name) { p.mailboxes.Delete(mailbox) }

// publish sets the resources that mailboxes have. All cached objects must be reviewed then.
func (p *CachePolicy) publish(published []plan.Resource) {
	p.published.Store(&published)
}
