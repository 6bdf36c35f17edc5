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

package plan

import (
	"errors"
	"reflect"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/synchub-dev/synchub/controllers/plan/ownership"
	"github.com/synchub-dev/synchub/controllers/plan/transform"
)

// plannedDown is the expected plan of a case in TestPlanDown.
type plannedDown struct {
	decision   string
	operations []string
	verify     State
	finalizer  FinalizerPlan
	claims     ClaimsAction
	failed     bool
	requeued   bool
}

// The planner needs no server: each situation of a mailbox object and its copies leads to one plan.
func TestPlanDown(t *testing.T) {
	owner := ownership.Owner{Hub: "hub", SyncTarget: "target", Sealer: ownership.NewSealer([]byte("key"))}
	configMaps := schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
	target := TargetAPI{GroupVersionResource: configMaps, Kind: "ConfigMap"}
	down := transform.Down{
		Owner: owner, Mailbox: "mailbox", SyncTarget: "florin", Resource: configMaps.GroupResource(), Namespaced: true,
		Hasher: ownership.NewHasher([]byte("key")),
	}
	p := Planner{Down: down}
	source := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "data": map[string]any{"key": "value"},
		"metadata": map[string]any{"namespace": "default", "name": "shop", "uid": "source"},
	}}
	spec := transform.SyncSpec{Policy: ownership.PolicyDelete}
	desired, err := down.Desired(source, spec)
	if err != nil {
		t.Fatal(err)
	}
	place := Copy{API: target, Key: types.NamespacedName{Namespace: "default", Name: "shop"}}
	copyWith := func(change func(*TargetObject)) Copy {
		result := place
		result.Observed = &TargetObject{UID: "uid", Mark: desired.Mark, HasOwnerLabel: true}
		change(result.Observed)
		return result
	}
	ours, former := copyWith(func(*TargetObject) {}), copyWith(func(o *TargetObject) { o.FormerMailbox = true })
	failure := errors.New("it fails")

	for name, test := range map[string]struct {
		down     DownSnapshot
		source   *unstructured.Unstructured
		upsynced bool
		want     plannedDown
	}{
		"the state is unknown":            {DownSnapshot{State: Unknown, Err: failure}, source, false, plannedDown{decision: " ()", claims: MarkClaimsUnresolved, failed: true}},
		"the mailbox cannot be read":      {DownSnapshot{State: Unknown}, source, false, plannedDown{decision: "None (Unknown)", claims: MarkProcessed}},
		"the selection is unknown":        {DownSnapshot{State: Unknown, Selection: ObjectSelection{Unresolved: failure}}, source, false, plannedDown{decision: "None (Unknown)", claims: MarkClaimsUnresolved}},
		"suspended":                       {DownSnapshot{State: Suspended, Copies: []Copy{ours}}, source, false, plannedDown{decision: "None (Suspended)", claims: SetClaims}},
		"suspended, without a place":      {DownSnapshot{State: Suspended, DestinationErr: failure}, source, false, plannedDown{decision: "None (Suspended)", claims: MarkClaimsUnresolved}},
		"new":                             {DownSnapshot{State: Selected, Destination: place, Spec: spec}, source, false, plannedDown{"Create (Missing)", []string{"Create (Missing)"}, "", ConfigureFinalizer, SetClaims, false, true}},
		"without a place on the target":   {DownSnapshot{State: Selected, DestinationErr: failure}, source, false, plannedDown{decision: " ()", finalizer: ConfigureFinalizer, claims: MarkClaimsUnresolved, failed: true}},
		"excluded by upsync":              {DownSnapshot{State: Selected, Destination: place, Spec: spec, Excluded: true}, source, false, plannedDown{decision: "None (ExcludedByUpsync)", finalizer: ConfigureFinalizer, claims: RemoveClaims}},
		"gone, not verified":              {DownSnapshot{State: SourceNotFound, Copies: []Copy{ours}}, nil, false, plannedDown{decision: "VerifyAbsence (SourceNotFound)", verify: SourceNotFound}},
		"gone, verified":                  {DownSnapshot{State: SourceNotFound, Copies: []Copy{ours}, AbsenceVerified: true}, nil, false, plannedDown{decision: "Delete (SourceNotFound)", operations: []string{"Delete (SourceNotFound)"}}},
		"terminating, nothing left":       {DownSnapshot{State: Terminating, AllCopiesCached: true}, source, false, plannedDown{decision: "None (Terminating)", finalizer: RemoveFinalizer, claims: RemoveClaims}},
		"terminating, maybe something":    {DownSnapshot{State: Terminating}, source, false, plannedDown{decision: "None (Terminating)", claims: RemoveClaims}},
		"deselected, may have claims":     {DownSnapshot{State: Deselected, MayClaim: true, AllCopiesCached: true}, source, false, plannedDown{decision: "None (Deselected)", verify: Deselected}},
		"deselected, claims verified":     {DownSnapshot{State: Deselected, MayClaim: true, AbsenceVerified: true, AllCopiesCached: true}, source, false, plannedDown{decision: "None (Deselected)", finalizer: RemoveFinalizer, claims: RemoveClaims}},
		"deselected, upsynced by name":    {DownSnapshot{State: Deselected, AllCopiesCached: true}, source, true, plannedDown{decision: "None (Deselected)", finalizer: RemoveFinalizer}},
		"gone with a mailbox that is not": {DownSnapshot{State: SourceNotFound, Copies: []Copy{former}}, nil, false, plannedDown{decision: "None (FormerMailbox)", operations: []string{"None (FormerMailbox)"}, finalizer: RemoveFinalizer, claims: RemoveClaims}},
	} {
		t.Run(name, func(t *testing.T) {
			s := &Snapshot{Key: types.NamespacedName{Namespace: "shop", Name: "shop"}, InMailbox: test.source, Readable: true, Down: &test.down}
			if test.upsynced {
				s.Up = &UpSnapshot{}
			}
			got := p.PlanDown(s)
			var operations []string
			for _, operation := range got.Operations {
				operations = append(operations, operation.Decision.String())
			}
			result := plannedDown{got.Decision.String(), operations, got.Wants.VerifyAbsence, got.Finalizer, got.Claims.Action, got.Err != nil, got.RequeueAfter > 0}
			if !reflect.DeepEqual(result, test.want) {
				t.Errorf("got  %+v\nwant %+v", result, test.want)
			}
		})
	}
}
