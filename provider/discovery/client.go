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
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/validate/content"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"

	"github.com/synchub-dev/synchub/provider/schemas/structural"
)

// ErrNotServed is returned for a group, version, resource or kind that the server does not serve. The server may serve it
// later.
var ErrNotServed = errors.New("the cluster does not serve it")

// maxVersions is the maximum number of versions of a group that a client reads. Each costs a request.
const maxVersions = 32

const (
	crdsPath    = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
	openAPIPath = "/openapi/v3"
)

// Client requests the served APIs and their definitions from one server. It bounds the size and depth of every response before it
// decodes the response. client-go's discovery client does not, takes no context, and reads all groups to find one.
type Client struct{ server rest.Interface }

// NewClient returns a client that sends its requests through httpClient, or through one that it makes if httpClient is
// nil.
func NewClient(config *rest.Config, httpClient *http.Client) (*Client, error) {
	if httpClient == nil {
		client, err := discovery.NewDiscoveryClientForConfig(config)
		if err != nil {
			return nil, err
		}
		return &Client{client.RESTClient()}, nil
	}
	client, err := discovery.NewDiscoveryClientForConfigAndClient(config, httpClient)
	if err != nil {
		return nil, err
	}
	return &Client{client.RESTClient()}, nil
}

// RESTClient returns the client for requests that are not about APIs, such as probes. It does not bound responses.
func (c *Client) RESTClient() rest.Interface { return c.server }

// Versions returns the versions in which the server serves a group, the preferred one first. It returns at most 32 of
// them, and [ErrNotServed] if the server does not serve the group. The core group is always served in v1.
func (c *Client) Versions(ctx context.Context, group string) ([]string, error) {
	versions, err := c.allVersions(ctx, group)
	return versions[:min(len(versions), maxVersions)], err
}

// allVersions returns the versions of a group without the limit of Versions. It leaves out versions with invalid names.
func (c *Client) allVersions(ctx context.Context, group string) ([]string, error) {
	if group == "" {
		return []string{"v1"}, nil
	}
	if !isPathSegment(group) {
		return nil, ErrNotServed
	}
	var found metav1.APIGroup
	if err := c.getObject(ctx, &found, &found.TypeMeta, "APIGroup", "/apis/"+group); err != nil {
		return nil, asNotServed(err)
	}
	seen := map[string]bool{}
	var versions []string
	for _, version := range append([]metav1.GroupVersionForDiscovery{found.PreferredVersion}, found.Versions...) {
		if name := version.Version; IsAPIName(name) && !seen[name] {
			seen[name] = true
			versions = append(versions, name)
		}
	}
	return versions, nil
}

// Resources returns the resources and subresources that the server serves in a group and version, or [ErrNotServed].
func (c *Client) Resources(ctx context.Context, version schema.GroupVersion) ([]metav1.APIResource, error) {
	// Users write groups and versions, which must not lead to another path.
	if version.Group != "" && !isPathSegment(version.Group) || !isPathSegment(version.Version) {
		return nil, ErrNotServed
	}
	var list metav1.APIResourceList
	if err := c.getObject(ctx, &list, &list.TypeMeta, "APIResourceList", apiPath(version)); err != nil {
		return nil, asNotServed(err)
	}
	return list.APIResources, nil
}

// FindResource returns the first resource of a group that matches, with the group and version in which it is served. If
// version has only a group, FindResource searches all versions, in the order of Versions. The error is [ErrNotServed] if
// no resource matches.
func (c *Client) FindResource(ctx context.Context, version schema.GroupVersion, matches func(metav1.APIResource) bool) (metav1.APIResource, error) {
	versions := []string{version.Version}
	if version.Version == "" {
		var err error
		if versions, err = c.Versions(ctx, version.Group); err != nil {
			return metav1.APIResource{}, err
		}
	}
	for _, name := range versions {
		served := schema.GroupVersion{Group: version.Group, Version: name}
		resources, err := c.Resources(ctx, served)
		// A version that the server has just stopped to serve has no resources.
		if err != nil && !errors.Is(err, ErrNotServed) {
			return metav1.APIResource{}, err
		}
		if i := slices.IndexFunc(resources, matches); i >= 0 {
			found := resources[i]
			found.Group, found.Version = served.Group, served.Version
			return found, nil
		}
	}
	return metav1.APIResource{}, ErrNotServed
}

// GetCRD returns a CRD by its name. The errors of the server are API status errors.
func (c *Client) GetCRD(ctx context.Context, name string) (*apiextensionsv1.CustomResourceDefinition, error) {
	crd := &apiextensionsv1.CustomResourceDefinition{}
	return crd, c.getObject(ctx, crd, &crd.TypeMeta, crdTypeMeta.Kind, crdsPath, name)
}

// getOpenAPI returns the OpenAPI document of a group and version.
func (c *Client) getOpenAPI(ctx context.Context, version schema.GroupVersion) ([]byte, error) {
	return c.get(ctx, structural.DocumentBytes, openAPIPath+apiPath(version))
}

// getOpenAPIURLs returns the URLs of the server's OpenAPI documents, by the paths of the groups and versions.
func (c *Client) getOpenAPIURLs(ctx context.Context) (map[string]string, error) {
	var index struct {
		Paths map[string]struct {
			URL string `json:"serverRelativeURL"`
		} `json:"paths"`
	}
	if err := c.getJSON(ctx, &index, openAPIPath); err != nil {
		return nil, err
	}
	urls := make(map[string]string, len(index.Paths))
	for path, document := range index.Paths {
		urls["/"+path] = document.URL
	}
	return urls, nil
}

// getObject decodes a response, and returns an error if the response is of another kind. A proxy may answer for the
// server.
func (c *Client) getObject(ctx context.Context, into any, meta *metav1.TypeMeta, kind string, path ...string) error {
	if err := c.getJSON(ctx, into, path...); err != nil {
		return err
	}
	if meta.Kind != kind {
		return fmt.Errorf("the response from %v is not of the kind %s", path, kind)
	}
	return nil
}

func (c *Client) getJSON(ctx context.Context, into any, path ...string) error {
	body, err := c.get(ctx, structural.DefinitionBytes, path...)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(body, into); err != nil {
		return fmt.Errorf("decoding the response from %v: %w", path, err)
	}
	return nil
}

// get returns the body of a successful response of at most limit bytes. The error is a [*structural.TooLargeError] if the
// body is larger, or nested too deeply to be decoded. For any other status code the error is an API status error.
func (c *Client) get(ctx context.Context, limit int, path ...string) (_ []byte, err error) {
	stream, err := c.server.Get().AbsPath(path...).SetHeader("Accept", "application/json").Stream(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, stream.Close()) }()
	body, err := io.ReadAll(io.LimitReader(stream, int64(limit)+1))
	if err != nil {
		return nil, err
	}
	return body, structural.CheckJSON(body, limit)
}

// asNotServed returns [ErrNotServed] for the error of a path that does not exist, and other errors unchanged.
func asNotServed(err error) error {
	if apierrors.IsNotFound(err) {
		return ErrNotServed
	}
	return err
}

// IsAPIName reports whether a text is a valid name of a resource or version, or of a kind in lower case.
func IsAPIName(text string) bool { return len(validation.IsDNS1035Label(text)) == 0 }

func isPathSegment(text string) bool { return text != "" && len(content.IsPathSegmentName(text)) == 0 }

// apiPath returns the path at which servers serve a group and version.
func apiPath(version schema.GroupVersion) string {
	if version.Group == "" {
		return "/api/" + version.Version
	}
	return "/apis/" + version.String()
}
