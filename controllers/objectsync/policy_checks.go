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
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/synchub-dev/synchub/controllers/objectsync/plan"
	"github.com/synchub-dev/synchub/controllers/objectsync/plan/policy"
)

// A denied object is left alone on both sides: a new rule deletes nothing that was synced before.

func (c *Controller) namespacePolicy() *policy.NamespacePolicy {
	if c.NamespacePolicy == nil {
		return nil
	}
	return c.NamespacePolicy()
}

// checkNamespace returns why the hub does not use a namespace of the target; nil if it does. A namespace that the connection
// does not watch counts as denied: there, an absent object proves nothing.
func (c *Controller) checkNamespace(name string, protectedToo bool) error {
	if err := c.namespacePolicy().Check(name, protectedToo); err != nil {
		return err
	}
	if !c.Connection.WatchesNamespace(name) {
		return policy.NamespaceNotAllowed(name)
	}
	return nil
}

// checkConvertedKind returns why no conversion may produce a kind; nil if one may.
func (c *Controller) checkConvertedKind(kind schema.GroupKind) error {
	for _, one := range c.UnresolvedKinds {
		// The kind of an earlier conversion's results may be unknown.
		if one.IsDenied() && one.GroupResource.Group == kind.Group && (one.Kind == kind.Kind || kind.Kind == "") {
			return &policy.DeniedError{Reason: one.Reason, Message: one.Message}
		}
	}
	return nil
}

// IsDenied reports whether the hub itself, and not the target, excludes the kind.
func (u UnavailableResource) IsDenied() bool {
	return u.Reason == policy.ReasonConversionNotPublished || u.Reason == policy.ReasonConversionBypassesRules
}

// checkTargetNamespace returns why the hub does not use a place on the target; nil if it does. A Namespace counts as inside
// itself.
func (c *Controller) checkTargetNamespace(target plan.TargetAPI, key types.NamespacedName) error {
	namespace := effectiveNamespace(target.GroupResource(), key)
	if namespace == "" {
		return nil
	}
	return c.checkNamespace(namespace, target.Allowed.ProtectedNamespaces)
}

// effectiveNamespace returns the namespace that an object is in, or is; empty for other cluster-scoped objects.
func effectiveNamespace(resource schema.GroupResource, key types.NamespacedName) string {
	if resource == namespaces.GroupResource() {
		return key.Name
	}
	return key.Namespace
}

// checkUpsyncSource returns why nothing of a target API is upsynced; nil if something may be.
func (c *Controller) checkUpsyncSource(target plan.TargetAPI) error {
	if err := c.checkConvertedKind(schema.GroupKind{Group: target.Group, Kind: target.Kind}); err != nil {
		return err
	}
	return c.Resource.CheckUpsync(target)
}

// checkUpsync returns why a target object is not upsynced under a name; nil if it may be.
func (c *Controller) checkUpsync(target plan.TargetAPI, from, to types.NamespacedName) error {
	if err := c.checkUpsyncSource(target); err != nil {
		return err
	}
	if err := c.checkTargetNamespace(target, from); err != nil {
		return err
	}
	above := effectiveNamespace(c.Resource.GroupResource(), to)
	if above != effectiveNamespace(target.GroupResource(), from) {
		if err := c.namespacePolicy().CheckProtected(above, target.Allowed.ProtectedNamespaces); err != nil {
			return err
		}
	}
	return policy.CheckReservedName(c.Resource.GroupResource(), to)
}
