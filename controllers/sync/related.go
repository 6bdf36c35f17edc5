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

package sync

import (
	"errors"
	"fmt"
	"slices"
	gosync "sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	synchubv1alpha1 "github.com/synchub-dev/synchub/apis/synchub/v1alpha1"
	"github.com/synchub-dev/synchub/controllers/sync/decide"
	"github.com/synchub-dev/synchub/controllers/sync/relation"
	"github.com/synchub-dev/synchub/provider/mailboxes"
)

// relatives tells the register of related objects what travels with the objects of one resource, the primaries.
//
// That nobody wants an object means something only once all primaries have spoken. So much is found out only when it is
// asked for, because something is left that nobody wants: then the mailbox's list of primaries must be proven, too, for a
// primary that is missing there may only be out of sight (rule 3 of the design).
type relatives struct {
	register    *relation.Register
	contributor string
	relations   []*relation.Relation

	lock gosync.Mutex
	// spoken have said what they want since the start, or that they want nothing.
	spoken map[types.NamespacedName]struct{}
	// missing had not when the roll was called last.
	missing map[types.NamespacedName]struct{}
	// said are those that want something, or may.
	said map[types.NamespacedName]struct{}
	// demanded is what is to be found out, heard once all that is left was looked at again after all had spoken.
	demanded demand
	heard    bool
	complete bool
}

// demand is what is to be found out about the primaries, because something is left that nobody wants.
type demand int

const (
	nothing demand = iota
	// hearing: whether all that are seen have spoken. What is left is looked at again then: it is wanted by now, as a rule.
	hearing
	// proof: whether those that are seen are all there are.
	proof
)

func newRelatives(register *relation.Register, resource Resource) *relatives {
	return &relatives{
		register: register, contributor: resource.PublishedResource, relations: resource.Related(),
		spoken: map[types.NamespacedName]struct{}{}, said: map[types.NamespacedName]struct{}{},
	}
}

// doubt says that it cannot be told now what a primary wants.
func (r *relatives) doubt(primary types.NamespacedName) {
	r.says(primary)
	for _, relation := range r.relations {
		r.register.Fail(r.contributor, primary, relation)
	}
}

// forget says that a primary wants nothing any more.
func (r *relatives) forget(primary types.NamespacedName) {
	r.lock.Lock()
	delete(r.said, primary)
	r.lock.Unlock()
	if len(r.relations) > 0 {
		r.register.Remove(r.contributor, primary)
	}
}

// spoke is called when a primary has said what it wants, and tells whether to see if all have.
func (r *relatives) spoke(primary types.NamespacedName) (awaited bool) {
	if len(r.relations) == 0 {
		return false
	}
	r.lock.Lock()
	defer r.lock.Unlock()
	r.spoken[primary] = struct{}{}
	delete(r.missing, primary)
	return r.demanded != nothing && !r.complete && len(r.missing) == 0
}

// call calls the roll, and tells whether any primary is missing.
func (r *relatives) call(primaries []types.NamespacedName) (incomplete bool) {
	r.lock.Lock()
	defer r.lock.Unlock()
	r.missing = map[types.NamespacedName]struct{}{}
	for _, primary := range primaries {
		if _, ok := r.spoken[primary]; !ok {
			r.missing[primary] = struct{}{}
		}
	}
	return len(r.missing) > 0
}

// says notes that a primary wants something, or may.
func (r *relatives) says(primary types.NamespacedName) {
	r.lock.Lock()
	defer r.lock.Unlock()
	r.said[primary] = struct{}{}
}

// wants tells whether a primary wants something, or may, by what it said last.
func (r *relatives) wants(primary types.NamespacedName) bool {
	r.lock.Lock()
	defer r.lock.Unlock()
	_, ok := r.said[primary]
	return ok
}

// hear notes that all have spoken, and tells whether that is new, and whether it is to be proven.
func (r *relatives) hear() (news, prove bool) {
	r.lock.Lock()
	defer r.lock.Unlock()
	news = !r.heard
	r.heard = true
	if r.demanded == hearing {
		r.demanded = nothing
	}
	return news, r.demanded == proof && !r.complete
}

// demand notes what is to be found out, and tells whether nobody has asked for that yet. Whoever asks calls the roll, which
// looks at every primary; for those that come after, each primary that speaks goes on with it.
func (r *relatives) demand(what demand) (news bool) {
	r.lock.Lock()
	defer r.lock.Unlock()
	if r.complete || r.heard && what == hearing || r.demanded >= what {
		return false
	}
	r.demanded = what
	return true
}

// awaits tells whether something is to be found out.
func (r *relatives) awaits() bool {
	r.lock.Lock()
	defer r.lock.Unlock()
	return r.demanded != nothing && !r.complete
}

func (r *relatives) isHeard() bool {
	r.lock.Lock()
	defer r.lock.Unlock()
	return r.heard
}

// finish tells the register that all have spoken.
func (r *relatives) finish() {
	r.lock.Lock()
	r.complete = true
	r.lock.Unlock()
	r.register.Complete(r.contributor)
}

// Confirm is called when something is left that no primary is known to want, with the controllers of all primaries that
// may. Nothing is proven before all have been heard, for what one does not want another may, and of what is answered by
// then: it was looked at before one had spoken, and will be looked at again.
func Confirm(all []*Controller, answered func() bool) {
	what := proof
	if slices.ContainsFunc(all, func(c *Controller) bool { return !c.relatives.isHeard() }) {
		what = hearing
	} else if answered() {
		return
	}
	for _, controller := range all {
		controller.find(what)
	}
}

// Hear has it found out whether all primaries that are seen have spoken.
func (c *Controller) Hear() { c.find(hearing) }

func (c *Controller) find(what demand) {
	if len(c.relatives.relations) > 0 && c.relatives.demand(what) {
		c.callTheRoll()
	}
}

// answerRoll is called when something is known that was missing for the roll.
func (c *Controller) answerRoll() {
	if c.relatives.awaits() {
		c.callTheRoll()
	}
}

// callTheRoll finds out whether all primaries have spoken, and says so.
func (c *Controller) callTheRoll() {
	_, known := c.Mailboxes.List(c.Resource.GroupVersionResource, c.Mailbox)
	if !known || !c.Synced() || !c.areFeedsSynced() || !c.isWorking() {
		return
	}
	if c.relatives.call(c.keys()) {
		return
	}
	news, prove := c.relatives.hear()
	if news {
		c.Again()
	}
	if !prove {
		return
	}
	suspect := c.suspect(mailboxes.Roll, decide.Vanished)
	if !c.Mailboxes.Proven(c.Mailbox, suspect) {
		c.Mailboxes.Prove(c.Mailbox, suspect)
		return
	}
	c.relatives.finish()
}

// spoke notes that a primary has said what it wants.
func (c *Controller) spoke(key types.NamespacedName) {
	if c.relatives.spoke(key) {
		c.callTheRoll()
	}
}

// relate says what travels with a primary that is on the target, or is going there.
func (c *Controller) relate(key types.NamespacedName, chosen choice, source *unstructured.Unstructured, here placed) error {
	above := primary{object: source, home: source.GetNamespace(), away: here.key.Namespace}
	below := primary{object: here.object, home: here.key.Namespace, away: source.GetNamespace()}
	return c.relateBoth(key, chosen, above, below)
}

// relateSuspended does the same for a primary that is to be left as it is, as are all that travel with it.
func (c *Controller) relateSuspended(key types.NamespacedName, source *unstructured.Unstructured, chosen choice, seen []placed) error {
	var here placed
	err := errUnseen
	switch {
	case source == nil:
	case len(seen) > 0:
		here, err = seen[0], nil
	default:
		here, _, err = c.destination(source, chosen, nil)
	}
	if err != nil {
		c.relatives.doubt(key)
		c.spoke(key)
		return nil //nolint:nilerr // it is suspended: nobody waits for it
	}
	chosen.Suspended = true
	return c.relate(key, chosen, source, here)
}

// LookAgain looks again at all that is left and came by a relation.
func (c *Controller) LookAgain() {
	c.kinChangedAbove(relation.Change{All: true})
	for _, side := range c.sides {
		c.enqueue(createPriority, c.raisedKin(side, relation.Change{All: true})...)
	}
}

// primary is an object, which may be nil, on the one side, with its namespaces there and on the other side.
type primary struct {
	object     *unstructured.Unstructured
	home, away string
}

func (c *Controller) relateBoth(key types.NamespacedName, chosen choice, above, below primary) error {
	var errs []error
	for i, relation := range c.relatives.relations {
		on := above
		if relation.Origin == synchubv1alpha1.RelatedOriginTarget {
			on = below
		}
		if on.object == nil {
			// It is not there now: what it said before holds on.
			c.relatives.says(key)
			c.Register.Fail(c.Resource.PublishedResource, key, relation)
			continue
		}
		if err := c.relateOne(key, chosen, relation, on); err != nil {
			errs = append(errs, &ruleError{field: fmt.Sprintf("spec.related[%d] (%s)", i, relation.Identifier), err: err})
		}
	}
	c.spoke(key)
	return errors.Join(errs...)
}

func (c *Controller) relateOne(key types.NamespacedName, chosen choice, related *relation.Relation, on primary) error {
	wanted, err := related.Resolve(on.object, relation.Environment{Mailbox: c.Mailbox.String(), SyncTarget: c.SyncTarget})
	if err != nil {
		c.Register.Fail(c.Resource.PublishedResource, key, related)
		return err
	}
	wanted.About = relation.About{Away: on.away, Configs: chosen.Configs, Suspended: chosen.Suspended}
	if related.NamesByPrimary() {
		wanted.About.Object = on.object.Object
	}
	c.relatives.says(key)
	c.Register.Set(c.Resource.PublishedResource, key, related, wanted)
	matcher := c.matcher.Load()
	for _, name := range wanted.Names {
		if name.Namespace != on.home && !matcher.ReachesNamespace(name.Namespace) {
			return fmt.Errorf("the namespace %s is neither that of the object nor selected by a SyncerConfig: %s is left out", name.Namespace, name)
		}
	}
	return nil
}

// relateRaised says what travels with a primary that came up.
func (c *Controller) relateRaised(key types.NamespacedName, held, object *unstructured.Unstructured) error {
	if len(c.relatives.relations) == 0 {
		return nil
	}
	chosen := c.chooseBelow(key, held, object)
	above := primary{object: held, home: key.Namespace, away: object.GetNamespace()}
	below := primary{object: object, home: object.GetNamespace(), away: key.Namespace}
	return c.relateBoth(key, chosen, above, below)
}
