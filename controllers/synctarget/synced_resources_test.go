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

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/controllers/syncmanager/schemacheck"
	"github.com/synchub-dev/synchub/provider/ledger"
)

func TestSyncedResources(t *testing.T) {
	const pending, accepted, incompatible = edgev2alpha1.SyncedResourcePending, edgev2alpha1.SyncedResourceAccepted, edgev2alpha1.SyncedResourceIncompatible
	deployments := metav1.GroupResource{Group: "apps", Resource: "deployments"}
	state := func(state edgev2alpha1.SyncedResourceState, reason string) schemacheck.State {
		return schemacheck.State{SyncedResourceState: state, Reason: reason, Message: "Because."}
	}
	for name, test := range map[string]struct {
		recorded ledger.Resource
		known    *schemacheck.State
		want     edgev2alpha1.SyncedResource
	}{
		"nothing is known":         {ledger.Resource{Direct: true, Version: "v1"}, nil, edgev2alpha1.SyncedResource{Own: true, Versions: []string{"v1"}, State: pending}},
		"the first answer":         {ledger.Resource{Direct: true}, new(state(accepted, "Compatible")), edgev2alpha1.SyncedResource{Own: true, State: accepted, Reason: "Compatible", Message: "Because."}},
		"why there is none":        {ledger.Resource{Direct: true}, new(state(pending, "NotAnswered")), edgev2alpha1.SyncedResource{Own: true, State: pending, Reason: "NotAnswered", Message: "Because."}},
		"known from before":        {ledger.Resource{Direct: true, State: "Incompatible", Reason: "No"}, nil, edgev2alpha1.SyncedResource{Own: true, State: incompatible, Reason: "No"}},
		"no answer after one":      {ledger.Resource{Direct: true, State: "Incompatible", Reason: "No"}, new(state(pending, "NotAnswered")), edgev2alpha1.SyncedResource{Own: true, State: incompatible, Reason: "No"}},
		"another answer":           {ledger.Resource{Direct: true, State: "Accepted", Reason: "Compatible"}, new(state(incompatible, "No")), edgev2alpha1.SyncedResource{Own: true, State: incompatible, Reason: "No", Message: "Because."}},
		"what conversions make":    {ledger.Resource{ConvertedFrom: []metav1.GroupResource{{Resource: "a"}}}, new(state(incompatible, "No")), edgev2alpha1.SyncedResource{ConvertedFrom: []metav1.GroupResource{{Resource: "a"}}, State: accepted}},
		"both, and another's fate": {ledger.Resource{Direct: true, ConvertedFrom: []metav1.GroupResource{{Resource: "a"}}}, nil, edgev2alpha1.SyncedResource{Own: true, ConvertedFrom: []metav1.GroupResource{{Resource: "a"}}, State: pending}},
	} {
		t.Run(name, func(t *testing.T) {
			test.recorded.GroupResource = deployments
			test.want.Group, test.want.Resource = deployments.Group, deployments.Resource
			states := map[schema.GroupResource]schemacheck.State{{Resource: "deployments"}: state(incompatible, "Other")}
			if test.known != nil {
				states[schema.GroupResource(deployments)] = *test.known
			}
			if got := syncedResources([]ledger.Resource{test.recorded}, states, nil); len(got) != 1 || !reflect.DeepEqual(got[0], test.want) {
				t.Errorf("want %+v\ngot  %+v", test.want, got)
			}
		})
	}
	if got := syncedResources(nil, nil, nil); got != nil {
		t.Errorf("without resources: %v", got)
	}
}
