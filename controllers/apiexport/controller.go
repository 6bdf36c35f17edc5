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

package apiexport

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	apisv1alpha1 "github.com/kcp-dev/sdk/apis/apis/v1alpha1"
	apisv1alpha2 "github.com/kcp-dev/sdk/apis/apis/v1alpha2"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	synchubv1alpha1 "github.com/synchub-dev/synchub/apis/synchub/v1alpha1"
	"github.com/synchub-dev/synchub/controllers/patch"
	"github.com/synchub-dev/synchub/controllers/published"
	"github.com/synchub-dev/synchub/controllers/sync"
	"github.com/synchub-dev/synchub/controllers/syncmanager"
	"github.com/synchub-dev/synchub/provider/mailboxes"
)

// Reasons of the conditions Exported and Ready.
const (
	ReasonExported      = "Exported"
	ReasonDuplicate     = "Duplicate"
	ReasonSchemaMissing = "SchemaMissing"
	ReasonReady         = "Ready"
)

// countInterval is how often the counts in the status of PublishedResources are brought up to date.
const countInterval = time.Minute

// all is the one request there is: the export is one object.
var all = reconcile.Request{NamespacedName: types.NamespacedName{Name: "all"}}

// Controller keeps the mailbox export in step.
type Controller struct {
	hosting   client.Client
	provider  cluster.Cluster
	export    string
	mailboxes *mailboxes.Mailboxes
	sync      *syncmanager.Manager
}

// NewController returns a controller for the export of that name in the provider workspace.
func NewController(hosting client.Client, provider cluster.Cluster, export string, mailboxes *mailboxes.Mailboxes, sync *syncmanager.Manager) *Controller {
	return &Controller{hosting: hosting, provider: provider, export: export, mailboxes: mailboxes, sync: sync}
}

// Register adds the controller to the manager of the hosting cluster.
func (c *Controller) Register(hosting manager.Manager) error {
	toAll := handler.EnqueueRequestsFromMapFunc(func(context.Context, client.Object) []reconcile.Request { return []reconcile.Request{all} })
	return builder.ControllerManagedBy(hosting).
		Named("apiexport").
		Watches(&synchubv1alpha1.PublishedResource{}, toAll).
		WatchesRawSource(source.Kind(c.provider.GetCache(), client.Object(&apisv1alpha2.APIExport{}), toAll)).
		Complete(c)
}

// Reconcile brings the export and the conditions of all PublishedResources in step.
func (c *Controller) Reconcile(ctx context.Context, _ reconcile.Request) (reconcile.Result, error) {
	var list synchubv1alpha1.PublishedResourceList
	if err := c.hosting.List(ctx, &list); err != nil {
		return reconcile.Result{}, err
	}
	slices.SortFunc(list.Items, oldestFirst)
	owners := map[schema.GroupResource]string{}
	var entries []entry
	verdicts := map[string]metav1.Condition{}
	for i := range list.Items {
		resource := &list.Items[i]
		if resource.DeletionTimestamp != nil {
			continue
		}
		found, err := c.entryOf(ctx, resource)
		if err != nil {
			return reconcile.Result{}, err
		}
		if found == nil {
			verdicts[resource.Name] = metav1.Condition{Status: metav1.ConditionFalse, Reason: ReasonSchemaMissing, Message: "There is no schema yet; see the condition SchemaReady."}
			continue
		}
		group := found.resource.GroupResource()
		if owner, ok := owners[group]; ok {
			verdicts[resource.Name] = metav1.Condition{Status: metav1.ConditionFalse, Reason: ReasonDuplicate, Message: fmt.Sprintf("%s is published by the older PublishedResource %s.", group, owner)}
			continue
		}
		owners[group] = resource.Name
		entries = append(entries, *found)
		verdicts[resource.Name] = metav1.Condition{Status: metav1.ConditionTrue, Reason: ReasonExported, Message: fmt.Sprintf("Mailboxes have %s.", group)}
	}
	if err := c.update(ctx, entries); err != nil {
		return reconcile.Result{}, err
	}
	c.publish(entries)
	result := reconcile.Result{RequeueAfter: countInterval}
	for i := range list.Items {
		if verdict, ok := verdicts[list.Items[i].Name]; ok {
			reported, err := c.report(ctx, &list.Items[i], verdict)
			if err != nil {
				return reconcile.Result{}, err
			}
			if reported.RequeueAfter > 0 {
				result = reported
			}
		}
	}
	return result, nil
}

func oldestFirst(a, b synchubv1alpha1.PublishedResource) int {
	if order := a.CreationTimestamp.Compare(b.CreationTimestamp.Time); order != 0 {
		return order
	}
	return strings.Compare(a.Name, b.Name)
}

// entryOf returns nil while there is no schema.
func (c *Controller) entryOf(ctx context.Context, resource *synchubv1alpha1.PublishedResource) (*entry, error) {
	ready := meta.FindStatusCondition(resource.Status.Conditions, synchubv1alpha1.ConditionSchemaReady)
	if ready == nil || ready.Status != metav1.ConditionTrue || ready.ObservedGeneration != resource.Generation {
		return nil, nil
	}
	if resource.Status.SchemaName == "" {
		return &entry{resource: published.Claimed(&resource.Spec)}, nil
	}
	var schema apisv1alpha1.APIResourceSchema
	if err := c.provider.GetClient().Get(ctx, types.NamespacedName{Name: resource.Status.SchemaName}, &schema); err != nil {
		return nil, fmt.Errorf("cannot get the APIResourceSchema of PublishedResource %s: %w", resource.Name, err)
	}
	found, err := published.Exported(&resource.Spec, &schema)
	if err != nil {
		return nil, nil //nolint:nilerr // SchemaReady is about to say so
	}
	return &entry{resource: found, schema: schema.Name}, nil
}

// update writes the export if the entries change it.
func (c *Controller) update(ctx context.Context, entries []entry) error {
	var export apisv1alpha2.APIExport
	if err := c.provider.GetClient().Get(ctx, types.NamespacedName{Name: c.export}, &export); err != nil {
		return fmt.Errorf("cannot get the APIExport %s (run `synchub init`): %w", c.export, err)
	}
	stored := export.DeepCopy()
	merge(&export.Spec, entries)
	if apiequality.Semantic.DeepEqual(stored.Spec, export.Spec) {
		return nil
	}
	if err := c.provider.GetClient().Patch(ctx, &export, client.MergeFromWithOptions(stored, client.MergeFromWithOptimisticLock{})); err != nil {
		return fmt.Errorf("cannot update the APIExport %s: %w", c.export, err)
	}
	return nil
}

// publish starts the watches of the resources and has them synced.
func (c *Controller) publish(entries []entry) {
	resources := make([]sync.Resource, 0, len(entries))
	for _, entry := range entries {
		c.mailboxes.Watch(entry.resource.GroupVersionResource)
		resources = append(resources, entry.resource)
	}
	if !slices.Equal(resources, c.sync.Published()) {
		c.sync.Publish(resources)
	}
}

func (c *Controller) report(ctx context.Context, resource *synchubv1alpha1.PublishedResource, exported metav1.Condition) (reconcile.Result, error) {
	stored := resource.DeepCopy()
	exported.Type, exported.ObservedGeneration = synchubv1alpha1.ConditionExported, resource.Generation
	meta.SetStatusCondition(&resource.Status.Conditions, exported)
	ready := exported
	ready.Type = synchubv1alpha1.ConditionReady
	if ready.Status == metav1.ConditionTrue {
		ready.Reason, ready.Message = ReasonReady, "The API is published."
	}
	meta.SetStatusCondition(&resource.Status.Conditions, ready)
	resource.Status.ObservedGeneration = resource.Generation
	if exported.Status == metav1.ConditionTrue {
		counts := c.sync.Count(schema.GroupResource{Group: resource.Spec.Resource.Group, Resource: resource.Spec.Resource.Resource}, resource.Spec.Resource.Kind)
		resource.Status.Mailboxes, resource.Status.Targets, resource.Status.Objects = counts.Mailboxes, counts.Targets, counts.Objects
	}
	if apiequality.Semantic.DeepEqual(stored.Status, resource.Status) {
		return reconcile.Result{}, nil
	}
	return patch.Status(ctx, c.hosting, stored, resource)
}
