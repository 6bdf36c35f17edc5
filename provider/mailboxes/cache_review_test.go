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

package mailboxes_test

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/kcp-dev/logicalcluster/v3"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/synchub-dev/synchub/provider/mailboxes"
	"github.com/synchub-dev/synchub/test/tier"
)

// prefixPolicy is a policy that selects objects by the prefix of their name.
type prefixPolicy struct {
	prefix  atomic.Pointer[string]
	bytes   atomic.Int64
	configs int64
	// only is the mailbox that has a limit; if it is empty all have.
	only logicalcluster.Name
}

func (p *prefixPolicy) set(prefix string, bytes int64) {
	p.prefix.Store(&prefix)
	p.bytes.Store(bytes)
}

func (p *prefixPolicy) Selects(_ mailboxes.Reader, _ logicalcluster.Name, _ schema.GroupVersionResource, object *unstructured.Unstructured) (selected, known bool) {
	return strings.HasPrefix(object.GetName(), *p.prefix.Load()), true
}
func (p *prefixPolicy) Limits(mailbox logicalcluster.Name) mailboxes.Limits {
	if p.only != "" && p.only != mailbox {
		return mailboxes.Limits{}
	}
	return mailboxes.Limits{Bytes: p.bytes.Load()}
}
func (p *prefixPolicy) ConfigLimits() mailboxes.Limits { return mailboxes.Limits{Objects: p.configs} }
func (p *prefixPolicy) RetainedAnnotations() []string  { return nil }

// An object that no config selects takes next to no memory. An object that is selected later is fetched, as far as the limits
// allow, and an object that is deselected is reduced to its metadata.
func TestReview(t *testing.T) {
	tier.Thorough(t)
	const count, size = 20, 1_000_000
	policy := &prefixPolicy{}
	policy.set("nothing", 0)
	f := newTestHubWithPolicy(t, policy)
	mailbox := f.first.own
	value := make([]byte, size)
	for i := range value {
		value[i] = 'a' + byte(rand.IntN(26)) //nolint:gosec // only so that it cannot be compressed
	}
	for number := range count {
		f.create(f.first, mailbox, fmt.Sprintf("large-%d", number), string(value))
	}
	f.create(f.first, mailbox, "other", "small")
	before := heapInUse()
	f.slice.set(f.first.url)
	f.eventually(f.hub.HasSynced).Should(BeTrue())
	f.eventually(f.state(mailbox, "other")).Should(Equal(mailboxes.Present))
	t.Logf("%d unselected objects of %d bytes: the heap grew by %d bytes", count, size, heapInUse()-before)
	f.Expect(heapInUse() - before).To(BeNumerically("<", count*size/4))
	whole := func() (whole int) {
		all, _ := f.hub.List(configMaps, mailbox)
		for _, object := range all {
			if mailboxes.ProjectionOf(object) == mailboxes.FullObject {
				whole++
			}
		}
		return whole
	}
	f.Expect(whole()).To(BeZero())

	policy.set("other", 0)
	f.hub.Reviews.EnqueueCacheReview(mailbox)
	f.eventually(f.value(mailbox, "other")).Should(Equal("small"))
	f.eventually(f.subscribers[mailbox].recorded(changedKeys)).Should(ContainElement("other"))

	policy.set("large-", 5*size+size/2)
	f.hub.Reviews.EnqueueCacheReview(mailbox)
	f.eventually(whole).Should(Equal(5))
	object, _ := f.hub.Get(configMaps, mailbox, key("other"))
	f.Expect(mailboxes.ProjectionOf(object)).To(Equal(mailboxes.MetadataOnly))
	f.Expect(f.hub.Limits.MailboxLimitError(mailbox).IdentityOnly).To(BeEquivalentTo(count - 5))

	policy.set("large-", 0)
	f.hub.Reviews.EnqueueCacheReview(mailbox)
	f.eventually(whole).Should(Equal(count))
	t.Logf("cached whole: the heap grew by %d bytes", heapInUse()-before)
	policy.set("nothing", 0)
	f.hub.Reviews.EnqueueCacheReview(mailbox)
	f.eventually(whole).Should(BeZero())
	f.Expect(heapInUse() - before).To(BeNumerically("<", count*size/4))
}

// The oldest configs are cached; when one of them is deleted, the next is fetched.
func TestReviewOfConfigs(t *testing.T) {
	tier.Thorough(t)
	policy := &prefixPolicy{}
	policy.set("", 1)
	f := newTestHubWithConfigs(t, policy, []schema.GroupVersionResource{configMaps})
	mailbox := f.first.own
	direct, err := f.first.client(mailbox.String())
	f.Expect(err).NotTo(HaveOccurred())
	var others corev1.ConfigMapList
	f.eventually(func() []corev1.ConfigMap {
		f.Expect(direct.List(t.Context(), &others)).To(Succeed())
		return others.Items
	}).Should(ContainElement(HaveField("Name", "kube-root-ca.crt")), "kcp makes it")
	policy.configs = int64(len(others.Items)) + 3
	// With equal creation times the names decide, and these names are greater than the existing ones, so the existing
	// ConfigMaps count as older.
	for number := range 6 {
		f.create(f.first, mailbox, fmt.Sprintf("setting-%d", number), "x")
	}
	f.slice.set(f.first.url)
	active := func() (names []string) {
		all, _ := f.hub.List(configMaps, mailbox)
		for _, object := range all {
			if mailboxes.ProjectionOf(object) == mailboxes.FullObject && strings.HasPrefix(object.GetName(), "setting-") {
				names = append(names, object.GetName())
			}
		}
		return names
	}
	f.eventually(f.state(mailbox, "setting-5")).Should(Equal(mailboxes.Present))
	f.hub.Reviews.EnqueueCacheReview(mailbox)
	f.eventually(active).Should(ConsistOf("setting-0", "setting-1", "setting-2"))
	// kcp may have made ConfigMaps of its own by this time.
	f.Expect(f.hub.Limits.ConfigLimitError(mailbox).IdentityOnly).To(BeNumerically(">=", 3))
	f.delete(f.first, mailbox, "setting-0")
	f.eventually(active).Should(ConsistOf("setting-1", "setting-2", "setting-3"))
	f.eventually(f.subscribers[mailbox].recorded(changedKeys)).Should(ContainElement("setting-3"))
	f.eventually(f.value(mailbox, "setting-3")).Should(Equal("x"))
}

// The cache holds the oldest objects of a resource with limits of its own, in each mailbox. When the limits are raised or
// removed, the hub fetches the remaining objects.
func TestReviewOfAResource(t *testing.T) {
	tier.Thorough(t)
	const count = 6
	policy := &prefixPolicy{}
	policy.set("", 0)
	f := newTestHubWithPolicy(t, policy)
	mailbox := f.first.own
	direct, err := f.first.client(mailbox.String())
	f.Expect(err).NotTo(HaveOccurred())
	var others corev1.ConfigMapList
	f.Expect(direct.List(t.Context(), &others)).To(Succeed())
	allow := func(ours int) {
		f.hub.Limits.SetResourceLimits(map[schema.GroupVersionResource]mailboxes.Limits{configMaps: {Objects: int64(len(others.Items) + ours)}})
	}
	for number := range count {
		f.create(f.first, mailbox, fmt.Sprintf("limited-%d", number), "x")
	}
	whole := func() (held int) {
		all, _ := f.hub.List(configMaps, mailbox)
		for _, object := range all {
			if mailboxes.ProjectionOf(object) == mailboxes.FullObject && strings.HasPrefix(object.GetName(), "limited-") {
				held++
			}
		}
		return held
	}
	allow(2)
	f.slice.set(f.first.url)
	f.eventually(f.state(mailbox, "limited-5")).Should(Equal(mailboxes.Present))
	f.eventually(whole).Should(Equal(2))
	allow(5)
	f.eventually(whole).Should(Equal(5))
	allow(1)
	f.eventually(whole).Should(Equal(1))
	f.Expect(f.hub.Limits.ResourceLimitErrors(mailbox)).To(ContainElement(MatchError(ContainSubstring("configmaps, but may have"))))
	f.hub.Limits.SetResourceLimits(nil)
	f.eventually(whole).Should(Equal(count))
	f.Expect(f.hub.Limits.ResourceLimitErrors(mailbox)).To(BeEmpty())
	f.Expect(f.subscribers[mailbox].recorded(deletedKeys)()).To(BeEmpty())
}

// A mailbox with too many objects leaves the cache, while the other mailboxes stay. It returns with its current objects.
func TestTooManyObjects(t *testing.T) {
	tier.Thorough(t)
	const count = 60
	policy := &prefixPolicy{}
	policy.set("crowd-", 0)
	f := newTestHubWithPolicy(t, policy)
	mailbox := f.first.own
	policy.only = mailbox
	for number := range count {
		f.create(f.first, mailbox, fmt.Sprintf("crowd-%d", number), "x")
	}
	f.create(f.first, twin, "crowd-neighbour", "x")
	f.slice.set(f.first.url)
	f.eventually(f.value(mailbox, "crowd-59")).Should(Equal("x"))
	f.eventually(f.value(twin, "crowd-neighbour")).Should(Equal("x"))

	policy.set("crowd-", 20_000)
	f.hub.Reviews.EnqueueCacheReview(mailbox)
	f.eventually(f.state(mailbox, "crowd-0")).Should(Equal(mailboxes.Unknown))
	f.Expect(f.hub.Limits.MailboxLimitError(mailbox).Evicted).To(BeTrue())
	f.eventually(f.subscribers[mailbox].wasReset).Should(BeTrue())
	f.Expect(f.value(twin, "crowd-neighbour")()).To(Equal("x"))
	f.Expect(f.subscribers[twin].recorded(deletedKeys)()).To(BeEmpty())
	f.delete(f.first, mailbox, "crowd-1")
	f.create(f.first, mailbox, "crowd-late", "x")
	f.hub.Absences.VerifyAbsence(mailbox, missingObject("crowd-0"))

	policy.set("crowd-", 0)
	f.hub.Reviews.EnqueueCacheReview(mailbox)
	f.eventually(func() mailboxes.State {
		state := f.state(mailbox, "crowd-0")()
		f.Expect(state).NotTo(Equal(mailboxes.Absent), "an object that is not listed yet counts as absent")
		return state
	}).Should(Equal(mailboxes.Present))
	f.eventually(f.value(mailbox, "crowd-late")).Should(Equal("x"))
	f.eventually(f.value(mailbox, "crowd-0")).Should(Equal("x"))
	f.Expect(f.state(mailbox, "crowd-1")()).To(Equal(mailboxes.Absent))
	f.Expect(f.hub.Absences.TakeVerifiedAbsence(mailbox, missingObject("crowd-0"))).To(BeFalse())
	f.Expect(f.hub.Limits.MailboxLimitError(mailbox).IdentityOnly).To(BeZero())
	f.expectEvents(f.first, mailbox, "crowd-again")
}

func heapInUse() int64 {
	runtime.GC()
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return int64(stats.HeapAlloc) //nolint:gosec // no heap is that large
}
