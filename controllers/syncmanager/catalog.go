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

package syncmanager

import (
	"slices"
	gosync "sync"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/synchub-dev/synchub/controllers/plan"
	"github.com/synchub-dev/synchub/controllers/plan/transform"
	"github.com/synchub-dev/synchub/controllers/syncmanager/schemacheck"
)

// catalog contains the APIs that mailboxes get from the hub.
type catalog struct {
	// comparesSchemas is true if the schemas are compared with the schemas of targets.
	comparesSchemas bool

	lock      gosync.Mutex
	resources []plan.Resource
	// publication counts the calls of publish.
	publication int
	schemas     map[schema.GroupResource]schemacheck.Schema
}

// publish replaces the resources that mailboxes have.
func (c *catalog) publish(resources []plan.Resource) {
	c.lock.Lock()
	defer c.lock.Unlock()
	c.resources = resources
	c.publication++
}

// setSchemas replaces the schemas that the hub gives mailboxes, by mailbox resource.
func (c *catalog) setSchemas(schemas map[schema.GroupResource]schemacheck.Schema) {
	c.lock.Lock()
	defer c.lock.Unlock()
	c.schemas = schemas
}

// published returns the resources that mailboxes have, and the number of that publication: zero before the first one. The caller must
// not change the resources.
func (c *catalog) published() (resources []plan.Resource, publication int) {
	c.lock.Lock()
	defer c.lock.Unlock()
	return c.resources, c.publication
}

// isPublished reports whether a PublishedResource of that name is published.
func (c *catalog) isPublished(publishedResource string) bool {
	published, _ := c.published()
	return slices.ContainsFunc(published, func(resource plan.Resource) bool {
		return !resource.Unpublishing && resource.PublishedResource == publishedResource
	})
}

// comparedSchema returns the schema that objects of the resource must fit on targets; ok is false if it is not compared.
func (c *catalog) comparedSchema(resource plan.Resource) (found schemacheck.Schema, ok bool) {
	c.lock.Lock()
	defer c.lock.Unlock()
	found, ok = c.schemas[resource.GroupResource()]
	return found, ok && c.comparesSchemas && resource.PublishedResource != ""
}

// prunerFor returns the pruner of the schema that mailboxes have from the hub, nil if they have none.
func (c *catalog) prunerFor(resource plan.Resource) *transform.Pruner {
	if resource.PublishedResource == "" {
		return nil
	}
	c.lock.Lock()
	defer c.lock.Unlock()
	return c.schemas[resource.GroupResource()].Kept
}
