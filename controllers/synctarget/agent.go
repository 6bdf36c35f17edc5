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
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"time"

	"github.com/kcp-dev/logicalcluster/v3"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	mcreconcile "sigs.k8s.io/multicluster-runtime/pkg/reconcile"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/controllers/agent/assignment"
	"github.com/synchub-dev/synchub/controllers/copystates"
	"github.com/synchub-dev/synchub/controllers/internal/events"
	"github.com/synchub-dev/synchub/controllers/internal/topic"
	"github.com/synchub-dev/synchub/controllers/objectsync/plan/ownership"
	"github.com/synchub-dev/synchub/provider/inventories"
	"github.com/synchub-dev/synchub/provider/ledger"
	"github.com/synchub-dev/synchub/provider/targets"
)

const (
	// agentPollInterval is how often the hub reads the Lease of an agent: one GET, in the class of background requests.
	agentPollInterval = 15 * time.Second
	// agentSilentAfter is how long the hub goes on to believe the last report of an agent. An agent reports every 20 seconds.
	agentSilentAfter = 90 * time.Second
	// agentResyncInterval is how often the hub compares the agent's identity and assignment in the mailbox, which it does not watch.
	agentResyncInterval = 10 * time.Minute
)

// AgentOptions are the dependencies for SyncTargets with an agent.
type AgentOptions struct {
	// Rules are the rules for all agents. Without, SyncTargets with an agent stay unready.
	Rules *assignment.RulesStore
	// WorkspaceConfig returns a client config for a workspace with the hub's own rights.
	WorkspaceConfig func(workspace string) *rest.Config
	// BindingSelector selects the binding of the mailbox export in mailboxes.
	BindingSelector string
	// Copies gets the states of the copies on the clusters; nil if nobody asks for them.
	Copies *copystates.Store
}

// changed notifies about new rules; nil without rules.
func (o AgentOptions) changed() *topic.Topic[struct{}] {
	if o.Rules == nil {
		return nil
	}
	return &o.Rules.Changed
}

// setAgent remembers whether an agent syncs the SyncTarget.
func (c *Controller) setAgent(syncTarget *edgev2alpha1.SyncTarget) {
	c.lock.Lock()
	defer c.lock.Unlock()
	if state := c.states[syncTarget.UID]; state != nil {
		state.isAgent = isAgent(syncTarget)
	}
}

// agentState is the hub's state of an agent between two reconciles.
type agentState struct {
	// written is the hash of the last assignment without its sequence, see hashOf. content and seal are the assignment as it is stored, and
	// ensuredAt is when the mailbox was last compared with it; zero if it must be.
	written   [sha256.Size]byte
	sequence  int64
	content   []byte
	seal      string
	ensuredAt time.Time
	// report is the last report, and seenAt when this replica first read it, by its own clock. seenAt is zero if the
	// age of the first report that this replica has read is unknown.
	report *assignment.Report
	seenAt time.Time
	// leaseRead is true once this replica has read the agent's Lease.
	leaseRead bool
	// copies is the sequence of the states of copies that were read last.
	copies int64
}

// isAgent reports whether an agent syncs the SyncTarget.
func isAgent(syncTarget *edgev2alpha1.SyncTarget) bool {
	return syncTarget.Spec.Mode == edgev2alpha1.SyncModeAgent
}

// agentModeOf returns what the agent of a SyncTarget must do.
func agentModeOf(syncTarget *edgev2alpha1.SyncTarget) assignment.Mode {
	switch {
	case syncTarget.DeletionTimestamp != nil && syncTarget.Spec.DeletionPolicy == edgev2alpha1.DeletionPolicyDelete:
		return assignment.ModeDelete
	case syncTarget.DeletionTimestamp != nil:
		return assignment.ModeOrphan
	case syncTarget.Spec.Suspend:
		return assignment.ModeSuspend
	case syncTarget.Spec.Drain:
		return assignment.ModeDrain
	default:
		return assignment.ModeSync
	}
}

// agentModeOf returns the same, but suspends the agent while kcp may lack what the agent placed.
func (c *Controller) agentModeOf(syncTarget *edgev2alpha1.SyncTarget) assignment.Mode {
	if c.History.Holds(syncTarget.UID) {
		return assignment.ModeSuspend
	}
	return agentModeOf(syncTarget)
}

// reconcileAgent writes the assignment of an agent, reads its report, and writes the status of the SyncTarget. The hub makes no
// connection to the cluster.
func (c *Controller) reconcileAgent(ctx context.Context, request mcreconcile.Request, inventory cluster.Cluster, syncTarget *edgev2alpha1.SyncTarget) (reconcile.Result, error) {
	// The counts of all SyncTargets are known only once the manager has heard of each.
	c.Sync.StopSync(syncTarget.UID)
	state := c.stateOf(syncTarget.UID)
	located, err := c.Mailboxes.Locate(ctx, logicalcluster.Name(request.ClusterName), syncTarget)
	if err != nil {
		return reconcile.Result{}, err
	}
	problem, err := c.talkToAgent(ctx, request, inventory, syncTarget, located, state)
	if err != nil {
		return reconcile.Result{}, err
	}
	stored := syncTarget.DeepCopy()
	c.setAgentStatus(syncTarget, located, problem, state)
	c.setAgentStoreWentBack(syncTarget)
	c.Readiness.Set(syncTarget.UID, isSynced(syncTarget), c.Clock.Now())
	c.setConditions(state, syncTarget.Status.Conditions)
	result := reconcile.Result{RequeueAfter: agentPollInterval}
	if apiequality.Semantic.DeepEqual(stored.Status, syncTarget.Status) && !state.isForgedHub(stored.Status.Hub, c.Replica) {
		return result, nil
	}
	written, err := c.patchStatus(ctx, inventory, stored, syncTarget)
	if apierrors.IsInvalid(err) && state.agent.report != nil {
		state.agent.refuse(err)
		return reconcile.Result{RequeueAfter: time.Second}, nil
	}
	if err != nil || written.RequeueAfter > 0 {
		return written, err
	}
	return result, nil
}

// refuse replaces the status in the last report by the problem that kcp does not accept it. Otherwise the status of the SyncTarget would
// stay as it was before, whatever that said.
func (a *agentState) refuse(err error) {
	a.report.Status = edgev2alpha1.SyncTargetStatus{}
	a.report.Problem = events.Truncate("kcp refuses the status that it reports: " + err.Error())
}

// talkToAgent writes the assignment and reads the report. It returns a problem that the status shows; the error is one of kcp.
func (c *Controller) talkToAgent(ctx context.Context, request mcreconcile.Request, inventory cluster.Cluster, syncTarget *edgev2alpha1.SyncTarget,
	located logicalcluster.Name, state *syncTargetState,
) (*blocker, error) {
	key, problem, err := c.kubeconfig(ctx, inventory, syncTarget, state)
	if err != nil || problem != nil {
		return problem, err
	}
	if len(key) != assignment.KeyLength {
		return &blocker{ReasonCredentialsRefused, fmt.Sprintf("The key in the Secret does not have %d bytes: run `kubectl synchub register %s --mode=agent -o yaml` again.", assignment.KeyLength, syncTarget.Name)}, nil
	}
	rules, version := assignment.Rules{}, int64(0)
	if c.Agents.Rules != nil {
		rules, version = c.Agents.Rules.Rules()
	}
	if located == "" || version == 0 {
		return nil, nil
	}
	sealer := ownership.NewSealer(key)
	mailbox, err := newAgentMailbox(c.Agents.WorkspaceConfig(located.String()))
	if err != nil {
		return nil, err
	}
	if err := c.readReport(ctx, mailbox, sealer, syncTarget, located, state); err != nil {
		return nil, err
	}
	if err := c.recordAgentCluster(ctx, request, syncTarget, state); err != nil {
		return nil, err
	}
	if err := c.readCopies(ctx, mailbox, sealer, syncTarget, located, state); err != nil {
		return nil, err
	}
	err = c.writeAssignment(ctx, request, mailbox, sealer, syncTarget, located, rules, version, state)
	if errors.Is(err, assignment.ErrTooLarge) {
		return &blocker{ReasonAssignmentFailed, fmt.Sprintf("The published rules do not fit into one object for the agent: %v.", err)}, nil
	}
	return nil, err
}

// readReport reads the report of the agent.
func (c *Controller) readReport(ctx context.Context, mailbox *agentMailbox, sealer *ownership.Sealer, syncTarget *edgev2alpha1.SyncTarget, located logicalcluster.Name, state *syncTargetState) error {
	text, seal, err := mailbox.getReport(ctx)
	if err != nil {
		return err
	}
	state.agent.leaseRead = true
	if text == "" {
		return nil
	}
	c.acceptReport(ctx, sealer, text, seal, syncTarget, located, state)
	return nil
}

// acceptReport stores a report in the state. It ignores one without a valid seal, or older than the last one.
func (c *Controller) acceptReport(ctx context.Context, sealer *ownership.Sealer, text, seal string, syncTarget *edgev2alpha1.SyncTarget, located logicalcluster.Name, state *syncTargetState) {
	report, err := assignment.OpenReport(sealer, located.String(), text, seal)
	if err != nil || report.SyncTarget != syncTarget.UID {
		log.FromContext(ctx).V(1).Info("ignoring a report that is not the agent's", "syncTarget", syncTarget.Name, "error", fmt.Sprint(err))
		return
	}
	switch before := state.agent.report; {
	case before == nil:
		state.agent.report = report
		// Its sequence is the time of the agent's clock. A report of the last minute counts at once, an older one may be a former state
		// that somebody has put back.
		if sent := time.UnixMilli(report.Sequence); c.Clock.Since(sent) >= 0 && c.Clock.Since(sent) < agentSilentAfter {
			state.agent.seenAt = sent
		}
	case report.Sequence > before.Sequence:
		state.agent.report, state.agent.seenAt = report, c.Clock.Now()
	}
}

// maxAgentCluster bounds the ID of a cluster in a report, since the ledger holds it. A UID has 36 characters.
const maxAgentCluster = 64

// recordAgentCluster records in the ledger which cluster the agent syncs: the first one, or one that an operator has confirmed since. The agent
// learns of it by its assignment.
func (c *Controller) recordAgentCluster(ctx context.Context, request mcreconcile.Request, syncTarget *edgev2alpha1.SyncTarget, state *syncTargetState) error {
	report := state.agent.report
	if report == nil || report.Cluster == "" || len(report.Cluster) > maxAgentCluster {
		return nil
	}
	known := c.Ledger.Get(syncTarget.UID).Cluster.ID
	isFirst := known == "" && meta.IsStatusConditionTrue(report.Status.Conditions, edgev2alpha1.ConditionHeartbeatHealthy)
	isConfirmed := known != report.Cluster && syncTarget.Annotations[edgev2alpha1.AnnotationConfirmedCluster] == report.Cluster
	if !isFirst && !isConfirmed {
		return nil
	}
	return c.Ledger.Update(ctx, syncTarget.UID, func(entry *ledger.Entry) {
		entry.Name, entry.Inventory = syncTarget.Name, string(request.ClusterName)
		entry.ConfirmCluster(ledger.Cluster{ID: report.Cluster}, c.Clock.Now())
	})
}

// readCopies reads the states of the copies if the report says that there are newer ones.
func (c *Controller) readCopies(ctx context.Context, mailbox *agentMailbox, sealer *ownership.Sealer, syncTarget *edgev2alpha1.SyncTarget, located logicalcluster.Name, state *syncTargetState) error {
	report := state.agent.report
	if c.Agents.Copies == nil || report == nil || report.Copies <= state.agent.copies {
		return nil
	}
	stored, err := mailbox.getCopies(ctx)
	if err != nil || stored == nil {
		return err
	}
	states, err := copystates.Decode(sealer, syncTarget.UID, located.String(), stored)
	if err != nil || states.Sequence() < report.Copies {
		// Somebody has changed the ConfigMap, or put earlier states back.
		log.FromContext(ctx).V(1).Info("ignoring states of copies that are not the agent's last ones", "syncTarget", syncTarget.Name, "error", fmt.Sprint(err))
		return nil
	}
	state.agent.copies = states.Sequence()
	c.Agents.Copies.Set(syncTarget.UID, states)
	return nil
}

// refusesAssignment reports whether the agent has said, since the mailbox was last compared with the assignment, that another one is in force,
// or that it cannot use the stored one. Somebody may have changed the stored one, or put a former one back.
func (a *agentState) refusesAssignment() bool {
	return a.report != nil && a.seenAt.After(a.ensuredAt) && (a.report.Assignment != a.sequence || a.report.Problem != "")
}

// writeAssignment writes the assignment if it changed, if the agent does not use it, and now and then.
func (c *Controller) writeAssignment(ctx context.Context, request mcreconcile.Request, mailbox *agentMailbox, sealer *ownership.Sealer,
	syncTarget *edgev2alpha1.SyncTarget, located logicalcluster.Name, rules assignment.Rules, rulesVersion int64, state *syncTargetState,
) error {
	annotations := inventories.ParameterAnnotations(syncTarget)
	for _, confirmation := range []string{edgev2alpha1.AnnotationConfirmedCluster, edgev2alpha1.AnnotationConfirmedRestore} {
		if confirmed := syncTarget.Annotations[confirmation]; confirmed != "" {
			annotations = maps.Clone(annotations)
			if annotations == nil {
				annotations = map[string]string{}
			}
			annotations[confirmation] = confirmed
		}
	}
	desired := &assignment.Assignment{
		Hub: c.Sync.Hub, Mailbox: located.String(), BindingSelector: c.Agents.BindingSelector, Mode: c.agentModeOf(syncTarget),
		ProtectedNamespaces: c.Sync.ProtectedNamespaces, Cluster: c.Ledger.Get(syncTarget.UID).Cluster.ID,
		SyncTarget: assignment.SyncTarget{
			Name: syncTarget.Name, UID: syncTarget.UID, Generation: syncTarget.Generation, Inventory: string(request.ClusterName),
			Labels: syncTarget.Labels, Annotations: annotations, Spec: syncTarget.Spec,
		},
	}
	agent := &state.agent
	now, hash := c.Clock.Now(), hashOf(desired, rulesVersion, sealer)
	changed := agent.content == nil || hash != agent.written
	if !changed && !agent.refusesAssignment() && now.Sub(agent.ensuredAt) < agentResyncInterval {
		return nil
	}
	if err := mailbox.ensureIdentity(ctx, rules); err != nil {
		return err
	}
	if changed {
		// The sequence is recorded first: two assignments must never have the same one.
		if err := c.Ledger.Update(ctx, syncTarget.UID, func(entry *ledger.Entry) {
			entry.Name, entry.Inventory = syncTarget.Name, string(request.ClusterName)
			entry.Assignment = max(entry.Assignment+1, now.UnixMilli())
		}); err != nil {
			return err
		}
		desired.Sequence = c.Ledger.Get(syncTarget.UID).Assignment
		desired.Rules = rules
		content, seal, err := assignment.SealAssignment(sealer, desired)
		if err != nil {
			return err
		}
		agent.content, agent.seal, agent.written, agent.sequence = content, seal, hash, desired.Sequence
		// If the write fails, it is repeated.
		agent.ensuredAt = time.Time{}
	}
	if err := mailbox.ensureAssignment(ctx, agent.content, agent.seal); err != nil {
		return err
	}
	agent.ensuredAt = now
	return nil
}

// hashOf returns a hash of an assignment without its rules, which take long to encode, of their version, and of the key.
func hashOf(desired *assignment.Assignment, rulesVersion int64, sealer *ownership.Sealer) [sha256.Size]byte {
	// All of it is text, numbers and API types.
	text, _ := json.Marshal(desired)
	return sha256.Sum256(fmt.Appendf(text, "/%d/%s", rulesVersion, sealer.SealText("agent-key", "")))
}

// agentHealth says whether the agent reports, as a condition HeartbeatHealthy. isKnown is false while the hub has just started and
// cannot know it.
func (c *Controller) agentHealth(syncTarget *edgev2alpha1.SyncTarget, state *syncTargetState) (condition metav1.Condition, isKnown bool) {
	condition = metav1.Condition{Type: edgev2alpha1.ConditionHeartbeatHealthy, Status: metav1.ConditionFalse, ObservedGeneration: syncTarget.Generation}
	agent, now := &state.agent, c.Clock.Now()
	switch {
	case agent.report == nil && !agent.leaseRead && now.Sub(state.since) < agentSilentAfter:
		return condition, false
	case agent.report == nil:
		condition.Status, condition.Reason = metav1.ConditionUnknown, ReasonAgentNotSeen
		condition.Message = fmt.Sprintf("No agent has reported yet. Apply the manifest of `kubectl synchub register %s --mode=agent -o yaml` to the cluster.", syncTarget.Name)
		return condition, true
	case agent.seenAt.IsZero() && now.Sub(state.since) < agentSilentAfter:
		return condition, false
	case agent.seenAt.IsZero() || now.Sub(agent.seenAt) >= agentSilentAfter:
		condition.Reason, condition.Message = ReasonAgentSilent, fmt.Sprintf("The agent in the cluster has not reported for %s or more. What it last said about the cluster is not repeated here.", agentSilentAfter)
		return condition, true
	case agent.report.Problem != "":
		condition.Status, condition.Reason, condition.Message = metav1.ConditionTrue, ReasonAssignmentFailed, "The agent reports a problem: "+agent.report.Problem
		return condition, true
	}
	found := meta.FindStatusCondition(agent.report.Status.Conditions, edgev2alpha1.ConditionHeartbeatHealthy)
	if found == nil {
		condition.Status, condition.Reason, condition.Message = metav1.ConditionUnknown, ReasonStarting, "The agent has not connected to its cluster yet."
		return condition, true
	}
	return *found, true
}

// reportedConditions are the conditions that the hub takes from a report. Ready follows from them.
var reportedConditions = []string{
	edgev2alpha1.ConditionSyncerReady, edgev2alpha1.ConditionSyncerAuthorized, edgev2alpha1.ConditionAPIsMissing, edgev2alpha1.ConditionResourcesUnreadable, edgev2alpha1.ConditionMailboxLimitExceeded,
	edgev2alpha1.ConditionNamespacesLeft, edgev2alpha1.ConditionDrained, edgev2alpha1.ConditionSuspended, edgev2alpha1.ConditionStoreWentBack,
}

// setAgentStatus sets the status from the last report of the agent. It claims nothing that the agent has not said lately.
func (c *Controller) setAgentStatus(syncTarget *edgev2alpha1.SyncTarget, located logicalcluster.Name, problem *blocker, state *syncTargetState) {
	status := &syncTarget.Status
	heartbeat, isKnown := c.agentHealth(syncTarget, state)
	if !isKnown && problem == nil && meta.FindStatusCondition(status.Conditions, edgev2alpha1.ConditionHeartbeatHealthy) != nil {
		// Another replica led until now. What it wrote stays until this one knows better, for a bounded time.
		return
	}
	if problem != nil {
		heartbeat.Status, heartbeat.Reason, heartbeat.Message = metav1.ConditionUnknown, problem.reason, problem.message
	}
	if heartbeat.Reason == "" {
		heartbeat.Status, heartbeat.Reason, heartbeat.Message = metav1.ConditionUnknown, ReasonStarting, "The hub is reading what the agent reports."
	}
	status.ObservedClusterID = ""
	if heartbeat.Reason == targets.ReasonClusterChanged {
		// An operator may confirm it.
		status.ObservedClusterID = state.agent.report.Status.ObservedClusterID
	}
	syncer := heartbeat
	syncer.Type = edgev2alpha1.ConditionSyncerReady
	if heartbeat.Status == metav1.ConditionTrue {
		state.agent.applyReport(status)
		if reported := meta.FindStatusCondition(state.agent.report.Status.Conditions, syncer.Type); reported != nil && heartbeat.Reason != ReasonAssignmentFailed {
			syncer = *reported
		} else {
			syncer.Status = metav1.ConditionFalse
		}
	} else {
		authorized := heartbeat
		authorized.Type, authorized.Status = edgev2alpha1.ConditionSyncerAuthorized, metav1.ConditionUnknown
		meta.SetStatusCondition(&status.Conditions, authorized)
		status.Counts, status.Failures, status.PendingSince = nil, nil, nil
	}
	if located == "" {
		syncer.Status, syncer.Reason, syncer.Message = metav1.ConditionFalse, ReasonMailboxNotReady, "The mailbox workspace is not ready."
	}
	for _, condition := range []metav1.Condition{heartbeat, syncer, readyCondition(syncTarget, heartbeat, syncer)} {
		meta.SetStatusCondition(&status.Conditions, condition)
	}
	for _, kind := range []string{edgev2alpha1.ConditionSuspended, edgev2alpha1.ConditionDrained} {
		// The agent has not confirmed the present spec, and may do something else.
		if found := meta.FindStatusCondition(status.Conditions, kind); found != nil && found.ObservedGeneration != syncTarget.Generation {
			meta.RemoveStatusCondition(&status.Conditions, kind)
		}
	}
}

// applyReport copies the reported conditions, except SyncerReady, into the status. It copies the other fields once per heartbeatInterval, or
// when the status or reason of a condition changes.
func (a *agentState) applyReport(status *edgev2alpha1.SyncTargetStatus) {
	reported := &a.report.Status
	changed := false
	for _, kind := range reportedConditions {
		if found := meta.FindStatusCondition(reported.Conditions, kind); found != nil {
			before := meta.FindStatusCondition(status.Conditions, kind)
			changed = changed || before == nil || before.Status != found.Status || before.Reason != found.Reason
			if kind != edgev2alpha1.ConditionSyncerReady {
				meta.SetStatusCondition(&status.Conditions, *found)
			}
		} else if kind != edgev2alpha1.ConditionSyncerReady {
			changed = meta.RemoveStatusCondition(&status.Conditions, kind) || changed
		}
	}
	last := status.LastSyncerHeartbeatTime
	if !changed && last != nil && a.seenAt.Sub(last.Time) < heartbeatInterval && a.seenAt.After(last.Time) {
		return
	}
	status.LastSyncerHeartbeatTime = &metav1.Time{Time: a.seenAt.Truncate(time.Second)}
	status.Counts, status.Failures, status.PendingSince = reported.Counts, reported.Failures, reported.PendingSince
	status.SyncedResources, status.Versions, status.ClusterID = reported.SyncedResources, reported.Versions, reported.ClusterID
	status.Credentials, status.Cleanup = reported.Credentials, reported.Cleanup
	status.StoreWentBack = reported.StoreWentBack
}

// reconcileAgentDelete lets the agent of a SyncTarget that is being deleted clean up, and waits for its answer. An agent that does not
// answer keeps the SyncTarget as an unreachable target does: until it answers, or the removal is forced.
func (c *Controller) reconcileAgentDelete(ctx context.Context, request mcreconcile.Request, inventory cluster.Cluster, syncTarget *edgev2alpha1.SyncTarget) (reconcile.Result, error) {
	if c.Ledger.Get(syncTarget.UID).Assignment == 0 {
		return c.finishCleanup(ctx, inventory, syncTarget, ReasonCleanedUp, "Its agent never had an assignment.")
	}
	state := c.stateOf(syncTarget.UID)
	located, err := c.Mailboxes.Locate(ctx, logicalcluster.Name(request.ClusterName), syncTarget)
	if err != nil {
		return reconcile.Result{}, err
	}
	problem, err := c.talkToAgent(ctx, request, inventory, syncTarget, located, state)
	if err != nil && !isForced(syncTarget) {
		return reconcile.Result{}, err
	}
	report := state.agent.report
	current := c.Ledger.Get(syncTarget.UID).Assignment
	if report != nil && report.Finished && report.Assignment == current {
		return c.finishCleanup(ctx, inventory, syncTarget, ReasonCleanedUp, "The agent says that nothing is left to be done on the target.")
	}
	health := c.deletingHealth(syncTarget, problem, state)
	remaining := "Objects may be left on the target."
	if report != nil && report.Status.Cleanup != nil && report.Assignment == current {
		remaining = cleanupMessage(*report.Status.Cleanup)
	}
	if isForced(syncTarget) && (health.Status != metav1.ConditionTrue || c.Clock.Since(syncTarget.DeletionTimestamp.Time) >= forceGracePeriod) {
		return c.forceRemoval(ctx, inventory, syncTarget, remaining)
	}
	return c.reportAgentCleanup(ctx, inventory, syncTarget, remaining, health)
}

// deletingHealth returns the condition HeartbeatHealthy of a SyncTarget that is being deleted.
func (c *Controller) deletingHealth(syncTarget *edgev2alpha1.SyncTarget, problem *blocker, state *syncTargetState) metav1.Condition {
	health, _ := c.agentHealth(syncTarget, state)
	if health.Reason == "" {
		health.Status, health.Reason, health.Message = metav1.ConditionUnknown, ReasonStarting, "The hub is reading what the agent reports."
	}
	if problem != nil {
		health.Status, health.Reason, health.Message = metav1.ConditionUnknown, problem.reason, problem.message
	}
	return health
}

// reportAgentCleanup writes how far the cleanup by an agent is, and looks again soon.
func (c *Controller) reportAgentCleanup(ctx context.Context, inventory cluster.Cluster, syncTarget *edgev2alpha1.SyncTarget, remaining string, health metav1.Condition) (reconcile.Result, error) {
	reason, message := ReasonCleaningUp, "The SyncTarget is being deleted. The agent cleans up. "+remaining
	if health.Status != metav1.ConditionTrue {
		reason = ReasonCleanupBlocked
		message = fmt.Sprintf("%s The agent does not clean up: %s The hub waits until it does, or until the annotation %s=true is set.", remaining, health.Message, edgev2alpha1.AnnotationForceRemoval)
	}
	result, err := c.updateDeletingStatus(ctx, inventory, syncTarget, reason, message, health)
	if err == nil && result.RequeueAfter == 0 {
		result.RequeueAfter = agentPollInterval / 3
	}
	return result, err
}

// onRulesChanged enqueues the SyncTargets that have an agent.
func (c *Controller) onRulesChanged(queue requestQueue, _ struct{}) {
	c.lock.Lock()
	defer c.lock.Unlock()
	for uid, request := range c.requests {
		if state := c.states[uid]; state != nil && state.isAgent {
			queue.Add(request)
		}
	}
}
