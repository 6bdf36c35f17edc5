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
	"slices"
	"time"

	"github.com/kcp-dev/logicalcluster/v3"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/multicluster-runtime/pkg/multicluster"
	mcreconcile "sigs.k8s.io/multicluster-runtime/pkg/reconcile"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/controllers/agent/assignment"
	"github.com/synchub-dev/synchub/controllers/objectsync/plan"
	"github.com/synchub-dev/synchub/controllers/synctarget/drain"
	"github.com/synchub-dev/synchub/provider/ledger"
)

// AgentReconciler keeps the one SyncTarget of an agent in sync, as [Controller] does for those of inventory workspaces. The SyncTarget comes from
// an assignment, and its status goes into a report. One goroutine at a time may use it.
type AgentReconciler struct {
	controller *Controller
	// status is that of the last call, or from before a restart.
	status edgev2alpha1.SyncTargetStatus
}

// NewAgentReconciler returns an AgentReconciler with the Registry, Sync, Ledger, Clock and Log of the options. status is the last one from before a restart.
func NewAgentReconciler(options Options, status edgev2alpha1.SyncTargetStatus) *AgentReconciler {
	return &AgentReconciler{controller: NewController(options), status: status}
}

// Reconcile connects to the cluster, and assigns or drains it as the assignment says. It returns the status of the SyncTarget, and
// whether a cleanup that the assignment asks for has nothing left to do. ctx ends what it starts.
func (r *AgentReconciler) Reconcile(ctx context.Context, assigned *assignment.Assignment, kubeconfig []byte) (status edgev2alpha1.SyncTargetStatus, finished bool, err error) {
	c := r.controller
	syncTarget := localSyncTarget(assigned)
	syncTarget.Status = *r.status.DeepCopy()
	request := mcreconcile.Request{ClusterName: multicluster.ClusterName(assigned.SyncTarget.Inventory)}
	request.Name = syncTarget.Name
	c.track(request, syncTarget.UID)
	c.History.SetSyncTarget(syncTarget.UID, time.Time{}, syncTarget.Annotations[edgev2alpha1.AnnotationConfirmedRestore])
	state := c.stateOf(syncTarget.UID)
	observed := observedState{mailbox: logicalcluster.Name(assigned.Mailbox), mailboxPath: assigned.Mailbox}
	trusted := c.expectCluster(syncTarget, state)
	if observed.connection, err = c.Registry.Connect(syncTarget.UID, kubeconfig, limitsOf(syncTarget), namespacesOf(syncTarget)...); err != nil {
		return r.status, false, err
	}
	observed.trustedUntil = trusted.forConnection(observed.connection)
	if err := c.identifyCluster(ctx, request, syncTarget, &observed, state); err != nil {
		return r.status, false, err
	}
	c.startOrStopSync(request, syncTarget, observed)
	if mode, ok := drainModes[assigned.Mode]; ok && !c.History.Holds(syncTarget.UID) {
		observed.drain = r.ensureDrain(ctx, syncTarget, observed, mode)
		finished = observed.drain != nil && observed.drain.isFinished()
	} else {
		c.stopDrain(syncTarget.UID)
	}
	view := c.newView(syncTarget, observed)
	view.apply(syncTarget, state)
	if observed.drain != nil {
		syncTarget.Status.Cleanup = observed.drain.cleanupStatus()
	}
	err = c.setRecordedStatus(ctx, syncTarget, view)
	r.status = syncTarget.Status
	return *r.status.DeepCopy(), finished, err
}

// drainModes are the modes of drains, by the mode of the assignment.
var drainModes = map[assignment.Mode]drain.Mode{
	assignment.ModeDrain: drain.ModeDrain, assignment.ModeDelete: drain.ModeDelete, assignment.ModeOrphan: drain.ModeOrphan,
}

// localSyncTarget returns the SyncTarget of an assignment. One that is being deleted is drained. One with a mode that this version does not
// know is suspended.
func localSyncTarget(assigned *assignment.Assignment) *edgev2alpha1.SyncTarget {
	syncTarget := &edgev2alpha1.SyncTarget{Spec: *assigned.SyncTarget.Spec.DeepCopy()}
	syncTarget.Name, syncTarget.UID, syncTarget.Generation = assigned.SyncTarget.Name, assigned.SyncTarget.UID, assigned.SyncTarget.Generation
	syncTarget.Labels, syncTarget.Annotations = assigned.SyncTarget.Labels, assigned.SyncTarget.Annotations
	_, syncTarget.Spec.Drain = drainModes[assigned.Mode]
	syncTarget.Spec.Suspend = !syncTarget.Spec.Drain && assigned.Mode != assignment.ModeSync
	return syncTarget
}

// ensureDrain returns the drain of this mode and connection, and starts one if there is none. It returns nil while it cannot start.
func (r *AgentReconciler) ensureDrain(ctx context.Context, syncTarget *edgev2alpha1.SyncTarget, observed observedState, mode drain.Mode) *drainRun {
	c, uid := r.controller, syncTarget.UID
	if running := c.currentDrain(uid, mode, observed.connection); running != nil {
		return running
	}
	if !observed.identified || !c.Sync.HasPublished() {
		return nil
	}
	return c.launchDrain(ctx, uid, observed.connection, mode, ruledResources(c.Sync.Published()), syncTarget.Status.Cleanup, log.FromContext(ctx).WithValues("syncTarget", syncTarget.Name, "mode", mode),
		func(_ context.Context, started *drainRun, report edgev2alpha1.CleanupStatus) error {
			started.setStatus(report)
			return nil
		})
}

// ruledResources returns the resources of the target to which the rules lead. An agent that was installed again has an empty ledger,
// although its predecessor has written objects.
func ruledResources(published []plan.Resource) (resources []schema.GroupVersionResource) {
	for _, resource := range published {
		resources = append(resources, resource.TargetAPI().GroupVersionResource)
	}
	return resources
}

// RestoreLedger records what the last report of the agent's predecessor in the same cluster says about the resources that it has written,
// unless the ledger says so itself.
func RestoreLedger(ctx context.Context, store *ledger.Store, assigned *assignment.Assignment, last edgev2alpha1.SyncTargetStatus) error {
	uid := assigned.SyncTarget.UID
	if len(last.SyncedResources) == 0 || len(store.Get(uid).Resources) > 0 {
		return nil
	}
	return store.Update(ctx, uid, func(entry *ledger.Entry) {
		entry.Name, entry.Inventory, entry.Resources = assigned.SyncTarget.Name, assigned.SyncTarget.Inventory, recordedResources(last.SyncedResources)
		entry.Namespaces = slices.Clone(namespacesOf(localSyncTarget(assigned)))
	})
}
