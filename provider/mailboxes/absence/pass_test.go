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

package absence

import (
	"fmt"
	"testing"
	"time"

	apisv1alpha2 "github.com/kcp-dev/sdk/apis/apis/v1alpha2"
	corev1alpha1 "github.com/kcp-dev/sdk/apis/core/v1alpha1"
	tenancyv1alpha1 "github.com/kcp-dev/sdk/apis/tenancy/v1alpha1"
	conditionsv1alpha1 "github.com/kcp-dev/sdk/apis/third_party/conditions/apis/conditions/v1alpha1"
	"github.com/kcp-dev/sdk/apis/third_party/conditions/util/conditions"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic/fake"
	clienttesting "k8s.io/client-go/testing"
	clocktesting "k8s.io/utils/clock/testing"
)

// testMailbox is a bound mailbox behind a fake virtual workspace, which serves its APIBinding, its LogicalCluster and ConfigMaps.
type testMailbox struct {
	t              *testing.T
	cache          *fakeCache
	client         *fake.FakeDynamicClient
	binding        *apisv1alpha2.APIBinding
	logicalCluster *corev1alpha1.LogicalCluster
	verifier       *Verifier
	clock          *clocktesting.FakeClock
}

// newTestMailbox returns a mailbox that shows the named ConfigMaps to the hub, with a cache that holds none of them.
func newTestMailbox(t *testing.T, shown ...string) *testMailbox {
	t.Helper()
	m := &testMailbox{t: t, binding: binding{bound: []schema.GroupResource{configMaps.GroupResource()}}.build(), logicalCluster: &corev1alpha1.LogicalCluster{}}
	m.binding.Name, m.binding.ResourceVersion, m.binding.Status.Phase = "mailbox", "1", apisv1alpha2.APIBindingPhaseBound
	m.logicalCluster.Name, m.logicalCluster.Status.Phase = corev1alpha1.LogicalClusterName, corev1alpha1.LogicalClusterPhaseReady
	m.client = fake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), map[schema.GroupVersionResource]string{configMaps: "ConfigMapList"})
	for _, name := range shown {
		m.show(name)
	}
	answer := func(resource string, read func() any) {
		m.client.PrependReactor("get", resource, func(clienttesting.Action) (bool, runtime.Object, error) {
			content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(read())
			return true, &unstructured.Unstructured{Object: content}, err
		})
	}
	answer(bindingsResource.Resource, func() any { return m.binding.DeepCopy() })
	answer(logicalClustersResource.Resource, func() any { return m.logicalCluster.DeepCopy() })
	m.cache = &fakeCache{
		endpoint: &MailboxEndpoint{Endpoint: "one", Client: m.client, Binding: m.binding.Name},
		names:    map[schema.GroupVersionResource][]string{configMaps: nil}, count: 1000,
	}
	m.verifier, m.clock = newVerifier(m.cache)
	return m
}

// settle makes the binding old enough to be trusted.
func (m *testMailbox) settle() *testMailbox {
	m.verifier.ObserveBinding(here, m.binding.ResourceVersion)
	m.clock.Step(DefaultDelays.BindingSettle)
	return m
}

func (m *testMailbox) show(name string) {
	m.t.Helper()
	if err := m.client.Tracker().Add(object(name)); err != nil {
		m.t.Fatal(err)
	}
}

// onList runs a function while the hub lists the mailbox's ConfigMaps.
func (m *testMailbox) onList(run func()) {
	m.client.PrependReactor("list", configMaps.Resource, func(clienttesting.Action) (bool, runtime.Object, error) {
		run()
		return false, nil, nil
	})
}

// lists returns how often the ConfigMaps were listed.
func (m *testMailbox) lists() (count int) {
	for _, action := range m.client.Actions() {
		if action.Matches("list", configMaps.Resource) {
			count++
		}
	}
	return count
}

func (m *testMailbox) pass(candidates ...Candidate) (passResult, time.Duration) {
	return m.verifier.runPass(m.t.Context(), here, candidates)
}

// missingObjects returns more candidates than a mailbox may lose without a second verification.
func missingObjects() (candidates []Candidate) {
	for i := range massDeletionCount + 1 {
		candidates = append(candidates, missingObject(configMaps, fmt.Sprintf("object-%02d", i)))
	}
	return candidates
}

// A mass deletion is verified twice before the hub deletes anything: no object of the first pass is verified, and one that is back at the
// second stays.
func TestAPassWithAMassDeletion(t *testing.T) {
	g := NewWithT(t)
	m := newTestMailbox(t).settle()
	candidates, deselected := missingObjects(), Candidate{Resource: configMaps, Key: key("deselected")}

	result, delay := m.pass(append(candidates, deselected)...)
	g.Expect(result).To(Equal(passResult{verified: []Candidate{deselected}}))
	g.Expect(delay).To(Equal(DefaultDelays.MassDeletion))

	m.clock.Step(DefaultDelays.MassDeletion - 1)
	result, _ = m.pass(candidates...)
	g.Expect(result.verified).To(BeEmpty(), "the second pass came too early")

	m.clock.Step(1)
	m.show(candidates[0].Key.Name)
	result, _ = m.pass(candidates...)
	g.Expect(result.cleared).To(ConsistOf(candidates[0]))
	g.Expect(result.verified).To(ConsistOf(candidates[1:]))
	g.Expect(m.lists()).To(Equal(3), "a cache is not trusted for a mass deletion")
}

// A few objects are verified at once, by a list the first time and by the cache that it has verified afterwards.
func TestAPassWithAFewObjects(t *testing.T) {
	g := NewWithT(t)
	m := newTestMailbox(t, "there").settle()
	m.cache.names[configMaps] = []string{"there"}
	gone, there := missingObject(configMaps, "gone"), missingObject(configMaps, "there")
	for range 2 {
		result, delay := m.pass(gone, there)
		g.Expect(result).To(Equal(passResult{verified: []Candidate{gone}, cleared: []Candidate{there}}))
		g.Expect(delay).To(Equal(retryInterval))
	}
	g.Expect(m.lists()).To(Equal(1))

	m.binding.ResourceVersion = "2"
	m.settle()
	_, _ = m.pass(gone, there)
	g.Expect(m.lists()).To(Equal(2), "a verified cache counts for one version of the binding")
}

// kcp may not have finished its work after a change of the binding.
func TestAPassWaitsForTheBindingToSettle(t *testing.T) {
	g := NewWithT(t)
	m := newTestMailbox(t)
	gone, deselected := missingObject(configMaps, "gone"), Candidate{Resource: configMaps, Key: key("deselected")}
	m.verifier.ObserveBinding(here, m.binding.ResourceVersion)
	m.clock.Step(DefaultDelays.BindingSettle - time.Second)
	result, delay := m.pass(gone, deselected)
	g.Expect(result).To(Equal(passResult{verified: []Candidate{deselected}}))
	g.Expect(delay).To(Equal(time.Second))

	// The pass reads a change that no event has shown yet.
	m.binding.ResourceVersion = "2"
	m.clock.Step(time.Second)
	result, delay = m.pass(gone)
	g.Expect(result).To(Equal(passResult{}))
	g.Expect(delay).To(Equal(DefaultDelays.BindingSettle))
	g.Expect(m.lists()).To(BeZero())
	m.clock.Step(delay)
	result, _ = m.pass(gone)
	g.Expect(result.verified).To(ConsistOf(gone))
}

// A list does not count if the mailbox changed before its end.
func TestPassWithAChangedBinding(t *testing.T) {
	for name, change := range map[string]func(*testMailbox){
		"another version of the binding": func(m *testMailbox) { m.binding.ResourceVersion = "2" },
		"another endpoint":               func(m *testMailbox) { m.cache.endpoint.Endpoint = "two" },
		"no endpoint":                    func(m *testMailbox) { m.cache.endpoint = nil },
		"the mailbox is being deleted":   func(m *testMailbox) { m.logicalCluster.DeletionTimestamp = new(metav1.Unix(1, 0)) },
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			m := newTestMailbox(t, "there").settle()
			m.onList(func() { change(m) })
			deselected := Candidate{Resource: configMaps, Key: key("deselected")}
			result, delay := m.pass(missingObject(configMaps, "gone"), missingObject(configMaps, "there"), deselected)
			g.Expect(result).To(Equal(passResult{verified: []Candidate{deselected}}))
			g.Expect(delay).To(Equal(DefaultDelays.BindingSettle))
		})
	}
}

// Nothing is verified in a mailbox that is not bound and ready, not even a deselection.
func TestAPassOverAMailboxThatIsNotReady(t *testing.T) {
	for name, change := range map[string]func(*testMailbox){
		"the binding is being deleted": func(m *testMailbox) { m.binding.DeletionTimestamp = new(metav1.Unix(1, 0)) },
		"the binding is not bound":     func(m *testMailbox) { m.binding.Status.Phase = apisv1alpha2.APIBindingPhaseBinding },
		"the mailbox is being deleted": func(m *testMailbox) { m.logicalCluster.DeletionTimestamp = new(metav1.Unix(1, 0)) },
		"the mailbox is not ready":     func(m *testMailbox) { m.logicalCluster.Status.Phase = corev1alpha1.LogicalClusterPhaseInitializing },
		"no endpoint shows it":         func(m *testMailbox) { m.cache.endpoint = nil },
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			m := newTestMailbox(t).settle()
			change(m)
			result, delay := m.pass(missingObject(configMaps, "gone"), Candidate{Resource: configMaps, Key: key("deselected")})
			g.Expect(result).To(Equal(passResult{}))
			g.Expect(delay).To(Equal(retryInterval))
			g.Expect(m.lists()).To(BeZero())
		})
	}
}

// kcp keeps a binding in phase Binding as long as one of its names is taken in the mailbox, and serves the other APIs.
func TestAPassOverABindingWithANamingConflict(t *testing.T) {
	g := NewWithT(t)
	m := newTestMailbox(t).settle()
	m.binding.Status.Phase = apisv1alpha2.APIBindingPhaseBinding
	conditions.MarkFalse(m.binding, apisv1alpha2.BindingUpToDate, apisv1alpha2.NamingConflictsReason, conditionsv1alpha1.ConditionSeverityError, "valves are taken")
	gone, deselected := missingObject(configMaps, "gone"), Candidate{Resource: configMaps, Key: key("deselected")}
	unserved := missingObject(schema.GroupVersionResource{Group: "crd.example.com", Version: "v1", Resource: "valves"}, "gone")
	result, _ := m.pass(gone, deselected, unserved)
	g.Expect(result.verified).To(ConsistOf(gone, deselected))
	g.Expect(result.cleared).To(BeEmpty())
}

// kcp has deleted objects together with the former binding, although no user deleted them. In workspaces that users
// bind later, a new binding proves nothing.
func TestAPassOverAReboundMailbox(t *testing.T) {
	g := NewWithT(t)
	m := newTestMailbox(t).settle()
	m.logicalCluster.Status.Conditions = conditionsv1alpha1.Conditions{{Type: tenancyv1alpha1.WorkspaceInitialized, Status: corev1.ConditionTrue, LastTransitionTime: metav1.Unix(1000, 0)}}
	m.binding.CreationTimestamp = metav1.Unix(2000, 0)
	gone := missingObject(configMaps, "gone")
	for range 2 {
		result, delay := m.pass(gone, Candidate{Resource: configMaps, Key: key("deselected")})
		g.Expect(result).To(Equal(passResult{}))
		g.Expect(delay).To(Equal(reboundRetryInterval))
	}
	g.Expect(m.cache.rebound).To(Equal(1), "it is reported once")
	g.Expect(m.verifier.WasRebound(here)).To(BeTrue())

	m.cache.endpoint.BindLater = true
	result, _ := m.pass(gone)
	g.Expect(result.verified).To(ConsistOf(gone))
}

// Candidates of a resource that the mailbox does not serve disappeared from the watch together with their claim.
func TestAPassWithoutTheResource(t *testing.T) {
	g := NewWithT(t)
	m := newTestMailbox(t).settle()
	result, delay := m.pass(missingObject(secrets, "hidden"))
	g.Expect(result).To(Equal(passResult{}))
	g.Expect(delay).To(Equal(retryInterval))
	result, _ = m.pass(missingObject(secrets, "hidden"), missingObject(configMaps, "gone"))
	g.Expect(result.verified).To(ConsistOf(missingObject(configMaps, "gone")))
}

// The sentinel for all objects is verified only by a cache that holds each object of a list.
func TestAPassForAllObjects(t *testing.T) {
	g := NewWithT(t)
	m := newTestMailbox(t, "a", "b").settle()
	all := Candidate{Resource: configMaps, Key: AllObjects, Missing: true}
	m.cache.names[configMaps] = []string{"a"}
	result, delay := m.pass(all)
	g.Expect(result).To(Equal(passResult{}))
	g.Expect(delay).To(Equal(DefaultDelays.BindingSettle))
	_, _ = m.pass(missingObject(configMaps, "gone"))
	g.Expect(m.lists()).To(Equal(2), "a cache that lacks an object of the list is not trusted afterwards")
	m.cache.names[configMaps] = []string{"b", "a"}
	result, _ = m.pass(all)
	g.Expect(result.verified).To(ConsistOf(all))
}

// The tests of passes use the default delays, so this test checks the delays themselves. kcp has needed several seconds after
// a claim changed.
func TestDefaultDelays(t *testing.T) {
	NewWithT(t).Expect(DefaultDelays.BindingSettle).To(BeNumerically(">=", 10*time.Second))
	NewWithT(t).Expect(DefaultDelays.MassDeletion).To(BeNumerically(">=", 10*time.Second))
}
