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
	"strings"

	"github.com/kcp-dev/logicalcluster/v3"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/synchub-dev/synchub/controllers/plan"
	"github.com/synchub-dev/synchub/controllers/plan/ownership"
	"github.com/synchub-dev/synchub/controllers/plan/policy"
	"github.com/synchub-dev/synchub/controllers/plan/transform"
)

// marks creates and verifies what only the hub can write: the marks of copies, and seals.
type marks struct {
	hub    types.UID
	sealer *ownership.Sealer
}

// ownerOf returns the owner of the copies in the mailbox of a SyncTarget.
func (m marks) ownerOf(syncTarget types.UID) ownership.Owner {
	return ownership.Owner{Hub: m.hub, SyncTarget: syncTarget, Sealer: m.sealer}.ForPlacements()
}

// creatorOf returns the creator of a workspace's copies that the hub has released. Only the same workspace may take
// them over. The creator of Namespaces and CustomResourceDefinitions is [marks.ownerOf].
func (m marks) creatorOf(syncTarget types.UID, workspace logicalcluster.Name) ownership.Owner {
	creator := m.ownerOf(syncTarget)
	creator.SyncTarget += "/" + types.UID(workspace)
	return creator
}

// statusOwner returns the owner of the statuses that the hub wrote in a workspace. Only the hub can create its
// annotation, which is valid for one object of one workspace. A user who copies the annotation, or sets
// KubeStellar's, cannot make the hub remove a status.
func (m marks) statusOwner(workspace logicalcluster.Name) ownership.Owner {
	return ownership.Owner{Hub: m.hub, SyncTarget: types.UID("status/" + workspace), Sealer: m.sealer}
}

// hasReturnedStatus reports whether the hub has written the status of an object of a workspace.
func (m marks) hasReturnedStatus(workspace logicalcluster.Name, source *unstructured.Unstructured) bool {
	text, found := plan.Annotation(source, ownership.StatusAnnotation)
	return found && m.statusOwner(workspace).HasEnsured(text, transform.SelfOf(source))
}

// purpose returns the purpose of seals of a kind. A seal is valid only for the same kind, hub and parts.
func (m marks) purpose(kind string, parts ...string) string {
	return strings.Join(append([]string{kind, string(m.hub)}, parts...), "/")
}

// verify returns the mark of a copy; ok is false for other objects. Only the hub can seal a mark, so users cannot make the hub
// keep state for a workspace.
func (m marks) verify(object *unstructured.Unstructured) (mark ownership.Mark, ok bool) {
	if object == nil {
		return ownership.Mark{}, false
	}
	text := markOf(object)
	if !ownership.MayBeForPlacements(text) {
		// The marks of upsynced objects are not parsed.
		return ownership.Mark{}, false
	}
	claimed, _ := ownership.ClaimedOwner(text)
	if claimed.Hub != m.hub || !claimed.IsForPlacements() {
		return ownership.Mark{}, false
	}
	claimed.Sealer = m.sealer
	mark, err := claimed.VerifyMark(text, transform.SelfOf(object), ownership.DirectionUp)
	return mark, err == nil
}

// workspaceOf returns the workspace that a copy came from; ok is false for other objects.
func (m marks) workspaceOf(object *unstructured.Unstructured) (workspace logicalcluster.Name, ok bool) {
	mark, ok := m.verify(object)
	return logicalcluster.Name(mark.Mailbox), ok
}

// pairOf returns the workspace that a copy in a mailbox came from, and the pair that it belongs to; ok is false for other objects. The
// copy may be a twin.
func (m marks) pairOf(resource schema.GroupVersionResource, mailbox logicalcluster.Name, object *unstructured.Unstructured) (workspace logicalcluster.Name, key pairKey, ok bool) {
	mark, ok := m.verify(object)
	if !ok {
		return "", pairKey{}, false
	}
	source := objectKey{policy.InWorkload(resource), types.NamespacedName{Namespace: mark.Source.Namespace, Name: mark.Source.Name}}
	return logicalcluster.Name(mark.Mailbox), pairKey{source, siteOf(resource, mailbox, nameOf(object))}, true
}

// reflectionOf returns the origin of a reflection in a workspace, and the owner of its mark; ok is false for other objects. The mark names the
// workspace, so a copy of it in another workspace does not count.
func (m marks) reflectionOf(workspace logicalcluster.Name, resource schema.GroupVersionResource, object *unstructured.Unstructured) (origin copyKey, owner ownership.Owner, ok bool) {
	if object == nil {
		return copyKey{}, ownership.Owner{}, false
	}
	text := markOf(object)
	if !ownership.MayBeForWorkspace(text) {
		return copyKey{}, ownership.Owner{}, false
	}
	owner, _ = ownership.ClaimedOwner(text)
	if claimed, _, _, is := owner.SplitForWorkspace(); !is || claimed != workspace.String() || owner.Hub != m.hub {
		return copyKey{}, ownership.Owner{}, false
	}
	owner.Sealer = m.sealer
	mark, err := owner.VerifyMark(text, transform.SelfOf(object), ownership.DirectionUp)
	if err != nil {
		return copyKey{}, ownership.Owner{}, false
	}
	return copyKey{resource, logicalcluster.Name(mark.Mailbox), types.NamespacedName{Namespace: mark.Source.Namespace, Name: mark.Source.Name}}, owner, true
}

func markOf(object *unstructured.Unstructured) string {
	text, _ := plan.Annotation(object, ownership.MarkAnnotation)
	return text
}
