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

package describe

import (
	"fmt"
	"strings"

	"github.com/synchub-dev/synchub/cmd/kubectl-synchub/cli"
	"github.com/synchub-dev/synchub/cmd/kubectl-synchub/placed"
)

// Description has the details of an object, in order. The commands print it, and the page of `kubectl synchub ui` shows it.
type Description struct{ Blocks []Block }

// Block is one part of a description: a field, lines of text, or a table.
type Block struct {
	// Name and Value are a field.
	Name, Value string
	// Lines are a text.
	Lines []string
	// Table is nil in a field and in a text.
	Table *Table
}

// Table is a table of a description.
type Table struct {
	Title string
	// Columns are empty for a list.
	Columns []string
	Rows    []Row
	// Notes are lines below the rows.
	Notes []string
}

// Row is a row of a table.
type Row struct {
	Cells []string
	// Object is the subject of the row, at SyncTarget. It is nil if the row is about no single object.
	Object     *placed.Object
	SyncTarget string
}

// field adds a field, unless the value is empty.
func (d *Description) field(name, value string) {
	if value != "" {
		d.Blocks = append(d.Blocks, Block{Name: name, Value: value})
	}
}

func (d *Description) text(lines ...string) {
	d.Blocks = append(d.Blocks, Block{Lines: lines})
}

// table adds a table and returns it.
func (d *Description) table(title string, columns ...string) *Table {
	table := &Table{Title: title, Columns: columns}
	d.Blocks = append(d.Blocks, Block{Table: table})
	return table
}

func (t *Table) row(cells ...string) { t.Rows = append(t.Rows, Row{Cells: cells}) }

func (t *Table) note(format string, values ...any) {
	t.Notes = append(t.Notes, fmt.Sprintf(format, values...))
}

// print prints the description like kubectl describe.
func (d *Description) print(out cli.Columns) {
	for _, block := range d.Blocks {
		switch {
		case block.Table != nil:
			block.Table.print(out)
		case block.Name != "":
			out.Line("%s:\t%s", block.Name, block.Value)
		}
		for _, line := range block.Lines {
			out.Line("%s", line)
		}
	}
}

func (t *Table) print(out cli.Columns) {
	out.Line("%s:", t.Title)
	if len(t.Columns) > 0 {
		out.Line("  %s", strings.Join(t.Columns, "\t"))
	}
	for _, row := range t.Rows {
		out.Line("  %s", strings.Join(row.Cells, "\t"))
	}
	for _, line := range t.Notes {
		out.Line("  %s", line)
	}
}
