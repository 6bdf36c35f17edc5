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
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/controllers/sync/ownership"
	"github.com/synchub-dev/synchub/controllers/sync/selection"
	"github.com/synchub-dev/synchub/provider/mailboxes"
	"github.com/synchub-dev/synchub/provider/targets"
)

// Tally counts the objects of one config.
type Tally struct {
	// Selected objects are those the config selects in the mailbox; of these, Synced are on the target and Failed are
	// not in step for a reason given in Failures.
	Selected, Synced, Failed int64
	Failures                 []ObjectFailure
	// Deferred are objects that are not counted as synced, since fields that are not ignored any more are left to the target
	// until the object changes: whether they differ is not known.
	Deferred []DeferredObject
	// Overruled are objects that the config selects under other names than an older config, which wins.
	Overruled []ObjectName
	// LeftOut are objects that an entry for going down selects but that do not go, because one for coming up selects
	// them as well.
	LeftOut []ObjectName
	// Dropped are fields of objects of the target that the mailbox's schema does not have, each with its resource, sorted.
	Dropped []string
}

// ObjectName names an object of a mailbox.
type ObjectName struct {
	Resource schema.GroupResource
	Key      types.NamespacedName
}

// DeferredObject is an object of which fields are left to the target until it changes.
type DeferredObject struct {
	ObjectName
	Fields []string
}

// Unavailable is a resource that cannot be synced with the target now.
type Unavailable struct {
	// Target names the resource on the target, of which Kind is the kind.
	Target schema.GroupResource
	Kind   string
	// Reason is [ReasonNotServed] or [ReasonForbidden]; Message is what the target says.
	Reason, Message string
}

// ObjectFailure is an object that is not in step.
type ObjectFailure struct {
	Resource Resource
	Key      types.NamespacedName
	Failure  Failure
}

// FirstFailures returns the first of the failures by resource and name, in the form of a status.
func FirstFailures(all []ObjectFailure, limit int) (first []edgev2alpha1.ObjectFailure) {
	sorted := slices.Clone(all)
	slices.SortFunc(sorted, func(a, b ObjectFailure) int {
		return strings.Compare(a.Resource.GroupResource().String()+" "+a.Key.String(), b.Resource.GroupResource().String()+" "+b.Key.String())
	})
	for _, failure := range sorted[:min(len(sorted), limit)] {
		first = append(first, edgev2alpha1.ObjectFailure{
			Group: failure.Resource.Group, Resource: failure.Resource.Resource,
			Namespace: failure.Key.Namespace, Name: failure.Key.Name,
			Reason: failure.Failure.Reason, Message: Truncate(failure.Failure.Message),
		})
	}
	return first
}

// objectStates are what is known of objects beside what the caches show.
type objectStates struct {
	failures map[types.NamespacedName]Failure
	deferred map[types.NamespacedName][]string
}

// AddTo counts this controller's objects into the tallies of the configs that select them.
func (c *Controller) AddTo(tallies map[string]*Tally) {
	matcher := c.matcher.Load()
	known := objectStates{c.failures.snapshot(), c.failures.deferredFields()}
	sources, _ := c.Mailboxes.List(c.Resource.GroupVersionResource, c.Mailbox)
	for _, source := range sources {
		if chosen, ok := c.chooseDown(matcher, source); ok {
			c.countDown(tallies, source, chosen, known)
		} else if _, failed := known.failures[keyOf(source)]; failed && len(c.raised.at(keyOf(source))) == 0 {
			c.countLeft(tallies, matcher, source, known)
		}
	}
	for _, key := range c.raised.keys() {
		c.countUp(tallies, matcher, key, known)
	}
	c.dropped.addTo(tallies, c.Resource.GroupResource())
}

func (c *Controller) countDown(tallies map[string]*Tally, source *unstructured.Unstructured, chosen choice, known objectStates) {
	key := keyOf(source)
	name := ObjectName{Resource: c.Resource.GroupResource(), Key: key}
	marks := c.marksFrom(key)
	if len(marks) == 0 && mailboxes.ExtentOf(source) == mailboxes.Whole && c.staysAbove(source, chosen) {
		for _, config := range chosen.Configs {
			tally := tallyOf(tallies, config)
			tally.LeftOut = append(tally.LeftOut, name)
		}
		return
	}
	for _, config := range chosen.Overruled {
		tally := tallyOf(tallies, config)
		tally.Overruled = append(tally.Overruled, name)
	}
	uid := source.GetUID()
	synced := slices.ContainsFunc(marks, func(mark ownership.Mark) bool { return mark.Source.UID == uid })
	c.count(tallies, chosen.Selection, key, synced, known)
}

// staysAbove tells whether an object is left out since one of its name is selected for coming up.
func (c *Controller) staysAbove(source *unstructured.Unstructured, chosen choice) bool {
	here, _, err := c.destination(source, chosen, nil)
	return err == nil && c.isLeftOut(source, here)
}

func (c *Controller) countUp(tallies map[string]*Tally, matcher *selection.Matcher, key types.NamespacedName, known objectStates) {
	held, _ := c.mailboxObject(key)
	side, object := c.sourceBelow(key, held)
	if object == nil {
		return
	}
	chosen, ok := c.chooseUp(matcher, side, object)
	if !ok {
		return
	}
	for _, config := range chosen.Overruled {
		tally := tallyOf(tallies, config)
		tally.Overruled = append(tally.Overruled, ObjectName{Resource: c.Resource.GroupResource(), Key: key})
	}
	c.count(tallies, chosen.Selection, key, c.cameUp(held), known)
}

// countLeft counts what came up before and may not any more.
func (c *Controller) countLeft(tallies map[string]*Tally, matcher *selection.Matcher, held *unstructured.Unstructured, known objectStates) {
	mark, err := markAbove(c.Owner, held)
	if err != nil {
		return
	}
	if selected, ok := c.selectsHeld(matcher, c.sideOf(placeBelow(mark).resource), mark, held); ok {
		c.count(tallies, selected, keyOf(held), false, known)
	}
}

func (c *Controller) count(tallies map[string]*Tally, selected selection.Selection, key types.NamespacedName, synced bool, known objectStates) {
	failure, failed := known.failures[key]
	deferred := known.deferred[key]
	if failure.Reason == ReasonMailboxLimitExceeded {
		// What the mailbox has changes, and limits do.
		held, _ := c.Mailboxes.Get(c.Resource.GroupVersionResource, c.Mailbox, key)
		failure = failureOf(c.Mailboxes.LimitErrorOf(c.Resource.GroupVersionResource, c.Mailbox, held))
	}
	for _, config := range selected.Configs {
		tally := tallyOf(tallies, config)
		tally.Selected++
		switch {
		case failed:
			tally.Failed++
			tally.Failures = append(tally.Failures, ObjectFailure{Resource: c.Resource, Key: key, Failure: failure})
		case synced && len(deferred) > 0:
			tally.Deferred = append(tally.Deferred, DeferredObject{ObjectName{c.Resource.GroupResource(), key}, deferred})
		case synced:
			tally.Synced++
		}
	}
}

func tallyOf(tallies map[string]*Tally, config string) *Tally {
	tally, ok := tallies[config]
	if !ok {
		tally = &Tally{}
		tallies[config] = tally
	}
	return tally
}

// Sum says how a controller, or several, are doing.
type Sum struct {
	// Synced objects are in step on both sides, Failed are not. Those of which fields are left to the target are neither.
	Synced, Failed int
	// Former objects are left on the target though the mailbox they came from is gone.
	Former int
	// PendingSince is when the oldest change was seen that has not reached its other side yet; zero if there is none.
	PendingSince time.Time
	// Failures are the failed objects, in no order.
	Failures []ObjectFailure
}

// Add takes in another sum.
func (s *Sum) Add(other Sum) {
	s.Synced += other.Synced
	s.Failed += other.Failed
	s.Former += other.Former
	s.Failures = append(s.Failures, other.Failures...)
	if s.PendingSince.IsZero() || !other.PendingSince.IsZero() && other.PendingSince.Before(s.PendingSince) {
		s.PendingSince = other.PendingSince
	}
}

// Sum counts the objects that went down or came up.
func (c *Controller) Sum() Sum {
	sum := Sum{Synced: c.Len()}
	above, _ := c.Mailboxes.List(c.Resource.GroupVersionResource, c.Mailbox)
	failures := c.failures.snapshot()
	for _, object := range above {
		if _, failed := failures[keyOf(object)]; c.cameUp(object) && !failed {
			sum.Synced++
		}
	}
	for key, failure := range failures {
		sum.Failed++
		sum.Failures = append(sum.Failures, ObjectFailure{Resource: c.Resource, Key: key, Failure: failure})
		sum.Synced -= len(c.marksFrom(key))
	}
	for key := range c.failures.deferredFields() {
		if _, failed := failures[key]; !failed {
			// Whether the fields differ that are left to the target is not known.
			sum.Synced -= len(c.marksFrom(key))
		}
	}
	for _, key := range c.failures.kept() {
		sum.Former += len(c.marksFrom(key))
	}
	sum.Synced -= sum.Former
	sum.PendingSince, _ = c.pending.oldest()
	return sum
}

// Backlog returns how many objects are to be looked at.
func (c *Controller) Backlog() int {
	c.lock.Lock()
	queue := c.queue
	c.lock.Unlock()
	if queue == nil {
		return 0
	}
	return queue.Len()
}

// Empty tells whether neither side is known to hold an object that the hub brought there, and none is being made. A
// reconcile that begins after [Controller.SetMatcher] selects by the new matcher, so what is empty under a matcher that
// selects nothing stays empty.
func (c *Controller) Empty() bool {
	if !c.Synced() || c.active.Load() > 0 || c.Len() > 0 {
		return false
	}
	_, known := c.Mailboxes.List(c.Resource.GroupVersionResource, c.Mailbox)
	return known && !c.holdsAbove()
}

// holdsAbove tells whether the mailbox is known to hold something that came up, or that waits for the target.
func (c *Controller) holdsAbove() bool {
	above, _ := c.Mailboxes.List(c.Resource.GroupVersionResource, c.Mailbox)
	return slices.ContainsFunc(above, func(object *unstructured.Unstructured) bool { return c.cameUp(object) || IsHeld(object) })
}

// Len returns how many objects of the mailbox's resource the target holds.
func (c *Controller) Len() int {
	count := 0
	for _, side := range c.sides {
		count += c.lenOf(side.GroupResource())
	}
	return count
}

// EmptyOf tells whether the target is known to hold none of the mailbox's objects as the resource given, the mailbox to
// hold none that came up from it, and none is being made.
func (c *Controller) EmptyOf(target schema.GroupResource) bool {
	side := c.sideOf(target)
	if side == nil || !side.cache.Synced() || c.active.Load() > 0 || c.lenOf(target) > 0 {
		return false
	}
	above, known := c.Mailboxes.List(c.Resource.GroupVersionResource, c.Mailbox)
	return known && !slices.ContainsFunc(above, func(object *unstructured.Unstructured) bool {
		mark, err := markAbove(c.Owner, object)
		return err == nil && placeBelow(mark).resource == target
	})
}

// Served tells whether the target serves the resource itself, as far as is known.
func (c *Controller) Served() bool {
	return c.sides[0].cache.Availability().Reason != targets.ReasonNotServed
}

// KindOf returns the kind of a resource that the mailbox's objects can be on the target.
func (c *Controller) KindOf(target schema.GroupResource) string {
	if side := c.sideOf(target); side != nil {
		return side.Kind
	}
	return ""
}

// lenOf returns of how many objects of the mailbox the target holds something as the resource given. The index knows it, so
// that no mark has to be read for it.
func (c *Controller) lenOf(target schema.GroupResource) int {
	side := c.sideOf(target)
	if side == nil {
		return 0
	}
	count := side.cache.CountIndexed(bySource)
	if len(side.cache.ByIndex(bySource, unverified)) > 0 {
		count--
	}
	return count
}

// unverified returns how many objects of the target bear the hub's label and a mark that names it, but that somebody else wrote.
func (c *Controller) unverified() int {
	count := 0
	for _, side := range c.sides {
		count += len(side.cache.ByIndex(bySource, unverified))
	}
	return count
}
