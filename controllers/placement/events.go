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
	"maps"
	"slices"

	"github.com/kcp-dev/logicalcluster/v3"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/synchub-dev/synchub/controllers/objectsync"
	"github.com/synchub-dev/synchub/controllers/plan/policy"
	"github.com/synchub-dev/synchub/provider/mailboxes"
)

// workloadObserver enqueues the objects of workload workspaces that change.
type workloadObserver struct {
	workloads  *mailboxes.Mailboxes
	workspaces *workspaces
	requests   *requests
	startup    *startup
	marks      marks
}

// OnEvent is called for each change in a workload workspace.
func (o workloadObserver) OnEvent(resource schema.GroupVersionResource, cluster logicalcluster.Name, event mailboxes.Event) {
	switch resource {
	case edgePlacements:
		if changesPlacement(event) {
			o.workspaces.ensure(cluster)
			o.requests.resolve.Publish(cluster)
		} else {
			o.requests.report.Publish(cluster)
		}
	case slicesResource:
		o.requests.report.Publish(cluster)
	case customizers:
		if w := o.workspaces.find(cluster); w != nil {
			w.pairs.enqueueCustomizedBy(event.Key)
		}
	default:
		w, key := o.workspaces.ensure(cluster), objectKey{resource, event.Key}
		if w.reflections.onObject(o.marks, key, event) {
			return
		}
		w.pairs.deletions.record(key, event)
		if isStatusOnly(event) {
			// Copies do not have the source's status.
			w.tasks.add(key.statusTask())
			return
		}
		w.tasks.add(key.task())
		if resource != namespaces || event.Old != nil && event.New != nil && maps.Equal(event.Old.GetLabels(), event.New.GetLabels()) {
			return
		}
		if active := w.active.get(); active != nil && active.byNamespaceLabels {
			w.active.requireReselect()
			o.requests.resolve.Publish(cluster)
		}
	}
}

// changesPlacement reports whether an event changes more of an EdgePlacement than its status.
func changesPlacement(event mailboxes.Event) bool {
	before, after := event.Old, event.New
	return before == nil || after == nil || event.ProjectionOnly || before.GetGeneration() != after.GetGeneration() || after.GetDeletionTimestamp() != nil
}

// isStatusOnly reports whether an event changes only the status of an object. It can be true only for kinds
// that count generations. The event of a new status may also be the first one with the whole object.
func isStatusOnly(event mailboxes.Event) bool {
	before, after := event.Old, event.New
	return before != nil && after != nil && !event.ProjectionOnly && mailboxes.ProjectionOf(before) == mailboxes.ProjectionOf(after) && before.GetUID() == after.GetUID() &&
		after.GetGeneration() > 0 && before.GetGeneration() == after.GetGeneration() && after.GetDeletionTimestamp() == nil &&
		maps.Equal(before.GetLabels(), after.GetLabels()) && maps.Equal(before.GetAnnotations(), after.GetAnnotations())
}

// OnAbsenceDecided is called after kcp has confirmed or denied that an object, or a placement, is gone.
func (o workloadObserver) OnAbsenceDecided(resource schema.GroupVersionResource, cluster logicalcluster.Name, key types.NamespacedName) {
	if slices.Contains(Resources, resource) {
		o.requests.resolve.Publish(cluster)
		return
	}
	if w := o.workspaces.find(cluster); w != nil {
		w.tasks.add(objectKey{resource, key}.task())
	}
}

// OnReset is called when the binding of a workspace, or a cache, has changed.
func (o workloadObserver) OnReset(cluster logicalcluster.Name) {
	w := o.workspaces.ensure(cluster)
	w.active.requireReselect()
	if !o.startup.hasBegun() && o.workloads.BindingState(cluster) == mailboxes.BindingUnknown {
		// The hub is not started, so nothing resolves the workspace, which may be gone.
		o.workspaces.drop(w)
	}
	o.requests.resolve.Publish(cluster)
}

// mailboxObserver enqueues the pairs and the configs that change in mailboxes.
type mailboxObserver struct {
	mailboxes  *mailboxes.Mailboxes
	workspaces *workspaces
	requests   *requests
	marks      marks
	names      *nameWaiters
	configs    *configs
	stuck      *stuckCopies
	// reflections finds the workspaces that show what came up into a mailbox.
	reflections *reflectionIndex
}

// changesMark reports whether an object of a mailbox may be the copy of another pair than before.
func changesMark(event mailboxes.Event) bool {
	return event.Old == nil || event.New == nil || markOf(event.Old) != markOf(event.New)
}

// OnEvent is called for each change in a mailbox. For objects that are not copies it only looks up an
// annotation.
func (o mailboxObserver) OnEvent(resource schema.GroupVersionResource, mailbox logicalcluster.Name, event mailboxes.Event) {
	if resource == syncerConfigs {
		o.configs.onEvent(mailbox, event)
		return
	}
	before, pairBefore, was := o.marks.pairOf(resource, mailbox, event.Old)
	after, pairAfter, is := before, pairBefore, was
	if changesMark(event) {
		after, pairAfter, is = o.marks.pairOf(resource, mailbox, event.New)
	}
	if was && (!is || before != after || pairBefore != pairAfter) {
		o.enqueueUsers(pairBefore.site, o.workspaces.ensure(before).pairs.onCopy(pairBefore, event.Old, nil))
	}
	if is {
		o.enqueueUsers(pairAfter.site, o.workspaces.ensure(after).pairs.onCopy(pairAfter, event.Old, event.New))
	}
	o.enqueueReflectionsOf(copyKey{resource, mailbox, event.Key}, event.New, was != is || before != after, before, after)
	if event.New == nil || event.Old == nil || was && !is {
		o.wakeWaiters(copyKey{policy.InWorkload(resource), mailbox, event.Key}, was && event.New == nil)
	}
}

// wakeWaiters enqueues the pairs that wait for a name that has become free, or is another object's. If a copy is gone, Namespaces of other
// workspaces may wait until the namespace has no copies of this one.
func (o mailboxObserver) wakeWaiters(name copyKey, isCopyGone bool) {
	o.names.wake(name, o.workspaces.find)
	if isCopyGone {
		o.names.wake(copyKey{namespaces, name.mailbox, types.NamespacedName{Name: name.name.Namespace}}, o.workspaces.find)
	}
}

// OnAbsenceDecided enqueues the reflections of an object that kcp has confirmed to be gone, or not. The sync controllers handle all other
// candidates.
func (o mailboxObserver) OnAbsenceDecided(resource schema.GroupVersionResource, mailbox logicalcluster.Name, key types.NamespacedName) {
	o.enqueueReflections(copyKey{resource, mailbox, key}, nil)
}

// OnReset is called when the binding of a mailbox, or a cache, has changed.
func (o mailboxObserver) OnReset(mailbox logicalcluster.Name) {
	o.requests.config.Publish(configKey{mailbox: mailbox})
	for _, cluster := range o.reflections.wantingFrom(mailbox) {
		o.enqueueNamespace(cluster, mailbox, "")
	}
	for _, w := range o.workspaces.list() {
		w.tasks.add(task{site: site{mailbox: mailbox}})
		o.requests.config.Publish(configKey{mailbox, w.cluster})
	}
}

// onSyncStatus enqueues the pair of a copy whose sync status has changed. The workspace of a stuck copy reports it.
func (o mailboxObserver) onSyncStatus(ref objectsync.ObjectRef) {
	if ref.Workspace != "" {
		o.stuck.update(ref)
		if w := o.workspaces.find(ref.Workspace); w != nil {
			w.pairs.reports.request()
		}
	}
	inMailbox, _ := o.mailboxes.Get(ref.Resource, ref.Mailbox, ref.Key)
	cluster, key, ok := o.marks.pairOf(ref.Resource, ref.Mailbox, inMailbox)
	switch {
	case ok:
		if w := o.workspaces.find(cluster); w != nil {
			w.tasks.add(key.task())
		}
	case ref.Resource == objectsync.CRDResource:
		// A CRD that the hub installs has no copy in the mailbox.
		key = pairKey{objectKey{ref.Resource, ref.Key}, siteOf(ref.Resource, ref.Mailbox, ref.Key)}
		for _, w := range o.workspaces.list() {
			w.pairs.inspect(key, func(*object, *pair) { w.tasks.add(key.task()) })
		}
	}
}
