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
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/synchub-dev/synchub/controllers/plan"
	"github.com/synchub-dev/synchub/controllers/plan/ownership"
	"github.com/synchub-dev/synchub/controllers/plan/transform"
	"github.com/synchub-dev/synchub/provider/mailboxes"
)

// workloadObserver enqueues the objects of workload workspaces that change.
type workloadObserver struct{ *Controller }

// OnEvent is called for each change in a workload workspace.
func (o workloadObserver) OnEvent(resource schema.GroupVersionResource, cluster logicalcluster.Name, event mailboxes.Event) {
	switch resource {
	case edgePlacements:
		if changesPlacement(event) {
			o.ensureWorkspace(cluster)
			o.resolveRequests.Publish(cluster)
		} else {
			o.reportRequests.Publish(cluster)
		}
	case slicesResource:
		o.reportRequests.Publish(cluster)
	case customizers:
		if w := o.findWorkspace(cluster); w != nil {
			w.enqueueCustomizedBy(event.Key)
		}
	default:
		w := o.ensureWorkspace(cluster)
		w.deletions.record(objectKey{resource, event.Key}, event)
		if isStatusOnly(event) {
			// Copies do not have the source's status.
			w.enqueue(objectKey{resource, event.Key}.statusTask())
			return
		}
		w.enqueue(task{resource: resource, name: event.Key})
		if resource == namespaces && labelsChanged(event) && w.selectsByNamespaceLabels() {
			w.requireReselect()
			o.resolveRequests.Publish(cluster)
		}
	}
}

// changesPlacement reports whether an event changes more of an EdgePlacement than its status.
func changesPlacement(event mailboxes.Event) bool {
	before, after := event.Old, event.New
	return before == nil || after == nil || event.ProjectionOnly || before.GetGeneration() != after.GetGeneration() || after.GetDeletionTimestamp() != nil
}

// isStatusOnly reports whether an event changes only the status of an object. It can be true only for kinds
// that count generations.
func isStatusOnly(event mailboxes.Event) bool {
	before, after := event.Old, event.New
	return before != nil && after != nil && !event.ProjectionOnly && before.GetUID() == after.GetUID() &&
		after.GetGeneration() > 0 && before.GetGeneration() == after.GetGeneration() && after.GetDeletionTimestamp() == nil &&
		maps.Equal(before.GetLabels(), after.GetLabels()) && maps.Equal(before.GetAnnotations(), after.GetAnnotations())
}

func labelsChanged(event mailboxes.Event) bool {
	return event.Old == nil || event.New == nil || !maps.Equal(event.Old.GetLabels(), event.New.GetLabels())
}

// OnAbsenceDecided is called after kcp has confirmed or denied that an object, or a placement, is gone.
func (o workloadObserver) OnAbsenceDecided(resource schema.GroupVersionResource, cluster logicalcluster.Name, key types.NamespacedName) {
	if slices.Contains(Resources, resource) {
		o.resolveRequests.Publish(cluster)
		return
	}
	if w := o.findWorkspace(cluster); w != nil {
		w.enqueue(task{resource: resource, name: key})
	}
}

// OnReset is called when the binding of a workspace, or a cache, has changed.
func (o workloadObserver) OnReset(cluster logicalcluster.Name) {
	w := o.ensureWorkspace(cluster)
	w.requireReselect()
	if !o.started.Load() && o.Workloads.BindingState(cluster) == mailboxes.BindingUnknown {
		// The hub is not started, so nothing resolves the workspace, which may be gone.
		o.drop(w)
	}
	o.resolveRequests.Publish(cluster)
}

// mailboxObserver enqueues the pairs whose copies change.
type mailboxObserver struct{ *Controller }

// OnEvent is called for each change in a mailbox. For objects that are not copies it only looks up an
// annotation.
func (o mailboxObserver) OnEvent(resource schema.GroupVersionResource, mailbox logicalcluster.Name, event mailboxes.Event) {
	if resource == syncerConfigs {
		o.onConfig(mailbox, event)
		return
	}
	before, was := o.workspaceOf(event.Old)
	after, is := before, was
	if event.Old == nil || event.New == nil || markOf(event.Old) != markOf(event.New) {
		after, is = o.workspaceOf(event.New)
	}
	if was && (!is || before != after) {
		o.ensureWorkspace(before).onCopy(resource, event.Key, mailbox, event.Old, nil)
	}
	if is {
		o.ensureWorkspace(after).onCopy(resource, event.Key, mailbox, event.Old, event.New)
	}
	if event.New == nil || event.Old == nil || was && !is {
		o.names.wake(pairKey{objectKey{resource, event.Key}, mailbox}, o.findWorkspace)
	}
	if was && event.New == nil {
		o.wakeNamespaceWaiters(event.Key.Namespace, mailbox)
	}
}

// wakeNamespaceWaiters enqueues the pairs of other workspaces that wait until a namespace has no copies of this
// one.
func (o mailboxObserver) wakeNamespaceWaiters(namespace string, mailbox logicalcluster.Name) {
	if namespace != "" {
		o.names.wake(pairKey{namespaceKey(namespace), mailbox}, o.findWorkspace)
	}
}

// namespaceKey returns the key of a Namespace.
func namespaceKey(name string) objectKey {
	return objectKey{namespaces, types.NamespacedName{Name: name}}
}

// onConfig enqueues a config of the hub that has changed.
func (o mailboxObserver) onConfig(mailbox logicalcluster.Name, event mailboxes.Event) {
	key, ok := configKeyOf(mailbox, event.Key.Name)
	if !ok {
		return
	}
	if event.New == nil && event.Old != nil {
		o.configs.writes.DeletionObserved(key, event.Old.GetUID())
	}
	o.configRequests.Publish(key)
}

func markOf(object *unstructured.Unstructured) string {
	text, _ := plan.Annotation(object, ownership.MarkAnnotation)
	return text
}

// workspaceOf returns the workspace that a copy came from; ok is false for other objects. Only the hub can seal
// a mark, so users cannot make the hub keep state for a workspace.
func (c *Controller) workspaceOf(object *unstructured.Unstructured) (workspace logicalcluster.Name, ok bool) {
	if object == nil {
		return "", false
	}
	text := markOf(object)
	if !ownership.MayBeForPlacements(text) {
		// The marks of upsynced objects are not parsed.
		return "", false
	}
	claimed, _ := ownership.ClaimedOwner(text)
	if claimed.Hub != c.Hub || !claimed.IsForPlacements() {
		return "", false
	}
	claimed.Sealer = c.Sealer
	mark, err := claimed.VerifyMark(text, transform.SelfOf(object), ownership.DirectionUp)
	return logicalcluster.Name(mark.Mailbox), err == nil
}

// OnAbsenceDecided does nothing: the sync controllers handle these candidates.
func (o mailboxObserver) OnAbsenceDecided(schema.GroupVersionResource, logicalcluster.Name, types.NamespacedName) {
}

// OnReset is called when the binding of a mailbox, or a cache, has changed.
func (o mailboxObserver) OnReset(mailbox logicalcluster.Name) {
	o.configRequests.Publish(configKey{mailbox: mailbox})
	for _, w := range o.allWorkspaces() {
		w.enqueue(task{mailbox: mailbox})
		o.configRequests.Publish(configKey{mailbox, w.cluster})
	}
}
