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

package mailboxes

import (
	"cmp"
	"errors"
	"maps"
	"slices"
	"sync/atomic"

	kcpcache "github.com/kcp-dev/apimachinery/v2/pkg/cache"
	"github.com/kcp-dev/logicalcluster/v3"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// errFetching means that an object is being fetched. Its subscribers get an event when it is cached.
var errFetching = errors.New("the object is being fetched from the mailbox")

// CacheLimits has the limits of the caches, and reports what exceeds them.
type CacheLimits struct {
	options *Options
	caches  *Caches
	usages  *usages
	reviews *Reviews
	memory  *memoryLimit
	// ofResources are the limits of resources; nil before SetResourceLimits.
	ofResources atomic.Pointer[map[schema.GroupVersionResource]Limits]
}

func newCacheLimits(options *Options, caches *Caches, usages *usages, reviews *Reviews) *CacheLimits {
	return &CacheLimits{options: options, caches: caches, usages: usages, reviews: reviews, memory: &memoryLimit{limit: options.MaxBytes, wake: newSignal()}}
}

// of returns the limits of a mailbox's configs, or of its other objects, at the current fair share.
func (l *CacheLimits) of(mailbox logicalcluster.Name, configs bool) Limits {
	return l.ofPolicy(mailbox, configs).Min(Limits{Bytes: l.memory.fairShare.Load()})
}

// ofPolicy returns the limits that hold regardless of other mailboxes.
func (l *CacheLimits) ofPolicy(mailbox logicalcluster.Name, configs bool) Limits {
	switch {
	case l.options.Policy == nil:
		return Limits{}
	case configs:
		return l.options.Policy.ConfigLimits()
	default:
		return l.options.Policy.Limits(mailbox)
	}
}

// ofResource returns the limits of a resource in each mailbox; zero if it has none.
func (l *CacheLimits) ofResource(resource schema.GroupVersionResource) Limits {
	if limits := l.ofResources.Load(); limits != nil {
		return (*limits)[resource]
	}
	return Limits{}
}

// SetResourceLimits sets the limits of resources in each mailbox, within the limits of the mailbox. It enqueues reviews of all
// mailboxes if they have changed. Other resources have only the limits of the mailbox.
func (l *CacheLimits) SetResourceLimits(limits map[schema.GroupVersionResource]Limits) {
	if before := l.ofResources.Swap(&limits); before == nil && len(limits) == 0 || before != nil && maps.Equal(*before, limits) {
		return
	}
	l.reviews.EnqueueAllCacheReviews()
}

// ResourceLimitErrors returns an error for each resource whose limits keep objects of a mailbox out, sorted by name.
func (l *CacheLimits) ResourceLimitErrors(mailbox logicalcluster.Name) (all []*LimitError) {
	limits := l.ofResources.Load()
	if limits == nil || len(*limits) == 0 {
		return nil
	}
	usage := l.usages.of(mailbox, false)
	for resource, resourceLimits := range *limits {
		if found := usage.resourceLimitError(resource, resourceLimits); found.IdentityOnly > 0 {
			all = append(all, found)
		}
	}
	slices.SortFunc(all, func(a, b *LimitError) int { return cmp.Compare(a.Resource.String(), b.Resource.String()) })
	return all
}

// RequireFullObject returns nil if a cached object is whole, and else makes the next review fetch the whole object. The error is a [LimitError],
// or errFetching while the object is being fetched. Its subscribers then get an event when it is cached.
func (l *CacheLimits) RequireFullObject(resource schema.GroupVersionResource, mailbox logicalcluster.Name, object *unstructured.Unstructured) error {
	projection := ProjectionOf(object)
	if projection == FullObject {
		return nil
	}
	if projection == IdentityOnly {
		return l.ObjectLimitError(resource, mailbox, object)
	}
	if informer, ok := l.caches.informer(resource, mailbox); ok {
		found, exists, _ := informer.GetIndexer().GetByKey(kcpcache.ToClusterAwareKey(mailbox.String(), object.GetNamespace(), object.GetName()))
		if wanted, ok := found.(*cachedObject); exists && ok {
			wanted.requested.Store(true)
			l.reviews.EnqueueCacheReview(mailbox)
		}
	}
	return errFetching
}

// ObjectLimitError returns the limit that a cached identity exceeds. It is never nil; no limit is exceeded if IdentityOnly is zero and Evicted
// is false.
func (l *CacheLimits) ObjectLimitError(resource schema.GroupVersionResource, mailbox logicalcluster.Name, object *unstructured.Unstructured) *LimitError {
	if object != nil && exceededLimitOf(object) == resourceLimit {
		return l.usages.of(mailbox, false).resourceLimitError(resource, l.ofResource(resource))
	}
	return l.MailboxLimitError(mailbox)
}

// MailboxLimitError returns the usage and limits of a mailbox, apart from the limits of resources. It never returns nil, like
// [CacheLimits.ObjectLimitError].
func (l *CacheLimits) MailboxLimitError(mailbox logicalcluster.Name) *LimitError {
	return l.usageLimitError(mailbox, false)
}

// ConfigLimitError returns the usage and limits of a mailbox's configs. It never returns nil, like
// [CacheLimits.ObjectLimitError].
func (l *CacheLimits) ConfigLimitError(mailbox logicalcluster.Name) *LimitError {
	return l.usageLimitError(mailbox, true)
}

// usageLimitError returns the usage and limits of a mailbox's configs, or of its other objects.
func (l *CacheLimits) usageLimitError(mailbox logicalcluster.Name, configs bool) *LimitError {
	limits := l.of(mailbox, configs)
	found := l.usages.of(mailbox, configs).limitError(limits)
	if found.IdentityOnly > 0 && (limits != l.ofPolicy(mailbox, configs) || !found.Evicted && !limits.exceededBy(found.Objects, found.Bytes)) {
		found.TotalLimit = l.memory.limit
	}
	return found
}
