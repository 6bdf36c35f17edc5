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

package objectsync

import (
	"errors"
	"reflect"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/synchub-dev/synchub/controllers/objectsync/plan"
	"github.com/synchub-dev/synchub/controllers/objectsync/plan/ownership"
	"github.com/synchub-dev/synchub/controllers/objectsync/plan/transform"
)

// plannedDown is what a case of TestPlanDown expects of the plan.
type plannedDown struct {
	decision   string
	operations []string
	verify     plan.Cause
	finalizer  finalizerPlan
	claims     claimsPlan
	failed     bool
	requeued   bool
}

// The planner needs no server: each situation of a mailbox object and its copies leads to one plan.
func TestPlanDown(t *testing.T) {
	configMaps := schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
	target := &targetResource{TargetAPI: TargetAPI{GroupVersionResource: configMaps, Kind: "ConfigMap"}}
	down := transform.Down{
		Owner: testOwner, Mailbox: "mailbox", SyncTarget: "florin", Resource: configMaps.GroupResource(), Namespaced: true,
		Hasher: ownership.NewHasher([]byte("key")),
	}
	p := planner{owner: testOwner, down: down}
	source := configMap(t, "shop", "data: {key: value}")
	spec := transform.SyncSpec{Policy: ownership.PolicyDelete}
	desired, err := down.Desired(source, spec)
	if err != nil {
		t.Fatal(err)
	}
	place := targetCopy{target: target, key: keyOf(source)}
	copyWith := func(change func(*plan.TargetObject)) targetCopy {
		result := place
		result.observed = &plan.TargetObject{UID: "uid", Mark: desired.Mark, HasOwnerLabel: true}
		change(result.observed)
		return result
	}
	ours, former := copyWith(func(*plan.TargetObject) {}), copyWith(func(o *plan.TargetObject) { o.FormerMailbox = true })
	failure := errors.New("it fails")

	for name, test := range map[string]struct {
		down     downSnapshot
		source   *unstructured.Unstructured
		upsynced bool
		want     plannedDown
	}{
		"the state cannot be told":        {downSnapshot{state: plan.Unknown, err: failure}, source, false, plannedDown{decision: " ()", claims: unresolveClaims, failed: true}},
		"the mailbox cannot be read":      {downSnapshot{state: plan.Unknown}, source, false, plannedDown{decision: "None (Unknown)", claims: processClaims}},
		"the selection cannot be told":    {downSnapshot{state: plan.Unknown, selection: objectSelection{unresolved: failure}}, source, false, plannedDown{decision: "None (Unknown)", claims: unresolveClaims}},
		"suspended":                       {downSnapshot{state: plan.Suspended, copies: []targetCopy{ours}}, source, false, plannedDown{decision: "None (Suspended)", claims: setClaims}},
		"suspended, without a place":      {downSnapshot{state: plan.Suspended, destinationErr: failure}, source, false, plannedDown{decision: "None (Suspended)", claims: unresolveClaims}},
		"new":                             {downSnapshot{state: plan.InSync, destination: place, spec: spec}, source, false, plannedDown{"Create (Missing)", []string{"Create (Missing)"}, "", setFinalizer, setClaims, false, true}},
		"without a place on the target":   {downSnapshot{state: plan.InSync, destinationErr: failure}, source, false, plannedDown{decision: " ()", finalizer: setFinalizer, claims: unresolveClaims, failed: true}},
		"excluded by upsync":              {downSnapshot{state: plan.InSync, destination: place, spec: spec, excluded: true}, source, false, plannedDown{decision: "None (ExcludedByUpsync)", finalizer: setFinalizer, claims: removeClaims}},
		"gone, not verified":              {downSnapshot{state: plan.SourceNotFound, copies: []targetCopy{ours}}, nil, false, plannedDown{decision: "VerifyAbsence (SourceNotFound)", verify: plan.SourceNotFound}},
		"gone, verified":                  {downSnapshot{state: plan.SourceNotFound, copies: []targetCopy{ours}, absenceVerified: true}, nil, false, plannedDown{decision: "Delete (SourceNotFound)", operations: []string{"Delete (SourceNotFound)"}}},
		"terminating, nothing left":       {downSnapshot{state: plan.Terminating, settled: true}, source, false, plannedDown{decision: "None (Terminating)", finalizer: dropFinalizer, claims: removeClaims}},
		"terminating, maybe something":    {downSnapshot{state: plan.Terminating}, source, false, plannedDown{decision: "None (Terminating)", claims: removeClaims}},
		"deselected, may have claims":     {downSnapshot{state: plan.Deselected, mayClaim: true, settled: true}, source, false, plannedDown{decision: "None (Deselected)", verify: plan.Deselected}},
		"deselected, claims verified":     {downSnapshot{state: plan.Deselected, mayClaim: true, absenceVerified: true, settled: true}, source, false, plannedDown{decision: "None (Deselected)", finalizer: dropFinalizer, claims: removeClaims}},
		"deselected, upsynced by name":    {downSnapshot{state: plan.Deselected, settled: true}, source, true, plannedDown{decision: "None (Deselected)", finalizer: dropFinalizer}},
		"gone with a mailbox that is not": {downSnapshot{state: plan.SourceNotFound, copies: []targetCopy{former}}, nil, false, plannedDown{decision: "None (FormerMailbox)", operations: []string{"None (FormerMailbox)"}, finalizer: dropFinalizer, claims: removeClaims}},
	} {
		t.Run(name, func(t *testing.T) {
			s := &snapshot{key: types.NamespacedName{Namespace: "shop", Name: "shop"}, source: test.source, readable: true, down: &test.down}
			if test.upsynced {
				s.up = &upSnapshot{}
			}
			got := p.planDown(s.down, s)
			var operations []string
			for _, operation := range got.operations {
				operations = append(operations, operation.decision.String())
			}
			result := plannedDown{got.decision.String(), operations, got.verifyAbsence, got.finalizer, got.claims, got.err != nil, got.requeueAfter > 0}
			if !reflect.DeepEqual(result, test.want) {
				t.Errorf("got  %+v\nwant %+v", result, test.want)
			}
		})
	}
}
