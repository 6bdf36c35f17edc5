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

package definitions

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
	// documentsKept are whole documents: those of which more than one kind is asked for at once. Larger ones than
	// documentLength are read each time.
	documentsKept  = 6
	documentLength = 4 << 20
	// descriptionsKept are what was found in them, without the schemas, of which one can take megabytes.
	descriptionsKept = 2048
	// workTogether is how many schemas are made and compared at the same time, of all clusters: one can take a second of a
	// processor and 200 MB.
	workTogether = 2
)

// Documents remember what OpenAPI documents say, by the hashes of the documents, so that a fleet of equal clusters is read
// once. A hash that a cluster names is believed only after the document was found to have it: no cluster can say what
// another one serves.
type Documents struct {
	documents, descriptions *lru.Cache
	flights                 singleflight.Group
	turns                   chan struct{}
	clock                   clock.PassiveClock
}

// NewDocuments returns a memory that knows nothing.
func NewDocuments(clock clock.PassiveClock) *Documents {
	return &Documents{
		documents: lru.New(documentsKept), descriptions: lru.New(descriptionsKept), turns: make(chan struct{}, workTogether), clock: clock,
	}
}

// description is what a document says of a resource.
type description struct {
	// key is empty if the resource is not in it.
	key string
	// defined is true if it repeats a definition.
	defined bool
	// schema is nil if no kind was asked for, and if the description was remembered.
	schema *apiextensionsv1.JSONSchemaProps
}

// description returns what the document behind a URL says of a resource, [ErrNotServed] if nothing. Without a kind it only
// tells whether it says something.
func (d *Documents) description(ctx context.Context, cluster *Look, link string, resource schema.GroupVersionResource, kind string) (description, error) {
	hash := hashIn(link)
	name := fmt.Sprintf("%s/%s/%s", hash, resource.String(), kind)
	if found, ok := d.descriptions.Get(name); ok && hash != "" {
		return orNotServed(found.(description))
	}
	document, hash, err := d.document(ctx, cluster.reader, hash, resource.GroupVersion())
	if err != nil {
		return description{}, err
	}
	if !json.Valid(document) {
		// So it is for a moment when the last resource of a version goes.
		return description{}, fmt.Errorf("the OpenAPI document of %s is no JSON", resource.GroupVersion())
	}
	found, err := cluster.describeIn(ctx, document, hash, resource, kind)
	if err != nil {
		return description{}, refused(err)
	}
	remembered := found
	remembered.schema = nil
	d.descriptions.Add(fmt.Sprintf("%s/%s/%s", hash, resource.String(), kind), remembered)
	return orNotServed(found)
}

// schema returns the schema that belongs to a description. One that was only remembered is read anew, and believed if the
// cluster still serves what the description is of.
func (d *Documents) schema(ctx context.Context, cluster *Look, link string, resource schema.GroupVersionResource, kind string, described description) (*apiextensionsv1.JSONSchemaProps, error) {
	if described.schema != nil {
		return described.schema, nil
	}
	document, hash, err := d.document(ctx, cluster.reader, hashIn(link), resource.GroupVersion())
	if err != nil {
		return nil, err
	}
	found, err := cluster.describeIn(ctx, document, hash, resource, kind)
	switch {
	case err != nil:
		return nil, refused(err)
	case found.key != described.key:
		return nil, fmt.Errorf("the OpenAPI document of %s is not the one that its hash is of", resource.GroupVersion())
	default:
		return found.schema, nil
	}
}

func orNotServed(found description) (description, error) {
	if found.key == "" {
		return found, ErrNotServed
	}
	return found, nil
}

// hashIn returns the hash that the URL of a document names.
func hashIn(link string) string {
	parsed, err := url.Parse(link)
	if err != nil {
		return ""
	}
	return parsed.Query().Get("hash")
}

// document returns a document with a hash that is true.
func (d *Documents) document(ctx context.Context, cluster reader, hash string, version schema.GroupVersion) ([]byte, string, error) {
	if hash == "" {
		content, err := cluster.document(ctx, openAPIPath+pathOf(version))
		return content, own(content), err
	}
	if known, ok := d.documents.Get(hash); ok {
		return known.([]byte), hash, nil
	}
	// Whoever fails fails for himself: those who waited ask their own clusters.
	loaded, err, shared := d.flights.Do(hash, func() (any, error) { return cluster.document(ctx, openAPIPath+pathOf(version)) })
	content, _ := loaded.([]byte)
	if shared && (err != nil || !has(content, hash)) {
		content, err = cluster.document(ctx, openAPIPath+pathOf(version))
	}
	if err != nil {
		return nil, "", err
	}
	if !has(content, hash) {
		return content, own(content), nil
	}
	if len(content) <= documentLength {
		d.documents.Add(hash, content)
	}
	return content, hash, nil
}

// has tells whether a document has the hash that API servers give it.
func has(content []byte, hash string) bool {
	return strings.EqualFold(fmt.Sprintf("%x", sha512.Sum512(content)), hash)
}

// own is a hash that cannot be taken for that of an API server.
func own(content []byte) string { return fmt.Sprintf("content-%x", sha256.Sum256(content)) }

// describeIn returns what a document says of a resource, when it is the look's turn.
func (l *Look) describeIn(ctx context.Context, document []byte, hash string, resource schema.GroupVersionResource, kind string) (found description, err error) {
	err = l.Work(ctx, func() error {
		found, err = describeIn(ctx, document, hash, resource, kind)
		return err
	})
	return found, err
}

// describeIn returns what a document says of a resource.
func describeIn(ctx context.Context, document []byte, hash string, resource schema.GroupVersionResource, kind string) (description, error) {
	var parsed struct {
		Paths map[string]json.RawMessage `json:"paths"`
	}
	if err := json.Unmarshal(document, &parsed); err != nil {
		return description{}, fmt.Errorf("reading the OpenAPI document of %s: %w", resource.GroupVersion(), err)
	}
	path := pathOf(resource.GroupVersion()) + "/"
	inNamespaces := path + "namespaces/{namespace}/"
	_, namespaced := parsed.Paths[inNamespaces+resource.Resource]
	_, ok := parsed.Paths[path+resource.Resource]
	if !ok && !namespaced {
		return description{}, nil
	}
	found := description{key: "document/" + hash + "/" + resource.String()}
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
		return description{}, err
	}
	found.schema = version.Schema.OpenAPIV3Schema
	found.defined, err = structural.IsDefinition(document, described.GroupVersionKind)
	return found, err
}
