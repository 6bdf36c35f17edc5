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
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/synchub-dev/synchub/controllers/sync/ownership"
	"github.com/synchub-dev/synchub/controllers/sync/selection"
	"github.com/synchub-dev/synchub/controllers/sync/transform"
	"github.com/synchub-dev/synchub/provider/mailboxes"
)

// choice says why an object travels, and how.
type choice struct {
	selection.Selection
	// kin is set if the object travels because it is related to others, and not for its own sake.
	kin *kin
	// doubt is why it cannot be told now whether the object travels. Nothing may be done about it then.
	doubt error
}

// equal tells whether two choices have the same effect on an object.
func (c choice) equal(other choice) bool {
	return c.Equal(other.Selection) && (c.kin == nil) == (other.kin == nil)
}

// errUnseen means that something cannot be seen now; an event tells when it can.
var errUnseen = errors.New("it cannot be seen now")

// errPartial means that a config that is not in force, because the mailbox has too many, may select an object.
var errPartial = errors.New("it is unknown what all configs select")

// chooseDown returns how an object of the mailbox goes down; ok is false if it does not. What came up never does, nor does
// a namespace that was only made for what came up, nor what gives users their rights in the mailbox.
func (c *Controller) chooseDown(matcher *selection.Matcher, source *unstructured.Unstructured) (chosen choice, ok bool) {
	if StaysAbove(c.Owner, source) != "" {
		return choice{}, false
	}
	selected, ok := c.selects(matcher, source)
	if extent := mailboxes.ExtentOf(source); extent != mailboxes.Whole {
		chosen := choice{Selection: selected}
		if !ok {
			chosen, ok = c.chooseAsKin(matcher, source)
		}
		chosen.doubt = errUnseen
		// Of an object beyond the mailbox's limits the labels are not held: nothing may be concluded.
		return chosen, ok || extent == mailboxes.Identity
	}
	if ok {
		passes, err := c.passes(source)
		if passes || err != nil {
			return choice{Selection: selected, doubt: err}, true
		}
	}
	return c.chooseAsKin(matcher, source)
}

// missing returns why an object of the mailbox is not held whole, which it has to be now; nil if it is.
func (c *Controller) missing(object *unstructured.Unstructured) error {
	if object == nil || mailboxes.ExtentOf(object) == mailboxes.Whole {
		return nil
	}
	return c.Mailboxes.Missing(c.Resource.GroupVersionResource, c.Mailbox, object)
}

// selects returns how an object of the mailbox is selected for its own sake, but for the filter.
func (c *Controller) selects(matcher *selection.Matcher, source *unstructured.Unstructured) (selection.Selection, bool) {
	return c.Resource.Selects(matcher, source)
}

// passes tells whether the PublishedResource's filter lets an object of the mailbox go down.
func (c *Controller) passes(source *unstructured.Unstructured) (bool, error) {
	filter := c.Resource.rules().Filter
	if filter == nil {
		return true, nil
	}
	var labels map[string]string
	if filter.NeedsNamespace() && c.Resource.Namespaced {
		found, known := c.namespaceAbove(source.GetNamespace())
		if !known {
			return false, fmt.Errorf("the namespace %s of the mailbox: %w", source.GetNamespace(), errUnseen)
		}
		labels = found
	}
	passes, err := filter.Passes(source, labels)
	if err != nil {
		return false, &ruleError{field: "spec.filter", err: err}
	}
	return passes, nil
}

// namespaceAbove returns the labels of a namespace of the mailbox; known is false if it cannot be seen now.
func (c *Controller) namespaceAbove(name string) (labels map[string]string, known bool) {
	namespace, state := c.Mailboxes.Get(namespaces, c.Mailbox, types.NamespacedName{Name: name})
	if state != mailboxes.Present || mailboxes.ExtentOf(namespace) == mailboxes.Identity {
		return nil, false
	}
	return namespace.GetLabels(), true
}

// wishDown returns what an object of the mailbox is to be on the target.
func (c *Controller) wishDown(chosen choice, source *unstructured.Unstructured) (transform.Wish, error) {
	if chosen.kin != nil {
		return c.wishForKin(chosen, source)
	}
	return c.Resource.WishDown(chosen.Policy, chosen.Conversion), nil
}

// chooseUp returns how an object of the target comes up; ok is false if it does not.
func (c *Controller) chooseUp(matcher *selection.Matcher, side *side, object *unstructured.Unstructured) (chosen choice, ok bool) {
	if !c.Resource.Companion {
		if selected, ok := matcher.MatchUp(c.describeTarget(side, object)); ok {
			return choice{Selection: selected}, true
		}
	}
	return c.chooseKinUp(matcher, side, object)
}

// wishUp returns what an object of the target is to be in the mailbox.
func (c *Controller) wishUp(chosen choice, object *unstructured.Unstructured) transform.Wish {
	if chosen.kin != nil {
		return wishForKinUp(chosen, object)
	}
	wish := transform.Wish{Policy: chosen.Policy, Conversion: chosen.Conversion, Mutation: c.Resource.rules().Up}
	if c.Resource.Orphan {
		wish.Policy = ownership.PolicyOrphan
	}
	return wish
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

// kindOf returns the kind of a target's resource that the mailbox's objects can be, or zero.
func (c *Controller) kindOf(resource schema.GroupResource) schema.GroupVersionKind {
	side := c.sideOf(resource)
	if side == nil || side.Kind == "" {
		return schema.GroupVersionKind{}
	}
	return side.GroupVersion().WithKind(side.Kind)
}

// chooseBelow returns how the object of the target comes up that has a name in the mailbox.
func (c *Controller) chooseBelow(key types.NamespacedName, held, object *unstructured.Unstructured) choice {
	side, _ := c.sourceBelow(key, held)
	if side == nil {
		return choice{}
	}
	chosen, _ := c.chooseUp(c.matcher.Load(), side, object)
	return chosen
}
