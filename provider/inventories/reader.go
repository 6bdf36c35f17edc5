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

package inventories

import (
	"context"
	"fmt"
	"iter"
	"net/http"
	"slices"

	apisv1alpha2 "github.com/kcp-dev/sdk/apis/apis/v1alpha2"
	corev1alpha1 "github.com/kcp-dev/sdk/apis/core/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/provider/transport"
)

// Resources of the export that the hub reads.
const (
	syncTargetsResource = "synctargets"
	locationsResource   = "locations"
)

// Reader reads one inventory workspace from kcp itself. It returns objects as the cache would hold them.
type Reader struct {
	edge    *rest.RESTClient
	dynamic dynamic.Interface
}

// NewReader returns a reader of the inventory workspace at config.Host, which is in the virtual workspace of the export.
// Make the config with ConfigProvider.InventoryConfigFor, which bounds the pages. scheme contains SyncTargets and Locations.
func NewReader(config *rest.Config, scheme *runtime.Scheme) (*Reader, error) {
	httpClient, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, err
	}
	made := &Reader{}
	if made.edge, err = newEdgeClient(config, httpClient, scheme); err != nil {
		return nil, err
	}
	made.dynamic, err = dynamic.NewForConfigAndClient(config, httpClient)
	return made, err
}

// newEdgeClient returns a client for the API group of SyncTargets and Locations.
func newEdgeClient(config *rest.Config, httpClient *http.Client, scheme *runtime.Scheme) (*rest.RESTClient, error) {
	versioned := rest.CopyConfig(config)
	versioned.APIPath, versioned.GroupVersion = "/apis", &edgev2alpha1.SchemeGroupVersion
	versioned.NegotiatedSerializer = serializer.NewCodecFactory(scheme).WithoutConversion()
	return rest.RESTClientForConfigAndClient(versioned, httpClient)
}

// SyncTargets yields all SyncTargets. An error ends the sequence, which is then incomplete.
func (r *Reader) SyncTargets(ctx context.Context) iter.Seq2[*edgev2alpha1.SyncTarget, error] {
	return list(ctx, r.edge, syncTargetsResource, func() *edgev2alpha1.SyncTargetList { return &edgev2alpha1.SyncTargetList{} },
		func(page *edgev2alpha1.SyncTargetList) []edgev2alpha1.SyncTarget { return page.Items })
}

// Locations yields all Locations. An error ends the sequence, which is then incomplete.
func (r *Reader) Locations(ctx context.Context) iter.Seq2[*edgev2alpha1.Location, error] {
	return list(ctx, r.edge, locationsResource, func() *edgev2alpha1.LocationList { return &edgev2alpha1.LocationList{} },
		func(page *edgev2alpha1.LocationList) []edgev2alpha1.Location { return page.Items })
}

// listObject is a list of objects that a client can decode.
type listObject interface {
	runtime.Object
	metav1.ListInterface
}

// list yields the stripped objects of a resource, which it reads in pages.
func list[L listObject, T any](ctx context.Context, client rest.Interface, resource string, newList func() L, items func(L) []T) iter.Seq2[*T, error] {
	get := func(ctx context.Context, options metav1.ListOptions) (L, error) {
		page := newList()
		return page, client.Get().Resource(resource).VersionedParams(&options, metav1.ParameterCodec).Do(ctx).Into(page)
	}
	return func(yield func(*T, error) bool) {
		for page, err := range transport.Pages(ctx, metav1.ListOptions{Limit: pageSize}, get) {
			if err != nil {
				yield(nil, fmt.Errorf("cannot list the %s of the inventory workspace: %w", resource, err))
				return
			}
			all := items(page)
			for i := range all {
				if _, err := stripObject(&all[i]); !yield(&all[i], err) {
					return
				}
			}
		}
	}
}

// BoundVersion returns the version of the workspace's APIBinding. If it is the same before and after a list, the list is
// complete. It returns an error if the workspace does not serve SyncTargets and Locations permanently: the workspace is not
// bound, or the workspace or its binding is being deleted. kcp may have deleted objects for that reason.
func (r *Reader) BoundVersion(ctx context.Context) (string, error) {
	logicalCluster, err := r.dynamic.Resource(corev1alpha1.SchemeGroupVersion.WithResource("logicalclusters")).
		Get(ctx, corev1alpha1.LogicalClusterName, metav1.GetOptions{})
	if err != nil {
		return "", fmt.Errorf("cannot get the inventory's LogicalCluster (is its claim accepted?): %w", err)
	}
	if logicalCluster.GetDeletionTimestamp() != nil {
		return "", fmt.Errorf("the inventory workspace is being deleted")
	}
	// The virtual workspace shows only bindings of our own export.
	bindings, err := r.dynamic.Resource(apisv1alpha2.SchemeGroupVersion.WithResource("apibindings")).List(ctx, metav1.ListOptions{})
	if err != nil {
		return "", fmt.Errorf("cannot list the inventory's APIBindings: %w", err)
	}
	why := "the inventory workspace has no APIBinding"
	for i := range bindings.Items {
		if why = unboundReason(&bindings.Items[i]); why == "" {
			return string(bindings.Items[i].GetUID()) + "/" + bindings.Items[i].GetResourceVersion(), nil
		}
	}
	return "", fmt.Errorf("%s", why)
}

// unboundReason returns why a binding does not serve SyncTargets and Locations, or an empty string if it does.
func unboundReason(object *unstructured.Unstructured) string {
	var binding apisv1alpha2.APIBinding
	err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &binding)
	switch {
	case err != nil:
		return fmt.Sprintf("the hub cannot read the APIBinding %s: %v", object.GetName(), err)
	case binding.DeletionTimestamp != nil:
		return fmt.Sprintf("the APIBinding %s is being deleted", binding.Name)
	}
	for _, resource := range []string{syncTargetsResource, locationsResource} {
		if !slices.ContainsFunc(binding.Status.BoundResources, func(bound apisv1alpha2.BoundAPIResource) bool {
			return bound.Group == edgev2alpha1.GroupName && bound.Resource == resource
		}) {
			return fmt.Sprintf("the APIBinding %s does not serve %s", binding.Name, resource)
		}
	}
	return ""
}
