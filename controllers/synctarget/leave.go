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
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/kcp-dev/logicalcluster/v3"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	mcreconcile "sigs.k8s.io/multicluster-runtime/pkg/reconcile"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/controllers/departure"
	"github.com/synchub-dev/synchub/controllers/mailbox"
	"github.com/synchub-dev/synchub/controllers/notice"
	"github.com/synchub-dev/synchub/controllers/patch"
	"github.com/synchub-dev/synchub/controllers/syncmanager"
	"github.com/synchub-dev/synchub/provider/ledger"
	"github.com/synchub-dev/synchub/provider/targets"
)

const (
	// forceGrace is how long a forced removal gives a target that answers to let things go.
	forceGrace = 30 * time.Second
	// answerTimeout is how long a target that is to be let go by force may take to show that it answers.
	answerTimeout = 3 * time.Second
	// reconcileTimeout bounds what kcp and a target may take for one look at a SyncTarget.
	reconcileTimeout = 2 * time.Minute
)

// leave brings the target of a SyncTarget that is being deleted to its end, or says what that waits for. Then the mailbox
// goes, and with it the SyncTarget.
func (c *Controller) leave(ctx context.Context, request mcreconcile.Request, inventory cluster.Cluster, syncTarget *edgev2alpha1.SyncTarget) (reconcile.Result, error) {
	uid := syncTarget.UID
	if !controllerutil.ContainsFinalizer(syncTarget, mailbox.Finalizer) {
		c.Stop(uid)
		return reconcile.Result{}, nil
	}
	if c.Departed(uid) {
		return reconcile.Result{}, nil
	}
	going, err := mailbox.InventoryGoing(ctx, inventory)
	if err != nil {
		return reconcile.Result{}, fmt.Errorf("cannot tell whether the inventory workspace itself is going: %w", err)
	}
	if going != "" {
		// Nobody asked for the end of this target's workload.
		c.Stop(uid)
		return reconcile.Result{}, nil
	}
	c.see(request, uid)
	c.sync.Unassign(uid)
	c.sync.SetHalt(uid, syncmanager.Halt{SyncTarget: syncTarget.Name, Mailbox: logicalcluster.Name(c.ledger.Get(uid).Mailbox), Reason: ReasonDeparting})
	if c.place(request, uid) != mailbox.PlaceTaken {
		return c.finish(ctx, inventory, syncTarget, ReasonDeparted, "It had no mailbox.")
	}
	memory := c.remember(uid)
	c.expect(syncTarget, memory)
	connection, problem, err := c.connect(ctx, inventory, syncTarget, memory)
	if err != nil {
		return reconcile.Result{}, err
	}
	if connection == nil || !connection.Up() {
		return c.awaitTarget(ctx, inventory, syncTarget, connection, problem)
	}
	running, err := c.depart(ctx, request, inventory, syncTarget, connection, modeOf(syncTarget))
	switch {
	case err != nil:
		return reconcile.Result{}, err
	case running == nil:
		return reconcile.Result{RequeueAfter: time.Second}, nil
	case running.ended():
		return c.finish(ctx, inventory, syncTarget, ReasonDeparted, "Nothing is left to be done on the target.")
	case !isForced(syncTarget):
		return c.tell(ctx, inventory, syncTarget, ReasonDeparting, "The SyncTarget is being deleted. "+running.progress(), heartbeatCondition(connection.Health(), nil))
	}
	if left := forceGrace - c.clock.Since(running.began); left > 0 && answers(ctx, connection) {
		return reconcile.Result{RequeueAfter: left}, nil
	}
	return c.force(ctx, inventory, syncTarget, running.progress())
}

// answers tells whether the target is there now: one that hangs counts as up until some probes have failed.
func answers(ctx context.Context, connection *targets.Connection) bool {
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	return connection.Answers(ctx)
}

// awaitTarget is for a target that cannot be reached: what may be left there is not forgotten unless somebody says so.
func (c *Controller) awaitTarget(ctx context.Context, inventory cluster.Cluster, syncTarget *edgev2alpha1.SyncTarget, connection *targets.Connection, problem *credentialsError) (reconcile.Result, error) {
	fresh, err := c.reread(ctx, inventory, syncTarget)
	if err != nil {
		return reconcile.Result{}, err
	}
	var health targets.Health
	if connection != nil {
		health = connection.Health()
	}
	why := health.Message
	if problem != nil {
		why = problem.message
	}
	left := leftOn(c.ledger.Get(syncTarget.UID).Resources, fresh.Status.Departure)
	switch {
	case left == "":
		return c.finish(ctx, inventory, syncTarget, ReasonDeparted, "Nothing was left on the target.")
	case isForced(syncTarget):
		return c.force(ctx, inventory, syncTarget, left)
	default:
		return c.tell(ctx, inventory, syncTarget, ReasonDepartureWaiting, fmt.Sprintf("%s The target cannot be reached: %s The hub waits until it can, or until the annotation %s=true is set.",
			left, why, edgev2alpha1.AnnotationForceRemoval), heartbeatCondition(health, problem))
	}
}

// force lets a SyncTarget go although something may be left, and says what.
func (c *Controller) force(ctx context.Context, inventory cluster.Cluster, syncTarget *edgev2alpha1.SyncTarget, left string) (reconcile.Result, error) {
	c.endDeparture(syncTarget.UID)
	if err := notice.Warn(ctx, inventory.GetClient(), c.clock, syncTarget, ReasonForced, "The SyncTarget is let go. "+left); err != nil {
		return reconcile.Result{}, err
	}
	return c.finish(ctx, inventory, syncTarget, ReasonForced, "The SyncTarget is let go by force. "+left)
}

// finish lets the mailbox go.
func (c *Controller) finish(ctx context.Context, inventory cluster.Cluster, syncTarget *edgev2alpha1.SyncTarget, reason, message string) (reconcile.Result, error) {
	c.lock.Lock()
	c.departed[syncTarget.UID] = true
	c.lock.Unlock()
	return c.tell(ctx, inventory, syncTarget, reason, message)
}

// tell writes why a SyncTarget that is being deleted is not ready, with other conditions.
func (c *Controller) tell(ctx context.Context, inventory cluster.Cluster, syncTarget *edgev2alpha1.SyncTarget, reason, message string, conditions ...metav1.Condition) (reconcile.Result, error) {
	stored := syncTarget.DeepCopy()
	for _, kind := range []string{edgev2alpha1.ConditionReady, edgev2alpha1.ConditionSyncerReady} {
		conditions = append(conditions, metav1.Condition{Type: kind, Status: metav1.ConditionFalse, Reason: reason, Message: message})
	}
	changed := false
	for _, condition := range conditions {
		condition.ObservedGeneration = syncTarget.Generation
		changed = meta.SetStatusCondition(&syncTarget.Status.Conditions, condition) || changed
	}
	if !changed {
		return reconcile.Result{}, nil
	}
	return patch.Status(ctx, inventory.GetClient(), stored, syncTarget)
}

// Departed tells whether a SyncTarget that is being deleted has nothing more to do on its target.
func (c *Controller) Departed(syncTarget types.UID) bool {
	c.lock.Lock()
	defer c.lock.Unlock()
	return c.departed[syncTarget]
}

func modeOf(syncTarget *edgev2alpha1.SyncTarget) departure.Mode {
	if syncTarget.Spec.DeletionPolicy == edgev2alpha1.DeletionPolicyDelete {
		return departure.Delete
	}
	return departure.Orphan
}

func isForced(syncTarget *edgev2alpha1.SyncTarget) bool {
	return syncTarget.Annotations[edgev2alpha1.AnnotationForceRemoval] == "true"
}

// named is how many resources or objects a message names.
const named = 5

// leftOn says what may be left on a target that cannot be asked, empty if nothing.
func leftOn(recorded []ledger.Resource, departure *edgev2alpha1.DepartureStatus) string {
	if len(recorded) == 0 {
		return ""
	}
	var resources []string
	for _, resource := range recorded {
		resources = append(resources, schema.GroupResource(resource.GroupResource).String())
	}
	slices.Sort(resources)
	text := fmt.Sprintf("Objects of %d resources may be left on the target: %s.", len(resources), firstOf(resources))
	if departure != nil {
		text = describe(*departure) + " " + text
	}
	return text
}

// describe says how far a departure is.
func describe(report edgev2alpha1.DepartureStatus) string {
	text := "How many objects are still to go cannot be told."
	if report.Remaining != nil {
		text = fmt.Sprintf("%d objects are still to go, %d are gone.", *report.Remaining, report.Removed)
	}
	if len(report.Left) == 0 {
		return text
	}
	var left []string
	for _, object := range report.Left {
		left = append(left, fmt.Sprintf("%s %s (%s)", object.Resource, types.NamespacedName{Namespace: object.Namespace, Name: object.Name}, object.Reason))
	}
	return fmt.Sprintf("%s %d stay: %s.", text, len(report.Left)+int(report.LeftMore), firstOf(left))
}

func firstOf(all []string) string {
	if len(all) > named {
		return strings.Join(all[:named], ", ") + fmt.Sprintf(" and %d more", len(all)-named)
	}
	return strings.Join(all, ", ")
}
