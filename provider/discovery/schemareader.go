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
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/json"
	"k8s.io/client-go/rest"

	"github.com/synchub-dev/synchub/apis/schemas/structural"
	synchubv1alpha1 "github.com/synchub-dev/synchub/apis/synchub/v1alpha1"
)

// ServedSchema is what a cluster serves of one version of a resource.
type ServedSchema struct {
	// Key is the same for equal schemas, on whatever cluster.
	Key string
	// BuiltIn is true for a type that the server was built with, false for one that has a definition.
	BuiltIn bool
	// Schema makes the schema, as mailboxes would have it. It is only called for a Key that is new. Its errors are those of
	// [Look.ServedSchema].
	Schema func(context.Context) (*apiextensionsv1.JSONSchemaProps, error)
}

// VersionNotServedError is returned for a resource that the cluster serves in other versions only.
type VersionNotServedError struct{ Versions []string }

func (e *VersionNotServedError) Error() string {
	return "the cluster serves it in " + strings.Join(e.Versions, ", ") + " only"
}

// SchemaReader is one look at a cluster. It asks for nothing twice, and for no document that is known by its hash.
type SchemaReader struct {
	clusterReader
	documents *OpenAPICache
	// index holds the URLs of the cluster's documents, nil until it is asked for.
	index map[string]string
	// workDuration is for how long schemas were made and compared.
	workDuration time.Duration
}

// NewSchemaReader begins to look at a cluster.
func (d *OpenAPICache) NewSchemaReader(cluster rest.Interface) *SchemaReader {
	return &SchemaReader{clusterReader: clusterReader{cluster}, documents: d}
}

// RunLimited does what needs much of a processor and asks nobody, when there is a turn for it.
func (l *SchemaReader) RunLimited(ctx context.Context, work func() error) error {
	select {
	case l.documents.semaphore <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	begun := l.documents.clock.Now()
	defer func() {
		l.workDuration += l.documents.clock.Since(begun)
		<-l.documents.semaphore
	}()
	return work()
}

// WorkDuration returns how long all that took.
func (l *SchemaReader) WorkDuration() time.Duration { return l.workDuration }

// ServedSchema returns what the cluster serves of a resource. The error is [ErrNotServed], a [*VersionNotServedError], an
// [*UnusableError], a [*structural.TooLargeError], or what kept the cluster from answering.
func (l *SchemaReader) ServedSchema(ctx context.Context, resource schema.GroupVersionResource, kind string) (ServedSchema, error) {
	undefined := false
	// The group of a definition has a dot.
	if strings.Contains(resource.Group, ".") {
		crd := &apiextensionsv1.CustomResourceDefinition{}
		err := l.getJSON(ctx, crd, crdsPath, resource.Resource+"."+resource.Group)
		switch {
		case err == nil:
			return l.servedByCRD(crd, resource.Version)
		case !apierrors.IsNotFound(err) && !apierrors.IsForbidden(err):
			return ServedSchema{}, err
		}
		undefined = apierrors.IsNotFound(err)
	}
	served, err := l.servedByOpenAPI(ctx, resource, kind)
	if err == nil && undefined && !served.BuiltIn {
		// The documents speak of a definition that has just gone, or of an aggregated server.
		found, err := l.discoverVersion(ctx, resource.GroupVersion(), synchubv1alpha1.ResourceDescriptor{Group: resource.Group, Resource: resource.Resource})
		if err != nil {
			return ServedSchema{}, err
		}
		if found == nil {
			return ServedSchema{}, ErrNotServed
		}
	}
	return served, err
}

// servedByCRD returns what a definition says of a version.
func (l *SchemaReader) servedByCRD(crd *apiextensionsv1.CustomResourceDefinition, version string) (ServedSchema, error) {
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
			return l.sanitizedSchema(ctx, served)
		}}, err
	}
	if len(names) == 0 {
		return ServedSchema{}, ErrNotServed
	}
	return ServedSchema{}, &VersionNotServedError{names}
}

// schemaKey hashes what of a version decides about objects.
func schemaKey(version *apiextensionsv1.CustomResourceDefinitionVersion) (string, error) {
	raw, err := json.Marshal([]any{version.Schema, version.Subresources})
	if err != nil {
		return "", fmt.Errorf("hashing the schema of version %s: %w", version.Name, err)
	}
	return fmt.Sprintf("definition/%x", sha256.Sum256(raw)), nil
}

// sanitizedSchema returns the schema of a version without what mailboxes cannot have, of which they know nothing.
func (l *SchemaReader) sanitizedSchema(ctx context.Context, version *apiextensionsv1.CustomResourceDefinitionVersion) (*apiextensionsv1.JSONSchemaProps, error) {
	if version.Schema == nil || version.Schema.OpenAPIV3Schema == nil {
		structural.PreserveUnknownFields(version)
	}
	err := l.RunLimited(ctx, func() error {
		_, err := structural.Sanitize(ctx, version)
		return err
	})
	if err != nil {
		return nil, asUnusable(err)
	}
	return version.Schema.OpenAPIV3Schema, nil
}

// servedByOpenAPI returns what the OpenAPI documents say.
func (l *SchemaReader) servedByOpenAPI(ctx context.Context, resource schema.GroupVersionResource, kind string) (ServedSchema, error) {
	if err := l.loadIndex(ctx); err != nil {
		return ServedSchema{}, err
	}
	url, ok := l.index[apiPath(resource.GroupVersion())]
	if !ok {
		return ServedSchema{}, l.otherVersionsError(ctx, resource)
	}
	found, err := l.documents.getResource(ctx, l, url, resource, kind)
	if errors.Is(err, ErrNotServed) {
		return ServedSchema{}, l.otherVersionsError(ctx, resource)
	}
	if err != nil {
		return ServedSchema{}, err
	}
	read := func(ctx context.Context) (*apiextensionsv1.JSONSchemaProps, error) {
		return l.documents.getSchema(ctx, l, url, resource, kind, found)
	}
	return ServedSchema{Key: found.key, BuiltIn: !found.fromCRD, Schema: read}, nil
}

// loadIndex asks for the documents that there are.
func (l *SchemaReader) loadIndex(ctx context.Context) error {
	if l.index != nil {
		return nil
	}
	var index struct {
		Paths map[string]struct {
			URL string `json:"serverRelativeURL"`
		} `json:"paths"`
	}
	err := l.getJSON(ctx, &index, openAPIPath)
	if apierrors.IsNotFound(err) {
		return newUnusableError("the cluster publishes no OpenAPI v3 documents")
	}
	if err != nil {
		return err
	}
	l.index = make(map[string]string, len(index.Paths))
	for path, document := range index.Paths {
		l.index["/"+path] = document.URL
	}
	return nil
}

// otherVersionsError returns the error that says in which versions else the resource is served.
func (l *SchemaReader) otherVersionsError(ctx context.Context, resource schema.GroupVersionResource) error {
	prefix, _ := strings.CutSuffix(apiPath(resource.GroupVersion()), resource.Version)
	var names []string
	for path, url := range l.index {
		version, ok := strings.CutPrefix(path, prefix)
		if !ok || version == resource.Version || version == "" || strings.Contains(version, "/") {
			continue
		}
		_, err := l.documents.getResource(ctx, l, url, resource.GroupResource().WithVersion(version), "")
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
