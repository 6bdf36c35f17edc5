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

	"github.com/synchub-dev/synchub/provider/schemas/structural"
)

const (
	// maxDocuments is the maximum number of cached documents. They help if several kinds of a document are read at once. A
	// document of more than maxDocumentBytes is not cached.
	maxDocuments     = 6
	maxDocumentBytes = 4 << 20
	// maxResources is the maximum number of cached resources. They are cached without their schemas, which can take
	// megabytes each.
	maxResources = 2048
	// maxConcurrentWork is the maximum number of schemas of all clusters that are built and compared at the same time. One
	// schema can take a second of a processor and 200 MB.
	maxConcurrentWork = 2
)

// OpenAPICache caches the content of OpenAPI documents, by the hashes of the documents, so that many equal clusters are read
// once. A cluster reports the hash of each of its documents. The cache uses a reported hash only after it has verified that a
// document has the hash. Therefore no cluster can change the hub's schemas of another one.
type OpenAPICache struct {
	documents, resources *lru.Cache
	inFlight             singleflight.Group
	semaphore            chan struct{}
	clock                clock.PassiveClock
}

// NewOpenAPICache returns an empty cache.
func NewOpenAPICache(clock clock.PassiveClock) *OpenAPICache {
	return &OpenAPICache{
		documents: lru.New(maxDocuments), resources: lru.New(maxResources), semaphore: make(chan struct{}, maxConcurrentWork), clock: clock,
	}
}

// openAPIResource describes a resource of a document.
type openAPIResource struct {
	// key identifies the document and the resource. It is empty if the document does not contain the resource.
	key string
	// fromCRD is true if the document repeats a CRD.
	fromCRD bool
	// schema is nil if no kind was given, and in a cached openAPIResource.
	schema *apiextensionsv1.JSONSchemaProps
}

func resourceKey(hash string, resource schema.GroupVersionResource, kind string) string {
	return fmt.Sprintf("%s/%s/%s", hash, resource.String(), kind)
}

func notServedIfEmpty(resource openAPIResource) (openAPIResource, error) {
	if resource.key == "" {
		return resource, ErrNotServed
	}
	return resource, nil
}

// hashFromURL returns the hash in the URL of a document, or "" if there is none.
func hashFromURL(link string) string {
	parsed, err := url.Parse(link)
	if err != nil {
		return ""
	}
	return parsed.Query().Get("hash")
}

// getDocument returns a document and its verified hash.
func (d *OpenAPICache) getDocument(ctx context.Context, client *Client, hash string, version schema.GroupVersion) ([]byte, string, error) {
	if hash == "" {
		document, err := client.getOpenAPI(ctx, version)
		return document, contentHash(document), err
	}
	if cached, ok := d.documents.Get(hash); ok {
		return cached.([]byte), hash, nil
	}
	// A failure, or a wrong document, of one cluster does not affect the other clusters: each then reads its own document.
	loaded, err, shared := d.inFlight.Do(hash, func() (any, error) { return client.getOpenAPI(ctx, version) })
	document, _ := loaded.([]byte)
	if shared && (err != nil || !hasHash(document, hash)) {
		document, err = client.getOpenAPI(ctx, version)
	}
	if err != nil {
		return nil, "", err
	}
	if !hasHash(document, hash) {
		return document, contentHash(document), nil
	}
	if len(document) <= maxDocumentBytes {
		d.documents.Add(hash, document)
	}
	return document, hash, nil
}

// hasHash reports whether a document has the hash that API servers give it.
func hasHash(document []byte, hash string) bool {
	return strings.EqualFold(fmt.Sprintf("%x", sha512.Sum512(document)), hash)
}

// contentHash returns a hash that differs from every hash of an API server.
func contentHash(document []byte) string { return fmt.Sprintf("content-%x", sha256.Sum256(document)) }

// parseResource returns a resource of a document. With a kind, the result has the schema.
func parseResource(ctx context.Context, document []byte, hash string, resource schema.GroupVersionResource, kind string) (openAPIResource, error) {
	var paths struct {
		Paths map[string]json.RawMessage `json:"paths"`
	}
	if err := json.Unmarshal(document, &paths); err != nil {
		return openAPIResource{}, fmt.Errorf("reading the OpenAPI document of %s: %w", resource.GroupVersion(), err)
	}
	path := apiPath(resource.GroupVersion()) + "/"
	inNamespaces := path + "namespaces/{namespace}/"
	_, namespaced := paths.Paths[inNamespaces+resource.Resource]
	_, ok := paths.Paths[path+resource.Resource]
	if !ok && !namespaced {
		return openAPIResource{}, nil
	}
	parsed := openAPIResource{key: "document/" + hash + "/" + resource.String()}
	if kind == "" {
		return parsed, nil
	}
	if namespaced {
		path = inNamespaces
	}
	_, status := paths.Paths[path+resource.Resource+"/{name}/status"]
	described := structural.Kind{
		GroupVersionKind: resource.GroupVersion().WithKind(kind), Plural: resource.Resource, Namespaced: namespaced, Status: status,
	}
	version, _, err := structural.Schema(ctx, document, described)
	if err != nil {
		return openAPIResource{}, err
	}
	parsed.schema = version.Schema.OpenAPIV3Schema
	parsed.fromCRD, err = structural.IsDefinition(document, described.GroupVersionKind)
	return parsed, err
}
