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
	"math"
	"sync"
	"time"

	"github.com/kcp-dev/logicalcluster/v3"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"

	"github.com/synchub-dev/synchub/provider/cachesize"
	"github.com/synchub-dev/synchub/provider/requestclass"
	"github.com/synchub-dev/synchub/provider/transport"
)

const (
	// reviewWorkers is the number of mailboxes that are reviewed at the same time.
	reviewWorkers = 4
	// reviewTimeout bounds the requests of one review.
	reviewTimeout = time.Minute
	// reviewInterval is the least time between two reviews of a mailbox that exceeds its limits.
	reviewInterval = time.Second
	// maxSingleGets bounds the objects of one resource that are fetched one by one; more are listed.
	maxSingleGets = 10
	// pageBytes bounds the expected size of a page of a list.
	pageBytes = 16 << 20
	// pageObjects bounds the objects of a page.
	pageObjects = 500
)

// Reviews is the queue of the mailboxes whose caches are to be reviewed.
type Reviews struct {
	// queue is nil without a policy.
	queue  workqueue.TypedRateLimitingInterface[logicalcluster.Name]
	usages *usages
}

func newReviews(options *Options, usages *usages) *Reviews {
	if options.Policy == nil {
		return &Reviews{usages: usages}
	}
	limiter := workqueue.NewTypedItemExponentialFailureRateLimiter[logicalcluster.Name](reviewInterval, time.Minute)
	return &Reviews{workqueue.NewTypedRateLimitingQueueWithConfig(limiter, workqueue.TypedRateLimitingQueueConfig[logicalcluster.Name]{Clock: options.Clock}), usages}
}

// EnqueueCacheReview enqueues a review of a mailbox, because its configs or its limits have changed. The review decides how much of
// each object is cached.
func (r *Reviews) EnqueueCacheReview(mailbox logicalcluster.Name) {
	if r.queue != nil {
		r.queue.Add(mailbox)
	}
}

// EnqueueAllCacheReviews enqueues reviews of all mailboxes.
func (r *Reviews) EnqueueAllCacheReviews() {
	r.usages.objects.Range(func(mailbox, _ any) bool {
		r.EnqueueCacheReview(mailbox.(logicalcluster.Name))
		return true
	})
}

// enqueueLimited enqueues reviews of mailboxes that exceed a limit, because a list is not sorted by age.
func (r *Reviews) enqueueLimited() {
	r.usages.each(func(mailbox logicalcluster.Name, usage *usage, _ bool) {
		if usage.counts().identityOnly > 0 {
			r.EnqueueCacheReview(mailbox)
		}
	})
}

// reviewer makes the caches hold as much of each object as the policy and the limits allow.
type reviewer struct{ *parts }

// run reviews mailboxes until ctx ends, and waits for the running reviews.
func (r *reviewer) run(ctx context.Context) {
	var running sync.WaitGroup
	for range reviewWorkers {
		running.Go(func() {
			for r.processNext(ctx) {
			}
		})
	}
	<-ctx.Done()
	r.reviews.queue.ShutDown()
	running.Wait()
}

// processNext reviews one mailbox. A mailbox that exceeds its limits waits for reviewInterval, so that other mailboxes
// are reviewed too. It returns false when the queue has shut down.
func (r *reviewer) processNext(ctx context.Context) bool {
	mailbox, shutdown := r.reviews.queue.Get()
	if shutdown {
		return false
	}
	defer r.reviews.queue.Done(mailbox)
	usage := r.usages.of(mailbox, false)
	if wait := usage.reviewDelay(r.options.Clock.Now()); wait > 0 {
		r.reviews.queue.AddAfter(mailbox, wait)
		return true
	}
	identityOnly, err := r.review(ctx, mailbox)
	if identityOnly {
		usage.delayReview(r.options.Clock.Now())
	}
	if err != nil && ctx.Err() == nil {
		r.options.Log.Info("cannot fetch objects that are to be synced, trying again", "mailbox", mailbox, "error", err.Error())
		r.reviews.queue.AddRateLimited(mailbox)
		return true
	}
	r.reviews.queue.Forget(mailbox)
	return true
}

// cacheEntry is an entry of a cache during a review.
type cacheEntry struct {
	*cachedObject
	source *wildcardInformer
	object *unstructured.Unstructured
	// selected is true if the object may be needed whole.
	selected bool
}

// review makes the caches hold as much of each object of a mailbox as the policy and the limits allow. identityOnly is true
// if the mailbox exceeds a limit.
func (r *reviewer) review(ctx context.Context, mailbox logicalcluster.Name) (identityOnly bool, err error) {
	endpoint := r.endpoints.locate(mailbox)
	if endpoint == nil {
		// The event of the mailbox's binding enqueues the next review.
		return false, nil
	}
	ctx, cancel := context.WithTimeout(requestclass.With(ctx, requestclass.Extra), reviewTimeout)
	defer cancel()
	var errs []error
	for _, configs := range []bool{true, false} {
		if r.usages.isEvicted(mailbox, configs) {
			if r.usages.of(mailbox, configs).retryIfLimitGrew(r.limits.of(mailbox, configs)) {
				r.evictions.wake.notify()
			}
			continue
		}
		all, known := r.listEntries(endpoint, mailbox, configs)
		if !known {
			break
		}
		limits := r.limits.of(mailbox, configs)
		exceeded, admitsAt := make([]exceededLimit, len(all)), int64(math.MaxInt64)
		if !fitsWhole(limits, r.limits.ofResource, all) {
			candidates := admissionCandidates(all)
			if limits.Bytes > 0 && sumIdentityBytes(candidates) > limits.Bytes {
				r.evictions.evict(mailbox, configs, int64(len(all)))
				continue
			}
			exceeded, admitsAt = admit(limits, r.limits.ofResource, candidates, configs)
		}
		isLimited, err := r.applyAdmission(ctx, mailbox, all, exceeded)
		r.usages.of(mailbox, configs).recordReview(int64(len(all)), admitsAt)
		identityOnly, errs = identityOnly || isLimited, append(errs, err)
	}
	return identityOnly, errors.Join(errs...)
}

// applyAdmission reduces objects that exceed a limit or are not selected, and fetches the other ones. identityOnly is true if an
// object exceeds a limit.
func (r *reviewer) applyAdmission(ctx context.Context, mailbox logicalcluster.Name, all []cacheEntry, exceeded []exceededLimit) (identityOnly bool, err error) {
	missing := map[*wildcardInformer][]cacheEntry{}
	for i, held := range all {
		switch projection := ProjectionOf(held.object); {
		case exceeded[i] != withinLimits:
			identityOnly = true
			if exceeded[i] != exceededLimitOf(held.object) {
				r.replaceCached(mailbox, held, held.source.toIdentityOnly(held.object, exceeded[i]), held.fullSize.Load())
			}
		case projection == FullObject && !held.selected:
			r.replaceCached(mailbox, held, toMetadataOnly(held.object), held.fullSize.Load())
		case projection != FullObject && held.selected:
			missing[held.source] = append(missing[held.source], held)
		}
	}
	var errs []error
	for informer, objects := range missing {
		if err := r.fetch(ctx, informer, mailbox, objects, pageLimit(all, informer)); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", informer.resource.Resource, err))
		}
	}
	return identityOnly, errors.Join(errs...)
}

// listEntries returns the entries of a mailbox's configs, or of its other objects; known is false while its configs are unknown.
func (r *reviewer) listEntries(endpoint *endpoint, mailbox logicalcluster.Name, configs bool) (all []cacheEntry, known bool) {
	for _, informer := range endpoint.objectInformers(configs) {
		for _, entry := range entriesOf(informer.shared, mailbox) {
			if isPlaceholder(entry) {
				continue
			}
			held := cacheEntry{cachedObject: entry.(*cachedObject), source: informer, object: toObject(entry), selected: true}
			if ProjectionOf(held.object) != IdentityOnly {
				selected, known := informer.selects(mailbox, held.object)
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

// fitsWhole reports whether all entries are within the limits even if each is cached whole. Then all entries are admitted,
// and neither their order nor their other sizes matter.
func fitsWhole(limits Limits, limitsOf func(schema.GroupVersionResource) Limits, all []cacheEntry) bool {
	type sum struct{ objects, bytes int64 }
	var total sum
	bySource := map[*wildcardInformer]sum{}
	for _, held := range all {
		size, of := held.fullSize.Load(), bySource[held.source]
		total = sum{total.objects + 1, total.bytes + size}
		bySource[held.source] = sum{of.objects + 1, of.bytes + size}
	}
	for source, of := range bySource {
		if limitsOf(source.resource).exceededBy(of.objects, of.bytes) {
			return false
		}
	}
	return !limits.exceededBy(total.objects, total.bytes)
}

func admissionCandidates(all []cacheEntry) []admissionCandidate {
	candidates := make([]admissionCandidate, len(all))
	for i, held := range all {
		size := held.fullSize.Load()
		if !held.selected {
			size = cachesize.SizeOf(held.object)
			if ProjectionOf(held.object) == FullObject {
				size = cachesize.SizeOf(toMetadataOnly(held.object))
			}
		}
		candidates[i] = admissionCandidate{
			resource: held.source.resource, created: held.object.GetCreationTimestamp().Time, tieBreaker: held.source.tieBreaker(held.object),
			bytes: size, identityBytes: held.identitySize(),
		}
	}
	return candidates
}

// identitySize returns the size of the object's identity, and computes it once.
func (h cacheEntry) identitySize() int64 {
	if ProjectionOf(h.object) == IdentityOnly {
		return cachesize.SizeOf(h.object)
	}
	if h.identityBytes.Load() == 0 {
		h.identityBytes.Store(cachesize.SizeOf(h.source.toIdentityOnly(h.object, mailboxLimit)))
	}
	return h.identityBytes.Load()
}

// replaceCached replaces the object of an entry by another projection or a newer version, and calls the subscribers.
func (r *reviewer) replaceCached(mailbox logicalcluster.Name, held cacheEntry, object *unstructured.Unstructured, size int64) {
	usage := held.source.parts.usages.of(mailbox, held.source.configs)
	held.identityBytes.Store(0)
	bytes, ok := usage.setObject(held.source.resource, held.cachedObject, object, size)
	if !ok {
		return
	}
	if usage.needsReview(held.source.parts.limits.of(mailbox, held.source.configs), held.source.resource, r.limits.ofResource(held.source.resource), false) {
		// The mailbox has grown since the review began.
		r.reviews.EnqueueCacheReview(mailbox)
	}
	held.source.counted.size.Add(0, bytes)
	r.limits.memory.onGrowth()
	if ProjectionOf(object) == MetadataOnly && ProjectionOf(held.object) == FullObject {
		// No reader needs the removed fields.
		return
	}
	r.subscriptions.publish(held.source.resource, mailbox, Event{
		Key: keyOf(object), Old: held.object, New: object, ProjectionOnly: held.object.GetResourceVersion() == object.GetResourceVersion(),
	})
}

// fetch gets objects of one resource that are needed whole: few one by one, many by a list.
func (r *reviewer) fetch(ctx context.Context, informer *wildcardInformer, mailbox logicalcluster.Name, missing []cacheEntry, limit int64) error {
	client := informer.endpoint.clientFor(mailbox).Resource(informer.resource)
	if len(missing) <= maxSingleGets {
		for _, held := range missing {
			object, err := client.Namespace(held.object.GetNamespace()).Get(ctx, held.object.GetName(), metav1.GetOptions{})
			if apierrors.IsNotFound(err) {
				// The watch will report the deletion.
				continue
			}
			if err != nil {
				return fmt.Errorf("cannot get %s: %w", held.object.GetName(), err)
			}
			if err := r.cacheFetched(mailbox, held, object); err != nil {
				return err
			}
		}
		return nil
	}
	byUID := map[types.UID]cacheEntry{}
	for _, held := range missing {
		byUID[held.object.GetUID()] = held
	}
	for page, err := range transport.Pages(ctx, metav1.ListOptions{Limit: limit}, client.List) {
		if err != nil {
			return fmt.Errorf("cannot list them: %w", err)
		}
		for i := range page.Items {
			if held, ok := byUID[page.Items[i].GetUID()]; ok {
				if err := r.cacheFetched(mailbox, held, &page.Items[i]); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// pageLimit returns the limit of a page for which a page of the largest objects of the resource has at most pageBytes.
func pageLimit(all []cacheEntry, informer *wildcardInformer) int64 {
	largest := int64(1)
	for _, held := range all {
		if held.source == informer {
			largest = max(largest, held.fullSize.Load())
		}
	}
	return min(max(pageBytes/largest, 1), pageObjects)
}

// cacheFetched caches a fetched object, whole if that is still needed. It fails if there is no room.
func (r *reviewer) cacheFetched(mailbox logicalcluster.Name, held cacheEntry, object *unstructured.Unstructured) error {
	if object.GetUID() != held.object.GetUID() {
		// The watch will report the new object.
		return nil
	}
	if mailboxOf(object) != mailbox {
		_ = unstructured.SetNestedField(object.Object, mailbox.String(), "metadata", "annotations", logicalcluster.AnnotationKey)
	}
	object = held.source.strip(object)
	size := cachesize.SizeOf(object)
	if selected, _ := held.source.selects(mailbox, object); !selected && !held.requested.Load() {
		object = toMetadataOnly(object)
	}
	if !r.limits.memory.hasRoom(cachesize.SizeOf(object) - held.currentSize()) {
		return errMemoryLimitReached
	}
	r.replaceCached(mailbox, held, object, size)
	return nil
}
