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
	if state.crdController != nil && state.crdController.Connection != target.Connection {
		state.setCRDController(nil)
	}
	if state.crdController == nil {
		if len(needed) == 0 {
			return
		}
		controller := crd.New(crd.Options{
			Connection: target.Connection,
			Owner:      m.Owner(target.UID),
			OnChange:   func() { m.ObjectsChanged.Publish(target.UID) },
			Clock:      m.Clock,
			Log:        m.Log.WithValues("syncTarget", target.Name),
		})
		state.setCRDController(&crdController{controller, m.run(controller.Run, controller.Log)})
	}
	state.crdController.SetInstallations(needed)
}

// setCRDController replaces the CRD controller, after the former one has ended.
func (t *targetState) setCRDController(next *crdController) {
	if t.crdController != nil {
		t.crdController.stop()
	}
	t.lock.Lock()
	defer t.lock.Unlock()
	t.crdController = next
}

// crdStates returns the states of the CRDs of the target. The caller holds t.lock.
func (t *targetState) crdStates() map[schema.GroupResource]crd.State {
	if t.crdController == nil {
		return nil
	}
	return t.crdController.States()
}
