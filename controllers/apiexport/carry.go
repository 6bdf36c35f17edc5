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
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/synchub-dev/synchub/controllers/sync"
	"github.com/synchub-dev/synchub/provider/mailboxes"
)

// entries are what the export must carry.
func (p *plan) entries() []entry {
	var entries []entry
	for _, candidate := range p.candidates {
		if candidate.entry != nil {
			entries = append(entries, *candidate.entry)
		}
	}
	for _, companion := range p.companions {
		entries = append(entries, companion.entry)
	}
	return entries
}

// refuse takes back what the export does not carry.
func (p *plan) refuse(refused map[entry]error) {
	for _, candidate := range p.candidates {
		if candidate.entry == nil {
			continue
		}
		if err, ok := refused[*candidate.entry]; ok {
			candidate.keepOut(ReasonRefused, "kcp refuses %s in the mailbox export: %s", candidate.entry, inOneLine(err))
		}
	}
	for _, companion := range p.companions {
		err, ok := refused[companion.entry]
		if !ok {
			continue
		}
		companion.resource = nil
		for _, asks := range companion.seekers {
			asks.fault(ReasonRelatedInvalid, "%s.resource: kcp refuses %s in the mailbox export: %s", asks.field, companion.entry, inOneLine(err))
		}
	}
}

// watched are the resources of mailboxes that must be watched: of a PublishedResource that must be mended too, so that it
// costs no new list when it is.
func (p *plan) watched() []schema.GroupVersionResource {
	watched := []schema.GroupVersionResource{namespaces}
	add := func(resource schema.GroupVersionResource) {
		if resource != namespaces {
			watched = append(watched, resource)
		}
	}
	for _, candidate := range p.candidates {
		if candidate.absent == nil && candidate.api != nil {
			add(candidate.api.GroupVersionResource)
		}
	}
	for _, companion := range p.companions {
		if companion.resource != nil {
			add(companion.resource.GroupVersionResource)
		}
	}
	return watched
}

// limits are those of the resources of which no mailbox may have more.
func (p *plan) limits() map[schema.GroupVersionResource]mailboxes.Limits {
	limits := map[schema.GroupVersionResource]mailboxes.Limits{}
	for _, candidate := range p.candidates {
		set := candidate.published.Spec.Limits
		if candidate.absent == nil && candidate.api != nil && set != nil {
			limits[candidate.api.GroupVersionResource] = mailboxes.Limits{Objects: ptr.Deref(set.MailboxObjects, 0), Bytes: ptr.Deref(set.MailboxBytes, 0)}
		}
	}
	return limits
}

// synced are the resources that are to be synced.
func (p *plan) synced() []sync.Resource {
	var synced []sync.Resource
	for _, candidate := range p.candidates {
		if candidate.inForce() {
			synced = append(synced, *candidate.synced)
		}
	}
	for _, companion := range p.companions {
		if companion.resource != nil {
			synced = append(synced, *companion.resource)
		}
	}
	return synced
}

// memories are what the next plan is to know of this one.
func (p *plan) memories() map[types.UID]memory {
	memories := map[types.UID]memory{}
	for _, candidate := range p.candidates {
		if candidate.absent == nil && candidate.entry != nil && candidate.api != nil {
			memories[candidate.published.UID] = memory{candidate.published.Name, candidate.group, *candidate.entry, candidate.api, candidate.synced}
		}
	}
	return memories
}
