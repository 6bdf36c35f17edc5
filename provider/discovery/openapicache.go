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
	"crypto/sha256"
	"crypto/sha512"
	"encoding/json"
	"fmt"
	"net/url"
	"strings"

	"golang.org/x/sync/singleflight"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/clock"
	"k8s.io/utils/lru"

	"github.com/synchub-dev/synchub/apis/schemas/structural"
)

const openAPIPath = "/openapi/v3"

const (
	// maxDocuments are whole documents: those of which more than one kind is asked for at once. Larger ones than
	// documentLength are read each time.
	maxDocuments     = 6
	maxDocumentBytes = 4 << 20
	// maxResources are what was found in them, without the schemas, of which one can take megabytes.
	maxResources = 2048
	// maxConcurrentWork is how many schemas are made and compared at the same time, of all clusters: one can take a second of a
	// processor and 200 MB.
	maxConcurrentWork = 2
)

// OpenAPICache remember what OpenAPI documents say, by the hashes of the documents, so that a fleet of equal clusters is read
// once. A hash that a cluster names is believed only after the document was found to have it: no cluster can say what
// another one serves.
type OpenAPICache struct {
	documents, resources *lru.Cache
	inFlight             singleflight.Group
	semaphore            chan struct{}
	clock                clock.PassiveClock
}

// NewOpenAPICache returns a memory that knows nothing.
func NewOpenAPICache(clock clock.PassiveClock) *OpenAPICache {
	return &OpenAPICache{
		documents: lru.New(maxDocuments), resources: lru.New(maxResources), semaphore: make(chan struct{}, maxConcurrentWork), clock: clock,
	}
}

// openAPIResource is what a document says of a resource.
type openAPIResource struct {
	// key is empty if the resource is not in it.
	key string
	// fromCRD is true if it repeats a definition.
	fromCRD bool
	// schema is nil if no kind was asked for, and if the description was remembered.
	schema *apiextensionsv1.JSONSchemaProps
}

// getResource returns what the document behind a URL says of a resource, [ErrNotServed] if nothing. Without a kind it only
// reports whether it says something.
func (d *OpenAPICache) getResource(ctx context.Context, cluster *SchemaReader, link string, resource schema.GroupVersionResource, kind string) (openAPIResource, error) {
	hash := hashFromURL(link)
	name := fmt.Sprintf("%s/%s/%s", hash, resource.String(), kind)
	if found, ok := d.resources.Get(name); ok && hash != "" {
		return notServedIfEmpty(found.(openAPIResource))
	}
	document, hash, err := d.getDocument(ctx, cluster.clusterReader, hash, resource.GroupVersion())
	if err != nil {
		return openAPIResource{}, err
	}
	if !json.Valid(document) {
		// So it is for a moment when the last resource of a version goes.
		return openAPIResource{}, fmt.Errorf("the OpenAPI document of %s is no JSON", resource.GroupVersion())
	}
	found, err := cluster.parseResource(ctx, document, hash, resource, kind)
	if err != nil {
		return openAPIResource{}, asUnusable(err)
	}
	remembered := found
	remembered.schema = nil
	d.resources.Add(fmt.Sprintf("%s/%s/%s", hash, resource.String(), kind), remembered)
	return notServedIfEmpty(found)
}

// getSchema returns the schema that belongs to a description. One that was only remembered is read anew, and believed if the
// cluster still serves what the description is of.
func (d *OpenAPICache) getSchema(ctx context.Context, cluster *SchemaReader, link string, resource schema.GroupVersionResource, kind string, described openAPIResource) (*apiextensionsv1.JSONSchemaProps, error) {
	if described.schema != nil {
		return described.schema, nil
	}
	document, hash, err := d.getDocument(ctx, cluster.clusterReader, hashFromURL(link), resource.GroupVersion())
	if err != nil {
		return nil, err
	}
	found, err := cluster.parseResource(ctx, document, hash, resource, kind)
	switch {
	case err != nil:
		return nil, asUnusable(err)
	case found.key != described.key:
		return nil, fmt.Errorf("the OpenAPI document of %s is not the one that its hash is of", resource.GroupVersion())
	default:
		return found.schema, nil
	}
}

func notServedIfEmpty(found openAPIResource) (openAPIResource, error) {
	if found.key == "" {
		return found, ErrNotServed
	}
	return found, nil
}

// hashFromURL returns the hash that the URL of a document names.
func hashFromURL(link string) string {
	parsed, err := url.Parse(link)
	if err != nil {
		return ""
	}
	return parsed.Query().Get("hash")
}

// getDocument returns a document with a hash that is true.
func (d *OpenAPICache) getDocument(ctx context.Context, cluster clusterReader, hash string, version schema.GroupVersion) ([]byte, string, error) {
	if hash == "" {
		content, err := cluster.getOpenAPI(ctx, openAPIPath+apiPath(version))
		return content, contentHash(content), err
	}
	if known, ok := d.documents.Get(hash); ok {
		return known.([]byte), hash, nil
	}
	// Whoever fails fails for himself: those who waited ask their own clusters.
	loaded, err, shared := d.inFlight.Do(hash, func() (any, error) { return cluster.getOpenAPI(ctx, openAPIPath+apiPath(version)) })
	content, _ := loaded.([]byte)
	if shared && (err != nil || !hasHash(content, hash)) {
		content, err = cluster.getOpenAPI(ctx, openAPIPath+apiPath(version))
	}
	if err != nil {
		return nil, "", err
	}
	if !hasHash(content, hash) {
		return content, contentHash(content), nil
	}
	if len(content) <= maxDocumentBytes {
		d.documents.Add(hash, content)
	}
	return content, hash, nil
}

// hasHash reports whether a document has the hash that API servers give it.
func hasHash(content []byte, hash string) bool {
	return strings.EqualFold(fmt.Sprintf("%x", sha512.Sum512(content)), hash)
}

// contentHash is a hash that cannot be taken for that of an API server.
func contentHash(content []byte) string { return fmt.Sprintf("content-%x", sha256.Sum256(content)) }

// parseResource returns what a document says of a resource, when it is the look's turn.
func (l *SchemaReader) parseResource(ctx context.Context, document []byte, hash string, resource schema.GroupVersionResource, kind string) (found openAPIResource, err error) {
	err = l.RunLimited(ctx, func() error {
		found, err = parseResource(ctx, document, hash, resource, kind)
		return err
	})
	return found, err
}

// parseResource returns what a document says of a resource.
func parseResource(ctx context.Context, document []byte, hash string, resource schema.GroupVersionResource, kind string) (openAPIResource, error) {
	var parsed struct {
		Paths map[string]json.RawMessage `json:"paths"`
	}
	if err := json.Unmarshal(document, &parsed); err != nil {
		return openAPIResource{}, fmt.Errorf("reading the OpenAPI document of %s: %w", resource.GroupVersion(), err)
	}
	path := apiPath(resource.GroupVersion()) + "/"
	inNamespaces := path + "namespaces/{namespace}/"
	_, namespaced := parsed.Paths[inNamespaces+resource.Resource]
	_, ok := parsed.Paths[path+resource.Resource]
	if !ok && !namespaced {
		return openAPIResource{}, nil
	}
	found := openAPIResource{key: "document/" + hash + "/" + resource.String()}
	if kind == "" {
		return found, nil
	}
	if namespaced {
		path = inNamespaces
	}
	_, status := parsed.Paths[path+resource.Resource+"/{name}/status"]
	described := structural.Kind{
		GroupVersionKind: resource.GroupVersion().WithKind(kind), Plural: resource.Resource, Namespaced: namespaced, Status: status,
	}
	version, _, err := structural.Schema(ctx, document, described)
	if err != nil {
		return openAPIResource{}, err
	}
	found.schema = version.Schema.OpenAPIV3Schema
	found.fromCRD, err = structural.IsDefinition(document, described.GroupVersionKind)
	return found, err
}
