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

package timeline

import (
	"fmt"
	"strings"
	"text/tabwriter"
	"time"
)

const (
	clockFormat = "15:04:05.000"
	// waiting is the content of the cell for the next stage.
	waiting = "…"
)

// Table formats all timelines, one per line below the header. The result ends without a line break.
func Table(timelines []Timeline) string {
	var text strings.Builder
	table := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "TARGET\tDEPLOYMENT\tCREATED\tAPPLIED\tAVAILABLE\tSTATUS BACK")
	for _, j := range timelines {
		cells := []string{j.Target, j.Namespace + "/" + j.Name}
		for stage := range stages {
			cells = append(cells, cell(j, Stage(stage)))
		}
		fmt.Fprintln(table, strings.Join(cells, "\t"))
	}
	_ = table.Flush() // a strings.Builder never fails
	return strings.TrimRight(text.String(), "\n")
}

func cell(j Timeline, stage Stage) string {
	switch {
	case int(stage) > j.Reached():
		return ""
	case int(stage) == j.Reached():
		return waiting
	case stage == Created:
		return j.At(Created).Format(clockFormat)
	default:
		leg, _ := j.Leg(stage)
		return Milliseconds(leg)
	}
}

// Line describes one stage that a timeline has reached, for an output that cannot be redrawn.
func Line(j Timeline, stage Stage) string {
	line := fmt.Sprintf("%s  %-8s %-22s %s", j.At(stage).Format(clockFormat), j.Target, j.Namespace+"/"+j.Name, stage)
	if leg, ok := j.Leg(stage); ok {
		line += " after " + Milliseconds(leg)
	}
	return line
}

// Milliseconds formats a duration in whole milliseconds, and a shorter one as "<1ms".
func Milliseconds(d time.Duration) string {
	if d < time.Millisecond {
		return "<1ms"
	}
	return fmt.Sprintf("%dms", d.Round(time.Millisecond).Milliseconds())
}
