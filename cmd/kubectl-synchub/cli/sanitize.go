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
	"bytes"
	"cmp"
	"io"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/printers"
	"k8s.io/client-go/rest"

	"github.com/synchub-dev/synchub/provider/redact"
)

// SanitizeLine returns a text that is safe to print on one line of a terminal. People and servers write conditions,
// events and names. These could move the cursor, imitate other output, or start a new line. Tabs stay, because they
// separate columns.
func SanitizeLine(text string) string {
	columns := strings.Split(text, "\t")
	for i := range columns {
		columns[i] = redact.Printable(columns[i])
	}
	return strings.Join(columns, "\t")
}

// SanitizeTable makes the cells of a table safe, and returns the table. The printer of tables escapes few characters.
func SanitizeTable(table *metav1.Table) *metav1.Table {
	for _, row := range table.Rows {
		for i, cell := range row.Cells {
			if text, ok := cell.(string); ok {
				row.Cells[i] = SanitizeCell(text)
			}
		}
	}
	return table
}

// SanitizeCell returns a text that is safe in a cell of a table. It keeps line breaks, at which the printer cuts the text.
func SanitizeCell(text string) string {
	return SanitizeLines(strings.ReplaceAll(text, "\t", " "))
}

// PrintSafely prints an object or a list. On a terminal it escapes characters that are not printable. A program gets the
// output unchanged.
func PrintSafely(printer printers.ResourcePrinter, object runtime.Object, out io.Writer) error {
	if !printers.IsTerminal(out) {
		return printer.PrintObj(object, out)
	}
	var text bytes.Buffer
	err := printer.PrintObj(object, &text)
	_, writeErr := io.WriteString(out, SanitizeLines(text.String()))
	return cmp.Or(err, writeErr)
}

// RedactedWarnings cuts and escapes the warnings of API servers, which are not trusted.
type RedactedWarnings struct{ rest.WarningHandler }

// HandleWarningHeader implements [rest.WarningHandler].
func (w RedactedWarnings) HandleWarningHeader(code int, agent, text string) {
	w.WarningHandler.HandleWarningHeader(code, agent, redact.Text(text))
}

// firstLine returns the first line of a text.
func firstLine(text string) string {
	line, _, _ := strings.Cut(text, "\n")
	return line
}

// SanitizeLines is sanitizeLine for a text with several lines.
func SanitizeLines(text string) string {
	lines := strings.Split(text, "\n")
	for i := range lines {
		lines[i] = SanitizeLine(lines[i])
	}
	return strings.Join(lines, "\n")
}
