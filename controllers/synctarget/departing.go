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

package synctarget

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	gosync "sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/log"
	mcreconcile "sigs.k8s.io/multicluster-runtime/pkg/reconcile"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/controllers/departure"
	"github.com/synchub-dev/synchub/provider/ledger"
	"github.com/synchub-dev/synchub/provider/targets"
)

// departing is a departure under way, or at its end.
type departing struct {
	mode       departure.Mode
	connection *targets.Connection
	began      time.Time
	cancel     context.CancelFunc
	// over is closed when it does nothing any more.
	over chan struct{}

	lock   gosync.Mutex
	report *edgev2alpha1.DepartureStatus
	end    bool
}

// ended tells whether nothing is left to be done.
func (d *departing) ended() bool {
	d.lock.Lock()
	defer d.lock.Unlock()
	return d.end
}

// progress says how far it is.
func (d *departing) progress() string {
	d.lock.Lock()
	defer d.lock.Unlock()
	if d.report == nil {
		return "The hub looks for what it placed on the target."
	}
	return describe(*d.report)
}

// depart begins a departure unless it is under way or at its end. It returns nil as long as not all is known that is needed
// to decide.
func (c *Controller) depart(ctx context.Context, request mcreconcile.Request, inventory cluster.Cluster, syncTarget *edgev2alpha1.SyncTarget,
	connection *targets.Connection, mode departure.Mode,
) (*departing, error) {
	c.lock.Lock()
	running, owner := c.departures[syncTarget.UID], c.running
	c.lock.Unlock()
	if running != nil && running.mode == mode && running.connection == connection {
		return running, nil
	}
	c.endDeparture(syncTarget.UID)
	// Whether a namespace may go with all it holds is for its PublishedResource to say.
	if owner == nil || !c.sync.HasPublished() {
		return nil, nil
	}
	// The report that a hub before has written last may not be in the cache yet.
	fresh, err := c.reread(ctx, inventory, syncTarget)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(owner)
	started := &departing{mode: mode, connection: connection, began: c.clock.Now(), cancel: cancel, over: make(chan struct{})}
	c.lock.Lock()
	c.departures[syncTarget.UID] = started
	c.lock.Unlock()
	// The caller goes on writing to its copy of the SyncTarget.
	name, uid := syncTarget.Name, syncTarget.UID
	known := c.ledger.Get(syncTarget.UID)
	options := departure.Options{
		Target:    connection,
		Owner:     c.sync.Owner(syncTarget.UID),
		Mode:      mode,
		Resources: placedResources(known.Resources),
		Readable:  connection.Namespaces(),
		Placed:    placedIn(known),
		Cascades:  c.sync.Cascades,
		Before:    fresh.Status.Departure,
		Record: func(ctx context.Context, report edgev2alpha1.DepartureStatus) error {
			return c.recordDeparture(ctx, inventory, name, uid, started, report)
		},
		Clock: c.clock,
		Log:   log.FromContext(ctx).WithValues("syncTarget", request.String(), "mode", mode),
	}
	go func() {
		defer close(started.over)
		if departure.Run(ctx, options) == nil {
			started.lock.Lock()
			started.end = true
			started.lock.Unlock()
			c.TargetChanged(uid)
		}
	}()
	return started, nil
}

// endDeparture ends what is under way, and returns when it does nothing any more.
func (c *Controller) endDeparture(syncTarget types.UID) {
	c.lock.Lock()
	running := c.departures[syncTarget]
	delete(c.departures, syncTarget)
	c.lock.Unlock()
	if running != nil {
		running.cancel()
		<-running.over
	}
}

// reread reads a SyncTarget from kcp, not from a cache.
func (c *Controller) reread(ctx context.Context, inventory cluster.Cluster, syncTarget *edgev2alpha1.SyncTarget) (*edgev2alpha1.SyncTarget, error) {
	direct, err := dynamic.NewForConfigAndClient(inventory.GetConfig(), inventory.GetHTTPClient())
	if err != nil {
		return nil, err
	}
	object, err := direct.Resource(edgev2alpha1.SchemeGroupVersion.WithResource("synctargets")).Get(ctx, syncTarget.Name, metav1.GetOptions{})
	if err != nil {
		return nil, fmt.Errorf("cannot read the SyncTarget %s: %w", syncTarget.Name, err)
	}
	if object.GetUID() != syncTarget.UID {
		return nil, fmt.Errorf("the SyncTarget %s was replaced", syncTarget.Name)
	}
	fresh := &edgev2alpha1.SyncTarget{}
	return fresh, runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, fresh)
}

// placedResources are the resources of the target that the hub may have written objects of.
func placedResources(recorded []ledger.Resource) []schema.GroupVersionResource {
	var resources []schema.GroupVersionResource
	for _, entry := range recorded {
		resources = append(resources, schema.GroupResource(entry.GroupResource).WithVersion(entry.Version))
	}
	return resources
}

// recordDeparture writes the report into the status.
func (c *Controller) recordDeparture(ctx context.Context, inventory cluster.Cluster, name string, uid types.UID, running *departing, report edgev2alpha1.DepartureStatus) error {
	// Only the departure writes this field. A field that is absent from a merge patch would stay.
	fields := map[string]any{"remaining": nil, "removed": nil, "left": nil, "leftMore": nil}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&report)
	if err != nil {
		return err
	}
	maps.Copy(fields, content)
	data, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": uid}, "status": map[string]any{"departure": fields}})
	if err != nil {
		return err
	}
	syncTarget := &edgev2alpha1.SyncTarget{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if err := inventory.GetClient().Status().Patch(ctx, syncTarget, client.RawPatch(types.MergePatchType, data)); err != nil {
		return err
	}
	running.lock.Lock()
	running.report = &report
	running.lock.Unlock()
	c.TargetChanged(uid)
	return nil
}

// reportDrain sets the condition Drained of a SyncTarget that is not being deleted.
func reportDrain(syncTarget *edgev2alpha1.SyncTarget, health targets.Health, found circumstances) {
	status := &syncTarget.Status
	if !syncTarget.Spec.Drain {
		meta.RemoveStatusCondition(&status.Conditions, edgev2alpha1.ConditionDrained)
		status.Departure = nil
		return
	}
	condition := metav1.Condition{Type: edgev2alpha1.ConditionDrained, Status: metav1.ConditionFalse, Reason: ReasonDraining, ObservedGeneration: syncTarget.Generation}
	switch {
	case syncTarget.Spec.Suspend:
		condition.Reason, condition.Message = ReasonSuspended, "Nothing is removed while spec.suspend is true."
	case found.problem != nil:
		condition.Reason, condition.Message = found.problem.reason, found.problem.message
	case found.drain != nil && found.drain.ended():
		condition.Status, condition.Reason, condition.Message = metav1.ConditionTrue, ReasonDrained, found.drain.progress()
	case !health.Up:
		condition.Reason, condition.Message = health.Reason, health.Message
	case found.drain != nil:
		condition.Message = found.drain.progress()
	default:
		condition.Message = "The hub looks for what it placed on the target."
	}
	meta.SetStatusCondition(&status.Conditions, condition)
}
