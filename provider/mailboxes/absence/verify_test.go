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
	"errors"
	"testing"
	"time"

	apisv1alpha2 "github.com/kcp-dev/sdk/apis/apis/v1alpha2"
	corev1alpha1 "github.com/kcp-dev/sdk/apis/core/v1alpha1"
	tenancyv1alpha1 "github.com/kcp-dev/sdk/apis/tenancy/v1alpha1"
	conditionsv1alpha1 "github.com/kcp-dev/sdk/apis/third_party/conditions/apis/conditions/v1alpha1"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/fake"
	clienttesting "k8s.io/client-go/testing"
)

// binding describes an APIBinding by its claims.
type binding struct {
	bound             []schema.GroupResource
	accepted, applied []schema.GroupResource
	rejected          []schema.GroupResource
	condition         corev1.ConditionStatus
}

func (b binding) build() *apisv1alpha2.APIBinding {
	built := &apisv1alpha2.APIBinding{}
	for _, resource := range b.bound {
		built.Status.BoundResources = append(built.Status.BoundResources, apisv1alpha2.BoundAPIResource{Group: resource.Group, Resource: resource.Resource})
	}
	claim := func(resource schema.GroupResource) apisv1alpha2.ScopedPermissionClaim {
		return apisv1alpha2.ScopedPermissionClaim{PermissionClaim: apisv1alpha2.PermissionClaim{
			GroupResource: apisv1alpha2.GroupResource{Group: resource.Group, Resource: resource.Resource}, Verbs: []string{"*"},
		}}
	}
	for _, resource := range b.accepted {
		built.Spec.PermissionClaims = append(built.Spec.PermissionClaims,
			apisv1alpha2.AcceptablePermissionClaim{ScopedPermissionClaim: claim(resource), State: apisv1alpha2.ClaimAccepted})
	}
	for _, resource := range b.rejected {
		built.Spec.PermissionClaims = append(built.Spec.PermissionClaims,
			apisv1alpha2.AcceptablePermissionClaim{ScopedPermissionClaim: claim(resource), State: apisv1alpha2.ClaimRejected})
	}
	for _, resource := range b.applied {
		built.Status.AppliedPermissionClaims = append(built.Status.AppliedPermissionClaims, claim(resource))
	}
	if b.condition != "" {
		built.Status.Conditions = conditionsv1alpha1.Conditions{{Type: apisv1alpha2.PermissionClaimsApplied, Status: b.condition}}
	}
	return built
}

func TestServesResource(t *testing.T) {
	wanted := schema.GroupResource{Group: "apps", Resource: "deployments"}
	only := []schema.GroupResource{wanted}
	others := []schema.GroupResource{{Resource: "deployments"}, {Group: "apps", Resource: "daemonsets"}, {Group: "deployments", Resource: "apps"}}
	for name, tt := range map[string]struct {
		binding binding
		want    bool
	}{
		"nothing":                           {binding{}, false},
		"bound with the export":             {binding{bound: append(others, wanted)}, true},
		"bound, with any claims":            {binding{bound: only, rejected: only, condition: corev1.ConditionFalse}, true},
		"another is bound":                  {binding{bound: others}, false},
		"accepted and applied":              {binding{accepted: append(others, wanted), applied: append(others, wanted), condition: corev1.ConditionTrue}, true},
		"accepted, not yet applied":         {binding{accepted: only, applied: others, condition: corev1.ConditionTrue}, false},
		"accepted, applied in part":         {binding{accepted: only, applied: only, condition: corev1.ConditionFalse}, false},
		"accepted, applied perhaps":         {binding{accepted: only, applied: only, condition: corev1.ConditionUnknown}, false},
		"accepted, without the condition":   {binding{accepted: only, applied: only}, false},
		"rejected, still applied":           {binding{rejected: only, applied: only, condition: corev1.ConditionTrue}, false},
		"rejected after it was accepted":    {binding{accepted: only, rejected: only, applied: only, condition: corev1.ConditionTrue}, false},
		"rejected":                          {binding{rejected: only, condition: corev1.ConditionTrue}, false},
		"applied, but not claimed any more": {binding{applied: only, condition: corev1.ConditionTrue}, false},
		"another of the name or group":      {binding{accepted: others, applied: others, condition: corev1.ConditionTrue}, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := servesResource(tt.binding.build(), wanted); got != tt.want {
				t.Errorf("want %t, got %t", tt.want, got)
			}
		})
	}
}

// A mailbox that was bound again after its creation has lost the objects that kcp stored for the former binding.
func TestIsRebound(t *testing.T) {
	made := metav1.NewTime(time.Unix(1_000_000, 0))
	for name, test := range map[string]struct {
		initialized corev1.ConditionStatus
		bound       time.Duration
		want        bool
	}{
		"bound before":             {corev1.ConditionTrue, -time.Second, false},
		"bound in the same second": {corev1.ConditionTrue, 0, false},
		"bound after":              {corev1.ConditionTrue, time.Second, true},
		"being made":               {corev1.ConditionFalse, time.Second, false},
		"without the annotation":   {"", time.Second, false},
	} {
		bound, cluster := &apisv1alpha2.APIBinding{}, &corev1alpha1.LogicalCluster{}
		bound.CreationTimestamp = metav1.NewTime(made.Add(test.bound))
		if test.initialized != "" {
			cluster.Status.Conditions = conditionsv1alpha1.Conditions{{Type: tenancyv1alpha1.WorkspaceInitialized, Status: test.initialized, LastTransitionTime: made}}
		}
		if got := isRebound(bound, cluster); got != test.want {
			t.Errorf("%s: want %v, got %v", name, test.want, got)
		}
	}
}

func TestGroupMissingAndVerifiedWithoutList(t *testing.T) {
	g := NewWithT(t)
	accepted := []schema.GroupResource{configMaps.GroupResource()}
	bound := binding{accepted: accepted, applied: accepted, condition: corev1.ConditionTrue, bound: []schema.GroupResource{{Group: "example.org", Resource: "widgets"}}}.build()
	widgets := schema.GroupVersionResource{Group: "example.org", Version: "v1", Resource: "widgets"}
	deselected := Candidate{Resource: configMaps, Key: key("deselected")}
	deselectedToo := Candidate{Resource: secrets, Key: key("deselected")}
	a, b, widget, secret := missingObject(configMaps, "a"), missingObject(configMaps, "b"), missingObject(widgets, "w"), missingObject(secrets, "s")
	candidates := []Candidate{a, deselected, secret, widget, deselectedToo, b}

	found, count := groupMissing(bound, candidates)
	g.Expect(count).To(Equal(3))
	g.Expect(found).To(Equal(map[schema.GroupVersionResource][]Candidate{configMaps: {a, b}, widgets: {widget}}))
	found, count = groupMissing(bound, []Candidate{secret, deselected})
	g.Expect(count).To(BeZero())
	g.Expect(found).To(BeEmpty())

	g.Expect(verifiedWithoutList(candidates)).To(Equal(passResult{verified: []Candidate{deselected, deselectedToo}}))
	g.Expect(verifiedWithoutList([]Candidate{a, secret})).To(Equal(passResult{}))
}

// A mass deletion needs more than massDeletionCount candidates, or more than massDeletionMinimum and a large part of the mailbox.
func TestIsMassDeletion(t *testing.T) {
	for _, tt := range []struct {
		left, candidates int
		want             bool
	}{
		{0, 0, false}, {0, 1, false}, {0, massDeletionMinimum, false}, {0, massDeletionMinimum + 1, true},
		{1, massDeletionMinimum, false}, {1, massDeletionMinimum + 1, true},
		{23, 6, true}, {24, 6, false}, {1000, 6, false},
		{100, 25, false}, {100, 26, true},
		{199, massDeletionCount, true}, {200, massDeletionCount, false}, {1000, massDeletionCount, false}, {1000, massDeletionCount + 1, true},
	} {
		v, _ := newVerifier(&fakeCache{count: tt.left})
		if got := v.isMassDeletion(here, tt.candidates); got != tt.want {
			t.Errorf("%d of %d: want %t, got %t", tt.candidates, tt.left+tt.candidates, tt.want, got)
		}
	}
}

// No absence is verified in a mailbox without cached objects.
func TestEvictedMailboxesAreNotVerified(t *testing.T) {
	v, _ := newVerifier(&fakeCache{evicted: true, names: map[schema.GroupVersionResource][]string{configMaps: nil}})
	result, delay := v.runPass(t.Context(), here, []Candidate{{Resource: configMaps, Key: key("deselected")}, missingObject(configMaps, "gone")})
	NewWithT(t).Expect(result).To(Equal(passResult{}))
	NewWithT(t).Expect(delay).To(Equal(retryInterval))
}

// A cache that contains the object must not confirm a candidate that reaches the verifier after the object came back.
func TestAVerifiedCacheIsNotListedAgain(t *testing.T) {
	g := NewWithT(t)
	v, _ := newVerifier(&fakeCache{names: map[schema.GroupVersionResource][]string{configMaps: {"back"}}})
	back, gone := missingObject(configMaps, "back"), missingObject(configMaps, "gone")
	v.stateLocked(here).verifiedCaches[configMaps] = "1"
	candidates := map[schema.GroupVersionResource][]Candidate{configMaps: {back, gone}}
	found, listed, err := v.verifyMissing(t.Context(), boundAt("1", nil), here, candidates, false)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(listed).To(BeFalse())
	g.Expect(found).To(Equal(passResult{verified: []Candidate{gone}, cleared: []Candidate{back}}))
}

// A resource that cannot be listed, or has no cache, does not block other resources, and none of its candidates is verified.
func TestEachResourceIsVerifiedByItself(t *testing.T) {
	g := NewWithT(t)
	v, _ := newVerifier(&fakeCache{})
	client := fake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(),
		map[schema.GroupVersionResource]string{configMaps: "ConfigMapList", secrets: "SecretList"}, object("there"))
	client.PrependReactor("list", secrets.Resource, func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, errors.New("not served any more")
	})
	uncached := schema.GroupVersionResource{Version: "v1", Resource: "services"}
	v.stateLocked(here).verifiedCaches[uncached] = "1"
	found, listed, err := v.verifyMissing(t.Context(), boundAt("1", client), here, map[schema.GroupVersionResource][]Candidate{
		secrets:    {missingObject(secrets, "gone")},
		configMaps: {missingObject(configMaps, "there"), missingObject(configMaps, "gone")},
		uncached:   {missingObject(uncached, "gone")},
	}, false)
	g.Expect(found).To(Equal(passResult{verified: []Candidate{missingObject(configMaps, "gone")}, cleared: []Candidate{missingObject(configMaps, "there")}}))
	g.Expect(listed).To(BeTrue())
	g.Expect(err).To(MatchError(And(ContainSubstring("secrets: cannot list secrets: not served any more"), ContainSubstring("services: there is no cache of it"))))
}

// boundAt returns a bound mailbox at a resourceVersion of its binding.
func boundAt(version string, client dynamic.Interface) *boundMailbox {
	binding := &apisv1alpha2.APIBinding{}
	binding.ResourceVersion = version
	return &boundMailbox{MailboxEndpoint: MailboxEndpoint{Client: client}, binding: binding}
}

// An object that a claim hides is not gone: the workspace itself lists it, if the hub may read there.
func TestClaimedResourcesAreListedInTheWorkspace(t *testing.T) {
	for name, test := range map[string]struct {
		claimed bool
		// refused is the answer of the workspace.
		refused  error
		selector metav1.LabelSelector
		// there contains the objects of the workspace, and cached the objects in the cache.
		there, cached []string
		want          passResult
	}{
		"gone":                           {claimed: true, want: passResult{verified: []Candidate{missingObject(configMaps, "a")}}},
		"hidden":                         {claimed: true, there: []string{"a"}, want: passResult{hidden: []Candidate{missingObject(configMaps, "a")}}},
		"seen again":                     {claimed: true, there: []string{"a"}, cached: []string{"a"}, want: passResult{cleared: []Candidate{missingObject(configMaps, "a")}}},
		"not selected by the claim":      {claimed: true, there: []string{"a"}, selector: metav1.LabelSelector{MatchLabels: map[string]string{"mine": "yes"}}, want: passResult{verified: []Candidate{missingObject(configMaps, "a")}}},
		"the workspace may not be read":  {claimed: true, there: []string{"a"}, refused: apierrors.NewForbidden(configMaps.GroupResource(), "", nil), want: passResult{verified: []Candidate{missingObject(configMaps, "a")}}},
		"the workspace is not reachable": {claimed: true, there: []string{"a"}, refused: apierrors.NewNotFound(configMaps.GroupResource(), ""), want: passResult{verified: []Candidate{missingObject(configMaps, "a")}}},
		"bound, which no claim can hide": {there: []string{"a"}, want: passResult{verified: []Candidate{missingObject(configMaps, "a")}}},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			kinds := map[schema.GroupVersionResource]string{configMaps: "ConfigMapList"}
			workspace := fake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), kinds)
			for _, name := range test.there {
				g.Expect(workspace.Tracker().Add(object(name))).To(Succeed())
			}
			if test.refused != nil {
				workspace.PrependReactor("list", configMaps.Resource, func(clienttesting.Action) (bool, runtime.Object, error) {
					return true, nil, test.refused
				})
			}
			v, _ := newVerifier(&fakeCache{workspace: workspace, names: map[schema.GroupVersionResource][]string{configMaps: test.cached}})
			bound := boundAt("1", fake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), kinds))
			if test.claimed {
				claim := apisv1alpha2.ScopedPermissionClaim{PermissionClaim: apisv1alpha2.PermissionClaim{GroupResource: apisv1alpha2.GroupResource{Resource: configMaps.Resource}}}
				claim.Selector = apisv1alpha2.PermissionClaimSelector{LabelSelector: test.selector, MatchAll: len(test.selector.MatchLabels) == 0}
				bound.binding.Status.AppliedPermissionClaims = []apisv1alpha2.ScopedPermissionClaim{claim}
			}
			found, _, err := v.verifyMissing(t.Context(), bound, here, map[schema.GroupVersionResource][]Candidate{configMaps: {missingObject(configMaps, "a")}}, true)
			g.Expect(found).To(Equal(test.want))
			g.Expect(v.HiddenObjects(here).Count).To(Equal(len(test.want.hidden)))
			if test.want.hidden != nil {
				g.Expect(err).To(MatchError(ContainSubstring("kcp does not show")))
			} else {
				g.Expect(err).NotTo(HaveOccurred())
			}
		})
	}
}
