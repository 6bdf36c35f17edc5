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

package objectsync

import (
	"encoding/json"
	"slices"

	"github.com/kcp-dev/logicalcluster/v3"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/controllers/objectsync/plan"
	"github.com/synchub-dev/synchub/controllers/objectsync/plan/ownership"
	"github.com/synchub-dev/synchub/controllers/objectsync/plan/selection"
	"github.com/synchub-dev/synchub/controllers/objectsync/plan/transform"
)

// What is on this page looks at one object and depends on nothing else, so that it can be told without a hub what a hub
// makes of it.

// NoDownsyncReason is why an object of a mailbox never goes down.
type NoDownsyncReason string

const (
	// NoDownsyncUpsynced: it came from the target.
	NoDownsyncUpsynced NoDownsyncReason = "CameUp"
	// NoDownsyncEnsured: it is a namespace that was made only for what came up, or came up itself and was let go.
	NoDownsyncEnsured NoDownsyncReason = "Ensured"
	// NoDownsyncMailboxAccess: it gives users their rights in the mailbox.
	NoDownsyncMailboxAccess NoDownsyncReason = "MailboxAccess"
)

// WhyNotDownsynced returns why an object of the owner's mailbox never goes down; empty if it may.
func WhyNotDownsynced(owner ownership.Owner, source *unstructured.Unstructured) NoDownsyncReason {
	if _, ok := label(source, edgev2alpha1.LabelMailboxAccess); ok {
		return NoDownsyncMailboxAccess
	}
	ensuredBy, ensured := annotation(source, ownership.EnsuredAnnotation)
	switch {
	case isUpsyncedBy(owner, source):
		return NoDownsyncUpsynced
	case ensured && owner.HasEnsured(ensuredBy, transform.SelfOf(source)):
		return NoDownsyncEnsured
	default:
		return ""
	}
}

// IsNeverUpsynced tells whether an object of the target never comes up for the owner, because a hub brought it there, whichever and
// for whomever, or somebody says so. What controllers copied from an object of the owner's own does come up.
func IsNeverUpsynced(owner ownership.Owner, object *unstructured.Unstructured) bool {
	if value, labelled := label(object, ownership.OwnerLabel); labelled && value != owner.LabelValue() {
		return true
	}
	if value, ensured := annotation(object, ownership.EnsuredAnnotation); ensured && !owner.HasEnsured(value, transform.SelfOf(object)) {
		return true
	}
	text, marked := annotation(object, ownership.MarkAnnotation)
	return marked && !owner.MayUpsync(text, transform.SelfOf(object))
}

func isUpsyncedBy(owner ownership.Owner, object *unstructured.Unstructured) bool {
	_, err := mailboxMark(owner, object)
	return err == nil
}

// targetMark returns the mark of an object of the target if it is the owner's (see [ownership.Owner.Verify]).
func targetMark(owner ownership.Owner, object *unstructured.Unstructured) (ownership.Mark, error) {
	return verifiedMark(owner, object, ownership.DirectionDown)
}

// mailboxMark returns the mark of an object of the mailbox if it came up (see [ownership.Owner.VerifyUp]).
func mailboxMark(owner ownership.Owner, object *unstructured.Unstructured) (ownership.Mark, error) {
	return verifiedMark(owner, object, ownership.DirectionUp)
}

// verifiedMark does not copy all annotations for the one, and looks at nothing else of an object that has none.
func verifiedMark(owner ownership.Owner, object *unstructured.Unstructured, direction ownership.Direction) (ownership.Mark, error) {
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
	return metadataEntry(object, "annotations", key)
}

func label(object *unstructured.Unstructured, key string) (string, bool) {
	return metadataEntry(object, "labels", key)
}

// metadataMap returns a map in the object's metadata, which must not be changed.
func metadataMap(object *unstructured.Unstructured, field string) selection.MetadataMap {
	metadata, _ := object.Object["metadata"].(map[string]any)
	entries, _ := metadata[field].(map[string]any)
	return entries
}

// metadataEntry returns one entry of such a map.
func metadataEntry(object *unstructured.Unstructured, field, key string) (string, bool) {
	return metadataMap(object, field).Lookup(key)
}

func hasOwnerLabel(object *unstructured.Unstructured, owner ownership.Owner) bool {
	value, _ := label(object, ownership.OwnerLabel)
	return value == owner.LabelValue()
}

// SelectionObject is what selection needs to know of an object of the mailbox.
func (r Resource) SelectionObject(source *unstructured.Unstructured) selection.Object {
	object := selection.Object{
		Resource:    r.GroupVersionResource,
		Kind:        r.Kind,
		Namespace:   source.GetNamespace(),
		Name:        source.GetName(),
		Labels:      metadataMap(source, "labels"),
		Annotations: metadataMap(source, "annotations"),
		Versions:    r.rules().Versions,
	}
	if r.Group == "" && r.Resource == "secrets" {
		object.SecretType, _, _ = unstructured.NestedString(source.Object, "type")
	}
	return object
}

// Selects returns how an object of the mailbox is selected for its own sake, but for the filter.
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

// NamedVersions returns what names one of the versions in which objects can be written to the target, those that count before
// others first.
func (r Resource) NamedVersions(matcher *selection.Matcher) []selection.NamedVersion {
	target, versions := r.TargetAPI(), r.TargetVersions()
	return slices.DeleteFunc(matcher.NamedVersions(
		selection.API{GroupResource: r.GroupResource(), Kind: r.Kind},
		selection.API{GroupResource: target.GroupResource(), Kind: target.Kind},
	), func(named selection.NamedVersion) bool { return !slices.Contains(versions, named.Version) })
}

// IsExcludedByUpsync tells whether what an object of the mailbox would be on the target is selected for coming up.
func (r Resource) IsExcludedByUpsync(matcher *selection.Matcher, source *unstructured.Unstructured, target TargetAPI, key types.NamespacedName) bool {
	there := r.SelectionObject(source)
	there.Resource, there.Kind, there.Namespace, there.Name = target.GroupVersionResource, target.Kind, key.Namespace, key.Name
	_, up := matcher.MatchUp(there)
	return up
}

// Observe returns what there is to decide by if an object of the target is the owner's, else why it is not.
func (r Resource) Observe(owner ownership.Owner, mailbox logicalcluster.Name, object *unstructured.Unstructured) (*plan.TargetObject, error) {
	mark, err := targetMark(owner, object)
	if err != nil {
		return nil, err
	}
	return &plan.TargetObject{
		UID:           object.GetUID(),
		Mark:          mark,
		HasOwnerLabel: hasOwnerLabel(object, owner),
		Terminating:   object.GetDeletionTimestamp() != nil,
		FormerMailbox: mark.Mailbox != mailbox.String(),
		// Only what the hub created goes with all that it holds.
		Retain:        r.Retain || r.Container && mark.Adopted,
		AppliedFields: appliedFields(object, ownership.FieldManager(owner.Hub)),
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
		// So it is kept, see [Controller.transformForCache].
		return []byte(fields)
	case map[string]any:
		// What came as JSON can be written as JSON.
		text, _ := json.Marshal(fields)
		return text
	default:
		return nil
	}
}

// MailboxStatus returns the status that the mailbox's object must show; applied tells whether the target's object is what the
// mailbox's says.
func (r Resource) MailboxStatus(inMailbox, onTarget *unstructured.Unstructured, applied bool) map[string]any {
	if !r.StatusSubresource {
		// Each write of a status makes a generation then, and its number means nothing.
		return transform.StatusWithoutNulls(onTarget.Object["status"])
	}
	return transform.ReturnedStatus(onTarget.Object["status"], transform.Generations{
		Source: inMailbox.GetGeneration(), Target: onTarget.GetGeneration(), Applied: applied,
	})
}
