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
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/synchub-dev/synchub/provider/holdings"
)

// candidate is an object of a mailbox that is to be held, in as much as need bytes.
type candidate struct {
	created time.Time
	// tie decides between those of one second.
	tie  string
	need int64
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

// admit tells, for each candidate, whether the limits leave room for it. The oldest are admitted first. One for which there
// is no room does not keep out a younger one that needs less; with inTurn it does.
func admit(limits Limits, candidates []candidate, inTurn bool) []bool {
	admitted := make([]bool, len(candidates))
	var objects, bytes int64
	for _, i := range oldestFirst(candidates) {
		if limits.exceeds(objects+1, bytes+candidates[i].need) {
			if inTurn {
				break
			}
			continue
		}
		admitted[i] = true
		objects, bytes = objects+1, bytes+candidates[i].need
	}
	return admitted
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
	if !known {
		account.lock.Lock()
		account.unsure = true
		account.lock.Unlock()
	}
	if known && !selected {
		made.held.Store(metadataOf(object))
	}
	if !w.hasRoom(account, w.limits(mailbox), made) {
		made.held.Store(w.identityOf(object))
	}
	return made
}

// fill is one initial list of a resource, of which nothing is counted before all of it has come.
type fill struct {
	number uint32
	// growth is by how much the list makes each mailbox grow.
	growth map[*account]growth
}

type growth struct{ objects, bytes int64 }

// beginFill is called before a list is asked for.
func (w *watching) beginFill() {
	w.fill = fill{number: w.fill.number + 1, growth: map[*account]growth{}}
}

// isListing tells whether objects of a list may not be counted yet.
func (w *watching) isListing() bool {
	if w.fill.growth != nil && w.delivered.Load() == w.fill.number {
		w.fill.growth = nil
	}
	return w.fill.growth != nil
}

// hasRoom tells whether a mailbox has room for an item, besides what the cache holds and what came with the same list.
func (w *watching) hasRoom(account *account, limits Limits, made *item) bool {
	objects, bytes := account.has()
	need := growth{1, made.heldSize()}
	listing := w.isListing()
	if !listing && !limits.exceeds(objects+1, bytes+need.bytes) {
		return true
	}
	// The item may take the place of another one.
	if found, exists, _ := w.informer.GetIndexer().Get(made); exists {
		if before := found.(*item); ExtentOf(before.held.Load()) != Identity {
			need = growth{0, need.bytes - before.heldSize()}
		}
	}
	grown := w.fill.growth[account]
	if limits.exceeds(objects+grown.objects+need.objects, bytes+grown.bytes+need.bytes) {
		return false
	}
	if listing {
		w.fill.growth[account] = growth{grown.objects + need.objects, grown.bytes + need.bytes}
	}
	return true
}
