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

// apiPoll polls the list of APIs of a target while a caller waits for an API.
type apiPoll struct {
	lock    sync.Mutex
	waiters int
	cancel  context.CancelFunc
}

// apiList identifies an answer about the served APIs.
type apiList struct {
	etag string
	hash [sha256.Size]byte
}

// AwaitAPI makes the hub observe which APIs the target serves, until the caller calls stop. [Listener.OnAPIs] is called when
// they changed.
func (c *Connection) AwaitAPI() (stop func()) {
	c.apiPoll.lock.Lock()
	defer c.apiPoll.lock.Unlock()
	if c.apiPoll.waiters++; c.apiPoll.waiters == 1 {
		ctx, cancel := context.WithCancel(c.ctx)
		c.apiPoll.cancel = cancel
		c.RunInBackground(func(context.Context) { c.pollAPIs(ctx) })
	}
	return sync.OnceFunc(func() {
		c.apiPoll.lock.Lock()
		defer c.apiPoll.lock.Unlock()
		if c.apiPoll.waiters--; c.apiPoll.waiters == 0 {
			c.apiPoll.cancel()
		}
	})
}

// pollAPIs calls the listeners after the first answer and after each change, until ctx ends.
func (c *Connection) pollAPIs(ctx context.Context) {
	var known apiList
	for c.WaitUntilUp(ctx) == nil {
		// The probe reports errors.
		if listed, err := c.listAPIs(ctx, known); err == nil && listed != known {
			isOther := listed.hash != known.hash
			known = listed
			if isOther {
				c.discoveryCache.reset()
				c.notifier.notify(func(listener *Listener) {
					if listener.OnAPIs != nil {
						listener.OnAPIs()
					}
				})
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-c.clock.After(alignToProbes(c.clock.Now(), apiPollInterval)):
		}
	}
}

// listAPIs requests which APIs the target serves. It returns known if the list has not changed.
func (c *Connection) listAPIs(ctx context.Context, known apiList) (apiList, error) {
	ctx, done := withTimeout(requestclass.With(ctx, requestclass.Background), requestTimeout)
	defer done()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, c.discovery.RESTClient().Get().AbsPath("/apis").URL().String(), nil)
	if err != nil {
		return apiList{}, err
	}
	request.Header.Set("Accept", aggregatedDiscovery)
	if known.etag != "" {
		request.Header.Set("If-None-Match", known.etag)
	}
	response, err := c.http.Do(request)
	if err != nil {
		return apiList{}, c.credentials.Error(err)
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
		return apiList{}, c.credentials.Error(err)
	}
	if size == maxDiscoveryBytes {
		return apiList{}, errors.New("the target's list of APIs is too long")
	}
	return apiList{response.Header.Get("ETag"), [sha256.Size]byte(sum.Sum(nil))}, nil
}
