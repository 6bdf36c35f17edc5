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
	"slices"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/kcp-dev/logicalcluster/v3"
	apisv1alpha2 "github.com/kcp-dev/sdk/apis/apis/v1alpha2"
	conditionsv1alpha1 "github.com/kcp-dev/sdk/apis/third_party/conditions/apis/conditions/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
)

const mailbox = logicalcluster.Name("mailbox")

var (
	configMaps  = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
	deployments = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}
)

// recorder is a subscriber that notes what it is told.
type recorder struct{ proven []types.NamespacedName }

func (r *recorder) OnEvent(Event)                     {}
func (r *recorder) OnProven(key types.NamespacedName) { r.proven = append(r.proven, key) }
func (r *recorder) OnReset()                          {}

// newTestProver returns a prover of mailboxes without endpoints, and its clock.
func newTestProver(t *testing.T) (*prover, *recorder, *clocktesting.FakeClock) {
	t.Helper()
	clock := clocktesting.NewFakeClock(time.Unix(1_000_000, 0))
	mailboxes := New(nil, "root:synchub", "export", []schema.GroupVersionResource{configMaps}, clock, logr.Discard())
	subscriber := &recorder{}
	mailboxes.Subscribe(configMaps, mailbox, subscriber)
	return mailboxes.prover, subscriber, clock
}

func vanished(name string) Suspect {
	return Suspect{Resource: configMaps, Key: types.NamespacedName{Namespace: "ns", Name: name}, Vanished: true}
}

func (p *prover) suspect(suspects ...Suspect) {
	p.lock.Lock()
	defer p.lock.Unlock()
	for _, suspect := range suspects {
		p.docketLocked(mailbox).pending[suspect] = struct{}{}
	}
}

func TestProofsAreGoodOnce(t *testing.T) {
	p, subscriber, _ := newTestProver(t)
	p.suspect(vanished("a"))
	p.deliver(mailbox, verdict{proven: []Suspect{vanished("a")}})
	if !slices.Equal(subscriber.proven, []types.NamespacedName{vanished("a").Key}) {
		t.Errorf("the subscriber was told of %v", subscriber.proven)
	}
	if !p.take(mailbox, vanished("a")) {
		t.Error("the proof is not there")
	}
	if p.take(mailbox, vanished("a")) {
		t.Error("the proof is there a second time")
	}
}

func TestWhatIsSeenAgainIsAbsolved(t *testing.T) {
	p, subscriber, _ := newTestProver(t)
	p.suspect(vanished("proven"), vanished("pending"))
	p.deliver(mailbox, verdict{proven: []Suspect{vanished("proven")}})
	p.absolve(mailbox, vanished("proven"))
	if p.take(mailbox, vanished("proven")) {
		t.Error("a proof outlives the sight of the object")
	}
	p.absolve(mailbox, vanished("pending"))
	// A round that had begun before comes to its verdict now.
	p.deliver(mailbox, verdict{proven: []Suspect{vanished("pending")}})
	if p.take(mailbox, vanished("pending")) {
		t.Error("a verdict counts although the object was seen meanwhile")
	}
	if len(subscriber.proven) != 1 {
		t.Errorf("the subscriber was told of %v", subscriber.proven)
	}
}

func TestClearedSuspectsAreLookedAtAgain(t *testing.T) {
	p, subscriber, _ := newTestProver(t)
	p.suspect(vanished("a"))
	p.deliver(mailbox, verdict{cleared: []Suspect{vanished("a")}})
	if p.take(mailbox, vanished("a")) || len(subscriber.proven) != 1 {
		t.Errorf("cleared, but proven, or nobody was told: %v", subscriber.proven)
	}
}

func TestWhenABindingSettles(t *testing.T) {
	p, _, clock := newTestProver(t)
	begun := clock.Now()
	p.bindingSeen(mailbox, "1")
	clock.Step(time.Minute)
	p.bindingSeen(mailbox, "1")
	if since := p.settledSince(mailbox); !since.Equal(begun) {
		t.Errorf("seen again unchanged: settled since %v", since)
	}
	p.bindingSeen(mailbox, "2")
	if since := p.settledSince(mailbox); !since.Equal(clock.Now()) {
		t.Errorf("changed: settled since %v", since)
	}
}

func TestInStepOnlyUnderOneBinding(t *testing.T) {
	p, _, _ := newTestProver(t)
	p.docketLocked(mailbox).inStep[configMaps] = "7"
	if !p.isInStep(mailbox, configMaps, "7") {
		t.Error("not in step under the same binding")
	}
	if p.isInStep(mailbox, configMaps, "8") || p.isInStep(mailbox, deployments, "7") {
		t.Error("in step under another binding, or for another resource")
	}
	p.distrust(mailbox, configMaps)
	if p.isInStep(mailbox, configMaps, "7") {
		t.Error("in step after a deletion that nobody saw")
	}
}

func TestManySuspectsAreHeld(t *testing.T) {
	p, _, clock := newTestProver(t)
	if p.holdOver(mailbox, "1") {
		t.Error("believed at once")
	}
	clock.Step(holdFor - time.Second)
	if p.holdOver(mailbox, "1") {
		t.Error("believed before the time")
	}
	if p.holdOver(mailbox, "2") {
		t.Error("believed under another binding")
	}
	clock.Step(holdFor)
	if !p.holdOver(mailbox, "2") {
		t.Error("not believed after the hold")
	}
	if p.holdOver(mailbox, "2") {
		t.Error("a hold counts twice")
	}
	clock.Step(time.Hour)
	if p.holdOver(mailbox, "2") {
		t.Error("a hold of long ago counts")
	}
}

func TestHowManyAreMany(t *testing.T) {
	p, _, _ := newTestProver(t)
	// Without an endpoint the mailbox's size is not known, and all there is are the suspects.
	for suspects, want := range map[int]bool{1: false, 5: false, 6: true, 51: true, 1000: true} {
		if got := p.isMany(mailbox, suspects); got != want {
			t.Errorf("%d suspects: got %v", suspects, got)
		}
	}
}

func TestForget(t *testing.T) {
	p, _, _ := newTestProver(t)
	p.bindingSeen(mailbox, "1")
	p.suspect(vanished("a"))
	p.docketLocked(mailbox).running = true
	p.forget(mailbox)
	if suspects := p.pending(t.Context(), mailbox); len(suspects) > 0 {
		t.Errorf("a run goes on with %v", suspects)
	}
	if len(p.docs) > 0 {
		t.Error("something is still known of a mailbox that is not bound")
	}
}

func TestServesClaim(t *testing.T) {
	claim := func(group, resource string) apisv1alpha2.ScopedPermissionClaim {
		return apisv1alpha2.ScopedPermissionClaim{PermissionClaim: apisv1alpha2.PermissionClaim{GroupResource: apisv1alpha2.GroupResource{Group: group, Resource: resource}}}
	}
	answer := func(state apisv1alpha2.AcceptablePermissionClaimState) apisv1alpha2.AcceptablePermissionClaim {
		return apisv1alpha2.AcceptablePermissionClaim{ScopedPermissionClaim: claim("", "configmaps"), State: state}
	}
	condition := func(status corev1.ConditionStatus) conditionsv1alpha1.Conditions {
		return conditionsv1alpha1.Conditions{{Type: apisv1alpha2.PermissionClaimsApplied, Status: status}}
	}
	bound := []apisv1alpha2.BoundAPIResource{{Group: "apps", Resource: "deployments"}}
	for name, test := range map[string]struct {
		accepted   []apisv1alpha2.AcceptablePermissionClaim
		applied    []apisv1alpha2.ScopedPermissionClaim
		conditions conditionsv1alpha1.Conditions
		resource   schema.GroupVersionResource
		want       bool
	}{
		"exported and bound":      {resource: deployments, want: true},
		"claimed in full":         {[]apisv1alpha2.AcceptablePermissionClaim{answer(apisv1alpha2.ClaimAccepted)}, []apisv1alpha2.ScopedPermissionClaim{claim("", "configmaps")}, condition(corev1.ConditionTrue), configMaps, true},
		"rejected":                {[]apisv1alpha2.AcceptablePermissionClaim{answer(apisv1alpha2.ClaimRejected)}, []apisv1alpha2.ScopedPermissionClaim{claim("", "configmaps")}, condition(corev1.ConditionTrue), configMaps, false},
		"accepted, not applied":   {[]apisv1alpha2.AcceptablePermissionClaim{answer(apisv1alpha2.ClaimAccepted)}, nil, condition(corev1.ConditionTrue), configMaps, false},
		"accepted, being applied": {[]apisv1alpha2.AcceptablePermissionClaim{answer(apisv1alpha2.ClaimAccepted)}, []apisv1alpha2.ScopedPermissionClaim{claim("", "configmaps")}, condition(corev1.ConditionFalse), configMaps, false},
		"another group's":         {nil, []apisv1alpha2.ScopedPermissionClaim{claim("apps", "configmaps")}, condition(corev1.ConditionTrue), configMaps, false},
		"not claimed":             {conditions: condition(corev1.ConditionTrue), resource: configMaps},
	} {
		t.Run(name, func(t *testing.T) {
			binding := &apisv1alpha2.APIBinding{}
			binding.Spec.PermissionClaims = test.accepted
			binding.Status.BoundResources, binding.Status.AppliedPermissionClaims, binding.Status.Conditions = bound, test.applied, test.conditions
			if got := servesClaim(binding, test.resource.GroupResource()); got != test.want {
				t.Errorf("got %v", got)
			}
		})
	}
}

func TestSuspectsAreSorted(t *testing.T) {
	binding := &apisv1alpha2.APIBinding{}
	binding.Status.BoundResources = []apisv1alpha2.BoundAPIResource{{Resource: "configmaps"}}
	deselected := vanished("deselected")
	deselected.Vanished = false
	outOfForce := vanished("out of force")
	outOfForce.Resource = deployments
	all := []Suspect{vanished("a"), deselected, outOfForce, vanished("b")}
	if got := positive(all).proven; !slices.Equal(got, []Suspect{deselected}) {
		t.Errorf("without a list are proven: %v", got)
	}
	found, count := inForce(binding, all)
	if count != 2 || len(found) != 1 || len(found[configMaps]) != 2 {
		t.Errorf("to be listed: %d, %v", count, found)
	}
}

func TestURLsOf(t *testing.T) {
	slice := func(status any) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{"status": status}}
	}
	for name, test := range map[string]struct {
		object any
		want   []string
	}{
		"two":           {slice(map[string]any{"endpoints": []any{map[string]any{"url": "https://a"}, map[string]any{"url": "https://b"}}}), []string{"https://a", "https://b"}},
		"none":          {slice(map[string]any{}), nil},
		"no status":     {&unstructured.Unstructured{Object: map[string]any{}}, nil},
		"odd entries":   {slice(map[string]any{"endpoints": []any{"https://a", map[string]any{"url": int64(1)}, map[string]any{}}}), nil},
		"not an object": {"slice", nil},
	} {
		t.Run(name, func(t *testing.T) {
			if got := urlsOf(test.object); fmt.Sprint(got) != fmt.Sprint(test.want) && len(got)+len(test.want) > 0 {
				t.Errorf("got %v", got)
			}
		})
	}
}
