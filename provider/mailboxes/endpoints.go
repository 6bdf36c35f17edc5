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
	"context"
	"iter"
	"maps"
	"slices"
	"sync"

	"github.com/kcp-dev/logicalcluster/v3"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/synchub-dev/synchub/provider/metrics/requestmetrics"
	"github.com/synchub-dev/synchub/provider/transport"
)

// Endpoints are the current endpoints of the export, and the resources that each of them watches.
type Endpoints struct {
	options *Options

	lock sync.RWMutex
	// ctx is set by begin. It ends all watches.
	ctx       context.Context
	resources []schema.GroupVersionResource
	byURL     map[string]*endpoint
	// known is true once the APIExportEndpointSlice was read.
	known bool
}

func newEndpoints(options *Options) *Endpoints {
	return &Endpoints{options: options, resources: options.alwaysWatched(), byURL: map[string]*endpoint{}}
}

// begin sets the context of all endpoints.
func (e *Endpoints) begin(ctx context.Context) {
	e.lock.Lock()
	defer e.lock.Unlock()
	e.ctx = ctx
}

// context returns the context of all endpoints; nil before begin.
func (e *Endpoints) context() context.Context {
	e.lock.RLock()
	defer e.lock.RUnlock()
	return e.ctx
}

// markKnown records that the APIExportEndpointSlice was read.
func (e *Endpoints) markKnown() {
	e.lock.Lock()
	defer e.lock.Unlock()
	e.known = true
}

// replace starts the endpoints of new URLs, made by start, and removes all endpoints without a URL. The removed ones are stopped without
// the lock: stopping waits for handlers, and those take it.
func (e *Endpoints) replace(urls []string, start func(ctx context.Context, url string) (*endpoint, error)) (removed []*endpoint) {
	e.lock.Lock()
	defer e.lock.Unlock()
	for url, endpoint := range e.byURL {
		if !slices.Contains(urls, url) {
			delete(e.byURL, url)
			removed = append(removed, endpoint)
		}
	}
	for _, url := range urls {
		if _, ok := e.byURL[url]; ok {
			continue
		}
		endpoint, err := start(e.ctx, url)
		if err != nil {
			e.options.Log.Error(err, "ignoring an endpoint of the export", "export", e.options.Export)
			continue
		}
		e.options.Log.Info("watching the endpoint", "endpoint", url)
		e.byURL[url] = endpoint
		for _, resource := range e.resources {
			endpoint.startInformer(resource)
		}
	}
	return removed
}

// HasSynced reports whether the hub can work: the endpoints are known, and each cache is filled or has failed to. It ignores
// resources that are not served and endpoints that do not answer, but if there are endpoints, one must show its mailboxes.
func (e *Endpoints) HasSynced() bool {
	e.lock.RLock()
	defer e.lock.RUnlock()
	if !e.known {
		return false
	}
	usable := len(e.byURL) == 0
	for _, endpoint := range e.byURL {
		if endpoint.isSyncing() {
			return false
		}
		usable = usable || endpoint.hasSyncedBindings()
	}
	return usable
}

// Client returns a client for a mailbox; ok is false unless exactly one endpoint shows the mailbox.
func (e *Endpoints) Client(mailbox logicalcluster.Name) (client dynamic.Interface, ok bool) {
	endpoint := e.locate(mailbox)
	if endpoint == nil {
		return nil, false
	}
	if endpoint.workspaces == nil {
		return endpoint.clientFor(mailbox), true
	}
	return mailboxClient{endpoint.clientFor(mailbox), endpoint.workspaces.ClusterOrDie(mailbox.Path())}, true
}

// ListUncached calls visit for each object of a resource in all mailboxes. It sends requests, so that a rarely read resource
// need not be watched. It stops at the first failed request and returns its error.
func (e *Endpoints) ListUncached(ctx context.Context, resource schema.GroupVersionResource, visit func(mailbox logicalcluster.Name, object *unstructured.Unstructured)) error {
	for _, endpoint := range e.all() {
		client := endpoint.clients.ClusterOrDie(logicalcluster.Wildcard).Resource(resource)
		for page, err := range transport.Pages(ctx, metav1.ListOptions{Limit: wildcardPageSize}, client.List) {
			if err != nil {
				return err
			}
			for i := range page.Items {
				visit(logicalcluster.From(&page.Items[i]), &page.Items[i])
			}
		}
	}
	return nil
}

func (e *Endpoints) all() []*endpoint {
	e.lock.RLock()
	defer e.lock.RUnlock()
	return slices.Collect(maps.Values(e.byURL))
}

// locate returns the endpoint that shows a binding of the mailbox. It returns nil if there is none, or more than one: then
// the valid one is unknown.
func (e *Endpoints) locate(mailbox logicalcluster.Name) (located *endpoint) {
	e.lock.RLock()
	defer e.lock.RUnlock()
	for _, endpoint := range e.byURL {
		if endpoint.binding(mailbox) == nil {
			continue
		}
		if located != nil {
			return nil
		}
		located = endpoint
	}
	return located
}

// binding returns the mailbox's binding; nil unless exactly one endpoint shows it.
func (e *Endpoints) binding(mailbox logicalcluster.Name) *unstructured.Unstructured {
	endpoint := e.locate(mailbox)
	if endpoint == nil {
		return nil
	}
	return endpoint.binding(mailbox)
}

// bindings returns the bindings of all mailboxes at all endpoints.
func (e *Endpoints) bindings() iter.Seq2[logicalcluster.Name, *unstructured.Unstructured] {
	return func(yield func(logicalcluster.Name, *unstructured.Unstructured) bool) {
		for _, endpoint := range e.all() {
			for _, mailbox := range endpoint.mailboxes() {
				if binding := endpoint.binding(mailbox); binding != nil && !yield(mailbox, binding) {
					return
				}
			}
		}
	}
}

// isKnownGone reports whether the mailboxes of all endpoints are known and none of them is this one.
func (e *Endpoints) isKnownGone(mailbox logicalcluster.Name) bool {
	e.lock.RLock()
	defer e.lock.RUnlock()
	for _, endpoint := range e.byURL {
		if !endpoint.hasSyncedBindings() || endpoint.binding(mailbox) != nil {
			return false
		}
	}
	return true
}

// objectInformers returns the informers of configs, or of all other objects but bindings, at all endpoints.
func (e *Endpoints) objectInformers(configs bool) (all []*wildcardInformer) {
	for _, endpoint := range e.all() {
		all = append(all, endpoint.objectInformers(configs)...)
	}
	return all
}

// informers returns the wildcard informers of all endpoints.
func (e *Endpoints) informers() (all []*wildcardInformer) {
	for _, endpoint := range e.all() {
		all = append(all, endpoint.allInformers()...)
	}
	return all
}

// droppingInformers returns the informers that drop the objects of unowned mailboxes.
func (e *Endpoints) droppingInformers() []*wildcardInformer {
	return slices.DeleteFunc(e.informers(), func(w *wildcardInformer) bool { return !w.dropsUnowned })
}

// setResources sets the watched resources, besides those that are always watched. It calls forget under the lock for each resource
// that is not watched any more. The caller stops the returned informers without the lock, because handlers take it.
func (e *Endpoints) setResources(all []schema.GroupVersionResource, forget func(schema.GroupVersionResource)) (ended []*wildcardInformer) {
	e.lock.Lock()
	defer e.lock.Unlock()
	for _, resource := range all {
		if slices.Contains(e.resources, resource) {
			continue
		}
		e.resources = append(e.resources, resource)
		requestmetrics.RegisterResource(resource.GroupResource())
		for _, endpoint := range e.byURL {
			endpoint.startInformer(resource)
		}
	}
	e.resources = slices.DeleteFunc(e.resources, func(resource schema.GroupVersionResource) bool {
		if slices.Contains(all, resource) || e.options.isAlwaysWatched(resource) {
			return false
		}
		for _, endpoint := range e.byURL {
			if informer := endpoint.removeInformer(resource); informer != nil {
				ended = append(ended, informer)
			}
		}
		forget(resource)
		return true
	})
	return ended
}

// callIfWatched calls a function under the lock if a resource is watched, so that the forget of setResources comes later. ctx is nil
// before begin.
func (e *Endpoints) callIfWatched(resource schema.GroupVersionResource, call func(ctx context.Context)) {
	e.lock.RLock()
	defer e.lock.RUnlock()
	if slices.Contains(e.resources, resource) {
		call(e.ctx)
	}
}

// watchedResources returns all watched resources.
func (e *Endpoints) watchedResources() []schema.GroupVersionResource {
	e.lock.RLock()
	defer e.lock.RUnlock()
	return slices.Clone(e.resources)
}
