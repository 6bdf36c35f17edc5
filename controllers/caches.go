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

package controllers

import (
	"github.com/kcp-dev/logicalcluster/v3"

	synchubv1alpha1 "github.com/synchub-dev/synchub/apis/synchub/v1alpha1"
	"github.com/synchub-dev/synchub/controllers/placement"
	"github.com/synchub-dev/synchub/controllers/syncmanager"
	"github.com/synchub-dev/synchub/provider/mailboxes"
	"github.com/synchub-dev/synchub/provider/mailboxes/absence"
)

// caches are the caches of objects in kcp, each with the policy for which objects it has whole.
type caches struct {
	mailboxes     *mailboxes.Mailboxes
	mailboxPolicy *syncmanager.CachePolicy
	// workloads are the workload workspaces.
	workloads      *mailboxes.Mailboxes
	workloadPolicy *placement.CachePolicy
	// needed are the mailboxes that this replica needs; nil if it needs all.
	owned *ownedMailboxes
}

func newCaches(r *replica) caches {
	settings := r.settings.Mailboxes
	limits := mailboxes.Limits{Objects: settings.MaxObjects, Bytes: settings.MaxBytes}
	mailboxPolicy, workloadPolicy := syncmanager.NewCachePolicy(limits, r.Log.WithName("sync")), placement.NewCachePolicy(limits)
	var owned *ownedMailboxes
	var owns, ownsWorkload func(logicalcluster.Name) bool
	if r.isSharded {
		owned = newOwnedMailboxes(r.role)
		owns, ownsWorkload = owned.owns, owned.ownsWorkload
	}
	return caches{
		mailboxes: newMailboxes(r, "mailboxes", mailboxes.Options{
			Export: synchubv1alpha1.MailboxExport, Resources: syncmanager.ConfigResources, Owns: owns, Policy: mailboxPolicy, MaxBytes: settings.TotalBytes,
		}),
		mailboxPolicy: mailboxPolicy,
		workloads: newMailboxes(r, "workloads", mailboxes.Options{
			Export: synchubv1alpha1.WorkloadExport, Resources: placement.Resources, Owns: ownsWorkload, Policy: workloadPolicy, MaxBytes: settings.TotalBytes / 2,
			BindLater: true,
		}),
		workloadPolicy: workloadPolicy,
		owned:          owned,
	}
}

// newMailboxes returns the cache of an export. The options have what differs from the cache of the other export.
func newMailboxes(r *replica, name string, options mailboxes.Options) *mailboxes.Mailboxes {
	settings := r.settings.Mailboxes
	options.AbsenceDelays = absence.Delays{BindingSettle: settings.BindingSettlePeriod.Duration, MassDeletion: settings.MassDeletionDelay.Duration}
	options.Access, options.Workspace, options.LeaderOnly, options.History = r.Access, r.owner.Workspace, r.isColdStandby, r.History
	options.Clock, options.Log = r.clock, r.Log.WithName(name)
	return mailboxes.New(options)
}
