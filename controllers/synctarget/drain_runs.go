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
	"github.com/synchub-dev/synchub/controllers/internal/status"
	"github.com/synchub-dev/synchub/controllers/plan/cleanup"
	"github.com/synchub-dev/synchub/controllers/plan/tenancy"
	"github.com/synchub-dev/synchub/controllers/synctarget/drain"
	"github.com/synchub-dev/synchub/provider/ledger"
	"github.com/synchub-dev/synchub/provider/targets"
)

// drainRun is a drain of one target, running or finished.
type drainRun struct {
	mode       cleanup.Mode
	connection *targets.Connection
	startedAt  time.Time
	cancel     context.CancelFunc
	// done is closed when the drain's goroutine has ended.
	done chan struct{}

	lock     gosync.Mutex
	status   *edgev2alpha1.CleanupStatus
	finished bool
}

// isFinished reports whether the drain has nothing left to do.
func (d *drainRun) isFinished() bool {
	d.lock.Lock()
	defer d.lock.Unlock()
	return d.finished
}

// progressMessage describes the progress for a condition.
func (d *drainRun) progressMessage() string {
	d.lock.Lock()
	defer d.lock.Unlock()
	if d.status == nil {
		return "The hub is listing its objects on the target."
	}
	return cleanupMessage(*d.status)
}

// setStatus stores the progress of the drain.
func (d *drainRun) setStatus(report edgev2alpha1.CleanupStatus) {
	d.lock.Lock()
	defer d.lock.Unlock()
	d.status = &report
}

func (d *drainRun) setFinished() {
	d.lock.Lock()
	defer d.lock.Unlock()
	d.finished = true
}

// currentDrain returns the running or finished drain of this mode and connection. It stops another drain, and returns nil.
func (s *store) currentDrain(syncTarget types.UID, mode cleanup.Mode, connection *targets.Connection) *drainRun {
	if running := s.get(syncTarget).drain; running != nil && running.mode == mode && running.connection == connection {
		return running
	}
	s.stopDrain(syncTarget)
	return nil
}

// startDrain returns the running or finished drain of this mode and connection, and starts one if there is none. It returns nil
// while the hub does not know all it needs to start.
func (c *Controller) startDrain(ctx context.Context, request mcreconcile.Request, inventory cluster.Cluster, syncTarget *edgev2alpha1.SyncTarget,
	connection *targets.Connection, mode cleanup.Mode,
) (*drainRun, error) {
	// The caller keeps writing to its copy of the SyncTarget.
	name, uid := syncTarget.Name, syncTarget.UID
	if running := c.store.currentDrain(uid, mode, connection); running != nil {
		return running, nil
	}
	c.store.lock.Lock()
	parent := c.store.runContext
	c.store.lock.Unlock()
	// The PublishedResource decides whether a namespace may be deleted with its contents.
	if parent == nil || !c.Sync.HasPublished() || c.History.Holds(uid) {
		return nil, nil
	}
	// The cache may lack the last report of the previous leader.
	current, err := getFromServer(ctx, inventory, syncTarget)
	if err != nil {
		return nil, err
	}
	known := c.Ledger.Get(uid)
	runContext, cancel := context.WithCancel(c.Role.Context(parent, uid))
	started := &drainRun{mode: mode, connection: connection, startedAt: c.Clock.Now(), cancel: cancel, done: make(chan struct{})}
	c.store.setDrain(uid, started)
	options := drain.Options{
		Target:             drain.TargetOf(connection),
		Owner:              c.Sync.Owner(uid),
		Mode:               mode,
		Identities:         tenancy.IdentitiesOf(syncTarget.Spec.Tenancy),
		HasTenants:         !tenancy.NamingOf(syncTarget.Spec.Tenancy).IsShared() || len(known.TenantResources) > 0,
		Resources:          writtenResources(known.Resources),
		ServedResources:    servedResources(known.Resources),
		ReadableNamespaces: connection.Namespaces,
		WrittenNamespaces:  writtenNamespaces(known),
		AllowsCascade:      c.Sync.AllowsCascade,
		PreviousStatus:     current.Status.Cleanup,
		StoreStatus: func(ctx context.Context, report edgev2alpha1.CleanupStatus) error {
			err := storeCleanupStatus(ctx, inventory, name, uid, report)
			if err == nil {
				started.setStatus(report)
				c.store.enqueue(uid)
			}
			return err
		},
		OnDeleted:  c.removalRecorder(request, status.JournalRemoved, mode),
		OnReleased: c.removalRecorder(request, status.JournalReleased, mode),
		Clock:      c.Clock,
		Log:        log.FromContext(ctx).WithValues("syncTarget", request.String(), "mode", mode),
	}
	go func() {
		defer close(started.done)
		if drain.Run(runContext, options) == nil {
			started.setFinished()
			c.store.enqueue(uid)
		}
	}()
	return started, nil
}

// removalRecorder returns a function that logs the objects that a drain removes from the target of a SyncTarget, or releases there.
func (c *Controller) removalRecorder(request mcreconcile.Request, message string, mode cleanup.Mode) func(schema.GroupResource, types.NamespacedName) {
	return func(resource schema.GroupResource, object types.NamespacedName) {
		c.Journal.Record(status.JournalEntry{
			Message: message, SyncTarget: request.Name, Inventory: string(request.ClusterName), Resource: resource, Reason: string(mode),
		}, object, "")
	}
}

// stopDrain cancels the drain of the SyncTarget, if there is one, and returns when it has ended.
func (s *store) stopDrain(syncTarget types.UID) {
	if running := s.setDrain(syncTarget, nil); running != nil {
		running.cancel()
		<-running.done
	}
}

// getFromServer reads a SyncTarget from kcp, past the cache. It fails if another SyncTarget has taken the name.
func getFromServer(ctx context.Context, inventory cluster.Cluster, syncTarget *edgev2alpha1.SyncTarget) (*edgev2alpha1.SyncTarget, error) {
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
	current := &edgev2alpha1.SyncTarget{}
	return current, runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, current)
}

// writtenResources returns the resources of the target in which the hub may have written objects.
func writtenResources(recorded []ledger.Resource) []schema.GroupVersionResource {
	var resources []schema.GroupVersionResource
	for _, entry := range recorded {
		resources = append(resources, schema.GroupResource(entry.GroupResource).WithVersion(entry.Version))
	}
	return resources
}

// servedResources returns the resources of the target that it has served to the hub.
func servedResources(recorded []ledger.Resource) []schema.GroupResource {
	var served []schema.GroupResource
	for _, entry := range recorded {
		if entry.Served {
			served = append(served, schema.GroupResource(entry.GroupResource))
		}
	}
	return served
}

// storeCleanupStatus writes the report of a drain into status.cleanup.
func storeCleanupStatus(ctx context.Context, inventory cluster.Cluster, name string, uid types.UID, report edgev2alpha1.CleanupStatus) error {
	// Only the drain writes this field. A merge patch keeps fields that it does not name, so every field is named.
	fields := map[string]any{"remaining": nil, "removed": nil, "left": nil, "leftMore": nil}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&report)
	if err != nil {
		return err
	}
	maps.Copy(fields, content)
	data, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": uid}, "status": map[string]any{"cleanup": fields}})
	if err != nil {
		return err
	}
	syncTarget := &edgev2alpha1.SyncTarget{ObjectMeta: metav1.ObjectMeta{Name: name}}
	return inventory.GetClient().Status().Patch(ctx, syncTarget, client.RawPatch(types.MergePatchType, data))
}

// setDrainedCondition sets the condition Drained of a SyncTarget that is not being deleted, or removes it with status.cleanup.
func setDrainedCondition(syncTarget *edgev2alpha1.SyncTarget, health targets.Health, found observedState) {
	status := &syncTarget.Status
	if !syncTarget.Spec.Drain {
		meta.RemoveStatusCondition(&status.Conditions, edgev2alpha1.ConditionDrained)
		status.Cleanup = nil
		return
	}
	condition := metav1.Condition{Type: edgev2alpha1.ConditionDrained, Status: metav1.ConditionFalse, Reason: ReasonDraining, ObservedGeneration: syncTarget.Generation}
	switch {
	case syncTarget.Spec.Suspend:
		condition.Reason, condition.Message = ReasonSuspended, "Nothing is removed while spec.suspend is true."
	case found.problem != nil:
		condition.Reason, condition.Message = found.problem.reason, found.problem.message
	case found.drain != nil && found.drain.isFinished():
		condition.Status, condition.Reason, condition.Message = metav1.ConditionTrue, ReasonDrained, found.drain.progressMessage()
	case !health.Up:
		condition.Reason, condition.Message = health.Reason, health.Message
	case found.drain != nil:
		condition.Message = found.drain.progressMessage()
	default:
		condition.Message = "The hub is listing its objects on the target."
	}
	meta.SetStatusCondition(&status.Conditions, condition)
}
