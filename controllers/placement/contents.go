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

package placement

import (
	"slices"

	"k8s.io/apimachinery/pkg/types"
)

// contents counts the objects that placements select, by namespace and placement. The lock of [pairs] guards it. On a cluster
// where each workspace has namespaces of its own, the Namespace of a selected object is placed too, because it carries the labels
// of the cluster's administrator.
type contents map[string]map[types.UID]int

// has reports whether a placement selects an object in a namespace.
func (c contents) has(namespace string, placement types.UID) bool { return c[namespace][placement] > 0 }

// add counts one object more or less, and reports whether it is the first or the last one.
func (c contents) add(namespace string, placement types.UID, by int) (changes bool) {
	of := c[namespace]
	if of == nil {
		of = map[types.UID]int{}
		c[namespace] = of
	}
	before := of[placement]
	if of[placement] = before + by; before+by == 0 {
		delete(of, placement)
	}
	if len(of) == 0 {
		delete(c, namespace)
	}
	return before == 0 || before+by == 0
}

// knowsContentsAt returns false while an unselected Namespace may contain objects that a placement selects and the hub has not listed
// yet, so that its copy must stay.
func (s selectionState) knowsContentsAt(key pairKey) bool {
	return key.resource != namespaces || s.allSelected || !slices.ContainsFunc(s.placements.all, func(one *resolvedPlacement) bool {
		return one.wants(key) && one.hasOwnNamespaces(key.mailbox)
	})
}

// enqueueNamespaces enqueues the copies of Namespaces that may have to be withdrawn, now that all contents are known.
func (p *pairs) enqueueNamespaces() {
	p.lock.Lock()
	defer p.lock.Unlock()
	for key := range p.namespaces {
		p.enqueueWithdrawals(key, p.objects[key], site{})
	}
}

// isCounted reports whether an object is recorded with the placements that select it and, for a Namespace, with those that place it for
// the sake of its contents. It requires the lock.
func (p *pairs) isCounted(key objectKey, selected []*resolvedPlacement, active *placements) bool {
	entry := p.objects[key]
	if entry == nil {
		entry = &object{}
	}
	if len(entry.selectedBy) < len(selected) {
		return false
	}
	if key.resource != namespaces {
		return true
	}
	has := func(all []*resolvedPlacement, placement *resolvedPlacement) bool {
		return slices.ContainsFunc(all, func(one *resolvedPlacement) bool { return one.UID == placement.UID })
	}
	return !slices.ContainsFunc(active.all, func(one *resolvedPlacement) bool {
		return p.contents.has(key.name.Name, one.UID) && one.hasOwnNamespacesAnywhere() && !has(selected, one) && !has(entry.containerFor, one)
	})
}

// countContents counts an object in its namespace after the placements that select it have changed, and enqueues the Namespace
// if that may change the placements of the Namespace. It requires the lock.
func (p *pairs) countContents(key objectKey, before, after []*resolvedPlacement) {
	if key.name.Namespace == "" {
		return
	}
	changes := false
	count := func(by int, these, others []*resolvedPlacement) {
		for _, one := range these {
			if !slices.ContainsFunc(others, func(other *resolvedPlacement) bool { return other.UID == one.UID }) {
				changes = p.contents.add(key.name.Namespace, one.UID, by) || changes
			}
		}
	}
	count(-1, before, after)
	count(1, after, before)
	if changes {
		p.tasks.add(namespaceKey(key.name.Namespace).task())
		for _, mailbox := range p.reflections.mailboxesOf(p.cluster) {
			// Entries for upsync may name it.
			p.requests.config.Publish(configKey{mailbox, p.cluster})
		}
	}
}
