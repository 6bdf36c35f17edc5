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
	"fmt"
	"slices"

	"github.com/kcp-dev/logicalcluster/v3"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/controllers/placement/customization"
	"github.com/synchub-dev/synchub/controllers/plan"
	"github.com/synchub-dev/synchub/provider/mailboxes"
)

// customized are the objects of a workspace whose copies differ from destination to destination.
type customized struct {
	all map[objectKey]struct{}
	// by are the objects that name a Customizer, by its name.
	by map[types.NamespacedName]map[objectKey]struct{}
}

func newCustomized() customized {
	return customized{all: map[objectKey]struct{}{}, by: map[types.NamespacedName]map[objectKey]struct{}{}}
}

func (c customized) add(key objectKey, request customization.Request) {
	c.all[key] = struct{}{}
	if name := request.Customizer; name != (types.NamespacedName{}) {
		if c.by[name] == nil {
			c.by[name] = map[objectKey]struct{}{}
		}
		c.by[name][key] = struct{}{}
	}
}

func (c customized) remove(key objectKey, request customization.Request) {
	delete(c.all, key)
	delete(c.by[request.Customizer], key)
	if len(c.by[request.Customizer]) == 0 {
		delete(c.by, request.Customizer)
	}
}

// updateCustomization sets the customization request of an object by its source, which may be nil. It requires the lock.
func (w *workspace) updateCustomization(key objectKey, source *unstructured.Unstructured) {
	entry := w.objects[key]
	if entry == nil {
		return
	}
	var request customization.Request
	if source != nil {
		// The passes for the object report an error.
		request, _ = customization.RequestOf(source)
	}
	w.setCustomization(key, entry, request)
}

// setCustomization sets the customization request of the source. It requires the lock.
func (w *workspace) setCustomization(key objectKey, entry *object, request customization.Request) {
	if entry.customization == request {
		return
	}
	w.customized.remove(key, entry.customization)
	if !request.IsZero() {
		w.customized.add(key, request)
	}
	entry.customization = request
}

// enqueueCustomizedBy enqueues the objects that name a Customizer.
func (w *workspace) enqueueCustomizedBy(customizer types.NamespacedName) {
	w.lock.Lock()
	defer w.lock.Unlock()
	for key := range w.customized.by[customizer] {
		for mailbox := range w.objects[key].pairs {
			w.contentChanged(w.objects[key], mailbox)
			w.enqueue(pairKey{key, mailbox}.task())
		}
	}
}

// enqueueCustomizedAt enqueues the customized objects at some mailboxes.
func (w *workspace) enqueueCustomizedAt(changed map[logicalcluster.Name]struct{}) {
	w.lock.Lock()
	defer w.lock.Unlock()
	for key := range w.customized.all {
		for mailbox := range changed {
			if w.objects[key].pairs[mailbox] != nil {
				w.contentChanged(w.objects[key], mailbox)
				w.enqueue(pairKey{key, mailbox}.task())
			}
		}
	}
}

// mailboxesWithOtherParameters returns the mailboxes whose parameters may differ in the next placements,
// because the parameters of a placement changed or because another placement is now responsible. p may be nil.
func (p *placements) mailboxesWithOtherParameters(next *placements) (changed map[logicalcluster.Name]struct{}) {
	if p == nil {
		return nil
	}
	changed = map[logicalcluster.Name]struct{}{}
	before := make(map[types.UID]*resolvedPlacement, len(p.all))
	for _, one := range p.all {
		before[one.UID] = one
	}
	for _, one := range next.all {
		old := before[one.UID]
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

// customize replaces the source in the snapshot of a desired copy by the source for this destination. The error
// is why it cannot.
func (w *workspace) customize(key pairKey, s *pairSnapshot, selectedBy []*resolvedPlacement) error {
	source := s.Up.Object
	if source == nil {
		return nil
	}
	request, err := customization.RequestOf(source)
	if err != nil || request.IsZero() {
		return err
	}
	customizer, known, err := w.customizer(request.Customizer)
	if err != nil {
		return err
	}
	parameters, selected := w.parametersAt(key.mailbox, selectedBy)
	if !known || !selected {
		// An event is on its way.
		s.Up.State = plan.Unknown
		return nil
	}
	s.Up.Object, err = customization.Customize(source, request, customizer, parameters)
	return err
}

// customizer returns a Customizer of the workspace; nil for the zero name. known is false while it is unknown.
func (w *workspace) customizer(name types.NamespacedName) (customizer *edgev2alpha1.Customizer, known bool, err error) {
	if name == (types.NamespacedName{}) {
		return nil, true, nil
	}
	cached, state := w.Workloads.Get(customizers, w.cluster, name)
	switch {
	case state == mailboxes.Unknown:
		return nil, false, nil
	case state == mailboxes.Absent:
		return nil, false, &customizerNotFoundError{name}
	case mailboxes.ProjectionOf(cached) != mailboxes.FullObject:
		return nil, false, errWorkspaceLimit
	}
	customizer = &edgev2alpha1.Customizer{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(cached.Object, customizer); err != nil {
		return nil, false, &customization.Error{Reason: plan.ReasonInvalid, Field: fmt.Sprintf("Customizer %s", name), Message: "it cannot be read: " + err.Error()}
	}
	return customizer, true, nil
}

// parametersAt returns the parameters of a mailbox for an object: the parameters of the oldest placement that
// selects both. known is false if no placement does any more.
func (w *workspace) parametersAt(mailbox logicalcluster.Name, selectedBy []*resolvedPlacement) (parameters customization.Parameters, known bool) {
	w.lock.Lock()
	defer w.lock.Unlock()
	if w.placements == nil {
		return nil, false
	}
	for _, one := range selectedBy {
		// The object may have been selected by an older view of the same placement.
		current := slices.IndexFunc(w.placements.all, func(p *resolvedPlacement) bool { return p.UID == one.UID })
		if current < 0 {
			continue
		}
		if destination, ok := w.placements.all[current].mailboxes[mailbox]; ok {
			return destination.Parameters(), true
		}
	}
	return nil, false
}
