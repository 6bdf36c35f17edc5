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
	"time"

	"github.com/kcp-dev/logicalcluster/v3"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/controllers/plan/ownership"
	"github.com/synchub-dev/synchub/provider/mailboxes"
)

// mayHaveComeUp reports whether a mailbox object claims that the hub upsynced it. The pass for its reflection verifies that.
func mayHaveComeUp(inMailbox *unstructured.Unstructured) bool {
	if inMailbox == nil {
		return false
	}
	text := markOf(inMailbox)
	return text != "" && !ownership.MayBeForPlacements(text)
}

// enqueueReflectionsOf enqueues the reflections of an object of a mailbox, or those in a Namespace that another workspace has now.
func (o mailboxObserver) enqueueReflectionsOf(key copyKey, object *unstructured.Unstructured, isPassedOn bool, workspaces ...logicalcluster.Name) {
	if key.resource != namespaces {
		o.enqueueReflections(key, object)
		return
	}
	for _, cluster := range workspaces {
		if isPassedOn {
			o.enqueueNamespace(cluster, key.mailbox, key.name.Name)
		}
	}
}

// enqueueReflections enqueues the reflections of a mailbox object that has changed. It finds the workspace by the mark of the namespace in
// the mailbox, so its cost does not grow with the number of workspaces.
func (o mailboxObserver) enqueueReflections(key copyKey, inMailbox *unstructured.Unstructured) {
	known, isWanting := o.reflections.concerns(key)
	for _, cluster := range known {
		if w := o.workspaces.find(cluster); w != nil {
			w.tasks.add(key.reflectionTask())
		}
	}
	if !isWanting || key.name.Namespace == "" || !mayHaveComeUp(inMailbox) {
		return
	}
	namespace, _ := o.mailboxes.Get(namespaces, key.mailbox, types.NamespacedName{Name: key.name.Namespace})
	cluster, ok := o.marks.workspaceOf(namespace)
	if !ok {
		cluster, _, _ = o.reflections.users.only(site{key.mailbox, key.name.Namespace})
	}
	if w := o.workspaces.find(cluster); w != nil && o.reflections.isWanting(cluster, key.mailbox) {
		w.tasks.add(key.reflectionTask())
	}
}

// enqueueUsers selects the reflections of workspaces from a namespace of a mailbox again.
func (o mailboxObserver) enqueueUsers(at site, workspaces []logicalcluster.Name) {
	for _, cluster := range workspaces {
		o.enqueueNamespace(cluster, at.mailbox, at.inMailbox)
	}
}

// enqueueNamespace selects the reflections of a workspace from a namespace of a mailbox, which the workspace has got or lost.
func (o mailboxObserver) enqueueNamespace(cluster, mailbox logicalcluster.Name, namespace string) {
	if w := o.workspaces.find(cluster); w != nil && o.reflections.isWanting(cluster, mailbox) {
		w.tasks.add(task{site: site{mailbox, namespace}, reflection: true})
	}
}

// onObject records an event of an object of the workspace, and enqueues the reflections that it decides about. It returns true if the object
// is a reflection, which no placement selects.
func (r *reflections) onObject(marks marks, object objectKey, event mailboxes.Event) (isReflection bool) {
	key, _, was := marks.reflectionOf(r.cluster, object.resource, event.Old)
	after, _, is := marks.reflectionOf(r.cluster, object.resource, event.New)
	if is {
		key = after
	}
	if event.New == nil && event.Old != nil && was {
		r.writes.DeletionObserved(key, event.Old.GetUID())
	}
	r.lock.Lock()
	defer r.lock.Unlock()
	if is || was {
		r.recordLocked(key, object, event, is, was)
		r.tasks.add(key.reflectionTask())
		r.aggregationChanged()
	}
	isOwned := event.New != nil && r.ownsLocked(object, event.New.GetUID())
	if isOtherObject(event) {
		for other := range r.interested[object] {
			r.tasks.add(other.reflectionTask())
		}
	}
	return is || isOwned || was && event.New == nil
}

// recordLocked records that the object is, or was, the reflection of a key. The caller holds the lock.
func (r *reflections) recordLocked(key copyKey, object objectKey, event mailboxes.Event, is, was bool) {
	if is {
		found := r.ensure(key)
		found.uid = event.New.GetUID()
		if found.name == (types.NamespacedName{}) {
			found.name = object.name
			r.setInterests(key, found, []objectKey{object})
		}
	}
	if found := r.all[key]; found != nil && was && event.New == nil && found.uid == event.Old.GetUID() {
		found.isRemoved = found.uid != found.deleted
		found.uid, found.isPresent = "", false
	}
}

// isOtherObject reports whether an object has appeared, is going or gone, or was replaced by another one of its name.
func isOtherObject(event mailboxes.Event) bool {
	return event.Old == nil || event.New == nil || event.Old.GetUID() != event.New.GetUID() || event.New.GetDeletionTimestamp() != nil
}

// activate enqueues the reflections that the next placements concern. changed is true if they may want other reflections than before.
func (r *reflections) activate(before, next *placements, changed bool, now time.Time) {
	wanting := next.wantingReflectionsFrom()
	r.index.set(r.cluster, before.wantingReflectionsFrom(), wanting)
	r.lock.Lock()
	r.isAggregated.Store(next.aggregates())
	r.aggregationChanged()
	if r.limit.isExceeded {
		r.limit.isExceeded = !r.limit.admits(0)
		changed = changed || !r.limit.isExceeded
		next.resolveBy(now.Add(limitRecheck))
	}
	for key, found := range r.all {
		if _, ok := wanting[key.mailbox]; !ok {
			found.selectedBy = nil
		}
		if changed || len(found.selectedBy) == 0 {
			r.tasks.add(key.reflectionTask())
		}
	}
	r.lock.Unlock()
	if changed {
		for mailbox := range wanting {
			r.tasks.add(task{site: site{mailbox: mailbox}, reflection: true})
		}
	}
}

// wantingReflectionsFrom returns the mailboxes whose objects the placements bring up into the workspace. p may be nil.
func (p *placements) wantingReflectionsFrom() map[logicalcluster.Name]struct{} {
	wanting := map[logicalcluster.Name]struct{}{}
	if p == nil {
		return wanting
	}
	for _, one := range p.all {
		if !one.UpsyncsToWorkspace() {
			continue
		}
		for mailbox, destination := range one.mailboxes {
			if destination.MayUpsyncTo(edgev2alpha1.UpsyncToWorkspace) {
				wanting[mailbox] = struct{}{}
			}
		}
	}
	return wanting
}

// upsyncsToWorkspace reports whether a placement brings objects up into the workspace.
func (p *placements) upsyncsToWorkspace() bool {
	for _, one := range p.all {
		if one.UpsyncsToWorkspace() {
			return true
		}
	}
	return false
}

// reflectingFrom returns the placements that bring objects of a mailbox up into the workspace, and those that do so from other mailboxes only.
func (p *placements) reflectingFrom(mailbox logicalcluster.Name) (here, elsewhere []*resolvedPlacement) {
	for _, one := range p.all {
		destination, isDestination := one.mailboxes[mailbox]
		switch {
		case !one.UpsyncsToWorkspace():
		case isDestination && destination.MayUpsyncTo(edgev2alpha1.UpsyncToWorkspace):
			here = append(here, one)
		default:
			elsewhere = append(elsewhere, one)
		}
	}
	return here, elsewhere
}

// selectAt enqueues the reflections of all objects that came up into a mailbox, or into one of its namespaces. again is when to repeat that,
// because copies of other workspaces may be unknown; zero for never.
func (o *reflectionObserver) selectAt(mailbox logicalcluster.Name, namespace string) (again time.Duration) {
	active := o.active.get()
	if active == nil {
		return 0
	}
	if users := o.reflections.index.users; !users.isComplete(mailbox) {
		if !o.startup.areCopiesSyncedIn(mailbox) {
			again = startupPoll
		} else {
			users.setComplete(mailbox)
		}
	}
	here, _ := active.reflectingFrom(mailbox)
	for key := range o.origins(here, mailbox) {
		if namespace == "" || key.name.Namespace == namespace {
			o.reflections.tasks.add(key.reflectionTask())
		}
	}
	// The reflections may have to go if the namespace is another workspace's now.
	o.reflections.enqueueFrom(mailbox, namespace)
	return again
}

// enqueueFrom enqueues the known reflections from a mailbox, or from one of its namespaces.
func (r *reflections) enqueueFrom(mailbox logicalcluster.Name, namespace string) {
	r.lock.Lock()
	defer r.lock.Unlock()
	for key := range r.all {
		if key.mailbox == mailbox && (namespace == "" || key.name.Namespace == namespace) {
			r.tasks.add(key.reflectionTask())
		}
	}
}

// origins yields the objects of a mailbox that may have reflections by some placements, with their namespaces in the workspace.
func (o *reflectionObserver) origins(here []*resolvedPlacement, mailbox logicalcluster.Name) func(yield func(copyKey, *unstructured.Unstructured) bool) {
	return func(yield func(copyKey, *unstructured.Unstructured) bool) {
		for of, resource := range o.sources.policy.published() {
			if !isReflectable(resource) || !selectsResource(here, of, resource.Kind) {
				continue
			}
			objects, _ := o.mailboxes.List(of, mailbox)
			for _, object := range objects {
				key := copyKey{of, mailbox, nameOf(object)}
				if _, state := o.namespaceOf(key); state == ownNamespace && mayHaveComeUp(object) && !yield(key, object) {
					return
				}
			}
		}
	}
}

// selectsResource reports whether a placement brings objects of a resource up into the workspace.
func selectsResource(placements []*resolvedPlacement, of schema.GroupVersionResource, kind string) bool {
	for _, one := range placements {
		if one.SelectsResourceForWorkspace(of.GroupResource(), kind) {
			return true
		}
	}
	return false
}
