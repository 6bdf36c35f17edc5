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
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"github.com/kcp-dev/logicalcluster/v3"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/utils/clock"
)

const (
	// collectFor is how long a round waits for suspects that come with the first one.
	collectFor = 50 * time.Millisecond
	// settleFor is how long a binding must have been unchanged before a list through it counts. When a claim is
	// rejected and accepted again, kcp takes labels off all objects and puts them back one by one, and until it is done
	// the binding's status still speaks of the time before.
	settleFor = 10 * time.Second
	// holdFor is how long many suspects wait until they are proven again.
	holdFor = 10 * time.Second
	// retryAfter is when a mailbox that proves nothing now is asked again. A change of its binding asks at once.
	retryAfter = 30 * time.Second
	// reboundRetryAfter is the same for a mailbox of which nothing is proven as long as it has the binding that it has.
	reboundRetryAfter = time.Hour
	// proofTimeout bounds one round's requests.
	proofTimeout = time.Minute

	// manySuspects, and manyOf with at least someSuspects, is how many suspects in one mailbox are too many to be
	// believed at once. The floor keeps a mailbox of five objects from holding up each single deletion.
	manySuspects = 50
	manyOf       = 5
	someSuspects = 5
)

// Suspect is an object that is to be removed from a target because of something not seen in its mailbox.
type Suspect struct {
	Resource schema.GroupVersionResource
	Key      types.NamespacedName
	// Vanished is true if the object itself is not seen any more, and false if what was seen is a reason by itself: a
	// deletionTimestamp, or configs none of which selects it. Then only the binding has to be proven.
	Vanished bool
}

// Roll is the key of no object. The proof that it vanished says that the cache holds all that the mailbox has of a resource.
var Roll = types.NamespacedName{Name: "(all)"}

func suspectOf(resource schema.GroupVersionResource, object *unstructured.Unstructured) Suspect {
	return Suspect{Resource: resource, Key: types.NamespacedName{Namespace: object.GetNamespace(), Name: object.GetName()}, Vanished: true}
}

// Prove asks for the proof of a suspicion. The subscribers' OnProven is called when it is decided, either way. Before
// [Mailboxes.Start] the suspicion is only noted; the first one after it has all of the mailbox decided. Of a resource that
// is not watched nothing can be proven.
func (m *Mailboxes) Prove(mailbox logicalcluster.Name, suspect Suspect) {
	// Under the lock, so that a resource that is let go takes its suspects along.
	m.lock.RLock()
	defer m.lock.RUnlock()
	if slices.Contains(m.resources, suspect.Resource) {
		m.prover.prove(m.ctx, mailbox, suspect)
	}
}

// Proven tells whether the suspicion has been proven since the object was last seen, and forgets the proof.
func (m *Mailboxes) Proven(mailbox logicalcluster.Name, suspect Suspect) bool {
	return m.prover.take(mailbox, suspect)
}

// Rebound tells whether nothing that the mailbox lacks is taken for deleted, since it was bound again. That is found out when
// something is suspected.
func (m *Mailboxes) Rebound(mailbox logicalcluster.Name) bool {
	m.prover.lock.Lock()
	defer m.prover.lock.Unlock()
	docket, ok := m.prover.docs[mailbox]
	return ok && docket.rebound
}

// Hidden are objects of a mailbox that kcp does not show to the hub although their claim is accepted.
type Hidden struct {
	Count int
	// Example is one of them.
	Example Suspect
}

// Hidden returns what kcp hides of a mailbox, as far as it was shown before. Their copies stay as they are.
func (m *Mailboxes) Hidden(mailbox logicalcluster.Name) Hidden {
	m.prover.lock.Lock()
	defer m.prover.lock.Unlock()
	docket, ok := m.prover.docs[mailbox]
	if !ok {
		return Hidden{}
	}
	return docket.hidden
}

// noteHidden takes down what a round has found.
func (p *prover) noteHidden(mailbox logicalcluster.Name, hidden []Suspect) {
	p.lock.Lock()
	defer p.lock.Unlock()
	found := Hidden{Count: len(hidden)}
	for i, suspect := range hidden {
		if i == 0 || suspect.compare(found.Example) < 0 {
			found.Example = suspect
		}
	}
	p.docketLocked(mailbox).hidden = found
}

// compare orders suspects of a mailbox.
func (s Suspect) compare(other Suspect) int {
	return cmp.Or(cmp.Compare(s.Resource.Resource, other.Resource.Resource), cmp.Compare(s.Key.String(), other.Key.String()))
}

// prover decides suspicions, all of one mailbox together.
type prover struct {
	mailboxes *Mailboxes
	// workspaceOf is that of the mailboxes.
	workspaceOf func(logicalcluster.Name) (dynamic.Interface, error)
	clock       clock.Clock
	log         logr.Logger
	rounds      sync.WaitGroup

	lock sync.Mutex
	docs map[logicalcluster.Name]*docket
}

func newProver(mailboxes *Mailboxes, clock clock.Clock, log logr.Logger) *prover {
	return &prover{mailboxes: mailboxes, workspaceOf: mailboxes.workspaceOf, clock: clock, log: log.WithName("proof"), docs: map[logicalcluster.Name]*docket{}}
}

func (p *prover) prove(ctx context.Context, mailbox logicalcluster.Name, suspect Suspect) {
	p.lock.Lock()
	defer p.lock.Unlock()
	docket := p.docketLocked(mailbox)
	if _, ok := docket.pending[suspect]; ok && docket.running {
		return
	}
	docket.pending[suspect] = struct{}{}
	if docket.running {
		docket.awaken()
		return
	}
	if ctx == nil || ctx.Err() != nil {
		return
	}
	docket.running = true
	p.rounds.Go(func() { p.run(ctx, mailbox) })
}

func (p *prover) take(mailbox logicalcluster.Name, suspect Suspect) bool {
	p.lock.Lock()
	defer p.lock.Unlock()
	docket, ok := p.docs[mailbox]
	if !ok {
		return false
	}
	_, ok = docket.proven[suspect]
	delete(docket.proven, suspect)
	return ok
}

func (p *prover) wait() { p.rounds.Wait() }

// run holds rounds until nothing is pending.
func (p *prover) run(ctx context.Context, mailbox logicalcluster.Name) {
	p.lock.Lock()
	wake := p.docketLocked(mailbox).wake
	p.lock.Unlock()
	var delay time.Duration
	for {
		p.pause(ctx, delay, wake)
		suspects := p.pending(ctx, mailbox)
		if len(suspects) == 0 {
			return
		}
		var verdict verdict
		verdict, delay = p.round(ctx, mailbox, suspects)
		p.deliver(mailbox, verdict)
	}
}

// pause waits for delay or until it is woken, and then for a moment more, so that what comes together is decided together.
func (p *prover) pause(ctx context.Context, delay time.Duration, wake <-chan struct{}) {
	select {
	case <-ctx.Done():
	case <-wake:
	case <-p.clock.After(delay):
	}
	select {
	case <-ctx.Done():
	case <-p.clock.After(collectFor):
	}
}

// pending returns what is pending, and ends the run if nothing is.
func (p *prover) pending(ctx context.Context, mailbox logicalcluster.Name) []Suspect {
	p.lock.Lock()
	defer p.lock.Unlock()
	docket := p.docketLocked(mailbox)
	if ctx.Err() != nil || len(docket.pending) == 0 {
		docket.running, docket.hidden = false, Hidden{}
		if docket.binding == "" {
			delete(p.docs, mailbox)
		}
		return nil
	}
	suspects := make([]Suspect, 0, len(docket.pending))
	for suspect := range docket.pending {
		suspects = append(suspects, suspect)
	}
	return suspects
}

// verdict is what a round decided; suspects that are neither proven nor cleared stay pending. Those hidden are there, and not shown to
// the hub.
type verdict struct{ proven, cleared, hidden []Suspect }

func (v *verdict) add(suspect Suspect, exists bool) {
	if exists {
		v.cleared = append(v.cleared, suspect)
		return
	}
	v.proven = append(v.proven, suspect)
}

// deliver keeps proofs for [Mailboxes.Proven] unless the object was seen again meanwhile.
func (p *prover) deliver(mailbox logicalcluster.Name, verdict verdict) {
	p.lock.Lock()
	docket := p.docketLocked(mailbox)
	var decided []Suspect
	for _, suspect := range verdict.proven {
		if _, ok := docket.pending[suspect]; ok {
			delete(docket.pending, suspect)
			docket.proven[suspect] = struct{}{}
			decided = append(decided, suspect)
		}
	}
	for _, suspect := range verdict.cleared {
		delete(docket.pending, suspect)
	}
	p.lock.Unlock()
	for _, suspect := range append(decided, verdict.cleared...) {
		for _, subscription := range p.mailboxes.subscribers.of(route{suspect.Resource, mailbox}) {
			subscription.OnProven(suspect.Key)
		}
	}
}
