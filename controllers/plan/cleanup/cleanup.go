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

package cleanup

import (
	"errors"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/synchub-dev/synchub/controllers/plan/ownership"
)

// Mode decides which objects a drain deletes, releases or keeps.
type Mode string

const (
	// ModeDelete deletes the objects that may be deleted, and releases all other ones.
	ModeDelete Mode = "Delete"
	// ModeOrphan releases all objects.
	ModeOrphan Mode = "Orphan"
	// ModeDrain deletes the objects that may be deleted. All other objects keep their marks: the SyncTarget
	// stays, and without marks these objects would be conflicts when the hub syncs it again.
	ModeDrain Mode = "Drain"
)

// Action is the decision about one object.
type Action string

const (
	// ActionIgnore: the object is not the hub's.
	ActionIgnore Action = "Ignore"
	// ActionDelete deletes the object.
	ActionDelete Action = "Delete"
	// ActionWait: the object must be deleted, and is terminating already.
	ActionWait Action = "Wait"
	// ActionRelease removes the marks from the object.
	ActionRelease Action = "Release"
	// ActionKeep leaves the object unchanged, and lists it.
	ActionKeep Action = "Keep"
)

// Reasons in status.cleanup why an object stays on the target.
const (
	// ReasonOrphaned: the SyncTarget, a config or the PublishedResource requests to keep the object.
	ReasonOrphaned = "Orphaned"
	// ReasonCreatedOnce: a rule makes the hub create the object once and never change it.
	ReasonCreatedOnce = "CreatedOnce"
	// ReasonAdopted: the object has contents that would be deleted with it, and existed before the hub adopted it.
	ReasonAdopted = "Adopted"
	// ReasonNotCascading: the object has contents that would be deleted with it, and its PublishedResource does not allow that.
	ReasonNotCascading = "NotCascading"
	// ReasonEnsured: the hub created the namespace only for its contents, or released the namespace or CRD before.
	ReasonEnsured = "Ensured"
	// ReasonInstalled: the hub installed the CRD for a published API.
	ReasonInstalled = "Installed"
	// ReasonUnknownMark: another version of the hub wrote the object's mark.
	ReasonUnknownMark = "UnknownMark"
	// ReasonUnverifiedMark: the object's mark names this replica but does not verify, see [ownership.ErrUnverified].
	ReasonUnverifiedMark = "UnverifiedMark"
)

// Object is the metadata of an object on the target.
type Object struct {
	Resource schema.GroupResource
	Kind     string
	*metav1.PartialObjectMetadata
}

// Self returns the self of the object, as in its mark.
func (o Object) Self() ownership.Self {
	return ownership.Self{Group: o.Resource.Group, Kind: o.Kind, Namespace: o.Namespace, Name: o.Name}
}

// isContainer reports whether other objects are deleted with the object.
func (o Object) isContainer() bool { return o.Resource == Namespaces || o.Resource == CRDs }

// Decision is the action for one object. Reason is the reason why the object stays; empty if it does not stay.
type Decision struct {
	Action Action
	Reason string
}

// Resources whose objects contain other objects, which are deleted with them.
var (
	Namespaces = schema.GroupResource{Resource: "namespaces"}
	CRDs       = schema.GroupResource{Group: "apiextensions.k8s.io", Resource: "customresourcedefinitions"}
)

// Plan decides about one object. allowsCascade reports whether a namespace or CRD that came from the given mailbox resource may be
// deleted with its contents.
func Plan(mode Mode, owner ownership.Owner, object Object, allowsCascade func(schema.GroupResource) bool) Decision {
	value := owner.LabelValue()
	installed := object.Resource == CRDs && object.Labels[ownership.InstalledByLabel] == value
	labelled := object.Labels[ownership.OwnerLabel] == value || installed
	mark, err := owner.Verify(object.Annotations, object.Self())
	switch {
	case labelled && err == nil:
		return planOwned(mode, object, keepReason(mode, object, mark, installed, allowsCascade))
	case labelled && errors.Is(err, ownership.ErrUnknownVersion):
		return Decision{Action: ActionKeep, Reason: ReasonUnknownMark}
	case labelled && errors.Is(err, ownership.ErrUnverified):
		return Decision{Action: ActionKeep, Reason: ReasonUnverifiedMark}
	case errors.Is(err, ownership.ErrUnmarked) && object.isContainer() && owner.HasEnsured(object.Annotations[ownership.EnsuredAnnotation], object.Self()):
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

// keepReason returns why an object of the hub must not be deleted, empty if it may be.
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

// MarkKeys returns the keys of the labels and annotations that the owner recognizes the object by.
func MarkKeys(owner ownership.Owner, object Object) (labels, annotations []string) {
	labels, annotations = owner.MarkKeys(object.Labels, object.Annotations)
	if object.Labels[ownership.InstalledByLabel] == owner.LabelValue() {
		labels = append(labels, ownership.InstalledByLabel)
	}
	if owner.HasEnsured(object.Annotations[ownership.EnsuredAnnotation], object.Self()) {
		annotations = append(annotations, ownership.EnsuredAnnotation)
	}
	return labels, annotations
}
