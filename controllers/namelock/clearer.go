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

package namelock

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/kcp-dev/logicalcluster/v3"
	apisv1alpha2 "github.com/kcp-dev/sdk/apis/apis/v1alpha2"
	corev1alpha1 "github.com/kcp-dev/sdk/apis/core/v1alpha1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/synchub-dev/synchub/provider/metrics/requestmetrics"
)

const (
	// Annotation is where kcp notes to whom names belong.
	Annotation = "internal.apis.kcp.io/resource-bindings"
	// retryAnnotation is what makes kcp look at an APIBinding again.
	retryAnnotation = "synchub.dev/bind-again"
	// timeout bounds what is done about one mailbox.
	timeout = 10 * time.Second
	// maxNames is how many names of a mailbox are looked at together.
	maxNames = 20
)

var (
	crds            = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
	apiBindings     = apisv1alpha2.SchemeGroupVersion.WithResource("apibindings")
	logicalClusters = corev1alpha1.SchemeGroupVersion.WithResource("logicalclusters")
)

// Clearer frees names in mailboxes.
type Clearer struct {
	// ConfigFor is how the hub reaches a workspace by itself, and not through an export.
	ConfigFor func(workspace string) *rest.Config
}

// ClearResult is what stands in the way of APIs in a mailbox.
type ClearResult struct {
	// BlockingCRDs are the CustomResourceDefinitions of their names that serve objects, and that somebody must delete.
	BlockingCRDs []string
	// Freed is true if kcp kept a name for a definition that is gone, and now need not any more.
	Freed bool
}

// Clear frees the names of APIs that a mailbox does not have, as far as that is safe, and returns what still stands in the way.
func (c *Clearer) Clear(ctx context.Context, mailbox logicalcluster.Name, missing []schema.GroupResource) (ClearResult, error) {
	ctx, cancel := context.WithTimeout(requestmetrics.WithClass(ctx, requestmetrics.Extra), timeout)
	defer cancel()
	client, err := dynamic.NewForConfig(c.ConfigFor(mailbox.String()))
	if err != nil {
		return ClearResult{}, err
	}
	// Before the definitions, so that one that is made meanwhile changes it and the patch below fails.
	cluster, err := client.Resource(logicalClusters).Get(ctx, corev1alpha1.LogicalClusterName, metav1.GetOptions{})
	if err != nil {
		return ClearResult{}, fmt.Errorf("cannot get the LogicalCluster of the mailbox: %w", err)
	}
	finding := ClearResult{}
	states := map[string]crdStatus{}
	for _, resource := range missing[:min(len(missing), maxNames)] {
		name := resource.String()
		definition, err := client.Resource(crds).Get(ctx, name, metav1.GetOptions{})
		if err != nil && !apierrors.IsNotFound(err) {
			return ClearResult{}, fmt.Errorf("cannot get the CustomResourceDefinition %s of the mailbox: %w", name, err)
		}
		if states[name] = crdState(definition, err == nil); states[name] == crdServing {
			finding.BlockingCRDs = append(finding.BlockingCRDs, name)
		}
	}
	freed, changed, err := freeNames(cluster.GetAnnotations()[Annotation], states)
	if err != nil || !changed {
		return finding, err
	}
	if err := annotate(ctx, client, logicalClusters, cluster, Annotation, freed); err != nil {
		return finding, fmt.Errorf("cannot free names in the annotation %s of the mailbox's LogicalCluster: %w", Annotation, err)
	}
	finding.Freed = true
	return finding, nil
}

// RetryBinding makes kcp try once more to bind what it did not bind in a mailbox.
func (c *Clearer) RetryBinding(ctx context.Context, mailbox logicalcluster.Name, binding string, now time.Time) error {
	ctx, cancel := context.WithTimeout(requestmetrics.WithClass(ctx, requestmetrics.Extra), timeout)
	defer cancel()
	client, err := dynamic.NewForConfig(c.ConfigFor(mailbox.String()))
	if err != nil {
		return err
	}
	object := &unstructured.Unstructured{}
	object.SetName(binding)
	if err := annotate(ctx, client, apiBindings, object, retryAnnotation, now.UTC().Format(time.RFC3339)); err != nil {
		return fmt.Errorf("cannot make kcp bind the mailbox's APIs again: %w", err)
	}
	return nil
}

// annotate sets an annotation of an object, which must not have changed since it was read if its resourceVersion is set.
func annotate(ctx context.Context, client dynamic.Interface, resource schema.GroupVersionResource, object *unstructured.Unstructured, key, value string) error {
	metadata := map[string]any{"annotations": map[string]string{key: value}}
	if version := object.GetResourceVersion(); version != "" {
		metadata["resourceVersion"] = version
	}
	data, err := json.Marshal(map[string]any{"metadata": metadata})
	if err != nil {
		return err
	}
	_, err = client.Resource(resource).Patch(ctx, object.GetName(), types.MergePatchType, data, metav1.PatchOptions{FieldManager: "synchub"})
	return err
}
