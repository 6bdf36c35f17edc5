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

package placement

import (
	"maps"
	"slices"
	gosync "sync"
	"sync/atomic"
	"time"

	"github.com/kcp-dev/logicalcluster/v3"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/synchub-dev/synchub/controllers/internal/writes"
	"github.com/synchub-dev/synchub/controllers/placement/fleet"
	"github.com/synchub-dev/synchub/controllers/plan"
)

// DefaultMaxReflections is the default of [Options.MaxReflections].
const DefaultMaxReflections = 5_000

// maxReflectedBytes bounds the size of all reflections of a workspace, in the memory of the hub. Clusters send them, and they must not use
// up what the hub reads of the workspace.
const maxReflectedBytes = 32 << 20

// reflected is the state of one reflection: of an object that came up into a mailbox, in the workspace. The lock of [reflections] guards it.
type reflected struct {
	// name is its name in the workspace, and syncTarget the name of the SyncTarget that it comes from.
	name       types.NamespacedName
	syncTarget string
	// uid is the UID of the reflection that the workspace shows; empty if there is none.
	uid types.UID
	// selectedBy are the placements that want the reflection; empty if none does.
	selectedBy []types.UID
	// isCounted is true if the reflection is counted in the limit, with its size.
	isCounted bool
	size      int64
	// isPlanned is true once a pass has decided about the reflection, and isPresent if the workspace has it as desired.
	isPlanned, isPresent bool
	failure              *failure
	// awaitsOwnersSince is when it first had to wait for its owners; zero if it does not. isOwnerGone is true if an owner is being deleted.
	awaitsOwnersSince time.Time
	isOwnerGone       bool
	// added are the fields that the workspace adds to it; nil if that is unknown. unkept is the status that the workspace does not keep.
	added  []string
	unkept *unkeptStatus
	// deleted is the UID of the reflection that the hub deleted last. isRemoved is true if somebody else removed the reflection.
	deleted   types.UID
	isRemoved bool
	backoff   *writes.DriftBackoff
	// interests are the objects of the workspace that decide about it, see reflections.interested.
	interests []objectKey
}

// unkeptStatus is a status that the workspace stores differently.
type unkeptStatus struct{ desired, stored map[string]any }

// reflections are the reflections of a workspace. The methods send no requests.
type reflections struct {
	cluster  logicalcluster.Name
	tasks    *tasks
	reports  *reports
	requests *requests
	index    *reflectionIndex
	// deleting is true if a placement waits for the withdrawal of its reflections.
	deleting *atomic.Bool

	lock gosync.Mutex
	// writes are the writes to the workspace that the caches do not show yet.
	writes writes.Expectations[copyKey, *unstructured.Unstructured]
	// all are the reflections by the names of their origins in mailboxes.
	all map[copyKey]*reflected
	// interested are the reflections to reconcile when an object of the workspace appears or vanishes: one with its name, or an owner.
	interested map[objectKey]map[copyKey]struct{}
	limit      reflectionLimit
	// isAggregated is true if a placement of the workspace has spec.aggregation, so that each change of a reflection is reported.
	isAggregated atomic.Bool
}

// reflectionLimit bounds the reflections of a workspace. The lock of [reflections] guards it.
type reflectionLimit struct {
	max, count int
	bytes      int64
	// isExceeded is true if the workspace lacks reflections because of the limit.
	isExceeded bool
}

// admits reports whether another reflection of a size is within the limit.
func (l *reflectionLimit) admits(size int64) bool {
	return l.count < l.max && l.bytes+size <= maxReflectedBytes
}

func newReflections(s *shared, cluster logicalcluster.Name, tasks *tasks, reports *reports, deleting *atomic.Bool) *reflections {
	r := &reflections{
		deleting: deleting, cluster: cluster, tasks: tasks, reports: reports, requests: s.requests, index: s.reflections,
		all: map[copyKey]*reflected{}, interested: map[objectKey]map[copyKey]struct{}{}, limit: reflectionLimit{max: s.options.MaxReflections},
	}
	r.writes = writes.NewExpectations[copyKey, *unstructured.Unstructured](&r.lock, s.options.Clock)
	return r
}

// reflectionTask returns the task that reconciles the reflection of an object of a mailbox.
func (k copyKey) reflectionTask() task {
	return task{resource: k.resource, name: k.name, site: site{mailbox: k.mailbox}, reflection: true}
}

// get returns a copy of the state of a reflection; zero if there is none.
func (r *reflections) get(key copyKey) reflected {
	r.lock.Lock()
	defer r.lock.Unlock()
	if found := r.all[key]; found != nil {
		return *found
	}
	return reflected{}
}

// update calls a function with the state of a reflection, under the lock. It does nothing if there is none.
func (r *reflections) update(key copyKey, do func(*reflected)) {
	r.lock.Lock()
	defer r.lock.Unlock()
	if found := r.all[key]; found != nil {
		do(found)
	}
}

// ensure returns the state of a reflection, which it creates if there is none. It requires the lock.
func (r *reflections) ensure(key copyKey) *reflected {
	found := r.all[key]
	if found == nil {
		found = &reflected{}
		r.all[key] = found
		r.index.remember(key, r.cluster)
	}
	return found
}

// setInterests sets which objects of the workspace decide about a reflection. It requires the lock.
func (r *reflections) setInterests(key copyKey, found *reflected, next []objectKey) {
	for _, one := range found.interests {
		if !slices.Contains(next, one) {
			delete(r.interested[one], key)
			if len(r.interested[one]) == 0 {
				delete(r.interested, one)
			}
		}
	}
	for _, one := range next {
		if r.interested[one] == nil {
			r.interested[one] = map[copyKey]struct{}{}
		}
		r.interested[one][key] = struct{}{}
	}
	found.interests = next
}

// record records the observation of a pass. It returns false if the workspace may have no further reflection.
func (r *reflections) record(s *reflectionSnapshot) (isWithinLimit bool) {
	r.lock.Lock()
	defer r.lock.Unlock()
	isSelected := s.State == plan.Selected
	if r.all[s.key] == nil && !isSelected {
		return true
	}
	found := r.ensure(s.key)
	r.setInterests(s.key, found, s.interests)
	if !slices.Equal(found.selectedBy, s.selectedBy) {
		r.aggregationChanged()
	}
	found.name, found.selectedBy = s.name, s.selectedBy
	if s.syncTarget.Name != "" {
		found.syncTarget = s.syncTarget.Name
	}
	switch {
	case !isSelected && s.State != plan.Unknown:
		r.uncount(found)
	case !isSelected:
	case !found.isCounted && found.uid == "" && !r.limit.admits(s.size):
		if !r.limit.isExceeded {
			r.limit.isExceeded = true
			// The next resolve schedules a recheck: other reflections may be gone then.
			r.requests.resolve.Publish(r.cluster)
		}
		return false
	default:
		r.uncount(found)
		found.isCounted, found.size = true, s.size
		r.limit.count, r.limit.bytes = r.limit.count+1, r.limit.bytes+s.size
	}
	return true
}

// uncount takes a reflection out of the limit. It requires the lock.
func (r *reflections) uncount(found *reflected) {
	if found.isCounted {
		r.limit.count, r.limit.bytes = r.limit.count-1, r.limit.bytes-found.size
		found.isCounted, found.size = false, 0
	}
}

// dropIfUnused drops a reflection that no placement wants and that the workspace does not have.
func (r *reflections) dropIfUnused(key copyKey) {
	r.lock.Lock()
	defer r.lock.Unlock()
	found := r.all[key]
	if found == nil || len(found.selectedBy) > 0 || found.uid != "" || r.writes.IsPending(key) {
		return
	}
	r.setInterests(key, found, nil)
	r.uncount(found)
	delete(r.all, key)
	r.index.forget(key, r.cluster)
	r.reports.request()
	if r.deleting.Load() {
		r.requests.resolve.Publish(r.cluster)
	}
}

// enqueueInterested enqueues the reflections that an object of the workspace decides about.
func (r *reflections) enqueueInterested(object objectKey) {
	r.lock.Lock()
	defer r.lock.Unlock()
	for key := range r.interested[object] {
		if r.all[key].name != object.name {
			r.tasks.add(key.reflectionTask())
		}
	}
}

// isEmpty reports whether the workspace has no reflections.
func (r *reflections) isEmpty() bool {
	r.lock.Lock()
	defer r.lock.Unlock()
	return len(r.all) == 0
}

// owns reports whether an object of the workspace is a reflection, even if somebody removed its mark.
func (r *reflections) owns(object objectKey, uid types.UID) bool {
	r.lock.Lock()
	defer r.lock.Unlock()
	return r.ownsLocked(object, uid)
}

// ownsLocked is owns. It requires the lock.
func (r *reflections) ownsLocked(object objectKey, uid types.UID) bool {
	for key := range r.interested[object] {
		if found := r.all[key]; found.name == object.name && key.resource == object.resource && found.uid == uid && uid != "" {
			return true
		}
	}
	return false
}

// isWithdrawing reports whether the workspace has a reflection, from a mailbox of the view, that no placement wants.
func (r *reflections) isWithdrawing(view *fleet.Snapshot) bool {
	r.lock.Lock()
	defer r.lock.Unlock()
	for key, found := range r.all {
		if _, known := view.SyncTargetOf(key.mailbox); known && found.uid != "" && len(found.selectedBy) == 0 {
			return true
		}
	}
	return false
}

// reflectionIndex finds the workspaces that an event of a mailbox concerns.
type reflectionIndex struct {
	lock gosync.RWMutex
	// wanting are the workspaces whose placements bring objects up from a mailbox.
	wanting map[logicalcluster.Name]map[logicalcluster.Name]struct{}
	// known are the workspaces with the state of a reflection.
	known map[copyKey][]logicalcluster.Name
	users *namespaceUsers
}

func newReflectionIndex() *reflectionIndex {
	return &reflectionIndex{wanting: map[logicalcluster.Name]map[logicalcluster.Name]struct{}{}, known: map[copyKey][]logicalcluster.Name{}, users: newNamespaceUsers()}
}

// set sets the mailboxes whose objects a workspace brings up.
func (i *reflectionIndex) set(workspace logicalcluster.Name, before, after map[logicalcluster.Name]struct{}) {
	i.lock.Lock()
	defer i.lock.Unlock()
	for mailbox := range before {
		if _, ok := after[mailbox]; !ok {
			delete(i.wanting[mailbox], workspace)
			if len(i.wanting[mailbox]) == 0 {
				delete(i.wanting, mailbox)
			}
		}
	}
	for mailbox := range after {
		if i.wanting[mailbox] == nil {
			i.wanting[mailbox] = map[logicalcluster.Name]struct{}{}
		}
		i.wanting[mailbox][workspace] = struct{}{}
	}
}

// wantingFrom returns the workspaces that bring objects up from a mailbox.
func (i *reflectionIndex) wantingFrom(mailbox logicalcluster.Name) []logicalcluster.Name {
	i.lock.RLock()
	defer i.lock.RUnlock()
	return slices.Collect(maps.Keys(i.wanting[mailbox]))
}

// mailboxesOf returns the mailboxes that a workspace brings objects up from.
func (i *reflectionIndex) mailboxesOf(workspace logicalcluster.Name) (mailboxes []logicalcluster.Name) {
	i.lock.RLock()
	defer i.lock.RUnlock()
	for mailbox, of := range i.wanting {
		if _, ok := of[workspace]; ok {
			mailboxes = append(mailboxes, mailbox)
		}
	}
	return mailboxes
}

// isWanting reports whether a workspace brings objects up from a mailbox.
func (i *reflectionIndex) isWanting(workspace, mailbox logicalcluster.Name) bool {
	i.lock.RLock()
	defer i.lock.RUnlock()
	_, ok := i.wanting[mailbox][workspace]
	return ok
}

// concerns returns the workspaces that know the reflection of an object, and whether any workspace brings objects up from its mailbox.
func (i *reflectionIndex) concerns(key copyKey) (known []logicalcluster.Name, isWanting bool) {
	i.lock.RLock()
	defer i.lock.RUnlock()
	return i.known[key], len(i.wanting[key.mailbox]) > 0
}

func (i *reflectionIndex) remember(key copyKey, workspace logicalcluster.Name) {
	i.lock.Lock()
	defer i.lock.Unlock()
	i.known[key] = append(slices.Clone(i.known[key]), workspace)
}

func (i *reflectionIndex) forget(key copyKey, workspace logicalcluster.Name) {
	i.lock.Lock()
	defer i.lock.Unlock()
	rest := slices.DeleteFunc(slices.Clone(i.known[key]), func(one logicalcluster.Name) bool { return one == workspace })
	if len(rest) == 0 {
		delete(i.known, key)
		return
	}
	i.known[key] = rest
}
