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

package mailboxes

import (
	"maps"
	"time"

	"github.com/kcp-dev/logicalcluster/v3"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// docket is what is pending, decided and known about one mailbox.
type docket struct {
	running bool
	// wake ends a wait between rounds.
	wake    chan struct{}
	pending map[Suspect]struct{}
	proven  map[Suspect]struct{}
	// binding is the resourceVersion of the mailbox's binding, and since when it has been that.
	binding string
	since   time.Time
	// inStep holds, by resource, the binding's resourceVersion when the cache was last found to hold all that a list
	// through this binding showed.
	inStep map[schema.GroupVersionResource]string
	// held is when many suspects were first proven, under the binding's resourceVersion heldBinding.
	held        time.Time
	heldBinding string
	// rebound is true once it is known that the binding is not the one that the mailbox was made with.
	rebound bool
	// hidden are suspects that are in the mailbox, as the last round has found.
	hidden Hidden
}

// docketLocked requires that the lock is held.
func (p *prover) docketLocked(mailbox logicalcluster.Name) *docket {
	found, ok := p.docs[mailbox]
	if !ok {
		found = &docket{
			wake:    make(chan struct{}, 1),
			pending: map[Suspect]struct{}{},
			proven:  map[Suspect]struct{}{},
			inStep:  map[schema.GroupVersionResource]string{},
		}
		p.docs[mailbox] = found
	}
	return found
}

// absolve forgets what was suspected or proven of an object that is seen again.
func (p *prover) absolve(mailbox logicalcluster.Name, suspect Suspect) {
	p.lock.Lock()
	defer p.lock.Unlock()
	if docket, ok := p.docs[mailbox]; ok {
		delete(docket.pending, suspect)
		delete(docket.proven, suspect)
	}
}

// distrust makes the next proof for the resource list it.
func (p *prover) distrust(mailbox logicalcluster.Name, resource schema.GroupVersionResource) {
	p.lock.Lock()
	defer p.lock.Unlock()
	if docket, ok := p.docs[mailbox]; ok {
		delete(docket.inStep, resource)
	}
}

// drop forgets all that is suspected, proven and known of a resource, in all mailboxes.
func (p *prover) drop(resource schema.GroupVersionResource) {
	p.lock.Lock()
	defer p.lock.Unlock()
	isOfIt := func(suspect Suspect, _ struct{}) bool { return suspect.Resource == resource }
	for _, docket := range p.docs {
		maps.DeleteFunc(docket.pending, isOfIt)
		maps.DeleteFunc(docket.proven, isOfIt)
		delete(docket.inStep, resource)
		if len(docket.pending) == 0 {
			docket.awaken()
		}
	}
}

func (p *prover) bindingSeen(mailbox logicalcluster.Name, resourceVersion string) {
	p.lock.Lock()
	defer p.lock.Unlock()
	docket := p.docketLocked(mailbox)
	if docket.binding != resourceVersion {
		docket.binding, docket.since = resourceVersion, p.clock.Now()
		docket.awaken()
	}
}

func (d *docket) awaken() {
	select {
	case d.wake <- struct{}{}:
	default:
	}
}

// forget drops all that is known and suspected about a mailbox that is not bound any more.
func (p *prover) forget(mailbox logicalcluster.Name) {
	p.lock.Lock()
	defer p.lock.Unlock()
	docket, ok := p.docs[mailbox]
	switch {
	case !ok:
	case docket.running:
		// The run ends when it finds nothing pending, and then drops a docket without a binding.
		docket.binding, docket.heldBinding, docket.rebound, docket.hidden = "", "", false, Hidden{}
		clear(docket.pending)
		clear(docket.proven)
		clear(docket.inStep)
		docket.awaken()
	default:
		delete(p.docs, mailbox)
	}
}

// noteRebound notes that a mailbox was bound again, and tells whether that is news.
func (p *prover) noteRebound(mailbox logicalcluster.Name) bool {
	p.lock.Lock()
	defer p.lock.Unlock()
	docket := p.docketLocked(mailbox)
	news := !docket.rebound
	docket.rebound = true
	return news
}

func (p *prover) settledSince(mailbox logicalcluster.Name) time.Time {
	p.lock.Lock()
	defer p.lock.Unlock()
	return p.docketLocked(mailbox).since
}

func (p *prover) isInStep(mailbox logicalcluster.Name, resource schema.GroupVersionResource, bindingVersion string) bool {
	p.lock.Lock()
	defer p.lock.Unlock()
	return p.docketLocked(mailbox).inStep[resource] == bindingVersion
}

// holdOver tells whether many suspects were proven under the same binding long enough ago; the first time, it notes that
// they are now.
func (p *prover) holdOver(mailbox logicalcluster.Name, bindingVersion string) bool {
	p.lock.Lock()
	defer p.lock.Unlock()
	docket := p.docketLocked(mailbox)
	// A hold that nobody came back to is from another time.
	if docket.heldBinding != bindingVersion || p.clock.Since(docket.held) > 2*holdFor+proofTimeout {
		docket.heldBinding, docket.held = bindingVersion, p.clock.Now()
		return false
	}
	if p.clock.Since(docket.held) < holdFor {
		return false
	}
	docket.heldBinding = ""
	return true
}
