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
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	synchubv1alpha1 "github.com/synchub-dev/synchub/apis/synchub/v1alpha1"
	"github.com/synchub-dev/synchub/controllers/objectsync"
	"github.com/synchub-dev/synchub/controllers/publishedresource"
	"github.com/synchub-dev/synchub/controllers/schemacheck"
	"github.com/synchub-dev/synchub/controllers/syncmanager"
	"github.com/synchub-dev/synchub/provider/mailboxes"
)

const (
	// statusInterval is how often the counts in the status of PublishedResources are brought up to date.
	statusInterval = time.Minute
	// pollInterval is how often mailboxes are asked for what they do not serve yet, and counted while the counts are not known.
	pollInterval = 5 * time.Second
	// unpublishInterval is how often it is looked whether the last object of a mailbox is let go.
	unpublishInterval = time.Second
)

// exportRequest is the one request there is: the export is one object.
var exportRequest = reconcile.Request{NamespacedName: types.NamespacedName{Name: "all"}}

// Mailboxes are the workspaces that have what is published.
type Mailboxes interface {
	// SetResourceLimits sets how much is held of some resources in each mailbox.
	SetResourceLimits(limits map[schema.GroupVersionResource]mailboxes.Limits)
	// SetResources makes exactly these the resources that are watched.
	SetResources(all []schema.GroupVersionResource)
	// Discover returns what mailboxes have. The error may be [mailboxes.ErrNotServed].
	Discover(ctx context.Context, group schema.GroupVersion, resource, kind string) (metav1.APIResource, error)
	// CountPendingClaims returns how many mailboxes there are in which one of these claims is neither accepted nor rejected.
	CountPendingClaims(claims []apisv1alpha2.PermissionClaim) int
}

// Syncer syncs what is published.
type Syncer interface {
	// Publish sets what is synced, Published returns it.
	Publish(resources []objectsync.Resource)
	Published() []objectsync.Resource
	// SetSchemas sets what mailboxes have from the hub.
	SetSchemas(schemas map[schema.GroupResource]schemacheck.Schema)
	// HasPublished tells whether that was ever set.
	HasPublished() bool
	// IsUnpublished tells whether nothing in mailboxes waits any more for a resource that is published as leaving.
	IsUnpublished(resource schema.GroupResource) bool
	// Count returns how widely a resource of mailboxes is synced; known is false as long as not all of that has been observed.
	Count(resource schema.GroupResource) (counts syncmanager.Counts, known bool)
	// SyncTargetsMissingAPI returns the SyncTargets whose mailboxes do not have a resource because its name is taken there.
	SyncTargetsMissingAPI(resource schema.GroupResource) []string
}

var (
	_ Mailboxes = &mailboxes.Mailboxes{}
	_ Syncer    = &syncmanager.Manager{}
)

// Options are what a controller needs.
type Options struct {
	// Hosting is the cluster of the PublishedResources.
	Hosting client.Client
	// Hub is whose PublishedResources they are.
	Hub publishedresource.Hub
	// Provider is the workspace of the export, and Export its name.
	Provider  cluster.Cluster
	Export    string
	Mailboxes Mailboxes
	Sync      Syncer
	Recorder  events.EventRecorder
	Clock     clock.PassiveClock
}

// Controller keeps the mailbox export in sync.
type Controller struct {
	Options
	planner      *planner
	schemas      schemas
	claimRetrier claimRetrier
}

// NewController returns a controller for one export.
func NewController(options Options) *Controller {
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

// Reconcile brings the export and the conditions of all PublishedResources in sync.
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
	plan, err := c.planner.newPlan(ctx, list.Items, &export.Spec)
	if err != nil {
		return reconcile.Result{}, err
	}
	refused, err := c.updateExport(ctx, &export, plan.exportEntries())
	if err != nil {
		return reconcile.Result{}, err
	}
	plan.markRefused(refused)
	gone := c.findUnpublished(plan)
	if err := c.updateSchemas(ctx, plan); err != nil {
		return reconcile.Result{}, err
	}
	c.applyPlan(plan)
	c.rememberPlan(plan)
	for _, left := range gone {
		left.recordEvent(ctx, c.Recorder)
	}
	result := reconcile.Result{RequeueAfter: statusInterval}
	if plan.needsPolling {
		result.RequeueAfter = pollInterval
	}
	requeueAfter, err := c.retryClaims(ctx, &export)
	errs := []error{err}
	if requeueAfter > 0 {
		result.RequeueAfter = min(result.RequeueAfter, requeueAfter)
	}
	for _, candidate := range plan.resources {
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

// updateExport writes the export if the entries change it. What kcp refuses does not keep out the others.
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

// addEntries adds the entries to the export, which shows them afterwards if that worked.
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

// isRefusal tells whether the server will say the same to another try.
func isRefusal(err error) bool {
	return apierrors.IsInvalid(err) || apierrors.IsForbidden(err) || apierrors.IsBadRequest(err)
}

// applyPlan has the mailboxes watched and their objects synced.
func (c *Controller) applyPlan(made *plan) {
	c.Mailboxes.SetResourceLimits(made.resourceLimits())
	c.Mailboxes.SetResources(made.watchedResources())
	if resources := made.syncedResources(); !c.Sync.HasPublished() || !slices.Equal(resources, c.Sync.Published()) {
		c.Sync.Publish(resources)
	}
}

// rememberPlan keeps what is in force for the next plan.
func (c *Controller) rememberPlan(made *plan) {
	c.planner.previous = made.publishedStates()
	names := map[string]bool{}
	for _, resource := range made.resources {
		names[resource.published.Name] = true
	}
	c.planner.compiler.RetainOnly(func(name string) bool { return names[name] })
}
