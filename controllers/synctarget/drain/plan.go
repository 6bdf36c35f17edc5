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

package drain

import (
	"errors"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/synchub-dev/synchub/controllers/crd"
	"github.com/synchub-dev/synchub/controllers/objectsync/plan/ownership"
)

// Mode says to what end a target is brought.
type Mode string

const (
	// ModeDelete removes what may be removed, and lets go of all else.
	ModeDelete Mode = "Delete"
	// ModeOrphan lets go of everything.
	ModeOrphan Mode = "Orphan"
	// ModeDrain removes what may be removed. All else keeps its marks: the SyncTarget stays, and would have to fight for the
	// names later if it gave the objects up.
	ModeDrain Mode = "Drain"
)

// Action is what to do about one object.
type Action string

const (
	// ActionIgnore: the object is none of the hub's.
	ActionIgnore Action = "Ignore"
	// ActionDelete deletes the object.
	ActionDelete Action = "Remove"
	// ActionWait: the object is to be removed, and is being deleted already.
	ActionWait Action = "Await"
	// ActionRelease takes the marks off the object.
	ActionRelease Action = "Release"
	// ActionKeep leaves the object as it is, and lists it.
	ActionKeep Action = "Keep"
)

// Reasons why an object stays on a target, as they stand in status.cleanup.
const (
	// ReasonOrphaned: the SyncTarget, a config or the PublishedResource asks that it be left.
	ReasonOrphaned = "Orphaned"
	// ReasonCreatedOnce: it was to be left alone from the moment it existed.
	ReasonCreatedOnce = "CreatedOnce"
	// ReasonAdopted: it takes others with it when it is removed, and was there before the hub.
	ReasonAdopted = "Adopted"
	// ReasonNotCascading: it takes others with it when it is removed, which its PublishedResource does not allow.
	ReasonNotCascading = "NotCascading"
	// ReasonEnsured: the namespace was made only for what was put into it, or the hub had let go of it before.
	ReasonEnsured = "Ensured"
	// ReasonInstalled: the definition was installed for a published API.
	ReasonInstalled = "Installed"
	// ReasonUnknownMark: another version of the hub marked it.
	ReasonUnknownMark = "UnknownMark"
	// ReasonUnverifiedMark: the mark on it names this hub and does not verify, see [ownership.ErrUnverified].
	ReasonUnverifiedMark = "UnverifiedMark"
)

// Object is an object on the target.
type Object struct {
	Resource schema.GroupResource
	Kind     string
	*metav1.PartialObjectMetadata
}

func (o Object) self() ownership.Self {
	return ownership.Self{Group: o.Resource.Group, Kind: o.Kind, Namespace: o.Namespace, Name: o.Name}
}

// isContainer tells whether others go with the object.
func (o Object) isContainer() bool { return o.Resource == namespaces || o.Resource == crds }

// Decision is what to do about one object, and why it stays if it does.
type Decision struct {
	Action Action
	Reason string
}

var (
	namespaces = schema.GroupResource{Resource: "namespaces"}
	crds       = schema.GroupResource{Group: "apiextensions.k8s.io", Resource: "customresourcedefinitions"}
)

// Plan decides about one object. cascades tells whether objects that came from a resource of the mailbox may be removed
// with all they hold.
func Plan(mode Mode, owner ownership.Owner, object Object, cascades func(schema.GroupResource) bool) Decision {
	value := owner.LabelValue()
	installed := object.Resource == crds && object.Labels[crd.InstalledByLabel] == value
	labelled := object.Labels[ownership.OwnerLabel] == value || installed
	mark, err := owner.Verify(object.Annotations, object.self())
	switch {
	case labelled && err == nil:
		return planOwned(mode, object, keepReason(mode, object, mark, installed, cascades))
	case labelled && (errors.Is(err, ownership.ErrUnknownVersion) || errors.Is(err, ownership.ErrUnsealed)):
		return Decision{Action: ActionKeep, Reason: ReasonUnknownMark}
	case labelled && errors.Is(err, ownership.ErrUnverified):
		return Decision{Action: ActionKeep, Reason: ReasonUnverifiedMark}
	case errors.Is(err, ownership.ErrUnmarked) && object.isContainer() && owner.HasEnsured(object.Annotations[ownership.EnsuredAnnotation], object.self()):
		return planKept(mode, ReasonEnsured)
	default:
		return Decision{Action: ActionIgnore}
	}
}

func planOwned(mode Mode, object Object, keep string) Decision {
	switch {
	case keep != "":
		return planKept(mode, keep)
	case object.DeletionTimestamp != nil:
		return Decision{Action: ActionWait}
	default:
		return Decision{Action: ActionDelete}
	}
}

func planKept(mode Mode, reason string) Decision {
	if mode == ModeDrain {
		return Decision{Action: ActionKeep, Reason: reason}
	}
	return Decision{Action: ActionRelease, Reason: reason}
}

// keepReason returns why an object of ours is not to be removed, empty if it is.
func keepReason(mode Mode, object Object, mark ownership.Mark, installed bool, cascades func(schema.GroupResource) bool) string {
	switch {
	case installed:
		return ReasonInstalled
	case mode == ModeOrphan:
		return ReasonOrphaned
	case mark.Policy == ownership.PolicyCreateOnly:
		return ReasonCreatedOnce
	case mark.Policy != ownership.PolicyDelete:
		return ReasonOrphaned
	case object.isContainer() && mark.Adopted:
		return ReasonAdopted
	case object.isContainer() && !cascades(schema.GroupResource{Group: mark.Source.Group, Resource: mark.Source.Resource}):
		return ReasonNotCascading
	default:
		return ""
	}
}

// MarkKeys returns the labels and annotations of an object by which the owner knows it.
func MarkKeys(owner ownership.Owner, object Object) (labels, annotations []string) {
	labels, annotations = owner.MarkKeys(object.Labels, object.Annotations)
	if object.Labels[crd.InstalledByLabel] == owner.LabelValue() {
		labels = append(labels, crd.InstalledByLabel)
	}
	if owner.HasEnsured(object.Annotations[ownership.EnsuredAnnotation], object.self()) {
		annotations = append(annotations, ownership.EnsuredAnnotation)
	}
	return labels, annotations
}
