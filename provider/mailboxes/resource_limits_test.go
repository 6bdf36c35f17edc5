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
	"fmt"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/synchub-dev/synchub/provider/wording"
)

// limited are the limits of secrets.
func limited(limits Limits) map[schema.GroupVersionResource]Limits {
	return map[schema.GroupVersionResource]Limits{secrets: limits}
}

// objectNamed returns an object of about so many bytes. Objects of several resources may have the same name.
func objectNamed(resource schema.GroupVersionResource, name string, size int) *unstructured.Unstructured {
	made := configMapOf(name, size/2, selectedLabel)
	made.SetUID(types.UID(resource.Resource + "/" + name))
	return made
}

// Objects beyond the limits of a resource are cached as identity only, and take no room from other objects of the mailbox.
// The hub reviews the mailbox when an object of the resource is removed, and not when any other object is.
func TestResourceLimits(t *testing.T) {
	const size = 10_000
	g := NewWithT(t)
	c := newTotal(t, &labelPolicy{limits: Limits{Objects: 9}}, 0, here)
	owner := c.owner
	s := newTestInformerAt(t, c.owner, c.endpoint, secrets)
	owner.Limits.SetResourceLimits(limited(Limits{Objects: 2}))
	for number := range 5 {
		held := s.update(t, objectNamed(secrets, fmt.Sprint(number), size))
		want := FullObject
		if number >= 2 {
			want = IdentityOnly
		}
		g.Expect(ProjectionOf(held)).To(Equal(want))
		if number >= 2 {
			g.Expect(owner.Limits.RequireFullObject(secrets, here, held)).To(MatchError("the mailbox has " + fmt.Sprint(number+1) + " secrets, but may have 2: the youngest " +
				wording.Count(number-1, "is not synced, and left as it is", "are not synced, and left as they are") + " on the target, until objects are deleted from the mailbox or the limit of its PublishedResource is raised"))
		}
	}
	usage := owner.parts.usages.of(here, false)
	g.Expect(usage.wantedBytes(Limits{})).To(BeNumerically("<", 3*size), "objects that cannot be cached do not lower the share of other mailboxes")
	g.Expect(owner.Limits.MailboxLimitError(here).IdentityOnly).To(BeZero())
	g.Expect(owner.Limits.ResourceLimitErrors(here)).To(HaveExactElements(HaveField("IdentityOnly", int64(3))))

	for number := range 9 {
		held := c.update(t, objectNamed(configMaps, fmt.Sprint(number), size))
		g.Expect(ProjectionOf(held)).To(Equal([]Projection{FullObject, IdentityOnly}[number/7]), "config map %d", number)
	}
	g.Expect(owner.Limits.MailboxLimitError(here)).To(MatchError(ContainSubstring("11 objects, but may have 9: the youngest 2 are not synced")))
	g.Expect(owner.parts.reviews.queue.Len()).To(BeZero(), "no review before an object is deleted")

	s.remove(t, objectNamed(secrets, "0", size))
	g.Expect(owner.parts.reviews.queue.Len()).To(Equal(1), "there is room")
}

// While only one resource is beyond its limits, no event of another resource causes a review.
func TestOtherResourcesAreNoReasonToReview(t *testing.T) {
	g := NewWithT(t)
	c := newTotal(t, &labelPolicy{limits: Limits{Bytes: 100_000}}, 0, here)
	s := newTestInformerAt(t, c.owner, c.endpoint, secrets)
	c.owner.Limits.SetResourceLimits(limited(Limits{Bytes: 4_000}))
	g.Expect(ProjectionOf(s.update(t, objectNamed(secrets, "a", 5_000)))).To(Equal(IdentityOnly))
	g.Expect(ProjectionOf(s.update(t, objectNamed(secrets, "b", 500)))).To(Equal(FullObject))
	c.update(t, objectNamed(configMaps, "a", 500))
	c.update(t, objectNamed(configMaps, "a", 600))
	c.remove(t, objectNamed(configMaps, "a", 600))
	g.Expect(c.owner.parts.reviews.queue.Len()).To(BeZero())
	s.update(t, objectNamed(secrets, "b", 400))
	g.Expect(c.owner.parts.reviews.queue.Len()).To(Equal(1))
}

// When a limit is set, lowered or removed, all mailboxes are reviewed, and subscribers get an event for each object beyond
// the limit. Setting the same limit again changes nothing.
func TestLimitsOfResourcesChange(t *testing.T) {
	g := NewWithT(t)
	c := newTotal(t, &labelPolicy{}, 0, here)
	owner := c.owner
	s := newTestInformerAt(t, c.owner, c.endpoint, secrets)
	owner.Limits.SetResourceLimits(nil)
	for number := range 4 {
		s.update(t, objectNamed(secrets, fmt.Sprint(number), 100))
	}
	g.Expect(c.runReviews(t)).To(BeZero())
	for _, allowed := range []int64{3, 1} {
		s.events = nil
		owner.Limits.SetResourceLimits(limited(Limits{Objects: allowed}))
		g.Expect(c.runReviews(t)).To(BeNumerically(">", 0))
		g.Expect(owner.Limits.ResourceLimitErrors(here)).To(HaveExactElements(HaveField("IdentityOnly", 4-allowed)))
		g.Expect(s.events).To(HaveEach(And(HaveField("ProjectionOnly", true), HaveField("New", WithTransform(exceededLimitOf, Equal(resourceLimit))))))
		owner.Limits.SetResourceLimits(limited(Limits{Objects: allowed}))
		g.Expect(owner.parts.reviews.queue.Len()).To(BeZero())
	}
	g.Expect(s.events).To(HaveLen(2))
	owner.Limits.SetResourceLimits(nil)
	g.Expect(owner.parts.reviews.queue.Len()).To(Equal(1))
}

// An object that exceeds two limits is reported with the one that keeps it out now.
func TestTheLimitThatCountsIsNamed(t *testing.T) {
	g := NewWithT(t)
	policy := &labelPolicy{}
	c := newTotal(t, policy, 0, here)
	owner := c.owner
	s := newTestInformerAt(t, c.owner, c.endpoint, secrets)
	owner.Limits.SetResourceLimits(limited(Limits{Objects: 2}))
	for number := range 4 {
		s.update(t, objectNamed(secrets, fmt.Sprint(number), 100))
	}
	refusals := func() (all []exceededLimit) {
		for number := range 4 {
			found, _, _ := s.shared.GetIndexer().Get(newCachedObject(objectNamed(secrets, fmt.Sprint(number), 1), 0))
			all = append(all, exceededLimitOf(toObject(found)))
		}
		return all
	}
	g.Expect(refusals()).To(Equal([]exceededLimit{withinLimits, withinLimits, resourceLimit, resourceLimit}))
	policy.limits = Limits{Objects: 1}
	owner.Reviews.EnqueueCacheReview(here)
	c.runReviews(t)
	g.Expect(refusals()).To(Equal([]exceededLimit{withinLimits, mailboxLimit, mailboxLimit, mailboxLimit}))
	g.Expect(owner.Limits.MailboxLimitError(here)).To(MatchError(ContainSubstring("4 objects, but may have 1")))
	g.Expect(owner.Limits.ResourceLimitErrors(here)).To(BeEmpty())
}

// A list is bounded while it is being read, and reviewed when it is complete, because it is not sorted by age.
func TestAListOfAResourceIsBounded(t *testing.T) {
	g := NewWithT(t)
	c := newTotal(t, &labelPolicy{}, 0, here)
	s := newTestInformerAt(t, c.owner, c.endpoint, secrets)
	c.owner.Limits.SetResourceLimits(limited(Limits{Bytes: 24_000}))
	s.admission.beginList()
	var made []*cachedObject
	for number := range 12 {
		listed, err := s.transform(objectNamed(secrets, fmt.Sprint(number), 5_000))
		g.Expect(err).NotTo(HaveOccurred())
		made = append(made, listed.(*cachedObject))
		g.Expect(exceededLimitOf(toObject(listed))).To(Equal([]exceededLimit{withinLimits, resourceLimit}[min(number/3, 1)]))
	}
	for _, listed := range made {
		g.Expect(s.shared.GetIndexer().Add(listed)).To(Succeed())
		s.handler.OnAdd(listed, true)
	}
	c.endpoint.onCacheFilled(secrets)
	g.Expect(c.owner.parts.reviews.queue.Len()).To(Equal(1))
}

// Limits of resources cost an event no allocation.
func TestLimitsOfResourcesCostNoAllocation(t *testing.T) {
	allocations := func(limits map[schema.GroupVersionResource]Limits) float64 {
		c := newTotal(t, &labelPolicy{limits: Limits{Bytes: 1 << 20}}, 1<<30)
		c.owner.Limits.SetResourceLimits(limits)
		before := cachedItem(t, c, configMapIn(here, "object", 1_000))
		return testing.AllocsPerRun(200, func() {
			made, _ := c.transform(configMapIn(here, "object", 1_000))
			c.handler.OnUpdate(before, made)
			before = made.(*cachedObject)
		})
	}
	NewWithT(t).Expect(allocations(limited(Limits{Objects: 1}))).To(Equal(allocations(nil)))
}
