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

package diff

import (
	"context"
	"fmt"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/synchub-dev/synchub/cmd/kubectl-synchub/cli"
	"github.com/synchub-dev/synchub/controllers/publishedresource"
)

// change is an object of a workspace before and after an apply of a manifest.
type change struct {
	served *publishedresource.API
	key    types.NamespacedName
	// before is nil if the workspace does not have the object.
	before, after *unstructured.Unstructured
}

// object names the object in the workspace.
func (c *change) object() Object {
	return Object{APIVersion: c.after.GetAPIVersion(), Kind: c.after.GetKind(), Namespace: c.key.Namespace, Name: c.key.Name}
}

// workspaceChanges are the changes of one workspace by manifests.
type workspaceChanges struct {
	changes []*change
	// problems are the manifests that the workspace refuses, or that it cannot be asked about.
	problems []Remark
	// namespaces are the Namespaces after the change that are among the manifests.
	namespaces map[string]*unstructured.Unstructured
}

// changesIn asks a workspace what it would have after an apply of the manifests.
func (o *options) changesIn(ctx context.Context, workspace *cli.Reader, manifests []*unstructured.Unstructured) (*workspaceChanges, error) {
	found := make([]*change, len(manifests))
	errs := make([]error, len(manifests))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(o.concurrency)
	declared := map[string]bool{}
	for _, manifest := range manifests {
		if manifest.GroupVersionKind() == namespaceKind {
			declared[manifest.GetName()] = true
		}
	}
	for i, manifest := range manifests {
		one, err := o.manifestFor(workspace, manifest)
		if err != nil {
			errs[i] = err
			continue
		}
		group.Go(func() error {
			found[i], errs[i] = o.changeOf(ctx, workspace, one, declared[one.object.GetNamespace()])
			return ctx.Err()
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	result := &workspaceChanges{namespaces: map[string]*unstructured.Unstructured{}}
	for i, manifest := range manifests {
		if errs[i] != nil {
			about := Object{APIVersion: manifest.GetAPIVersion(), Kind: manifest.GetKind(), Namespace: manifest.GetNamespace(), Name: manifest.GetName()}
			result.problems = append(result.problems, Remark{Object: about, Message: errs[i].Error()})
			continue
		}
		result.changes = append(result.changes, found[i])
		if found[i].after.GroupVersionKind() == namespaceKind {
			result.namespaces[found[i].key.Name] = found[i].after
		}
	}
	return result, nil
}

var namespaceKind = schema.GroupVersionKind{Version: "v1", Kind: "Namespace"}

// manifest is an object of a file, as a workspace would be given it.
type manifest struct {
	// resource is the resource in the object's version, and served the API as the hub reads it.
	resource schema.GroupVersionResource
	served   *publishedresource.API
	object   *unstructured.Unstructured
}

// manifestFor completes an object of a file for a workspace.
func (o *options) manifestFor(workspace *cli.Reader, object *unstructured.Unstructured) (*manifest, error) {
	kind := object.GroupVersionKind()
	mapping, err := workspace.Mapper.RESTMapping(kind.GroupKind(), kind.Version)
	if err != nil {
		return nil, err
	}
	served, err := workspace.Served(mapping.Resource.GroupResource())
	if err != nil {
		return nil, fmt.Errorf("cannot find out how the workspace serves %s: %w", mapping.Resource.GroupResource(), err)
	}
	if served == nil {
		return nil, fmt.Errorf("the workspace does not serve %s", mapping.Resource.GroupResource())
	}
	completed := object.DeepCopy()
	if !served.Namespaced {
		return &manifest{mapping.Resource, served, completed}, nil
	}
	if completed.GetNamespace() == "" {
		completed.SetNamespace(o.namespace)
	}
	if o.enforceNamespace && completed.GetNamespace() != o.namespace {
		return nil, fmt.Errorf("its namespace is %s, and --namespace is %s", completed.GetNamespace(), o.namespace)
	}
	return &manifest{mapping.Resource, served, completed}, nil
}

// changeOf asks a workspace what one of its objects would be. An object of a Namespace that is made with it is taken as it is written.
func (o *options) changeOf(ctx context.Context, workspace *cli.Reader, of *manifest, withNamespace bool) (*change, error) {
	found := &change{served: of.served, key: types.NamespacedName{Namespace: of.object.GetNamespace(), Name: of.object.GetName()}}
	var err error
	if found.before, err = workspace.Get(ctx, of.served.GroupVersionResource, found.key); err != nil {
		return nil, fmt.Errorf("cannot read it in the workspace: %w", err)
	}
	options := metav1.ApplyOptions{FieldManager: o.fieldManager, Force: true, DryRun: []string{metav1.DryRunAll}}
	found.after, err = workspace.Objects.Resource(of.resource).Namespace(found.key.Namespace).Apply(ctx, found.key.Name, of.object, options)
	switch {
	case isMissingNamespace(err) && withNamespace:
		found.after = of.object
	case apierrors.IsForbidden(err):
		return nil, fmt.Errorf("cannot ask the workspace: %w", err)
	case err != nil:
		return nil, fmt.Errorf("the workspace refuses it: %w", err)
	}
	if found.before == nil {
		// The UID of a dry run is of no object.
		found.after.SetUID("")
	}
	// kcp converts no fields between versions, and the hub reads all objects in one version.
	found.after.SetAPIVersion(of.served.GroupVersion().String())
	return found, nil
}
