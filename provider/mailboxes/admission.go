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
	"math"
	"slices"
	"time"

	"github.com/kcp-dev/logicalcluster/v3"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/synchub-dev/synchub/provider/holdings"
)

// candidate is an object of a mailbox that is to be held, in as much as need bytes.
type candidate struct {
	resource schema.GroupVersionResource
	created  time.Time
	// tie decides between those of one second.
	tie  string
	need int64
	// identity is what it takes in any case.
	identity int64
}

// oldestFirst returns the candidates' indexes in the order in which they are admitted. It depends on nothing but the
// candidates, so that the hub decides alike after a restart.
func oldestFirst(candidates []candidate) []int {
	order := make([]int, len(candidates))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(i, j int) int {
		a, b := candidates[i], candidates[j]
		return cmp.Or(a.created.Compare(b.created), cmp.Compare(a.tie, b.tie))
	})
	return order
}

// identitiesOf returns what the candidates take in any case.
func identitiesOf(candidates []candidate) (bytes int64) {
	for _, one := range candidates {
		bytes += one.identity
	}
	return bytes
}

// admit tells, for each candidate, whose limits leave no room for it: those of the mailbox, which holds the identities of all
// besides, or those of its resource. The oldest are admitted first. One for which there is no room does not keep out a younger
// one that needs less; with inTurn it does. admitsAt is from how many bytes of the mailbox on one more would be admitted.
func admit(limits Limits, limitsOf func(schema.GroupVersionResource) Limits, candidates []candidate, inTurn bool) (refused []refusal, admitsAt int64) {
	type sum struct{ objects, bytes int64 }
	refused, admitsAt = make([]refusal, len(candidates)), math.MaxInt64
	all, of, isFull := sum{bytes: identitiesOf(candidates)}, map[schema.GroupVersionResource]sum{}, false
	for _, i := range oldestFirst(candidates) {
		one := candidates[i]
		own, held, more := limitsOf(one.resource), of[one.resource], one.need-one.identity
		switch {
		case isFull:
			refused[i] = byMailbox
		case own.exceeds(held.objects+1, held.bytes+one.need):
			refused[i] = byResource
		case limits.exceeds(all.objects+1, all.bytes+more):
			refused[i], isFull = byMailbox, inTurn
			if limits.Objects == 0 || all.objects < limits.Objects {
				admitsAt = min(admitsAt, all.bytes+more)
			}
		default:
			all = sum{all.objects + 1, all.bytes + more}
			if own != (Limits{}) {
				of[one.resource] = sum{held.objects + 1, held.bytes + one.need}
			}
		}
	}
	return refused, admitsAt
}

// itemOf makes an item of an object that a server sent, which holds as much of it as the mailbox may have held. It is called
// by the reflector's goroutine only. Where there is no room for an object that comes with a list, the younger ones are found
// out by the next review.
func (w *watching) itemOf(object *unstructured.Unstructured) *item {
	object = w.strip(object)
	made := newItem(object, holdings.SizeOf(object))
	made.fill = w.fill.number
	if w.endpoint.owner.policy == nil {
		return made
	}
	mailbox := mailboxOf(object)
	account := w.account(mailbox)
	selected, known := w.selects(mailbox, object)
	made.unsure = !known
	if known && !selected {
		made.held.Store(metadataOf(object))
	}
	if refused := w.refuses(mailbox, account, w.limits(mailbox), made); refused != notRefused {
		made.held.Store(w.identityOf(object, refused))
		if refused == byMailbox {
			account.refused()
		}
		w.hasIdentity(mailbox, account, made.heldSize())
	}
	return made
}

// hasIdentity counts one more identity that comes with a list, and closes the mailbox if its identities take too much.
func (w *watching) hasIdentity(mailbox logicalcluster.Name, account *account, size int64) {
	coming := w.fill.growth[mailbox]
	if limits := w.limits(mailbox); limits.Bytes > 0 && account.identities()+coming.identities+size > limits.Bytes {
		w.endpoint.owner.close(mailbox, w.configs, coming.objects+coming.beyond+1)
	}
	w.comes(mailbox, growth{bytes: size, identities: size, beyond: 1})
}

// fill is one initial list of a resource, of which nothing is counted before all of it has come.
type fill struct {
	number uint32
	// growth is by how much the list makes each mailbox grow.
	growth map[logicalcluster.Name]growth
}

// growth is of how many objects more than the identity comes, of how many only that, and how many bytes all and the latter take.
type growth struct{ objects, beyond, bytes, identities int64 }

func (g growth) plus(other growth) growth {
	return growth{g.objects + other.objects, g.beyond + other.beyond, g.bytes + other.bytes, g.identities + other.identities}
}

// beginFill is called before a list is asked for.
func (w *watching) beginFill() {
	w.endFill()
	w.fill = fill{number: w.fill.number + 1, growth: map[logicalcluster.Name]growth{}}
}

// endFill is called when the list counts, or has failed.
func (w *watching) endFill() {
	w.fill.growth = nil
	w.release()
}

// release takes what a list brings out of the total.
func (w *watching) release() {
	w.endpoint.owner.total.coming.Add(-w.coming.Swap(0))
}

// isListing tells whether objects of a list may not be counted yet.
func (w *watching) isListing() bool {
	if w.fill.growth != nil && w.delivered.Load() == w.fill.number {
		w.endFill()
	}
	return w.fill.growth != nil
}

// refuses tells whose limits leave no room for an item, besides what the cache holds and what came with the same list: those of
// the mailbox, within that of all, or those of the resource.
func (w *watching) refuses(mailbox logicalcluster.Name, account *account, limits Limits, made *item) refusal {
	total, own := &w.endpoint.owner.total, w.endpoint.owner.limitsOf(w.resource)
	objects, bytes := account.has()
	need := growth{objects: 1, bytes: made.heldSize()}
	if !w.isListing() && own == (Limits{}) && !limits.exceeds(objects+1, bytes+need.bytes) && total.has(need.bytes) {
		return notRefused
	}
	ofResource := need
	// The item may take the place of another one.
	if found, exists, _ := w.informer.GetIndexer().Get(made); exists {
		before := found.(*item)
		need.bytes -= before.heldSize()
		if ExtentOf(before.held.Load()) != Identity {
			need.objects = 0
			ofResource = need
		}
		if need.objects == 0 && need.bytes <= 0 {
			// Should the mailbox have too much, a review finds out what goes.
			return notRefused
		}
	}
	grown := w.fill.growth[mailbox]
	if own != (Limits{}) {
		objects, bytes := account.hasOf(w.resource)
		if own.exceeds(objects+grown.objects+ofResource.objects, bytes+grown.bytes-grown.identities+ofResource.bytes) {
			return byResource
		}
	}
	if limits.exceeds(objects+grown.objects+need.objects, bytes+grown.bytes+need.bytes) || !total.has(need.bytes) {
		return byMailbox
	}
	w.comes(mailbox, need)
	return notRefused
}

// comes takes down what a list brings. Other objects count as soon as the cache holds them.
func (w *watching) comes(mailbox logicalcluster.Name, need growth) {
	if !w.isListing() {
		return
	}
	w.fill.growth[mailbox] = w.fill.growth[mailbox].plus(need)
	w.endpoint.owner.total.coming.Add(need.bytes)
	w.coming.Add(need.bytes)
	if w.ended.Load() {
		// The reflector does not wait for a list that is under way when it is stopped.
		w.release()
	}
}
