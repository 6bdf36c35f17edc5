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
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/synchub-dev/synchub/controllers/sync/boundary"
)

// What is refused here is left alone on both sides: what came or went before the rule was there stays as it is.

func (c *Controller) namespaces() *boundary.Namespaces {
	if c.Namespaces == nil {
		return nil
	}
	return c.Namespaces()
}

// admitsNamespace returns why a namespace of the target is not used, nil if it is. What the connection does not reach counts as
// not used yet, or not any more: there nothing could be told from an absent object.
func (c *Controller) admitsNamespace(name string, protectedToo bool) error {
	if err := c.namespaces().Check(name, protectedToo); err != nil {
		return err
	}
	if !c.Connection.Reaches(name) {
		return boundary.NotAllowed(name)
	}
	return nil
}

// NamespacesChanged makes the controller look again at everything, since it may use other namespaces of the target.
func (c *Controller) NamespacesChanged() {
	c.setFeeds(c.matcher.Load())
	c.enqueue(createPriority, c.keys()...)
}

// refusesKind returns why no conversion makes a kind of the target, nil if one may.
func (c *Controller) refusesKind(kind schema.GroupKind) error {
	for _, one := range c.Unresolved {
		// Of what former conversions have made the kind may be unknown.
		if one.IsRefused() && one.Target.Group == kind.Group && (one.Kind == kind.Kind || kind.Kind == "") {
			return &boundary.RefusalError{Reason: one.Reason, Message: one.Message}
		}
	}
	return nil
}

// IsRefused tells whether the hub itself does not make objects of the kind.
func (u Unavailable) IsRefused() bool {
	return u.Reason == boundary.ReasonConversionNotPublished || u.Reason == boundary.ReasonConversionBypassesRules
}

// admits returns why no object is to be at a place of the target, nil if one may. A Namespace is as good as in itself.
func (c *Controller) admits(side *side, key types.NamespacedName) error {
	namespace := usedNamespace(side.GroupResource(), key)
	if namespace == "" {
		return nil
	}
	return c.admitsNamespace(namespace, side.Allows.ProtectedNamespaces)
}

// usedNamespace returns the namespace that an object is in, or is; empty if there is none.
func usedNamespace(resource schema.GroupResource, key types.NamespacedName) string {
	if resource == namespaces.GroupResource() {
		return key.Name
	}
	return key.Namespace
}

// admitsFrom returns why nothing comes up from a side, nil if something may.
func (c *Controller) admitsFrom(side *side) error {
	if err := c.refusesKind(schema.GroupKind{Group: side.Group, Kind: side.Kind}); err != nil {
		return err
	}
	return c.Resource.RefusesUp(side.TargetResource)
}

// admitsUp returns why an object of the target does not come up under a name, nil if it may.
func (c *Controller) admitsUp(side *side, from, to types.NamespacedName) error {
	if err := c.admitsFrom(side); err != nil {
		return err
	}
	if err := c.admits(side, from); err != nil {
		return err
	}
	above := usedNamespace(c.Resource.GroupResource(), to)
	if above != usedNamespace(side.GroupResource(), from) {
		if err := c.namespaces().CheckProtected(above, side.Allows.ProtectedNamespaces); err != nil {
			return err
		}
	}
	return boundary.CheckName(c.Resource.GroupResource(), to)
}
