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

package framework

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/synchub-dev/synchub/provider/claimlabels"
)

const (
	fieldManager = "synchub-framework"

	// apiLimit is how long a new API may take until it is served.
	apiLimit = 30 * time.Second
)

// Apply applies all documents of a manifest in order, with server-side apply. A namespaced object without a namespace goes
// to "default". A document may use an API that an earlier document creates.
func Apply(ctx context.Context, config *rest.Config, manifest string) error {
	objects, err := parse(manifest)
	if err != nil {
		return err
	}
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("make a client for %s: %w", config.Host, err)
	}
	apis, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return fmt.Errorf("make a client for %s: %w", config.Host, err)
	}
	for _, object := range objects {
		resource, err := resourceOf(ctx, client, apis, object)
		if err != nil {
			return err
		}
		var refused error
		err = wait.PollUntilContextTimeout(ctx, pollEvery, apiLimit, true, func(ctx context.Context) (bool, error) {
			_, err := resource.Apply(ctx, object.GetName(), object, metav1.ApplyOptions{FieldManager: fieldManager, Force: true})
			if isMissingExport(err) || claimlabels.AreOutdated(err) {
				refused = err
				return false, nil
			}
			return true, err
		})
		if wait.Interrupted(err) && refused != nil {
			err = refused
		}
		if err != nil {
			return fmt.Errorf("apply %s %s to %s: %w", object.GetKind(), object.GetName(), config.Host, err)
		}
	}
	return nil
}

// isMissingExport reports whether kcp's admission refused a workspace type because it does not know a new export yet.
func isMissingExport(err error) bool {
	return apierrors.IsForbidden(err) && strings.Contains(err.Error(), "no permission to bind to export")
}

func parse(manifest string) ([]*unstructured.Unstructured, error) {
	var objects []*unstructured.Unstructured
	decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader([]byte(manifest)), 4096)
	for {
		object := &unstructured.Unstructured{}
		err := decoder.Decode(object)
		if errors.Is(err, io.EOF) {
			return objects, nil
		}
		if err != nil {
			return nil, fmt.Errorf("read document %d of the manifest: %w", len(objects)+1, err)
		}
		if len(object.Object) > 0 {
			objects = append(objects, object)
		}
	}
}

// resourceOf waits until the API of an object is served.
func resourceOf(ctx context.Context, client dynamic.Interface, apis discovery.ServerResourcesInterface, object *unstructured.Unstructured) (dynamic.ResourceInterface, error) {
	kind := object.GroupVersionKind()
	var api *metav1.APIResource
	var last error
	err := wait.PollUntilContextTimeout(ctx, pollEvery, apiLimit, true, func(context.Context) (bool, error) {
		api, last = apiOf(apis, kind)
		return last == nil, nil
	})
	if err != nil {
		return nil, fmt.Errorf("find the API of %s: %w", kind, errors.Join(err, last))
	}
	resource := client.Resource(kind.GroupVersion().WithResource(api.Name))
	if !api.Namespaced {
		return resource, nil
	}
	if object.GetNamespace() == "" {
		object.SetNamespace(metav1.NamespaceDefault)
	}
	return resource.Namespace(object.GetNamespace()), nil
}

// apiOf requests only one version of one group: discovery of all APIs takes dozens of requests.
func apiOf(apis discovery.ServerResourcesInterface, kind schema.GroupVersionKind) (*metav1.APIResource, error) {
	served, err := apis.ServerResourcesForGroupVersion(kind.GroupVersion().String())
	if err != nil {
		return nil, err
	}
	for i := range served.APIResources {
		if api := &served.APIResources[i]; api.Kind == kind.Kind && !strings.Contains(api.Name, "/") {
			return api, nil
		}
	}
	return nil, fmt.Errorf("%s has no %s", kind.GroupVersion(), kind.Kind)
}

// Get returns one object. namespace is empty for a cluster-scoped object.
func Get(ctx context.Context, config *rest.Config, resource schema.GroupVersionResource, namespace, name string) (*unstructured.Unstructured, error) {
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("make a client for %s: %w", config.Host, err)
	}
	return client.Resource(resource).Namespace(namespace).Get(ctx, name, metav1.GetOptions{})
}

// List returns the objects that match a label selector. An empty namespace lists all namespaces, and an empty selector
// matches all objects.
func List(ctx context.Context, config *rest.Config, resource schema.GroupVersionResource, namespace, selector string) ([]unstructured.Unstructured, error) {
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("make a client for %s: %w", config.Host, err)
	}
	list, err := client.Resource(resource).Namespace(namespace).List(ctx, metav1.ListOptions{LabelSelector: selector})
	if err != nil {
		return nil, err
	}
	return list.Items, nil
}

// Delete deletes one object. It ignores NotFound.
func Delete(ctx context.Context, config *rest.Config, resource schema.GroupVersionResource, namespace, name string) error {
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("make a client for %s: %w", config.Host, err)
	}
	err = client.Resource(resource).Namespace(namespace).Delete(ctx, name, metav1.DeleteOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// Patch applies a merge patch to an object, or to a subresource if one is given.
func Patch(ctx context.Context, config *rest.Config, resource schema.GroupVersionResource, namespace, name, patch string, subresources ...string) error {
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("make a client for %s: %w", config.Host, err)
	}
	_, err = client.Resource(resource).Namespace(namespace).Patch(ctx, name, types.MergePatchType, []byte(patch), metav1.PatchOptions{FieldManager: fieldManager}, subresources...)
	return err
}

// Field returns a field of an object as text; empty without the object or the field.
func Field(ctx context.Context, config *rest.Config, resource schema.GroupVersionResource, namespace, name string, path ...string) (string, error) {
	object, err := Get(ctx, config, resource, namespace, name)
	if apierrors.IsNotFound(err) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	found, _, err := unstructured.NestedFieldNoCopy(object.Object, path...)
	if err != nil || found == nil {
		return "", err
	}
	return fmt.Sprint(found), nil
}

// Exists reports whether an object exists. Errors other than NotFound are returned.
func Exists(ctx context.Context, config *rest.Config, resource schema.GroupVersionResource, namespace, name string) (bool, error) {
	_, err := Get(ctx, config, resource, namespace, name)
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	return err == nil, err
}

// Condition returns the status of a condition of an object: "True", "False", "Unknown", or "" if there is no such
// condition.
func Condition(ctx context.Context, config *rest.Config, resource schema.GroupVersionResource, namespace, name, conditionType string) (string, error) {
	object, err := Get(ctx, config, resource, namespace, name)
	if err != nil {
		return "", err
	}
	conditions, _, err := unstructured.NestedSlice(object.Object, "status", "conditions")
	if err != nil {
		return "", fmt.Errorf("read the conditions of %s %s: %w", object.GetKind(), name, err)
	}
	for _, condition := range conditions {
		if fields, ok := condition.(map[string]any); ok && fields["type"] == conditionType {
			status, _, err := unstructured.NestedString(fields, "status")
			return status, err
		}
	}
	return "", nil
}
