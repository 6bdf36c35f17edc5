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
	"k8s.io/apimachinery/pkg/types"

	"github.com/synchub-dev/synchub/controllers/objectsync/plan"
	"github.com/synchub-dev/synchub/controllers/objectsync/plan/selection"
	"github.com/synchub-dev/synchub/provider/mailboxes"
)

// errNotReadable means that a cache cannot answer now; an event follows when it can.
var errNotReadable = errors.New("the hub cannot read it now")

// errPartialMatcher means that a config that is not in force, because the mailbox has too many, or an invalid entry may select the
// object.
var errPartialMatcher = errors.New("it is unknown what all configs select")

// selectDown returns how a mailbox object is downsynced; ok is false if it is not. Upsynced objects never are, nor namespaces
// that exist only for those, nor objects that grant access to the mailbox.
func (c *Controller) selectDown(matcher *selection.Matcher, source *unstructured.Unstructured) (chosen plan.ObjectSelection, ok bool) {
	if plan.WhyNotDownsynced(c.Owner, source) != "" {
		return plan.ObjectSelection{}, false
	}
	byConfig, ok := c.Resource.Selects(matcher, source)
	if extent := mailboxes.ProjectionOf(source); extent != mailboxes.FullObject {
		chosen := plan.ObjectSelection{Selection: byConfig}
		if !ok {
			chosen, ok = c.selectRelatedDown(matcher, source)
		}
		chosen.Unresolved = errNotReadable
		// The cache holds only the identity of an object beyond the mailbox's limits, and no labels: nothing may be concluded.
		return chosen, ok || extent == mailboxes.IdentityOnly
	}
	if ok {
		passes, err := c.matchesFilter(source)
		if passes || err != nil {
			return plan.ObjectSelection{Selection: byConfig, Unresolved: err}, true
		}
	}
	return c.selectRelatedDown(matcher, source)
}

// requireFullObject asks for the whole mailbox object if the cache holds only a part of it, and returns why it does; nil if the cache
// holds the whole object.
func (c *Controller) requireFullObject(object *unstructured.Unstructured) error {
	if object == nil || mailboxes.ProjectionOf(object) == mailboxes.FullObject {
		return nil
	}
	return c.Mailboxes.RequireFullObject(c.Resource.GroupVersionResource, c.Mailbox, object)
}

// matchesFilter reports whether the PublishedResource's filter lets a mailbox object be downsynced.
func (c *Controller) matchesFilter(source *unstructured.Unstructured) (bool, error) {
	filter := c.Resource.GetRules().Filter
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

// mailboxNamespaceLabels returns the labels of a mailbox namespace; known is false if the cache cannot tell.
func (c *Controller) mailboxNamespaceLabels(name string) (labels map[string]string, known bool) {
	namespace, state := c.Mailboxes.Get(namespaces, c.Mailbox, types.NamespacedName{Name: name})
	if state != mailboxes.Present || mailboxes.ProjectionOf(namespace) == mailboxes.IdentityOnly {
		return nil, false
	}
	return namespace.GetLabels(), true
}

// selectUp returns how a target object is upsynced; ok is false if it is not.
func (c *Controller) selectUp(matcher *selection.Matcher, target *targetResource, object *unstructured.Unstructured) (chosen plan.ObjectSelection, ok bool) {
	if !c.Resource.RelatedOnly {
		if selected, ok := matcher.MatchUp(c.targetSelectionObject(target, object)); ok {
			return plan.ObjectSelection{Selection: selected}, true
		}
	}
	return c.selectRelatedUp(matcher, target, object)
}
