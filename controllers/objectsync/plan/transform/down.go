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
	"fmt"
	"maps"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/synchub-dev/synchub/controllers/objectsync/plan/conversion"
	"github.com/synchub-dev/synchub/controllers/objectsync/plan/ownership"
)

// Down turns mailbox objects of one resource into the objects of one target.
type Down struct {
	// Owner marks what is made.
	Owner ownership.Owner
	// Mailbox is the name of the logical cluster that the sources live in, SyncTarget that of the target's SyncTarget.
	Mailbox, SyncTarget string
	// Resource is the resource of the sources.
	Resource schema.GroupResource
	// Namespaced is false if the sources are cluster-scoped.
	Namespaced bool
	// Hasher makes the hash in the mark.
	Hasher ownership.Hasher
}

// Name returns what source is called on the target. The error is a [*InvalidObjectError] if that is not a legal name.
func (d Down) Name(source *unstructured.Unstructured, wish SyncSpec) (conversion.Name, error) {
	name := conversionName(source)
	switch {
	case wish.Conversion != nil:
		converted, ok := wish.Conversion.Down(name)
		if !ok {
			return conversion.Name{}, fmt.Errorf("the conversion from %v to %v does not speak of %v", wish.Conversion.Upstream, wish.Conversion.Downstream, name)
		}
		name = converted
		if wish.Naming != nil {
			source = withName(source, name)
		}
	case wish.Kind.Kind != "":
		name.GVK = wish.Kind
	}
	name.GVK.Version = cmp.Or(wish.Version, name.GVK.Version)
	key, err := wish.applyNaming(source, d.Mailbox, d.SyncTarget, types.NamespacedName{Namespace: name.Namespace, Name: name.Name}, d.Namespaced, name.GVK.GroupKind())
	if err != nil {
		return conversion.Name{}, err
	}
	name.Namespace, name.Name = key.Namespace, key.Name
	return name, nil
}

// withName returns the object under another name of its namespace, for templates to read.
func withName(object *unstructured.Unstructured, name conversion.Name) *unstructured.Unstructured {
	metadata, _ := object.Object["metadata"].(map[string]any)
	metadata = maps.Clone(metadata)
	metadata["name"] = name.Name
	content := maps.Clone(object.Object)
	content["metadata"] = metadata
	renamed := &unstructured.Unstructured{Object: content}
	renamed.SetGroupVersionKind(name.GVK)
	return renamed
}

// Desired returns the object that the target must hold for source. The error is a [*TooLargeError], a [*InvalidObjectError] or a
// [*mutation.Error] if the object cannot travel as it is.
func (d Down) Desired(source *unstructured.Unstructured, wish SyncSpec) (*Desired, error) {
	if source.GetAnnotations()[ownership.OverwriteAnnotation] == "false" {
		wish.Policy = ownership.PolicyCreateOnly
	}
	name, err := d.Name(source, wish)
	if err != nil {
		return nil, err
	}
	content := sanitize(source, shouldDownsyncAnnotation)
	if err := rename(content, name); err != nil {
		return nil, err
	}
	if err := wish.mutate(content); err != nil {
		return nil, err
	}
	// What kind it is there may follow from the target's discovery. As another one it would keep the mailbox's token.
	if isTokenSecret(source.Object) && !isTokenSecret(content) {
		return nil, &InvalidObjectError{
			Reason: ReasonInvalid, Field: "type",
			Message: "the token of a ServiceAccount is of use in its own mailbox only, and on the target this Secret would be no Secret of that type: leave it out",
		}
	}
	if err := adaptForOtherCluster(content); err != nil {
		return nil, err
	}
	first := removeIgnored(content, wish.IgnoredFields)
	mark := ownership.Mark{
		Mailbox: d.Mailbox,
		Source: ownership.Source{
			Group:     d.Resource.Group,
			Resource:  d.Resource.Resource,
			Namespace: source.GetNamespace(),
			Name:      source.GetName(),
			UID:       source.GetUID(),
		},
		Policy:   wish.Policy,
		Relation: wish.Relation,
		Ignored:  formatIgnored(wish.IgnoredFields),
	}
	desired, err := seal(content, mark, d.Owner, d.Hasher)
	if err != nil {
		return nil, err
	}
	desired.IgnoredFields = wish.IgnoredFields
	desired.forCreate = first
	return desired, nil
}

// DesiredForMark returns the same for an object that the target has, with this mark. It may have been made when other fields
// were ignored. As long as its source does not change it is left as it is: neither beginning nor ceasing to ignore a field
// changes a value. Then unchanged must be true of what was desired before; it is asked only where that makes a difference.
func (d Down) DesiredForMark(source *unstructured.Unstructured, wish SyncSpec, mark ownership.Mark, unchanged func(before *Desired) bool) (*Desired, error) {
	desired, err := d.Desired(source, wish)
	if err != nil {
		return nil, err
	}
	asBefore := false
	if mark.Ignored != desired.Mark.Ignored {
		if desired, asBefore, err = d.desiredAsBefore(source, wish, mark, desired, unchanged); err != nil {
			return nil, err
		}
	}
	if mark.Adopted {
		desired = desired.AsAdopted()
	}
	if asBefore {
		desired = desired.AsMarked(mark)
	}
	return desired, nil
}

// desiredAsBefore returns what is desired of an object that was made when other fields were ignored; asBefore is false if that is
// what is desired now.
func (d Down) desiredAsBefore(source *unstructured.Unstructured, wish SyncSpec, mark ownership.Mark, desired *Desired, unchanged func(*Desired) bool) (_ *Desired, asBefore bool, _ error) {
	former, ok := IgnoredAtMark(mark)
	if !ok {
		return desired, false, nil
	}
	now := wish.IgnoredFields
	wish.IgnoredFields = former
	before, err := d.Desired(source, wish)
	if err != nil || !unchanged(before) {
		return desired, false, err
	}
	wish.IgnoredFields = UnionIgnored(now, former)
	both, err := d.Desired(source, wish)
	if err != nil {
		return nil, false, err
	}
	for _, field := range wish.IgnoredFields[len(now):] {
		if len(field.Path.Values(desired.Object.Object)) > 0 {
			both.DeferredFields = append(both.DeferredFields, field)
		}
	}
	return both, true, nil
}
