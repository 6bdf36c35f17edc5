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
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/kcp-dev/logicalcluster/v3"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/synchub-dev/synchub/controllers/namelock"
	"github.com/synchub-dev/synchub/controllers/sync"
	"github.com/synchub-dev/synchub/provider/mailboxes"
)

const (
	// clearInterval is how often it is looked whether names of a mailbox can be freed, while some are in conflict.
	clearInterval = 15 * time.Second
	// longestBindAgain is how rarely kcp is made to bind again at the least. The first time is after clearInterval, then each time
	// twice as late: a changed binding has all objects of the mailbox looked at.
	longestBindAgain = 10 * time.Minute
	// namedMissing is how many APIs that a mailbox lacks are named.
	namedMissing = 20
)

// MissingAPIs are those that a mailbox does not have although they are published, because kcp does not bind them. The zero value
// is none.
type MissingAPIs struct {
	Resources []schema.GroupResource
	// Message says which, why, and what to do.
	Message string
}

// Has tells whether a resource is among those that are missing.
func (a MissingAPIs) Has(resource schema.GroupResource) bool {
	return slices.Contains(a.Resources, resource)
}

// Names frees names of APIs in mailboxes.
type Names interface {
	Clear(ctx context.Context, mailbox logicalcluster.Name, missing []schema.GroupResource) (namelock.Finding, error)
	BindAgain(ctx context.Context, mailbox logicalcluster.Name, binding string, now time.Time) error
}

var _ Names = &namelock.Clearer{}

// clearing is what was done last about the conflicts of a mailbox.
type clearing struct {
	finding namelock.Finding
	// forbidden is why the hub may not free the names, empty if it may.
	forbidden string
	// next is when to look again, bindAgain when to make kcp try again, and wait how long that was put off.
	next, bindAgain time.Time
	wait            time.Duration
}

// Missing returns the APIs that the mailbox of a SyncTarget does not have; known is false until that was looked at.
func (m *Manager) Missing(syncTarget types.UID) (missing MissingAPIs, known bool) {
	found, ok := m.get(syncTarget)
	if !ok {
		return MissingAPIs{}, false
	}
	found.lock.Lock()
	defer found.lock.Unlock()
	return found.missing, found.missingKnown
}

// lookForMissing takes over which APIs the mailbox does not have, has their names freed where that is safe, and returns when to
// look again; zero if only after a change. The caller holds turn.
func (m *Manager) lookForMissing(ctx context.Context, managed *managed, published []sync.Resource) (again time.Duration) {
	mailbox := managed.describe().Mailbox
	conflict, known := m.Mailboxes.NamingConflict(mailbox)
	if !known || !m.HasPublished() {
		return 0
	}
	var resources []schema.GroupResource
	if conflict != nil {
		for _, resource := range published {
			if resource.Exported && !resource.Leaving && m.Mailboxes.Lacks(mailbox, resource.GroupResource()) {
				resources = append(resources, resource.GroupResource())
			}
		}
	}
	if len(resources) == 0 {
		managed.clearing = clearing{}
		m.setMissing(managed, MissingAPIs{})
		return 0
	}
	again = m.clear(ctx, managed, resources, conflict)
	m.setMissing(managed, MissingAPIs{Resources: resources, Message: describeMissing(resources, conflict.Message, managed.clearing)})
	return again
}

// Rebound tells whether nothing is removed from a SyncTarget's target, since its mailbox was bound again.
func (m *Manager) Rebound(syncTarget types.UID) bool {
	found, ok := m.get(syncTarget)
	return ok && m.Mailboxes.Rebound(found.describe().Mailbox)
}

// Hidden returns what kcp hides of a SyncTarget's mailbox.
func (m *Manager) Hidden(syncTarget types.UID) mailboxes.Hidden {
	found, ok := m.get(syncTarget)
	if !ok {
		return mailboxes.Hidden{}
	}
	return m.Mailboxes.Hidden(found.describe().Mailbox)
}

// lookForRebinding tells of a mailbox that was bound again, or has become another one. The caller holds turn.
func (m *Manager) lookForRebinding(managed *managed) {
	target := managed.describe()
	before := managed.rebound
	managed.rebound = m.Mailboxes.Rebound(target.Mailbox)
	if managed.rebound != before && m.OnStates != nil {
		m.OnStates(target.UID)
	}
}

// clear has names freed if it is time for that, and returns when it is again. The caller holds turn.
func (m *Manager) clear(ctx context.Context, managed *managed, missing []schema.GroupResource, conflict *mailboxes.NamingConflict) (again time.Duration) {
	now, state := m.Clock.Now(), &managed.clearing
	if wait := state.next.Sub(now); wait > 0 || m.Names == nil {
		return wait
	}
	target := managed.describe()
	found, err := m.Names.Clear(ctx, target.Mailbox, missing)
	isFree := err == nil && len(found.Definitions) == 0 && !found.Freed
	switch wasInTheWay := len(state.finding.Definitions) > 0; {
	case isFree && (wasInTheWay || !state.bindAgain.IsZero() && !now.Before(state.bindAgain)):
		err = m.Names.BindAgain(ctx, target.Mailbox, conflict.Binding, now)
		state.wait = min(max(2*state.wait, clearInterval), longestBindAgain)
		state.bindAgain = now.Add(state.wait)
	case isFree && state.bindAgain.IsZero():
		state.bindAgain = now.Add(clearInterval)
	case !isFree:
		state.bindAgain, state.wait = time.Time{}, 0
	}
	state.next, state.finding, state.forbidden = now.Add(clearInterval), found, ""
	if apierrors.IsForbidden(err) {
		state.forbidden = err.Error()
	}
	if err != nil {
		m.Log.Info("cannot free the names of APIs in a mailbox, this is tried again", "syncTarget", target.Name, "mailbox", target.Mailbox, "error", err.Error())
	}
	if found.Freed {
		m.Log.Info("freed names of APIs that kcp kept in a mailbox", "syncTarget", target.Name, "mailbox", target.Mailbox, "resources", missing)
	}
	return clearInterval
}

// setMissing takes over what a mailbox lacks, and tells of a change.
func (m *Manager) setMissing(managed *managed, missing MissingAPIs) {
	managed.lock.Lock()
	changed := !managed.missingKnown || managed.missing.Message != missing.Message || !slices.Equal(managed.missing.Resources, missing.Resources)
	managed.missing, managed.missingKnown = missing, true
	syncTarget := managed.target.UID
	managed.lock.Unlock()
	if !changed {
		return
	}
	m.observer.Changed(syncTarget)
	if m.OnStates != nil {
		m.OnStates(syncTarget)
	}
}

// describeMissing says which APIs a mailbox does not have, why, and what to do.
func describeMissing(resources []schema.GroupResource, conflict string, state clearing) string {
	var names []string
	for _, resource := range resources {
		names = append(names, resource.String())
	}
	slices.Sort(names)
	if more := len(names) - namedMissing; more > 0 {
		names = append(names[:namedMissing], fmt.Sprintf("%d more", more))
	}
	text := fmt.Sprintf("The mailbox does not have %s: kcp does not bind what has a name that is taken there.", strings.Join(names, ", "))
	definitions := strings.Join(state.finding.Definitions, ", ")
	switch {
	case state.forbidden != "":
		return text + fmt.Sprintf(" The hub may not free the name: %s. Delete the CustomResourceDefinition of that name in the mailbox; then remove the name from the annotation %s "+
			"of the LogicalCluster \"cluster\" there.", sync.Truncate(state.forbidden), namelock.Annotation)
	case definitions != "":
		return text + fmt.Sprintf(" Delete the CustomResourceDefinition %s in the mailbox, after saving its objects, which go with it. The hub then frees the name.", definitions)
	default:
		return text + fmt.Sprintf(" kcp says: %s. Delete in the mailbox what has that name; the hub has kcp try again.", sync.Truncate(strings.TrimSuffix(conflict, ".")))
	}
}
