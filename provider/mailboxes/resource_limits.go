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
	"maps"
	"slices"

	"github.com/kcp-dev/logicalcluster/v3"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// SetResourceLimits sets the limits of resources in each mailbox, within the limits of the mailbox. It enqueues reviews of all
// mailboxes if they have changed. Other resources have only the limits of the mailbox.
func (m *Mailboxes) SetResourceLimits(limits map[schema.GroupVersionResource]Limits) {
	if before := m.resourceLimits.Swap(&limits); before == nil && len(limits) == 0 || before != nil && maps.Equal(*before, limits) {
		return
	}
	m.EnqueueAllCacheReviews()
}

// resourceLimitsFor returns the limits of a resource in each mailbox; zero if it has none.
func (m *Mailboxes) resourceLimitsFor(resource schema.GroupVersionResource) Limits {
	if limits := m.resourceLimits.Load(); limits != nil {
		return (*limits)[resource]
	}
	return Limits{}
}

// ResourceLimitErrors returns an error for each resource whose limits keep objects of a mailbox out, sorted by name.
func (m *Mailboxes) ResourceLimitErrors(mailbox logicalcluster.Name) (all []*LimitError) {
	limits := m.resourceLimits.Load()
	if limits == nil || len(*limits) == 0 {
		return nil
	}
	usage := m.usage(mailbox)
	for resource, resourceLimits := range *limits {
		if found := usage.resourceLimitError(resource, resourceLimits); found.IdentityOnly > 0 {
			all = append(all, found)
		}
	}
	slices.SortFunc(all, func(a, b *LimitError) int { return cmp.Compare(a.Resource.String(), b.Resource.String()) })
	return all
}
