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

package main

import (
	"strings"

	"github.com/synchub-dev/synchub/provider/redact"
)

// sanitizeLine returns a text that is safe to print on one line of a terminal. People and servers write conditions,
// events and names. These could move the cursor, imitate other output, or start a new line. Tabs stay, because they
// separate columns.
func sanitizeLine(text string) string {
	columns := strings.Split(text, "\t")
	for i := range columns {
		columns[i] = redact.Printable(columns[i])
	}
	return strings.Join(columns, "\t")
}

// sanitizeLines is sanitizeLine for a text with several lines.
func sanitizeLines(text string) string {
	lines := strings.Split(text, "\n")
	for i := range lines {
		lines[i] = sanitizeLine(lines[i])
	}
	return strings.Join(lines, "\n")
}
