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

package syncmanager

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/kcp-dev/logicalcluster/v3"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/synchub-dev/synchub/controllers/objectsync"
	"github.com/synchub-dev/synchub/controllers/plan"
	"github.com/synchub-dev/synchub/controllers/plan/policy"
	"github.com/synchub-dev/synchub/controllers/plan/selection"
	"github.com/synchub-dev/synchub/controllers/syncmanager/crd"
	"github.com/synchub-dev/synchub/controllers/syncmanager/schemacheck"
	"github.com/synchub-dev/synchub/provider/mailboxes"
	"github.com/synchub-dev/synchub/provider/mailboxes/absence"
	"github.com/synchub-dev/synchub/provider/wording"
)

// View is a snapshot for computing the status of the configs of one mailbox.
type View struct {
	Mailbox     logicalcluster.Name
	Matcher     *selection.Matcher
	Controllers []*objectsync.Controller
	// Published are the resources that mailboxes have, each in the version that the hub writes to the target.
	Published []plan.Resource
	// CRDs are the states of the CRDs that the hub installs on the target, by the resource that they define.
	CRDs map[schema.GroupResource]crd.State
	// Namespaces decides which namespaces of the target the hub may use.
	Namespaces *policy.NamespacePolicy
	// Unstarted are the resources that are not synced before the target has answered.
	Unstarted []schema.GroupResource
	// Incompatible are the mailbox resources that are not synced because their objects do not fit into the target.
	Incompatible map[schema.GroupResource]schemacheck.State
	// MissingAPIs are the published APIs that the mailbox lacks.
	MissingAPIs MissingAPIs
	// Held is true while nothing is removed from the target, or overwritten there, because kcp went back to an earlier state.
	Held bool
	// Compatibility contains whether mailbox objects fit into resources of the target; unknown ones are absent.
	Compatibility map[schema.GroupResource]schemacheck.State
}

// View returns the view of a SyncTarget. ok is false if the SyncTarget is not synced, or its configs or the published resources have not
// taken effect yet: the resources would seem to be unpublished, or without objects.
func (m *Manager) View(syncTarget types.UID) (view View, ok bool) {
	found, ok := m.get(syncTarget)
	if !ok || found.isPreparing() {
		return View{}, false
	}
	view = View{Namespaces: found.rules.namespaces.Load(), Held: m.History.Holds(syncTarget)}
	published, publication := m.catalog.published()
	// Under one lock, so that the controllers are the ones that are applied.
	found.lock.Lock()
	defer found.lock.Unlock()
	view.Controllers, view.Published = found.controllersLocked(), withVersions(published, found.chosenVersions)
	view.Mailbox, view.Matcher, view.CRDs = found.target.Mailbox, found.matcher, found.crdStates()
	view.Unstarted = slices.Clone(found.unstarted)
	view.Incompatible, view.MissingAPIs, view.Compatibility = found.incompatibleResources(view.Published, &m.catalog), found.missingAPIs, maps.Clone(found.compatibilityStates)
	return view, found.isAppliedLocked(publication)
}

// Status contains the mailbox's part of a SyncTarget's status. The zero value means that the SyncTarget is not
// synced.
type Status struct {
	// ConfigsKnown is true once the hub has read the configs of the mailbox.
	ConfigsKnown bool
	// MissingAPIs are the published APIs that the mailbox lacks. They are valid only if MissingAPIsKnown is true.
	MissingAPIs      MissingAPIs
	MissingAPIsKnown bool
	// TenancyProblem is a message about what the cluster refuses of the tenancy; empty if nothing.
	TenancyProblem string
	// BeyondLimits is a message about the objects that are not synced because of limits. BeyondLimitsReason is
	// the limit that is exceeded first: the limit of the whole mailbox, of a resource, or of the configs. Both
	// are empty if no limit is exceeded.
	BeyondLimits, BeyondLimitsReason string
	// Evicted is true if the mailbox, or the set of its configs, exceeds its limits so far that the hub syncs
	// none of its objects.
	Evicted bool
	// Rebound is true if the mailbox was bound again, so that the hub removes nothing from the target.
	Rebound bool
	// Hidden counts the objects of the mailbox that kcp hides from the hub.
	Hidden absence.HiddenObjects
}

// Status returns the status of a SyncTarget.
func (m *Manager) Status(syncTarget types.UID) (status Status) {
	found, ok := m.get(syncTarget)
	if !ok {
		return Status{}
	}
	found.lock.Lock()
	mailbox := found.target.Mailbox
	status.TenancyProblem = found.currentTenants().Problem()
	status.ConfigsKnown, status.MissingAPIs, status.MissingAPIsKnown = found.configsKnown, found.missingAPIs, found.missingAPIsKnown
	found.lock.Unlock()
	status.BeyondLimitsReason, status.BeyondLimits = beyondLimits(m.Mailboxes, mailbox)
	status.Evicted = m.Mailboxes.Limits.MailboxLimitError(mailbox).Evicted || m.Mailboxes.Limits.ConfigLimitError(mailbox).Evicted
	status.Rebound, status.Hidden = m.Mailboxes.Absences.WasRebound(mailbox), m.Mailboxes.Absences.HiddenObjects(mailbox)
	return status
}

// beyondLimits returns a message about the objects of a mailbox that are not synced because of limits, and which limit is exceeded first.
func beyondLimits(all *mailboxes.Mailboxes, mailbox logicalcluster.Name) (reason, message string) {
	var sentences []string
	objects := all.Limits.MailboxLimitError(mailbox)
	beyond := []*mailboxes.LimitError{objects}
	if !objects.Evicted {
		beyond = append(beyond, all.Limits.ResourceLimitErrors(mailbox)...)
	}
	for _, one := range beyond {
		if one.IdentityOnly > 0 {
			// The limit of the whole mailbox is the first of these, and takes precedence as the reason.
			reason = cmp.Or(reason, limitReason(one))
			text := one.Error()
			sentences = append(sentences, strings.ToUpper(text[:1])+text[1:]+".")
		}
	}
	if configs := all.Limits.ConfigLimitError(mailbox); configs.IdentityOnly > 0 {
		reason = cmp.Or(reason, plan.ReasonConfigLimitExceeded)
		sentences = append(sentences, fmt.Sprintf("Of the configs, the youngest %s not in force: the hub acts upon %d of a mailbox, which may take %d bytes. "+
			"Nothing is removed because no config selects it.", wording.Count(configs.IdentityOnly, "is", "are"), configs.Limits.Objects, configs.Limits.Bytes))
	}
	return reason, strings.Join(sentences, " ")
}

func limitReason(beyond *mailboxes.LimitError) string {
	if beyond.Resource.Empty() {
		return plan.ReasonMailboxLimitExceeded
	}
	return plan.ReasonResourceLimitExceeded
}
