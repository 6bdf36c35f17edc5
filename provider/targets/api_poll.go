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

package targets

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/synchub-dev/synchub/provider/requestclass"
)

const (
	// apiPollInterval is how often the hub requests the list of APIs from a target, while it waits for an API. A server
	// answers with 304 as long as the list is the same. There are no events for built-in and aggregated APIs.
	apiPollInterval = 20 * time.Second
	// maxDiscoveryBytes bounds the answer.
	maxDiscoveryBytes = 16 << 20
	// aggregatedDiscovery requests all groups and resources at once. Older servers answer with the groups and versions only.
	aggregatedDiscovery = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json;q=0.9"
)

// APIPoll polls the list of APIs of a target while a caller waits for an API.
type APIPoll struct {
	env        *environment
	client     *client
	health     *HealthMonitor
	discovered *discoveryCache
	listeners  *listeners

	lock    sync.Mutex
	waiters int
	cancel  context.CancelFunc
}

// apiList identifies an answer about the served APIs.
type apiList struct {
	etag string
	hash [sha256.Size]byte
}

// Await makes the hub observe which APIs the target serves, until the caller calls stop. [Listener.OnAPIs] is called when
// they changed.
func (p *APIPoll) Await() (stop func()) {
	p.lock.Lock()
	defer p.lock.Unlock()
	if p.waiters++; p.waiters == 1 {
		ctx, cancel := context.WithCancel(p.env.ctx)
		p.cancel = cancel
		p.env.runInBackground(func(context.Context) { p.run(ctx) })
	}
	return sync.OnceFunc(func() {
		p.lock.Lock()
		defer p.lock.Unlock()
		if p.waiters--; p.waiters == 0 {
			p.cancel()
		}
	})
}

// run calls the listeners after the first answer and after each change, until ctx ends.
func (p *APIPoll) run(ctx context.Context) {
	var known apiList
	for p.health.WaitUntilUp(ctx) == nil {
		// The probe reports errors.
		if listed, err := p.list(ctx, known); err == nil && listed != known {
			isOther := listed.hash != known.hash
			known = listed
			if isOther {
				p.discovered.reset()
				p.listeners.call(func(listener *Listener) func() { return listener.OnAPIs })
			}
		}
		if p.env.sleep(ctx, alignToProbes(p.env.clock.Now(), apiPollInterval)) != nil {
			return
		}
	}
}

// list requests which APIs the target serves. It returns known if the list has not changed.
func (p *APIPoll) list(ctx context.Context, known apiList) (apiList, error) {
	ctx, done := withTimeout(requestclass.With(ctx, requestclass.Background), requestTimeout)
	defer done()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, p.client.discovery.RESTClient().Get().AbsPath("/apis").URL().String(), nil)
	if err != nil {
		return apiList{}, err
	}
	request.Header.Set("Accept", aggregatedDiscovery)
	if known.etag != "" {
		request.Header.Set("If-None-Match", known.etag)
	}
	response, err := p.client.http.Do(request)
	if err != nil {
		return apiList{}, p.client.credentials.Error(err)
	}
	defer response.Body.Close() //nolint:errcheck // it was read
	switch response.StatusCode {
	case http.StatusNotModified:
		return known, nil
	case http.StatusOK:
	default:
		return apiList{}, fmt.Errorf("the target answered the request for its APIs with %d", response.StatusCode)
	}
	sum := sha256.New()
	size, err := io.Copy(sum, io.LimitReader(response.Body, maxDiscoveryBytes))
	if err != nil {
		return apiList{}, p.client.credentials.Error(err)
	}
	if size == maxDiscoveryBytes {
		return apiList{}, errors.New("the target's list of APIs is too long")
	}
	return apiList{response.Header.Get("ETag"), [sha256.Size]byte(sum.Sum(nil))}, nil
}
