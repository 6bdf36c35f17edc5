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

package plan

import (
	"time"

	"github.com/kcp-dev/logicalcluster/v3"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/synchub-dev/synchub/controllers/plan/ownership"
	"github.com/synchub-dev/synchub/controllers/plan/related"
	"github.com/synchub-dev/synchub/controllers/plan/transform"
)

// Plan is the decision of one pass about a mailbox object, with everything that its execution needs in both directions.
type Plan struct {
	// Key and InMailbox are the snapshot's.
	Key       types.NamespacedName
	InMailbox *unstructured.Unstructured
	Decision  Decision
	// Err is why the object fails. If it is set, the pass writes nothing to the other side.
	Err   error
	Wants Wants
	// Claims is the change of the object's claims, since the object may be a primary.
	Claims  ClaimsPlan
	Desired *transform.Desired
	// Status is the status for the mailbox object.
	Status StatusReturn
	// RequeueAfter is the delay until the next pass if no event comes; zero for none.
	RequeueAfter time.Duration
	// Excluded is true if the source exists, and the configs' own rules keep it from being copied (see [Decision.isExcluded]).
	Excluded bool
	// ForgetRemoval is the removal that no longer matters once the plan was executed; nil for none.
	ForgetRemoval *Removal
}

// DownPlan is the plan for a mailbox object and its copies.
type DownPlan struct {
	Plan
	// Finalizer is the change of the hub's finalizer on the mailbox object.
	Finalizer FinalizerPlan
	// Operations are the writes to the target in order. The pass tries all of them, even after a failure.
	Operations []Operation
	// ReturnStatus is true if the status is to be written. It is also written if an operation leaves the copy out of sync.
	ReturnStatus bool
	// FinishedMark is the annotation that marks the mailbox object as having run to completion; empty for none.
	FinishedMark string
	// Deferred are fields that stay unchanged on the target until the source changes.
	Deferred []string
	// ForgetHistory is true if the key has no source on either side, so the history of its writes is over. ForgetDeletion is true
	// if the target has no copies that would be deleted with the propagation policy of the mailbox object.
	ForgetHistory, ForgetDeletion bool
}

// UpPlan is the plan for a mailbox object that is, or was, upsynced.
type UpPlan struct {
	Plan
	// Confirm is true if the plan needs the target's response about [UpSnapshot.Missing]. The snapshot is planned again with the
	// response.
	Confirm bool
	// RenameTo is the new name of the source in the mailbox; nil for none. The source is upsynced under this name first, before
	// the old object is deleted.
	RenameTo *types.NamespacedName
	// ReplaceIfImmutable is true if the mailbox object may be deleted and created again if kcp refuses to change it.
	ReplaceIfImmutable bool
	// Conflicting is another object of the target that would have the same name in the mailbox; nil for none.
	Conflicting *Ref
	// Repair is true if another writer may undo the write again. Such writes back off.
	Repair bool
	// WrittenFor is the version of the source that a write is for, if a mutation reads the mailbox object; otherwise empty.
	WrittenFor string
	// Configs select the object. PrunedPaths are the fields of the source that the schema of the mailbox does not have.
	Configs, PrunedPaths []string
}

// Wants are the requests of a pass beside its writes.
type Wants struct {
	// FullObject is true if the cache has only a part of the mailbox object. An event follows when the cache has the full object.
	FullObject bool
	// Claims is set if a primary that was not processed yet may claim the object. Then all primaries must finish their initial
	// sync. It reports whether the missing claim is known now.
	Claims func() (known bool)
	// TakeAbsence is the verified absence that the plan relies on, and consumes; empty for none.
	TakeAbsence State
	// VerifyAbsence is the absence that kcp must confirm: that the mailbox object is really gone or deselected. Empty for none.
	// Witness is the latest version of the source for which a copy was written; zero if that is unknown.
	VerifyAbsence State
	Witness       uint64
	// VerifyVersion is a version of the source to verify: kcp must have this version or a later one. Zero for none.
	VerifyVersion uint64
}

// Operation is one decision about one target object. It usually takes one request. It takes more if the namespace is missing,
// fields must be relinquished, or the target refuses the request.
type Operation struct {
	Decision Decision
	Copy     Copy
	Desired  *transform.Desired
	// Propagation is the propagation policy for the deletion of a copy.
	Propagation metav1.DeletionPropagation
	// Repair is true if another writer may undo the write again. Such writes back off.
	Repair bool
	// WrittenFor is the version of the source that the write is for, if a mutation reads the copy; otherwise empty.
	WrittenFor string
}

// FinalizerPlan is a change of the hub's finalizer on a mailbox object.
type FinalizerPlan int

// The zero value does not change the finalizer.
const (
	_ FinalizerPlan = iota
	// ConfigureFinalizer sets or removes the finalizer as the PublishedResource requires.
	ConfigureFinalizer
	// RemoveFinalizer removes the finalizer.
	RemoveFinalizer
)

// Planner plans a pass. It is pure: equal snapshots give equal plans.
type Planner struct {
	Resource Resource
	Down     transform.Down
	Up       transform.Up
	// HasContent is set by `kubectl synchub explain`, which does not have the key of the hashes in marks. It reports whether the
	// copy has the content of an object that was desired before. The planner then assumes that copies have the desired content,
	// and the caller compares them.
	HasContent func(before *transform.Desired) bool
	// Relations are the relations of primaries whose claims are planned. It is empty if the caller publishes no claims.
	Relations []*related.Relation
}

// NewPlanner returns a planner for a resource in the mailbox of a SyncTarget.
func NewPlanner(resource Resource, owner ownership.Owner, hasher ownership.Hasher, mailbox logicalcluster.Name, syncTarget string) Planner {
	return Planner{
		Resource: resource,
		Down: transform.Down{
			Owner: owner, Hasher: hasher, Mailbox: mailbox.String(), SyncTarget: syncTarget,
			Resource: resource.GroupResource(), Namespaced: resource.Namespaced,
		},
		Up: transform.Up{
			Owner: owner, Hasher: hasher, Mailbox: mailbox.String(), SyncTarget: syncTarget,
			Resource: resource.GroupResource(), Namespaced: resource.Namespaced, Version: resource.Version, Kind: resource.Kind,
			RecordsOwners: true,
		},
	}
}
