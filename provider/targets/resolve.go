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
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/validate/content"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/synchub-dev/synchub/provider/requests"
)

// ErrNotServed means that the target has no such API now.
var ErrNotServed = errors.New("the target does not serve this kind")

// resolutions remember what kinds are called as resources. It is emptied by everything that may change that, and otherwise
// after recheckInterval, since aggregated APIs change without a signal.
type resolutions struct {
	listen sync.Once

	lock  sync.Mutex
	known map[schema.GroupVersionKind]resolution
	// drops counts how often known was emptied: what was asked for before is not to be remembered after.
	drops int
}

type resolution struct {
	resource   schema.GroupVersionResource
	namespaced bool
	until      time.Time
}

// Resolve returns the resource of a kind, and whether its objects are in namespaces. Without a version it takes the one
// that the target prefers among those with the kind. The error wraps [ErrNotServed] if there is none.
func (c *Connection) Resolve(ctx context.Context, kind schema.GroupVersionKind) (resource schema.GroupVersionResource, namespaced bool, err error) {
	c.resolutions.listen.Do(func() {
		c.Subscribe(Listener{CRD: func(schema.GroupResource) { c.resolutions.drop() }, Synced: c.resolutions.drop})
	})
	now := c.clock.Now()
	found, drops, ok := c.resolutions.get(kind)
	if ok && now.Before(found.until) {
		return found.resource, found.namespaced, nil
	}
	ctx, cancel := context.WithTimeout(requests.As(ctx, requests.Background), requestTimeout)
	defer cancel()
	found, err = c.discover(ctx, kind)
	if err != nil {
		return schema.GroupVersionResource{}, false, fmt.Errorf("cannot resolve %s: %w", kind, err)
	}
	found.until = now.Add(recheckInterval)
	c.resolutions.put(kind, found, drops)
	return found.resource, found.namespaced, nil
}

// discover looks for the kind in its version, or in all versions of its group.
func (c *Connection) discover(ctx context.Context, kind schema.GroupVersionKind) (resolution, error) {
	versions := []string{kind.Version}
	if kind.Version == "" {
		var err error
		if versions, err = c.versionsOf(ctx, kind.Group); err != nil {
			return resolution{}, err
		}
	}
	for _, version := range versions {
		served := schema.GroupVersion{Group: kind.Group, Version: version}
		var list metav1.APIResourceList
		if err := c.ask(ctx, &list, served.Group, served.Version); err != nil {
			return resolution{}, err
		}
		for _, resource := range list.APIResources {
			if resource.Kind == kind.Kind && !strings.Contains(resource.Name, "/") {
				return resolution{resource: served.WithResource(resource.Name), namespaced: resource.Namespaced}, nil
			}
		}
	}
	return resolution{}, ErrNotServed
}

// versionsOf returns the versions of a group, the preferred one first.
func (c *Connection) versionsOf(ctx context.Context, group string) ([]string, error) {
	if group == "" {
		return []string{"v1"}, nil
	}
	var found metav1.APIGroup
	if err := c.ask(ctx, &found, group); err != nil {
		return nil, err
	}
	versions := []string{found.PreferredVersion.Version}
	for _, version := range found.Versions {
		if version.Version != found.PreferredVersion.Version {
			versions = append(versions, version.Version)
		}
	}
	return versions, nil
}

// ask gets a document of discovery.
func (c *Connection) ask(ctx context.Context, into runtime.Object, group string, more ...string) error {
	segments := append([]string{"apis", group}, more...)
	if group == "" {
		segments = append([]string{"api"}, more...)
	}
	for _, segment := range segments {
		// These are from users: none of them may lead to another path.
		if segment == "" || len(content.IsPathSegmentName(segment)) > 0 {
			return ErrNotServed
		}
	}
	err := c.discovery.RESTClient().Get().AbsPath(segments...).Do(ctx).Into(into)
	if apierrors.IsNotFound(err) {
		return fmt.Errorf("%w: %w", ErrNotServed, err)
	}
	return err
}

func (r *resolutions) get(kind schema.GroupVersionKind) (found resolution, drops int, ok bool) {
	r.lock.Lock()
	defer r.lock.Unlock()
	found, ok = r.known[kind]
	return found, r.drops, ok
}

func (r *resolutions) put(kind schema.GroupVersionKind, found resolution, drops int) {
	r.lock.Lock()
	defer r.lock.Unlock()
	if r.drops != drops {
		return
	}
	if r.known == nil {
		r.known = map[schema.GroupVersionKind]resolution{}
	}
	r.known[kind] = found
}

func (r *resolutions) drop() {
	r.lock.Lock()
	defer r.lock.Unlock()
	clear(r.known)
	r.drops++
}
