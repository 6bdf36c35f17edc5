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
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/controllers/placement/customization"
	"github.com/synchub-dev/synchub/controllers/placement/fleet"
	"github.com/synchub-dev/synchub/controllers/placement/rules"
	"github.com/synchub-dev/synchub/controllers/plan"
	"github.com/synchub-dev/synchub/controllers/plan/ownership"
	"github.com/synchub-dev/synchub/controllers/plan/policy"
	"github.com/synchub-dev/synchub/controllers/plan/tenancy"
	"github.com/synchub-dev/synchub/controllers/plan/transform"
	"github.com/synchub-dev/synchub/provider/mailboxes"
)

// pairSnapshot holds all facts about a pair in one pass.
type pairSnapshot struct {
	plan.Snapshot
	// resource is the resource of the copy.
	resource   plan.Resource
	syncTarget fleet.SyncTarget
	// tenancy is how workspaces share the cluster, as the placement of a desired copy was resolved with.
	tenancy tenancy.Settings
	// owner owns the copies. creator is the result of [marks.creatorOf].
	owner, creator ownership.Owner
	desired        bool
}

// observer reads pairSnapshots.
type observer struct {
	sources  *sources
	copies   *copies
	pairs    *pairs
	active   *activePlacements
	marks    marks
	verifier verifier
}

// observe reads all facts that one pass needs. It returns nil if nothing can be done about the pair now. If it
// returns a snapshot and an error, the error is why the object cannot be placed.
func (o *observer) observe(ctx context.Context, key pairKey) (*pairSnapshot, error) {
	resource, published := o.sources.policy.placeableCopy(key.resource)
	syncTarget, known := o.verifier.fleet.Snapshot().SyncTargetOf(key.mailbox)
	inMailbox, copyState, deleted := o.copies.get(key)
	source, sourceState := o.sources.get(key.objectKey)
	switch {
	case !published, !known, syncTarget.Terminating:
		// The mailbox of a SyncTarget that is being deleted is deleted with all its objects. The SyncTarget's
		// deletionPolicy decides whether the target keeps them.
		return nil, nil
	case o.copies.mailboxes.IsKnownNotServed(key.mailbox, resource.GroupResource()):
		return o.unserved(key, resource, syncTarget)
	case copyState == mailboxes.Unknown, sourceState == mailboxes.Unknown, deleted:
		return nil, nil
	}
	s := &pairSnapshot{
		resource: resource, syncTarget: syncTarget, owner: o.marks.ownerOf(syncTarget.UID), creator: o.marks.creatorOf(syncTarget.UID, o.sources.cluster),
	}
	s.Snapshot = plan.Snapshot{Key: key.copyName(), InMailbox: inMailbox, Readable: true, Up: &plan.UpSnapshot{
		API: resource.TargetAPI(), Name: key.copyName(), DroppedPaths: o.pairs.writes.DroppedPaths(key),
	}}
	if inMailbox != nil {
		if mark, err := plan.MailboxMark(s.owner, inMailbox); err == nil && mark.Mailbox == o.sources.cluster.String() {
			s.Up.Mark = &mark
		}
	}
	var selection selectionResult
	selection, s.Up.State, s.Up.AbsenceVerified = o.selectionOf(key, s.Up.Mark != nil, source != nil)
	switch {
	case s.Up.State == "":
		return nil, nil
	case s.Up.State == plan.Selected:
		var isWanted bool
		if s.tenancy, isWanted = selection.tenancyAt(key); !isWanted {
			return nil, nil
		}
		s.desired = true
		s.Up.Spec = transform.SyncSpec{Policy: deletionPolicyOf(selection.all()), Namespace: s.Key.Namespace, Name: s.Key.Name}
		if err := o.observeSource(s, source); err != nil {
			return s, err
		}
		if err := o.customize(key, s, selection.all()); err != nil {
			return s, err
		}
		return s, o.move(s)
	case selection.isSelected():
		// Placements select the object, but they want no copy there.
		if o.active.get().holds(syncTarget.UID, selection.all()) {
			return nil, nil
		}
		if isProven, err := o.verifier.isUnwanted(ctx, key, selection); !isProven {
			return nil, err
		}
		s.Up.AbsenceVerified = true
	}
	return s, nil
}

// selectionOf returns plan.Selected if a pair is desired, or why it is not and whether that is verified; the state is empty if the
// pair must stay as it is for now. selection has the placements that select the object. hasMark is true if the mailbox has the
// copy, and hasSource if the workspace has the object.
func (o *observer) selectionOf(key pairKey, hasMark, hasSource bool) (selection selectionResult, state plan.State, verified bool) {
	o.pairs.inspect(key, func(entry *object, found *pair) {
		active := o.active.read()
		switch selection = (selectionResult{selectedBy: entry.selectedBy, containerFor: entry.containerFor}); {
		case active.placements == nil, !found.desired && !hasMark:
		case found.desired:
			state = plan.Selected
		case entry.mustSelect(hasSource):
			o.pairs.tasks.add(key.objectKey.task())
		default:
			state, verified = entry.withdrawal(key.mailbox, active.isCertain() && active.knowsContentsAt(key)), entry.verified
		}
	})
	return selection, state, verified
}

// unserved returns the failure of an object whose API the mailbox does not serve, if it is desired there.
func (o *observer) unserved(key pairKey, resource plan.Resource, syncTarget fleet.SyncTarget) (s *pairSnapshot, err error) {
	o.pairs.inspect(key, func(_ *object, found *pair) {
		if found.desired {
			s, err = &pairSnapshot{resource: resource, syncTarget: syncTarget, desired: true}, notServedError(key.resource.GroupResource())
		}
	})
	return s, err
}

// observeSource reads the source of a desired copy. The error is why it cannot be placed.
func (o *observer) observeSource(s *pairSnapshot, source *unstructured.Unstructured) error {
	u := s.Up
	if source == nil {
		// The event for the deletion of the object is still to come.
		u.State = plan.Unknown
		return nil
	}
	switch mailboxes.ProjectionOf(source) {
	case mailboxes.FullObject:
		u.Object = source
	case mailboxes.MetadataOnly:
		// An event follows when the rest has been fetched. The review that the placement's activation requested does not fetch a version that
		// the cache received before, and stored after.
		o.sources.workloads.Reviews.EnqueueCacheReview(o.sources.cluster)
		u.State = plan.Unknown
		return nil
	case mailboxes.IdentityOnly:
		return errWorkspaceLimit
	}
	// If the hub does not own the mailbox object, only its name matters.
	u.Incomplete = u.Mark != nil && mailboxes.ProjectionOf(s.InMailbox) != mailboxes.FullObject
	if !s.resource.Allowed.PrivilegedUpsync {
		if err := policy.CheckUpsync(s.resource.GroupResource(), s.resource.GroupResource()); err != nil {
			return privilegedError(s.resource.GroupResource())
		}
	}
	inWorkload := s.resource.InWorkload().GroupResource()
	if !s.resource.Namespaced && s.resource.GroupVersionResource != namespaces && !s.tenancy.AllowsClusterScoped(inWorkload) {
		return clusterScopedError(inWorkload)
	}
	if policy.CheckReservedName(s.resource.GroupResource(), s.Key) != nil {
		return reservedNameError(s.resource.GroupResource(), s.Key)
	}
	return nil
}

// customize replaces the source in the snapshot of a desired copy by the source for this destination. The error
// is why it cannot.
func (o *observer) customize(key pairKey, s *pairSnapshot, selectedBy []*resolvedPlacement) error {
	source := s.Up.Object
	if source == nil {
		return nil
	}
	request, err := customization.RequestOf(source)
	if err != nil || request.IsZero() {
		return err
	}
	customizer, known, err := o.customizer(request.Customizer)
	if err != nil {
		return err
	}
	active := o.active.get()
	parameters, selected := active.parametersAt(key.mailbox, selectedBy)
	if !known || !selected {
		// An event is on its way.
		s.Up.State = plan.Unknown
		return nil
	}
	s.Up.Object, err = customization.Customize(source, request, customizer, parameters)
	return err
}

// move replaces the source in the snapshot of a desired copy by one for a cluster where each workspace has namespaces of its own.
func (o *observer) move(s *pairSnapshot) (err error) {
	if s.Up.Object == nil || s.tenancy.Naming.IsShared() {
		return nil
	}
	workspace := rules.Workspace{Cluster: o.sources.cluster, Path: o.active.get().path}
	s.Up.Object, s.Up.Spec.Workspace, err = workspace.AtDestination(&s.tenancy, &s.resource, s.Up.Object)
	return err
}

// customizer returns a Customizer of the workspace; nil for the zero name. known is false while it is unknown.
func (o *observer) customizer(name types.NamespacedName) (customizer *edgev2alpha1.Customizer, known bool, err error) {
	if name == (types.NamespacedName{}) {
		return nil, true, nil
	}
	cached, state := o.sources.get(objectKey{customizers, name})
	switch {
	case state == mailboxes.Unknown:
		return nil, false, nil
	case state == mailboxes.Absent:
		return nil, false, customizerNotFoundError(name)
	case mailboxes.ProjectionOf(cached) != mailboxes.FullObject:
		return nil, false, errWorkspaceLimit
	}
	customizer = &edgev2alpha1.Customizer{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(cached.Object, customizer); err != nil {
		return nil, false, &customization.Error{Reason: plan.ReasonInvalid, Field: fmt.Sprintf("Customizer %s", name), Message: "it cannot be read: " + err.Error()}
	}
	return customizer, true, nil
}
