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

package transform

import (
	"cmp"
	"errors"
	"fmt"
	"maps"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/synchub-dev/synchub/controllers/plan/conversion"
	"github.com/synchub-dev/synchub/controllers/plan/mutation"
	"github.com/synchub-dev/synchub/controllers/plan/naming"
	"github.com/synchub-dev/synchub/controllers/plan/ownership"
)

// SyncSpec is the spec that transforms one object for the other side. The zero value changes nothing.
type SyncSpec struct {
	Policy ownership.Policy
	// Conversion is a config's conversion, and overrides Kind. Naming applies to its result.
	Conversion *conversion.Conversion
	// Kind is the kind on the other side; zero for the same kind.
	Kind schema.GroupVersionKind
	// Version overrides the version of Kind and Conversion, unless it is empty.
	Version string
	// Namespace and Name are the namespace and the name on the other side, unless Naming sets them; empty for the same.
	Namespace, Name string
	// Workspace is the workload workspace that the object, a Namespace, belongs to; zero for none.
	Workspace WorkspaceMark
	// Naming renames the object, by templates over the object and Variables.
	Naming    *naming.Namer
	Variables map[string]any
	// Mutation changes the object. It may read the inputs.
	Mutation *mutation.Program
	Inputs   mutation.Inputs
	// IgnoredFields are not applied, because the other side owns them.
	IgnoredFields []IgnoredField
	// ReportsDrift is true if the hub reports changes of other clients on the other side, and does not undo them.
	ReportsDrift bool
	// Relation names the relation that syncs the object, if the object is related (see [ownership.Mark]).
	Relation string
}

// applyNaming returns the name that Naming gives the object, instead of the name given.
func (s SyncSpec) applyNaming(object *unstructured.Unstructured, mailbox, syncTarget string, name conversion.Name, namespaced bool) (conversion.Name, error) {
	if s.Namespace != "" && name.Namespace != "" {
		name.Namespace = s.Namespace
	}
	name.Name = cmp.Or(s.Name, name.Name)
	if s.Naming == nil {
		return name, nil
	}
	variables := map[string]any{"Object": object.Object, "Mailbox": mailbox, "SyncTarget": syncTarget}
	maps.Copy(variables, s.Variables)
	key, err := s.Naming.Name(variables, types.NamespacedName{Namespace: name.Namespace, Name: name.Name}, namespaced, name.GVK.GroupKind())
	illegal, isIllegal := errors.AsType[*naming.InvalidNameError](err)
	switch {
	case isIllegal:
		return conversion.Name{}, &InvalidObjectError{Field: illegal.Field, Message: fmt.Sprintf("it yields %q: %s", illegal.Value, illegal.Message)}
	case err != nil:
		return conversion.Name{}, &InvalidObjectError{Field: "spec.naming", Message: err.Error()}
	default:
		name.Namespace, name.Name = key.Namespace, key.Name
		return name, nil
	}
}

// contentOf returns the content of an object for the other side, under its name there. travels reports whether an annotation is
// synced. A status that a mutation sets is dropped.
func (s SyncSpec) contentOf(source *unstructured.Unstructured, name conversion.Name, travels func(annotation string) bool) (map[string]any, error) {
	content := sanitize(source, travels)
	if err := rename(content, name); err != nil || s.Mutation == nil {
		return content, err
	}
	err := s.Mutation.Run(content, s.Inputs)
	delete(content, "status")
	return content, err
}

// annotationLimit is the API server's limit for the sum of all annotation keys and values of one object
// (k8s.io/apimachinery/pkg/api/validation.TotalAnnotationSizeLimitB).
const annotationLimit = 256 << 10

// InvalidObjectError means that an object must not be synced, because it cannot be valid or useful on the other side.
type InvalidObjectError struct {
	// Field is the path of the field at fault, such as metadata.name.
	Field string
	// Message contains the problem and the remedy.
	Message string
}

func (e *InvalidObjectError) Error() string {
	return e.Field + ": " + e.Message
}

// TooLargeError means that an object's annotations leave no room for the mark.
type TooLargeError struct {
	// Size of the annotations including the mark, in bytes.
	Size int
}

func (e *TooLargeError) Error() string {
	return fmt.Sprintf("the annotations with the hub's mark take %d bytes, the API server allows %d: remove some annotations", e.Size, annotationLimit)
}

// Desired is the desired object on one side for an object on the other side.
type Desired struct {
	// PrunedPaths are the paths of fields that the mailbox would drop. Object does not have them.
	PrunedPaths []string
	// Object is the object to write, with its marks.
	Object *unstructured.Unstructured
	// Mark is the mark in Object, unless [Desired.AsMarked] replaced it.
	Mark ownership.Mark
	// Identity is the identity in Object, beside the mark. Only downsynced objects have one.
	Identity ownership.Identity
	// IgnoredFields are fields that Object does not have, because the other side owns them.
	IgnoredFields []IgnoredField
	// DeferredFields are the ignored fields that the rules no longer ignore. They stay unchanged until the source changes (see
	// [Down.DesiredForMark]). Only fields that the source has are listed.
	DeferredFields []IgnoredField

	// ReportsDrift is true if the hub reports changes of other clients on the other side, and does not undo them.
	ReportsDrift bool

	// owner seals the mark.
	owner ownership.Owner
	// sealed is the annotation with Mark; empty if Object has another mark.
	sealed string
	// forCreate is the content for a create, without marks; nil if the content of Object is the same.
	forCreate map[string]any
}

// ForCreate returns the object to create. It may have fields that the hub sets only once, and ignores after that.
func (d *Desired) ForCreate() *unstructured.Unstructured {
	if d.forCreate == nil {
		return d.Object
	}
	first := (&unstructured.Unstructured{Object: d.forCreate}).DeepCopy()
	for field, marks := range map[string]map[string]string{"labels": d.Object.GetLabels(), "annotations": d.Object.GetAnnotations()} {
		for _, key := range []string{ownership.OwnerLabel, ownership.MarkAnnotation, ownership.IdentityAnnotation} {
			if value, ok := marks[key]; ok {
				setMetadataEntry(first.Object, field, key, value)
			}
		}
	}
	return first
}

// AsMarked returns the desired object with the hash and the ignored fields of a mark. It is for objects in sync if only the list
// of ignored fields, and not the source, has changed since the mark was written.
func (d *Desired) AsMarked(mark ownership.Mark) *Desired {
	marked := *d
	marked.Mark.Hash, marked.Mark.Ignored, marked.sealed = mark.Hash, mark.Ignored, ""
	return &marked
}

// AsAdopted returns a copy with a mark of an adopted object, which the hub did not create.
func (d *Desired) AsAdopted() *Desired {
	adopted := *d
	adopted.Object = d.Object.DeepCopy()
	adopted.Mark.Adopted = true
	adopted.sealed = adopted.owner.Seal(adopted.Mark)
	setMetadataEntry(adopted.Object.Object, "annotations", ownership.MarkAnnotation, adopted.sealed)
	return &adopted
}

// ForCopy returns the desired object for an existing copy, with the copy's UID in the identity. It distinguishes the copy from an
// object restored from a backup.
func (d *Desired) ForCopy(uid types.UID) *Desired {
	copied := *d
	copied.Object = d.Object.DeepCopy()
	copied.Identity.Copy = uid
	copied.setIdentity()
	return &copied
}

// setIdentity puts the identity on the object.
func (d *Desired) setIdentity() {
	if text := d.SealedIdentity(); text != "" {
		setMetadataEntry(d.Object.Object, "annotations", ownership.IdentityAnnotation, text)
	}
}

// SealedIdentity returns the annotation with Identity; empty for the zero Identity.
func (d *Desired) SealedIdentity() string { return d.owner.SealIdentity(d.Identity, d.Mark.Self) }

// SealedMark returns the annotation with Mark in Object, so that the response to a write need not be verified. It is empty after
// [Desired.AsMarked].
func (d *Desired) SealedMark() string { return d.sealed }

// seal completes the mark, which has its source, policy and direction, and adds it to the content.
func seal(content map[string]any, mark ownership.Mark, owner ownership.Owner, hasher ownership.Hasher) (*Desired, error) {
	hash, err := hasher.Hash(content)
	if err != nil {
		source := mark.Source
		return nil, fmt.Errorf("%s %s/%s: %w", schema.GroupResource{Group: source.Group, Resource: source.Resource}, source.Namespace, source.Name, err)
	}
	object := &unstructured.Unstructured{Object: content}
	mark.Version, mark.Hub, mark.SyncTarget = ownership.MarkVersion, owner.Hub, owner.SyncTarget
	mark.Self, mark.Hash = SelfOf(object), hash
	sealed := owner.Seal(mark)
	setMetadataEntry(content, "labels", ownership.OwnerLabel, owner.LabelValue())
	setMetadataEntry(content, "annotations", ownership.MarkAnnotation, sealed)
	if size := annotationSize(object.GetAnnotations()); size > annotationLimit {
		return nil, &TooLargeError{Size: size}
	}
	return &Desired{Object: object, Mark: mark, owner: owner, sealed: sealed}, nil
}

// SelfOf returns the self of an object, as in its mark.
func SelfOf(object *unstructured.Unstructured) ownership.Self {
	gvk := object.GroupVersionKind()
	return ownership.Self{Group: gvk.Group, Kind: gvk.Kind, Namespace: object.GetNamespace(), Name: object.GetName()}
}

// sourceOf returns the source of a mark for an object of a resource.
func sourceOf(object *unstructured.Unstructured, resource schema.GroupResource) ownership.Source {
	return ownership.Source{
		Group: resource.Group, Resource: resource.Resource, Namespace: object.GetNamespace(), Name: object.GetName(), UID: object.GetUID(),
	}
}

// conversionName returns the name that a conversion gives to the object.
func conversionName(object *unstructured.Unstructured) conversion.Name {
	return conversion.Name{GVK: object.GroupVersionKind(), Namespace: object.GetNamespace(), Name: object.GetName()}
}

func setMetadataEntry(content map[string]any, field, key, value string) {
	metadata, _ := content["metadata"].(map[string]any)
	entries, ok := metadata[field].(map[string]any)
	if !ok {
		entries = map[string]any{}
		metadata[field] = entries
	}
	entries[key] = value
}

func annotationSize(annotations map[string]string) int {
	size := 0
	for key, value := range annotations {
		size += len(key) + len(value)
	}
	return size
}
