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
	"fmt"
	gosync "sync"

	"github.com/kcp-dev/logicalcluster/v3"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"github.com/synchub-dev/synchub/controllers/internal/writes"
	"github.com/synchub-dev/synchub/controllers/objectsync/observe"
	"github.com/synchub-dev/synchub/controllers/plan"
	"github.com/synchub-dev/synchub/controllers/plan/ownership"
	"github.com/synchub-dev/synchub/controllers/plan/policy"
	"github.com/synchub-dev/synchub/provider/metrics/requestmetrics"
	"github.com/synchub-dev/synchub/provider/targets"
)

// targetView returns the copies of one mailbox resource on the target: from the caches, or from the hub's own later writes.
type targetView struct {
	connection *targets.Connection
	resource   *plan.Resource
	mailbox    logicalcluster.Name
	owner      ownership.Owner
	// unresolvedKinds are the kinds that conversions produce, but that the target does not serve or the hub denies.
	unresolvedKinds []UnavailableResource
	namespacePolicy func() *policy.NamespacePolicy
	// cachesWholeObjects is true if a rule reads the copies. Otherwise the caches keep only metadata and status.
	cachesWholeObjects bool
	// apis has the resource itself first.
	apis []*targetResource

	lock gosync.Mutex
	// writes are the hub's writes that the caches do not contain yet. They use the lock.
	writes writes.Expectations[plan.Ref, *cachedCopy]
	// deletedByHub are the UIDs of the copies that the hub is deleting, until their deletion was observed.
	deletedByHub map[plan.Ref]types.UID
}

// targetResource is one of the APIs that mailbox objects can have on the target, with the cache of the hub's copies.
type targetResource struct {
	plan.TargetAPI
	cache copyCache
}

// bySource indexes copies by the key of their mailbox object.
const bySource = "source"

// unverifiedIndexValue indexes the objects with the hub's label whose mark does not verify. No key has this value, since keys
// contain a slash.
const unverifiedIndexValue = "unverified"

func newTargetView(o *Options) *targetView {
	t := &targetView{
		connection: o.Connection, resource: &o.Resource, mailbox: o.Mailbox, owner: o.Owner, unresolvedKinds: o.UnresolvedKinds,
		namespacePolicy: o.NamespacePolicy, cachesWholeObjects: needsWholeTargetObjects(o),
	}
	t.writes = writes.NewExpectations[plan.Ref, *cachedCopy](&t.lock, o.Clock)
	t.writes.Side = requestmetrics.Target
	t.writes.Cached = func(at plan.Ref) *cachedCopy { return t.resourceFor(at.Resource).cache.Get(at.Key) }
	// The caches of mailboxes do not report a resourceVersion for the whole cache.
	t.writes.CacheHasReached = func(at plan.Ref, resourceVersion string) bool {
		return t.resourceFor(at.Resource).cache.HasReached(at.Key.Namespace, resourceVersion)
	}
	if o.Connection != nil {
		t.writes.OnGrowth = o.Connection.CacheSize.Check
	}
	return t
}

// addCache adds the cache of an API. The handler gets its events, and onAvailability is called when the target begins or ceases to
// serve the API.
func (t *targetView) addCache(api plan.TargetAPI, handler func(*targetResource) cache.ResourceEventHandler, onAvailability func()) {
	added := &targetResource{TargetAPI: api}
	added.cache = copyCache{t.connection.Watches.NewCache(api.GroupVersionResource, targets.CacheOptions{
		Namespaced:     t.resource.Namespaced,
		Selector:       Selector(t.owner),
		Transform:      t.transformForCache(added),
		Handler:        handler(added),
		Indexers:       cache.Indexers{bySource: t.indexBySource},
		OnAvailability: onAvailability,
	})}
	t.apis = append(t.apis, added)
}

// resourceFor returns the API of a resource; nil if there is none.
func (t *targetView) resourceFor(resource schema.GroupResource) *targetResource {
	for _, api := range t.apis {
		if api.GroupResource() == resource {
			return api
		}
	}
	return nil
}

// apiOf returns the API of a resource; zero if there is none.
func (t *targetView) apiOf(resource schema.GroupResource) plan.TargetAPI {
	if api := t.resourceFor(resource); api != nil {
		return api.TargetAPI
	}
	return plan.TargetAPI{}
}

// hasSynced reports whether the caches have synced. A cache of an API that the target does not serve counts.
func (t *targetView) hasSynced() bool {
	for _, api := range t.apis {
		if !api.cache.HasSynced() && api.cache.Availability().Reason != targets.ReasonNotServed {
			return false
		}
	}
	return true
}

// copies returns all objects of the caches, also those that are not copies of the hub's.
func (t *targetView) copies() (all []*cachedCopy) {
	for _, api := range t.apis {
		for _, object := range api.cache.List() {
			all = append(all, object.(*cachedCopy))
		}
	}
	return all
}

// count returns how many mailbox objects have a copy, counted once for each API.
func (t *targetView) count() (count int) {
	for _, api := range t.apis {
		count += api.count()
	}
	return count
}

// count returns how many mailbox objects have a copy of this API.
func (r *targetResource) count() int {
	count := r.cache.CountIndexValues(bySource)
	if r.countUnverified() > 0 {
		count--
	}
	return count
}

// countUnverified returns the number of objects with the hub's label whose mark does not verify.
func (r *targetResource) countUnverified() int {
	return len(r.cache.ByIndex(bySource, unverifiedIndexValue))
}

// CopiesOf implements [observe.Target].
func (t *targetView) CopiesOf(source types.NamespacedName) []plan.Copy {
	var all []plan.Copy
	for _, api := range t.apis {
		for _, object := range api.cache.ByIndex(bySource, source.String()) {
			if found := t.copyAt(api, keyOf(object)); found.Observed != nil && sourceKey(found.Observed.Mark) == source {
				all = append(all, found)
			}
		}
	}
	return all
}

// hasUncachedCopy reports whether the hub wrote a copy of a mailbox object that the cache does not contain yet.
func (t *targetView) hasUncachedCopy(source types.NamespacedName) bool {
	return t.writes.AnyWritten(func(written *cachedCopy) bool {
		return written.observed != nil && sourceKey(written.observed.Mark) == source
	})
}

// CopyAt implements [observe.Target].
func (t *targetView) CopyAt(api plan.TargetAPI, key types.NamespacedName) plan.Copy {
	return t.copyAt(t.resourceFor(api.GroupResource()), key)
}

// copyAt returns a place on the target, with the object there if it is a copy of the hub's. The hub's own last write counts even
// if the cache does not contain it yet.
func (t *targetView) copyAt(api *targetResource, key types.NamespacedName) plan.Copy {
	found := plan.Copy{API: api.TargetAPI, Key: key}
	cached := api.cache.Get(key)
	known, deleted := t.writes.Current(found.Ref(), cached)
	if known == nil || known.observed == nil {
		return found
	}
	found.Object, found.Observed, found.Uncached = known.Unstructured, known.observed, cached == nil
	if deleted && !known.observed.Terminating {
		observed := *known.observed
		observed.Terminating = true
		found.Observed = &observed
	}
	return found
}

// APIOf implements [observe.Target].
func (t *targetView) APIOf(kind schema.GroupKind) (plan.TargetAPI, error) {
	if err := t.CheckKind(kind); err != nil {
		return plan.TargetAPI{}, err
	}
	for _, api := range t.apis {
		if api.Group == kind.Group && api.Kind == kind.Kind {
			return api.TargetAPI, nil
		}
	}
	return plan.TargetAPI{}, notServedError(kind)
}

// checkServed returns an error if the target does not serve an API, as far as the hub knows. [Controller.onAvailabilityChanged] is called when
// it does.
func (t *targetView) checkServed(api plan.TargetAPI) error {
	if t.resourceFor(api.GroupResource()).cache.Availability().Reason != targets.ReasonNotServed {
		return nil
	}
	return notServedError(schema.GroupKind{Group: api.Group, Kind: api.Kind})
}

func notServedError(kind schema.GroupKind) error {
	return fmt.Errorf("%w %s, the API of the copy", observe.ErrNotServed, kind)
}

// KindOf implements [observe.Target].
func (t *targetView) KindOf(resource schema.GroupResource) schema.GroupVersionKind {
	api := t.apiOf(resource)
	if api.Kind == "" {
		return schema.GroupVersionKind{}
	}
	return api.GroupVersion().WithKind(api.Kind)
}

// CheckKind implements [observe.Target].
func (t *targetView) CheckKind(kind schema.GroupKind) error {
	for _, one := range t.unresolvedKinds {
		// The kind of an earlier conversion's results may be unknown.
		if one.IsDenied() && one.GroupResource.Group == kind.Group && (one.Kind == kind.Kind || kind.Kind == "") {
			return &policy.DeniedError{Reason: one.Reason, Message: one.Message}
		}
	}
	return nil
}

// CheckNamespace implements [observe.Target]. A namespace that the connection does not watch counts as denied, because an object
// missing from the cache may exist there.
func (t *targetView) CheckNamespace(name string, protectedToo bool) error {
	if err := t.currentNamespacePolicy().Check(name, protectedToo); err != nil {
		return err
	}
	if !t.connection.Namespaces.Contain(name) {
		return policy.NamespaceNotAllowed(name)
	}
	return nil
}

// CheckProtected implements [observe.Target].
func (t *targetView) CheckProtected(name string, protectedToo bool) error {
	return t.currentNamespacePolicy().CheckProtected(name, protectedToo)
}

// NamespaceLabels implements [observe.Target].
func (t *targetView) NamespaceLabels(name string) (labels map[string]string, known bool) {
	return t.connection.Watches.NamespaceLabels(name)
}

func (t *targetView) currentNamespacePolicy() *policy.NamespacePolicy {
	if t.namespacePolicy == nil {
		return nil
	}
	return t.namespacePolicy()
}

// contradicted marks the cache as outdated: it contains an object of this UID that the target does not have, or, for an empty
// UID, lacks a copy of the hub's that the target has.
func (t *targetView) contradicted(ref plan.Ref, uid types.UID) {
	if api := t.resourceFor(ref.Resource); api != nil {
		api.cache.Contradicted(ref.Key, uid)
	}
}

// deletionStarted is called before the hub deletes a copy, and with an empty UID if the deletion failed.
func (t *targetView) deletionStarted(ref plan.Ref, uid types.UID) {
	t.lock.Lock()
	defer t.lock.Unlock()
	if uid == "" {
		delete(t.deletedByHub, ref)
		return
	}
	if t.deletedByHub == nil {
		t.deletedByHub = map[plan.Ref]types.UID{}
	}
	t.deletedByHub[ref] = uid
}

// deletionObserved reports whether the hub deleted the copy that is gone.
func (t *targetView) deletionObserved(ref plan.Ref, uid types.UID) (byHub bool) {
	t.lock.Lock()
	defer t.lock.Unlock()
	byHub = uid != "" && t.deletedByHub[ref] == uid
	delete(t.deletedByHub, ref)
	return byHub
}

func sourceKey(mark ownership.Mark) types.NamespacedName {
	return types.NamespacedName{Namespace: mark.Source.Namespace, Name: mark.Source.Name}
}

// isOwnSource reports whether a source is an object of the mailbox resource.
func (t *targetView) isOwnSource(source ownership.Source) bool {
	return source.Group == t.resource.Group && source.Resource == t.resource.Resource
}

// sourceKeysOf returns the key of a copy's mailbox object. It returns the copy's own key if the copy has no valid mark, and no
// key if the copy is of another mailbox resource.
func (t *targetView) sourceKeysOf(cached *cachedCopy) []types.NamespacedName {
	switch {
	case cached.observed == nil:
		return []types.NamespacedName{keyOf(cached)}
	case t.isOwnSource(cached.observed.Mark.Source):
		return []types.NamespacedName{sourceKey(cached.observed.Mark)}
	default:
		return nil
	}
}

func (t *targetView) indexBySource(obj any) ([]string, error) {
	cached, ok := obj.(*cachedCopy)
	switch {
	case ok && cached.unverified:
		return []string{unverifiedIndexValue}, nil
	case ok && cached.observed != nil && t.isOwnSource(cached.observed.Mark.Source):
		return []string{sourceKey(cached.observed.Mark).String()}, nil
	default:
		return nil, nil
	}
}
