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

package plan

import (
	"slices"
	"time"

	"github.com/kcp-dev/logicalcluster/v3"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/controllers/plan/ownership"
	"github.com/synchub-dev/synchub/controllers/plan/selection"
	"github.com/synchub-dev/synchub/controllers/plan/transform"
)

// The functions of this file are pure: `kubectl synchub explain` uses them too.

// NoDownsyncReason is the reason why a mailbox object is never downsynced.
type NoDownsyncReason string

const (
	// NoDownsyncUpsynced: the hub upsynced the object.
	NoDownsyncUpsynced NoDownsyncReason = "CameUp"
	// NoDownsyncEnsured: the object is a namespace that the hub created for upsynced objects, or an upsynced object that the hub
	// released.
	NoDownsyncEnsured NoDownsyncReason = "Ensured"
	// NoDownsyncMailboxAccess: the object grants users access to the mailbox.
	NoDownsyncMailboxAccess NoDownsyncReason = "MailboxAccess"
)

// WhyNotDownsynced returns why a mailbox object is never downsynced; empty if it may be.
func WhyNotDownsynced(owner ownership.Owner, source *unstructured.Unstructured) NoDownsyncReason {
	labels := MetadataMap(source, "labels")
	_, grantsUsers := labels.Lookup(edgev2alpha1.LabelMailboxAccess)
	ensuredBy, ensured := Annotation(source, ownership.EnsuredAnnotation)
	switch {
	case grantsUsers:
		return NoDownsyncMailboxAccess
	case IsUpsyncedBy(owner, source):
		return NoDownsyncUpsynced
	case ensured && owner.HasEnsured(ensuredBy, transform.SelfOf(source)):
		return NoDownsyncEnsured
	default:
		return ""
	}
}

// IsNeverUpsynced reports whether a target object is never upsynced, because a hub downsynced it for any SyncTarget, or its marks
// claim so. Objects that controllers derived from the owner's copies may be upsynced.
func IsNeverUpsynced(owner ownership.Owner, object *unstructured.Unstructured) bool {
	if value, labelled := label(object, ownership.OwnerLabel); labelled && value != owner.LabelValue() {
		return true
	}
	if value, ensured := Annotation(object, ownership.EnsuredAnnotation); ensured && !owner.HasEnsured(value, transform.SelfOf(object)) {
		return true
	}
	text, marked := Annotation(object, ownership.MarkAnnotation)
	return marked && !owner.MayUpsync(text, transform.SelfOf(object))
}

// IsUpsyncedBy reports whether the owner upsynced a mailbox object.
func IsUpsyncedBy(owner ownership.Owner, object *unstructured.Unstructured) bool {
	_, err := MailboxMark(owner, object)
	return err == nil
}

// TargetMark returns the mark of a target object if it is the owner's (see [ownership.Owner.VerifyMark]).
func TargetMark(owner ownership.Owner, object *unstructured.Unstructured) (ownership.Mark, error) {
	return verifiedMark(owner, object, ownership.DirectionDown)
}

// MailboxMark returns the mark of a mailbox object if the owner upsynced it.
func MailboxMark(owner ownership.Owner, object *unstructured.Unstructured) (ownership.Mark, error) {
	return verifiedMark(owner, object, ownership.DirectionUp)
}

// verifiedMark reads one annotation instead of copying all of them, since it runs for every object in the cache.
func verifiedMark(owner ownership.Owner, object *unstructured.Unstructured, direction ownership.Direction) (ownership.Mark, error) {
	text, ok := Annotation(object, ownership.MarkAnnotation)
	if !ok {
		return ownership.Mark{}, ownership.ErrUnmarked
	}
	return owner.VerifyMark(text, transform.SelfOf(object), direction)
}

// IsMarked reports whether a mailbox object has a mark of any hub, or is a namespace that a hub created for upsynced objects,
// or an object that a hub released.
func IsMarked(object *unstructured.Unstructured) bool {
	_, marked := Annotation(object, ownership.MarkAnnotation)
	_, ensured := Annotation(object, ownership.EnsuredAnnotation)
	return marked || ensured
}

// Annotation returns an annotation without a copy of all of them.
func Annotation(object *unstructured.Unstructured, key string) (string, bool) {
	return metadataEntry(object, "annotations", key)
}

func label(object *unstructured.Unstructured, key string) (string, bool) {
	return metadataEntry(object, "labels", key)
}

// MetadataMap returns a map of the object's metadata. The caller must not change it.
func MetadataMap(object *unstructured.Unstructured, field string) selection.MetadataMap {
	metadata, _ := object.Object["metadata"].(map[string]any)
	entries, _ := metadata[field].(map[string]any)
	return entries
}

// metadataEntry returns one entry of a map of the object's metadata.
func metadataEntry(object *unstructured.Unstructured, field, key string) (string, bool) {
	return MetadataMap(object, field).Lookup(key)
}

func hasOwnerLabel(object *unstructured.Unstructured, owner ownership.Owner) bool {
	value, _ := label(object, ownership.OwnerLabel)
	return value == owner.LabelValue()
}

// SelectionObject returns the facts about a mailbox object that selection needs.
func (r Resource) SelectionObject(source *unstructured.Unstructured) selection.Object {
	return SelectionObject(r.GroupVersionResource, r.Kind, r.GetRules().Versions, source)
}

// SelectionObject returns the facts that selection needs about an object of an API, on either side.
func SelectionObject(resource schema.GroupVersionResource, kind string, versions []string, object *unstructured.Unstructured) selection.Object {
	described := selection.Object{
		Resource: resource, Kind: kind, Versions: versions, Namespace: object.GetNamespace(), Name: object.GetName(),
		Labels: MetadataMap(object, "labels"), Annotations: MetadataMap(object, "annotations"),
	}
	if resource.Group == "" && resource.Resource == "secrets" {
		described.SecretType, _, _ = unstructured.NestedString(object.Object, "type")
	}
	return described
}

// Selects returns how configs select a mailbox object, before the filter and without relations.
func (r Resource) Selects(matcher *selection.Matcher, source *unstructured.Unstructured) (selection.Selection, bool) {
	if r.RelatedOnly {
		return selection.Selection{}, false
	}
	described := r.SelectionObject(source)
	selected, ok := matcher.Match(described)
	if r.SelectAll && selection.IsUserObject(described) {
		if !ok {
			selected.Policy = ownership.PolicyDelete
		}
		selected.StatusReturn, selected.Suspended = true, false
		return selected, true
	}
	return selected, ok
}

// NamedVersions returns the configs' entries that name a version in which the hub can write to the target, by precedence.
func (r Resource) NamedVersions(matcher *selection.Matcher) []selection.NamedVersion {
	target, versions := r.TargetAPI(), r.TargetVersions()
	return slices.DeleteFunc(matcher.NamedVersions(
		selection.API{GroupResource: r.GroupResource(), Kind: r.Kind},
		selection.API{GroupResource: target.GroupResource(), Kind: target.Kind},
	), func(named selection.NamedVersion) bool { return !slices.Contains(versions, named.Version) })
}

// IsExcludedByUpsync reports whether the target object that a mailbox object would become is selected for upsync.
func (r Resource) IsExcludedByUpsync(matcher *selection.Matcher, source *unstructured.Unstructured, target TargetAPI, key types.NamespacedName) bool {
	there := r.SelectionObject(source)
	there.Resource, there.Kind, there.Namespace, there.Name = target.GroupVersionResource, target.Kind, key.Namespace, key.Name
	_, up := matcher.MatchUp(there)
	return up
}

// NewTargetObject returns the facts about the owner's object on the target that decisions need, given its verified mark.
func (r Resource) NewTargetObject(owner ownership.Owner, mailbox logicalcluster.Name, object *unstructured.Unstructured, mark ownership.Mark) *TargetObject {
	text, _ := Annotation(object, ownership.IdentityAnnotation)
	identity := ownership.Identity{}
	if text != "" {
		identity = owner.VerifyIdentity(text, mark.Self)
	}
	return &TargetObject{
		UID:           object.GetUID(),
		Mark:          mark,
		Identity:      identity,
		Restored:      isRestored(object, identity, ownership.FieldManager(owner.Hub)),
		Finished:      transform.HasFinished(object),
		HasOwnerLabel: hasOwnerLabel(object, owner),
		Terminating:   object.GetDeletionTimestamp() != nil,
		FormerMailbox: mark.Mailbox != mailbox.String(),
		Retain:        r.retains(mark),
		AppliedFields: ownership.AppliedFields(object, ownership.FieldManager(owner.Hub)),
		Health:        r.GetRules().Health.Of(object),
	}
}

// retains reports whether an object with a mark is released instead of deleted. The hub deletes a container with its contents only if
// it created the container.
func (r Resource) retains(mark ownership.Mark) bool {
	return r.Retain || r.DeletesContents && mark.Adopted
}

// creationTolerance is the maximum difference between the times of a request and of the object's creation, both from the same API
// server.
const creationTolerance = 5 * time.Second

// isRestored reports whether an object is not the one that the manager wrote, but was restored from a copy of it. Then its UID
// differs from the UID in the identity. Without a recorded UID, a restored object is younger than the manager's entry, or has no
// entry.
func isRestored(object *unstructured.Unstructured, identity ownership.Identity, manager string) bool {
	if identity.Copy != "" {
		return identity.Copy != object.GetUID()
	}
	created := object.GetCreationTimestamp()
	if created.IsZero() {
		return false
	}
	written, ok := ownership.AppliedAt(object, manager)
	return !ok || !written.IsZero() && written.Add(creationTolerance).Before(created.Time)
}

// NewMailboxObject returns the facts about the mailbox object that [DecideUp] decides by; nil if there is no object. The mark is nil
// if the hub did not upsync the object.
func (r Resource) NewMailboxObject(object *unstructured.Unstructured, mark *ownership.Mark, desired *transform.Desired) *MailboxObject {
	if object == nil {
		return nil
	}
	observed := &MailboxObject{Terminating: object.GetDeletionTimestamp() != nil, Retain: r.Retain}
	if observed.Owned = mark != nil; !observed.Owned {
		return observed
	}
	observed.Mark, observed.Retain = *mark, r.retains(*mark)
	if desired != nil {
		observed.Missing = transform.MissingPaths(desired.Object.Object, object.Object)
	}
	return observed
}

// PropagationOf returns the propagation policy of an object that is being deleted, or was deleted. An API server keeps the policy
// as a finalizer until the garbage collector has acted on it. The object in the last event has that finalizer too.
func PropagationOf(deleted *unstructured.Unstructured) metav1.DeletionPropagation {
	switch finalizers := deleted.GetFinalizers(); {
	case slices.Contains(finalizers, metav1.FinalizerOrphanDependents):
		return metav1.DeletePropagationOrphan
	case slices.Contains(finalizers, metav1.FinalizerDeleteDependents):
		return metav1.DeletePropagationForeground
	default:
		return metav1.DeletePropagationBackground
	}
}
