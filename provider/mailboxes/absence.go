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
	// batchPeriod is how long a pass waits for candidates that come with the first one.
	batchPeriod = 50 * time.Millisecond
	// retryInterval is when a mailbox that cannot be verified now is tried again. A change of its binding retries at once.
	retryInterval = 30 * time.Second
	// reboundRetryInterval is the same for a rebound mailbox, where nothing is verified as long as it keeps its binding.
	reboundRetryInterval = time.Hour
	// passTimeout bounds the requests of one pass.
	passTimeout = time.Minute

	// A mailbox loses suspiciously many objects at once with massDeletionCount candidates, or with one in massDeletionDivisor
	// of its objects, if those are at least massDeletionMinimum. The floor keeps a mailbox of five objects from holding up
	// each single deletion.
	massDeletionCount   = 50
	massDeletionDivisor = 5
	massDeletionMinimum = 5
)

// AbsenceDelays are how long the verification of absences waits, because kcp may not have finished what it does.
type AbsenceDelays struct {
	// BindingSettle is how long a binding must have been unchanged before a list through it counts. When a claim is rejected and
	// accepted again, kcp removes the labels of all objects and restores them one by one. Until it has finished, the binding's
	// status is still the former one.
	BindingSettle time.Duration
	// MassDeletion is how long many candidates wait until they are verified a second time.
	MassDeletion time.Duration
}

// DefaultAbsenceDelays are for a kcp that serves many mailboxes.
var DefaultAbsenceDelays = AbsenceDelays{BindingSettle: 10 * time.Second, MassDeletion: 10 * time.Second}

// AbsenceCandidate is an object whose copy is about to be removed because of its absence from the mailbox.
type AbsenceCandidate struct {
	Resource schema.GroupVersionResource
	Key      types.NamespacedName
	// Missing is true if the object itself is not visible any more. It is false if a visible fact is the reason, such as a
	// deletionTimestamp or configs that do not select the object. Then only the binding must be verified.
	Missing bool
}

// AllObjects is a sentinel key: verifying it proves that the cache is complete for a resource.
var AllObjects = types.NamespacedName{Name: "(all)"}

func missingCandidate(resource schema.GroupVersionResource, object *unstructured.Unstructured) AbsenceCandidate {
	return AbsenceCandidate{Resource: resource, Key: types.NamespacedName{Namespace: object.GetNamespace(), Name: object.GetName()}, Missing: true}
}

// VerifyAbsence asks for the verification of a candidate. OnAbsenceDecided of the subscribers is called with either result.
// Before [Mailboxes.Start] the candidate is only noted. Candidates of resources that are not watched cannot be verified.
func (m *Mailboxes) VerifyAbsence(mailbox logicalcluster.Name, candidate AbsenceCandidate) {
	// Under the lock, so that Unwatch drops the candidate too.
	m.lock.RLock()
	defer m.lock.RUnlock()
	if slices.Contains(m.resources, candidate.Resource) {
		m.absence.verify(m.ctx, mailbox, candidate)
	}
}

// TakeVerifiedAbsence reports whether the absence was verified since the object was last visible. A verification counts once.
func (m *Mailboxes) TakeVerifiedAbsence(mailbox logicalcluster.Name, candidate AbsenceCandidate) bool {
	return m.absence.takeVerified(mailbox, candidate)
}

// WasRebound reports whether the mailbox was bound again, so that no missing object counts as deleted. It is found out with
// the first candidate.
func (m *Mailboxes) WasRebound(mailbox logicalcluster.Name) bool {
	m.absence.lock.Lock()
	defer m.absence.lock.Unlock()
	state, ok := m.absence.states[mailbox]
	return ok && state.rebound
}

// HiddenObjects are objects of a mailbox that kcp does not show to the hub although their claim is accepted.
type HiddenObjects struct {
	Count int
	// Example is one of them.
	Example AbsenceCandidate
}

// HiddenObjects returns the objects that kcp hides and has shown before. Their copies stay as they are.
func (m *Mailboxes) HiddenObjects(mailbox logicalcluster.Name) HiddenObjects {
	m.absence.lock.Lock()
	defer m.absence.lock.Unlock()
	state, ok := m.absence.states[mailbox]
	if !ok {
		return HiddenObjects{}
	}
	return state.hiddenObjects
}

// setHidden notes the hidden objects that a pass has found.
func (p *absenceVerifier) setHidden(mailbox logicalcluster.Name, hidden []AbsenceCandidate) {
	p.lock.Lock()
	defer p.lock.Unlock()
	found := HiddenObjects{Count: len(hidden)}
	for i, candidate := range hidden {
		if i == 0 || candidate.compare(found.Example) < 0 {
			found.Example = candidate
		}
	}
	p.stateLocked(mailbox).hiddenObjects = found
}

// compare orders the candidates of a mailbox.
func (s AbsenceCandidate) compare(other AbsenceCandidate) int {
	return cmp.Or(cmp.Compare(s.Resource.Resource, other.Resource.Resource), cmp.Compare(s.Key.String(), other.Key.String()))
}

// absenceVerifier verifies candidates, all of one mailbox together.
type absenceVerifier struct {
	mailboxes *Mailboxes
	// workspaceClient returns a client for the workspace itself, beside the virtual workspace.
	workspaceClient func(logicalcluster.Name) (dynamic.Interface, error)
	delays          AbsenceDelays
	clock           clock.Clock
	log             logr.Logger
	running         sync.WaitGroup

	lock   sync.Mutex
	states map[logicalcluster.Name]*absenceState
}

func newAbsenceVerifier(mailboxes *Mailboxes, delays AbsenceDelays, clock clock.Clock, log logr.Logger) *absenceVerifier {
	return &absenceVerifier{mailboxes: mailboxes, workspaceClient: mailboxes.workspaceClient, delays: delays, clock: clock, log: log.WithName("proof"), states: map[logicalcluster.Name]*absenceState{}}
}

func (p *absenceVerifier) verify(ctx context.Context, mailbox logicalcluster.Name, candidate AbsenceCandidate) {
	p.lock.Lock()
	defer p.lock.Unlock()
	state := p.stateLocked(mailbox)
	if _, ok := state.pending[candidate]; ok && state.running {
		return
	}
	state.pending[candidate] = struct{}{}
	if state.running {
		state.notify()
		return
	}
	if ctx == nil || ctx.Err() != nil {
		return
	}
	state.running = true
	p.running.Go(func() { p.run(ctx, mailbox) })
}

func (p *absenceVerifier) takeVerified(mailbox logicalcluster.Name, candidate AbsenceCandidate) bool {
	p.lock.Lock()
	defer p.lock.Unlock()
	state, ok := p.states[mailbox]
	if !ok {
		return false
	}
	_, ok = state.verified[candidate]
	delete(state.verified, candidate)
	return ok
}

func (p *absenceVerifier) wait() { p.running.Wait() }

// run makes passes until no candidate is pending.
func (p *absenceVerifier) run(ctx context.Context, mailbox logicalcluster.Name) {
	p.lock.Lock()
	wake := p.stateLocked(mailbox).wake
	p.lock.Unlock()
	var delay time.Duration
	for {
		p.waitForPass(ctx, delay, wake)
		candidates := p.pendingCandidates(ctx, mailbox)
		if len(candidates) == 0 {
			return
		}
		var result passResult
		result, delay = p.runPass(ctx, mailbox, candidates)
		p.applyResult(mailbox, result)
	}
}

// waitForPass waits for the delay or a wake-up, and then a moment longer, so that candidates that come together are verified
// together.
func (p *absenceVerifier) waitForPass(ctx context.Context, delay time.Duration, wake <-chan struct{}) {
	select {
	case <-ctx.Done():
	case <-wake:
	case <-p.clock.After(delay):
	}
	select {
	case <-ctx.Done():
	case <-p.clock.After(batchPeriod):
	}
}

// pendingCandidates returns the pending candidates, and ends the run if there are none.
func (p *absenceVerifier) pendingCandidates(ctx context.Context, mailbox logicalcluster.Name) []AbsenceCandidate {
	p.lock.Lock()
	defer p.lock.Unlock()
	state := p.stateLocked(mailbox)
	if ctx.Err() != nil || len(state.pending) == 0 {
		state.running, state.hiddenObjects = false, HiddenObjects{}
		if state.bindingVersion == "" {
			delete(p.states, mailbox)
		}
		return nil
	}
	candidates := make([]AbsenceCandidate, 0, len(state.pending))
	for candidate := range state.pending {
		candidates = append(candidates, candidate)
	}
	return candidates
}

// passResult is the result of one pass. Candidates that are neither verified nor cleared stay pending. The hidden ones exist
// and are not shown to the hub.
type passResult struct{ verified, cleared, hidden []AbsenceCandidate }

func (v *passResult) add(candidate AbsenceCandidate, exists bool) {
	if exists {
		v.cleared = append(v.cleared, candidate)
		return
	}
	v.verified = append(v.verified, candidate)
}

// applyResult keeps verifications for [Mailboxes.TakeVerifiedAbsence] unless the object became visible again meanwhile.
func (p *absenceVerifier) applyResult(mailbox logicalcluster.Name, result passResult) {
	p.lock.Lock()
	state := p.stateLocked(mailbox)
	var decided []AbsenceCandidate
	for _, candidate := range result.verified {
		if _, ok := state.pending[candidate]; ok {
			delete(state.pending, candidate)
			state.verified[candidate] = struct{}{}
			decided = append(decided, candidate)
		}
	}
	for _, candidate := range result.cleared {
		delete(state.pending, candidate)
	}
	p.lock.Unlock()
	for _, candidate := range append(decided, result.cleared...) {
		for _, subscription := range p.mailboxes.subscribers.get(subscriptionKey{candidate.Resource, mailbox}) {
			subscription.OnAbsenceDecided(candidate.Key)
		}
	}
}
