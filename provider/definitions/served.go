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

// Served is what a cluster serves of one version of a resource.
type Served struct {
	// Key is the same for equal schemas, on whatever cluster.
	Key string
	// BuiltIn is true for a type that the server was built with, false for one that has a definition.
	BuiltIn bool
	// Schema makes the schema, as mailboxes would have it. It is only called for a Key that is new. Its errors are those of
	// [Look.Served].
	Schema func(context.Context) (*apiextensionsv1.JSONSchemaProps, error)
}

// VersionNotServedError is returned for a resource that the cluster serves in other versions only.
type VersionNotServedError struct{ Versions []string }

func (e *VersionNotServedError) Error() string {
	return "the cluster serves it in " + strings.Join(e.Versions, ", ") + " only"
}

// Look is one look at a cluster. It asks for nothing twice, and for no document that is known by its hash.
type Look struct {
	reader
	documents *Documents
	// index holds the URLs of the cluster's documents, nil until it is asked for.
	index map[string]string
	// worked is for how long schemas were made and compared.
	worked time.Duration
}

// Look begins to look at a cluster.
func (d *Documents) Look(cluster rest.Interface) *Look {
	return &Look{reader: reader{cluster}, documents: d}
}

// Work does what needs much of a processor and asks nobody, when there is a turn for it.
func (l *Look) Work(ctx context.Context, work func() error) error {
	select {
	case l.documents.turns <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	begun := l.documents.clock.Now()
	defer func() {
		l.worked += l.documents.clock.Since(begun)
		<-l.documents.turns
	}()
	return work()
}

// Worked returns how long all that took.
func (l *Look) Worked() time.Duration { return l.worked }

// Served returns what the cluster serves of a resource. The error is [ErrNotServed], a [*VersionNotServedError], an
// [*UnusableError], a [*structural.TooLargeError], or what kept the cluster from answering.
func (l *Look) Served(ctx context.Context, resource schema.GroupVersionResource, kind string) (Served, error) {
	undefined := false
	// The group of a definition has a dot.
	if strings.Contains(resource.Group, ".") {
		crd := &apiextensionsv1.CustomResourceDefinition{}
		err := l.decode(ctx, crd, definitionsPath, resource.Resource+"."+resource.Group)
		switch {
		case err == nil:
			return l.servedBy(crd, resource.Version)
		case !apierrors.IsNotFound(err) && !apierrors.IsForbidden(err):
			return Served{}, err
		}
		undefined = apierrors.IsNotFound(err)
	}
	served, err := l.described(ctx, resource, kind)
	if err == nil && undefined && !served.BuiltIn {
		// The documents speak of a definition that has just gone, or of an aggregated server.
		found, err := l.discoverIn(ctx, resource.GroupVersion(), synchubv1alpha1.ResourceDescriptor{Group: resource.Group, Resource: resource.Resource})
		if err != nil {
			return Served{}, err
		}
		if found == nil {
			return Served{}, ErrNotServed
		}
	}
	return served, err
}

// servedBy returns what a definition says of a version.
func (l *Look) servedBy(crd *apiextensionsv1.CustomResourceDefinition, version string) (Served, error) {
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
			structural.PreserveUnknown(served)
		}
		key, err := keyOf(served)
		return Served{Key: key, Schema: func(ctx context.Context) (*apiextensionsv1.JSONSchemaProps, error) { return l.legal(ctx, served) }}, err
	}
	if len(names) == 0 {
		return Served{}, ErrNotServed
	}
	return Served{}, &VersionNotServedError{names}
}

// keyOf hashes what of a version decides about objects.
func keyOf(version *apiextensionsv1.CustomResourceDefinitionVersion) (string, error) {
	raw, err := json.Marshal([]any{version.Schema, version.Subresources})
	if err != nil {
		return "", fmt.Errorf("hashing the schema of version %s: %w", version.Name, err)
	}
	return fmt.Sprintf("definition/%x", sha256.Sum256(raw)), nil
}

// legal returns the schema of a version without what mailboxes cannot have, of which they know nothing.
func (l *Look) legal(ctx context.Context, version *apiextensionsv1.CustomResourceDefinitionVersion) (*apiextensionsv1.JSONSchemaProps, error) {
	if version.Schema == nil || version.Schema.OpenAPIV3Schema == nil {
		structural.PreserveUnknown(version)
	}
	err := l.Work(ctx, func() error {
		_, err := structural.Legalize(ctx, version)
		return err
	})
	if err != nil {
		return nil, refused(err)
	}
	return version.Schema.OpenAPIV3Schema, nil
}

// described returns what the OpenAPI documents say.
func (l *Look) described(ctx context.Context, resource schema.GroupVersionResource, kind string) (Served, error) {
	if err := l.readIndex(ctx); err != nil {
		return Served{}, err
	}
	url, ok := l.index[pathOf(resource.GroupVersion())]
	if !ok {
		return Served{}, l.inOtherVersions(ctx, resource)
	}
	found, err := l.documents.description(ctx, l, url, resource, kind)
	if errors.Is(err, ErrNotServed) {
		return Served{}, l.inOtherVersions(ctx, resource)
	}
	if err != nil {
		return Served{}, err
	}
	read := func(ctx context.Context) (*apiextensionsv1.JSONSchemaProps, error) {
		return l.documents.schema(ctx, l, url, resource, kind, found)
	}
	return Served{Key: found.key, BuiltIn: !found.defined, Schema: read}, nil
}

// readIndex asks for the documents that there are.
func (l *Look) readIndex(ctx context.Context) error {
	if l.index != nil {
		return nil
	}
	var index struct {
		Paths map[string]struct {
			URL string `json:"serverRelativeURL"`
		} `json:"paths"`
	}
	err := l.decode(ctx, &index, openAPIPath)
	if apierrors.IsNotFound(err) {
		return unusable("the cluster publishes no OpenAPI v3 documents")
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

// inOtherVersions returns the error that says in which versions else the resource is served.
func (l *Look) inOtherVersions(ctx context.Context, resource schema.GroupVersionResource) error {
	prefix, _ := strings.CutSuffix(pathOf(resource.GroupVersion()), resource.Version)
	var names []string
	for path, url := range l.index {
		version, ok := strings.CutPrefix(path, prefix)
		if !ok || version == resource.Version || version == "" || strings.Contains(version, "/") {
			continue
		}
		_, err := l.documents.description(ctx, l, url, resource.GroupResource().WithVersion(version), "")
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
