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

package inputs

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"synchub.dev/hack/capacity/model"
	"synchub.dev/hack/plots/results"
)

// Figure is a number that was read, and its place.
type Figure struct {
	// Name says what it is.
	Name string
	// Value is the number as its page has it, with its unit.
	Value string
	// Default is true for a default of the hub, which nobody measured.
	Default bool
	// Page is the file, and Place the row of a table or the words around the number.
	Page, Place string
}

// pages are the files that have figures, with their text. White space is one blank.
type pages struct {
	root  string
	texts map[string]string
	rows  []results.Row
}

const resultsPage = "RESULTS.md"

// Read returns the costs, and each figure with its source, from the files below the root of the repository.
func Read(root string) (model.Costs, []Figure, error) {
	p := pages{root: root, texts: map[string]string{}}
	text, err := p.text(resultsPage)
	if err != nil {
		return model.Costs{}, nil, err
	}
	if p.rows, err = results.Parse(text); err != nil {
		return model.Costs{}, nil, fmt.Errorf("read %s: %w", resultsPage, err)
	}
	var costs model.Costs
	var figures []Figure
	for _, s := range sources {
		numbers, figure, err := s.read(&p)
		if err != nil {
			return model.Costs{}, nil, fmt.Errorf("%s: %w", s.name, err)
		}
		if s.scale != 0 {
			numbers[len(numbers)-1] *= s.scale
		}
		for i, destination := range s.into(&costs) {
			*destination = numbers[i]
		}
		figure.Default = strings.HasPrefix(s.name, "default of")
		figures = append(figures, figure)
	}
	return costs, figures, nil
}

// text returns a file. Tables need their lines, so only results.Parse gets it as it is.
func (p *pages) text(name string) (string, error) {
	if text, ok := p.texts[name]; ok {
		return text, nil
	}
	content, err := os.ReadFile(filepath.Join(p.root, name))
	if err != nil {
		return "", fmt.Errorf("read a page: %w", err)
	}
	p.texts[name] = string(content)
	return p.texts[name], nil
}

// source says where figures are, and which costs they are.
type source struct {
	name string
	page string
	// scenario is set for a row of RESULTS.md: pattern is a regular expression for what it measured, whose groups are numbers
	// too. Else pattern is one for the words of the page.
	scenario, pattern string
	// raw takes the hub's own figure instead of the result, which may be a ratio.
	raw bool
	// scale brings the last number to bytes or seconds. Zero stands for one.
	scale float64
	// into has one destination for each group of the pattern and, for a row, one more for its figure.
	into func(*model.Costs) []*float64
}

func (s source) read(p *pages) ([]float64, Figure, error) {
	if s.scenario != "" {
		return s.readRow(p.rows)
	}
	text, err := p.text(s.page)
	if err != nil {
		return nil, Figure{}, err
	}
	pattern, err := regexp.Compile(strings.ReplaceAll(s.pattern, " ", `\s+`))
	if err != nil {
		return nil, Figure{}, err
	}
	found := pattern.FindAllStringSubmatch(text, -1)
	if len(found) != 1 {
		return nil, Figure{}, fmt.Errorf("%s has %d places like %q, not one", s.page, len(found), s.pattern)
	}
	numbers, err := parseAll(found[0][1:])
	words := strings.ReplaceAll(strings.Trim(strings.Join(strings.Fields(found[0][0]), " "), "| "), "|", "–")
	return numbers, Figure{Name: s.name, Value: strings.Join(found[0][1:], ", "), Page: s.page, Place: "“" + words + "”"}, err
}

func (s source) readRow(rows []results.Row) ([]float64, Figure, error) {
	pattern, err := regexp.Compile(s.pattern)
	if err != nil {
		return nil, Figure{}, err
	}
	for _, row := range rows {
		groups := pattern.FindStringSubmatch(row.What)
		if row.Scenario != s.scenario || groups == nil {
			continue
		}
		figure := row.Result
		if s.raw {
			if row.Hub == nil {
				return nil, Figure{}, fmt.Errorf("the row %q has no figure of the hub", row.What)
			}
			figure = *row.Hub
		}
		factor, ok := units[figure.Unit]
		if !ok {
			return nil, Figure{}, fmt.Errorf("the row %q has the unit %q", row.What, figure.Unit)
		}
		numbers, err := parseAll(groups[1:])
		value := strings.TrimSpace(strconv.FormatFloat(figure.Value, 'f', -1, 64) + " " + figure.Unit)
		return append(numbers, figure.Value*factor), Figure{Name: s.name, Value: value, Page: resultsPage, Place: "`" + s.scenario + "`, `" + row.What + "`"}, err
	}
	return nil, Figure{}, fmt.Errorf("%s has no row of %s like %q", resultsPage, s.scenario, s.pattern)
}

const (
	kibi = 1 << 10
	mebi = 1 << 20
)

var units = map[string]float64{"KiB": kibi, "MiB": mebi, "s": 1, "% of a core": 0.01}

func parseAll(texts []string) ([]float64, error) {
	numbers := make([]float64, len(texts))
	for i, text := range texts {
		var err error
		if numbers[i], err = strconv.ParseFloat(strings.ReplaceAll(text, ",", ""), 64); err != nil {
			return nil, fmt.Errorf("%q is no number", text)
		}
	}
	return numbers, nil
}
