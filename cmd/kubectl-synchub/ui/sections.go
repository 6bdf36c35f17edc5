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

package ui

import (
	"github.com/synchub-dev/synchub/cmd/kubectl-synchub/describe"
)

// section is a part of a description on the page: fields, a text, or a table.
type section struct {
	Fields []describe.Block
	Lines  []string
	Table  *describe.Table
	// Links are the addresses of the rows' objects.
	Links []string
}

// sectionsOf returns a description for the page. link returns the address of the object of a row.
func sectionsOf(described *describe.Description, link func(describe.Row) string) (all []section) {
	var fields []describe.Block
	flush := func() {
		if len(fields) > 0 {
			all = append(all, section{Fields: fields})
			fields = nil
		}
	}
	for _, block := range described.Blocks {
		switch {
		case block.Name != "":
			fields = append(fields, block)
		case block.Table != nil:
			flush()
			one := section{Table: block.Table}
			for _, row := range block.Table.Rows {
				one.Links = append(one.Links, link(row))
			}
			all = append(all, one)
		case len(block.Lines) > 0:
			flush()
			all = append(all, section{Lines: block.Lines})
		}
	}
	flush()
	return all
}
