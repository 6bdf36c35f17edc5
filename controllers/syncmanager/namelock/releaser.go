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

	"github.com/synchub-dev/synchub/provider/requestclass"
)

const (
	// Annotation is the annotation in which kcp records the owners of names.
	Annotation = "internal.apis.kcp.io/resource-bindings"
	// retryAnnotation on an APIBinding makes kcp reconcile the binding.
	retryAnnotation = "synchub.dev/bind-again"
	// timeout is the timeout of all requests for one mailbox together.
	timeout = 10 * time.Second
	// maxNames is the maximum number of names that one call checks in a mailbox.
	maxNames = 20
)

var (
	crds            = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
	apiBindings     = apisv1alpha2.SchemeGroupVersion.WithResource("apibindings")
	logicalClusters = corev1alpha1.SchemeGroupVersion.WithResource("logicalclusters")
)

// Releaser frees names in mailboxes.
type Releaser struct {
	// ConfigFor returns a client config for a workspace with the hub's own rights, not through an export.
	ConfigFor func(workspace string) *rest.Config
}

// Result contains why a mailbox does not have APIs.
type Result struct {
	// BlockingCRDs are the CRDs in the mailbox that have the name of an API and serve objects. Somebody must delete them.
	BlockingCRDs []string
	// Freed is true if this call freed a name that kcp had reserved for a CRD that serves nothing.
	Freed bool
}

// Release frees the names of missing APIs where that is safe, and returns the CRDs that still block an API. It checks at most
// maxNames.
func (c *Releaser) Release(ctx context.Context, mailbox logicalcluster.Name, missing []schema.GroupResource) (Result, error) {
	ctx, cancel := context.WithTimeout(requestclass.With(ctx, requestclass.Extra), timeout)
	defer cancel()
	client, err := dynamic.NewForConfig(c.ConfigFor(mailbox.String()))
	if err != nil {
		return Result{}, err
	}
	// Read before the CRDs: creating a CRD in between changes the LogicalCluster, and the patch below fails.
	cluster, err := client.Resource(logicalClusters).Get(ctx, corev1alpha1.LogicalClusterName, metav1.GetOptions{})
	if err != nil {
		return Result{}, fmt.Errorf("cannot get the LogicalCluster of the mailbox: %w", err)
	}
	finding := Result{}
	states := map[string]crdStatus{}
	for _, resource := range missing[:min(len(missing), maxNames)] {
		name := resource.String()
		definition, err := client.Resource(crds).Get(ctx, name, metav1.GetOptions{})
		if err != nil && !apierrors.IsNotFound(err) {
			return Result{}, fmt.Errorf("cannot get the CustomResourceDefinition %s of the mailbox: %w", name, err)
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

// RetryBinding makes kcp retry the APIs that it has not bound in a mailbox.
func (c *Releaser) RetryBinding(ctx context.Context, mailbox logicalcluster.Name, binding string, now time.Time) error {
	ctx, cancel := context.WithTimeout(requestclass.With(ctx, requestclass.Extra), timeout)
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

// annotate sets an annotation of an object. If the object has a resourceVersion, the patch fails with a conflict after
// another change.
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

// crdStatus is the state of a CRD in a mailbox.
type crdStatus string

const (
	// crdGone: the CRD does not exist.
	crdGone crdStatus = "Gone"
	// crdRefused: kcp refuses the names of the CRD, so it never served an object.
	crdRefused crdStatus = "Refused"
	// crdServing: the CRD serves objects, or did, or soon will.
	crdServing crdStatus = "Serving"
)

func crdState(definition *unstructured.Unstructured, exists bool) crdStatus {
	switch {
	case !exists:
		return crdGone
	case conditionStatus(definition, "Established") != "True" && conditionStatus(definition, "NamesAccepted") == "False":
		return crdRefused
	default:
		return crdServing
	}
}

func conditionStatus(definition *unstructured.Unstructured, condition string) any {
	all, _, _ := unstructured.NestedSlice(definition.Object, "status", "conditions")
	for _, item := range all {
		if fields, ok := item.(map[string]any); ok && fields["type"] == condition {
			return fields["status"]
		}
	}
	return nil
}

// expiredTime is an expiry in the past for any clock.
const expiredTime = "2000-01-01T00:00:00Z"

// freeNames returns the annotation without the reservations of CRDs that serve nothing. The record of a CRD that is gone
// gets an expiry, so that kcp decides. A record that already has an expiry is for a CRD that is being created, or expires
// by itself.
func freeNames(annotation string, definitions map[string]crdStatus) (freed string, changed bool, err error) {
	if annotation == "" {
		return "", false, nil
	}
	// Unknown fields of a record are kept.
	records := map[string]map[string]any{}
	if err := json.Unmarshal([]byte(annotation), &records); err != nil {
		return "", false, fmt.Errorf("cannot read the annotation %s: %w", Annotation, err)
	}
	for name, state := range definitions {
		record := records[name]
		if record["c"] != true || record["e"] != nil {
			continue
		}
		switch state {
		case crdGone:
			record["e"], changed = expiredTime, true
		case crdRefused:
			delete(records, name)
			changed = true
		case crdServing:
		}
	}
	if !changed {
		return "", false, nil
	}
	text, err := json.Marshal(records)
	return string(text), true, err
}
