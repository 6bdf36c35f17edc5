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
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/kcp-dev/logicalcluster/v3"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/synchub-dev/synchub/provider/discovery"
	"github.com/synchub-dev/synchub/provider/metrics/requestmetrics"
)

// discoverTimeout is how long one endpoint may take before the next one is tried.
const discoverTimeout = 10 * time.Second

// ErrNotServed means that the virtual workspace does not serve an API, or not yet.
var ErrNotServed = errors.New("the virtual workspace of the mailbox export does not serve it")

// ErrNoEndpoint means that there is no endpoint to send a request to.
var ErrNoEndpoint = errors.New("no endpoint is known")

// Discover returns the discovery entry of an API, by its resource (such as "widgets" or "widgets/status"), its kind, or both.
// Without a version it returns the entry of the first version, in the server's order of preference, that has the API. All
// endpoints serve the same APIs, so the first answer counts. The error is [ErrNotServed] if there is no such API, and also
// [ErrNoEndpoint] while there is no endpoint to send a request to.
func (m *Mailboxes) Discover(ctx context.Context, group schema.GroupVersion, resource, kind string) (metav1.APIResource, error) {
	var errs []error
	for _, endpoint := range m.endpointsByRank() {
		found, err := endpoint.discover(ctx, group, resource, kind)
		if err == nil || errors.Is(err, ErrNotServed) {
			return found, err
		}
		errs = append(errs, fmt.Errorf("cannot discover the API at the endpoint %s: %w", endpoint.url, err))
	}
	if len(errs) == 0 {
		return metav1.APIResource{}, fmt.Errorf("%w: %w", ErrNoEndpoint, ErrNotServed)
	}
	return metav1.APIResource{}, errors.Join(errs...)
}

// endpointsByRank returns all endpoints, those that answered last time first.
func (m *Mailboxes) endpointsByRank() []*endpoint {
	m.lock.RLock()
	defer m.lock.RUnlock()
	return slices.SortedFunc(maps.Values(m.endpoints), func(a, b *endpoint) int {
		return cmp.Or(cmp.Compare(a.rank(), b.rank()), cmp.Compare(a.url, b.url))
	})
}

// rank is lower for an endpoint that is likelier to answer.
func (e *endpoint) rank() int {
	switch {
	case e.unresponsive.Load():
		return 2
	case !e.hasSyncedBindings():
		return 1
	default:
		return 0
	}
}

func (e *endpoint) discover(ctx context.Context, group schema.GroupVersion, resource, kind string) (metav1.APIResource, error) {
	ctx, cancel := context.WithTimeout(ctx, discoverTimeout)
	defer cancel()
	client, err := discovery.NewClient(e.owner.kcpConfig.ConfigFor(e.url+"/clusters/"+logicalcluster.Wildcard.String(), requestmetrics.Mailbox), nil)
	if err != nil {
		return metav1.APIResource{}, err
	}
	found, err := client.FindResource(ctx, group, func(entry metav1.APIResource) bool { return matchesAPI(entry, resource, kind) })
	if errors.Is(err, discovery.ErrNotServed) {
		return metav1.APIResource{}, ErrNotServed
	}
	return found, err
}

// matchesAPI reports whether a discovery entry has the resource name and the kind, as far as they are given. Subresources have
// the kind too.
func matchesAPI(entry metav1.APIResource, resource, kind string) bool {
	if resource == "" {
		return entry.Kind == kind && !strings.Contains(entry.Name, "/")
	}
	return entry.Name == resource && (kind == "" || entry.Kind == kind)
}
