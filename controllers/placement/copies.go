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

package placement

import (
	"github.com/kcp-dev/logicalcluster/v3"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/synchub-dev/synchub/controllers/internal/writes"
	"github.com/synchub-dev/synchub/controllers/plan/ownership"
	"github.com/synchub-dev/synchub/provider/mailboxes"
)

// copies shows the copies of a workspace's objects as the caches of the mailboxes have them, or as the hub wrote them last.
type copies struct {
	cluster   logicalcluster.Name
	mailboxes *mailboxes.Mailboxes
	policy    *CachePolicy
	marks     marks
	writes    *writes.Expectations[pairKey, *unstructured.Unstructured]
}

// get returns the object with the name of a copy; nil if there is none, or if its state in the cache is unknown. isDeleted is true
// if the mailbox has accepted its deletion.
func (c *copies) get(key pairKey) (inMailbox *unstructured.Unstructured, state mailboxes.State, isDeleted bool) {
	cached, state := c.mailboxes.Get(key.resource, key.mailbox, key.copyName())
	if state == mailboxes.Unknown {
		return nil, state, false
	}
	inMailbox, isDeleted = c.writes.Current(key, cached)
	return inMailbox, state, isDeleted
}

// isCopy reports whether a mailbox object is a copy of an object of this workspace.
func (c *copies) isCopy(inMailbox *unstructured.Unstructured) bool {
	cluster, ok := c.marks.workspaceOf(inMailbox)
	return ok && cluster == c.cluster
}

// isCopyOf reports whether a mailbox object is the copy of this source, and not of a former object with its
// name.
func (c *copies) isCopyOf(inMailbox, source *unstructured.Unstructured) bool {
	if !c.isCopy(inMailbox) {
		return false
	}
	mark, err := ownership.ParseMark(markOf(inMailbox))
	return err == nil && mark.Source.UID == source.GetUID()
}

// isInstalled reports whether the hub installs the object of a pair on the target, instead of making a copy. An
// existing copy stays a copy.
func (c *copies) isInstalled(key pairKey) bool {
	if !c.policy.installsCRD(key.objectKey) {
		return false
	}
	inMailbox, _, _ := c.get(key)
	return !c.isCopy(inMailbox)
}

// hasOthers reports whether a Namespace of a mailbox has, or may have, copies of other workspaces.
func (c *copies) hasOthers(key pairKey) bool {
	if key.resource != namespaces {
		return false
	}
	for of := range c.policy.published() {
		objects, known := c.mailboxes.List(of, key.mailbox)
		if !known && !c.mailboxes.IsKnownNotServed(key.mailbox, of.GroupResource()) {
			return true
		}
		for _, object := range objects {
			if object.GetNamespace() != key.inMailbox {
				continue
			}
			if cluster, ok := c.marks.workspaceOf(object); ok && cluster != c.cluster {
				return true
			}
		}
	}
	return false
}
