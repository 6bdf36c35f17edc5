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
	gosync "sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/synchub-dev/synchub/controllers/compatibility"
	"github.com/synchub-dev/synchub/controllers/sync"
	"github.com/synchub-dev/synchub/controllers/sync/boundary"
	"github.com/synchub-dev/synchub/controllers/sync/relation"
	"github.com/synchub-dev/synchub/controllers/sync/selection"
	"github.com/synchub-dev/synchub/provider/mailboxes"
	"github.com/synchub-dev/synchub/provider/targets"
)

// managed is a SyncTarget with its sync controllers.
type managed struct {
	// turn is held, over requests too, by the one that starts and stops controllers.
	turn     gosync.Mutex
	gone     bool
	recorded map[schema.GroupResource]Record
	configs  configs
	// register knows what travels because it is related; contributors are those that have begun to say so.
	register     *relation.Register
	contributors map[string]bool
	unsubscribe  []func()
	// unresolved is true if a conversion speaks of a kind that the target does not serve, and announced is when the target
	// last told of a definition.
	unresolved atomic.Bool
	announced  atomic.Pointer[time.Time]
	// several are the resources of the target of which several versions are published, and redefined is when the target last told
	// of a definition of one of them.
	several   atomic.Pointer[map[schema.GroupResource]bool]
	redefined atomic.Pointer[time.Time]
	// lists are of what nothing selects any more.
	lists lists
	// cordoned is true if nothing new may be made on the target.
	cordoned atomic.Bool
	// adoption is the [synchubv1alpha1.AdoptionPolicy] of the SyncTarget.
	adoption atomic.Value
	// namespaces says which namespaces of the target may be used.
	namespaces atomic.Pointer[boundary.Namespaces]

	// clearing is what is done about names in conflict. It is written by the holder of turn.
	clearing clearing
	// rebound is true if nothing is removed from the target since the mailbox was bound again. It is written by the holder of
	// turn.
	rebound bool

	// stale is true when the configs must be looked at anew, ask if what is missing must be proven to be gone. Both are
	// guarded by the manager's lock.
	stale, ask bool

	// lock guards what follows, and is never held over a request. The holder of turn may read pairs, matcher and known
	// without it, since only he writes them.
	lock    gosync.Mutex
	target  Target
	matcher *selection.Matcher
	known   bool
	// since is when the SyncTarget was assigned.
	since time.Time
	// settled is the matcher by which the pairs that run were chosen, settledFor the number of the publication. Unstarted are the
	// resources whose pairs cannot be started before the target has answered.
	settled    *selection.Matcher
	settledFor int
	unstarted  []schema.GroupResource
	pairs      map[schema.GroupResource]*pair
	// demanded are the resources of which it was asked whether anybody wants what is left.
	demanded map[schema.GroupResource]sync.Resource
	// keeper is nil until the target is to be given a definition. Like pairs it is written by the holder of turn.
	keeper *keeper
	// comparing is nil until something is compared. It is written by the holder of turn.
	comparing *comparing
	// versions are those in which objects are written to the target, by their resource in the mailbox, where several are
	// published. They are written by the holder of turn.
	versions map[schema.GroupResource]string
	// fits is what is known of the resources of the target, told what was reported of them last. Both are written by the
	// holder of turn.
	fits, told map[schema.GroupResource]compatibility.State
	// deaf ends the listening to the connection.
	deaf func()
	// missing are the APIs that the mailbox does not have; missingKnown is false until that was looked at.
	missing      MissingAPIs
	missingKnown bool
	// interrupt ends the requests of the holder of turn, and stopping is true once nobody may make any more.
	interrupt context.CancelFunc
	stopping  bool
	// resumed is when all objects were looked at last because the target had come up.
	resumed rise
}

// rise is one time that a target came up, by one connection.
type rise struct {
	connection *targets.Connection
	number     uint64
}

// connect takes over a connection, and listens to it, and tells whether it is another one.
func (t *managed) connect(connection *targets.Connection, listener targets.Listener) (isOther bool) {
	t.lock.Lock()
	defer t.lock.Unlock()
	if t.deaf != nil && t.target.Connection == connection {
		return false
	}
	if t.deaf != nil {
		t.deaf()
		t.target.Trusted = Trust{}
	}
	t.target.Connection, t.deaf = connection, connection.Subscribe(listener)
	return true
}

// placed takes over in which namespaces something may have been written.
func (t *managed) placed(namespaces []string) {
	t.lock.Lock()
	defer t.lock.Unlock()
	t.target.Placed = namespaces
}

// limit takes over the limits of the mailbox, and tells whether they are others.
func (t *managed) limit(limits mailboxes.Limits) (changed bool) {
	t.lock.Lock()
	defer t.lock.Unlock()
	changed = t.target.Limits != limits
	t.target.Limits = limits
	return changed
}

// rose tells, once, that the target has come up.
func (t *managed) rose() bool {
	t.lock.Lock()
	defer t.lock.Unlock()
	now := rise{t.target.Connection, t.target.Connection.Rises()}
	if now == t.resumed || !t.target.Connection.Up() {
		return false
	}
	t.resumed = now
	return true
}

// awaits tells whether a kind that a conversion speaks of, or another version, may be served soon: a definition is announced a
// little before discovery shows it.
func (t *managed) awaits(now time.Time) bool {
	isRecent := func(told *time.Time) bool { return told != nil && now.Sub(*told) < announcedLimit }
	return t.unresolved.Load() && isRecent(t.announced.Load()) || isRecent(t.redefined.Load())
}

// settle notes that the pairs run that the matcher asks for of a publication, and tells whether the matcher is another one.
func (t *managed) settle(publication int, unstarted []schema.GroupResource) (changed bool) {
	t.lock.Lock()
	defer t.lock.Unlock()
	changed = t.settled != t.matcher
	t.settled, t.settledFor, t.unstarted = t.matcher, publication, unstarted
	return changed
}

func (t *managed) describe() Target {
	t.lock.Lock()
	defer t.lock.Unlock()
	return t.target
}

func (t *managed) controllers() []*sync.Controller {
	t.lock.Lock()
	defer t.lock.Unlock()
	controllers := make([]*sync.Controller, 0, len(t.pairs))
	for _, pair := range t.pairs {
		controllers = append(controllers, pair.controller)
	}
	return controllers
}

// pair is a running sync controller.
type pair struct {
	controller *sync.Controller
	since      time.Time
	cancel     context.CancelFunc
	done       chan struct{}
}

// end stops the controller of one resource. The caller holds turn.
func (t *managed) end(resource schema.GroupResource) {
	t.lock.Lock()
	ending := t.pairs[resource]
	delete(t.pairs, resource)
	t.lock.Unlock()
	ending.cancel()
	<-ending.done
}

// untilStopped returns a context for the holder of turn that ends when the target is to be stopped: a server that does not answer
// would hold that up.
func (t *managed) untilStopped(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	t.lock.Lock()
	defer t.lock.Unlock()
	t.interrupt = cancel
	if t.stopping {
		cancel()
	}
	return ctx, cancel
}

// stop ends all sync controllers of the target together.
func (t *managed) stop() {
	t.lock.Lock()
	t.stopping = true
	if t.interrupt != nil {
		t.interrupt()
	}
	t.lock.Unlock()
	for _, unsubscribe := range t.unsubscribe {
		unsubscribe()
	}
	t.turn.Lock()
	defer t.turn.Unlock()
	t.lock.Lock()
	ending := t.pairs
	t.pairs = nil
	if t.deaf != nil {
		t.deaf()
	}
	t.lock.Unlock()
	t.gone = true
	for _, pair := range ending {
		pair.cancel()
	}
	for _, pair := range ending {
		<-pair.done
	}
	t.setKeeper(nil)
	t.setComparing(nil)
}
