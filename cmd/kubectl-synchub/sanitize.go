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

// sanitizeLine makes what is written on one line fit for a terminal. Conditions, events and names are from people and servers, and could
// move the cursor, look like something else, or begin a line of their own. Tabs part columns.
func sanitizeLine(text string) string {
	columns := strings.Split(text, "\t")
	for i := range columns {
		columns[i] = redact.Printable(columns[i])
	}
	return strings.Join(columns, "\t")
}

// sanitizeLines is the same for a text that has several.
func sanitizeLines(text string) string {
	lines := strings.Split(text, "\n")
	for i := range lines {
		lines[i] = sanitizeLine(lines[i])
	}
	return strings.Join(lines, "\n")
}
