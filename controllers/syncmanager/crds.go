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

	"github.com/synchub-dev/synchub/controllers/crd"
	"github.com/synchub-dev/synchub/controllers/objectsync/plan"
)

// crdController is the running CRD controller for one connection to a target.
type crdController struct {
	*crd.Controller
	runner
}

// SetCRDs sets the CRDs that targets must have, each with its PublishedResource.
func (m *Manager) SetCRDs(crds []crd.Installation) {
	m.lock.Lock()
	m.crds = crds
	m.lock.Unlock()
	m.enqueueAll()
}

// updateCRDs tells the CRD controller which CRDs the wanted resources need on the target, and starts the controller if needed. The
// caller holds reconcileMutex.
func (m *Manager) updateCRDs(state *targetState, wanted []plan.Resource) {
	m.lock.Lock()
	all := m.crds
	m.lock.Unlock()
	var needed []crd.Installation
	for _, one := range all {
		index := slices.IndexFunc(wanted, func(r plan.Resource) bool { return r.PublishedResource == one.PublishedResource })
		if index < 0 {
			continue
		}
		one.Version = cmp.Or(wanted[index].TargetVersion, one.Version)
		needed = append(needed, one)
	}
	target := state.currentTarget()
	running := state.crdController.Load()
	if running != nil && running.Connection != target.Connection {
		running.stop()
		running = nil
	}
	if running == nil && len(needed) > 0 {
		controller := crd.New(crd.Options{
			Connection: target.Connection,
			Owner:      m.Owner(target.UID),
			OnChange:   func() { m.ObjectsChanged.Publish(target.UID) },
			Clock:      m.Clock,
			Log:        m.Log.WithValues("syncTarget", target.Name),
		})
		running = &crdController{controller, m.run(target.UID, controller.Run, controller.Log)}
	}
	state.crdController.Store(running)
	if running != nil {
		running.SetInstallations(needed)
	}
}

// crdStates returns the states of the CRDs of the target.
func (t *targetState) crdStates() map[schema.GroupResource]crd.State {
	if running := t.crdController.Load(); running != nil {
		return running.States()
	}
	return nil
}
