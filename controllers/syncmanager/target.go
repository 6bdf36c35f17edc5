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
	"maps"
	"sync/atomic"
	"time"

	"github.com/kcp-dev/logicalcluster/v3"
	"k8s.io/apimachinery/pkg/types"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	synchubv1alpha1 "github.com/synchub-dev/synchub/apis/synchub/v1alpha1"
	"github.com/synchub-dev/synchub/controllers/plan/mutation"
	"github.com/synchub-dev/synchub/controllers/plan/policy"
	"github.com/synchub-dev/synchub/provider/mailboxes"
	"github.com/synchub-dev/synchub/provider/targets"
)

// Target describes a SyncTarget to the manager.
type Target struct {
	// UID and Name are the SyncTarget's.
	UID  types.UID
	Name string
	// Labels and Annotations are the labels and annotations of the SyncTarget that mutations may read. They are
	// immutable.
	Labels, Annotations map[string]string
	// Mailbox is the logical cluster of its mailbox.
	Mailbox    logicalcluster.Name
	Connection *targets.Connection
	// Cordoned is true if the hub must not create objects on the target.
	Cordoned bool
	// Held is true while the hub removes and overwrites nothing on the target, because kcp went back to an earlier state.
	Held bool
	// Adoption is the policy for adopting objects of the target, in addition to the PublishedResources. Empty
	// means none.
	Adoption synchubv1alpha1.AdoptionPolicy
	// Tenancy is how workload workspaces share the target. It is immutable.
	Tenancy *edgev2alpha1.Tenancy
	// Namespaces restricts the namespaces of the target, in addition to those that the hub protects.
	Namespaces *edgev2alpha1.TargetNamespaces
	// WrittenNamespaces are the namespaces in which the hub may have written. The empty namespace, or none,
	// means the whole cluster.
	WrittenNamespaces []string
	// Limits bound the cached objects of the mailbox, where they are lower than the hub's. Zero means the hub's
	// limit.
	Limits mailboxes.Limits
	// WrittenResources holds the objects that the hub may have written, by resource of the target.
	WrittenResources WrittenResources
	// TenantResources are the names of the resources that the hub may have written for workspaces, see [tenants.ResourcesFor].
	TenantResources []string
	// TrustedUntil is until when the compatibility in WrittenResources counts without a request to the target.
	// It applies to the first connection only.
	TrustedUntil time.Time
	// Prepare is true on a replica that is not the leader. The manager then fills the caches of the resources
	// in WrittenResources, and writes nothing until StartSync is called again without Prepare.
	Prepare bool
}

// NotSynced is why a SyncTarget is not synced now. The zero value means that it is synced.
type NotSynced struct {
	// SyncTarget is its name, Mailbox the logical cluster of its mailbox.
	SyncTarget string
	Mailbox    logicalcluster.Name
	// Reason is the reason of its condition SyncerReady.
	Reason string
}

// rules are the fields of a SyncTarget that its sync controllers read for each object.
type rules struct {
	// cordoned is true if the hub must not create objects on the target.
	cordoned atomic.Bool
	// held is true if the SyncTarget was held, because kcp went back, when it was last reconciled.
	held atomic.Bool
	// adoption is the [synchubv1alpha1.AdoptionPolicy] of the SyncTarget.
	adoption atomic.Value
	// mutationInput contains the fields of the SyncTarget that mutations read.
	mutationInput atomic.Pointer[mutationInput]
	// namespaces decides which namespaces of the target the hub may use.
	namespaces atomic.Pointer[policy.NamespacePolicy]
}

// mutationInput contains the fields of a SyncTarget that mutations read, and the labels and annotations that
// they were made from.
type mutationInput struct {
	labels, annotations map[string]string
	value               map[string]any
}

// setMutationInput stores the fields of the SyncTarget that mutations read, and reports whether they changed.
func (r *rules) setMutationInput(target Target) (changed bool) {
	before := r.mutationInput.Load()
	if before != nil && maps.Equal(before.labels, target.Labels) && maps.Equal(before.annotations, target.Annotations) {
		return false
	}
	r.mutationInput.Store(&mutationInput{target.Labels, target.Annotations, mutation.SyncTarget(target.Name, target.Labels, target.Annotations)})
	return before != nil
}

// setNamespaces sets which namespaces of the target the hub may use, and reports whether they changed.
func (r *rules) setNamespaces(target Target, protected policy.NamespacePatterns) (changed bool) {
	next := &policy.NamespacePolicy{Protected: protected}
	if bounds := target.Namespaces; bounds != nil {
		next.Only, next.Allowed = bounds.Only, policy.NamespacePatterns(bounds.AllowProtected)
	}
	before := r.namespaces.Swap(next)
	return before != nil && !before.Equal(next)
}

func (r *rules) adoptionPolicy() synchubv1alpha1.AdoptionPolicy {
	return r.adoption.Load().(synchubv1alpha1.AdoptionPolicy)
}
