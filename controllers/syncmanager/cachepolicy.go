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
	"cmp"
	"fmt"
	"strings"
	gosync "sync"
	"sync/atomic"

	"github.com/kcp-dev/logicalcluster/v3"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	synchubv1alpha1 "github.com/synchub-dev/synchub/apis/synchub/v1alpha1"
	"github.com/synchub-dev/synchub/controllers/objectsync"
	"github.com/synchub-dev/synchub/controllers/objectsync/plan/ownership"
	"github.com/synchub-dev/synchub/controllers/objectsync/plan/related"
	"github.com/synchub-dev/synchub/controllers/objectsync/plan/selection"
	"github.com/synchub-dev/synchub/provider/mailboxes"
)

// cachePolicy is by what the manager decides how much is held of the objects of mailboxes. It is a [mailboxes.Policy].
type cachePolicy struct {
	manager *Manager
	// limits are the hub's; those of a SyncTarget can only be lower.
	limits mailboxes.Limits
	// published are the resources that mailboxes have; nil before that is known.
	published atomic.Pointer[[]objectsync.Resource]
	// mailboxes are *selected by logical cluster.
	mailboxes gosync.Map
}

var _ mailboxes.CachePolicy = &cachePolicy{}

// mailboxSelection is what the configs of one mailbox select. It never changes.
type mailboxSelection struct {
	matcher *selection.Matcher
	limits  mailboxes.Limits
	// published are the resources for which resources was made: those of which objects may be selected, with all objects if
	// whole is true.
	published *[]objectsync.Resource
	resources map[schema.GroupVersionResource]selectableResource
}

type selectableResource struct {
	objectsync.Resource
	// allObjects is true if other objects than those that a config selects may travel, because they are related to such.
	allObjects bool
}

// RetainedAnnotations implements [mailboxes.Policy].
func (h *cachePolicy) RetainedAnnotations() []string {
	return []string{ownership.MarkAnnotation, ownership.EnsuredAnnotation}
}

// Limits implements [mailboxes.Policy].
func (h *cachePolicy) Limits(mailbox logicalcluster.Name) mailboxes.Limits {
	if found, ok := h.mailboxes.Load(mailbox); ok {
		return found.(*mailboxSelection).limits
	}
	return h.limits
}

// ConfigLimits implements [mailboxes.Policy].
func (h *cachePolicy) ConfigLimits() mailboxes.Limits { return ConfigLimits }

// Selects implements [mailboxes.Policy]. The filter of a PublishedResource is not asked: it may look at all of an object.
func (h *cachePolicy) Selects(mailbox logicalcluster.Name, resource schema.GroupVersionResource, object *unstructured.Unstructured) (isSelected, known bool) {
	found := h.selectionOf(mailbox)
	if found == nil {
		return true, false
	}
	if objectsync.IsMarked(object) {
		// It came up, and is compared with what it came from.
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

// selectionOf returns what the configs of a mailbox select; nil while that is unknown. Of a mailbox that is not synced yet the configs
// are read here: at a start objects are listed before their SyncTarget is looked at, and must not be read twice.
func (h *cachePolicy) selectionOf(mailbox logicalcluster.Name) *mailboxSelection {
	published := h.published.Load()
	if published == nil {
		return nil
	}
	found, ok := h.mailboxes.Load(mailbox)
	if !ok {
		configs, known := configs{}.observe(h.manager.Mailboxes, mailbox, false)
		if !known {
			return nil
		}
		found, _ = h.mailboxes.LoadOrStore(mailbox, &mailboxSelection{matcher: h.manager.matcherOf(configs), limits: h.limits})
	}
	current := found.(*mailboxSelection)
	if current.published == published {
		return current
	}
	next := current.withPublished(published)
	h.mailboxes.CompareAndSwap(mailbox, current, next)
	return next
}

// withPublished returns what the same configs select when other resources are published.
func (s *mailboxSelection) withPublished(published *[]objectsync.Resource) *mailboxSelection {
	next := &mailboxSelection{matcher: s.matcher, limits: s.limits, published: published, resources: map[schema.GroupVersionResource]selectableResource{}}
	var related []*related.Relation
	for _, resource := range *published {
		if isSelected(s.matcher, resource, []objectsync.TargetAPI{resource.TargetAPI()}) {
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

// set takes over the configs and the limits of a mailbox.
func (h *cachePolicy) set(mailbox logicalcluster.Name, matcher *selection.Matcher, limits mailboxes.Limits) {
	next := &mailboxSelection{matcher: matcher, limits: h.limits.Min(limits)}
	if published := h.published.Load(); published != nil {
		next = next.withPublished(published)
	}
	h.mailboxes.Store(mailbox, next)
	h.manager.Mailboxes.EnqueueReview(mailbox)
}

// forget is called when a mailbox is not synced any more.
func (h *cachePolicy) forget(mailbox logicalcluster.Name) { h.mailboxes.Delete(mailbox) }

// publish takes over the resources that mailboxes have.
func (h *cachePolicy) publish(published []objectsync.Resource) {
	h.published.Store(&published)
	h.manager.Mailboxes.EnqueueAllReviews()
}

// BeyondLimits says what of a SyncTarget's mailbox is not synced because of its limits, and as the reason what may be concerned:
// any object, objects of resources with limits of their own, or configs. Both are empty if all is synced.
func (m *Manager) BeyondLimits(syncTarget types.UID) (reason, message string) {
	found, ok := m.get(syncTarget)
	if !ok {
		return "", ""
	}
	mailbox := found.currentTarget().Mailbox
	var sentences []string
	objects := m.Mailboxes.MailboxLimitError(mailbox)
	beyond := []*mailboxes.LimitError{objects}
	if !objects.Evicted {
		beyond = append(beyond, m.Mailboxes.ResourceLimitErrors(mailbox)...)
	}
	for _, one := range beyond {
		if one.IdentityOnly > 0 {
			// The mailbox's own limits come first.
			reason = cmp.Or(reason, limitReason(one))
			text := one.Error()
			sentences = append(sentences, strings.ToUpper(text[:1])+text[1:]+".")
		}
	}
	if configs := m.Mailboxes.ConfigLimitError(mailbox); configs.IdentityOnly > 0 {
		reason = cmp.Or(reason, objectsync.ReasonConfigLimitExceeded)
		sentences = append(sentences, fmt.Sprintf("Of the configs, the youngest %d are not in force: the hub acts upon %d of a mailbox, which may take %d bytes. "+
			"Nothing is removed because no config selects it.", configs.IdentityOnly, configs.Limits.Objects, configs.Limits.Bytes))
	}
	return reason, strings.Join(sentences, " ")
}

func limitReason(beyond *mailboxes.LimitError) string {
	if beyond.Resource.Empty() {
		return objectsync.ReasonMailboxLimitExceeded
	}
	return objectsync.ReasonResourceLimitExceeded
}

// IsEvicted tells whether a SyncTarget's mailbox is so far beyond its limits that nothing of it is synced, or none of its configs
// is known.
func (m *Manager) IsEvicted(syncTarget types.UID) bool {
	found, ok := m.get(syncTarget)
	if !ok {
		return false
	}
	mailbox := found.currentTarget().Mailbox
	return m.Mailboxes.MailboxLimitError(mailbox).Evicted || m.Mailboxes.ConfigLimitError(mailbox).Evicted
}

// matcherOf compiles the configs that are in force.
func (m *Manager) matcherOf(configs configs) *selection.Matcher {
	inForce, all := configs.withinLimits()
	matcher := selection.Compile(
		decodeConfigs[edgev2alpha1.SyncerConfig](m.Log, inForce[ConfigResources[0]]),
		decodeConfigs[edgev2alpha1.EdgeSyncConfig](m.Log, inForce[ConfigResources[1]]),
	)
	if !all {
		return matcher.AsPartial()
	}
	return matcher
}
