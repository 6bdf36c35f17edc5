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
	"sync"
	"time"

	"github.com/kcp-dev/multicluster-provider/pkg/provider"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/discovery"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/synchub-dev/synchub/provider/requestclass"
)

const (
	// servedTimeout bounds how long one endpoint may delay the other endpoints. servedInterval is the time between two
	// requests.
	servedTimeout  = time.Minute
	servedInterval = 500 * time.Millisecond
)

// servedURLs returns the URLs of an endpoint slice, after each new one has answered and its cache was started. kcp may name a URL before
// it serves the URL, and the embedded provider tries each only once: after a failure it would find no inventory workspace there until the
// slice changes. The cache fills while the provider lists the bindings.
func (p *Provider) servedURLs(slice client.Object) ([]string, error) {
	urls, err := provider.DefaultExtractURLsFromEndpointSlice(slice)
	p.lock.Lock()
	ctx := p.ctx
	p.lock.Unlock()
	var asking sync.WaitGroup
	for _, url := range urls {
		asking.Go(func() {
			err := p.awaitServed(ctx, url)
			if err == nil {
				_, err = p.getOrStartCache(url)
			}
			if err != nil && ctx.Err() == nil {
				p.log.Info("an endpoint of inventory workspaces cannot be used; until it can, no inventory workspace is found there", "endpoint", url, "error", err.Error())
			}
		})
	}
	asking.Wait()
	return urls, err
}

// awaitServed returns when a URL has answered once. The error is the last one before servedTimeout.
func (p *Provider) awaitServed(ctx context.Context, url string) error {
	if _, isServed := p.served.Load(url); isServed {
		return nil
	}
	client, err := discovery.NewDiscoveryClientForConfig(p.endpointConfig(url))
	if err != nil {
		return fmt.Errorf("cannot make a client for %s: %w", url, err)
	}
	var refused error
	err = wait.PollUntilContextTimeout(requestclass.With(ctx, requestclass.Background), servedInterval, servedTimeout, true, func(ctx context.Context) (bool, error) {
		refused = client.RESTClient().Get().AbsPath("/apis").Do(ctx).Error()
		return refused == nil, nil
	})
	if err != nil {
		return fmt.Errorf("%w: %w", err, refused)
	}
	p.served.Store(url, true)
	return nil
}
