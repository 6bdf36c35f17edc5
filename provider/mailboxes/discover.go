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

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"

	"github.com/synchub-dev/synchub/provider/metrics/requestmetrics"
)

// discoverTimeout is how long one endpoint may take before the next one is asked.
const discoverTimeout = 10 * time.Second

// ErrNotServed means that the virtual workspace does not serve an API, or not yet.
var ErrNotServed = errors.New("the virtual workspace of the mailbox export does not serve it")

// ErrNoEndpoint means that no endpoint is known that could be asked.
var ErrNoEndpoint = errors.New("no endpoint is known")

// Discover returns what the virtual workspace serves of an API, which is named by its resource (with a subresource, as
// in "widgets/status", if that is meant), by its kind, or by both. Without a version it is the preferred one of those
// that have it. What is served depends on the export alone, so the first endpoint that answers speaks for all.
// The error is [ErrNotServed] if there is no such API, and also [ErrNoEndpoint] while there is no endpoint that could tell.
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
	apis, err := discovery.NewDiscoveryClientForConfig(e.owner.kcpConfig.ConfigFor(e.url+"/clusters/*", requestmetrics.Mailbox))
	if err != nil {
		return metav1.APIResource{}, err
	}
	versions, err := versionsOf(ctx, apis.RESTClient(), group)
	if err != nil {
		return metav1.APIResource{}, err
	}
	for _, version := range versions {
		var list metav1.APIResourceList
		if err := discoverAt(ctx, apis.RESTClient(), apiPath(version), &list); err != nil {
			return metav1.APIResource{}, err
		}
		for _, found := range list.APIResources {
			if matchesAPI(found, resource, kind) {
				found.Group, found.Version = cmp.Or(found.Group, version.Group), cmp.Or(found.Version, version.Version)
				return found, nil
			}
		}
	}
	return metav1.APIResource{}, ErrNotServed
}

// matchesAPI reports whether a discovery entry has the resource name and the kind, as far as they are given. Subresources have
// the kind too.
func matchesAPI(entry metav1.APIResource, resource, kind string) bool {
	if resource == "" {
		return entry.Kind == kind && !strings.Contains(entry.Name, "/")
	}
	return entry.Name == resource && (kind == "" || entry.Kind == kind)
}

// versionsOf returns the versions of a group that may have the API, the preferred one first.
func versionsOf(ctx context.Context, client rest.Interface, group schema.GroupVersion) (versions []schema.GroupVersion, err error) {
	switch {
	case group.Version != "":
		return []schema.GroupVersion{group}, nil
	case group.Group == "":
		return []schema.GroupVersion{{Version: "v1"}}, nil
	}
	var found metav1.APIGroup
	if err := discoverAt(ctx, client, "/apis/"+group.Group, &found); err != nil {
		return nil, err
	}
	for _, version := range found.Versions {
		versions = append(versions, schema.GroupVersion{Group: group.Group, Version: version.Version})
	}
	return versions, nil
}

func apiPath(version schema.GroupVersion) string {
	if version.Group == "" {
		return "/api/" + version.Version
	}
	return "/apis/" + version.String()
}

// discoverAt reads a discovery document; it is absent if nothing is served there.
func discoverAt(ctx context.Context, client rest.Interface, path string, into runtime.Object) error {
	err := client.Get().AbsPath(path).Do(ctx).Into(into)
	if apierrors.IsNotFound(err) {
		return ErrNotServed
	}
	return err
}
