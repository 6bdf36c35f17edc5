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

package location

import (
	"fmt"
	"strings"
	"testing"
	"time"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
)

// fleetOf returns SyncTargets with the label number: three ready ones, one that is not, and one that is terminating.
func fleetOf() []edgev2alpha1.SyncTarget {
	now := metav1.Now()
	syncTargets := make([]edgev2alpha1.SyncTarget, 5)
	for i := range syncTargets {
		syncTargets[i].Name, syncTargets[i].Labels = fmt.Sprint(i), map[string]string{"number": fmt.Sprint(i)}
		syncTargets[i].Status.Conditions = []metav1.Condition{{Type: edgev2alpha1.ConditionReady, Status: metav1.ConditionTrue}}
	}
	syncTargets[3].Status.Conditions[0].Status = metav1.ConditionFalse
	syncTargets[4].DeletionTimestamp = &now
	return syncTargets
}

func TestApplyStatus(t *testing.T) {
	numbers := func(operator metav1.LabelSelectorOperator, values ...string) *metav1.LabelSelector {
		return &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "number", Operator: operator, Values: values}}}
	}
	for name, test := range map[string]struct {
		selector             *metav1.LabelSelector
		tooLarge             bool
		instances, available int32
		reason, message      string
	}{
		"all":              {instances: 4, available: 3, reason: ReasonReady},
		"some":             {selector: numbers(metav1.LabelSelectorOpIn, "2", "3", "4"), instances: 2, available: 1, reason: ReasonReady},
		"none":             {selector: numbers(metav1.LabelSelectorOpIn, "7"), reason: ReasonReady},
		"invalid selector": {selector: numbers("Like", "1"), reason: ReasonInvalidSelector, message: "not a valid label selector operator"},
		"too large":        {tooLarge: true, reason: ReasonTooLarge, message: "its spec has more than"},
	} {
		location := &edgev2alpha1.Location{Spec: edgev2alpha1.LocationSpec{InstanceSelector: test.selector}}
		location.Generation = 3
		if test.tooLarge {
			location.Annotations = map[string]string{"synchub.dev/too-large": "its spec has more than 65536 bytes"}
		}
		applyStatus(location, fleetOf(), metav1.Now())
		ready := location.Status.Conditions[0]
		if *location.Status.Instances != test.instances || *location.Status.AvailableInstances != test.available || ready.Reason != test.reason ||
			!strings.Contains(ready.Message, test.message) || (ready.Status == metav1.ConditionTrue) != (test.reason == ReasonReady) || ready.ObservedGeneration != 3 {
			t.Errorf("%s: got %d, %d, %+v", name, *location.Status.Instances, *location.Status.AvailableInstances, ready)
		}
		// Applying the status later without a change changes nothing.
		again := location.DeepCopy()
		applyStatus(again, fleetOf(), metav1.NewTime(time.Now().Add(time.Hour)))
		if !apiequality.Semantic.DeepEqual(again.Status, location.Status) {
			t.Errorf("%s: the second status differs: %+v", name, again.Status)
		}
	}
}

// The labels of a SyncTarget that is too large are unknown.
func TestATooLargeSyncTargetIsNoInstance(t *testing.T) {
	syncTargets := fleetOf()[:1]
	syncTargets[0].Annotations = map[string]string{"synchub.dev/too-large": "its labels have more than 16384 bytes"}
	location := &edgev2alpha1.Location{}
	if applyStatus(location, syncTargets, metav1.Now()); *location.Status.Instances != 0 {
		t.Errorf("%d instances", *location.Status.Instances)
	}
}
