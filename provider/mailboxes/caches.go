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

package mailboxes

import (
	kcpcache "github.com/kcp-dev/apimachinery/v2/pkg/cache"
	"github.com/kcp-dev/logicalcluster/v3"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// Caches reads the caches of all endpoints.
type Caches struct {
	options   *Options
	endpoints *Endpoints
	owned     *ownedMailboxes
	usages    *usages
	relists   *relists
}

var _ Reader = &Caches{}

// Get implements [Reader].
func (c *Caches) Get(resource schema.GroupVersionResource, mailbox logicalcluster.Name, key types.NamespacedName) (*unstructured.Unstructured, State) {
	informer, ok := c.informer(resource, mailbox)
	if !ok {
		return nil, Unknown
	}
	found, exists, err := informer.GetIndexer().GetByKey(kcpcache.ToClusterAwareKey(mailbox.String(), key.Namespace, key.Name))
	if err != nil || !exists {
		return nil, Absent
	}
	return toObject(found), Present
}

// List implements [Reader].
func (c *Caches) List(resource schema.GroupVersionResource, mailbox logicalcluster.Name) (objects []*unstructured.Unstructured, known bool) {
	informer, ok := c.informer(resource, mailbox)
	if !ok {
		return nil, false
	}
	found := entriesOf(informer, mailbox)
	objects = make([]*unstructured.Unstructured, 0, len(found))
	for _, object := range found {
		if !isPlaceholder(object) {
			objects = append(objects, toObject(object))
		}
	}
	return objects, true
}

// informer returns the filled cache of a resource at the endpoint that shows the mailbox; ok is false if a look-up would be
// Unknown.
func (c *Caches) informer(resource schema.GroupVersionResource, mailbox logicalcluster.Name) (kcpcache.ScopeableSharedIndexInformer, bool) {
	endpoint := c.endpoints.locate(mailbox)
	if endpoint == nil || resource != bindingsResource && c.usages.isEvicted(mailbox, c.options.isConfig(resource)) {
		return nil, false
	}
	if c.options.dropsUnowned(resource) && c.owned.isUnknown(mailbox) {
		return nil, false
	}
	if c.relists.awaiting.Load() > 0 && endpoint.isAwaitingRelist(resource, mailbox) {
		return nil, false
	}
	return endpoint.informer(resource)
}

// entriesOf returns the entries of a mailbox in a cache.
func entriesOf(informer kcpcache.ScopeableSharedIndexInformer, mailbox logicalcluster.Name) []any {
	// Every cache has the index.
	entries, _ := informer.GetIndexer().ByIndex(kcpcache.ClusterIndexName, kcpcache.ClusterIndexKey(mailbox))
	return entries
}
