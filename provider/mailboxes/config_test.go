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
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/synchub-dev/synchub/provider/cachesize"
)

// newConfigCache plays the informer of configs.
func newConfigCache(t *testing.T, limits Limits) *testInformer {
	t.Helper()
	c := newTestInformer(t, &labelPolicy{limits: Limits{Objects: 1}, configs: limits})
	c.configs = true
	return c
}

// configNamed returns a config that a tenant may write to fill the hub's memory.
func configNamed(name string, size int) *unstructured.Unstructured {
	config := object(here, name)
	config.SetKind("SyncerConfig")
	config.SetUID(types.UID(name))
	config.SetGeneration(3)
	config.SetResourceVersion("1")
	annotations := config.GetAnnotations()
	annotations["example.com/note"] = strings.Repeat("x", size)
	config.SetAnnotations(annotations)
	config.SetLabels(map[string]string{"example.com/label": strings.Repeat("x", 60)})
	config.SetFinalizers([]string{"example.com/" + strings.Repeat("x", size)})
	config.Object["spec"] = map[string]any{"suspend": true}
	config.Object["status"] = map[string]any{
		"observedGeneration": int64(3), "selected": int64(7),
		"conditions": []any{
			map[string]any{"type": "Ready", "status": "False", "reason": "MailboxLimitExceeded"},
			map[string]any{"type": "Another", "status": "True", "reason": "Filler"},
		},
		"failures": []any{map[string]any{"message": strings.Repeat("x", size)}},
	}
	return config
}

// The hub caches the spec of a config, its finalizers, which the hub may have to write back, and the status that the hub
// compares with its own. The limits of configs count all of these.
func TestConfigsAreStripped(t *testing.T) {
	g := NewWithT(t)
	c := newConfigCache(t, Limits{})
	held := c.update(t, configNamed("a", 10_000))
	g.Expect(ProjectionOf(held)).To(Equal(FullObject))
	g.Expect(held.GetGeneration()).To(BeEquivalentTo(3))
	g.Expect(held.GetAnnotations()).To(HaveLen(1))
	g.Expect([]int{len(held.GetLabels()), len(held.GetFinalizers())}).To(Equal([]int{0, 1}))
	g.Expect(held.Object["spec"]).To(Equal(map[string]any{"suspend": true}))
	g.Expect(held.Object["status"]).To(HaveKeyWithValue("selected", int64(7)))

	large := configNamed("a", 2*maxConfigStatusBytes)
	large.SetFinalizers(nil)
	held = c.update(t, large)
	g.Expect(held.Object["status"]).To(Equal(map[string]any{"conditions": []any{}, "failures": []any{}}), "the hub replaces it")
	g.Expect(cachesize.SizeOf(held)).To(BeNumerically("<", 2_000))
}

// Configs have their own limits. Beyond them, only the identity and the Ready condition are cached.
func TestConfigsBeyondTheirLimits(t *testing.T) {
	g := NewWithT(t)
	c := newConfigCache(t, Limits{Objects: 3})
	for number := range 5 {
		c.update(t, configNamed(fmt.Sprint(number), 10_000))
	}
	g.Expect(c.owner.Limits.ConfigLimitError(here).IdentityOnly).To(BeEquivalentTo(2))
	g.Expect(c.owner.Limits.MailboxLimitError(here).Objects).To(BeZero(), "configs take no room from other objects")
	found, _, _ := c.shared.GetIndexer().Get(newCachedObject(configNamed("4", 1), 0))
	identityOnly := toObject(found)
	g.Expect(ProjectionOf(identityOnly)).To(Equal(IdentityOnly))
	g.Expect(identityOnly.Object).NotTo(HaveKey("spec"))
	g.Expect(identityOnly.GetGeneration()).To(BeEquivalentTo(3))
	g.Expect(identityOnly.Object["status"]).To(Equal(map[string]any{
		"observedGeneration": int64(3), "failures": []any{},
		"conditions": []any{map[string]any{"type": "Ready", "status": "False", "reason": "MailboxLimitExceeded"}},
	}))
	g.Expect(cachesize.SizeOf(identityOnly)).To(BeNumerically("<", 3_000))
	g.Expect(c.owner.parts.reviews.queue.Len()).To(BeZero())
	c.remove(t, configNamed("1", 10_000))
	g.Expect(c.owner.parts.reviews.queue.Len()).To(Equal(1), "there is room")
}
