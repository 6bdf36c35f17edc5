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
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/controllers/internal/status"
	"github.com/synchub-dev/synchub/provider/ledger"
	"github.com/synchub-dev/synchub/provider/rbac"
	"github.com/synchub-dev/synchub/provider/targets"
	"github.com/synchub-dev/synchub/provider/wording"
)

// setMailboxLimitCondition sets or removes the condition MailboxLimitExceeded. The numbers in its message change with each object
// of the mailbox, so they are written only with a heartbeat. A changed reason is written at once.
func (v statusView) setMailboxLimitCondition(syncTarget *edgev2alpha1.SyncTarget, isHeartbeatDue bool) {
	stored := meta.FindStatusCondition(syncTarget.Status.Conditions, edgev2alpha1.ConditionMailboxLimitExceeded)
	if v.BeyondLimits == "" || isHeartbeatDue || stored == nil || stored.Status != metav1.ConditionTrue || stored.Reason != v.BeyondLimitsReason {
		status.SetConditionIf(v.BeyondLimits != "", &syncTarget.Status.Conditions, metav1.Condition{
			Type: edgev2alpha1.ConditionMailboxLimitExceeded, Reason: v.BeyondLimitsReason, Message: v.BeyondLimits, ObservedGeneration: syncTarget.Generation,
		})
	}
}

// setClusterSharedCondition sets or removes the condition ClusterShared. Its message does not name the other SyncTarget, which may
// belong to another tenant.
func (v statusView) setClusterSharedCondition(syncTarget *edgev2alpha1.SyncTarget) {
	status.SetConditionIf(v.clusterShared, &syncTarget.Status.Conditions, metav1.Condition{
		Type: edgev2alpha1.ConditionClusterShared, Reason: ReasonOtherInventory, ObservedGeneration: syncTarget.Generation,
		Message: "A SyncTarget of another inventory workspace leads to a cluster with the same identity. That stops neither SyncTarget. " +
			"If this cluster is not meant to be shared, ask the hub's operator: its log names both.",
	})
}

// setTunnelStatus sets where the cluster opens its tunnel, and sets or removes the condition TunnelRefused.
func (v statusView) setTunnelStatus(syncTarget *edgev2alpha1.SyncTarget) {
	syncTarget.Status.Tunnel = v.tunnel.DeepCopy()
	condition := metav1.Condition{Type: edgev2alpha1.ConditionTunnelRefused, Reason: ReasonTunnelNotVerified, ObservedGeneration: syncTarget.Generation}
	if mismatch, ok := errors.AsType[*targets.ClusterMismatchError](v.tunnelRefusal); ok {
		condition.Reason = targets.ReasonClusterChanged
		condition.Message = fmt.Sprintf("A tunnel with this SyncTarget's token was refused: %v. Nothing is synced through it. Remove the Deployment synchub-tunnel from the wrong cluster. "+
			"If you do not know that cluster, rotate the token: kubectl synchub rotate %s.", mismatch, syncTarget.Name)
	} else if v.tunnelRefusal != nil {
		condition.Message = fmt.Sprintf("A tunnel with this SyncTarget's token was refused: %v.", v.tunnelRefusal)
	}
	status.SetConditionIf(v.tunnelRefusal != nil, &syncTarget.Status.Conditions, condition)
}

// setNamespacesLeftCondition sets or removes the condition NamespacesLeft.
func setNamespacesLeftCondition(syncTarget *edgev2alpha1.SyncTarget, left []string) {
	where := rbac.FormatNamespaces(left)
	if slices.Contains(left, ledger.AllNamespaces) {
		where = "other namespaces"
	}
	status.SetConditionIf(len(left) > 0, &syncTarget.Status.Conditions, metav1.Condition{
		Type: edgev2alpha1.ConditionNamespacesLeft, Reason: ReasonNamespacesUnlisted, ObservedGeneration: syncTarget.Generation,
		Message: fmt.Sprintf("The hub used %s of the target before, which spec.namespaces.only does not list. What it placed there, if anything, stays as it is, and the hub does not look at it. "+
			"List them again to have it kept in sync, or removed with its originals.", where),
	})
}

// setUnreadableCondition sets or removes the condition ResourcesUnreadable.
func (v statusView) setUnreadableCondition(syncTarget *edgev2alpha1.SyncTarget) {
	status.SetConditionIf(len(v.unreadable) > 0, &syncTarget.Status.Conditions, metav1.Condition{
		Type: edgev2alpha1.ConditionResourcesUnreadable, Reason: targets.ReasonNotReadable, ObservedGeneration: syncTarget.Generation, Message: v.unreadableMessage(),
	})
}

// unreadableMessage names the resources that the hub cannot read now, with one of the reasons; empty if it can read all.
func (v statusView) unreadableMessage() string {
	if len(v.unreadable) == 0 {
		return ""
	}
	resources := slices.SortedFunc(maps.Keys(v.unreadable), func(a, b schema.GroupResource) int { return strings.Compare(a.String(), b.String()) })
	var names []string
	for _, resource := range resources {
		names = append(names, resource.String())
	}
	return fmt.Sprintf("The hub cannot list or watch %s on the target, and tries again: %s. It does not see what happens to them there, so it does not count objects.",
		wording.First(maxNamed, names), strings.TrimSuffix(v.unreadable[resources[0]], "."))
}

// setAPIsMissingCondition sets or removes the condition APIsMissing. It leaves the condition alone while the hub does not know.
func (v statusView) setAPIsMissingCondition(syncTarget *edgev2alpha1.SyncTarget) {
	if v.MissingAPIsKnown {
		status.SetConditionIf(len(v.MissingAPIs.Resources) > 0, &syncTarget.Status.Conditions, metav1.Condition{
			Type: edgev2alpha1.ConditionAPIsMissing, Reason: edgev2alpha1.ReasonNamingConflict,
			Message: v.MissingAPIs.Message, ObservedGeneration: syncTarget.Generation,
		})
	}
}

// setTenancyCondition sets or removes the condition TenancyNotApplied.
func (v statusView) setTenancyCondition(syncTarget *edgev2alpha1.SyncTarget) {
	status.SetConditionIf(v.TenancyProblem != "", &syncTarget.Status.Conditions, metav1.Condition{
		Type: edgev2alpha1.ConditionTenancyNotApplied, Reason: edgev2alpha1.ReasonRefused,
		Message: v.TenancyProblem, ObservedGeneration: syncTarget.Generation,
	})
}
