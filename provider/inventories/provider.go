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
	"fmt"
	"strings"
	"sync"

	"github.com/go-logr/logr"
	"github.com/kcp-dev/logicalcluster/v3"
	mcpcache "github.com/kcp-dev/multicluster-provider/pkg/cache"
	mcrecorder "github.com/kcp-dev/multicluster-provider/pkg/events/recorder"
	"github.com/kcp-dev/multicluster-provider/pkg/provider"
	apisv1alpha1 "github.com/kcp-dev/sdk/apis/apis/v1alpha1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/multicluster-runtime/pkg/multicluster"

	"github.com/synchub-dev/synchub/provider/kcp"
)

// Options configure a [Provider].
type Options struct {
	KCP *kcp.ConfigProvider
	// Workspace is the path of the provider workspace, and Export the name of the inventory export there.
	Workspace string
	Export    string
	// Scheme contains SyncTargets and Locations.
	Scheme *runtime.Scheme
	Log    logr.Logger
}

// Provider finds the inventory workspaces, and makes a client for each that reads from the caches of this package.
type Provider struct {
	*provider.Provider
	kcpConfig *kcp.ConfigProvider
	scheme    *runtime.Scheme
	log       logr.Logger
	// endpointConfig returns the config for all workspaces of an endpoint, by its URL, and served contains the URLs that have
	// answered.
	endpointConfig func(url string) *rest.Config
	served         sync.Map

	lock sync.Mutex
	// ctx is the context in which the caches run. Start sets it.
	ctx     context.Context //nolint:containedctx // caches outlive the call that needs the first of an endpoint
	caches  map[string]*endpointCache
	running sync.WaitGroup
}

var _ multicluster.ProviderRunnable = &Provider{}

// New returns a provider that has not been started.
func New(options Options) (*Provider, error) {
	made := &Provider{kcpConfig: options.KCP, scheme: options.Scheme, log: options.Log, caches: map[string]*endpointCache{}}
	ready := provider.ConditionReadyFunc("Ready")
	// The provider logs whole APIBindings at info level.
	quiet := options.Log.V(2)
	config := options.KCP.WorkspaceConfig(options.Workspace)
	made.endpointConfig = func(url string) *rest.Config {
		endpoint := rest.CopyConfig(config)
		endpoint.Host = strings.TrimSuffix(url, "/") + "/clusters/*"
		return endpoint
	}
	var err error
	made.Provider, err = provider.NewProvider(config, options.Export, provider.Options{
		Scheme:              options.Scheme,
		EndpointSliceObject: &apisv1alpha1.APIExportEndpointSlice{},

		ExtractURLsFromEndpointSlice: made.servedURLs,

		ObjectToWatch: &apisv1alpha1.APIBinding{},
		AddFilter:     ready,
		UpdateFilter:  ready,
		NewCluster:    made.newCluster,
		Log:           &quiet,
	})
	return made, err
}

// Start finds inventory workspaces until ctx ends, and returns when all caches have stopped.
func (p *Provider) Start(ctx context.Context, aware multicluster.Aware) error {
	ctx, cancel := context.WithCancel(ctx)
	p.lock.Lock()
	p.ctx = ctx
	p.lock.Unlock()
	defer p.end(cancel)
	defer runningProviders.Add(p)()
	return p.Provider.Start(ctx, aware)
}

// end ends all caches, and waits for them.
func (p *Provider) end(cancel context.CancelFunc) {
	// Under the lock, so that no cache is started during Wait.
	p.lock.Lock()
	cancel()
	p.lock.Unlock()
	p.running.Wait()
}

// newCluster returns an inventory workspace that reads from the cache of its endpoint, instead of the given cache of
// bindings.
func (p *Provider) newCluster(
	config *rest.Config, name logicalcluster.Name, _ mcpcache.WildcardCache, scheme *runtime.Scheme, recorder mcrecorder.EventRecorderGetter,
) (*mcpcache.ScopedCluster, error) {
	cache, err := p.getOrStartCache(config.Host)
	if err != nil {
		return nil, err
	}
	return mcpcache.NewScopedCluster(config, name, cache, scheme, recorder)
}

// getOrStartCache returns the cache of an endpoint, and starts one if there is none. The cache runs until the provider
// stops. If the endpoint disappears, its workspaces keep the cache, which continues when the endpoint is back.
func (p *Provider) getOrStartCache(endpoint string) (*endpointCache, error) {
	p.lock.Lock()
	defer p.lock.Unlock()
	if found := p.caches[endpoint]; found != nil {
		return found, nil
	}
	if err := p.ctx.Err(); err != nil {
		return nil, fmt.Errorf("no cache is started any more: %w", err)
	}
	made, err := newEndpointCache(p.kcpConfig.InventoryConfigFor(endpoint), p.scheme)
	if err != nil {
		return nil, fmt.Errorf("cannot make a cache for the endpoint %s: %w", endpoint, err)
	}
	p.caches[endpoint] = made
	ctx := p.ctx
	p.running.Go(func() {
		if err := made.Start(ctx); err != nil {
			p.log.Error(err, "the cache of inventory workspaces ended", "endpoint", endpoint)
		}
	})
	return made, nil
}
