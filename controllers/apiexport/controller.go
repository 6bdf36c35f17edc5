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
	"errors"
	"fmt"
	"slices"
	"time"

	apisv1alpha1 "github.com/kcp-dev/sdk/apis/apis/v1alpha1"
	apisv1alpha2 "github.com/kcp-dev/sdk/apis/apis/v1alpha2"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	synchubv1alpha1 "github.com/synchub-dev/synchub/apis/synchub/v1alpha1"
	"github.com/synchub-dev/synchub/controllers/internal/leadership"
	"github.com/synchub-dev/synchub/controllers/plan"
	"github.com/synchub-dev/synchub/controllers/publishedresource"
	"github.com/synchub-dev/synchub/controllers/syncmanager"
	"github.com/synchub-dev/synchub/controllers/syncmanager/schemacheck"
	"github.com/synchub-dev/synchub/provider/mailboxes"
)

const (
	// statusInterval is how often the controller updates the counts in the status of PublishedResources.
	statusInterval = time.Minute
	// pollInterval is how often the controller discovers APIs that mailboxes do not serve yet, and counts again while the
	// counts are not known.
	pollInterval = 5 * time.Second
	// unpublishInterval is how often the controller checks whether the finalizer is off the last mailbox object.
	unpublishInterval = time.Second
)

// exportRequest is the only request of the controller: there is only one export with its mirror.
var exportRequest = reconcile.Request{NamespacedName: types.NamespacedName{Name: "all"}}

// Mailboxes is the part of [mailboxes.Mailboxes] that the controller uses.
type Mailboxes interface {
	// SetResources replaces the list of watched resources.
	SetResources(all []schema.GroupVersionResource)
	// Discover returns the API resource that mailboxes serve. The error may be [mailboxes.ErrNotServed].
	Discover(ctx context.Context, group schema.GroupVersion, resource, kind string) (metav1.APIResource, error)
	// CountPendingClaims returns how many mailboxes have one of these claims neither accepted nor rejected.
	CountPendingClaims(claims []apisv1alpha2.PermissionClaim) int
	UnboundReader
}

// CacheLimits is the part of [mailboxes.CacheLimits] that the controller uses.
type CacheLimits interface {
	// SetResourceLimits sets limits of single resources for the cache of each mailbox.
	SetResourceLimits(limits map[schema.GroupVersionResource]mailboxes.Limits)
}

// Workloads is the part of [mailboxes.Mailboxes] that the controller uses of workload workspaces.
type Workloads interface {
	// SetResources replaces the list of watched resources.
	SetResources(all []schema.GroupVersionResource)
	UnboundReader
}

// Placer is the part of [placement.Controller] that the controller uses.
type Placer interface {
	// SetResources replaces the list of resources that can be placed.
	SetResources(resources []plan.Resource)
}

// Syncer is the part of [syncmanager.Manager] that the controller uses.
type Syncer interface {
	// Publish replaces the list of synced resources, and Published returns the list.
	Publish(resources []plan.Resource)
	Published() []plan.Resource
	// SetSchemas replaces the schemas that the hub exports to mailboxes, by resource.
	SetSchemas(schemas map[schema.GroupResource]schemacheck.Schema)
	// HasPublished reports whether Publish was ever called.
	HasPublished() bool
}

// Counter is the part of [syncmanager.FleetCounter] that the controller uses.
type Counter interface {
	// IsUnpublished reports whether no mailbox object of a resource that is published with Unpublishing carries the
	// finalizer any more.
	IsUnpublished(resource schema.GroupResource) bool
	// Count returns in how many mailboxes and on how many targets a resource is synced, and how many objects; known is false
	// until all of them are observed.
	Count(resource schema.GroupResource) (counts syncmanager.Counts, known bool)
	// SyncTargetsMissingAPI returns the SyncTargets whose mailboxes lack a resource because its name is taken there.
	SyncTargetsMissingAPI(resource schema.GroupResource) []string
}

var (
	_ Mailboxes = &mailboxes.Mailboxes{}
	_ Syncer    = &syncmanager.Manager{}
	_ Counter   = &syncmanager.FleetCounter{}
)

// Options configure a [Controller].
type Options struct {
	// Hosting is the cluster that holds the PublishedResources.
	Hosting client.Client
	// Hub is the owner of the PublishedResources to reconcile; the controller ignores the PublishedResources of other hubs.
	Hub publishedresource.Hub
	// Provider is the workspace that contains the exports. Export is the name of the mailbox export, and
	// WorkloadExport the name of the workload export.
	Provider       cluster.Cluster
	Export         string
	WorkloadExport string
	Mailboxes      Mailboxes
	CacheLimits    CacheLimits
	Sync           Syncer
	Counter        Counter
	// Workloads and Placement receive the published resources too; nil without placement.
	Workloads Workloads
	Placement Placer
	// Elected is closed when this replica leads; nil means that it leads. Another replica only publishes the
	// resources that the leader has exported.
	Elected leadership.Elected
	// LeaderOnly is true if a standby does not need to know the published resources.
	LeaderOnly bool
	Recorder   events.EventRecorder
	Clock      clock.PassiveClock
}

// Controller reconciles the mailbox export, its mirror and the status of all PublishedResources.
type Controller struct {
	Options
	planner      *planner
	schemas      schemas
	claimRetrier claimRetrier
	// order is the order of the mailbox export, and workloadOrder the order of its mirror.
	order, workloadOrder bindingOrder
}

// New returns a controller for one export and its mirror.
func New(options Options) *Controller {
	c := &Controller{Options: options}
	c.planner = &planner{compiler: publishedresource.NewCompiler(), getSchema: c.getSchema, discover: c.discover, previous: map[types.UID]publishedState{}}
	return c
}

// Register adds the controller to the manager of the hosting cluster.
func (c *Controller) Register(hosting manager.Manager) error {
	toAll := handler.EnqueueRequestsFromMapFunc(func(context.Context, client.Object) []reconcile.Request { return []reconcile.Request{exportRequest} })
	return builder.ControllerManagedBy(hosting).
		Named("apiexport").
		Watches(&synchubv1alpha1.PublishedResource{}, toAll).
		WatchesRawSource(source.Kind(c.Provider.GetCache(), client.Object(&apisv1alpha2.APIExport{}), toAll)).
		WatchesRawSource(source.Kind(c.Provider.GetCache(), client.Object(&apisv1alpha1.APIResourceSchema{}), toAll)).
		WatchesRawSource(leadership.Source(c.Elected, func(queue workqueue.TypedRateLimitingInterface[reconcile.Request]) { queue.Add(exportRequest) })).
		WithOptions(controller.Options{NeedLeaderElection: &c.LeaderOnly}).
		Complete(c)
}

func (c *Controller) getSchema(ctx context.Context, name string) (*apisv1alpha1.APIResourceSchema, error) {
	var found apisv1alpha1.APIResourceSchema
	err := c.Provider.GetClient().Get(ctx, types.NamespacedName{Name: name}, &found)
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("cannot get the APIResourceSchema %s: %w", name, err)
	default:
		return &found, nil
	}
}

func (c *Controller) discover(ctx context.Context, resource schema.GroupVersionResource) (publishedresource.API, error) {
	found, err := c.Mailboxes.Discover(ctx, resource.GroupVersion(), resource.Resource, "")
	if err != nil {
		return publishedresource.API{}, err
	}
	_, err = c.Mailboxes.Discover(ctx, resource.GroupVersion(), resource.Resource+"/status", "")
	if err != nil && !errors.Is(err, mailboxes.ErrNotServed) {
		return publishedresource.API{}, err
	}
	return publishedresource.API{
		GroupVersionResource: resource, Kind: found.Kind, Namespaced: found.Namespaced, StatusSubresource: err == nil,
		Versions: []string{resource.Version},
	}, nil
}

// Reconcile reconciles the exports, the synced resources and the status of all PublishedResources.
func (c *Controller) Reconcile(ctx context.Context, _ reconcile.Request) (reconcile.Result, error) {
	var list synchubv1alpha1.PublishedResourceList
	if err := c.Hosting.List(ctx, &list); err != nil {
		return reconcile.Result{}, err
	}
	list.Items = slices.DeleteFunc(list.Items, func(resource synchubv1alpha1.PublishedResource) bool { return !c.Hub.Owns(&resource) })
	var export apisv1alpha2.APIExport
	if err := c.Provider.GetClient().Get(ctx, types.NamespacedName{Name: c.Export}, &export); err != nil {
		return reconcile.Result{}, fmt.Errorf("cannot get the APIExport %s (run `synchub init`): %w", c.Export, err)
	}
	made, err := c.planner.newPlan(ctx, list.Items, &export.Spec)
	if err != nil {
		return reconcile.Result{}, err
	}
	if !c.Elected.Leads() {
		return c.applyExported(ctx, &export.Spec, made)
	}
	refused, err := c.updateExport(ctx, &export, made.exportEntries())
	if err != nil {
		return reconcile.Result{}, err
	}
	made.markRefused(refused)
	// A workload export that cannot be updated must not stop the mailboxes.
	mirrorErr := c.reconcileMirror(ctx, &export, made)
	gone := c.findUnpublished(made)
	if err := c.updateSchemas(ctx, made); err != nil {
		return reconcile.Result{}, err
	}
	c.applyPlan(made)
	c.rememberPlan(made)
	for _, left := range gone {
		left.recordEvent(ctx, c.Recorder)
	}
	result := reconcile.Result{RequeueAfter: statusInterval}
	if made.needsPolling {
		result.RequeueAfter = pollInterval
	}
	reorderAfter, reorderErr := c.reorderExports(ctx, &export)
	retryAfter, err := c.retryClaims(ctx, &export)
	errs := []error{mirrorErr, reorderErr, err}
	for _, requeueAfter := range []time.Duration{reorderAfter, retryAfter} {
		if requeueAfter > 0 {
			result.RequeueAfter = min(result.RequeueAfter, requeueAfter)
		}
	}
	for _, candidate := range made.resources {
		errs = append(errs, c.reconcileFinalizer(ctx, candidate))
		if candidate.isUnpublishing() {
			result.RequeueAfter = unpublishInterval
			continue
		}
		requeueAfter, err := c.updateStatus(ctx, candidate)
		errs = append(errs, err)
		if requeueAfter > 0 {
			result.RequeueAfter = min(result.RequeueAfter, requeueAfter)
		}
	}
	return result, errors.Join(errs...)
}

// applyExported publishes the resources that the leader has exported, on a replica that is not the leader. It writes
// nothing.
func (c *Controller) applyExported(ctx context.Context, export *apisv1alpha2.APIExportSpec, made *exportPlan) (reconcile.Result, error) {
	made.markRefused(missingEntries(export, made.exportEntries()))
	if err := c.updateSchemas(ctx, made); err != nil {
		return reconcile.Result{}, err
	}
	c.applyPlan(made)
	c.rememberPlan(made)
	if made.needsPolling {
		return reconcile.Result{RequeueAfter: pollInterval}, nil
	}
	return reconcile.Result{}, nil
}

// updateExport adds the entries to the export with one patch. If kcp refuses that patch, each entry is patched alone, so
// that one refused entry does not block other entries. It returns the refused entries.
func (c *Controller) updateExport(ctx context.Context, export *apisv1alpha2.APIExport, entries []exportEntry) (refused map[exportEntry]error, err error) {
	err = c.addEntries(ctx, export, entries...)
	if !isRefusal(err) {
		return nil, err
	}
	refused = map[exportEntry]error{}
	for _, entry := range entries {
		if err := c.addEntries(ctx, export, entry); isRefusal(err) {
			refused[entry] = err
		} else if err != nil {
			return nil, err
		}
	}
	return refused, nil
}

// addEntries patches the entries into the export; on success export is the changed object.
func (c *Controller) addEntries(ctx context.Context, export *apisv1alpha2.APIExport, entries ...exportEntry) error {
	changed := export.DeepCopy()
	for _, entry := range entries {
		addEntry(&changed.Spec, entry)
	}
	if apiequality.Semantic.DeepEqual(export.Spec, changed.Spec) {
		return nil
	}
	if err := c.Provider.GetClient().Patch(ctx, changed, client.MergeFromWithOptions(export, client.MergeFromWithOptimisticLock{})); err != nil {
		return fmt.Errorf("cannot update the APIExport %s: %w", c.Export, err)
	}
	*export = *changed
	return nil
}

// isRefusal reports whether the server would answer a retry with the same error.
func isRefusal(err error) bool {
	return apierrors.IsInvalid(err) || apierrors.IsForbidden(err) || apierrors.IsBadRequest(err)
}

// applyPlan sets the watched resources of the mailboxes and publishes the synced resources.
func (c *Controller) applyPlan(made *exportPlan) {
	c.CacheLimits.SetResourceLimits(made.resourceLimits())
	c.Mailboxes.SetResources(made.watchedResources())
	if c.Workloads != nil {
		c.Workloads.SetResources(made.workloadResources())
	}
	if resources := made.syncedResources(); !c.Sync.HasPublished() || !slices.Equal(resources, c.Sync.Published()) {
		c.Sync.Publish(resources)
		if c.Placement != nil {
			c.Placement.SetResources(resources)
		}
	}
}

// rememberPlan keeps the published states for the next plan.
func (c *Controller) rememberPlan(made *exportPlan) {
	c.planner.previous = made.publishedStates()
	names := map[string]bool{}
	for _, resource := range made.resources {
		names[resource.published.Name] = true
	}
	c.planner.compiler.RetainOnly(func(name string) bool { return names[name] })
}
