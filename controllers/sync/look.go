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

package sync

import (
	"encoding/json"
	"slices"

	"github.com/kcp-dev/logicalcluster/v3"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/controllers/sync/decide"
	"github.com/synchub-dev/synchub/controllers/sync/ownership"
	"github.com/synchub-dev/synchub/controllers/sync/selection"
	"github.com/synchub-dev/synchub/controllers/sync/transform"
)

// What is on this page looks at one object and depends on nothing else, so that it can be told without a hub what a hub
// makes of it.

// Stay is why an object of a mailbox never goes down.
type Stay string

const (
	// StayCameUp: it came from the target.
	StayCameUp Stay = "CameUp"
	// StayEnsured: it is a namespace that was made only for what came up, or came up itself and was let go.
	StayEnsured Stay = "Ensured"
	// StayAccess: it gives users their rights in the mailbox.
	StayAccess Stay = "MailboxAccess"
)

// StaysAbove returns why an object of the owner's mailbox never goes down; empty if it may.
func StaysAbove(owner ownership.Owner, source *unstructured.Unstructured) Stay {
	if _, ok := label(source, edgev2alpha1.LabelMailboxAccess); ok {
		return StayAccess
	}
	ensuredBy, ensured := annotation(source, ownership.EnsuredAnnotation)
	switch {
	case cameUp(owner, source):
		return StayCameUp
	case ensured && owner.HasEnsured(ensuredBy, transform.SelfOf(source)):
		return StayEnsured
	default:
		return ""
	}
}

// StaysBelow tells whether an object of the target never comes up for the owner, because a hub brought it there, whichever and
// for whomever, or somebody says so. What controllers copied from an object of the owner's own does come up.
func StaysBelow(owner ownership.Owner, object *unstructured.Unstructured) bool {
	if value, labelled := label(object, ownership.OwnerLabel); labelled && value != owner.LabelValue() {
		return true
	}
	if value, ensured := annotation(object, ownership.EnsuredAnnotation); ensured && !owner.HasEnsured(value, transform.SelfOf(object)) {
		return true
	}
	text, marked := annotation(object, ownership.MarkAnnotation)
	return marked && !owner.MayComeUp(text, transform.SelfOf(object))
}

func cameUp(owner ownership.Owner, object *unstructured.Unstructured) bool {
	_, err := markAbove(owner, object)
	return err == nil
}

// markBelow returns the mark of an object of the target if it is the owner's (see [ownership.Owner.Verify]).
func markBelow(owner ownership.Owner, object *unstructured.Unstructured) (ownership.Mark, error) {
	return markOn(owner, object, ownership.DirectionDown)
}

// markAbove returns the mark of an object of the mailbox if it came up (see [ownership.Owner.VerifyUp]).
func markAbove(owner ownership.Owner, object *unstructured.Unstructured) (ownership.Mark, error) {
	return markOn(owner, object, ownership.DirectionUp)
}

// markOn does not copy all annotations for the one, and looks at nothing else of an object that has none.
func markOn(owner ownership.Owner, object *unstructured.Unstructured, direction ownership.Direction) (ownership.Mark, error) {
	text, ok := annotation(object, ownership.MarkAnnotation)
	if !ok {
		return ownership.Mark{}, ownership.ErrUnmarked
	}
	return owner.VerifyMark(text, transform.SelfOf(object), direction)
}

// IsMarked tells whether an object of a mailbox has a mark of any hub, or of a namespace that was made for what came up.
func IsMarked(object *unstructured.Unstructured) bool {
	_, marked := annotation(object, ownership.MarkAnnotation)
	_, ensured := annotation(object, ownership.EnsuredAnnotation)
	return marked || ensured
}

func annotation(object *unstructured.Unstructured, key string) (string, bool) {
	return entryOf(object, "annotations", key)
}

func label(object *unstructured.Unstructured, key string) (string, bool) {
	return entryOf(object, "labels", key)
}

// entriesOf returns a map in the object's metadata, which must not be changed.
func entriesOf(object *unstructured.Unstructured, field string) selection.Entries {
	metadata, _ := object.Object["metadata"].(map[string]any)
	entries, _ := metadata[field].(map[string]any)
	return entries
}

// entryOf returns one entry of such a map.
func entryOf(object *unstructured.Unstructured, field, key string) (string, bool) {
	return entriesOf(object, field).Lookup(key)
}

func isLabelled(object *unstructured.Unstructured, owner ownership.Owner) bool {
	value, _ := label(object, ownership.OwnerLabel)
	return value == owner.LabelValue()
}

// Describe is what selection needs to know of an object of the mailbox.
func (r Resource) Describe(source *unstructured.Unstructured) selection.Object {
	object := selection.Object{
		Resource:    r.GroupVersionResource,
		Kind:        r.Kind,
		Namespace:   source.GetNamespace(),
		Name:        source.GetName(),
		Labels:      entriesOf(source, "labels"),
		Annotations: entriesOf(source, "annotations"),
		Versions:    r.rules().Versions,
	}
	if r.Group == "" && r.Resource == "secrets" {
		object.SecretType, _, _ = unstructured.NestedString(source.Object, "type")
	}
	return object
}

// Selects returns how an object of the mailbox is selected for its own sake, but for the filter.
func (r Resource) Selects(matcher *selection.Matcher, source *unstructured.Unstructured) (selection.Selection, bool) {
	if r.Companion {
		return selection.Selection{}, false
	}
	described := r.Describe(source)
	selected, ok := matcher.Match(described)
	if r.All && selection.IsEveryday(described) {
		if !ok {
			selected.Policy = ownership.PolicyDelete
		}
		selected.StatusReturn, selected.Suspended = true, false
		return selected, true
	}
	return selected, ok
}

// NamedVersions returns what names one of the versions in which objects can be written to the target, those that count before
// others first.
func (r Resource) NamedVersions(matcher *selection.Matcher) []selection.NamedVersion {
	target, versions := r.OnTarget(), r.TargetVersions()
	return slices.DeleteFunc(matcher.NamedVersions(
		selection.API{GroupResource: r.GroupResource(), Kind: r.Kind},
		selection.API{GroupResource: target.GroupResource(), Kind: target.Kind},
	), func(named selection.NamedVersion) bool { return !slices.Contains(versions, named.Version) })
}

// IsLeftOut tells whether what an object of the mailbox would be on the target is selected for coming up.
func (r Resource) IsLeftOut(matcher *selection.Matcher, source *unstructured.Unstructured, target TargetResource, key types.NamespacedName) bool {
	there := r.Describe(source)
	there.Resource, there.Kind, there.Namespace, there.Name = target.GroupVersionResource, target.Kind, key.Namespace, key.Name
	_, up := matcher.MatchUp(there)
	return up
}

// Observe returns what there is to decide by if an object of the target is the owner's, else why it is not.
func (r Resource) Observe(owner ownership.Owner, mailbox logicalcluster.Name, object *unstructured.Unstructured) (*decide.Observed, error) {
	mark, err := markBelow(owner, object)
	if err != nil {
		return nil, err
	}
	return &decide.Observed{
		UID:         object.GetUID(),
		Mark:        mark,
		Labelled:    isLabelled(object, owner),
		Terminating: object.GetDeletionTimestamp() != nil,
		Former:      mark.Mailbox != mailbox.String(),
		// Only what the hub created goes with all that it holds.
		Retain: r.Retain || r.Container && mark.Adopted,
		Fields: appliedFields(object, ownership.FieldManager(owner.Hub)),
	}, nil
}

// appliedEntry returns the manager's managedFields entry on an object, nil if there is none.
func appliedEntry(object *unstructured.Unstructured, manager string) map[string]any {
	found, _, _ := unstructured.NestedFieldNoCopy(object.Object, "metadata", "managedFields")
	entries, _ := found.([]any)
	for _, item := range entries {
		entry, _ := item.(map[string]any)
		subresource, _ := entry["subresource"].(string)
		if entry["manager"] == manager && entry["operation"] == string(metav1.ManagedFieldsOperationApply) && subresource == "" {
			return entry
		}
	}
	return nil
}

// appliedFields returns what the manager's managedFields entry on an object holds, in the form FieldsV1.
func appliedFields(object *unstructured.Unstructured, manager string) []byte {
	switch fields := appliedEntry(object, manager)["fieldsV1"].(type) {
	case string:
		// So it is kept, see [Controller.strip].
		return []byte(fields)
	case map[string]any:
		// What came as JSON can be written as JSON.
		text, _ := json.Marshal(fields)
		return text
	default:
		return nil
	}
}

// StatusAbove returns the status that the mailbox's object must show; applied tells whether the target's object is what the
// mailbox's says.
func (r Resource) StatusAbove(above, below *unstructured.Unstructured, applied bool) map[string]any {
	if !r.StatusSubresource {
		// Each write of a status makes a generation then, and its number means nothing.
		return transform.PlainStatus(below.Object["status"])
	}
	return transform.ReturnedStatus(below.Object["status"], transform.Generations{
		Source: above.GetGeneration(), Target: below.GetGeneration(), Applied: applied,
	})
}
