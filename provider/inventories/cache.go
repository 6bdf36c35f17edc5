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

package inventories

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	kcpcache "github.com/kcp-dev/apimachinery/v2/pkg/cache"
	kcpinformers "github.com/kcp-dev/apimachinery/v2/third_party/informers"
	mcpcache "github.com/kcp-dev/multicluster-provider/pkg/cache"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/provider/cachesize"
	"github.com/synchub-dev/synchub/provider/kcp"
	"github.com/synchub-dev/synchub/provider/transport"
)

// pageSize is the maximum number of objects in a page of a list.
const pageSize = 100

var (
	syncTargets = edgev2alpha1.SchemeGroupVersion.WithKind("SyncTarget")
	secrets     = corev1.SchemeGroupVersion.WithKind("Secret")
	locations   = edgev2alpha1.SchemeGroupVersion.WithKind("Location")
)

// SecretMetadata returns an empty object to read the metadata of a Secret into. The cache holds only the metadata of
// Secrets.
func SecretMetadata() *metav1.PartialObjectMetadata {
	return &metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"}}
}

// ErrNotSynced means that the cache of a kind has not been filled yet, so a missing object does not prove that the object was
// deleted.
var ErrNotSynced = errors.New("the cache is being filled")

// endpointCache caches the SyncTargets, the Locations, and the metadata of the Secrets, of all inventory workspaces at one
// endpoint of the export.
type endpointCache struct {
	cache.Cache
	// sizes counts the cached objects of each kind.
	sizes map[schema.GroupVersionKind]*cachesize.Counter
}

var _ mcpcache.WildcardCache = &endpointCache{}

// newEndpointCache returns a cache for the endpoint at config.Host.
func newEndpointCache(config *rest.Config, scheme *runtime.Scheme) (*endpointCache, error) {
	config.Host = strings.TrimSuffix(config.Host, "/") + "/clusters/*"
	httpClient, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, err
	}
	made := &endpointCache{sizes: newSizes()}
	made.Cache, err = cache.New(config, cache.Options{
		HTTPClient: httpClient, Scheme: scheme, Mapper: newMapper(),
		DefaultTransform: stripObject, NewInformer: made.newInformer, DefaultWatchErrorHandler: logWatchError,
	})
	return made, err
}

// logWatchError logs that a list or a watch ended. The informer tries again. Right after `synchub init` kcp does not serve the
// export yet, which is no error.
func logWatchError(ctx context.Context, _ *toolscache.Reflector, err error) {
	log.FromContext(ctx).WithName("inventories").Info("inventory workspaces cannot be listed or watched now; the hub tries again", "error", err.Error())
}

// newMapper returns the mapper of the kinds in the cache. It has them in memory and sends no requests.
func newMapper() meta.RESTMapper {
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.Add(syncTargets, meta.RESTScopeRoot)
	mapper.Add(locations, meta.RESTScopeRoot)
	mapper.Add(secrets, meta.RESTScopeNamespace)
	return mapper
}

// newSizes returns a counter for each cached kind.
func newSizes() map[schema.GroupVersionKind]*cachesize.Counter {
	return map[schema.GroupVersionKind]*cachesize.Counter{syncTargets: {}, secrets: {}, locations: {}}
}

// Start implements [mcpcache.WildcardCache]. It fills the cache until ctx ends. All kinds are listed at the same time,
// because controllers request the informer of one kind only after the informer of the previous kind has synced.
func (c *endpointCache) Start(ctx context.Context) error {
	for _, of := range []client.Object{&edgev2alpha1.SyncTarget{}, &edgev2alpha1.Location{}, SecretMetadata()} {
		if _, err := c.GetInformer(ctx, of, cache.BlockUntilSynced(false)); err != nil {
			return err
		}
	}
	return c.Cache.Start(ctx)
}

// newInformer returns an informer that lists in pages, and indexes objects by their workspaces.
func (c *endpointCache) newInformer(watcher toolscache.ListerWatcher, of runtime.Object, resync time.Duration, indexers toolscache.Indexers) toolscache.SharedIndexInformer {
	from := toolscache.ToListerWatcherWithContext(watcher)
	informer := kcpinformers.NewSharedIndexInformer(
		&toolscache.ListWatch{ListWithContextFunc: paginate(from.ListWithContext), WatchFuncWithContext: from.WatchWithContext}, of, resync, indexers)
	// These calls fail only on a started informer.
	_ = informer.SetIgnoreFunc(kcp.NewUnlistedDeleter(informer))
	_ = informer.AddIndexers(toolscache.Indexers{
		kcpcache.ClusterIndexName:             mcpcache.ClusterIndexFunc,
		kcpcache.ClusterAndNamespaceIndexName: mcpcache.ClusterAndNamespaceIndexFunc,
	})
	_, _ = informer.AddEventHandler(c.sizeHandler(of))
	return informer
}

// sizeHandler returns an event handler that counts the cached objects of a kind.
func (c *endpointCache) sizeHandler(of runtime.Object) toolscache.ResourceEventHandler {
	kind := secrets
	switch of.(type) {
	case *edgev2alpha1.SyncTarget:
		kind = syncTargets
	case *edgev2alpha1.Location:
		kind = locations
	}
	size := c.sizes[kind]
	return toolscache.ResourceEventHandlerFuncs{
		AddFunc:    func(added any) { size.Add(1, sizeOf(added)) },
		UpdateFunc: func(before, after any) { size.Add(0, sizeOf(after)-sizeOf(before)) },
		DeleteFunc: func(deleted any) {
			if tombstone, is := deleted.(toolscache.DeletedFinalStateUnknown); is {
				deleted = tombstone.Obj
			}
			size.Add(-1, -sizeOf(deleted))
		},
	}
}

// GetSharedInformer implements [mcpcache.WildcardCache]. It returns [ErrNotSynced] until the cache has synced, so that a
// missing object is not taken for a deleted one.
func (c *endpointCache) GetSharedInformer(of runtime.Object) (toolscache.SharedIndexInformer, schema.GroupVersionKind, meta.RESTScopeName, error) {
	var kind schema.GroupVersionKind
	var scope meta.RESTScopeName
	var informer cache.Informer
	var err error
	switch known := of.(type) {
	case *edgev2alpha1.SyncTarget, *edgev2alpha1.SyncTargetList:
		kind, scope = syncTargets, meta.RESTScopeNameRoot
		informer, err = c.GetInformer(context.TODO(), &edgev2alpha1.SyncTarget{}, cache.BlockUntilSynced(false))
	case *edgev2alpha1.Location, *edgev2alpha1.LocationList:
		kind, scope = locations, meta.RESTScopeNameRoot
		informer, err = c.GetInformer(context.TODO(), &edgev2alpha1.Location{}, cache.BlockUntilSynced(false))
	case *metav1.PartialObjectMetadata:
		if kind = known.GroupVersionKind(); kind != secrets {
			return nil, kind, "", fmt.Errorf("the metadata of %s is not cached", kind)
		}
		scope = meta.RESTScopeNameNamespace
		informer, err = c.GetInformer(context.TODO(), SecretMetadata(), cache.BlockUntilSynced(false))
	default:
		return nil, kind, "", fmt.Errorf("%T is not cached: read it from kcp itself", of)
	}
	if err != nil {
		return nil, kind, "", fmt.Errorf("cannot watch %s of the inventory workspaces: %w", kind.Kind, err)
	}
	if !informer.HasSynced() {
		return nil, kind, "", fmt.Errorf("cannot read %s of the inventory workspaces: %w", kind.Kind, ErrNotSynced)
	}
	shared, is := informer.(toolscache.SharedIndexInformer)
	if !is {
		return nil, kind, "", fmt.Errorf("the informer of %s is a %T", kind.Kind, informer)
	}
	return shared, kind, scope, nil
}

// paginate returns a function that lists in pages, and strips each page before it requests the next one.
func paginate(list func(context.Context, metav1.ListOptions) (runtime.Object, error)) func(context.Context, metav1.ListOptions) (runtime.Object, error) {
	return func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
		options.Limit = pageSize
		if options.ResourceVersion == "0" {
			// A server ignores the limit of a list that it serves from its cache.
			options.ResourceVersion = ""
		}
		var all []runtime.Object
		for {
			page, err := transport.ListPage(ctx, &options, list)
			if err != nil {
				return nil, err
			}
			err = meta.EachListItem(page, func(item runtime.Object) error {
				_, err := stripObject(item)
				all = append(all, item)
				return err
			})
			if err != nil {
				return nil, err
			}
			read, err := meta.ListAccessor(page)
			if err != nil {
				return nil, err
			}
			if options.Continue = read.GetContinue(); options.Continue == "" {
				return page, meta.SetList(page, all)
			}
			options.ResourceVersion, options.ResourceVersionMatch = "", ""
			options.Limit = min(2*options.Limit, pageSize)
		}
	}
}
