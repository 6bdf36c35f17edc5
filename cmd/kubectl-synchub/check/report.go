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

package check

import (
	"fmt"
	"io"

	"github.com/synchub-dev/synchub/cmd/kubectl-synchub/cli"
)

// Result is what one check came to.
type Result string

// Results of checks.
const (
	// OK: all is as it must be.
	OK Result = "ok"
	// Warning: it works, and may not be what was meant.
	Warning Result = "warning"
	// Problem: it does not work.
	Problem Result = "PROBLEM"
	// Skipped: it could not be looked at.
	Skipped Result = "skipped"
)

// Finding is what one check has found. Area is the part of the installation. Texts of servers are in the message as they came.
type Finding struct {
	Area    string `json:"area"`
	Result  Result `json:"result"`
	Message string `json:"message"`
}

// Report collects findings.
type Report struct {
	Findings []Finding `json:"findings"`
}

func (r *Report) add(area string, result Result, format string, values ...any) {
	r.Findings = append(r.Findings, Finding{area, result, fmt.Sprintf(format, values...)})
}

// Problems returns the number of problems.
func (r *Report) Problems() (count int) {
	for _, finding := range r.Findings {
		if finding.Result == Problem {
			count++
		}
	}
	return count
}

// maxNamed bounds the names in one message.
const maxNamed = 5

// Print prints the findings for people.
func (r *Report) Print(out io.Writer) {
	columns := cli.NewColumns(out)
	for _, finding := range r.Findings {
		columns.Line("%s\t%s\t%s", finding.Area, finding.Result, finding.Message)
	}
	_ = columns.Flush()
}
