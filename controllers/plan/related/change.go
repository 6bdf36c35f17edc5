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

package related

import (
	"cmp"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	synchubv1alpha1 "github.com/synchub-dev/synchub/apis/synchub/v1alpha1"
)

// Change lists the objects whose look-up may have a different result than before. All is true when the bucket became complete,
// since then an object without a claim is known to be unrelated.
type Change struct {
	Names      []types.NamespacedName
	Namespaces []string
	All        bool
}

// Affects reports whether the result for an object of this name may have changed. For cluster-scoped objects, names are compared
// without their namespaces.
func (c Change) Affects(key types.NamespacedName) bool {
	if key.Namespace == "" {
		return c.All || len(c.Namespaces) > 0 ||
			slices.ContainsFunc(c.Names, func(name types.NamespacedName) bool { return name.Name == key.Name })
	}
	return c.All || slices.Contains(c.Namespaces, key.Namespace) || slices.Contains(c.Names, key)
}

// subscription is one subscriber of changes.
type subscription struct {
	onChange func(Change)
}

// Subscribe calls changed after each change of the results for an API, on the goroutine that caused the change. The registry
// holds no lock then, so changed may call it. Calls may overlap, and unsubscribe does not wait for a running call.
func (g *Registry) Subscribe(origin synchubv1alpha1.RelatedOrigin, resource schema.GroupResource, changed func(Change)) (unsubscribe func()) {
	added := &subscription{changed}
	g.lock.Lock()
	defer g.lock.Unlock()
	bucket := g.bucket(bucketKey{origin, resource})
	bucket.subscriptions[added] = struct{}{}
	return func() {
		g.lock.Lock()
		defer g.lock.Unlock()
		delete(bucket.subscriptions, added)
	}
}

// transaction is one change of the registry. It keeps the state before the change, so that subscribers are notified only of
// differences.
type transaction struct {
	wasComplete map[*bucket]bool
	firstClaims map[*bucket]map[indexKey]*claim
}

// update makes a change under the lock and notifies the subscribers afterwards.
func (g *Registry) update(do func(*transaction)) {
	made := &transaction{wasComplete: map[*bucket]bool{}, firstClaims: map[*bucket]map[indexKey]*claim{}}
	for _, call := range g.applyLocked(made, do) {
		call()
	}
}

// applyLocked makes the change and returns the calls that notify the subscribers.
func (g *Registry) applyLocked(made *transaction, do func(*transaction)) []func() {
	g.lock.Lock()
	defer g.lock.Unlock()
	do(made)
	var calls []func()
	for bucket := range made.wasComplete {
		if len(bucket.subscriptions) == 0 {
			continue
		}
		change, ok := made.diff(bucket)
		if !ok {
			continue
		}
		for subscription := range bucket.subscriptions {
			calls = append(calls, func() { subscription.onChange(change) })
		}
	}
	return calls
}

// snapshot records whether a bucket was complete before its first change.
func (e *transaction) snapshot(held *bucket) {
	if _, ok := e.wasComplete[held]; !ok {
		e.wasComplete[held] = held.isComplete()
		e.firstClaims[held] = map[indexKey]*claim{}
	}
}

// setUnresolved records whether the claim of a primary could not be resolved.
func (e *transaction) setUnresolved(held *bucket, state *claimState, failed bool) {
	e.snapshot(held)
	if failed && !state.unresolved {
		held.unresolved++
	} else if !failed && state.unresolved {
		held.unresolved--
	}
	state.unresolved = failed
}

// addClaim adds a claim to a state that has none.
func (e *transaction) addClaim(held *bucket, state *claimState, made *claim) {
	e.snapshot(held)
	state.claim = made
	held.scopes.add(made.query, 1)
	for key := range made.query.indexKeys() {
		e.snapshotFirst(held, key)
		held.insert(key, made)
	}
}

// removeClaim removes the claim of a state, if there is one.
func (e *transaction) removeClaim(held *bucket, state *claimState) {
	if state.claim == nil {
		return
	}
	e.snapshot(held)
	held.scopes.add(state.claim.query, -1)
	for key := range state.claim.query.indexKeys() {
		e.snapshotFirst(held, key)
		held.remove(key, state.claim)
	}
	state.claim = nil
}

// removeClaimState drops the claim of a primary.
func (e *transaction) removeClaimState(resource *publishedResource, primary types.NamespacedName, at subject) {
	state := resource.claims[primary][at]
	e.setUnresolved(at.bucket, state, false)
	e.removeClaim(at.bucket, state)
	resource.deleteClaim(primary, at)
}

func (e *transaction) snapshotFirst(held *bucket, key indexKey) {
	if _, ok := e.firstClaims[held][key]; !ok {
		e.firstClaims[held][key] = held.firstClaim(key)
	}
}

// diff returns the differences in a bucket; ok is false if there are none.
func (e *transaction) diff(held *bucket) (change Change, ok bool) {
	if !e.wasComplete[held] && held.isComplete() {
		return Change{All: true}, true
	}
	names, namespaces := map[types.NamespacedName]struct{}{}, map[string]struct{}{}
	for key, before := range e.firstClaims[held] {
		if sameMatch(before, held.firstClaim(key)) {
			continue
		}
		switch place, trait := key.lookup.scope, key.lookup.attribute; {
		case place.kind == selectedNamespaces:
			return Change{All: true}, true
		case place.kind == clusterScope:
			// Every claim is indexed here in addition, and its other key reports the difference.
		case trait.kind == byName:
			names[types.NamespacedName{Namespace: place.namespace, Name: trait.value}] = struct{}{}
		default:
			namespaces[place.namespace] = struct{}{}
		}
	}
	maps.DeleteFunc(names, func(name types.NamespacedName, _ struct{}) bool {
		_, whole := namespaces[name.Namespace]
		return whole
	})
	change = Change{
		Names: slices.SortedFunc(maps.Keys(names), func(a, b types.NamespacedName) int {
			return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
		}),
		Namespaces: slices.Sorted(maps.Keys(namespaces)),
	}
	return change, len(names)+len(namespaces) > 0
}

// sameMatch reports whether two claims, which may be nil, lead to the same result.
func sameMatch(a, b *claim) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.relation == b.relation && a.primary == b.primary && a.query.PrimaryInfo.Equal(b.query.PrimaryInfo)
}
