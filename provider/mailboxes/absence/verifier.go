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

package absence

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"github.com/kcp-dev/logicalcluster/v3"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/utils/clock"
)

const (
	// batchPeriod is how long a pass waits for candidates that come with the first one.
	batchPeriod = 50 * time.Millisecond
	// retryInterval is the time between passes that cannot verify a mailbox. A change of its binding starts a pass at once.
	retryInterval = 30 * time.Second
	// reboundRetryInterval is the retry interval of a rebound mailbox. The verifier verifies no absence there while the
	// mailbox keeps its binding.
	reboundRetryInterval = time.Hour
	// passTimeout bounds the requests of one pass.
	passTimeout = time.Minute

	// A mass deletion has more than massDeletionCount candidates, or more than one in massDeletionDivisor of the mailbox's
	// objects and more than massDeletionMinimum. The minimum keeps a mailbox of five objects from delaying each deletion.
	massDeletionCount   = 50
	massDeletionDivisor = 5
	massDeletionMinimum = 5
)

// Delays are how long a verification waits, because kcp may not have finished its work.
type Delays struct {
	// BindingSettle is how long a binding must be unchanged before a list through it counts. When a claim is rejected and
	// accepted again, kcp removes the labels of all objects and restores them one by one. Until kcp has finished, the
	// binding keeps its former status.
	BindingSettle time.Duration
	// MassDeletion is the time between the two verifications of a mass deletion.
	MassDeletion time.Duration
}

// DefaultDelays are for a kcp that serves many mailboxes.
var DefaultDelays = Delays{BindingSettle: 10 * time.Second, MassDeletion: 10 * time.Second}

// Candidate is an object whose copy the hub will remove because of its absence from the mailbox.
type Candidate struct {
	Resource schema.GroupVersionResource
	Key      types.NamespacedName
	// Missing is true if the cache lacks the object. It is false if something visible is the reason, such as a
	// deletionTimestamp or configs that do not select the object. Then only the binding must be verified.
	Missing bool
}

// Witness is an object of a mailbox that was known to exist at a version. A store that does not contain that version went
// back.
type Witness struct {
	Key     types.NamespacedName
	Version uint64
}

// AllObjects is a sentinel key: verifying it proves that the cache is complete for a resource.
var AllObjects = types.NamespacedName{Name: "(all)"}

// compare orders the candidates of a mailbox.
func (c Candidate) compare(other Candidate) int {
	return cmp.Or(cmp.Compare(c.Resource.Resource, other.Resource.Resource), cmp.Compare(c.Key.String(), other.Key.String()))
}

// MailboxEndpoint is the endpoint of the virtual workspace that shows a mailbox.
type MailboxEndpoint struct {
	// Endpoint identifies the endpoint; it is only compared.
	Endpoint any
	// Client reads the mailbox through the endpoint.
	Client dynamic.Interface
	// Binding is the name of the mailbox's APIBinding.
	Binding string
	// BindLater is true if workspaces bind the export after their creation. Then the age of a binding proves nothing.
	BindLater bool
}

// Cache is the cache of all mailboxes, which the verifier checks. Package mailboxes implements it.
type Cache interface {
	// EndpointOf returns where a mailbox is visible; ok is false if no endpoint shows it, or more than one.
	EndpointOf(mailbox logicalcluster.Name) (found MailboxEndpoint, ok bool)
	// WorkspaceClient returns a client for the workspace itself, where claims hide nothing. The hub may lack permissions there.
	WorkspaceClient(mailbox logicalcluster.Name) (dynamic.Interface, error)
	// IsIncomplete reports whether the cache lacks objects of the mailbox by design: they are evicted, or this replica does not need the
	// mailbox.
	IsIncomplete(mailbox logicalcluster.Name) bool
	// Contains reports whether the cache holds an object; known is false if the cache of the resource is not filled.
	Contains(resource schema.GroupVersionResource, mailbox logicalcluster.Name, key types.NamespacedName) (contained, known bool)
	// CountObjects returns the number of cached objects of a mailbox, without its binding.
	CountObjects(mailbox logicalcluster.Name) int
	// OnAbsenceDecided is called when a candidate is verified, or its object exists.
	OnAbsenceDecided(mailbox logicalcluster.Name, candidate Candidate)
	// OnHistoryLost is called when the store went back: it is at a version, and does not contain an object that it had at a
	// later version, or that it must contain at this one.
	OnHistoryLost(mailbox logicalcluster.Name, resource schema.GroupVersionResource, lost Witness, now uint64)
	// OnRebound is called when a pass finds that a mailbox was bound again.
	OnRebound(mailbox logicalcluster.Name)
}

// Verifier verifies candidates, all of one mailbox together. All methods may be called concurrently.
type Verifier struct {
	cache   Cache
	delays  Delays
	clock   clock.Clock
	log     logr.Logger
	running sync.WaitGroup

	lock   sync.Mutex
	states map[logicalcluster.Name]*state
}

// New returns a verifier for the mailboxes of a cache. Zero delays mean [DefaultDelays].
func New(cache Cache, delays Delays, clock clock.Clock, log logr.Logger) *Verifier {
	if delays == (Delays{}) {
		delays = DefaultDelays
	}
	return &Verifier{cache: cache, delays: delays, clock: clock, log: log.WithName("absence"), states: map[logicalcluster.Name]*state{}}
}

// Verify starts the verification of a candidate, which ends with ctx. With a nil ctx it only records the candidate, for the
// next call.
func (v *Verifier) Verify(ctx context.Context, mailbox logicalcluster.Name, candidate Candidate) {
	v.lock.Lock()
	defer v.lock.Unlock()
	state := v.stateLocked(mailbox)
	if _, ok := state.pending[candidate]; ok && state.running {
		return
	}
	state.addPending(candidate, v.clock.Now())
	if state.running {
		state.notify()
		return
	}
	if ctx == nil || ctx.Err() != nil {
		return
	}
	state.running = true
	v.running.Go(func() { v.run(ctx, mailbox) })
}

// HasVerified reports whether the absence of a candidate is verified. [Verifier.TakeVerified] uses the verification up.
func (v *Verifier) HasVerified(mailbox logicalcluster.Name, candidate Candidate) bool {
	v.lock.Lock()
	defer v.lock.Unlock()
	state, ok := v.states[mailbox]
	if !ok {
		return false
	}
	_, ok = state.verified[candidate]
	return ok
}

// TakeVerified reports whether the absence was verified since the object was last visible. Each verification counts once.
func (v *Verifier) TakeVerified(mailbox logicalcluster.Name, candidate Candidate) bool {
	v.lock.Lock()
	defer v.lock.Unlock()
	state, ok := v.states[mailbox]
	if !ok {
		return false
	}
	_, ok = state.verified[candidate]
	delete(state.verified, candidate)
	return ok
}

// WasRebound reports whether a pass has found that the mailbox was bound again. Then no missing object counts as deleted.
func (v *Verifier) WasRebound(mailbox logicalcluster.Name) bool {
	v.lock.Lock()
	defer v.lock.Unlock()
	state, ok := v.states[mailbox]
	return ok && state.rebound
}

// HiddenObjects are objects of a mailbox that kcp does not show to the hub although their claim is accepted.
type HiddenObjects struct {
	Count int
	// Example is one of the objects.
	Example Candidate
}

// HiddenObjects returns the hidden objects among the candidates of the last pass. The hub leaves their copies as they are.
func (v *Verifier) HiddenObjects(mailbox logicalcluster.Name) HiddenObjects {
	v.lock.Lock()
	defer v.lock.Unlock()
	if state, ok := v.states[mailbox]; ok {
		return state.hiddenObjects
	}
	return HiddenObjects{}
}

// Wait returns when all passes have ended.
func (v *Verifier) Wait() { v.running.Wait() }

// run makes passes until no candidate is pending.
func (v *Verifier) run(ctx context.Context, mailbox logicalcluster.Name) {
	v.lock.Lock()
	wake := v.stateLocked(mailbox).wake
	v.lock.Unlock()
	var delay time.Duration
	for {
		v.waitForPass(ctx, delay, wake)
		requested := v.pendingCandidates(ctx, mailbox)
		if len(requested) == 0 {
			return
		}
		var result passResult
		result, delay = v.runPass(ctx, mailbox, slices.Collect(maps.Keys(requested)))
		v.applyResult(mailbox, requested, result)
	}
}

// waitForPass waits for the delay or a wake-up, and then for batchPeriod.
func (v *Verifier) waitForPass(ctx context.Context, delay time.Duration, wake <-chan struct{}) {
	select {
	case <-ctx.Done():
	case <-wake:
	case <-v.clock.After(delay):
	}
	select {
	case <-ctx.Done():
	case <-v.clock.After(batchPeriod):
	}
}
