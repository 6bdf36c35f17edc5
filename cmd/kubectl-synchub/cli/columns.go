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

package cli

import (
	"fmt"
	"io"
	"text/tabwriter"
)

// Columns prints lines whose tabs separate columns.
type Columns struct{ *tabwriter.Writer }

// NewColumns returns columns on out.
func NewColumns(out io.Writer) Columns {
	return Columns{tabwriter.NewWriter(out, 0, 0, 3, ' ', 0)}
}

// Line prints one line, which is safe for a terminal.
func (c Columns) Line(format string, values ...any) {
	fmt.Fprintln(c, SanitizeLine(fmt.Sprintf(format, values...)))
}
