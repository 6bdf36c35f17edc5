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
	"github.com/kcp-dev/logicalcluster/v3"
	"k8s.io/apimachinery/pkg/types"

	"github.com/synchub-dev/synchub/controllers/placement/customization"
)

// customized are the objects of a workspace whose copies differ from destination to destination, by the names of their
// Customizers; the zero name is for objects without one.
type customized map[types.NamespacedName]map[objectKey]struct{}

func (c customized) add(key objectKey, request customization.Request) {
	if c[request.Customizer] == nil {
		c[request.Customizer] = map[objectKey]struct{}{}
	}
	c[request.Customizer][key] = struct{}{}
}

func (c customized) remove(key objectKey, request customization.Request) {
	delete(c[request.Customizer], key)
	if len(c[request.Customizer]) == 0 {
		delete(c, request.Customizer)
	}
}

// mailboxesWithOtherParameters returns the mailboxes whose parameters may differ in the next placements,
// because the parameters of a placement changed or because another placement is now responsible. p may be nil.
func (p *placements) mailboxesWithOtherParameters(next *placements) (changed map[logicalcluster.Name]struct{}) {
	if p == nil {
		return nil
	}
	changed = map[logicalcluster.Name]struct{}{}
	for _, one := range next.all {
		old := p.find(one.UID)
		if old == nil {
			// All objects that a new placement selects are enqueued.
			continue
		}
		for mailbox, destination := range one.mailboxes {
			if known, ok := old.mailboxes[mailbox]; !ok || !known.Parameters().Equal(destination.Parameters()) {
				changed[mailbox] = struct{}{}
			}
		}
		for mailbox := range old.mailboxes {
			if _, ok := one.mailboxes[mailbox]; !ok {
				changed[mailbox] = struct{}{}
			}
		}
	}
	return changed
}

// parametersAt returns the parameters of a mailbox for an object: the parameters of the oldest placement that
// selects both. known is false if no placement does any more. The object may have been selected by an older view of the same
// placement. p may be nil.
func (p *placements) parametersAt(mailbox logicalcluster.Name, selectedBy []*resolvedPlacement) (parameters customization.Parameters, known bool) {
	if p == nil {
		return nil, false
	}
	for _, one := range selectedBy {
		current := p.find(one.UID)
		if current == nil {
			continue
		}
		if destination, ok := current.mailboxes[mailbox]; ok {
			return destination.Parameters(), true
		}
	}
	return nil, false
}
