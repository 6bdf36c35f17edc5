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
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	kcpcache "github.com/kcp-dev/apimachinery/v2/pkg/cache"
	"github.com/kcp-dev/logicalcluster/v3"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"

	"github.com/synchub-dev/synchub/provider/holdings"
	"github.com/synchub-dev/synchub/provider/requests"
	"github.com/synchub-dev/synchub/provider/transport"
)

const (
	// reviewers is how many mailboxes are reviewed at once.
	reviewers = 4
	// reviewTimeout bounds the requests of one review.
	reviewTimeout = time.Minute
	// reviewPause is how long a mailbox that is over its limits waits for its next review.
	reviewPause = time.Second
	// fewObjects is how many objects of one resource are read one by one; more are listed.
	fewObjects = 10
	// pageBytes is how much one page of a list may take, as far as is known before.
	pageBytes = 16 << 20
	// pageObjects is how many objects a page has at most.
	pageObjects = 500
)

// ErrNotFetched says that an object is being fetched. Its subscribers are told when it is there.
var ErrNotFetched = errors.New("the object is being fetched from the mailbox")

// newReviews returns the queue of the mailboxes of which the hub may hold more, or less, than it should.
func newReviews(now clock.Clock) workqueue.TypedRateLimitingInterface[logicalcluster.Name] {
	limiter := workqueue.NewTypedItemExponentialFailureRateLimiter[logicalcluster.Name](reviewPause, time.Minute)
	config := workqueue.TypedRateLimitingQueueConfig[logicalcluster.Name]{}
	if ticking, ok := now.(clock.WithTicker); ok {
		config.Clock = ticking
	}
	return workqueue.NewTypedRateLimitingQueueWithConfig(limiter, config)
}

// Review finds out anew what is to be held of a mailbox: its configs or its limits have changed.
func (m *Mailboxes) Review(mailbox logicalcluster.Name) {
	if m.policy != nil {
		m.reviews.Add(mailbox)
	}
}

// ReviewAll does so for all mailboxes.
func (m *Mailboxes) ReviewAll() {
	m.accounts.Range(func(mailbox, _ any) bool {
		m.Review(mailbox.(logicalcluster.Name))
		return true
	})
}

// reviewBeyond does so for those of which not all is held: a list does not come by age.
func (m *Mailboxes) reviewBeyond() {
	m.eachAccount(func(mailbox logicalcluster.Name, account *account, _ bool) {
		if account.isBeyond() {
			m.Review(mailbox)
		}
	})
}

// request has an object fetched that a reader needs whole.
func (m *Mailboxes) request(resource schema.GroupVersionResource, mailbox logicalcluster.Name, object *unstructured.Unstructured) {
	informer, ok := m.informer(resource, mailbox)
	if !ok {
		return
	}
	found, exists, _ := informer.GetIndexer().GetByKey(kcpcache.ToClusterAwareKey(mailbox.String(), object.GetNamespace(), object.GetName()))
	if wanted, ok := found.(*item); exists && ok {
		wanted.requested.Store(true)
		m.Review(mailbox)
	}
}

// runReviews reviews mailboxes until ctx ends. It returns when no review is under way.
func (m *Mailboxes) runReviews(ctx context.Context) {
	var running sync.WaitGroup
	for range reviewers {
		running.Go(func() {
			for m.reviewNext(ctx) {
			}
		})
	}
	<-ctx.Done()
	m.reviews.ShutDown()
	running.Wait()
}

// reviewNext reviews one mailbox. One that is over its limits waits for its next review, so that its tenant does not take
// the turns of others.
func (m *Mailboxes) reviewNext(ctx context.Context) bool {
	mailbox, shutdown := m.reviews.Get()
	if shutdown {
		return false
	}
	defer m.reviews.Done(mailbox)
	account := m.account(mailbox)
	if wait := account.pausedFor(m.clock.Now()); wait > 0 {
		m.reviews.AddAfter(mailbox, wait)
		return true
	}
	beyond, err := m.review(ctx, mailbox)
	if beyond {
		account.pause(m.clock.Now())
	}
	if err != nil && ctx.Err() == nil {
		m.log.Info("cannot fetch objects that are to be synced, trying again", "mailbox", mailbox, "error", err.Error())
		m.reviews.AddRateLimited(mailbox)
		return true
	}
	m.reviews.Forget(mailbox)
	return true
}

// holding is an item in the cache of its resource.
type holding struct {
	*item
	watching *watching
	object   *unstructured.Unstructured
	// selected is true if the object is to be held whole, or may have to be.
	selected bool
}

// review makes the caches hold what is to be held of a mailbox. It tells whether the mailbox is over its limits.
func (m *Mailboxes) review(ctx context.Context, mailbox logicalcluster.Name) (beyond bool, err error) {
	endpoint := m.locate(mailbox)
	if endpoint == nil {
		// Its binding tells when it is seen again.
		return false, nil
	}
	ctx, cancel := context.WithTimeout(requests.As(ctx, requests.Extra), reviewTimeout)
	defer cancel()
	var errs []error
	for _, configs := range []bool{true, false} {
		if m.isClosed(mailbox, configs) {
			if m.accountOf(mailbox, configs).reconsider(m.limits(mailbox, configs)) {
				m.closing.awaken()
			}
			continue
		}
		all, known := m.holdingsOf(endpoint, mailbox, configs)
		if !known {
			break
		}
		limits, candidates := m.limits(mailbox, configs), candidates(all)
		if limits.Bytes > 0 && identitiesOf(candidates) > limits.Bytes {
			m.close(mailbox, configs, int64(len(all)))
			continue
		}
		refused, admitsAt := admit(limits, m.limitsOf, candidates, configs)
		isBeyond, err := m.bring(ctx, mailbox, all, refused)
		m.accountOf(mailbox, configs).reviewed(int64(len(all)), admitsAt)
		beyond, errs = beyond || isBeyond, append(errs, err)
	}
	return beyond, errors.Join(errs...)
}

// bring makes the caches hold of objects of a mailbox what is not refused. It tells whether some are.
func (m *Mailboxes) bring(ctx context.Context, mailbox logicalcluster.Name, all []holding, refused []refusal) (beyond bool, err error) {
	missing := map[*watching][]holding{}
	for i, held := range all {
		switch extent := ExtentOf(held.object); {
		case refused[i] != notRefused:
			beyond = true
			if refused[i] != refusalOf(held.object) {
				m.hold(mailbox, held, held.watching.identityOf(held.object, refused[i]), held.size.Load())
			}
		case extent == Whole && !held.selected:
			m.hold(mailbox, held, metadataOf(held.object), held.size.Load())
		case extent != Whole && held.selected:
			missing[held.watching] = append(missing[held.watching], held)
		}
	}
	var errs []error
	for watching, objects := range missing {
		if err := m.fetch(ctx, watching, mailbox, objects, pageLimit(all, watching)); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", watching.resource.Resource, err))
		}
	}
	return beyond, errors.Join(errs...)
}

// holdingsOf returns all configs that the caches hold of a mailbox, or all other objects; known is false while its configs are
// unknown.
func (m *Mailboxes) holdingsOf(endpoint *endpoint, mailbox logicalcluster.Name, configs bool) (all []holding, known bool) {
	for _, watching := range endpoint.limited(configs) {
		found, err := watching.informer.GetIndexer().ByIndex(kcpcache.ClusterIndexName, kcpcache.ClusterIndexKey(mailbox))
		if err != nil {
			continue
		}
		for _, entry := range found {
			if isPlaceholder(entry) {
				continue
			}
			held := holding{item: entry.(*item), watching: watching, object: objectOf(entry), selected: true}
			if ExtentOf(held.object) != Identity {
				selected, known := watching.selects(mailbox, held.object)
				if !known {
					return nil, false
				}
				held.selected = selected || held.requested.Load()
			}
			all = append(all, held)
		}
	}
	return all, true
}

func candidates(all []holding) []candidate {
	candidates := make([]candidate, len(all))
	for i, held := range all {
		need := held.size.Load()
		if !held.selected {
			need = holdings.SizeOf(held.object)
			if ExtentOf(held.object) == Whole {
				need = holdings.SizeOf(metadataOf(held.object))
			}
		}
		candidates[i] = candidate{
			resource: held.watching.resource, created: held.object.GetCreationTimestamp().Time, tie: held.watching.tieOf(held.object),
			need: need, identity: held.identitySize(),
		}
	}
	return candidates
}

// identitySize returns what the object takes if only its identity is held.
func (h holding) identitySize() int64 {
	if ExtentOf(h.object) == Identity {
		return holdings.SizeOf(h.object)
	}
	if h.identity.Load() == 0 {
		h.identity.Store(holdings.SizeOf(h.watching.identityOf(h.object, byMailbox)))
	}
	return h.identity.Load()
}

// hold has a cache hold another extent of an object, and tells the subscribers.
func (m *Mailboxes) hold(mailbox logicalcluster.Name, held holding, object *unstructured.Unstructured, size int64) {
	account := held.watching.account(mailbox)
	held.identity.Store(0)
	bytes, ok := account.install(held.watching.resource, held.item, object, size)
	if !ok {
		return
	}
	if account.needsReview(held.watching.limits(mailbox), held.watching.resource, m.limitsOf(held.watching.resource), false) {
		// It has grown meanwhile.
		m.Review(mailbox)
	}
	held.watching.held.Change(0, bytes)
	m.total.grown()
	if ExtentOf(object) == Metadata && ExtentOf(held.object) == Whole {
		// No reader needs more of it.
		return
	}
	key := types.NamespacedName{Namespace: object.GetNamespace(), Name: object.GetName()}
	for _, subscription := range m.subscribers.of(route{held.watching.resource, mailbox}) {
		subscription.OnEvent(Event{
			Key: key, Old: held.object, New: object, Unchanged: held.object.GetResourceVersion() == object.GetResourceVersion(),
		})
	}
}

// fetch reads objects of one resource that are to be held whole: few one by one, many by a list.
func (m *Mailboxes) fetch(ctx context.Context, watching *watching, mailbox logicalcluster.Name, missing []holding, limit int64) error {
	client := watching.endpoint.in(mailbox).Resource(watching.resource)
	if len(missing) <= fewObjects {
		for _, held := range missing {
			object, err := client.Namespace(held.object.GetNamespace()).Get(ctx, held.object.GetName(), metav1.GetOptions{})
			if apierrors.IsNotFound(err) {
				// The watch is about to tell.
				continue
			}
			if err != nil {
				return fmt.Errorf("cannot get %s: %w", held.object.GetName(), err)
			}
			if err := m.holdFetched(mailbox, held, object); err != nil {
				return err
			}
		}
		return nil
	}
	byUID := map[types.UID]holding{}
	for _, held := range missing {
		byUID[held.object.GetUID()] = held
	}
	options := metav1.ListOptions{Limit: limit}
	for {
		page, err := transport.Page(ctx, &options, client.List)
		if err != nil {
			return fmt.Errorf("cannot list them: %w", err)
		}
		for i := range page.Items {
			if held, ok := byUID[page.Items[i].GetUID()]; ok {
				if err := m.holdFetched(mailbox, held, &page.Items[i]); err != nil {
					return err
				}
			}
		}
		if options.Continue = page.GetContinue(); options.Continue == "" {
			return nil
		}
		options.Limit = min(2*options.Limit, limit)
	}
}

// pageLimit returns how many objects of a resource a page may have: the largest of the mailbox must not make it too large.
func pageLimit(all []holding, watching *watching) int64 {
	largest := int64(1)
	for _, held := range all {
		if held.watching == watching {
			largest = max(largest, held.size.Load())
		}
	}
	return min(max(pageBytes/largest, 1), pageObjects)
}

// holdFetched has a cache hold an object that was read just now, if it is still needed. It fails if there is no room.
func (m *Mailboxes) holdFetched(mailbox logicalcluster.Name, held holding, object *unstructured.Unstructured) error {
	if object.GetUID() != held.object.GetUID() {
		// The watch is about to tell of the other one.
		return nil
	}
	if mailboxOf(object) != mailbox {
		_ = unstructured.SetNestedField(object.Object, mailbox.String(), "metadata", "annotations", logicalcluster.AnnotationKey)
	}
	object = held.watching.strip(object)
	size := holdings.SizeOf(object)
	if selected, _ := held.watching.selects(mailbox, object); !selected && !held.requested.Load() {
		object = metadataOf(object)
	}
	if !m.total.has(holdings.SizeOf(object) - held.heldSize()) {
		return errFull
	}
	m.hold(mailbox, held, object, size)
	return nil
}
