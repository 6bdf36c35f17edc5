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
	"context"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	testclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	crfake "sigs.k8s.io/controller-runtime/pkg/client/fake"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/provider/targets"
)

func TestTransitions(t *testing.T) {
	t.Parallel()
	at := metav1.NewTime(time.Date(2026, 11, 29, 3, 0, 0, 0, time.UTC))
	ready := func(status metav1.ConditionStatus, reason, message string) []metav1.Condition {
		return []metav1.Condition{{Type: edgev2alpha1.ConditionReady, Status: status, Reason: reason, Message: message, LastTransitionTime: at}}
	}
	other := func(conditionType string, status metav1.ConditionStatus, reason string) []metav1.Condition {
		return []metav1.Condition{{Type: conditionType, Status: status, Reason: reason, Message: "m", LastTransitionTime: at}}
	}
	up, down := ready("True", ReasonReady, "fine."), ready("False", targets.ReasonUnreachable, "no answer.")
	for name, c := range map[string]struct {
		before, now []metav1.Condition
		want        []string
	}{
		"it becomes Ready":                       {ready("Unknown", targets.ReasonConnecting, ""), up, []string{"Normal Ready fine."}},
		"it stays Ready":                         {up, up, nil},
		"it goes away":                           {up, down, []string{"Warning TargetUnreachable The SyncTarget was Ready since 2026-11-29T03:00:00Z, and is not any more. no answer."}},
		"only the message changes":               {down, ready("False", targets.ReasonUnreachable, "still no answer."), nil},
		"it comes back":                          {down, up, []string{"Normal Ready fine. It was not Ready since 2026-11-29T03:00:00Z: TargetUnreachable."}},
		"another reason":                         {down, ready("False", targets.ReasonClusterChanged, "another one."), []string{"Warning ClusterChanged another one."}},
		"the tunnel closes":                      {ready("Unknown", targets.ReasonConnecting, ""), ready("False", targets.ReasonTunnelClosed, "none."), []string{"Warning TunnelClosed none."}},
		"the hub has just started":               {up, ready("Unknown", targets.ReasonConnecting, ""), nil},
		"a new one has no mailbox yet":           {nil, ready("False", ReasonMailboxNotReady, "wait."), nil},
		"a new one has no credentials yet":       {nil, ready("Unknown", ReasonCredentialsMissing, "none."), nil},
		"the credentials are gone":               {up, ready("Unknown", ReasonCredentialsMissing, "none."), []string{"Warning CredentialsMissing The SyncTarget was Ready since 2026-11-29T03:00:00Z, and is not any more. none."}},
		"it is drained":                          {up, ready("False", ReasonDraining, "on its way."), []string{"Normal Draining on its way."}},
		"it is suspended, which has a condition": {up, ready("False", ReasonSuspended, "m"), nil},
		"suspended":                              {nil, other(edgev2alpha1.ConditionSuspended, "True", ReasonSuspended), []string{"Normal Suspended m"}},
		"resumed":                                {other(edgev2alpha1.ConditionSuspended, "True", ReasonSuspended), nil, []string{"Normal Resumed spec.suspend is no longer true, so the hub syncs the target again."}},
		"draining":                               {nil, other(edgev2alpha1.ConditionDrained, "False", ReasonDraining), nil},
		"drained":                                {other(edgev2alpha1.ConditionDrained, "False", ReasonDraining), other(edgev2alpha1.ConditionDrained, "True", ReasonDrained), []string{"Normal Drained m"}},
		"a tunnel is refused":                    {nil, other(edgev2alpha1.ConditionTunnelRefused, "True", ReasonTunnelNotVerified), []string{"Warning TunnelNotVerified m"}},
	} {
		var got []string
		for _, one := range transitionsOf(c.before, c.now) {
			got = append(got, one.Type+" "+one.Reason+" "+one.Message)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: want %q, got %q", name, c.want, got)
		}
	}
}

// A write of the status that is tried again gives the event the same name; a later outage gives it another one.
func TestTransitionsHaveOneOccurrence(t *testing.T) {
	t.Parallel()
	transition := func(second int) string {
		before := []metav1.Condition{{Type: edgev2alpha1.ConditionReady, Status: "True", Reason: ReasonReady, LastTransitionTime: metav1.NewTime(time.Unix(int64(second), 0))}}
		now := []metav1.Condition{{Type: edgev2alpha1.ConditionReady, Status: "False", Reason: targets.ReasonUnreachable, LastTransitionTime: metav1.Now()}}
		return transitionsOf(before, now)[0].occurrence
	}
	first, again, later := transition(1), transition(1), transition(2)
	if first != again || first == later {
		t.Errorf("%q, %q, %q", first, again, later)
	}
}

// countingClient counts the events that a workspace gets, by type and reason, and may refuse them.
type countingClient struct {
	client.Client
	created []string
	refuses error
}

func (c *countingClient) Create(ctx context.Context, object client.Object, options ...client.CreateOption) error {
	if c.refuses != nil {
		return c.refuses
	}
	err := c.Client.Create(ctx, object, options...)
	if event, is := object.(*corev1.Event); is && err == nil {
		c.created = append(c.created, event.Type+" "+event.Reason)
	}
	return err
}

// A change has one event, however often the status is written for it, and a status that stays the same over a restart has none.
func TestEventsAreCounted(t *testing.T) {
	t.Parallel()
	at := func(minute int, status metav1.ConditionStatus, reason string) *edgev2alpha1.SyncTarget {
		syncTarget := &edgev2alpha1.SyncTarget{}
		syncTarget.Name, syncTarget.UID = "florin", "uid"
		syncTarget.Status.Conditions = []metav1.Condition{{
			Type: edgev2alpha1.ConditionReady, Status: status, Reason: reason, Message: reason, LastTransitionTime: metav1.NewTime(time.Unix(int64(60*minute), 0)),
		}}
		return syncTarget
	}
	inventory := &countingClient{Client: crfake.NewClientBuilder().Build()}
	c := &Controller{Options: Options{Clock: testclock.NewFakeClock(time.Unix(1000, 0))}}
	up, down, back, away := at(1, "True", ReasonReady), at(2, "False", targets.ReasonUnreachable), at(3, "True", ReasonReady), at(4, "False", targets.ReasonUnreachable)
	for _, step := range [][2]*edgev2alpha1.SyncTarget{{up, down}, {up, down}, {down, down}, {down, back}, {down, back}, {back, back}, {back, away}} {
		c.recordTransitions(t.Context(), inventory, step[0], step[1])
	}
	if want := []string{"Warning TargetUnreachable", "Normal Ready", "Warning TargetUnreachable"}; !slices.Equal(inventory.created, want) {
		t.Errorf("want %q, got %q", want, inventory.created)
	}
	// Without the namespace default there is no event, and the status is written nevertheless.
	inventory.refuses = apierrors.NewNotFound(corev1.Resource("namespaces"), "default")
	c.recordTransitions(t.Context(), inventory, away, at(5, "True", ReasonReady))
}
