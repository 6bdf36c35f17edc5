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

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	synchubv1alpha1 "github.com/synchub-dev/synchub/apis/synchub/v1alpha1"
	"github.com/synchub-dev/synchub/controllers/objectsync/observe"
	"github.com/synchub-dev/synchub/controllers/plan"
	"github.com/synchub-dev/synchub/controllers/plan/related"
	"github.com/synchub-dev/synchub/provider/mailboxes/absence"
)

// primaries publishes the claims of the objects of the resource on related objects.
type primaries struct {
	tracker  *primaryTracker
	registry *related.Registry
	mailbox  *mailboxView
	target   *targetView
	upsync   *upsyncCaches
	enqueuer *enqueuer
	// syncTarget is the name of the SyncTarget.
	syncTarget string
	// requeueRelated enqueues every object that may be related to objects of this resource.
	requeueRelated func()
}

// RequestCompleteness asks every primary's controller to finish its initial sync, because no known primary claims an object. The
// lists of primaries are verified only after all controllers have processed theirs, since a primary of any controller may claim
// the object. If answered returns true before that, the claim is known and nothing is verified.
func RequestCompleteness(all []*Controller, answered func() bool) {
	what := completenessVerified
	if slices.ContainsFunc(all, func(c *Controller) bool { return !c.primaries.tracker.hasProcessedAll() }) {
		what = completenessProcessed
	} else if answered() {
		return
	}
	for _, controller := range all {
		controller.primaries.requestCompleteness(what)
	}
}

// RequestInitialSync asks the controller to process all visible primaries.
func (c *Controller) RequestInitialSync() { c.primaries.requestCompleteness(completenessProcessed) }

func (p *primaries) requestCompleteness(what completeness) {
	if len(p.tracker.relations) > 0 && p.tracker.request(what) {
		p.checkInitialSync()
	}
}

// recheckInitialSync is called when a cache has synced, and when an API is found not to be served.
func (p *primaries) recheckInitialSync() {
	if p.tracker.isRequested() {
		p.checkInitialSync()
	}
}

// checkInitialSync completes the initial sync if all primaries were processed.
func (p *primaries) checkInitialSync() {
	_, known := p.mailbox.list()
	if !known || !p.target.hasSynced() || !p.upsync.haveSynced() || p.enqueuer.current() == nil {
		return
	}
	if p.tracker.setUnprocessed(p.enqueuer.keys()) {
		return
	}
	changed, verify := p.tracker.markAllProcessed()
	if changed {
		p.requeueRelated()
	}
	if !verify {
		return
	}
	if !p.mailbox.takeVerifiedAbsence(absence.AllObjects, plan.SourceNotFound) {
		p.mailbox.verifyAbsence(absence.AllObjects, plan.SourceNotFound)
		return
	}
	p.tracker.markVerified()
}

// finish records that a primary has published its claims.
func (p *primaries) finish(key types.NamespacedName) {
	if p.tracker.markProcessed(key) {
		p.checkInitialSync()
	}
}

// execute changes the claims of a primary as planned, and marks the primary as processed unless the plan keeps its claims. It
// returns an error if a relation cannot be resolved.
func (p *primaries) execute(s *plan.Snapshot, claims plan.ClaimsPlan) error {
	switch claims {
	case plan.KeepClaims:
		return nil
	case plan.SetClaims:
		return p.publishDownClaims(s)
	case plan.MarkClaimsUnresolved:
		p.tracker.markUnresolved(s.Key)
	case plan.RemoveClaims:
		p.tracker.remove(s.Key)
	case plan.MarkProcessed:
	}
	p.finish(s.Key)
	return nil
}

// publishDownClaims publishes the claims of a primary that is on the target, or is about to be.
func (p *primaries) publishDownClaims(s *plan.Snapshot) error {
	return p.updateClaims(s, s.Down.Selection, s.Down.Destination.Object, s.Down.Destination.Key.Namespace)
}

// publishUpClaims publishes the claims of a primary that was upsynced.
func (p *primaries) publishUpClaims(s *plan.Snapshot) error {
	return p.updateClaims(s, s.Up.Selection, s.Up.Object, s.Up.Object.GetNamespace())
}

// primaryObject is a primary on one side, nil if absent there, with its namespaces on both sides.
type primaryObject struct {
	object                                *unstructured.Unstructured
	sourceNamespace, destinationNamespace string
}

func (p *primaries) updateClaims(s *plan.Snapshot, selected plan.ObjectSelection, targetObject *unstructured.Unstructured, targetNamespace string) error {
	key := s.Key
	inMailbox := primaryObject{object: s.InMailbox, sourceNamespace: key.Namespace, destinationNamespace: targetNamespace}
	onTarget := primaryObject{object: targetObject, sourceNamespace: targetNamespace, destinationNamespace: key.Namespace}
	var errs []error
	for i, relation := range p.tracker.relations {
		on := inMailbox
		if relation.Origin == synchubv1alpha1.RelatedOriginTarget {
			on = onTarget
		}
		if on.object == nil {
			// The primary is absent from that side now, so its former claims stay valid.
			p.tracker.markClaiming(key)
			p.registry.MarkUnresolved(p.tracker.publishedResource, key, relation)
			continue
		}
		if err := p.updateClaim(s, selected, relation, on); err != nil {
			errs = append(errs, &observe.RuleError{Field: fmt.Sprintf("spec.related[%d] (%s)", i, relation.Identifier), Err: err})
		}
	}
	p.finish(key)
	return errors.Join(errs...)
}

func (p *primaries) updateClaim(s *plan.Snapshot, selected plan.ObjectSelection, relation *related.Relation, on primaryObject) error {
	key := s.Key
	wanted, err := relation.Resolve(on.object, related.Environment{Mailbox: p.mailbox.name.String(), SyncTarget: p.syncTarget})
	if err != nil {
		p.registry.MarkUnresolved(p.tracker.publishedResource, key, relation)
		return err
	}
	wanted.PrimaryInfo = related.PrimaryInfo{DestinationNamespace: on.destinationNamespace, Configs: selected.Configs, Suspended: selected.Suspended}
	if relation.NamingUsesPrimary() {
		wanted.PrimaryInfo.Object = on.object.Object
	}
	p.tracker.markClaiming(key)
	p.registry.SetClaim(p.tracker.publishedResource, key, relation, wanted)
	for _, name := range wanted.Names {
		if name.Namespace != on.sourceNamespace && !s.Matcher.SelectsInNamespace(name.Namespace) {
			return fmt.Errorf("the namespace %s is neither that of the object nor selected by a SyncerConfig: %s is left out", name.Namespace, name)
		}
	}
	return nil
}
