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
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	synchubv1alpha1 "github.com/synchub-dev/synchub/apis/synchub/v1alpha1"
	"github.com/synchub-dev/synchub/provider/schemas/structural"
)

// ServedSchema identifies the schema with which a cluster serves one version of a resource.
type ServedSchema struct {
	// Key is the same for equal schemas of all clusters.
	Key string
	// BuiltIn is true for a kind that is compiled into the server, and false for a kind with a CRD.
	BuiltIn bool
	// Schema builds the schema that mailboxes would have. Callers call it only for a new Key. It returns the same errors as
	// [SchemaReader.ServedSchema].
	Schema func(context.Context) (*apiextensionsv1.JSONSchemaProps, error)
}

// VersionNotServedError is returned for a resource that the cluster serves only in other versions.
type VersionNotServedError struct{ Versions []string }

func (e *VersionNotServedError) Error() string {
	return "the cluster serves it in " + strings.Join(e.Versions, ", ") + " only"
}

// SchemaReader reads the schemas of one cluster, for one pass over its resources. It requests the index of the OpenAPI
// documents once, and no document whose hash the cache has. It is not safe for concurrent use.
type SchemaReader struct {
	client    *Client
	documents *OpenAPICache
	// documentURLs are the URLs of the cluster's documents, nil until they are requested.
	documentURLs map[string]string
	workDuration time.Duration
}

// NewSchemaReader returns a reader for one pass over the resources of a cluster.
func (d *OpenAPICache) NewSchemaReader(cluster *Client) *SchemaReader {
	return &SchemaReader{client: cluster, documents: d}
}

// RunLimited calls work, which must not send requests, and returns its error. At most two calls run at the same time in
// the hub, since they build or compare schemas. If ctx ends before its turn, RunLimited returns the error of ctx.
func (r *SchemaReader) RunLimited(ctx context.Context, work func() error) error {
	select {
	case r.documents.semaphore <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	started := r.documents.clock.Now()
	defer func() {
		r.workDuration += r.documents.clock.Since(started)
		<-r.documents.semaphore
	}()
	return work()
}

// WorkDuration returns the total duration of the reader's calls of RunLimited, without the time that they waited.
func (r *SchemaReader) WorkDuration() time.Duration { return r.workDuration }

// ServedSchema returns the schema with which the cluster serves a resource. The error is [ErrNotServed], a
// [*VersionNotServedError], an [*UnusableError], a [*structural.TooLargeError], or the error of a failed request.
func (r *SchemaReader) ServedSchema(ctx context.Context, resource schema.GroupVersionResource, kind string) (ServedSchema, error) {
	hasNoCRD := false
	// The group of a CRD has a dot.
	if strings.Contains(resource.Group, ".") {
		crd, err := r.client.GetCRD(ctx, resource.GroupResource().String())
		switch {
		case err == nil:
			return r.servedByCRD(crd, resource.Version)
		case !apierrors.IsNotFound(err) && !apierrors.IsForbidden(err):
			return ServedSchema{}, err
		}
		hasNoCRD = apierrors.IsNotFound(err)
	}
	served, err := r.servedByOpenAPI(ctx, resource, kind)
	if err == nil && hasNoCRD && !served.BuiltIn {
		// The document is of an aggregated server, or still repeats a CRD that was just deleted.
		_, err = r.client.discoverKind(ctx, resource.GroupVersion(), synchubv1alpha1.ResourceDescriptor{Resource: resource.Resource})
	}
	if err != nil {
		return ServedSchema{}, err
	}
	return served, nil
}

// servedByCRD returns the schema of one version of a CRD.
func (r *SchemaReader) servedByCRD(crd *apiextensionsv1.CustomResourceDefinition, version string) (ServedSchema, error) {
	var names []string
	for i := range crd.Spec.Versions {
		served := &crd.Spec.Versions[i]
		if !served.Served {
			continue
		}
		names = append(names, served.Name)
		if served.Name != version {
			continue
		}
		if crd.Spec.PreserveUnknownFields {
			structural.PreserveUnknownFields(served)
		}
		key, err := schemaKey(served)
		return ServedSchema{Key: key, Schema: func(ctx context.Context) (*apiextensionsv1.JSONSchemaProps, error) {
			return r.sanitizedSchema(ctx, served)
		}}, err
	}
	if len(names) == 0 {
		return ServedSchema{}, ErrNotServed
	}
	return ServedSchema{}, &VersionNotServedError{names}
}

// schemaKey returns a hash of the parts of a version that decide which objects are valid.
func schemaKey(version *apiextensionsv1.CustomResourceDefinitionVersion) (string, error) {
	raw, err := json.Marshal([]any{version.Schema, version.Subresources})
	if err != nil {
		return "", fmt.Errorf("hashing the schema of version %s: %w", version.Name, err)
	}
	return fmt.Sprintf("definition/%x", sha256.Sum256(raw)), nil
}

// sanitizedSchema returns the schema of a version without the parts that mailboxes cannot have.
func (r *SchemaReader) sanitizedSchema(ctx context.Context, version *apiextensionsv1.CustomResourceDefinitionVersion) (*apiextensionsv1.JSONSchemaProps, error) {
	if version.Schema == nil || version.Schema.OpenAPIV3Schema == nil {
		structural.PreserveUnknownFields(version)
	}
	err := r.RunLimited(ctx, func() error {
		_, err := structural.Sanitize(ctx, version)
		return err
	})
	if err != nil {
		return nil, asUnusable(err)
	}
	return version.Schema.OpenAPIV3Schema, nil
}

// servedByOpenAPI returns the schema of a resource in the OpenAPI documents.
func (r *SchemaReader) servedByOpenAPI(ctx context.Context, resource schema.GroupVersionResource, kind string) (ServedSchema, error) {
	if err := r.loadDocumentURLs(ctx); err != nil {
		return ServedSchema{}, err
	}
	url, ok := r.documentURLs[apiPath(resource.GroupVersion())]
	if !ok {
		return ServedSchema{}, r.otherVersionsError(ctx, resource)
	}
	found, err := r.getResource(ctx, url, resource, kind)
	if errors.Is(err, ErrNotServed) {
		return ServedSchema{}, r.otherVersionsError(ctx, resource)
	}
	if err != nil {
		return ServedSchema{}, err
	}
	return ServedSchema{Key: found.key, BuiltIn: !found.fromCRD, Schema: func(ctx context.Context) (*apiextensionsv1.JSONSchemaProps, error) {
		return r.getSchema(ctx, url, resource, kind, found)
	}}, nil
}

// loadDocumentURLs requests the index of the OpenAPI documents, unless the reader has it.
func (r *SchemaReader) loadDocumentURLs(ctx context.Context) (err error) {
	if r.documentURLs != nil {
		return nil
	}
	r.documentURLs, err = r.client.getOpenAPIURLs(ctx)
	if apierrors.IsNotFound(err) {
		return newUnusableError("the cluster publishes no OpenAPI v3 documents")
	}
	return err
}

// otherVersionsError returns a [*VersionNotServedError] if the cluster serves the resource in other versions, else
// [ErrNotServed].
func (r *SchemaReader) otherVersionsError(ctx context.Context, resource schema.GroupVersionResource) error {
	prefix, _ := strings.CutSuffix(apiPath(resource.GroupVersion()), resource.Version)
	var names []string
	for path, url := range r.documentURLs {
		version, ok := strings.CutPrefix(path, prefix)
		if !ok || version == resource.Version || version == "" || strings.Contains(version, "/") {
			continue
		}
		_, err := r.getResource(ctx, url, resource.GroupResource().WithVersion(version), "")
		if err == nil {
			names = append(names, version)
		} else if !errors.Is(err, ErrNotServed) {
			return err
		}
	}
	if len(names) == 0 {
		return ErrNotServed
	}
	slices.SortFunc(names, cmp.Compare)
	return &VersionNotServedError{names}
}

// getResource returns a resource of the document at a URL, or [ErrNotServed] if the document does not contain
// it. Without a kind, getResource only checks that the document contains the resource.
func (r *SchemaReader) getResource(ctx context.Context, link string, resource schema.GroupVersionResource, kind string) (openAPIResource, error) {
	hash := hashFromURL(link)
	if cached, ok := r.documents.resources.Get(resourceKey(hash, resource, kind)); ok && hash != "" {
		return notServedIfEmpty(cached.(openAPIResource))
	}
	document, hash, err := r.documents.getDocument(ctx, r.client, hash, resource.GroupVersion())
	if err != nil {
		return openAPIResource{}, err
	}
	if !json.Valid(document) {
		// An API server serves such a document for a moment when the last resource of a version is removed.
		return openAPIResource{}, fmt.Errorf("the OpenAPI document of %s is no JSON", resource.GroupVersion())
	}
	parsed, err := r.parseResource(ctx, document, hash, resource, kind)
	if err != nil {
		return openAPIResource{}, asUnusable(err)
	}
	cached := parsed
	cached.schema = nil
	r.documents.resources.Add(resourceKey(hash, resource, kind), cached)
	return notServedIfEmpty(parsed)
}

// getSchema returns the schema of a resource that getResource returned. If the resource is from the cache, getSchema reads
// the document again, and returns an error if the document is not the cached one.
func (r *SchemaReader) getSchema(ctx context.Context, link string, resource schema.GroupVersionResource, kind string, described openAPIResource) (*apiextensionsv1.JSONSchemaProps, error) {
	if described.schema != nil {
		return described.schema, nil
	}
	document, hash, err := r.documents.getDocument(ctx, r.client, hashFromURL(link), resource.GroupVersion())
	if err != nil {
		return nil, err
	}
	parsed, err := r.parseResource(ctx, document, hash, resource, kind)
	switch {
	case err != nil:
		return nil, asUnusable(err)
	case parsed.key != described.key:
		return nil, fmt.Errorf("the OpenAPI document of %s does not match its hash", resource.GroupVersion())
	default:
		return parsed.schema, nil
	}
}

// parseResource calls the function of the same name within RunLimited.
func (r *SchemaReader) parseResource(ctx context.Context, document []byte, hash string, resource schema.GroupVersionResource, kind string) (parsed openAPIResource, err error) {
	err = r.RunLimited(ctx, func() error {
		parsed, err = parseResource(ctx, document, hash, resource, kind)
		return err
	})
	return parsed, err
}
