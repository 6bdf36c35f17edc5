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

package objectsync

import (
	"slices"
	gosync "sync"
	"time"

	"github.com/kcp-dev/logicalcluster/v3"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"github.com/synchub-dev/synchub/controllers/internal/writes"
	"github.com/synchub-dev/synchub/controllers/objectsync/observe"
	"github.com/synchub-dev/synchub/controllers/plan"
	"github.com/synchub-dev/synchub/controllers/plan/ownership"
	"github.com/synchub-dev/synchub/provider/mailboxes"
	"github.com/synchub-dev/synchub/provider/mailboxes/absence"
	"github.com/synchub-dev/synchub/provider/metrics/requestmetrics"
)

// mailboxView returns the mailbox objects of one resource: from the cache, or from the hub's own later writes.
type mailboxView struct {
	mailboxes *mailboxes.Mailboxes
	name      logicalcluster.Name
	resource  *plan.Resource
	owner     ownership.Owner
	clock     clock.PassiveClock

	lock gosync.Mutex
	// writes are the hub's writes that the cache does not contain yet. They use the lock.
	writes writes.Expectations[types.NamespacedName, *unstructured.Unstructured]
}

func newMailboxView(o *Options) *mailboxView {
	m := &mailboxView{mailboxes: o.Mailboxes, name: o.Mailbox, resource: &o.Resource, owner: o.Owner, clock: o.Clock}
	m.writes = writes.NewExpectations[types.NamespacedName, *unstructured.Unstructured](&m.lock, o.Clock)
	m.writes.Side = requestmetrics.Mailbox
	m.writes.Cached = func(key types.NamespacedName) *unstructured.Unstructured {
		cached, _ := m.cached(key)
		return cached
	}
	return m
}

// cached returns an object from the cache.
func (m *mailboxView) cached(key types.NamespacedName) (*unstructured.Unstructured, mailboxes.State) {
	return m.mailboxes.Get(m.resource.GroupVersionResource, m.name, key)
}

// get returns an object, nil if there is none; known is false if the mailbox cannot be read now. The hub's own last write counts
// even if the cache does not contain it yet.
func (m *mailboxView) get(key types.NamespacedName) (object *unstructured.Unstructured, known bool) {
	cached, state := m.cached(key)
	if state == mailboxes.Unknown {
		return nil, false
	}
	object, deleted := m.writes.Current(key, cached)
	if deleted {
		now := m.clock.Now().UTC().Format(time.RFC3339)
		object = object.DeepCopy()
		_ = unstructured.SetNestedField(object.Object, now, "metadata", "deletionTimestamp")
	}
	return object, true
}

// isFree reports whether the mailbox has no object of a key.
func (m *mailboxView) isFree(key types.NamespacedName) bool {
	object, known := m.get(key)
	return known && object == nil
}

// list returns the cached objects; known is false if the mailbox cannot be read now.
func (m *mailboxView) list() (objects []*unstructured.Unstructured, known bool) {
	return m.mailboxes.List(m.resource.GroupVersionResource, m.name)
}

// isReadable reports whether the mailbox's cache of the resource can be read.
func (m *mailboxView) isReadable() bool {
	_, state := m.cached(types.NamespacedName{})
	return state != mailboxes.Unknown
}

// isUpsynced reports whether the hub upsynced an object, which may be nil.
func (m *mailboxView) isUpsynced(object *unstructured.Unstructured) bool {
	return object != nil && plan.IsUpsyncedBy(m.owner, object)
}

// holdsObjects reports whether the mailbox has objects that are upsynced, or that wait for the target.
func (m *mailboxView) holdsObjects() bool {
	objects, _ := m.list()
	return slices.ContainsFunc(objects, func(object *unstructured.Unstructured) bool { return m.isUpsynced(object) || HasFinalizer(object) })
}

// hasPlacedCopies reports whether the mailbox has copies that placements made.
func (m *mailboxView) hasPlacedCopies() bool {
	objects, _ := m.list()
	return slices.ContainsFunc(objects, isPlacedCopy)
}

// mayBeUpsynced reports whether the mailbox has, or may have, an upsynced object of a key.
func (m *mailboxView) mayBeUpsynced(key types.NamespacedName) bool {
	object, known := m.get(key)
	return !known || m.isUpsynced(object)
}

func (m *mailboxView) absenceCandidate(key types.NamespacedName, state plan.State) absence.Candidate {
	return absence.Candidate{Resource: m.resource.GroupVersionResource, Key: key, Missing: state == plan.SourceNotFound}
}

// hasVerifiedAbsence reports whether kcp has verified an absence.
func (m *mailboxView) hasVerifiedAbsence(key types.NamespacedName, state plan.State) bool {
	return m.mailboxes.Absences.HasVerifiedAbsence(m.name, m.absenceCandidate(key, state))
}

// request makes the requests of a pass for facts about the mailbox. Their results enqueue the key.
func (m *mailboxView) request(key types.NamespacedName, object *unstructured.Unstructured, wants plan.Wants) {
	resource, taken, unverified := m.resource.GroupVersionResource, m.absenceCandidate(key, wants.TakeAbsence), m.absenceCandidate(key, wants.VerifyAbsence)
	if wants.FullObject {
		_ = m.mailboxes.Limits.RequireFullObject(resource, m.name, object)
	}
	if wants.TakeAbsence != "" {
		m.mailboxes.Absences.TakeVerifiedAbsence(m.name, taken)
	}
	if wants.VerifyVersion > 0 {
		m.mailboxes.Versions.VerifyVersion(m.name, resource, key, wants.VerifyVersion)
	}
	if wants.VerifyAbsence != "" {
		m.mailboxes.Versions.NoteVersion(m.name, resource, key, wants.Witness)
		m.mailboxes.Absences.VerifyAbsence(m.name, unverified)
	}
}

// takeVerifiedAbsence reports whether kcp has verified an absence, and consumes the verification.
func (m *mailboxView) takeVerifiedAbsence(key types.NamespacedName, state plan.State) bool {
	return m.mailboxes.Absences.TakeVerifiedAbsence(m.name, m.absenceCandidate(key, state))
}

// NamespaceLabels implements [observe.Mailbox].
func (m *mailboxView) NamespaceLabels(name string) (labels map[string]string, known bool) {
	namespace, state := m.mailboxes.Get(namespaces, m.name, types.NamespacedName{Name: name})
	if state != mailboxes.Present || mailboxes.ProjectionOf(namespace) == mailboxes.IdentityOnly {
		return nil, false
	}
	return namespace.GetLabels(), true
}

// PartOf implements [observe.Mailbox].
func (*mailboxView) PartOf(object *unstructured.Unstructured) observe.Part {
	switch mailboxes.ProjectionOf(object) {
	case mailboxes.FullObject:
		return observe.Whole
	case mailboxes.MetadataOnly:
		return observe.Metadata
	default:
		return observe.Identity
	}
}

// LimitError implements [observe.Mailbox].
func (m *mailboxView) LimitError(object *unstructured.Unstructured) error {
	if mailboxes.ProjectionOf(object) == mailboxes.IdentityOnly {
		return m.mailboxes.Limits.ObjectLimitError(m.resource.GroupVersionResource, m.name, object)
	}
	return nil
}
