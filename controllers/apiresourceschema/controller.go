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
	"k8s.io/apimachinery/pkg/types"
	clientevents "k8s.io/client-go/tools/events"
	"k8s.io/client-go/util/workqueue"
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
	"github.com/synchub-dev/synchub/controllers/internal/leadership"
	"github.com/synchub-dev/synchub/controllers/internal/status"
	"github.com/synchub-dev/synchub/controllers/publishedresource"
	"github.com/synchub-dev/synchub/controllers/syncmanager/crd"
	"github.com/synchub-dev/synchub/provider/discovery"
	"github.com/synchub-dev/synchub/provider/topic"
)

// workers is the number of concurrent reconciles: a request to the hosting cluster may be slow. No worker waits for a target.
const workers = 4

// Options configure a [Controller].
type Options struct {
	// Hub is the owner of the PublishedResources to reconcile; the controller ignores the PublishedResources of other hubs.
	Hub publishedresource.Hub
	// Hosting is the cluster that holds the PublishedResources, and HostingDiscovery discovers the APIs that the cluster serves.
	Hosting          client.Client
	HostingDiscovery *discovery.Client
	// Namespace in the hosting cluster holds the ConfigMaps with schemas.
	Namespace string
	// Provider is the workspace that holds the schemas.
	Provider cluster.Cluster
	Targets  Targets
	// ConnectionChanged carries the SyncTargets whose target was connected, came up or went down.
	ConnectionChanged *topic.Topic[types.UID]
	// CRDs receives the CRDs to install on targets.
	CRDs *crd.Store
	// Elected is closed when this replica leads; nil means that it leads. Another replica only finds the CRDs
	// to install.
	Elected leadership.Elected
	// LeaderOnly is true if no other replica owns SyncTargets, and so installs CRDs.
	LeaderOnly bool
	Recorder   clientevents.EventRecorder
	Clock      clock.Clock
}

// Controller creates an APIResourceSchema for each PublishedResource that needs one, and reports the condition SchemaReady.
type Controller struct {
	Options
	watches definitionWatches
	// foreignReported holds the UID of the owning hub by name, for PublishedResources of other hubs that have been
	// reported.
	foreignReported sync.Map

	// startedAt is the time of the first Reconcile on this hub; startOnce sets it.
	startOnce sync.Once
	startedAt time.Time
}

// New returns a controller that makes schemas in the provider workspace.
func New(options Options) *Controller {
	return &Controller{Options: options, watches: definitionWatches{clock: options.Clock, byName: map[string]*definitionWatch{}}}
}

// crdMetadata returns the object to watch the metadata of the hosting cluster's CRDs with.
func crdMetadata() client.Object {
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
	schemas := crsource.Kind(c.Provider.GetCache(), client.Object(&apisv1alpha1.APIResourceSchema{}), handler.EnqueueRequestsFromMapFunc(c.requestsForSchema), onlyGone)
	return builder.ControllerManagedBy(hosting).
		Named("apiresourceschema").
		// A schema depends on the spec and on the hub that owns the PublishedResource. Other status changes, such as
		// counts, need no reconcile.
		For(&synchubv1alpha1.PublishedResource{}, builder.WithPredicates(predicate.Or(predicate.GenerationChangedPredicate{}, hubChanged))).
		Watches(&corev1.ConfigMap{}, handler.EnqueueRequestsFromMapFunc(c.requestsForConfigMap)).
		WatchesMetadata(crdMetadata(), handler.EnqueueRequestsFromMapFunc(c.requestsForCRD)).
		WatchesRawSource(schemas).
		WatchesRawSource(crsource.Func(c.watches.setQueue)).
		WatchesRawSource(topic.Source(c.ConnectionChanged, c.targetChanged)).
		WatchesRawSource(crsource.Func(c.enqueueAllWhenElected)).
		WithOptions(controller.Options{MaxConcurrentReconciles: workers, NeedLeaderElection: &c.LeaderOnly}).
		Complete(c)
}

// enqueueAllWhenElected enqueues all PublishedResources once this replica leads. It is a source.
func (c *Controller) enqueueAllWhenElected(ctx context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
	return leadership.Source(c.Elected, func(queue workqueue.TypedRateLimitingInterface[reconcile.Request]) {
		for _, request := range c.requestsFor(ctx, func(*synchubv1alpha1.PublishedResource) bool { return true }) {
			queue.Add(request)
		}
	}).Start(ctx, queue)
}

// hubChanged selects updates that change the hub which owns a PublishedResource.
var hubChanged = predicate.Funcs{
	UpdateFunc: func(changed event.UpdateEvent) bool {
		before, isResource := changed.ObjectOld.(*synchubv1alpha1.PublishedResource)
		after, ok := changed.ObjectNew.(*synchubv1alpha1.PublishedResource)
		return ok && isResource && !apiequality.Semantic.DeepEqual(before.Status.Hub, after.Status.Hub)
	},
}

// requestsFor returns requests for the PublishedResources for which concerned returns true.
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

// requestsForConfigMap returns requests for the PublishedResources that read their CRD from the ConfigMap.
func (c *Controller) requestsForConfigMap(ctx context.Context, configMap client.Object) []reconcile.Request {
	return c.requestsFor(ctx, func(resource *synchubv1alpha1.PublishedResource) bool {
		from := resource.Spec.API.SchemaFrom
		return from != nil && from.ConfigMap != nil && from.ConfigMap.Name == configMap.GetName()
	})
}

// requestsForCRD returns requests for the PublishedResources that may read the CRD from the hosting cluster.
func (c *Controller) requestsForCRD(ctx context.Context, definition client.Object) []reconcile.Request {
	defined := schema.ParseGroupResource(definition.GetName())
	return c.requestsFor(ctx, func(resource *synchubv1alpha1.PublishedResource) bool {
		from := resource.Spec.API.SchemaFrom
		return (from == nil || from.HostingCluster != nil) && mayMatch(resource.Spec.Resource, defined)
	})
}

// requestsForSchema returns requests for the PublishedResources that use the schema.
func (c *Controller) requestsForSchema(ctx context.Context, schema client.Object) []reconcile.Request {
	return c.requestsFor(ctx, func(resource *synchubv1alpha1.PublishedResource) bool {
		return resource.Status.SchemaName == schema.GetName()
	})
}

// Reconcile creates the schema of one PublishedResource, and writes the condition SchemaReady and status.schemaName. On a replica that
// does not lead it only finds out the CRD to install.
func (c *Controller) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	var resource synchubv1alpha1.PublishedResource
	if err := c.Hosting.Get(ctx, request.NamespacedName, &resource); err != nil {
		if apierrors.IsNotFound(err) {
			c.forget(request.Name)
			c.foreignReported.Delete(request.Name)
		}
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if !c.Hub.Owns(&resource) {
		c.forget(request.Name)
		if c.Elected.Leads() {
			c.reportForeign(ctx, &resource)
		}
		return reconcile.Result{}, nil
	}
	c.foreignReported.Delete(request.Name)
	if !c.Elected.Leads() {
		return c.findCRD(ctx, &resource)
	}
	c.startOnce.Do(func() { c.startedAt = c.Clock.Now() })
	if wait := c.startedAt.Add(startDelay).Sub(c.Clock.Now()); wait > 0 && isUpToDate(&resource) {
		return reconcile.Result{RequeueAfter: wait}, nil
	}
	found, err := c.reconcileSchema(ctx, &resource)
	if errors.Is(err, errReadPending) {
		return reconcile.Result{}, nil
	}
	if err != nil {
		return reconcile.Result{}, err
	}
	// A hub that has just become the leader would otherwise replace the report of the previous leader and soon restore it.
	if wait := c.startedAt.Add(discoveryGracePeriod).Sub(c.Clock.Now()); found.targetUnobserved && wait > 0 && isReported(&resource) {
		return reconcile.Result{RequeueAfter: min(wait, retryInterval)}, nil
	}
	return c.report(ctx, &resource, found)
}

// report writes the outcome into the status, and records events of changes.
func (c *Controller) report(ctx context.Context, resource *synchubv1alpha1.PublishedResource, found outcome) (reconcile.Result, error) {
	stored := resource.DeepCopy()
	c.Hub.SetOwner(resource)
	found.updateStatus(resource)
	if !apiequality.Semantic.DeepEqual(stored.Status, resource.Status) {
		written, err := status.Patch(ctx, c.Hosting, stored, resource)
		if err != nil || written.RequeueAfter > 0 {
			return written, err
		}
		c.recordEvents(stored, resource)
	}
	return reconcile.Result{RequeueAfter: found.requeueAfter}, nil
}

// findCRD finds the CRD to install, on a replica that is not the leader. It writes nothing.
func (c *Controller) findCRD(ctx context.Context, resource *synchubv1alpha1.PublishedResource) (reconcile.Result, error) {
	if !resource.Spec.InstallCRD {
		c.forget(resource.Name)
		return reconcile.Result{}, nil
	}
	found, err := c.reconcileSchema(ctx, resource)
	if errors.Is(err, errReadPending) {
		return reconcile.Result{}, nil
	}
	return reconcile.Result{RequeueAfter: found.requeueAfter}, err
}

// forget ends the target watch and the CRD installation of a PublishedResource that is deleted or belongs to another hub.
func (c *Controller) forget(name string) {
	c.watches.forget(name)
	c.CRDs.Delete(name)
}

// reportForeign reports once, in an event and in the log, that another hub owns the PublishedResource.
func (c *Controller) reportForeign(ctx context.Context, resource *synchubv1alpha1.PublishedResource) {
	if owner, _ := c.foreignReported.Swap(resource.Name, resource.Status.Hub.UID); owner == resource.Status.Hub.UID {
		return
	}
	message := c.Hub.OtherHubMessage(resource)
	log.FromContext(ctx).Info("another hub publishes the PublishedResource", "publishedResource", resource.Name, "hub", resource.Status.Hub.UID)
	status.RecordEvent(c.Recorder, resource, corev1.EventTypeWarning, publishedresource.ReasonAnotherHub, message)
}

// isUpToDate reports whether the schema is made, only its source can have changed since, and no target waits for the CRD.
func isUpToDate(resource *synchubv1alpha1.PublishedResource) bool {
	ready := meta.FindStatusCondition(resource.Status.Conditions, synchubv1alpha1.ConditionSchemaReady)
	return ready != nil && ready.Status == metav1.ConditionTrue && ready.ObservedGeneration == resource.Generation &&
		resource.Status.Hub != nil && resource.Status.SchemaName != "" && !resource.Spec.InstallCRD
}

// recordEvents records an event for a changed schema, or else for a changed condition SchemaReady.
func (c *Controller) recordEvents(before, after *synchubv1alpha1.PublishedResource) {
	old, now := before.Status.SchemaName, after.Status.SchemaName
	if old != "" && now != "" && old != now {
		status.RecordEvent(c.Recorder, after, corev1.EventTypeNormal, ReasonSchemaChanged, fmt.Sprintf("The schema %s replaces %s, which is kept.", now, old))
		return
	}
	status.RecordConditionEvent(c.Recorder, after, before.Status.Conditions, synchubv1alpha1.ConditionSchemaReady)
}
