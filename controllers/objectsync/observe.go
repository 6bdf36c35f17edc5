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
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/synchub-dev/synchub/controllers/plan"
	"github.com/synchub-dev/synchub/provider/mailboxes"
)

// observe reads all facts that one pass needs about a key. It also takes a verified absence, and asks for full objects, for the
// initial sync of primaries and for a rename; it writes to neither side.
func (c *Controller) observe(key types.NamespacedName) *plan.Snapshot {
	s := &plan.Snapshot{Key: key, Matcher: c.matcher.Load()}
	s.InMailbox, s.Readable = c.mailboxObject(key)
	switch {
	case !s.Readable, c.Resource.Unpublishing:
	case c.isUpsynced(s.InMailbox):
		s.Up = c.observeUp(s)
	default:
		if len(c.states.upsyncedRefs(key)) > 0 {
			s.Up = c.observeUp(s)
		}
		s.Down = c.observeDown(s)
	}
	return s
}

// mailboxObject returns the mailbox object, nil if there is none; known is false if the mailbox cannot be read now. The hub's
// own last write counts although the cache may not show it yet.
func (c *Controller) mailboxObject(key types.NamespacedName) (object *unstructured.Unstructured, known bool) {
	cached, state := c.Mailboxes.Get(c.Resource.GroupVersionResource, c.Mailbox, key)
	if state == mailboxes.Unknown {
		return nil, false
	}
	object, deleted := c.states.mailboxExpectations.Current(key, cached)
	if deleted {
		now := c.Clock.Now().UTC().Format(time.RFC3339)
		object = object.DeepCopy()
		_ = unstructured.SetNestedField(object.Object, now, "metadata", "deletionTimestamp")
	}
	return object, true
}

// isUpsynced reports whether the hub upsynced a mailbox object.
func (c *Controller) isUpsynced(object *unstructured.Unstructured) bool {
	return object != nil && plan.IsUpsyncedBy(c.Owner, object)
}
