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

package overview

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/utils/ptr"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"

	"github.com/synchub-dev/synchub/provider/wording"
)

// heartbeatTimeout is the age of a heartbeat at which the status counts as outdated. The hub writes the heartbeat
// every minute.
const heartbeatTimeout = 3 * time.Minute

// ReasonHubSilent is the reason for Unknown when no hub has written to a SyncTarget for heartbeatTimeout.
const ReasonHubSilent = "HubSilent"

// Row summarizes one SyncTarget at one point in time.
type Row struct {
	Name string `json:"name"`
	// Ready is the status of the condition Ready, or Unknown if the condition is missing or outdated. Reason and
	// Message explain why it is not True.
	Ready   metav1.ConditionStatus `json:"ready"`
	Reason  string                 `json:"reason,omitempty"`
	Message string                 `json:"message,omitempty"`
	// Modes are the states that an operator has set: Cordoned, Draining or Drained, Suspended, Deleting.
	Modes []string `json:"modes,omitempty"`
	// Objects and Failed are counts. They are nil until the hub has counted.
	Objects *int32 `json:"synced"`
	Failed  *int32 `json:"failed"`
	// Failures are the first of the failed objects.
	Failures []edgev2alpha1.ObjectFailure `json:"failures,omitempty"`
	// Lag is how long the oldest pending change has waited. For a Ready SyncTarget it is the lag when the hub counted.
	Lag time.Duration `json:"-"`
	// Version is the Kubernetes version of the cluster. LastSeen is the time of its last answer, or zero.
	Version  string    `json:"version,omitempty"`
	LastSeen time.Time `json:"-"`
	Created  time.Time `json:"-"`
	Mailbox  string    `json:"mailbox,omitempty"`
	// Connection is the side that dials: the hub (Direct), or the cluster (Tunnel).
	Connection edgev2alpha1.ConnectionType `json:"-"`
	// Hub is the replica of the hub that serves the SyncTarget.
	Hub string `json:"hub,omitempty"`
	// Incompatible is the number of resources that the hub cannot sync.
	Incompatible int `json:"incompatible,omitempty"`
	// Unauthorized describes the rights that the hub lacks on the cluster. It is empty if it lacks none, or if that is
	// unknown.
	Unauthorized string `json:"unauthorized,omitempty"`
	// BeyondLimits describes the objects of the mailbox that the hub does not sync because of limits. It is empty if there
	// are none.
	BeyondLimits string `json:"beyondLimits,omitempty"`
}

// RowOf summarizes a SyncTarget at the given time.
func RowOf(syncTarget *edgev2alpha1.SyncTarget, now time.Time) Row {
	status := &syncTarget.Status
	row := Row{
		Name: syncTarget.Name, Ready: metav1.ConditionUnknown, Reason: ReasonHubSilent, Message: "No hub has reported anything about it yet.",
		Modes: modesOf(syncTarget), Created: syncTarget.CreationTimestamp.Time, Hub: status.Hub,
	}
	if ready := meta.FindStatusCondition(status.Conditions, edgev2alpha1.ConditionReady); ready != nil {
		row.Ready, row.Reason, row.Message = ready.Status, ready.Reason, ready.Message
	}
	if authorized := meta.FindStatusCondition(status.Conditions, edgev2alpha1.ConditionSyncerAuthorized); authorized != nil && authorized.Status == metav1.ConditionFalse {
		row.Unauthorized = authorized.Reason + ": " + authorized.Message
	}
	if beyond := meta.FindStatusCondition(status.Conditions, edgev2alpha1.ConditionMailboxLimitExceeded); beyond != nil && beyond.Status == metav1.ConditionTrue {
		row.BeyondLimits = beyond.Reason + ": " + beyond.Message
	}
	if last := status.LastSyncerHeartbeatTime; last != nil {
		row.LastSeen = last.Time
		if age := now.Sub(last.Time); age > heartbeatTimeout && row.Ready == metav1.ConditionTrue {
			row.Ready, row.Reason = metav1.ConditionUnknown, ReasonHubSilent
			row.Message = "No hub has written anything for " + FormatDuration(age) + ": is one running?"
		}
	}
	if status.Counts != nil {
		row.Objects, row.Failed = &status.Counts.Synced, &status.Counts.Failed
		row.Failures = status.Failures
	}
	if status.PendingSince != nil {
		row.Lag = max(lagAt(&row, now).Sub(status.PendingSince.Time), 0)
	}
	if status.Versions != nil {
		row.Version = status.Versions.Kubernetes
	}
	row.Connection = cmp.Or(syncTarget.Spec.Connection, edgev2alpha1.ConnectionDirect)
	if status.Mailbox != nil {
		row.Mailbox = status.Mailbox.Workspace
	}
	for _, resource := range status.SyncedResources {
		if resource.State == edgev2alpha1.SyncedResourceIncompatible {
			row.Incompatible++
		}
	}
	return row
}

func modesOf(syncTarget *edgev2alpha1.SyncTarget) (modes []string) {
	add := func(set bool, mode string) {
		if set {
			modes = append(modes, mode)
		}
	}
	drained := meta.IsStatusConditionTrue(syncTarget.Status.Conditions, edgev2alpha1.ConditionDrained)
	add(syncTarget.DeletionTimestamp != nil, "Deleting")
	add(syncTarget.Spec.Drain && !drained, "Draining")
	add(syncTarget.Spec.Drain && drained, "Drained")
	add(syncTarget.Spec.Unschedulable && !syncTarget.Spec.Drain, "Cordoned")
	add(syncTarget.Spec.Suspend, "Suspended")
	return modes
}

// State returns the text of the column READY: the status, and the modes that an operator has set.
func (r Row) State() string {
	return strings.Join(append([]string{string(r.Ready)}, r.Modes...), ",")
}

// IsHealthy reports whether the cluster needs no attention.
func (r Row) IsHealthy() bool {
	return r.Ready == metav1.ConditionTrue && ptr.Deref(r.Failed, 0) == 0 && r.Incompatible == 0 && r.Unauthorized == "" && r.BeyondLimits == ""
}

// FailureLines describes each failed object on one line. The last line has the number of objects that the status
// does not list.
func (r Row) FailureLines() (lines []string) {
	for _, failure := range r.Failures {
		resource := metav1.GroupResource{Group: failure.Group, Resource: failure.Resource}
		name := strings.TrimPrefix(failure.Namespace+"/"+failure.Name, "/")
		lines = append(lines, fmt.Sprintf("%s %s: %s: %s", resource.String(), name, failure.Reason, strings.Join(strings.Fields(failure.Message), " ")))
	}
	if more := int(ptr.Deref(r.Failed, 0)) - len(r.Failures); more > 0 {
		lines = append(lines, fmt.Sprintf("%d more failed; the configs of the mailbox and the events there name them", more))
	}
	return lines
}

// Health groups SyncTargets, the worst first.
type Health int

const (
	NotReady Health = iota
	// SetAside: not ready, and an operator has set a mode that explains it.
	SetAside
	// HasProblems: ready, and some objects, resources or rights need attention.
	HasProblems
	Healthy
)

// Health returns the group of the row.
func (r Row) Health() Health {
	switch {
	case r.IsHealthy():
		return Healthy
	case r.Ready == metav1.ConditionTrue:
		return HasProblems
	case len(r.Modes) > 0:
		return SetAside
	default:
		return NotReady
	}
}

// Problem returns why the cluster is not ready, or which rights the hub lacks there, or which objects it does not sync because of
// limits. It is empty if there is no such problem.
func (r Row) Problem() string {
	if r.Ready != metav1.ConditionTrue {
		return r.Reason + ": " + r.Message
	}
	return cmp.Or(r.Unauthorized, r.BeyondLimits)
}

// SortWorstFirst sorts rows by their health. Within a group, rows with the most failures come first, then those with the
// longest lag.
func SortWorstFirst(rows []Row) { slices.SortStableFunc(rows, CompareHealth) }

// CompareHealth orders rows as SortWorstFirst does.
func CompareHealth(a, b Row) int {
	return cmp.Or(
		cmp.Compare(a.Health(), b.Health()),
		cmp.Compare(ptr.Deref(b.Failed, 0), ptr.Deref(a.Failed, 0)),
		cmp.Compare(b.Lag, a.Lag),
		cmp.Compare(b.Incompatible, a.Incompatible),
		cmp.Compare(a.Name, b.Name),
	)
}

// noValue represents values that do not exist yet or are unknown.
const noValue = "<none>"

// columns of all tables of SyncTargets. kubectl prints those with priority 1 only with -o wide.
var columns = []metav1.TableColumnDefinition{
	{Name: "Name", Type: "string"},
	{Name: "Ready", Type: "string"},
	{Name: "Objects", Type: "string"},
	{Name: "Failed", Type: "string"},
	{Name: "Lag", Type: "string"},
	{Name: "Version", Type: "string"},
	{Name: "Last Seen", Type: "string"},
	{Name: "Age", Type: "string"},
	{Name: "Connection", Type: "string", Priority: 1},
	{Name: "Mailbox", Type: "string", Priority: 1},
	{Name: "Hub", Type: "string", Priority: 1},
	{Name: "Reason", Type: "string", Priority: 1},
}

// RowsOf returns the rows of a table of SyncTargets.
func RowsOf(list *edgev2alpha1.SyncTargetList, now time.Time) []Row {
	rows := make([]Row, 0, len(list.Items))
	for i := range list.Items {
		rows = append(rows, RowOf(&list.Items[i], now))
	}
	slices.SortFunc(rows, func(a, b Row) int { return strings.Compare(a.Name, b.Name) })
	return rows
}

// WithoutAges returns rows with equal texts at any time at which the state of the SyncTargets is the same.
func WithoutAges(rows []Row) []Row {
	rows = slices.Clone(rows)
	for i := range rows {
		row := &rows[i]
		row.LastSeen, row.Created, row.Lag = time.Time{}, time.Time{}, min(row.Lag, time.Nanosecond)
		if row.Reason == ReasonHubSilent {
			row.Message = ""
		}
	}
	return rows
}

// Table returns the rows in the form that kubectl prints.
func Table(rows []Row, now time.Time) *metav1.Table {
	table := &metav1.Table{ColumnDefinitions: columns}
	for _, row := range rows {
		table.Rows = append(table.Rows, metav1.TableRow{Cells: []any{
			row.Name, row.State(), formatCount(row.Objects), formatCount(row.Failed), formatLag(row), cmp.Or(row.Version, noValue),
			formatSince(row.LastSeen, now), formatSince(row.Created, now), string(row.Connection), cmp.Or(row.Mailbox, noValue), cmp.Or(row.Hub, noValue), row.Reason,
		}})
	}
	return table
}

func formatCount(of *int32) string {
	if of == nil {
		return noValue
	}
	return strconv.Itoa(int(*of))
}

// formatLag returns noValue if it is unknown whether a change is pending.
func formatLag(of Row) string {
	switch {
	case of.Lag > 0:
		return FormatDuration(of.Lag)
	case of.Ready != metav1.ConditionTrue || of.Objects == nil:
		return noValue
	default:
		return "0s"
	}
}

func formatSince(when, now time.Time) string {
	if when.IsZero() {
		return noValue
	}
	return FormatDuration(now.Sub(when))
}

// FormatDuration formats a duration as kubectl does. Negative durations count as zero.
func FormatDuration(of time.Duration) string { return duration.HumanDuration(max(of, 0)) }

// Summary describes all rows in one line of text.
func Summary(rows []Row, now time.Time) string {
	var ready, setAside, notReady, unknown int
	var objects, failed int64
	var oldest time.Duration
	for _, row := range rows {
		switch {
		case row.Ready == metav1.ConditionTrue:
			ready++
		case len(row.Modes) > 0:
			setAside++
		case row.Ready == metav1.ConditionUnknown:
			unknown++
		default:
			notReady++
		}
		objects, failed, oldest = objects+int64(ptr.Deref(row.Objects, 0)), failed+int64(ptr.Deref(row.Failed, 0)), max(oldest, row.Lag)
	}
	parts := []string{fmt.Sprintf("%d ready", ready)}
	for _, part := range []struct {
		count int
		what  string
	}{{notReady, "not ready"}, {unknown, "unknown"}, {setAside, "set aside"}} {
		if part.count > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", part.count, part.what))
		}
	}
	text := fmt.Sprintf("%s: %s. %s synced, %d failed%s.",
		wording.Count(len(rows), "cluster", "clusters"), strings.Join(parts, ", "), wording.Count(objects, "object", "objects"), failed, countAge(rows, now))
	if oldest > 0 {
		text += " The oldest pending change waited for " + FormatDuration(oldest) + "."
	}
	return text + division(rows)
}

// lagAt returns the time for which the lag of a SyncTarget is known: while it is not Ready, its changes are still pending now. The changes
// of a Ready one may have been synced since the hub has written the status.
func lagAt(row *Row, now time.Time) time.Time {
	if row.Ready == metav1.ConditionTrue && !row.LastSeen.IsZero() {
		return row.LastSeen
	}
	return now
}

// countAge describes the age of the oldest count of a ready cluster. It is empty if there is none.
func countAge(rows []Row, now time.Time) string {
	var oldest time.Time
	for _, row := range rows {
		if row.Ready == metav1.ConditionTrue && row.Objects != nil && !row.LastSeen.IsZero() && (oldest.IsZero() || row.LastSeen.Before(oldest)) {
			oldest = row.LastSeen
		}
	}
	if oldest.IsZero() {
		return ""
	}
	return ", counted up to " + FormatDuration(now.Sub(oldest)) + " ago"
}

// division describes how many SyncTargets each replica of the hub serves. It is empty if one replica serves all of them.
func division(rows []Row) string {
	counts := map[string]int{}
	for _, row := range rows {
		if row.Hub != "" {
			counts[row.Hub]++
		}
	}
	if len(counts) < 2 {
		return ""
	}
	var parts []string
	for _, hub := range slices.Sorted(maps.Keys(counts)) {
		parts = append(parts, fmt.Sprintf("%s %d", hub, counts[hub]))
	}
	return " By replica of the hub: " + strings.Join(parts, ", ") + "."
}
