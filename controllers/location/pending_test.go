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
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/controllers/internal/findings"
)

func TestApplyPending(t *testing.T) {
	noon := time.Date(2026, time.May, 1, 12, 0, 0, 0, time.UTC)
	location := &edgev2alpha1.Location{}
	pending := []findings.PendingWithdrawal{
		{SyncTarget: "guilder", Workspace: "root:shop", Copies: 3, At: noon.Add(time.Minute)},
		{SyncTarget: "florin", Workspace: "root:shop", Copies: 3, At: noon},
		{SyncTarget: "florin", Workspace: "root:annex", Copies: 1, At: noon.Add(time.Minute)},
	}
	applyPending(location, pending, metav1.NewTime(noon))
	condition := meta.FindStatusCondition(location.Status.Conditions, edgev2alpha1.ConditionWithdrawalPending)
	want := "At 2026-05-01T12:00:00Z: The hub withdraws 7 copies of objects of root:annex, root:shop from florin (4), guilder (3), because"
	if condition == nil || condition.Status != metav1.ConditionTrue || !strings.HasPrefix(condition.Message, want) {
		t.Errorf("got %+v", condition)
	}
	before := *condition
	applyPending(location, []findings.PendingWithdrawal{pending[2], pending[0], pending[1]}, metav1.NewTime(noon.Add(time.Hour)))
	if after := meta.FindStatusCondition(location.Status.Conditions, edgev2alpha1.ConditionWithdrawalPending); *after != before {
		t.Errorf("another order writes %+v", after)
	}
	// Nothing waits any more, or a user has written the condition.
	applyPending(location, nil, metav1.NewTime(noon))
	if len(location.Status.Conditions) > 0 {
		t.Errorf("got %+v", location.Status.Conditions)
	}
}
