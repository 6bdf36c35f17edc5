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

package apiresourceschema

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/yaml"

	"github.com/synchub-dev/synchub/apis/schemas"
	synchubv1alpha1 "github.com/synchub-dev/synchub/apis/synchub/v1alpha1"
	"github.com/synchub-dev/synchub/controllers/patch"
	"github.com/synchub-dev/synchub/controllers/published"
	"github.com/synchub-dev/synchub/controllers/unimplemented"
)

// Reasons of the condition SchemaReady.
const (
	ReasonClaimed       = "Claimed"
	ReasonCreated       = "Created"
	ReasonInvalid       = "Invalid"
	ReasonSchemaMissing = "SchemaMissing"
)

// defaultKey is the key of a ConfigMap that holds a schema, unless the PublishedResource names another.
const defaultKey = "crd.yaml"

// Controller makes APIResourceSchemas.
type Controller struct {
	hosting  client.Client
	provider cluster.Cluster
	// namespace is where the hosting cluster's ConfigMaps with schemas are.
	namespace string
}

// NewController returns a controller that makes schemas in the provider workspace.
func NewController(hosting client.Client, provider cluster.Cluster, namespace string) *Controller {
	return &Controller{hosting: hosting, provider: provider, namespace: namespace}
}

// Register adds the controller to the manager of the hosting cluster.
func (c *Controller) Register(hosting manager.Manager) error {
	return builder.ControllerManagedBy(hosting).
		Named("apiresourceschema").
		For(&synchubv1alpha1.PublishedResource{}).
		Watches(&corev1.ConfigMap{}, handler.EnqueueRequestsFromMapFunc(c.referrers)).
		Complete(c)
}

// referrers returns the PublishedResources whose schema a ConfigMap holds.
func (c *Controller) referrers(ctx context.Context, configMap client.Object) []reconcile.Request {
	var all synchubv1alpha1.PublishedResourceList
	if err := c.hosting.List(ctx, &all); err != nil {
		return nil
	}
	var requests []reconcile.Request
	for i := range all.Items {
		if from := configMapOf(&all.Items[i].Spec); from != nil && from.Name == configMap.GetName() {
			requests = append(requests, reconcile.Request{NamespacedName: types.NamespacedName{Name: all.Items[i].Name}})
		}
	}
	return requests
}

func configMapOf(spec *synchubv1alpha1.PublishedResourceSpec) *synchubv1alpha1.ConfigMapSchema {
	if spec.API.SchemaFrom == nil {
		return nil
	}
	return spec.API.SchemaFrom.ConfigMap
}

// problem is why there is no schema, for the condition.
type problem struct {
	reason string
	err    error
}

func (p *problem) Error() string { return p.err.Error() }
func (p *problem) Unwrap() error { return p.err }

// Reconcile makes the schema of one PublishedResource.
func (c *Controller) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	var resource synchubv1alpha1.PublishedResource
	if err := c.hosting.Get(ctx, request.NamespacedName, &resource); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	condition := metav1.Condition{Type: synchubv1alpha1.ConditionSchemaReady, Status: metav1.ConditionTrue, ObservedGeneration: resource.Generation}
	name, err := c.ensure(ctx, &resource)
	var problem *problem
	switch {
	case errors.As(err, &problem):
		condition.Status, condition.Reason, condition.Message = metav1.ConditionFalse, problem.reason, problem.Error()
	case err != nil:
		return reconcile.Result{}, err
	case name == "":
		condition.Reason, condition.Message = ReasonClaimed, "kcp serves the API by itself; the mailboxes' objects are claimed."
	default:
		condition.Reason, condition.Message = ReasonCreated, fmt.Sprintf("The APIResourceSchema is %s.", name)
	}
	stored := resource.DeepCopy()
	resource.Status.SchemaName = name
	meta.SetStatusCondition(&resource.Status.Conditions, condition)
	unimplemented.SetCondition(&resource.Status.Conditions, resource.Generation, unimplemented.PublishedResource(&resource.Spec))
	if apiequality.Semantic.DeepEqual(stored.Status, resource.Status) {
		return reconcile.Result{}, nil
	}
	return patch.Status(ctx, c.hosting, stored, &resource)
}

// ensure returns the name of the schema, which is empty for a claim. What the operator must cure is a [*problem].
func (c *Controller) ensure(ctx context.Context, resource *synchubv1alpha1.PublishedResource) (string, error) {
	claim, err := published.IsClaim(&resource.Spec)
	if err != nil {
		return "", &problem{ReasonInvalid, err}
	}
	if claim {
		return "", nil
	}
	from := configMapOf(&resource.Spec)
	if from == nil {
		return "", &problem{ReasonSchemaMissing, errors.New("spec.api.schemaFrom.configMap: name a ConfigMap in the hub's namespace that holds a CustomResourceDefinition of the API")}
	}
	crd, err := c.crd(ctx, from)
	if err != nil {
		return "", err
	}
	if crd.Spec.Group != resource.Spec.Resource.Group ||
		resource.Spec.Resource.Resource != "" && crd.Spec.Names.Plural != resource.Spec.Resource.Resource ||
		resource.Spec.Resource.Kind != "" && crd.Spec.Names.Kind != resource.Spec.Resource.Kind {
		return "", &problem{ReasonInvalid, fmt.Errorf("spec.resource: the ConfigMap %s defines %s (%s), not the resource named here", from.Name, crd.Name, crd.Spec.Names.Kind)}
	}
	schema, err := schemas.FromCRD(crd)
	if err != nil {
		return "", &problem{ReasonInvalid, err}
	}
	if _, err := published.Exported(&resource.Spec, schema); err != nil {
		return "", &problem{ReasonInvalid, err}
	}
	err = c.provider.GetClient().Create(ctx, schema)
	if apierrors.IsInvalid(err) {
		return "", &problem{ReasonInvalid, err}
	}
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return "", fmt.Errorf("cannot create the APIResourceSchema %s: %w", schema.Name, err)
	}
	return schema.Name, nil
}

func (c *Controller) crd(ctx context.Context, from *synchubv1alpha1.ConfigMapSchema) (*apiextensionsv1.CustomResourceDefinition, error) {
	key := from.Key
	if key == "" {
		key = defaultKey
	}
	var configMap corev1.ConfigMap
	name := types.NamespacedName{Namespace: c.namespace, Name: from.Name}
	if err := c.hosting.Get(ctx, name, &configMap); err != nil {
		if apierrors.IsNotFound(err) {
			return nil, &problem{ReasonSchemaMissing, fmt.Errorf("spec.api.schemaFrom.configMap: the ConfigMap %s does not exist", name)}
		}
		return nil, err
	}
	manifest, ok := configMap.Data[key]
	if !ok {
		return nil, &problem{ReasonSchemaMissing, fmt.Errorf("spec.api.schemaFrom.configMap: the ConfigMap %s has no key %q", name, key)}
	}
	var crd apiextensionsv1.CustomResourceDefinition
	if err := yaml.UnmarshalStrict([]byte(manifest), &crd); err != nil {
		return nil, &problem{ReasonInvalid, fmt.Errorf("spec.api.schemaFrom.configMap: %s in %s is not a CustomResourceDefinition: %w", key, name, err)}
	}
	return &crd, nil
}
