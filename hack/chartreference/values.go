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
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// value is one value of the chart that users set.
type value struct {
	path        []string
	fallback    string
	description string
}

// parse returns the values in the order of the file. A mapping is one value, unless something in it has a comment of its
// own. A value without a comment is an error: users would have to guess.
func parse(content []byte) ([]value, error) {
	var document yaml.Node
	if err := yaml.Unmarshal(content, &document); err != nil {
		return nil, fmt.Errorf("decode: %w", err)
	}
	if len(document.Content) != 1 || document.Content[0].Kind != yaml.MappingNode {
		return nil, errors.New("it is not one mapping")
	}
	return parseMapping(nil, document.Content[0])
}

func parseMapping(parent []string, mapping *yaml.Node) (values []value, err error) {
	for key, node := range entries(mapping) {
		path := append(slices.Clone(parent), key.Value)
		if isDescribed(node) {
			below, err := parseMapping(path, node)
			if err != nil {
				return nil, err
			}
			values = append(values, below...)
			continue
		}
		description := comment(key)
		if description == "" {
			return nil, fmt.Errorf("line %d: say in a comment what %s is", key.Line, strings.Join(path, "."))
		}
		fallback, err := inline(node)
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", key.Line, err)
		}
		values = append(values, value{path: path, fallback: fallback, description: description})
	}
	return values, nil
}

// isDescribed is true for a mapping in which something has a comment.
func isDescribed(node *yaml.Node) bool {
	if node.Kind != yaml.MappingNode {
		return false
	}
	for key, below := range entries(node) {
		if comment(key) != "" || isDescribed(below) {
			return true
		}
	}
	return false
}

// entries yields the keys of a mapping with their values.
func entries(mapping *yaml.Node) func(yield func(key, value *yaml.Node) bool) {
	return func(yield func(key, value *yaml.Node) bool) {
		for i := 0; i+1 < len(mapping.Content); i += 2 {
			if !yield(mapping.Content[i], mapping.Content[i+1]) {
				return
			}
		}
	}
}

// comment returns the comment above a key as one line.
func comment(key *yaml.Node) string {
	var words []string
	for line := range strings.Lines(key.HeadComment) {
		words = append(words, strings.Fields(strings.TrimPrefix(strings.TrimSpace(line), "#"))...)
	}
	return strings.Join(words, " ")
}

// inline returns a default in one line, as JSON, which is YAML too.
func inline(node *yaml.Node) (string, error) {
	var decoded any
	if err := node.Decode(&decoded); err != nil {
		return "", fmt.Errorf("decode: %w", err)
	}
	encoded, err := json.Marshal(decoded)
	if err != nil {
		return "", fmt.Errorf("encode: %w", err)
	}
	return string(encoded), nil
}

// tables returns one table for the values at the top, and one for each mapping there.
func tables(values []value) string {
	sections, order := map[string][]value{}, []string{""}
	for _, one := range values {
		section := ""
		if len(one.path) > 1 {
			section = one.path[0]
		}
		if !slices.Contains(order, section) {
			order = append(order, section)
		}
		sections[section] = append(sections[section], one)
	}
	var text strings.Builder
	for _, section := range order {
		if section != "" {
			fmt.Fprintf(&text, "\n### %s\n\n", section)
		}
		text.WriteString("| value | default | description |\n| --- | --- | --- |\n")
		for _, one := range sections[section] {
			fmt.Fprintf(&text, "| `%s` | `%s` | %s |\n", strings.Join(one.path, "."), escape(one.fallback), escape(one.description))
		}
	}
	return text.String()
}

// escape keeps a text in its cell of the table.
func escape(text string) string { return strings.ReplaceAll(text, "|", `\|`) }
