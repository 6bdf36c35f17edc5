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
	"context"
	"maps"
	"time"

	"github.com/kcp-dev/logicalcluster/v3"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"github.com/synchub-dev/synchub/controllers/placement/fleet"
	"github.com/synchub-dev/synchub/controllers/placement/fleetcache"
	"github.com/synchub-dev/synchub/controllers/placement/reflection"
	"github.com/synchub-dev/synchub/controllers/placement/rules"
	"github.com/synchub-dev/synchub/controllers/plan"
	"github.com/synchub-dev/synchub/controllers/plan/ownership"
	"github.com/synchub-dev/synchub/controllers/plan/policy"
	"github.com/synchub-dev/synchub/controllers/plan/transform"
	"github.com/synchub-dev/synchub/provider/cachesize"
	"github.com/synchub-dev/synchub/provider/mailboxes"
	"github.com/synchub-dev/synchub/provider/mailboxes/absence"
)

// ownerPatience is how long a new reflection waits for the reflections of its owners, so that it is written once.
const ownerPatience = 5 * time.Second

var errMailboxLimit = denied(rules.ReasonLimitExceeded, "the mailbox of the destination has more objects, or larger ones, than the hub reads: ask who administers the inventory")

// reflectionSnapshot holds all facts about a reflection in one pass.
type reflectionSnapshot struct {
	reflection.Snapshot
	key copyKey
	// name is the name in the workspace, and hasNamespace is true if the workspace has its namespace.
	name         types.NamespacedName
	hasNamespace bool
	syncTarget   fleet.SyncTarget
	selectedBy   []types.UID
	interests    []objectKey
	// size is the size of the desired reflection.
	size int64
}

// reflectionObserver reads reflectionSnapshots.
type reflectionObserver struct {
	sources     *sources
	mailboxes   *mailboxes.Mailboxes
	reflections *reflections
	active      *activePlacements
	fleet       *fleetcache.Fleet
	marks       marks
	verifier    verifier
	startup     *startup
	hasher      ownership.Hasher
	clock       clock.PassiveClock
}

// isReflectable reports whether objects of a published resource may have reflections: namespaced ones that do not act inside kcp, even
// if an operator lets them come up into mailboxes.
func isReflectable(resource plan.Resource) bool {
	return resource.Namespaced && !resource.Unpublishing && !policy.IsPrivileged(resource.GroupResource())
}

// namespaceState is whether a namespace of a mailbox belongs to the workspace.
type namespaceState int

const (
	unknownNamespace namespaceState = iota
	ownNamespace
	foreignNamespace
)

// namespaceOf returns the namespace of the workspace that the namespace of a mailbox object is the copy of. Only the hub can make the mark
// of that copy, so nobody else's objects reach the workspace.
func (o *reflectionObserver) namespaceOf(key copyKey) (namespace string, state namespaceState) {
	inMailbox, _ := o.mailboxes.Get(namespaces, key.mailbox, types.NamespacedName{Name: key.name.Namespace})
	mark, ok := o.marks.verify(inMailbox)
	syncTarget, known := o.fleet.Snapshot().SyncTargetOf(key.mailbox)
	switch {
	case !known:
		return "", unknownNamespace
	case !ok && syncTarget.Tenancy.Naming.IsShared():
		return key.name.Namespace, o.sharedNamespaceState(site{key.mailbox, key.name.Namespace})
	case !ok:
		return "", unknownNamespace
	case mark.Mailbox != o.sources.cluster.String():
		return "", foreignNamespace
	case syncTarget.Tenancy.Naming.Namespace(o.sources.cluster, mark.Source.Name) != key.name.Namespace:
		// The cluster is shared in another way now, and the copy moves.
		return "", unknownNamespace
	default:
		return mark.Source.Name, ownNamespace
	}
}

// sharedNamespaceState returns whether a namespace that the workspaces share is the workspace's, because no other has copies there.
func (o *reflectionObserver) sharedNamespaceState(at site) namespaceState {
	only, count, known := o.reflections.index.users.only(at)
	switch {
	case !known || count == 0:
		return unknownNamespace
	case only == o.sources.cluster:
		return ownNamespace
	default:
		return foreignNamespace
	}
}

// observe reads all facts that one pass needs. It returns nil if nothing can be done about the reflection now. If it returns a snapshot and
// an error, the error is why the workspace cannot have the reflection.
func (o *reflectionObserver) observe(ctx context.Context, key copyKey) (*reflectionSnapshot, error) {
	resource, ok := o.sources.policy.published()[key.resource]
	active, known := o.active.read(), o.reflections.get(key)
	if !ok || !isReflectable(resource) || active.placements == nil {
		return nil, nil
	}
	s := &reflectionSnapshot{key: key, name: known.name, interests: known.interests}
	s.Resource, s.AddedPaths, s.DroppedPaths = resource, known.added, o.reflections.writes.DroppedPaths(key)
	s.syncTarget, _ = o.fleet.Snapshot().SyncTargetOf(key.mailbox)
	if s.syncTarget.Terminating {
		s.syncTarget = fleet.SyncTarget{}
	}
	inMailbox, err := o.observeOrigin(ctx, s, active)
	if s.State == "" || err != nil {
		return nil, err
	}
	if s.name.Name == "" {
		return s, nil
	}
	if !o.observeObject(s) {
		return nil, nil
	}
	if s.State == plan.Selected {
		return s, o.observeDesired(s, known, inMailbox)
	}
	return s, nil
}

// observeOrigin sets the state of the origin in a mailbox; empty if the reflection must stay as it is for now. It returns the origin if the
// state is plan.Selected.
func (o *reflectionObserver) observeOrigin(ctx context.Context, s *reflectionSnapshot, active selectionState) (*unstructured.Unstructured, error) {
	here, elsewhere := active.placements.reflectingFrom(s.key.mailbox)
	if len(here) == 0 {
		return nil, o.observeDeselected(ctx, s, active, elsewhere)
	}
	inMailbox, state := o.mailboxes.Get(s.key.resource, s.key.mailbox, s.key.name)
	namespace, namespaceState := o.namespaceOf(s.key)
	switch {
	case namespaceState == foreignNamespace:
		s.State, s.AbsenceVerified = plan.Deselected, true
		return nil, nil
	case state == mailboxes.Unknown, s.syncTarget.Name == "":
		return nil, nil
	case state == mailboxes.Absent:
		s.State = plan.SourceNotFound
		s.AbsenceVerified = s.name.Name != "" && o.mailboxes.Absences.TakeVerifiedAbsence(s.key.mailbox, s.key.candidate())
		return nil, nil
	case namespaceState != ownNamespace, inMailbox.GetDeletionTimestamp() != nil, !o.isOriginOf(s, inMailbox):
		// An event follows when the object is gone. An object without the hub's mark is not what came up.
		return nil, nil
	}
	s.selectedBy = selectingForWorkspace(here, s.Resource, namespace, inMailbox)
	if len(s.selectedBy) == 0 {
		return nil, o.observeDeselected(ctx, s, active, elsewhere)
	}
	s.State = plan.Selected
	if s.name.Name == "" {
		s.name = types.NamespacedName{Namespace: namespace, Name: reflection.Name(inMailbox.GetName(), s.syncTarget.Name)}
	}
	return inMailbox, nil
}

// isOriginOf reports whether the hub upsynced a mailbox object from the SyncTarget.
func (o *reflectionObserver) isOriginOf(s *reflectionSnapshot, inMailbox *unstructured.Unstructured) bool {
	return plan.IsUpsyncedBy(o.originOwner(s.syncTarget), inMailbox)
}

// originOwner is the owner of the objects that came up from a SyncTarget.
func (o *reflectionObserver) originOwner(syncTarget fleet.SyncTarget) ownership.Owner {
	return ownership.Owner{Hub: o.marks.hub, SyncTarget: syncTarget.UID, Sealer: o.marks.sealer}
}

// selectingForWorkspace returns the placements that select an object of a mailbox for a namespace of the workspace. An object whose labels
// are not cached counts as selected.
func selectingForWorkspace(placements []*resolvedPlacement, resource plan.Resource, namespace string, inMailbox *unstructured.Unstructured) (selectedBy []types.UID) {
	described := resource.SelectionObject(inMailbox)
	described.Namespace = namespace
	for _, one := range placements {
		if mailboxes.ProjectionOf(inMailbox) == mailboxes.IdentityOnly || one.SelectsForWorkspace(described) {
			selectedBy = append(selectedBy, one.UID)
		}
	}
	return selectedBy
}

// observeDeselected sets the state of a reflection that no placement wants. elsewhere are the placements that bring up objects from other
// mailboxes only: kcp must confirm that no Location makes them select the SyncTarget.
func (o *reflectionObserver) observeDeselected(ctx context.Context, s *reflectionSnapshot, active selectionState, elsewhere []*resolvedPlacement) error {
	if s.name.Name == "" {
		s.State = plan.Deselected
		return nil
	}
	object, _ := o.sources.get(objectKey{s.key.resource, s.name})
	_, owner, isReflection := o.marks.reflectionOf(o.sources.cluster, s.key.resource, object)
	if !active.isCertain() {
		return nil
	}
	if isReflection && len(elsewhere) > 0 && !active.placements.withdrawAll {
		_, inventory, syncTarget, _ := owner.SplitForWorkspace()
		if active.placements.holds(syncTarget, elsewhere) {
			return nil
		}
		isProven, err := o.verifier.mayNotUpsyncToWorkspace(ctx, logicalcluster.Name(inventory), syncTarget, elsewhere)
		if !isProven {
			return err
		}
	}
	s.State, s.AbsenceVerified = plan.Deselected, true
	return nil
}

// observeObject sets the object of the workspace with the name of the reflection. It returns false while the object is unknown.
func (o *reflectionObserver) observeObject(s *reflectionSnapshot) bool {
	cached, state := o.sources.get(objectKey{s.key.resource, s.name})
	namespace, _ := o.sources.get(namespaceKey(s.name.Namespace))
	s.hasNamespace = namespace != nil && namespace.GetDeletionTimestamp() == nil
	object, deleted := o.reflections.writes.Current(s.key, cached)
	if state == mailboxes.Unknown || deleted {
		return false
	}
	s.Object = object
	if key, owner, ok := o.marks.reflectionOf(o.sources.cluster, s.key.resource, object); ok && key == s.key {
		if mark, err := plan.MailboxMark(owner, object); err == nil {
			s.Mark = &mark
		}
	}
	if s.Mark == nil && object != nil && o.reflections.owns(objectKey{s.key.resource, s.name}, object.GetUID()) {
		// Somebody removed the mark.
		s.Mark = &ownership.Mark{}
	}
	return true
}

// observeDesired sets the desired reflection of an origin. The error is why there can be none.
func (o *reflectionObserver) observeDesired(s *reflectionSnapshot, known reflected, inMailbox *unstructured.Unstructured) error {
	s.interests = []objectKey{{s.key.resource, s.name}, namespaceKey(s.name.Namespace)}
	switch {
	case mailboxes.ProjectionOf(inMailbox) == mailboxes.IdentityOnly:
		return errMailboxLimit
	case mailboxes.ProjectionOf(inMailbox) != mailboxes.FullObject:
		s.State = plan.Unknown
		return nil
	}
	if s.Mark != nil && s.Mark.Source != (ownership.Source{}) {
		switch mailboxes.ProjectionOf(s.Object) {
		case mailboxes.IdentityOnly:
			return errWorkspaceLimit
		case mailboxes.MetadataOnly:
			s.IsOutdated = true
		case mailboxes.FullObject:
		}
	}
	up := transform.Up{
		Owner: o.originOwner(s.syncTarget).ForWorkspace(o.sources.cluster.String(), s.syncTarget.Inventory.String()), Mailbox: s.key.mailbox.String(),
		SyncTarget: s.syncTarget.Name, Hasher: o.hasher, Resource: s.Resource.GroupResource(), Version: s.Resource.Version, Kind: s.Resource.Kind, Namespaced: true,
	}
	desired, err := up.Desired(inMailbox, s.Resource.GroupResource(), transform.SyncSpec{Policy: ownership.PolicyDelete, Namespace: s.name.Namespace, Name: s.name.Name})
	if err != nil {
		return err
	}
	o.complete(s, known, desired.Object, inMailbox)
	s.Desired = desired
	if !s.Resource.Native {
		s.Status = transform.StatusOf(inMailbox.Object["status"])
	}
	if len(s.Status) > 0 && !s.Resource.StatusSubresource {
		desired.Object.Object["status"] = s.Status
	}
	s.size = cachesize.SizeOf(inMailbox)
	return nil
}

// complete adds the labels and the owners to a desired reflection.
func (o *reflectionObserver) complete(s *reflectionSnapshot, known reflected, desired, inMailbox *unstructured.Unstructured) {
	mark, _ := plan.MailboxMark(o.originOwner(s.syncTarget), inMailbox)
	origin := reflection.Origin{SyncTarget: s.syncTarget.Name, Object: types.NamespacedName{Namespace: mark.Source.Namespace, Name: mark.Source.Name}}
	labels := desired.GetLabels()
	maps.Copy(labels, origin.Labels(s.name.Namespace))
	desired.SetLabels(labels)
	var owners []reflection.ObservedOwner
	for _, record := range transform.OwnersOf(inMailbox) {
		owner, interest := o.observeOwner(s, record)
		if interest != (objectKey{}) {
			s.interests = append(s.interests, interest)
		}
		owners = append(owners, owner)
	}
	references, state := reflection.OwnerReferences(owners)
	desired.SetOwnerReferences(references)
	s.Owners = state
	s.MayWait = known.awaitsOwnersSince.IsZero() || o.clock.Since(known.awaitsOwnersSince) < ownerPatience
}

// observeOwner returns what the workspace has for an owner on the cluster, and which of its objects decides about that.
func (o *reflectionObserver) observeOwner(s *reflectionSnapshot, record transform.OwnerRecord) (owner reflection.ObservedOwner, interest objectKey) {
	owner = reflection.ObservedOwner{OwnerRecord: record}
	version, err := schema.ParseGroupVersion(record.APIVersion)
	resource, ok := o.sources.policy.ofKind(schema.GroupKind{Group: version.Group, Kind: record.Kind})
	if err != nil || !ok || !resource.Namespaced {
		return owner, objectKey{}
	}
	of := resource.GroupVersionResource
	name := types.NamespacedName{Namespace: s.key.name.Namespace, Name: record.Name}
	inMailbox, state := o.mailboxes.Get(o.sources.policy.copyOf(of), s.key.mailbox, name)
	if state == mailboxes.Unknown && !o.mailboxes.IsKnownNotServed(s.key.mailbox, resource.GroupResource()) {
		owner.State = reflection.OwnerUnknown
		return owner, objectKey{}
	}
	if workspace, pair, isCopy := o.marks.pairOf(of, s.key.mailbox, inMailbox); isCopy {
		if workspace != o.sources.cluster {
			return owner, objectKey{}
		}
		mark, _ := o.marks.verify(inMailbox)
		source, state := o.sources.get(pair.objectKey)
		switch {
		case state == mailboxes.Unknown:
			owner.State = reflection.OwnerUnknown
		case source != nil && source.GetUID() == mark.Source.UID && source.GetDeletionTimestamp() == nil:
			owner.State, owner.NameInWorkspace, owner.UIDInWorkspace = reflection.OwnerPresent, source.GetName(), source.GetUID()
		default:
			owner.State = reflection.OwnerGone
		}
		return owner, pair.objectKey
	}
	return o.observeReflectedOwner(s, owner, resource, copyKey{of, s.key.mailbox, name}, inMailbox)
}

// observeReflectedOwner is observeOwner for an owner that came up itself, or may come up.
func (o *reflectionObserver) observeReflectedOwner(s *reflectionSnapshot, owner reflection.ObservedOwner, resource plan.Resource, key copyKey, inMailbox *unstructured.Unstructured) (reflection.ObservedOwner, objectKey) {
	here, _ := o.active.get().reflectingFrom(s.key.mailbox)
	expected := resource.SelectionObject(&unstructured.Unstructured{Object: map[string]any{}})
	if inMailbox != nil {
		mark, err := plan.MailboxMark(o.originOwner(s.syncTarget), inMailbox)
		if err != nil || mark.Source.UID != owner.UID {
			return owner, objectKey{}
		}
		expected = resource.SelectionObject(inMailbox)
	}
	expected.Namespace, expected.Name = s.name.Namespace, key.name.Name
	isSelected := false
	for _, one := range here {
		isSelected = isSelected || isReflectable(resource) && one.SelectsForWorkspace(expected)
	}
	found := o.reflections.get(key)
	if !isSelected || found.failure != nil {
		return owner, objectKey{}
	}
	name := types.NamespacedName{Namespace: s.name.Namespace, Name: reflection.Name(key.name.Name, s.syncTarget.Name)}
	interest := objectKey{key.resource, name}
	object, state := o.sources.get(interest)
	of, _, isReflection := o.marks.reflectionOf(o.sources.cluster, key.resource, object)
	switch {
	case inMailbox != nil && isReflection && of == key && object.GetDeletionTimestamp() == nil:
		owner.State, owner.NameInWorkspace, owner.UIDInWorkspace = reflection.OwnerPresent, name.Name, object.GetUID()
	case state == mailboxes.Unknown:
		owner.State = reflection.OwnerUnknown
	case found.isOwnerGone:
		owner.State = reflection.OwnerGone
	default:
		owner.State = reflection.OwnerPending
	}
	return owner, interest
}

// candidate is the origin of a reflection whose absence kcp must confirm.
func (k copyKey) candidate() absence.Candidate {
	return absence.Candidate{Resource: k.resource, Key: k.name, Missing: true}
}
