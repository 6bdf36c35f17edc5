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
	"slices"
	gosync "sync"

	"k8s.io/apimachinery/pkg/types"

	"github.com/synchub-dev/synchub/controllers/plan"
	"github.com/synchub-dev/synchub/controllers/plan/related"
	"github.com/synchub-dev/synchub/provider/mailboxes/absence"
)

// primaries publishes the claims of the objects of the resource on related objects.
type primaries struct {
	tracker  *primaryTracker
	mailbox  *mailboxView
	target   *targetView
	upsync   *upsyncCaches
	enqueuer *enqueuer
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
		p.mailbox.request(absence.AllObjects, nil, plan.Wants{VerifyAbsence: plan.SourceNotFound})
		return
	}
	p.tracker.markVerified()
}

// publish changes the claims of a primary as planned, and marks the primary as processed unless the plan keeps its claims. It
// returns an error if a relation cannot be resolved.
func (p *primaries) publish(key types.NamespacedName, claims plan.ClaimsPlan) error {
	switch claims.Action {
	case plan.KeepClaims:
		return nil
	case plan.SetClaims:
		p.tracker.setClaims(key, claims.Claims)
	case plan.MarkClaimsUnresolved:
		p.tracker.markUnresolved(key)
	case plan.RemoveClaims:
		p.tracker.remove(key)
	case plan.MarkProcessed:
	}
	if p.tracker.markProcessed(key) {
		p.checkInitialSync()
	}
	return claims.Err
}

// primaryTracker tracks which objects of one resource, the primaries, have published their claims on related objects.
//
// Until all primaries were processed, an object without a claim may still be claimed. The tracker checks this only on request:
// when the hub has a copy that no primary claims. Then kcp must verify the list of primaries too, because a primary may be
// missing only from the cache (docs/design/0001-absence.md).
type primaryTracker struct {
	registry          *related.Registry
	publishedResource string
	relations         []*related.Relation

	lock gosync.Mutex
	// processed primaries have published their claims since the start.
	processed map[types.NamespacedName]struct{}
	// unprocessed primaries had not published their claims when the tracker last checked.
	unprocessed map[types.NamespacedName]struct{}
	// claiming primaries have claims, or may have.
	claiming map[types.NamespacedName]struct{}
	// requested is the requested degree of certainty. allProcessed is true once all primaries were processed and related objects
	// were enqueued after that.
	requested    completeness
	allProcessed bool
	verified     bool
}

// completeness is a degree of certainty about the primaries.
type completeness int

const (
	completenessNone completeness = iota
	// completenessProcessed: all cached primaries were processed. Then related objects are reconciled again; in most cases a
	// primary claims them then.
	completenessProcessed
	// completenessVerified: kcp has verified that there are no primaries beside the cached ones.
	completenessVerified
)

func newPrimaryTracker(register *related.Registry, resource plan.Resource) *primaryTracker {
	return &primaryTracker{
		registry: register, publishedResource: resource.PublishedResource, relations: resource.Related(),
		processed: map[types.NamespacedName]struct{}{}, claiming: map[types.NamespacedName]struct{}{},
	}
}

// setClaims sets the claims of a primary.
func (p *primaryTracker) setClaims(primary types.NamespacedName, claims []plan.Claim) {
	for _, claim := range claims {
		p.markClaiming(primary)
		if claim.Query == nil {
			p.registry.MarkUnresolved(p.publishedResource, primary, claim.Relation)
		} else {
			p.registry.SetClaim(p.publishedResource, primary, claim.Relation, *claim.Query)
		}
	}
}

// markUnresolved keeps the claims of a primary that cannot be resolved now.
func (p *primaryTracker) markUnresolved(primary types.NamespacedName) {
	p.markClaiming(primary)
	for _, relation := range p.relations {
		p.registry.MarkUnresolved(p.publishedResource, primary, relation)
	}
}

// remove ends the claims of a primary.
func (p *primaryTracker) remove(primary types.NamespacedName) {
	p.lock.Lock()
	delete(p.claiming, primary)
	p.lock.Unlock()
	if len(p.relations) > 0 {
		p.registry.RemovePrimary(p.publishedResource, primary)
	}
}

// markProcessed records that a primary has published its claims, and reports whether to check for completeness.
func (p *primaryTracker) markProcessed(primary types.NamespacedName) (awaited bool) {
	if len(p.relations) == 0 {
		return false
	}
	p.lock.Lock()
	defer p.lock.Unlock()
	p.processed[primary] = struct{}{}
	delete(p.unprocessed, primary)
	return p.requested != completenessNone && !p.verified && len(p.unprocessed) == 0
}

// setUnprocessed records which of the primaries were not processed yet, and reports whether there are any.
func (p *primaryTracker) setUnprocessed(primaries []types.NamespacedName) (incomplete bool) {
	p.lock.Lock()
	defer p.lock.Unlock()
	p.unprocessed = map[types.NamespacedName]struct{}{}
	for _, primary := range primaries {
		if _, ok := p.processed[primary]; !ok {
			p.unprocessed[primary] = struct{}{}
		}
	}
	return len(p.unprocessed) > 0
}

// markClaiming records that a primary has claims, or may have.
func (p *primaryTracker) markClaiming(primary types.NamespacedName) {
	p.lock.Lock()
	defer p.lock.Unlock()
	p.claiming[primary] = struct{}{}
}

// mayClaim reports whether a primary has claims, or may have.
func (p *primaryTracker) mayClaim(primary types.NamespacedName) bool {
	p.lock.Lock()
	defer p.lock.Unlock()
	_, ok := p.claiming[primary]
	return ok
}

// markAllProcessed records that all cached primaries were processed. It reports whether this is new, and whether kcp must verify
// the list.
func (p *primaryTracker) markAllProcessed() (changed, verify bool) {
	p.lock.Lock()
	defer p.lock.Unlock()
	changed = !p.allProcessed
	p.allProcessed = true
	if p.requested == completenessProcessed {
		p.requested = completenessNone
	}
	return changed, p.requested == completenessVerified && !p.verified
}

// request requests a degree of certainty, and reports whether it is a new request. The first request checks all primaries; after
// that each processed primary continues the check.
func (p *primaryTracker) request(what completeness) (changed bool) {
	p.lock.Lock()
	defer p.lock.Unlock()
	if p.verified || p.allProcessed && what == completenessProcessed || p.requested >= what {
		return false
	}
	p.requested = what
	return true
}

// isRequested reports whether a request is open.
func (p *primaryTracker) isRequested() bool {
	p.lock.Lock()
	defer p.lock.Unlock()
	return p.requested != completenessNone && !p.verified
}

func (p *primaryTracker) hasProcessedAll() bool {
	p.lock.Lock()
	defer p.lock.Unlock()
	return p.allProcessed
}

// markVerified completes the initial sync in the registry.
func (p *primaryTracker) markVerified() {
	p.lock.Lock()
	p.verified = true
	p.lock.Unlock()
	p.registry.CompleteInitialSync(p.publishedResource)
}
