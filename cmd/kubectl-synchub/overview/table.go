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
	"fmt"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"
)

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
	{Name: "Mailbox", Type: "string", Priority: 1},
	{Name: "Reason", Type: "string", Priority: 1},
}

// Table returns the rows in the form that kubectl prints.
func Table(rows []Row, now time.Time) *metav1.Table {
	table := &metav1.Table{ColumnDefinitions: columns}
	for _, row := range rows {
		table.Rows = append(table.Rows, metav1.TableRow{Cells: []any{
			row.Name, row.State(), formatCount(row.Objects), formatCount(row.Failed), formatLag(row), orNone(row.Version),
			formatSince(row.LastSeen, now), formatSince(row.Created, now), orNone(row.Mailbox), row.Reason,
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

func orNone(text string) string {
	if text == "" {
		return noValue
	}
	return text
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
func Summary(rows []Row) string {
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
		objects, failed, oldest = objects+int64(count(row.Objects)), failed+int64(count(row.Failed)), max(oldest, row.Lag)
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
	text := fmt.Sprintf("%d clusters: %s. %d objects synced, %d failed, as last counted.", len(rows), strings.Join(parts, ", "), objects, failed)
	if oldest > 0 {
		text += " The oldest change has been waiting for " + FormatDuration(oldest) + "."
	}
	return text
}
