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
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/synchub-dev/synchub/controllers/objectsync"
	"github.com/synchub-dev/synchub/controllers/plan"
	"github.com/synchub-dev/synchub/controllers/plan/health"
	"github.com/synchub-dev/synchub/controllers/syncmanager/crd"
	"github.com/synchub-dev/synchub/provider/mailboxes"
)

// crdController is the running CRD controller for one connection to a target.
type crdController struct {
	*crd.Controller
	runner
}

// updateCRDs sets the CRDs that the target needs, and starts the CRD controller if needed.
func (p *pass) updateCRDs(wanted []plan.Resource) {
	m, state, target := p.manager, p.state, p.target
	needed := p.neededCRDs(wanted)
	running := state.crdController.Load()
	if running != nil && running.Connection != target.Connection {
		running.stop()
		running = nil
	}
	if running == nil && len(needed) > 0 {
		controller := crd.New(crd.Options{
			Connection: target.Connection,
			Owner:      m.Owner(target.UID),
			OnChange: func(resource schema.GroupResource) {
				m.ObjectsChanged.Publish(target.UID)
				m.SyncStatusChanged.Publish(objectsync.ObjectRef{
					SyncTarget: target.UID, Mailbox: target.Mailbox, Resource: objectsync.CRDResource, Key: types.NamespacedName{Name: resource.String()},
				})
			},
			Clock: m.Clock,
			Log:   m.Log.WithValues("syncTarget", target.Name),
		})
		running = &crdController{controller, p.start(controller.Run, controller.Log)}
	}
	state.crdController.Store(running)
	if running != nil {
		running.SetInstallations(needed)
	}
}

// neededCRDs returns the CRDs that the target needs: for the wanted resources, and the CRDs that a config of
// the mailbox names. A CRD that the mailbox has as an object is synced as an object.
func (p *pass) neededCRDs(wanted []plan.Resource) (needed []crd.Installation) {
	for _, one := range p.manager.CRDs.All() {
		index := slices.IndexFunc(wanted, func(r plan.Resource) bool { return r.PublishedResource == one.PublishedResource })
		if index >= 0 {
			one.Version = cmp.Or(wanted[index].TargetVersion, one.Version)
		} else if name := one.Resource().String(); !p.state.matcher.NamesCRD(name) {
			continue
		} else if _, found := p.manager.Mailboxes.Get(objectsync.CRDResource, p.target.Mailbox, types.NamespacedName{Name: name}); found == mailboxes.Present {
			continue
		}
		needed = append(needed, one)
	}
	return needed
}

// crdStates returns the states of the CRDs of the target.
func (t *targetState) crdStates() map[schema.GroupResource]crd.State {
	if running := t.crdController.Load(); running != nil {
		return running.States()
	}
	return nil
}

// installedCRD returns the state of a CRD that the hub must install on the target; known is false for any other.
func (t *targetState) installedCRD(name string) (state objectsync.SyncStatus, known bool) {
	running := t.crdController.Load()
	if running == nil {
		return objectsync.SyncStatus{}, false
	}
	found, known := running.State(schema.ParseGroupResource(name))
	if !known {
		return objectsync.SyncStatus{}, false
	}
	return stateOfInstalledCRD(found), true
}

// stateOfInstalledCRD returns the state of a CRD in the terms of a copy.
func stateOfInstalledCRD(found crd.State) objectsync.SyncStatus {
	switch {
	case found.Ready:
		return objectsync.SyncStatus{Synced: true, Health: health.Health{Status: health.Current, Message: found.Message}}
	case found.IsPending():
		return objectsync.SyncStatus{Health: health.Health{Status: health.InProgress, Message: found.Message}}
	default:
		return objectsync.SyncStatus{Failure: &objectsync.Failure{Reason: found.Reason, Message: found.Message}}
	}
}

// installedCRDs returns the CRDs that configs of the mailbox name and the hub must install on the target.
func (t *targetState) installedCRDs() (all []objectsync.PlacedCopy) {
	t.lock.Lock()
	matcher := t.matcher
	t.lock.Unlock()
	for resource, state := range t.crdStates() {
		if name := resource.String(); matcher.NamesCRD(name) {
			all = append(all, objectsync.PlacedCopy{
				Resource: objectsync.CRDResource, Key: types.NamespacedName{Name: name}, Version: objectsync.InstalledCRD, State: stateOfInstalledCRD(state),
			})
		}
	}
	return all
}
