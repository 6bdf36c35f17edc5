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

package cli

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	apiversion "k8s.io/apimachinery/pkg/version"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/tools/pager"
	"sigs.k8s.io/controller-runtime/pkg/client"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/cmd/internal/initcommand"
	"github.com/synchub-dev/synchub/controllers/publishedresource"
)

// Reader reads objects of any kind from one cluster or workspace. Unlike the client of package provider/discovery, it
// needs all APIs at once, for the short names that kubectl accepts. client-go's cached discovery reads them with two
// requests. The operator who runs the plugin chose the server, so responses have no limit, as in kubectl.
type Reader struct {
	Config *rest.Config
	// Client reads and writes the types of [Scheme].
	Client client.WithWatch
	// Requests follows no redirects.
	Requests *http.Client
	Objects  dynamic.Interface
	// Metadata reads only labels and annotations.
	Metadata metadata.Interface
	APIs     discovery.CachedDiscoveryInterface
	Mapper   meta.RESTMapper
}

// NewReader returns a reader. It sends no requests.
func NewReader(config *rest.Config) (*Reader, error) {
	typed, err := ClientOf(config)
	if err != nil {
		return nil, err
	}
	requests, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, err
	}
	// Credentials are for this server only, so the client follows no redirects.
	requests.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	objects, err := dynamic.NewForConfigAndClient(config, requests)
	if err != nil {
		return nil, err
	}
	// Lists of all objects show none of them, so warnings about their kinds are not for the user.
	quiet := rest.CopyConfig(config)
	quiet.WarningHandler, quiet.WarningHandlerWithContext = rest.NoWarnings{}, nil
	metadataOnly, err := metadata.NewForConfigAndClient(quiet, requests)
	if err != nil {
		return nil, err
	}
	uncached, err := discovery.NewDiscoveryClientForConfigAndClient(config, requests)
	if err != nil {
		return nil, err
	}
	apis := memory.NewMemCacheClient(uncached)
	mapper := restmapper.NewShortcutExpander(restmapper.NewDeferredDiscoveryRESTMapper(apis), apis, nil)
	return &Reader{Config: config, Client: typed, Requests: requests, Objects: objects, Metadata: metadataOnly, APIs: apis, Mapper: mapper}, nil
}

// Find returns the resource for an argument that kubectl accepts, such as deploy or deployments.v1.apps.
func (r *Reader) Find(resource string) (schema.GroupVersionResource, error) {
	full, group := schema.ParseResourceArg(strings.ToLower(resource))
	if full != nil {
		if found, err := r.Mapper.ResourceFor(*full); err == nil {
			return found, nil
		}
	}
	return r.Mapper.ResourceFor(group.WithVersion(""))
}

// Served returns the served API of a resource, in the version that Kubernetes prefers, from the cached discovery. It
// returns nil if the resource is not served.
func (r *Reader) Served(resource schema.GroupResource) (*publishedresource.API, error) {
	_, lists, err := r.APIs.ServerGroupsAndResources()
	if err != nil && !discovery.IsGroupDiscoveryFailedError(err) {
		return nil, err
	}
	var api publishedresource.API
	status := map[string]bool{}
	for _, list := range lists {
		group, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil || group.Group != resource.Group {
			continue
		}
		for _, one := range list.APIResources {
			switch one.Name {
			case resource.Resource:
				api.Kind, api.Namespaced = one.Kind, one.Namespaced
				api.Versions = append(api.Versions, group.Version)
			case resource.Resource + "/status":
				status[group.Version] = true
			}
		}
	}
	if len(api.Versions) == 0 {
		return nil, nil
	}
	slices.SortFunc(api.Versions, func(a, b string) int { return apiversion.CompareKubeAwareVersionStrings(b, a) })
	api.GroupVersionResource = resource.WithVersion(api.Versions[0])
	api.StatusSubresource = status[api.Version]
	return &api, nil
}

// Serves reports whether the server serves a resource of the hub.
func (r *Reader) Serves(resource string) bool {
	_, err := r.Mapper.ResourceFor(edgev2alpha1.SchemeGroupVersion.WithResource(resource))
	return err == nil
}

// errNotServed means that the cluster does not serve the API.
var errNotServed = errors.New("it is not served there")

// Get returns an object, or nil if it does not exist.
func (r *Reader) Get(ctx context.Context, resource schema.GroupVersionResource, key types.NamespacedName) (*unstructured.Unstructured, error) {
	object, err := r.Objects.Resource(resource).Namespace(key.Namespace).Get(ctx, key.Name, metav1.GetOptions{})
	var status apierrors.APIStatus
	switch {
	case apierrors.IsNotFound(err) && errors.As(err, &status) && status.Status().Details != nil && status.Status().Details.Name != "":
		return nil, nil
	case apierrors.IsNotFound(err):
		return nil, fmt.Errorf("%s: %w", resource.GroupResource(), errNotServed)
	case err != nil:
		return nil, err
	default:
		return object, nil
	}
}

// EachMetadata calls a function for the metadata of each object of a resource.
func (r *Reader) EachMetadata(ctx context.Context, resource schema.GroupVersionResource, options metav1.ListOptions, call func(*metav1.PartialObjectMetadata) error) error {
	pages := pager.New(func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
		return r.Metadata.Resource(resource).List(ctx, options)
	})
	return pages.EachListItem(ctx, options, func(item runtime.Object) error { return call(item.(*metav1.PartialObjectMetadata)) })
}

// DefaultProvider is the provider workspace that init makes.
const DefaultProvider = initcommand.DefaultWorkspace

// InWorkspace returns a copy of a client configuration for another workspace of the same kcp.
func InWorkspace(config *rest.Config, workspace string) (*rest.Config, error) {
	config = rest.CopyConfig(config)
	server, err := url.Parse(config.Host)
	if err != nil {
		return nil, err
	}
	prefix, _, found := strings.Cut(server.Path, "/clusters/")
	if !found {
		return nil, fmt.Errorf("the current context is no workspace of kcp: its server %s has no /clusters/ in its path", config.Host)
	}
	server.Path = prefix + "/clusters/" + workspace
	config.Host = server.String()
	return config, nil
}

// NamespacesResource is the resource of namespaces.
var NamespacesResource = corev1.SchemeGroupVersion.WithResource("namespaces")
