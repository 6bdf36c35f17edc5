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
	"sync"
	"time"

	apisv1alpha1 "github.com/kcp-dev/sdk/apis/apis/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	crsource "sigs.k8s.io/controller-runtime/pkg/source"

	synchubv1alpha1 "github.com/synchub-dev/synchub/apis/synchub/v1alpha1"
	"github.com/synchub-dev/synchub/controllers/patch"
	"github.com/synchub-dev/synchub/controllers/published"
	"github.com/synchub-dev/synchub/controllers/published/announce"
	"github.com/synchub-dev/synchub/controllers/unimplemented"
)

// workers is how many PublishedResources are looked at together: the hosting cluster may take a while to answer. None of
// them waits for a target.
const workers = 4

// Options are what a controller needs.
type Options struct {
	// Hub is whose PublishedResources are looked at.
	Hub published.Hub
	// Hosting is the cluster of the PublishedResources; HostingREST asks what it serves.
	Hosting     client.Client
	HostingREST rest.Interface
	// Namespace is where the hosting cluster's ConfigMaps with schemas are.
	Namespace string
	// Provider is the workspace of the schemas.
	Provider cluster.Cluster
	Targets  Targets
	// Definitions is told which definitions targets are to be given.
	Definitions *published.Definitions
	Recorder    events.EventRecorder
	Clock       clock.Clock
}

// Controller makes APIResourceSchemas.
type Controller struct {
	Options
	ears ears
	// refused are PublishedResources of other hubs, by their names, of which was told.
	refused sync.Map

	// begun is when this hub began to look, which begin sets.
	begin sync.Once
	begun time.Time
}

// NewController returns a controller that makes schemas in the provider workspace.
func NewController(options Options) *Controller {
	return &Controller{Options: options, ears: ears{clock: options.Clock, heard: map[string]*source{}}}
}

// definitionsOfKinds stands for the hosting cluster's CustomResourceDefinitions, of which only the metadata is watched.
func definitionsOfKinds() client.Object {
	definition := &metav1.PartialObjectMetadata{}
	definition.APIVersion, definition.Kind = "apiextensions.k8s.io/v1", "CustomResourceDefinition"
	return definition
}

// Register adds the controller to the manager of the hosting cluster.
func (c *Controller) Register(hosting manager.Manager) error {
	onlyGone := predicate.Funcs{
		CreateFunc: func(event.CreateEvent) bool { return false },
		UpdateFunc: func(event.UpdateEvent) bool { return false },
	}
	schemas := crsource.Kind(c.Provider.GetCache(), client.Object(&apisv1alpha1.APIResourceSchema{}), handler.EnqueueRequestsFromMapFunc(c.users), onlyGone)
	return builder.ControllerManagedBy(hosting).
		Named("apiresourceschema").
		// A schema follows from the spec, and from whose the resource is: what else others write into the status, such as
		// counts, is no reason to make it again.
		For(&synchubv1alpha1.PublishedResource{}, builder.WithPredicates(predicate.Or(predicate.GenerationChangedPredicate{}, handedOver))).
		Watches(&corev1.ConfigMap{}, handler.EnqueueRequestsFromMapFunc(c.referrers)).
		WatchesMetadata(definitionsOfKinds(), handler.EnqueueRequestsFromMapFunc(c.described)).
		WatchesRawSource(schemas).
		WatchesRawSource(crsource.Func(c.ears.listen)).
		WithOptions(controller.Options{MaxConcurrentReconciles: workers}).
		Complete(c)
}

// handedOver passes changes of the hub that publishes a resource.
var handedOver = predicate.Funcs{
	UpdateFunc: func(changed event.UpdateEvent) bool {
		before, isResource := changed.ObjectOld.(*synchubv1alpha1.PublishedResource)
		after, ok := changed.ObjectNew.(*synchubv1alpha1.PublishedResource)
		return ok && isResource && !apiequality.Semantic.DeepEqual(before.Status.Hub, after.Status.Hub)
	},
}

// requestsFor returns the PublishedResources that something concerns.
func (c *Controller) requestsFor(ctx context.Context, concerned func(*synchubv1alpha1.PublishedResource) bool) []reconcile.Request {
	var all synchubv1alpha1.PublishedResourceList
	if err := c.Hosting.List(ctx, &all); err != nil {
		return nil
	}
	var requests []reconcile.Request
	for i := range all.Items {
		if concerned(&all.Items[i]) {
			requests = append(requests, requestFor(all.Items[i].Name))
		}
	}
	return requests
}

// referrers returns the PublishedResources whose definition a ConfigMap holds.
func (c *Controller) referrers(ctx context.Context, configMap client.Object) []reconcile.Request {
	return c.requestsFor(ctx, func(resource *synchubv1alpha1.PublishedResource) bool {
		from := resource.Spec.API.SchemaFrom
		return from != nil && from.ConfigMap != nil && from.ConfigMap.Name == configMap.GetName()
	})
}

// described returns the PublishedResources that a definition of the hosting cluster may be about.
func (c *Controller) described(ctx context.Context, definition client.Object) []reconcile.Request {
	defined := schema.ParseGroupResource(definition.GetName())
	return c.requestsFor(ctx, func(resource *synchubv1alpha1.PublishedResource) bool {
		from := resource.Spec.API.SchemaFrom
		return (from == nil || from.HostingCluster != nil) && mayBe(resource.Spec.Resource, defined)
	})
}

// users returns the PublishedResources that a schema of the provider workspace is for.
func (c *Controller) users(ctx context.Context, schema client.Object) []reconcile.Request {
	return c.requestsFor(ctx, func(resource *synchubv1alpha1.PublishedResource) bool {
		return resource.Status.SchemaName == schema.GetName()
	})
}

// Reconcile makes the schema of one PublishedResource.
func (c *Controller) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	var resource synchubv1alpha1.PublishedResource
	if err := c.Hosting.Get(ctx, request.NamespacedName, &resource); err != nil {
		if apierrors.IsNotFound(err) {
			c.forget(request.Name)
			c.refused.Delete(request.Name)
		}
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if !c.Hub.Publishes(&resource) {
		c.forget(request.Name)
		c.refuse(ctx, &resource)
		return reconcile.Result{}, nil
	}
	c.refused.Delete(request.Name)
	c.begin.Do(func() { c.begun = c.Clock.Now() })
	if wait := c.begun.Add(firstLook).Sub(c.Clock.Now()); wait > 0 && stands(&resource) {
		return reconcile.Result{RequeueAfter: wait}, nil
	}
	found, err := c.look(ctx, &resource)
	if errors.Is(err, errAsked) {
		return reconcile.Result{}, nil
	}
	if err != nil {
		return reconcile.Result{}, err
	}
	// A hub that has just begun to lead must not take back what the one before has said, only to say it again.
	if wait := c.begun.Add(acquaintance).Sub(c.Clock.Now()); found.unobserved && wait > 0 && isReported(&resource) {
		return reconcile.Result{RequeueAfter: min(wait, retryInterval)}, nil
	}
	stored := resource.DeepCopy()
	c.Hub.Claim(&resource)
	found.report(&resource)
	unimplemented.SetCondition(&resource.Status.Conditions, resource.Generation, unimplemented.PublishedResource(&resource.Spec))
	if !apiequality.Semantic.DeepEqual(stored.Status, resource.Status) {
		written, err := patch.Status(ctx, c.Hosting, stored, &resource)
		if err != nil || written.RequeueAfter > 0 {
			return written, err
		}
		c.announce(stored, &resource)
	}
	return reconcile.Result{RequeueAfter: found.again}, nil
}

// forget ends what is done for a PublishedResource that is gone, or another hub's.
func (c *Controller) forget(name string) {
	c.ears.forget(name)
	c.Definitions.Drop(name)
}

// refuse tells once that a PublishedResource is left alone.
func (c *Controller) refuse(ctx context.Context, resource *synchubv1alpha1.PublishedResource) {
	if owner, _ := c.refused.Swap(resource.Name, resource.Status.Hub.UID); owner == resource.Status.Hub.UID {
		return
	}
	message := c.Hub.Refusal(resource)
	log.FromContext(ctx).Info("another hub publishes it", "publishedResource", resource.Name, "hub", resource.Status.Hub.UID)
	announce.Event(c.Recorder, resource, corev1.EventTypeWarning, published.ReasonAnotherHub, message)
}

// stands tells whether a schema has been made and nothing but what it is made from can have changed since, and whether no target
// waits for the definition.
func stands(resource *synchubv1alpha1.PublishedResource) bool {
	ready := meta.FindStatusCondition(resource.Status.Conditions, synchubv1alpha1.ConditionSchemaReady)
	return ready != nil && ready.Status == metav1.ConditionTrue && ready.ObservedGeneration == resource.Generation &&
		resource.Status.Hub != nil && resource.Status.SchemaName != "" && !resource.Spec.InstallCRD
}

// announce tells of another schema, or else of what else changed.
func (c *Controller) announce(before, after *synchubv1alpha1.PublishedResource) {
	old, now := before.Status.SchemaName, after.Status.SchemaName
	if old != "" && now != "" && old != now {
		announce.Event(c.Recorder, after, corev1.EventTypeNormal, ReasonSchemaChanged, fmt.Sprintf("The schema %s takes the place of %s, which is kept.", now, old))
		return
	}
	announce.Condition(c.Recorder, after, before.Status.Conditions, synchubv1alpha1.ConditionSchemaReady)
}
