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

package discovery

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/synchub-dev/synchub/apis/schemas/structural"
	synchubv1alpha1 "github.com/synchub-dev/synchub/apis/synchub/v1alpha1"
)

// requiredVerbs are the verbs without which nothing of a resource can be kept in sync.
var requiredVerbs = []string{"get", "list", "watch"}

// discover returns what the cluster says of a resource, one entry for each version in which it is served or for the one
// asked for, as the cluster prefers them. There is at least one, or an error.
func (r clusterReader) discover(ctx context.Context, resource synchubv1alpha1.ResourceDescriptor) ([]structural.Kind, error) {
	versions, err := r.listVersions(ctx, resource)
	if err != nil {
		return nil, err
	}
	var kinds []structural.Kind
	for _, version := range versions {
		kind, err := r.discoverVersion(ctx, schema.GroupVersion{Group: resource.Group, Version: version}, resource)
		if err != nil {
			return nil, err
		}
		if kind != nil {
			kinds = append(kinds, *kind)
		}
	}
	if len(kinds) == 0 {
		return nil, ErrNotServed
	}
	return kinds, nil
}

// maxVersions is how many versions of a group are read. Each costs requests.
const maxVersions = 32

func (r clusterReader) listVersions(ctx context.Context, resource synchubv1alpha1.ResourceDescriptor) (names []string, err error) {
	if resource.Version != "" {
		return []string{resource.Version}, nil
	}
	if resource.Group == "" {
		var versions metav1.APIVersions
		err := r.getJSON(ctx, &versions, "/api")
		return versions.Versions[:min(len(versions.Versions), maxVersions)], notServed(err)
	}
	var group metav1.APIGroup
	if err := r.getJSON(ctx, &group, "/apis", resource.Group); err != nil {
		return nil, notServed(err)
	}
	if many := len(group.Versions); many > maxVersions {
		return nil, newUnusableError("the cluster serves its group in %d versions, of which at most %d are read: name the version", many, maxVersions)
	}
	for _, version := range group.Versions {
		names = append(names, version.Version)
	}
	return names, nil
}

// notServed turns the answer that there is no such path into what it means.
func notServed(err error) error {
	if apierrors.IsNotFound(err) {
		return ErrNotServed
	}
	return err
}

// discoverVersion returns nil if one version of the group does not have the resource.
func (r clusterReader) discoverVersion(ctx context.Context, version schema.GroupVersion, resource synchubv1alpha1.ResourceDescriptor) (*structural.Kind, error) {
	var list metav1.APIResourceList
	if err := r.getJSON(ctx, &list, apiPath(version)); err != nil {
		if apierrors.IsNotFound(err) {
			return nil, nil //nolint:nilnil // a version that is just going away is one without the resource
		}
		return nil, err
	}
	found := slices.IndexFunc(list.APIResources, func(candidate metav1.APIResource) bool {
		return !strings.Contains(candidate.Name, "/") &&
			(resource.Resource == "" || resource.Resource == candidate.Name) && (resource.Kind == "" || resource.Kind == candidate.Kind)
	})
	if found < 0 {
		return nil, nil //nolint:nilnil // see above
	}
	served := list.APIResources[found]
	for _, verb := range requiredVerbs {
		if !slices.Contains(served.Verbs, verb) {
			return nil, newUnusableError("it cannot be kept in sync, because the cluster serves it without %s", verb)
		}
	}
	has := func(subresource string) bool {
		return slices.ContainsFunc(list.APIResources, func(candidate metav1.APIResource) bool { return candidate.Name == served.Name+"/"+subresource })
	}
	return &structural.Kind{
		GroupVersionKind: version.WithKind(served.Kind),
		Plural:           served.Name,
		Singular:         cmp.Or(served.SingularName, strings.ToLower(served.Kind)),
		ShortNames:       served.ShortNames,
		Categories:       served.Categories,
		Namespaced:       served.Namespaced,
		Status:           has("status"),
		Scale:            has("scale"),
	}, nil
}

// apiPath returns where a cluster serves a group and version.
func apiPath(version schema.GroupVersion) string {
	if version.Group == "" {
		return "/api/" + version.Version
	}
	return fmt.Sprintf("/apis/%s/%s", version.Group, version.Version)
}
