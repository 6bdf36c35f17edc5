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
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/go-logr/logr"
	kcpcache "github.com/kcp-dev/apimachinery/v2/pkg/cache"
	kcpclient "github.com/kcp-dev/apimachinery/v2/pkg/client"
	"github.com/kcp-dev/logicalcluster/v3"
	apisv1alpha2 "github.com/kcp-dev/sdk/apis/apis/v1alpha2"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/synchub-dev/synchub/provider/fastjson"
	"github.com/synchub-dev/synchub/provider/metrics/requestmetrics"
)

var bindingsResource = apisv1alpha2.SchemeGroupVersion.WithResource("apibindings")

// endpoint is one URL of the virtual workspace: the mailboxes of one kcp shard.
type endpoint struct {
	parts   *parts
	url     string
	clients kcpclient.Cache[dynamic.Interface]
	// workspaces are clients for the workspaces themselves; nil if the hub has no rights there, or clients are such ones already.
	workspaces kcpclient.Cache[dynamic.Interface]
	// filtered is the client for all mailboxes that drops the objects of unowned ones.
	filtered dynamic.Interface
	log      logr.Logger
	ctx      context.Context
	cancel   context.CancelFunc
	schemas  *schemaTracker
	// restarting are the informers that are being restarted.
	restarting sync.WaitGroup
	// pageSemaphore has an entry for each page of a list that is being read.
	pageSemaphore chan struct{}
	// unresponsive is true while requests for bindings fail, which every endpoint serves.
	unresponsive atomic.Bool

	lock      sync.RWMutex
	informers map[schema.GroupVersionResource]*wildcardInformer

	// untrack ends the record of the endpoint's version in the hosting cluster.
	untrack func()
}

// clientFor returns a client for one mailbox.
func (e *endpoint) clientFor(mailbox logicalcluster.Name) dynamic.Interface {
	return e.clients.ClusterOrDie(mailbox.Path())
}

// newEndpoint returns the endpoint of a URL that normalizeURL has returned.
func newEndpoint(ctx context.Context, parts *parts, url string) (*endpoint, error) {
	config := parts.options.Access.ConfigFor(url, requestmetrics.Mailbox)
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("cannot make a client for the endpoint %s: %w", url, err)
	}
	clients := kcpclient.NewCache(config, client, &kcpclient.Constructor[dynamic.Interface]{NewForConfigAndClient: fastjson.NewDynamicClient})
	// If one mailbox's client can be made, all can.
	wildcard, err := clients.Cluster(logicalcluster.Wildcard)
	if err == nil && parts.options.Owns != nil {
		construct := fastjson.NewFilteringClient(fastjson.Filter{Annotation: logicalcluster.AnnotationKey, Drops: parts.owned.isUnownedText})
		wildcard, err = kcpclient.NewCache(config, client, &kcpclient.Constructor[dynamic.Interface]{NewForConfigAndClient: construct}).Cluster(logicalcluster.Wildcard)
	}
	if err != nil {
		return nil, fmt.Errorf("cannot make a client for the endpoint %s: %w", url, err)
	}
	var workspaces kcpclient.Cache[dynamic.Interface]
	if !parts.options.BindLater {
		if workspaces, err = newWorkspaceClients(parts.options.Access); err != nil {
			return nil, err
		}
	}
	ctx, cancel := context.WithCancel(ctx)
	made := &endpoint{
		filtered:      wildcard,
		workspaces:    workspaces,
		parts:         parts,
		url:           url,
		clients:       clients,
		log:           parts.options.Log.WithValues("endpoint", url),
		schemas:       newSchemaTracker(),
		pageSemaphore: make(chan struct{}, maxConcurrentPages),
		ctx:           ctx,
		cancel:        cancel,
		informers:     map[schema.GroupVersionResource]*wildcardInformer{},
	}
	made.untrack = parts.options.History.Track(url, made.seenVersion)
	return made, nil
}

// normalizeURL returns the URL in a comparable form. The hub sends its credentials there, so the connection must be encrypted.
func normalizeURL(text string) (string, error) {
	parsed, err := url.Parse(text)
	if err != nil {
		return "", err
	}
	if parsed.Scheme != "https" || parsed.Host == "" || parsed.User != nil || parsed.RawQuery != "" || parsed.Fragment != "" {
		return "", fmt.Errorf("%q is not an https URL of a host and a path", text)
	}
	return strings.TrimRight(parsed.String(), "/"), nil
}

// stop ends all watches. When it returns no handler runs any more.
func (e *endpoint) stop() {
	e.cancel()
	stopWildcardInformers(e.allInformers())
	e.restarting.Wait()
	endpointUp.DeleteLabelValues(e.url)
	e.untrack()
}

// startInformer starts the wildcard informer of a resource.
func (e *endpoint) startInformer(resource schema.GroupVersionResource) {
	e.lock.Lock()
	defer e.lock.Unlock()
	e.informers[resource] = startWildcardInformer(e, resource)
}

// removeInformer removes the informer of a resource, to be stopped.
func (e *endpoint) removeInformer(resource schema.GroupVersionResource) *wildcardInformer {
	e.lock.Lock()
	defer e.lock.Unlock()
	informer := e.informers[resource]
	delete(e.informers, resource)
	return informer
}

// onCacheFilled notifies subscribers of a cache that was just filled. Nothing is visible before the bindings are, which may
// come last.
func (e *endpoint) onCacheFilled(resource schema.GroupVersionResource) {
	if resource != bindingsResource {
		e.parts.reviews.enqueueLimited()
		e.parts.subscriptions.notifyReset(resource, func(mailbox logicalcluster.Name) bool { return e.binding(mailbox) != nil })
		for _, mailbox := range e.mailboxes() {
			e.parts.subscriptions.resetObserver(mailbox)
		}
		return
	}
	for _, mailbox := range e.mailboxes() {
		e.parts.subscriptions.resetMailbox(mailbox)
	}
	// Only a filled cache of bindings shows which mailboxes were deleted.
	e.parts.usages.each(func(mailbox logicalcluster.Name, _ *usage, _ bool) { e.parts.usages.deleteUnused(mailbox) })
}

// recordResult records the result of a request, and reports when the endpoint stops or starts to respond.
func (e *endpoint) recordResult(resource schema.GroupVersionResource, err error) {
	if resource != bindingsResource {
		return
	}
	failed := err != nil
	if before := e.unresponsive.Swap(failed); failed && !before {
		e.log.Info("cannot watch the endpoint, its mailboxes keep their last known state", "reason", err.Error())
	} else if before && !failed {
		e.log.Info("can watch the endpoint again")
	}
	up := 1.0
	if failed {
		up = 0
	}
	endpointUp.WithLabelValues(e.url).Set(up)
}

// get returns the informer of a resource; nil if there is none.
func (e *endpoint) get(resource schema.GroupVersionResource) *wildcardInformer {
	e.lock.RLock()
	defer e.lock.RUnlock()
	return e.informers[resource]
}

func (e *endpoint) allInformers() []*wildcardInformer {
	e.lock.RLock()
	defer e.lock.RUnlock()
	return slices.Collect(maps.Values(e.informers))
}

// informer returns the cache of a resource if it is filled.
func (e *endpoint) informer(resource schema.GroupVersionResource) (kcpcache.ScopeableSharedIndexInformer, bool) {
	informer := e.get(resource)
	if informer == nil || !informer.shared.HasSynced() {
		return nil, false
	}
	return informer.shared, true
}

// objectInformers returns the informers of configs, or of all other objects but bindings.
func (e *endpoint) objectInformers(configs bool) []*wildcardInformer {
	return slices.DeleteFunc(e.allInformers(), func(w *wildcardInformer) bool { return w.resource == bindingsResource || w.configs != configs })
}

// isSyncing reports whether the first attempt to fill a cache is running.
func (e *endpoint) isSyncing() bool {
	return slices.ContainsFunc(e.allInformers(), (*wildcardInformer).isSyncing)
}

// hasSyncedBindings reports whether the mailboxes of the endpoint are known.
func (e *endpoint) hasSyncedBindings() bool {
	_, ok := e.informer(bindingsResource)
	return ok
}

// mailboxes returns the mailboxes with a visible binding.
func (e *endpoint) mailboxes() (all []logicalcluster.Name) {
	if informer := e.get(bindingsResource); informer != nil {
		for _, name := range informer.shared.GetIndexer().ListIndexFuncValues(kcpcache.ClusterIndexName) {
			all = append(all, logicalcluster.Name(name))
		}
	}
	return all
}

// binding returns the mailbox's binding of the hub's export as this endpoint shows it, or nil.
func (e *endpoint) binding(mailbox logicalcluster.Name) *unstructured.Unstructured {
	informer, ok := e.informer(bindingsResource)
	if !ok {
		return nil
	}
	// The virtual workspace shows only bindings of its own export, unless bindings are claimed, which the hub does not do.
	if found := entriesOf(informer, mailbox); len(found) > 0 {
		return found[0].(*unstructured.Unstructured)
	}
	return nil
}
