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
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/synchub-dev/synchub/controllers/objectsync/plan/ownership"
	"github.com/synchub-dev/synchub/controllers/objectsync/plan/selection"
	"github.com/synchub-dev/synchub/controllers/objectsync/plan/transform"
	"github.com/synchub-dev/synchub/provider/mailboxes"
)

// objectSelection says why an object travels, and how.
type objectSelection struct {
	selection.Selection
	// related is set if the object travels because it is related to others, and not for its own sake.
	related *relatedMatch
	// unresolved is why it cannot be told now whether the object travels. Nothing may be done about it then.
	unresolved error
}

// equal tells whether two choices have the same effect on an object.
func (c objectSelection) equal(other objectSelection) bool {
	return c.Equal(other.Selection) && (c.related == nil) == (other.related == nil)
}

// errNotReadable means that something cannot be seen now; an event tells when it can.
var errNotReadable = errors.New("it cannot be seen now")

// errPartialMatcher means that a config that is not in force, because the mailbox has too many, may select an object.
var errPartialMatcher = errors.New("it is unknown what all configs select")

// selectDown returns how an object of the mailbox goes down; ok is false if it does not. What came up never does, nor does
// a namespace that was only made for what came up, nor what gives users their rights in the mailbox.
func (c *Controller) selectDown(matcher *selection.Matcher, source *unstructured.Unstructured) (chosen objectSelection, ok bool) {
	if WhyNotDownsynced(c.Owner, source) != "" {
		return objectSelection{}, false
	}
	byConfig, ok := c.selectedByConfig(matcher, source)
	if extent := mailboxes.ProjectionOf(source); extent != mailboxes.FullObject {
		chosen := objectSelection{Selection: byConfig}
		if !ok {
			chosen, ok = c.selectRelatedDown(matcher, source)
		}
		chosen.unresolved = errNotReadable
		// Of an object beyond the mailbox's limits the labels are not held: nothing may be concluded.
		return chosen, ok || extent == mailboxes.IdentityOnly
	}
	if ok {
		passes, err := c.matchesFilter(source)
		if passes || err != nil {
			return objectSelection{Selection: byConfig, unresolved: err}, true
		}
	}
	return c.selectRelatedDown(matcher, source)
}

// incompleteReason returns why an object of the mailbox is not held whole, which it has to be now; nil if it is.
func (c *Controller) incompleteReason(object *unstructured.Unstructured) error {
	if object == nil || mailboxes.ProjectionOf(object) == mailboxes.FullObject {
		return nil
	}
	return c.Mailboxes.RequireFullObject(c.Resource.GroupVersionResource, c.Mailbox, object)
}

// selectedByConfig returns how an object of the mailbox is selected for its own sake, but for the filter.
func (c *Controller) selectedByConfig(matcher *selection.Matcher, source *unstructured.Unstructured) (selection.Selection, bool) {
	return c.Resource.Selects(matcher, source)
}

// matchesFilter tells whether the PublishedResource's filter lets an object of the mailbox go down.
func (c *Controller) matchesFilter(source *unstructured.Unstructured) (bool, error) {
	filter := c.Resource.rules().Filter
	if filter == nil {
		return true, nil
	}
	var labels map[string]string
	if filter.UsesNamespaceLabels() && c.Resource.Namespaced {
		found, known := c.mailboxNamespaceLabels(source.GetNamespace())
		if !known {
			return false, fmt.Errorf("the namespace %s of the mailbox: %w", source.GetNamespace(), errNotReadable)
		}
		labels = found
	}
	passes, err := filter.Matches(source, labels)
	if err != nil {
		return false, &ruleError{field: "spec.filter", err: err}
	}
	return passes, nil
}

// mailboxNamespaceLabels returns the labels of a namespace of the mailbox; known is false if it cannot be seen now.
func (c *Controller) mailboxNamespaceLabels(name string) (labels map[string]string, known bool) {
	namespace, state := c.Mailboxes.Get(namespaces, c.Mailbox, types.NamespacedName{Name: name})
	if state != mailboxes.Present || mailboxes.ProjectionOf(namespace) == mailboxes.IdentityOnly {
		return nil, false
	}
	return namespace.GetLabels(), true
}

// downSpec returns what an object of the mailbox is to be on the target.
func (c *Controller) downSpec(selected objectSelection, source *unstructured.Unstructured) (transform.SyncSpec, error) {
	if selected.related != nil {
		return c.relatedDownSpec(selected, source)
	}
	return c.Resource.DownSpec(selected.Policy, selected.Conversion), nil
}

// selectUp returns how an object of the target comes up; ok is false if it does not.
func (c *Controller) selectUp(matcher *selection.Matcher, target *targetResource, object *unstructured.Unstructured) (chosen objectSelection, ok bool) {
	if !c.Resource.RelatedOnly {
		if selected, ok := matcher.MatchUp(c.targetSelectionObject(target, object)); ok {
			return objectSelection{Selection: selected}, true
		}
	}
	return c.selectRelatedUp(matcher, target, object)
}

// upSpec returns what an object of the target is to be in the mailbox.
func (c *Controller) upSpec(selected objectSelection, object *unstructured.Unstructured) transform.SyncSpec {
	if selected.related != nil {
		return relatedUpSpec(selected, object)
	}
	spec := transform.SyncSpec{Policy: selected.Policy, Conversion: selected.Conversion, Mutation: c.Resource.rules().Up}
	if c.Resource.Orphan {
		spec.Policy = ownership.PolicyOrphan
	}
	return spec
}

// ruleError says that a rule of the PublishedResource fails for an object.
type ruleError struct {
	field string
	err   error
}

func (e *ruleError) Error() string {
	return fmt.Sprintf("the PublishedResource's %s: %v", e.field, e.err)
}
func (e *ruleError) Unwrap() error { return e.err }

// targetKind returns the kind of a target's resource that the mailbox's objects can be, or zero.
func (c *Controller) targetKind(resource schema.GroupResource) schema.GroupVersionKind {
	target := c.targetResourceFor(resource)
	if target == nil || target.Kind == "" {
		return schema.GroupVersionKind{}
	}
	return target.GroupVersion().WithKind(target.Kind)
}
