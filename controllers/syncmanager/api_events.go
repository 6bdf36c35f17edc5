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
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// crdEventTimeout is how long after an event of a CRD the manager polls for its kind.
const crdEventTimeout = 10 * time.Second

// apiEvents decides which changes of the APIs of a target need a reconcile.
type apiEvents struct {
	// hasUnresolved is true if a conversion names a kind that the target does not serve. lastCRDEvent is the time of the
	// target's last event of a CRD.
	hasUnresolved atomic.Bool
	lastCRDEvent  atomic.Pointer[time.Time]
	// multiVersion are the resources of the target that are published in several versions. lastVersionEvent is the time of the
	// last event of one of their CRDs.
	multiVersion     atomic.Pointer[map[schema.GroupResource]bool]
	lastVersionEvent atomic.Pointer[time.Time]
}

// onCRD records an event of the CRD of a resource, and reports whether the event needs a reconcile.
func (e *apiEvents) onCRD(defined schema.GroupResource, now time.Time) (needsReconcile bool) {
	e.lastCRDEvent.Store(&now)
	if e.isMultiVersion(defined) {
		e.lastVersionEvent.Store(&now)
		return true
	}
	return e.hasUnresolved.Load()
}

// concernAny reports whether a reconcile depends on the APIs that the target serves.
func (e *apiEvents) concernAny() bool {
	multiVersion := e.multiVersion.Load()
	return e.hasUnresolved.Load() || multiVersion != nil && len(*multiVersion) > 0
}

// isMultiVersion reports whether a change of the resource's CRD may lead to another version.
func (e *apiEvents) isMultiVersion(target schema.GroupResource) bool {
	multiVersion := e.multiVersion.Load()
	return multiVersion != nil && (*multiVersion)[target]
}

// awaitsCRD reports whether a missing kind, or another version, may be served soon: the event of a CRD precedes discovery by a
// moment.
func (e *apiEvents) awaitsCRD(now time.Time) bool {
	isRecent := func(event *time.Time) bool { return event != nil && now.Sub(*event) < crdEventTimeout }
	return e.hasUnresolved.Load() && isRecent(e.lastCRDEvent.Load()) || isRecent(e.lastVersionEvent.Load())
}
