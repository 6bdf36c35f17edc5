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

package synctarget

import (
	"reflect"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/controllers/compatibility"
)

func TestSetStates(t *testing.T) {
	const pending, accepted, incompatible = edgev2alpha1.SyncedResourcePending, edgev2alpha1.SyncedResourceAccepted, edgev2alpha1.SyncedResourceIncompatible
	state := func(state edgev2alpha1.SyncedResourceState, reason string) *compatibility.State {
		return &compatibility.State{SyncedResourceState: state, Reason: reason, Message: "Because."}
	}
	for name, test := range map[string]struct {
		before edgev2alpha1.SyncedResourceState
		own    bool
		state  *compatibility.State
		want   edgev2alpha1.SyncedResourceState
		reason string
	}{
		"the first answer":                {pending, true, state(accepted, "Fits"), accepted, "Fits"},
		"another answer":                  {accepted, true, state(incompatible, "No"), incompatible, "No"},
		"none yet":                        {incompatible, true, nil, incompatible, "Before"},
		"none after one":                  {incompatible, true, state(pending, "NotAnswered"), incompatible, "Before"},
		"why there is none":               {pending, true, state(pending, "NotAnswered"), pending, "NotAnswered"},
		"what conversions make of others": {accepted, false, state(incompatible, "No"), accepted, "Before"},
	} {
		t.Run(name, func(t *testing.T) {
			entries := []edgev2alpha1.SyncedResource{{Group: "apps", Resource: "deployments", Own: test.own, State: test.before, Reason: "Before", Message: "Because."}}
			states := map[schema.GroupResource]compatibility.State{{Resource: "deployments"}: *state(incompatible, "Other")}
			if test.state != nil {
				states[schema.GroupResource{Group: "apps", Resource: "deployments"}] = *test.state
			}
			setStates(entries, states)
			if got := entries[0]; got.State != test.want || got.Reason != test.reason {
				t.Errorf("want %s, %s, got %+v", test.want, test.reason, got)
			}
			// What was written is known again after a restart.
			known, ok := fits(entries)[schema.GroupResource{Group: "apps", Resource: "deployments"}]
			want := compatibility.State{SyncedResourceState: test.want, Reason: test.reason, Message: "Because."}
			if isKnown := test.own && test.want != pending; ok != isKnown || ok && !reflect.DeepEqual(known, want) {
				t.Errorf("known again is %v, %+v", ok, known)
			}
		})
	}
}
