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

package objectsync

import (
	"errors"
	"fmt"
	"slices"
	gosync "sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	synchubv1alpha1 "github.com/synchub-dev/synchub/apis/synchub/v1alpha1"
	"github.com/synchub-dev/synchub/controllers/objectsync/plan"
	"github.com/synchub-dev/synchub/controllers/objectsync/plan/related"
	"github.com/synchub-dev/synchub/provider/mailboxes"
)

// primaryTracker tells the register of related objects what travels with the objects of one resource, the primaries.
//
// That nobody wants an object means something only once all primaries have spoken. So much is found out only when it is
// asked for, because something is left that nobody wants: then the mailbox's list of primaries must be proven, too, for a
// primary that is missing there may only be out of sight (rule 3 of the design).
type primaryTracker struct {
	registry          *related.Registry
	publishedResource string
	relations         []*related.Relation

	lock gosync.Mutex
	// processed have said what they want since the start, or that they want nothing.
	processed map[types.NamespacedName]struct{}
	// unprocessed had not when the roll was called last.
	unprocessed map[types.NamespacedName]struct{}
	// claiming are those that want something, or may.
	claiming map[types.NamespacedName]struct{}
	// requested is what is to be found out, heard once all that is left was looked at again after all had spoken.
	requested    completeness
	allProcessed bool
	verified     bool
}

// completeness is what is to be found out about the primaries, because something is left that nobody wants.
type completeness int

const (
	completenessNone completeness = iota
	// completenessProcessed: whether all that are seen have spoken. What is left is looked at again then: it is wanted by now, as a rule.
	completenessProcessed
	// completenessVerified: whether those that are seen are all there are.
	completenessVerified
)

func newPrimaryTracker(register *related.Registry, resource Resource) *primaryTracker {
	return &primaryTracker{
		registry: register, publishedResource: resource.PublishedResource, relations: resource.Related(),
		processed: map[types.NamespacedName]struct{}{}, claiming: map[types.NamespacedName]struct{}{},
	}
}

// markUnresolved says that it cannot be told now what a primary wants.
func (r *primaryTracker) markUnresolved(primary types.NamespacedName) {
	r.markClaiming(primary)
	for _, relation := range r.relations {
		r.registry.MarkUnresolved(r.publishedResource, primary, relation)
	}
}

// remove says that a primary wants nothing any more.
func (r *primaryTracker) remove(primary types.NamespacedName) {
	r.lock.Lock()
	delete(r.claiming, primary)
	r.lock.Unlock()
	if len(r.relations) > 0 {
		r.registry.RemovePrimary(r.publishedResource, primary)
	}
}

// markProcessed is called when a primary has said what it wants, and tells whether to see if all have.
func (r *primaryTracker) markProcessed(primary types.NamespacedName) (awaited bool) {
	if len(r.relations) == 0 {
		return false
	}
	r.lock.Lock()
	defer r.lock.Unlock()
	r.processed[primary] = struct{}{}
	delete(r.unprocessed, primary)
	return r.requested != completenessNone && !r.verified && len(r.unprocessed) == 0
}

// setUnprocessed calls the roll, and tells whether any primary is missing.
func (r *primaryTracker) setUnprocessed(primaries []types.NamespacedName) (incomplete bool) {
	r.lock.Lock()
	defer r.lock.Unlock()
	r.unprocessed = map[types.NamespacedName]struct{}{}
	for _, primary := range primaries {
		if _, ok := r.processed[primary]; !ok {
			r.unprocessed[primary] = struct{}{}
		}
	}
	return len(r.unprocessed) > 0
}

// markClaiming notes that a primary wants something, or may.
func (r *primaryTracker) markClaiming(primary types.NamespacedName) {
	r.lock.Lock()
	defer r.lock.Unlock()
	r.claiming[primary] = struct{}{}
}

// mayClaim tells whether a primary wants something, or may, by what it said last.
func (r *primaryTracker) mayClaim(primary types.NamespacedName) bool {
	r.lock.Lock()
	defer r.lock.Unlock()
	_, ok := r.claiming[primary]
	return ok
}

// markAllProcessed notes that all have spoken, and tells whether that is new, and whether it is to be proven.
func (r *primaryTracker) markAllProcessed() (changed, verify bool) {
	r.lock.Lock()
	defer r.lock.Unlock()
	changed = !r.allProcessed
	r.allProcessed = true
	if r.requested == completenessProcessed {
		r.requested = completenessNone
	}
	return changed, r.requested == completenessVerified && !r.verified
}

// request notes what is to be found out, and tells whether nobody has asked for that yet. Whoever asks calls the roll, which
// looks at every primary; for those that come after, each primary that speaks goes on with it.
func (r *primaryTracker) request(what completeness) (changed bool) {
	r.lock.Lock()
	defer r.lock.Unlock()
	if r.verified || r.allProcessed && what == completenessProcessed || r.requested >= what {
		return false
	}
	r.requested = what
	return true
}

// isRequested tells whether something is to be found out.
func (r *primaryTracker) isRequested() bool {
	r.lock.Lock()
	defer r.lock.Unlock()
	return r.requested != completenessNone && !r.verified
}

func (r *primaryTracker) hasProcessedAll() bool {
	r.lock.Lock()
	defer r.lock.Unlock()
	return r.allProcessed
}

// markVerified tells the register that all have spoken.
func (r *primaryTracker) markVerified() {
	r.lock.Lock()
	r.verified = true
	r.lock.Unlock()
	r.registry.CompleteInitialSync(r.publishedResource)
}

// RequestCompleteness is called when something is left that no primary is known to want, with the controllers of all primaries that
// may. Nothing is proven before all have been heard, for what one does not want another may, and of what is answered by
// then: it was looked at before one had spoken, and will be looked at again.
func RequestCompleteness(all []*Controller, answered func() bool) {
	what := completenessVerified
	if slices.ContainsFunc(all, func(c *Controller) bool { return !c.primaryTracker.hasProcessedAll() }) {
		what = completenessProcessed
	} else if answered() {
		return
	}
	for _, controller := range all {
		controller.requestCompleteness(what)
	}
}

// RequestInitialSync has it found out whether all primaries that are seen have spoken.
func (c *Controller) RequestInitialSync() { c.requestCompleteness(completenessProcessed) }

func (c *Controller) requestCompleteness(what completeness) {
	if len(c.primaryTracker.relations) > 0 && c.primaryTracker.request(what) {
		c.checkInitialSync()
	}
}

// recheckInitialSync is called when something is known that was missing for the roll.
func (c *Controller) recheckInitialSync() {
	if c.primaryTracker.isRequested() {
		c.checkInitialSync()
	}
}

// checkInitialSync finds out whether all primaries have spoken, and says so.
func (c *Controller) checkInitialSync() {
	_, known := c.Mailboxes.List(c.Resource.GroupVersionResource, c.Mailbox)
	if !known || !c.HasSynced() || !c.upsyncCachesHaveSynced() || !c.hasStarted() {
		return
	}
	if c.primaryTracker.setUnprocessed(c.keys()) {
		return
	}
	changed, verify := c.primaryTracker.markAllProcessed()
	if changed {
		c.RequeueRelated()
	}
	if !verify {
		return
	}
	candidate := c.absenceCandidate(mailboxes.AllObjects, plan.SourceNotFound)
	if !c.Mailboxes.TakeVerifiedAbsence(c.Mailbox, candidate) {
		c.Mailboxes.VerifyAbsence(c.Mailbox, candidate)
		return
	}
	c.primaryTracker.markVerified()
}

// primaryProcessed notes that a primary has said what it wants.
func (c *Controller) primaryProcessed(key types.NamespacedName) {
	if c.primaryTracker.markProcessed(key) {
		c.checkInitialSync()
	}
}

// updateRelated resolves the relations of a primary that is on the target, or is going there.
func (c *Controller) updateRelated(s *snapshot) error {
	destination := s.down.destination
	inMailbox := primaryObject{object: s.source, sourceNamespace: s.source.GetNamespace(), destinationNamespace: destination.key.Namespace}
	onTarget := primaryObject{object: destination.object, sourceNamespace: destination.key.Namespace, destinationNamespace: s.source.GetNamespace()}
	return c.updateClaims(s, s.down.selection, inMailbox, onTarget)
}

// EnqueueRelated looks again at all that is left and came by a relation.
func (c *Controller) EnqueueRelated() {
	c.relatedChangedInMailbox(related.Change{All: true})
	for _, target := range c.targetResources {
		c.enqueue(createPriority, c.upsyncedRelatedKeys(target, related.Change{All: true})...)
	}
}

// primaryObject is an object, which may be nil, on the one side, with its namespaces there and on the other side.
type primaryObject struct {
	object                                *unstructured.Unstructured
	sourceNamespace, destinationNamespace string
}

func (c *Controller) updateClaims(s *snapshot, selected objectSelection, inMailbox, onTarget primaryObject) error {
	key := s.key
	var errs []error
	for i, relation := range c.primaryTracker.relations {
		on := inMailbox
		if relation.Origin == synchubv1alpha1.RelatedOriginTarget {
			on = onTarget
		}
		if on.object == nil {
			// It is not there now: what it said before holds on.
			c.primaryTracker.markClaiming(key)
			c.Registry.MarkUnresolved(c.Resource.PublishedResource, key, relation)
			continue
		}
		if err := c.updateClaim(s, selected, relation, on); err != nil {
			errs = append(errs, &ruleError{field: fmt.Sprintf("spec.related[%d] (%s)", i, relation.Identifier), err: err})
		}
	}
	c.primaryProcessed(key)
	return errors.Join(errs...)
}

func (c *Controller) updateClaim(s *snapshot, selected objectSelection, relation *related.Relation, on primaryObject) error {
	key := s.key
	wanted, err := relation.Resolve(on.object, related.Environment{Mailbox: c.Mailbox.String(), SyncTarget: c.SyncTarget})
	if err != nil {
		c.Registry.MarkUnresolved(c.Resource.PublishedResource, key, relation)
		return err
	}
	wanted.PrimaryInfo = related.PrimaryInfo{DestinationNamespace: on.destinationNamespace, Configs: selected.Configs, Suspended: selected.Suspended}
	if relation.NamingUsesPrimary() {
		wanted.PrimaryInfo.Object = on.object.Object
	}
	c.primaryTracker.markClaiming(key)
	c.Registry.SetClaim(c.Resource.PublishedResource, key, relation, wanted)
	for _, name := range wanted.Names {
		if name.Namespace != on.sourceNamespace && !s.matcher.SelectsInNamespace(name.Namespace) {
			return fmt.Errorf("the namespace %s is neither that of the object nor selected by a SyncerConfig: %s is left out", name.Namespace, name)
		}
	}
	return nil
}

// updateUpsyncedRelated resolves the relations of a primary that was upsynced.
func (c *Controller) updateUpsyncedRelated(s *snapshot) error {
	if len(c.primaryTracker.relations) == 0 {
		return nil
	}
	object := s.up.object
	inMailbox := primaryObject{object: s.source, sourceNamespace: s.key.Namespace, destinationNamespace: object.GetNamespace()}
	onTarget := primaryObject{object: object, sourceNamespace: object.GetNamespace(), destinationNamespace: s.key.Namespace}
	return c.updateClaims(s, s.up.selection, inMailbox, onTarget)
}
