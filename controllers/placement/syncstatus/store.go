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

package syncstatus

import (
	"context"
	"slices"
	gosync "sync"

	"github.com/kcp-dev/logicalcluster/v3"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/synchub-dev/synchub/controllers/internal/leadership"
	"github.com/synchub-dev/synchub/controllers/objectsync"
	"github.com/synchub-dev/synchub/controllers/plan"
	"github.com/synchub-dev/synchub/provider/topic"
)

// MailboxObjects lists the cached objects of a mailbox, as [mailboxes.Mailboxes] does.
type MailboxObjects interface {
	List(resource schema.GroupVersionResource, mailbox logicalcluster.Name) (objects []*unstructured.Unstructured, known bool)
}

// StoreOptions are the dependencies of a [Store].
type StoreOptions struct {
	Mailboxes MailboxObjects
	// Published returns the resources that mailboxes have.
	Published func() []plan.Resource
	// SyncStatusChanged receives the copies whose state changed.
	SyncStatusChanged *topic.Topic[objectsync.ObjectRef]
}

// Store contains the last states of the copies of SyncTargets that other replicas sync.
type Store struct {
	StoreOptions

	lock gosync.Mutex
	sets map[types.UID]*States
}

// NewStore returns an empty Store.
func NewStore(options StoreOptions) *Store {
	return &Store{StoreOptions: options, sets: map[types.UID]*States{}}
}

// Set replaces the states of a SyncTarget, and publishes the copies whose state differs. Nil removes them.
func (s *Store) Set(syncTarget types.UID, states *States) {
	s.lock.Lock()
	before := s.sets[syncTarget]
	if states == nil {
		delete(s.sets, syncTarget)
	} else {
		s.sets[syncTarget] = states
	}
	s.lock.Unlock()
	if states == nil {
		return
	}
	s.publishStuck(before, states)
	mailbox := logicalcluster.Name(states.Mailbox)
	publish := func(resource schema.GroupVersionResource, key types.NamespacedName, version objectsync.CopyVersion) {
		was, _ := before.State(resource.GroupResource(), key, version)
		is, _ := states.State(resource.GroupResource(), key, version)
		if !was.Equal(is) {
			s.SyncStatusChanged.Publish(objectsync.ObjectRef{SyncTarget: syncTarget, Mailbox: mailbox, Resource: resource, Key: key})
		}
	}
	for _, resource := range s.Published() {
		if resource.InstallsCRD {
			publish(objectsync.CRDResource, types.NamespacedName{Name: resource.CRDName()}, objectsync.InstalledCRD)
		}
		objects, _ := s.Mailboxes.List(resource.GroupVersionResource, mailbox)
		for _, object := range objects {
			version := objectsync.CopyVersionOf(object)
			if version == (objectsync.CopyVersion{}) {
				continue
			}
			publish(resource.GroupVersionResource, types.NamespacedName{Namespace: object.GetNamespace(), Name: object.GetName()}, version)
		}
	}
}

// publishStuck publishes the stuck copies of two states: those that only one of them has, and those with another message.
func (s *Store) publishStuck(before, after *States) {
	failures := map[objectsync.ObjectRef]objectsync.SyncStatus{}
	for _, ref := range before.stuckRefs() {
		failures[ref], _ = before.State(ref.Resource.GroupResource(), ref.Key, objectsync.CopyVersion{})
	}
	for _, ref := range after.stuckRefs() {
		state, _ := after.State(ref.Resource.GroupResource(), ref.Key, objectsync.CopyVersion{})
		was, known := failures[ref]
		delete(failures, ref)
		if !known || !was.Equal(state) {
			s.SyncStatusChanged.Publish(ref)
		}
	}
	for ref := range failures {
		s.SyncStatusChanged.Publish(ref)
	}
}

// StuckCopies returns the stuck copies of all SyncTargets, see [objectsync.ObjectRef].
func (s *Store) StuckCopies() (refs []objectsync.ObjectRef) {
	s.lock.Lock()
	defer s.lock.Unlock()
	for _, states := range s.sets {
		refs = append(refs, states.stuckRefs()...)
	}
	return refs
}

// SyncStatus returns the state of a version of a copy. known is false while the store has no states for the
// SyncTarget.
func (s *Store) SyncStatus(syncTarget types.UID, resource schema.GroupResource, key types.NamespacedName, version objectsync.CopyVersion) (state objectsync.SyncStatus, known bool) {
	s.lock.Lock()
	found := s.sets[syncTarget]
	s.lock.Unlock()
	return found.State(resource, key, version)
}

// SyncManager returns the state of copies that are synced in this process, as [syncmanager.Manager] does.
type SyncManager interface {
	StuckCopies() []objectsync.ObjectRef
	SyncStatus(syncTarget types.UID, resource schema.GroupResource, key types.NamespacedName, version objectsync.CopyVersion) (state objectsync.SyncStatus, known bool)
}

// Owner reports which SyncTargets this replica syncs, as [leadership.Role] does.
type Owner interface {
	Owns(syncTarget types.UID) bool
	// Context returns a context whose writes fail once this replica no longer owns the SyncTarget.
	Context(ctx context.Context, syncTarget types.UID) context.Context
}

var _ Owner = leadership.Role{}

// Reader returns the state of a copy, from this process's sync manager or from the Store.
type Reader struct {
	Sync  SyncManager
	Store *Store
	Owner Owner
}

// SyncStatus returns the state of a version of a copy. The sync manager of this process comes first. If it
// does not know the copy, the last stored state counts: another replica syncs the SyncTarget, or did until a
// moment ago.
func (r Reader) SyncStatus(syncTarget types.UID, resource schema.GroupResource, key types.NamespacedName, version objectsync.CopyVersion) (state objectsync.SyncStatus, known bool) {
	if r.Owner.Owns(syncTarget) {
		if state, known = r.Sync.SyncStatus(syncTarget, resource, key, version); known {
			return state, true
		}
	}
	return r.Store.SyncStatus(syncTarget, resource, key, version)
}

// StuckCopies returns the stuck copies of all SyncTargets, see [objectsync.ObjectRef]. A copy may be there twice.
func (r Reader) StuckCopies() []objectsync.ObjectRef {
	return slices.Concat(r.Sync.StuckCopies(), r.Store.StuckCopies())
}
